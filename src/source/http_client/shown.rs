//! URLs as errors show them. **Pure**.

use reqwest::Url;

/// A URL for people: without user, password, query and fragment, which may be secrets.
pub fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Both fail only for URLs that have no host, and so neither of them.
    url.set_username("").ok();
    url.set_password(None).ok();
    url.to_string()
}

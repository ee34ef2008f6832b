//! Tokens: from a challenge and credentials to the value of `Authorization`.

use super::RegistryError;
use super::origin::Realm;
use super::transport::{Asked, Transport};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use podstead_fetch::{Response, Session};
use podstead_runtime::credentials::Credentials;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Deserialize;
use std::time::Duration;

/// The life of a token whose server names none, by the token specification; a little less, for the way.
pub(super) const TOKEN_LIFE: Duration = Duration::from_secs(55);
/// Maximum lifetime of a token, regardless of its server's.
const LONGEST_LIFE: Duration = Duration::from_secs(24 * 3600);

/// Time limit of the whole answer.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A token server's answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) text: String,
    pub(super) life: Duration,
}

/// Asks the token server.
pub(super) async fn ask(
    transport: &Transport,
    session: &Session,
    realm: &Realm,
    service: Option<&str>,
    scope: &str,
    credentials: &Credentials,
) -> Result<Response, RegistryError> {
    transport.ask_token(session, realm, request(realm, service, scope, credentials), TIMEOUT).await
}

fn request(realm: &Realm, service: Option<&str>, scope: &str, credentials: &Credentials) -> Asked {
    let mut url = realm.url.clone();
    let (mut headers, mut method, mut body) = (HeaderMap::new(), Method::GET, Bytes::new());
    let mut parameters: Vec<(&str, &str)> = scope.split(' ').map(|scope| ("scope", scope)).collect();
    parameters.extend(service.map(|service| ("service", service)));
    match credentials {
        Credentials::Identity(token) => {
            // A form has one value of each name (RFC 6749, 3.3).
            parameters.retain(|(name, _)| *name != "scope");
            parameters.extend([
                ("scope", scope),
                ("grant_type", "refresh_token"),
                ("client_id", "podstead"),
                ("refresh_token", token),
            ]);
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
            (method, body) =
                (Method::POST, form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish().into());
        }
        Credentials::Password(username, password) => {
            url.query_pairs_mut().extend_pairs(parameters);
            // Base64 is of characters that headers may have.
            headers.extend(basic(username, password).map(|value| (AUTHORIZATION, value)));
        }
        Credentials::Anonymous | Credentials::Token(_) => {
            url.query_pairs_mut().extend_pairs(parameters);
        }
    }
    Asked { method, url, headers, body }
}

/// Reads a token server's answer; `None` if it holds no token.
pub(super) fn parse(body: &Bytes) -> Result<Option<Token>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(default)]
        token: String,
        #[serde(default)]
        access_token: String,
        #[serde(default)]
        expires_in: Option<u64>,
    }
    let answer: Answer = serde_json::from_slice(body)?;
    let text = if answer.token.is_empty() { answer.access_token } else { answer.token };
    let life = answer.expires_in.map_or(TOKEN_LIFE, |seconds| Duration::from_secs(seconds.saturating_sub(5))).min(LONGEST_LIFE);
    Ok(Some(Token { text, life }).filter(|token| !token.text.is_empty()))
}

/// `Authorization` with a token; `None` for one with characters that no header can have.
pub(super) fn bearer(token: &str) -> Option<HeaderValue> {
    secret(&format!("Bearer {token}"))
}

/// `Authorization` with user name and password.
pub(super) fn basic(username: &str, password: &str) -> Option<HeaderValue> {
    secret(&format!("Basic {}", STANDARD.encode(format!("{username}:{password}"))))
}

fn secret(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(expires_in: &str) -> u64 {
        parse(&format!(r#"{{"token":"t"{expires_in}}}"#).into()).unwrap().unwrap().life.as_secs()
    }

    #[test]
    fn token_life_is_bounded() {
        assert_eq!(life(""), 55);
        assert_eq!(life(r#","expires_in":300"#), 295);
        assert_eq!(life(r#","expires_in":0"#), 0);
        assert_eq!(life(r#","expires_in":18446744073709551615"#), 24 * 3600);
    }

    #[test]
    fn either_name_of_the_token_is_read() {
        let token = |text: &str| parse(&Bytes::copy_from_slice(text.as_bytes())).map(|token| token.map(|token| token.text)).ok();
        assert_eq!(token(r#"{"access_token":"a"}"#), Some(Some("a".into())));
        assert_eq!(token(r#"{"token":"t","access_token":"a"}"#), Some(Some("t".into())));
        assert_eq!(token("{}"), Some(None));
        assert_eq!(token("<html>"), None);
    }
}

//! Choice of the variant of a multi-platform image for this host. **Pure** but for [`host`].

use super::document::{Descriptor, DocumentError, Platform};

/// This host, in Go's names.
pub fn host() -> Platform {
    let (architecture, variant) = match std::env::consts::ARCH {
        "x86_64" => ("amd64", ""),
        "aarch64" => ("arm64", "v8"),
        "arm" => ("arm", "v7"),
        "x86" => ("386", ""),
        "powerpc64" => ("ppc64le", ""),
        other => (other, ""),
    };
    Platform { os: "linux".into(), architecture: architecture.into(), variant: variant.into() }
}

/// The entry of an index for `host`: the exact variant, else the best one that runs on it.
pub fn choose<'a>(entries: &'a [Descriptor], host: &Platform) -> Result<&'a Descriptor, DocumentError> {
    let rank = |entry: &&Descriptor| entry.platform.as_ref().and_then(|platform| fitness(platform, host));
    // Something for an image, which may name the image's platform: SOCI has such an entry for each image.
    let images = || entries.iter().filter(|entry| entry.artifact_type.is_empty());
    let best =
        images().filter(|entry| rank(entry).is_some()).reduce(|best, entry| if rank(&entry) > rank(&best) { entry } else { best });
    // A single entry that names no platform is an image in a wrapper; a single index among entries is that of the image.
    let only = |is_meant: fn(&&Descriptor) -> bool| {
        let mut meant = images().filter(|entry| entry.platform.is_none()).filter(is_meant);
        meant.next().filter(|_| meant.next().is_none())
    };
    let best = best.or_else(|| only(|_| true).filter(|_| entries.len() == 1)).or_else(|| only(|entry| entry.is_index()));
    best.ok_or_else(|| {
        let offered: Vec<String> =
            images().filter_map(|entry| entry.platform.as_ref()).filter(|p| p.os != "unknown").map(spell).collect();
        DocumentError::NoPlatform {
            wanted: spell(host),
            offered: if offered.is_empty() { "none".into() } else { offered.join(", ") },
        }
    })
}

/// Returns true if content for `platform` runs on `host`. A platform that is not stated does.
pub fn runs_on(platform: &Platform, host: &Platform) -> bool {
    let unstated = platform.os.is_empty() && platform.architecture.is_empty();
    unstated || fitness(platform, host).is_some()
}

/// `linux/arm/v7`
pub fn spell(platform: &Platform) -> String {
    let Platform { os, architecture, variant } = platform;
    match variant.is_empty() {
        true => format!("{os}/{architecture}"),
        false => format!("{os}/{architecture}/{variant}"),
    }
}

/// Fitness of `platform`, more is better; `None` if it does not run. Lower variants of a processor run on higher ones.
fn fitness(platform: &Platform, host: &Platform) -> Option<u32> {
    if platform.os != host.os || platform.architecture != host.architecture {
        return None;
    }
    let level = |variant: &str| variant.strip_prefix('v').and_then(|digits| digits.parse::<u32>().ok());
    match (level(&platform.variant), level(&host.variant)) {
        (None, _) => Some(0),
        // amd64 variants (v2, v3) need features that are not looked at here: only unmarked ones and v1 are taken.
        (Some(offered), None) => (offered == 1).then_some(1),
        (Some(offered), Some(have)) => (offered <= have).then_some(offered),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_container::digest::Digest;

    fn platform(text: &str) -> Platform {
        let mut parts = text.split('/').map(str::to_owned);
        let mut next = || parts.next().unwrap_or_default();
        Platform { os: next(), architecture: next(), variant: next() }
    }

    fn index(platforms: &[&str]) -> Vec<Descriptor> {
        let entry = |text: &&str| Descriptor {
            media_type: String::new(),
            digest: Digest::of(text.as_bytes()),
            size: 0,
            artifact_type: String::new(),
            platform: (!text.is_empty()).then(|| platform(text)),
            annotations: Default::default(),
        };
        platforms.iter().map(entry).collect()
    }

    #[test]
    fn the_best_variant_that_runs_is_chosen() {
        for (offered, host, wanted) in [
            (&["linux/arm64", "linux/amd64"][..], "linux/amd64", "linux/amd64"),
            (&["linux/amd64/v3", "linux/amd64"], "linux/amd64", "linux/amd64"),
            (&["linux/arm/v5", "linux/arm/v7", "linux/arm/v6"], "linux/arm/v7", "linux/arm/v7"),
            (&["linux/arm/v5", "linux/arm/v6"], "linux/arm/v7", "linux/arm/v6"),
            (&["linux/arm64/v8", "linux/arm/v7"], "linux/arm64/v8", "linux/arm64/v8"),
            (&["linux/arm64"], "linux/arm64/v8", "linux/arm64"),
            (&["unknown/unknown", "linux/amd64", "unknown/unknown"], "linux/amd64", "linux/amd64"),
            (&[""], "linux/amd64", ""),
        ] {
            let entries = index(offered);
            let chosen = choose(&entries, &platform(host)).unwrap();
            assert_eq!(chosen.digest, Digest::of(wanted.as_bytes()), "{offered:?} on {host}");
        }
    }

    #[test]
    fn entries_that_are_no_images_are_passed_over() {
        let mut entries = index(&["linux/amd64", "linux/amd64/v1"]);
        entries[1].artifact_type = "application/vnd.amazon.soci.index.v2+json".into();
        assert_eq!(choose(&entries, &platform("linux/amd64")).unwrap().digest, entries[0].digest);
        let mut nested = index(&["", ""]);
        assert!(choose(&nested, &platform("linux/amd64")).is_err());
        nested[1].media_type = super::super::document::OCI_INDEX.into();
        assert_eq!(choose(&nested, &platform("linux/amd64")).unwrap().digest, nested[1].digest);
        nested[0].media_type = super::super::document::OCI_INDEX.into();
        assert!(choose(&nested, &platform("linux/amd64")).is_err(), "two indexes without a platform");
    }

    #[test]
    fn without_a_fitting_variant_the_error_lists_what_there_is() {
        let entries = index(&["linux/arm/v7", "windows/amd64", "unknown/unknown"]);
        let error = choose(&entries, &platform("linux/amd64")).unwrap_err();
        assert_eq!(error.to_string(), "image has no variant for linux/amd64, only for linux/arm/v7, windows/amd64");
        assert!(choose(&index(&["linux/arm/v7"]), &platform("linux/arm/v6")).is_err());
    }

    #[test]
    fn an_unstated_platform_runs_everywhere() {
        assert!(runs_on(&Platform::default(), &host()));
        assert!(!runs_on(&platform("plan9/amd64"), &host()));
    }
}

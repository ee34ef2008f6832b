//! Objects that a source shares with others. Pure; [`podstead_pod::sharing`] decides by it.

use super::SourceConfig;
use podstead_pod::SourceId;
use podstead_pod::sharing::{Share, SharedNames, Sharing, SharingSource};
use podstead_settings::ConfigError;
use podstead_settings::check::{Check, is_label, is_subdomain};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// An item of `sources[].share`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenShare {
    /// Names of the sources whose pods may use these objects.
    pub with: Vec<String>,
    /// ConfigMaps by name; `*` for all. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config_maps: Vec<String>,
    /// Secrets by name, image pull secrets included; `*` for all. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// PersistentVolumeClaims by name; `*` for all. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub persistent_volume_claims: Vec<String>,
    /// Subdomains that pods of the other sources may join with `spec.subdomain`; `*` for all. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subdomains: Vec<String>,
}

/// Checks what a source shares. The names of other sources are checked by [`check_names`].
pub(super) fn shares(check: &Check<'_>, field: &str, written: &[WrittenShare]) -> Result<Vec<Share>, ConfigError> {
    let share = |(index, written): (usize, &WrittenShare)| {
        let WrittenShare { with, config_maps, secrets, persistent_volume_claims, subdomains } = written;
        let field = format!("{field}[{index}]");
        if with.is_empty() {
            return Err(check.invalid(&format!("{field}.with"), "must name a source".to_owned()));
        }
        let names = |name: &str, written: &[String], is_name: fn(&str) -> bool| {
            if let Some((index, name_of_object)) = written.iter().enumerate().find(|(_, name)| *name != "*" && !is_name(name)) {
                let message = format!("{name_of_object:?} is neither the name of an object nor *");
                return Err(check.invalid(&format!("{field}.{name}[{index}]"), message));
            }
            Ok(SharedNames::new(written.iter().cloned()))
        };
        let share = Share {
            with: with.iter().map(SourceId::new).collect(),
            config_maps: names("configMaps", config_maps, is_subdomain)?,
            secrets: names("secrets", secrets, is_subdomain)?,
            persistent_volume_claims: names("persistentVolumeClaims", persistent_volume_claims, is_subdomain)?,
            subdomains: names("subdomains", subdomains, is_label)?,
        };
        let Share { with: _, config_maps, secrets, persistent_volume_claims, subdomains } = &share;
        if [config_maps, secrets, persistent_volume_claims, subdomains].into_iter().all(SharedNames::is_empty) {
            return Err(check.invalid(
                &field,
                "must have at least one of configMaps, secrets, persistentVolumeClaims and subdomains".to_owned(),
            ));
        }
        Ok(share)
    };
    written.iter().enumerate().map(share).collect()
}

/// Refuses shares with sources that do not exist, or with the source itself.
pub(super) fn check_names(check: &Check<'_>, sources: &[SourceConfig]) -> Result<(), ConfigError> {
    let names: BTreeSet<&SourceId> = sources.iter().map(|source| &source.name).collect();
    for (index, source) in sources.iter().enumerate() {
        for (number, share) in source.share.iter().enumerate() {
            let invalid = |message| Err(check.invalid(&format!("sources[{index}].share[{number}].with"), message));
            if share.with.contains(&source.name) {
                return invalid(format!("{:?} is the source itself", source.name.as_str()));
            }
            if let Some(unknown) = share.with.iter().find(|with| !names.contains(with)) {
                return invalid(format!("no source {:?} is configured", unknown.as_str()));
            }
        }
    }
    Ok(())
}

/// As it is written.
pub(super) fn to_written(share: &Share) -> WrittenShare {
    let Share { with, config_maps, secrets, persistent_volume_claims, subdomains } = share;
    let names = |names: &SharedNames| names.iter().map(str::to_owned).collect();
    WrittenShare {
        with: with.iter().map(ToString::to_string).collect(),
        config_maps: names(config_maps),
        secrets: names(secrets),
        persistent_volume_claims: names(persistent_volume_claims),
        subdomains: names(subdomains),
    }
}

/// Returns the sharing rules between these sources.
pub fn sharing(sources: &[SourceConfig]) -> Sharing {
    let of = |source: &SourceConfig| SharingSource {
        id: source.name.clone(),
        is_restricted: source.allow.is_some(),
        uses_registry_credentials: source.allow.as_ref().is_none_or(|allow| allow.registry_credentials()),
        own_namespace: source.allow.as_ref().and_then(|allow| allow.own_namespace()).map(str::to_owned),
        shares: source.share.clone(),
    };
    Sharing::new(sources.iter().map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, HostFacts};
    use podstead_pod::objects::ObjectKind;
    use std::path::Path;

    fn load(sources: &str) -> Result<Config, String> {
        let text = format!("apiVersion: podstead.dev/v1alpha1\nkind: Config\nsources: [{sources}]\n");
        let facts = HostFacts { host_name: "edge".into(), executable: None };
        Config::parse(text.as_bytes(), &facts, Path::new("/c")).map_err(|error| error.to_string())
    }

    fn two(share: &str) -> Result<Config, String> {
        load(&format!(
            "{{name: base, directory: {{path: /a}}, share: [{share}]}}, {{name: apps, directory: {{path: /b}}, allow: {{}}}}"
        ))
    }

    #[test]
    fn sources_with_allow_are_restricted_and_have_what_is_shared() {
        let sharing = sharing(&two("{with: [apps], secrets: [login], subdomains: ['*']}").unwrap().sources);
        let (base, apps) = (SourceId::new("base"), SourceId::new("apps"));
        assert!(sharing.is_restricted(&apps) && !sharing.is_restricted(&base));
        assert!(sharing.uses_registry_credentials(&base) && !sharing.uses_registry_credentials(&apps));
        assert_eq!((sharing.own_namespace(&apps), sharing.own_namespace(&base)), (Some("apps"), None));
        assert!(sharing.may_use(&apps, &base, ObjectKind::Secret, "login"));
        assert!(!sharing.may_use(&apps, &base, ObjectKind::Secret, "other"));
        assert!(!sharing.may_use(&apps, &base, ObjectKind::ConfigMap, "login"));
        assert!(sharing.may_join(&apps, &base, "any"));
    }

    #[test]
    fn share_is_read_back_as_it_is_shown() {
        let config = two("{with: [apps], configMaps: [a, b.c], persistentVolumeClaims: ['*']}").unwrap();
        let shown = serde_yaml::to_string(&config.to_written()).unwrap();
        let facts = HostFacts { host_name: "other".into(), executable: None };
        assert_eq!(Config::parse(shown.as_bytes(), &facts, Path::new("/c")).unwrap(), config, "{shown}");
    }

    #[test]
    fn mistakes_are_named_with_their_field() {
        for (share, expected) in [
            ("{with: [], secrets: [a]}", "sources[0].share[0].with: must name a source"),
            ("{with: [base], secrets: [a]}", "sources[0].share[0].with: \"base\" is the source itself"),
            ("{with: [apps, none], secrets: [a]}", "sources[0].share[0].with: no source \"none\" is configured"),
            ("{with: [apps]}", "sources[0].share[0]: must have at least one of"),
            ("{with: [apps], secrets: [a*]}", "sources[0].share[0].secrets[0]: \"a*\" is neither"),
            ("{with: [apps], subdomains: [a.b]}", "sources[0].share[0].subdomains[0]: \"a.b\" is neither"),
        ] {
            let told = two(share).unwrap_err();
            assert!(told.contains(expected), "{share}: {told}");
        }
    }
}

//! Files and lines of NetworkPolicies, from the accepted sets on disk.

use podstead_config::Config;
use podstead_pod::Origin;
use podstead_service::name::ObjectName;
use podstead_store::last_good::LastGood;
use podstead_store::{Accepted, UndeltaStore, relocate};
use std::collections::BTreeMap;

/// The places of all NetworkPolicies, each with its source. Policies of several sources may have one name.
#[derive(Debug, Default)]
pub(super) struct Places(BTreeMap<ObjectName, Vec<String>>);

impl Places {
    /// Reads what each source has in force. A set that cannot be read has no places.
    pub(super) fn read(config: &Config) -> Self {
        let mut places = Self::default();
        for source in &config.sources {
            let last = LastGood::new(&config.paths, source.name.clone()).load();
            let Some(record) = last.ok().and_then(|state| state.in_force) else { continue };
            for accepted in UndeltaStore::restore(relocate(record.files, source.allow.as_deref())).objects() {
                places.add(accepted, source.name.as_str());
            }
        }
        places
    }

    fn add(&mut self, accepted: &Accepted, source: &str) {
        let Accepted { key, origin, .. } = accepted;
        if key.kind == "NetworkPolicy" {
            let name = ObjectName { namespace: key.namespace.clone(), name: key.name.clone() };
            self.0.entry(name).or_default().push(place(origin, source));
        }
    }

    /// The name, with the places.
    pub(super) fn with_place(&self, name: &ObjectName) -> String {
        match self.0.get(name) {
            Some(places) => format!("{name} ({})", places.join("; ")),
            None => name.to_string(),
        }
    }
}

fn place(origin: &Origin, source: &str) -> String {
    format!("{}:{} of source {source}", origin.file, origin.position.line)
}

//! NetworkPolicies on their way from the objects of all sources to the network.

use podstead_api::services::{Denied, DeniedPackets};
use podstead_mux::ObjectView;
use podstead_network::{BuiltinNetwork, CniNetwork, PoliceError, PolicyObjects, PolicySource, ScopedPolicy, diagnosis};
use podstead_pod::objects::{NetworkKind, NetworkObject, Object, Objects};
use podstead_telemetry::error_chain;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Pause before a change that failed is tried again.
const PAUSE: Duration = Duration::from_secs(5);

/// The policies among the objects of all sources.
#[derive(Debug)]
pub(super) struct SourcePolicies {
    objects: Arc<ObjectView>,
    /// The objects that were looked at last, and the policies among them.
    last: Mutex<(Arc<Objects>, Arc<PolicyObjects>)>,
}

impl SourcePolicies {
    /// Those of this view.
    pub(super) fn new(objects: Arc<ObjectView>) -> Self {
        Self { objects, last: Mutex::default() }
    }
}

impl PolicySource for SourcePolicies {
    fn policies(&self) -> (Arc<PolicyObjects>, bool) {
        let objects = self.objects.get();
        let is_complete = objects.is_complete();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&last.0, &objects) {
            let policies = among(&objects);
            if policies != *last.1 {
                last.1 = Arc::new(policies);
            }
            last.0 = objects;
        }
        (Arc::clone(&last.1), is_complete)
    }
}

/// The policies and labelled namespaces among objects (pure). A policy of a restricted source selects pods of that source only.
fn among(objects: &Objects) -> PolicyObjects {
    let mut found = PolicyObjects::default();
    for (name, held) in objects.all() {
        let Object::Network(object) = &held.object else { continue };
        if !matches!(object.kind(), NetworkKind::NetworkPolicy | NetworkKind::Namespace) {
            continue;
        }
        match object.unpack() {
            NetworkObject::NetworkPolicy(policy) => {
                let is_restricted = objects.sharing().is_restricted(&held.source);
                let only_of = is_restricted.then(|| held.source.to_string());
                found.policies.push(ScopedPolicy { object: *policy, only_of });
            }
            NetworkObject::Namespace(namespace) => {
                let labels = namespace.metadata.labels.unwrap_or_default();
                found.namespaces.insert(name.name.to_string(), labels);
            }
            NetworkObject::Service(_) | NetworkObject::EndpointSlice(_) => {}
        }
    }
    found
}

/// The counters of the network for the API.
#[derive(Debug)]
pub(super) struct PolicyCounters(pub(super) BuiltinNetwork);

impl DeniedPackets for PolicyCounters {
    fn denied(&self) -> Vec<Denied> {
        let counted = self.0.denied().unwrap_or_else(|error| {
            tracing::warn!(error = %error_chain(&error), "cannot read the counters of NetworkPolicies");
            Vec::new()
        });
        let denied = |counted: diagnosis::Denied| Denied {
            namespace: counted.pod.namespace,
            pod: counted.pod.name,
            direction: counted.direction.to_string(),
            packets: counted.packets,
        };
        counted.into_iter().map(denied).collect()
    }
}

/// Has the network enforce other policies as soon as sources want them, and tell of pods for which it cannot.
pub(super) async fn follow(objects: Arc<ObjectView>, network: Option<BuiltinNetwork>, plugins: CniNetwork) -> Infallible {
    let mut changes = objects.subscribe();
    loop {
        while let Some(Err(error)) = police(network.as_ref()).await {
            tracing::error!(error = %error_chain(&error), "cannot enforce NetworkPolicies");
            tokio::time::sleep(PAUSE).await;
        }
        plugins.tell_of_policies();
        // The sender is in `objects`, which is held here: it is never gone.
        if changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

async fn police(network: Option<&BuiltinNetwork>) -> Option<Result<(), PoliceError>> {
    Some(network?.police().await)
}

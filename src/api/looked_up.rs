//! Kinds that are looked up when somebody asks, rather than published: ConfigMaps, Secrets, claims, NetworkPolicies, sources, images,
//! namespaces and the node. Their journals are empty until then, and a watch keeps them up to date while it lasts: where nobody asks, nothing is kept and nothing runs.

use super::Backend;
use super::collection::{Collection, Lag};
use super::failure::ApiFailure;
use super::published::PodKey;
use super::published_objects::{self, PublishedObject};
use super::route::{OWN_API_VERSION, OWN_GROUP, PodPath};
use super::table::Column;
use super::{claims, images, namespaces, network_policies, nodes, objects, own, pulls};
use bytes::Bytes;
use jiff::Timestamp;
use podstead_pod::objects::{ObjectKind, ObjectName, Objects};
use podstead_telemetry::journal::Journal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Mutex;

/// Changes of one kind that are remembered for watchers.
const HISTORY: usize = 256;
/// Bytes of them; a ConfigMap may have a megabyte.
const HISTORY_BYTES: usize = 16 << 20;

/// A kind that is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LookedUpKind {
    /// `v1` ConfigMap.
    ConfigMap,
    /// `v1` Secret, without its data.
    Secret,
    /// `v1` PersistentVolumeClaim.
    Claim,
    /// `networking.k8s.io/v1` NetworkPolicy.
    NetworkPolicy,
    /// A source.
    Source,
    /// An image.
    Image,
    /// A pull under way.
    Pull,
    /// `v1` Namespace.
    Namespace,
    /// `v1` Node: this host.
    Node,
}

impl LookedUpKind {
    const ALL: [Self; 9] = [
        Self::ConfigMap,
        Self::Secret,
        Self::Claim,
        Self::NetworkPolicy,
        Self::Source,
        Self::Image,
        Self::Pull,
        Self::Namespace,
        Self::Node,
    ];

    /// The API group.
    pub(super) const fn group(self) -> &'static str {
        match self {
            Self::ConfigMap | Self::Secret | Self::Claim | Self::Namespace | Self::Node => "",
            Self::NetworkPolicy => network_policies::GROUP,
            Self::Source | Self::Image | Self::Pull => OWN_GROUP,
        }
    }

    /// The plural with the group, as messages have it.
    pub(super) const fn qualified(self) -> &'static str {
        match self {
            Self::NetworkPolicy => network_policies::QUALIFIED,
            Self::ConfigMap
            | Self::Secret
            | Self::Claim
            | Self::Source
            | Self::Image
            | Self::Pull
            | Self::Namespace
            | Self::Node => self.plural(),
        }
    }

    /// The plural, as in paths.
    pub(super) const fn plural(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
            Self::Claim => "persistentvolumeclaims",
            Self::NetworkPolicy => network_policies::PLURAL,
            Self::Source => "sources",
            Self::Image => "images",
            Self::Pull => "pulls",
            Self::Namespace => "namespaces",
            Self::Node => "nodes",
        }
    }

    /// The kind of object of a source; `None` for what is not in a source.
    const fn object_kind(self) -> Option<ObjectKind> {
        match self {
            Self::ConfigMap => Some(ObjectKind::ConfigMap),
            Self::Secret => Some(ObjectKind::Secret),
            Self::Claim => Some(ObjectKind::PersistentVolumeClaim),
            Self::NetworkPolicy => Some(network_policies::OBJECT_KIND),
            Self::Source | Self::Image | Self::Pull | Self::Namespace | Self::Node => None,
        }
    }

    /// The time after which a watch looks again; `None` where changes are announced.
    const fn interval(self) -> Option<Duration> {
        match self {
            Self::ConfigMap | Self::Secret | Self::NetworkPolicy => None,
            // Their data on disk, and pods that use them.
            Self::Claim | Self::Image | Self::Namespace => Some(Duration::from_secs(2)),
            Self::Source | Self::Pull => Some(Duration::from_secs(1)),
            Self::Node => Some(Duration::from_secs(10)),
        }
    }
}

/// Journal of one kind.
#[derive(Debug)]
struct Shelf {
    journal: Journal<PodKey, PublishedObject>,
    /// The view that the journal was last made from. Locked while it is made, so that an older view does not replace a newer one.
    seen: Mutex<Weak<Objects>>,
}

/// Journals of all kinds that are looked up.
#[derive(Debug)]
pub(super) struct LookedUpJournals([Shelf; LookedUpKind::ALL.len()]);

impl LookedUpJournals {
    /// Empty journals. Versions start after `start`.
    pub(super) fn new(start: u64) -> Self {
        let journal = || Journal::new(start, HISTORY).weighing(HISTORY_BYTES, PublishedObject::weight);
        Self(LookedUpKind::ALL.map(|_| Shelf { journal: journal(), seen: Mutex::default() }))
    }
}

/// Objects of one kind.
#[derive(Debug)]
pub(super) struct LookedUp {
    backend: Backend,
    kind: LookedUpKind,
}

impl LookedUp {
    pub(super) fn new(backend: &Backend, kind: LookedUpKind) -> Self {
        Self { backend: backend.clone(), kind }
    }

    fn shelf(&self) -> &Shelf {
        &self.backend.published.looked_up().0[self.kind as usize]
    }

    /// One object; the journal must be fresh.
    pub(super) fn find(&self, path: &PodPath) -> Result<Arc<PublishedObject>, ApiFailure> {
        let PodPath { namespace, name } = path.clone();
        let plural = self.kind.qualified();
        let key = PodKey { namespace, name };
        let found = self.journal().get(&key).or_else(|| {
            // One that nothing is in yet: it need not be made before it is used.
            let is_free = self.kind == LookedUpKind::Namespace && namespaces::is_valid(&key.name);
            let free = || namespaces::namespace(&self.backend, &key.name, None);
            is_free.then(|| Arc::new(PublishedObject::new(key.clone(), &free(), self.journal().version())))
        });
        found.ok_or_else(|| {
            let not_found = ApiFailure::not_found(plural, &key.name);
            let PodKey { namespace, name } = key;
            // The message of the view names the sources that were searched.
            let wanted = self.kind.object_kind().map(|kind| ObjectName { kind, namespace, name });
            match wanted.and_then(|wanted| self.backend.objects.get().first(&wanted).err()) {
                Some(error) => ApiFailure { message: error.to_string(), ..not_found },
                None => not_found,
            }
        })
    }

    async fn look_up(&self, objects: &Objects) -> Result<Vec<Value>, ApiFailure> {
        Ok(match self.kind {
            LookedUpKind::ConfigMap => objects::shown_of(objects, ObjectKind::ConfigMap),
            LookedUpKind::Secret => objects::shown_of(objects, ObjectKind::Secret),
            LookedUpKind::Claim => claims::shown(&self.backend, objects).await?,
            LookedUpKind::NetworkPolicy => network_policies::shown(objects),
            LookedUpKind::Source => own::sources(&self.backend),
            LookedUpKind::Image => images::shown(&self.backend).await?,
            LookedUpKind::Pull => pulls::shown(&self.backend),
            LookedUpKind::Namespace => namespaces::shown(&self.backend, objects),
            LookedUpKind::Node => {
                let key = PodKey { namespace: String::new(), name: self.backend.node.to_string() };
                let before = self.journal().get(&key).map(|node| node.object()).unwrap_or_default();
                vec![nodes::shown(&self.backend, &before)]
            }
        })
    }
}

impl Collection for LookedUp {
    type Key = PodKey;
    type Item = PublishedObject;

    fn api_version(&self) -> &'static str {
        match self.kind {
            LookedUpKind::ConfigMap | LookedUpKind::Secret | LookedUpKind::Claim | LookedUpKind::Namespace | LookedUpKind::Node => {
                "v1"
            }
            LookedUpKind::NetworkPolicy => network_policies::API_VERSION,
            LookedUpKind::Source | LookedUpKind::Image | LookedUpKind::Pull => OWN_API_VERSION,
        }
    }

    fn kind(&self) -> &'static str {
        match self.kind {
            LookedUpKind::ConfigMap => "ConfigMap",
            LookedUpKind::Secret => "Secret",
            LookedUpKind::Claim => "PersistentVolumeClaim",
            LookedUpKind::NetworkPolicy => network_policies::KIND,
            LookedUpKind::Source => "Source",
            LookedUpKind::Image => "Image",
            LookedUpKind::Pull => "Pull",
            LookedUpKind::Namespace => "Namespace",
            LookedUpKind::Node => "Node",
        }
    }

    fn fields(&self) -> &'static [&'static str] {
        match self.kind {
            LookedUpKind::Secret => &["metadata.name", "metadata.namespace", "type"],
            LookedUpKind::ConfigMap | LookedUpKind::Claim | LookedUpKind::NetworkPolicy => &["metadata.name", "metadata.namespace"],
            LookedUpKind::Namespace => &["metadata.name", "status.phase"],
            LookedUpKind::Source | LookedUpKind::Image | LookedUpKind::Pull | LookedUpKind::Node => &["metadata.name"],
        }
    }

    fn columns(&self) -> &'static [Column] {
        match self.kind {
            LookedUpKind::ConfigMap => objects::CONFIG_MAP_COLUMNS,
            LookedUpKind::Secret => objects::SECRET_COLUMNS,
            LookedUpKind::Claim => claims::COLUMNS,
            LookedUpKind::NetworkPolicy => network_policies::COLUMNS,
            LookedUpKind::Source => own::SOURCE_COLUMNS,
            LookedUpKind::Image => images::COLUMNS,
            LookedUpKind::Pull => pulls::COLUMNS,
            LookedUpKind::Namespace => namespaces::COLUMNS,
            LookedUpKind::Node => nodes::COLUMNS,
        }
    }

    fn journal(&self) -> &Journal<PodKey, PublishedObject> {
        &self.shelf().journal
    }

    fn namespace<'a>(&self, item: &'a PublishedObject) -> &'a str {
        &item.key.namespace
    }

    fn labels<'a>(&self, item: &'a PublishedObject) -> Option<&'a BTreeMap<String, String>> {
        Some(&item.labels)
    }

    fn field(&self, item: &PublishedObject, name: &str) -> String {
        item.field(name)
    }

    fn metadata(&self, item: &PublishedObject) -> Value {
        item.metadata()
    }

    fn json(&self, item: &PublishedObject) -> Bytes {
        item.json()
    }

    fn cells(&self, item: &PublishedObject, now: Timestamp) -> Vec<Value> {
        let object = item.object();
        match self.kind {
            LookedUpKind::ConfigMap => objects::config_map_cells(&object),
            LookedUpKind::Secret => objects::secret_cells(&object),
            LookedUpKind::Claim => claims::cells(&object, now),
            LookedUpKind::NetworkPolicy => network_policies::cells(&object),
            LookedUpKind::Source => own::source_cells(object, now),
            LookedUpKind::Image => images::cells(&object, now),
            LookedUpKind::Pull => pulls::cells(&object, now),
            LookedUpKind::Namespace => namespaces::cells(&object, now),
            LookedUpKind::Node => nodes::cells(&object, now),
        }
    }

    async fn refresh(&self) -> Result<(), ApiFailure> {
        let shelf = self.shelf();
        let mut seen = shelf.seen.lock().await;
        let objects = self.backend.objects.get();
        let view = Arc::downgrade(&objects);
        // What depends on nothing else is the same as long as the view is.
        if self.kind.interval().is_none() && Weak::ptr_eq(&seen, &view) {
            return Ok(());
        }
        published_objects::replace(&shelf.journal, &self.look_up(&objects).await?);
        *seen = view;
        Ok(())
    }

    fn lag(&self) -> Lag {
        let announced = self.kind.object_kind().map(|_| self.backend.objects.subscribe());
        Lag::new(announced, self.kind.interval())
    }
}

//! Kinds that are looked up when somebody asks, rather than published: ConfigMaps, Secrets, claims, NetworkPolicies, Endpoints, sources,
//! images, namespaces, the node and its Lease, ControllerRevisions. Their journals are empty until then, and a watch keeps them up to date while it lasts: where nobody asks, nothing is kept and nothing runs.

use super::collection::Lag;
use super::failure::ApiFailure;
use super::key::PodKey;
use super::kinds::LookedUpKind;
use super::kinds::OWN_API_VERSION;
use super::looked_up_journals::Shelf;
use super::published_objects::{self, ObjectCollection, PublishedObject};
use super::route::PodPath;
use super::table::Column;
use super::{
    Backend, claims, controller_revisions, endpoints, images, leases, namespaces, network_policies, networking, nodes, objects,
    own, pulls, storage,
};
use jiff::Timestamp;
use podstead_expand::CONTROLLER_REVISION;
use podstead_pod::objects::{ObjectKind, ObjectName, Objects};
use podstead_telemetry::journal::Journal;
use serde_json::Value;
use std::sync::{Arc, Weak};

/// Columns of kinds of which there is never one.
const NEVER_ONE: &[Column] = &[Column::name()];

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
        let key = PodKey { namespace: namespace.into(), name: name.into() };
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
            LookedUpKind::Endpoints => {
                let (services, slices) = self.backend.services.objects();
                endpoints::shown(&services, &slices)
            }
            LookedUpKind::Source => own::sources(&self.backend),
            LookedUpKind::Image => images::shown(&self.backend).await?,
            LookedUpKind::Pull => pulls::shown(&self.backend),
            LookedUpKind::Namespace => namespaces::shown(&self.backend, objects),
            LookedUpKind::Lease => vec![leases::shown(&self.backend.node, self.backend.started_at, (self.backend.now)())],
            LookedUpKind::ControllerRevision => controller_revisions::shown(&self.backend.published),
            LookedUpKind::PersistentVolume | LookedUpKind::Ingress | LookedUpKind::StorageClass => Vec::new(),
            LookedUpKind::Node => {
                let key = PodKey { namespace: "".into(), name: self.backend.node.to_string().into() };
                let before = self.journal().get(&key).map(|node| node.object()).unwrap_or_default();
                vec![nodes::shown(&self.backend, &before)]
            }
        })
    }
}

impl ObjectCollection for LookedUp {
    fn api_version(&self) -> &'static str {
        match self.kind {
            LookedUpKind::ConfigMap
            | LookedUpKind::Secret
            | LookedUpKind::Claim
            | LookedUpKind::Endpoints
            | LookedUpKind::Namespace
            | LookedUpKind::Node
            | LookedUpKind::PersistentVolume => "v1",
            LookedUpKind::Lease => leases::API_VERSION,
            LookedUpKind::ControllerRevision => "apps/v1",
            LookedUpKind::NetworkPolicy | LookedUpKind::Ingress => networking::API_VERSION,
            LookedUpKind::StorageClass => storage::API_VERSION,
            LookedUpKind::Source | LookedUpKind::Image | LookedUpKind::Pull => OWN_API_VERSION,
        }
    }

    fn kind(&self) -> &'static str {
        match self.kind {
            LookedUpKind::ConfigMap => "ConfigMap",
            LookedUpKind::Secret => "Secret",
            LookedUpKind::Claim => "PersistentVolumeClaim",
            LookedUpKind::NetworkPolicy => networking::KIND,
            LookedUpKind::Endpoints => "Endpoints",
            LookedUpKind::Source => "Source",
            LookedUpKind::Image => "Image",
            LookedUpKind::Pull => "Pull",
            LookedUpKind::Namespace => "Namespace",
            LookedUpKind::Node => "Node",
            LookedUpKind::Lease => "Lease",
            LookedUpKind::ControllerRevision => CONTROLLER_REVISION,
            LookedUpKind::PersistentVolume => "PersistentVolume",
            LookedUpKind::Ingress => "Ingress",
            LookedUpKind::StorageClass => storage::KIND,
        }
    }

    fn fields(&self) -> &'static [&'static str] {
        match self.kind {
            LookedUpKind::Secret => &["metadata.name", "metadata.namespace", "type"],
            LookedUpKind::ConfigMap
            | LookedUpKind::NetworkPolicy
            | LookedUpKind::Endpoints
            | LookedUpKind::Lease
            | LookedUpKind::ControllerRevision
            | LookedUpKind::Ingress => &["metadata.name", "metadata.namespace"],
            LookedUpKind::Claim => &["metadata.name", "metadata.namespace", "status.phase"],
            LookedUpKind::Namespace => &["metadata.name", "status.phase"],
            LookedUpKind::Source
            | LookedUpKind::Image
            | LookedUpKind::Pull
            | LookedUpKind::Node
            | LookedUpKind::PersistentVolume
            | LookedUpKind::StorageClass => &["metadata.name"],
        }
    }

    fn columns(&self) -> &'static [Column] {
        match self.kind {
            LookedUpKind::ConfigMap => objects::CONFIG_MAP_COLUMNS,
            LookedUpKind::Secret => objects::SECRET_COLUMNS,
            LookedUpKind::Claim => claims::COLUMNS,
            LookedUpKind::NetworkPolicy => network_policies::COLUMNS,
            LookedUpKind::Endpoints => endpoints::COLUMNS,
            LookedUpKind::Source => own::SOURCE_COLUMNS,
            LookedUpKind::Image => images::COLUMNS,
            LookedUpKind::Pull => pulls::COLUMNS,
            LookedUpKind::Namespace => namespaces::COLUMNS,
            LookedUpKind::Node => nodes::COLUMNS,
            LookedUpKind::Lease => leases::COLUMNS,
            LookedUpKind::ControllerRevision => controller_revisions::COLUMNS,
            LookedUpKind::PersistentVolume | LookedUpKind::Ingress | LookedUpKind::StorageClass => NEVER_ONE,
        }
    }

    fn journal(&self) -> &Journal<PodKey, PublishedObject> {
        &self.shelf().journal
    }

    fn cells(&self, object: Value, now: Timestamp) -> Vec<Value> {
        match self.kind {
            LookedUpKind::ConfigMap => objects::config_map_cells(&object, now),
            LookedUpKind::Secret => objects::secret_cells(&object, now),
            LookedUpKind::Claim => claims::cells(&object, now),
            LookedUpKind::NetworkPolicy => network_policies::cells(&object, now),
            LookedUpKind::Endpoints => endpoints::cells(&object, now),
            LookedUpKind::Source => own::source_cells(object, now),
            LookedUpKind::Image => images::cells(&object, now),
            LookedUpKind::Pull => pulls::cells(&object, now),
            LookedUpKind::Namespace => namespaces::cells(&object, now),
            LookedUpKind::Node => nodes::cells(&object, now),
            LookedUpKind::Lease => leases::cells(&object, now),
            LookedUpKind::ControllerRevision => controller_revisions::cells(&object, now),
            LookedUpKind::PersistentVolume | LookedUpKind::Ingress | LookedUpKind::StorageClass => Vec::new(),
        }
    }

    fn rows(&self, object: Value, now: Timestamp) -> Vec<Vec<Value>> {
        match self.kind {
            LookedUpKind::Image => images::rows(&object, now),
            LookedUpKind::ConfigMap
            | LookedUpKind::Secret
            | LookedUpKind::Claim
            | LookedUpKind::NetworkPolicy
            | LookedUpKind::Endpoints
            | LookedUpKind::Source
            | LookedUpKind::Pull
            | LookedUpKind::Namespace
            | LookedUpKind::Node
            | LookedUpKind::Lease
            | LookedUpKind::ControllerRevision
            | LookedUpKind::PersistentVolume
            | LookedUpKind::Ingress
            | LookedUpKind::StorageClass => vec![self.cells(object, now)],
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

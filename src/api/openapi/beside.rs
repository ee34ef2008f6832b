//! Fields of the kinds that are served and that no source has: the node, events, podstead's own. **Pure**.

use podstead_manifest::schema::Type::{self, Any, Bool, Int32, Int64, List, Object, Str, Time};
use podstead_manifest::schema::table::OBJECT_META;
use podstead_manifest::schema::{Field, Struct};

const fn field(name: &'static str, ty: Type) -> Field {
    Field { name, ty, required: false }
}

const API_VERSION: Field = field("apiVersion", Str);
const KIND: Field = field("kind", Str);
const METADATA: Field = field("metadata", Object(&OBJECT_META));

/// `v1` Node.
pub(super) static NODE: Struct =
    Struct { name: "Node", fields: &[API_VERSION, KIND, METADATA, field("spec", Any), field("status", Object(&NODE_STATUS))] };

static NODE_STATUS: Struct = Struct {
    name: "NodeStatus",
    fields: &[
        field("addresses", List(&Any)),
        field("allocatable", Any),
        field("capacity", Any),
        field("conditions", List(&Any)),
        field("nodeInfo", Any),
    ],
};

/// `v1` Event.
pub(super) static EVENT: Struct = Struct {
    name: "Event",
    fields: &[
        API_VERSION,
        field("count", Int32),
        field("firstTimestamp", Time),
        field("involvedObject", Any),
        KIND,
        field("lastTimestamp", Time),
        field("message", Str),
        METADATA,
        field("reason", Str),
        field("source", Any),
        field("type", Str),
    ],
};

/// `events.k8s.io/v1` Event.
pub(super) static NEW_EVENT: Struct = Struct {
    name: "EventOfGroup",
    fields: &[
        API_VERSION,
        field("deprecatedCount", Int32),
        field("deprecatedFirstTimestamp", Time),
        field("deprecatedLastTimestamp", Time),
        field("deprecatedSource", Any),
        field("eventTime", Time),
        KIND,
        METADATA,
        field("note", Str),
        field("reason", Str),
        field("regarding", Any),
        field("reportingController", Str),
        field("reportingInstance", Str),
        field("series", Any),
        field("type", Str),
    ],
};

/// `v1` Endpoints.
pub(super) static ENDPOINTS: Struct =
    Struct { name: "Endpoints", fields: &[API_VERSION, KIND, METADATA, field("subsets", List(&Any))] };

/// `v1` PersistentVolume, of which there is never one.
pub(super) static PERSISTENT_VOLUME: Struct =
    Struct { name: "PersistentVolume", fields: &[API_VERSION, KIND, METADATA, field("spec", Any)] };

/// `networking.k8s.io/v1` Ingress, of which there is never one.
pub(super) static INGRESS: Struct = Struct { name: "Ingress", fields: &[API_VERSION, KIND, METADATA, field("spec", Any)] };

/// `storage.k8s.io/v1` StorageClass, of which there is never one.
pub(super) static STORAGE_CLASS: Struct =
    Struct { name: "StorageClass", fields: &[API_VERSION, KIND, METADATA, field("provisioner", Str)] };

/// `apps/v1` ControllerRevision.
pub(super) static CONTROLLER_REVISION: Struct =
    Struct { name: "ControllerRevision", fields: &[API_VERSION, field("data", Any), KIND, METADATA, field("revision", Int64)] };

/// `coordination.k8s.io/v1` Lease.
pub(super) static LEASE: Struct =
    Struct { name: "Lease", fields: &[API_VERSION, KIND, METADATA, field("spec", Object(&LEASE_SPEC))] };

static LEASE_SPEC: Struct = Struct {
    name: "LeaseSpec",
    fields: &[field("holderIdentity", Str), field("leaseDurationSeconds", Int32), field("renewTime", Time)],
};

/// A source.
pub(super) static SOURCE: Struct = Struct {
    name: "Source",
    fields: &[API_VERSION, KIND, METADATA, field("spec", Object(&SOURCE_SPEC)), field("status", Object(&SOURCE_STATUS))],
};

static SOURCE_SPEC: Struct = Struct { name: "SourceSpec", fields: &[field("kind", Str), field("location", Str)] };

static SOURCE_STATUS: Struct = Struct {
    name: "SourceStatus",
    fields: &[
        field("acceptedAt", Time),
        field("acceptedRevision", Str),
        field("appliedAt", Time),
        field("appliedRevision", Str),
        field("fetchedAt", Time),
        field("fetchedRevision", Str),
        field("hold", Any),
        field("lastContactAt", Time),
        field("lastError", Str),
        field("nextLookAt", Time),
        field("pods", Int32),
        field("problems", List(&Any)),
    ],
};

/// An image.
pub(super) static IMAGE: Struct = Struct {
    name: "Image",
    fields: &[
        API_VERSION,
        field("contentBytes", Int64),
        field("digest", Str),
        KIND,
        field("layers", List(&Str)),
        METADATA,
        field("pinned", Bool),
        field("references", List(&Str)),
        field("sizeBytes", Int64),
        field("uniqueBytes", Int64),
    ],
};

/// A pull under way.
pub(super) static PULL: Struct = Struct {
    name: "Pull",
    fields: &[
        API_VERSION,
        field("bytesPerSecond", Int64),
        field("hosts", List(&Str)),
        KIND,
        field("layers", List(&Any)),
        METADATA,
        field("phase", Str),
        field("presentBytes", Int64),
        field("reference", Str),
        field("secondsLeft", Int64),
        field("sizeBytes", Int64),
        field("waiting", Str),
    ],
};

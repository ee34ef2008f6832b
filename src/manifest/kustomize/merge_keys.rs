//! Lists that are merged by the keys of their elements: those with the patch strategy `merge` in the OpenAPI document of Kubernetes 1.21,
//! which kustomize 5 goes by. Lists of any other kind or version are replaced.

/// Part of a kind.
#[derive(Debug)]
pub(super) enum Shape {
    /// Fields that are or hold such lists.
    Object(&'static [Link]),
    /// A list whose elements are merged by these keys; without keys its elements are scalars.
    List { keys: &'static [&'static str], element: Option<&'static Shape> },
}

/// A field and its shape.
#[derive(Debug)]
pub(super) struct Link(pub(super) &'static str, pub(super) &'static Shape);

const fn list(keys: &'static [&'static str]) -> Shape {
    Shape::List { keys, element: None }
}

const fn list_of(keys: &'static [&'static str], element: &'static Shape) -> Shape {
    Shape::List { keys, element: Some(element) }
}

static SCALARS: Shape = list(&[]);
static BY_NAME: Shape = list(&["name"]);
static BY_TYPE: Shape = list(&["type"]);
static BY_IP: Shape = list(&["ip"]);
static BY_DEVICE: Shape = list(&["devicePath"]);
static BY_MOUNT: Shape = list(&["mountPath"]);
static OWNERS: Shape = list(&["uid"]);

static METADATA: Shape = Shape::Object(&[Link("finalizers", &SCALARS), Link("ownerReferences", &OWNERS)]);
static CONDITIONS: Shape = Shape::Object(&[Link("conditions", &BY_TYPE)]);

static CONTAINER_PORTS: Shape = list(&["containerPort", "protocol"]);
static CONTAINER: Shape = Shape::Object(&[
    Link("env", &BY_NAME),
    Link("ports", &CONTAINER_PORTS),
    Link("volumeDevices", &BY_DEVICE),
    Link("volumeMounts", &BY_MOUNT),
]);
static EPHEMERAL_CONTAINER: Shape =
    Shape::Object(&[Link("env", &BY_NAME), Link("volumeDevices", &BY_DEVICE), Link("volumeMounts", &BY_MOUNT)]);
static CONTAINERS: Shape = list_of(&["name"], &CONTAINER);
static EPHEMERAL_CONTAINERS: Shape = list_of(&["name"], &EPHEMERAL_CONTAINER);
static WITH_METADATA: Shape = Shape::Object(&[Link("metadata", &METADATA)]);
static EPHEMERAL_VOLUME: Shape = Shape::Object(&[Link("volumeClaimTemplate", &WITH_METADATA)]);
static VOLUME: Shape = Shape::Object(&[Link("ephemeral", &EPHEMERAL_VOLUME)]);
static VOLUMES: Shape = list_of(&["name"], &VOLUME);
static SPREAD_CONSTRAINTS: Shape = list(&["topologyKey", "whenUnsatisfiable"]);
static POD_SPEC: Shape = Shape::Object(&[
    Link("containers", &CONTAINERS),
    Link("ephemeralContainers", &EPHEMERAL_CONTAINERS),
    Link("hostAliases", &BY_IP),
    Link("imagePullSecrets", &BY_NAME),
    Link("initContainers", &CONTAINERS),
    Link("topologySpreadConstraints", &SPREAD_CONSTRAINTS),
    Link("volumes", &VOLUMES),
]);
static POD_STATUS: Shape = Shape::Object(&[Link("conditions", &BY_TYPE), Link("podIPs", &BY_IP)]);
static POD: Shape = Shape::Object(&[Link("metadata", &METADATA), Link("spec", &POD_SPEC), Link("status", &POD_STATUS)]);
static POD_TEMPLATE_SPEC: Shape = Shape::Object(&[Link("metadata", &METADATA), Link("spec", &POD_SPEC)]);
static POD_TEMPLATE: Shape = Shape::Object(&[Link("metadata", &METADATA), Link("template", &POD_TEMPLATE_SPEC)]);
static WITH_TEMPLATE: Shape = Shape::Object(&[Link("template", &POD_TEMPLATE_SPEC)]);
/// A workload, and a Job as part of a CronJob.
static WORKLOAD: Shape = Shape::Object(&[Link("metadata", &METADATA), Link("spec", &WITH_TEMPLATE), Link("status", &CONDITIONS)]);
static JOB_TEMPLATE: Shape = Shape::Object(&[Link("metadata", &METADATA), Link("spec", &WITH_TEMPLATE)]);
static CRON_JOB_SPEC: Shape = Shape::Object(&[Link("jobTemplate", &JOB_TEMPLATE)]);
static CRON_JOB: Shape = Shape::Object(&[Link("metadata", &METADATA), Link("spec", &CRON_JOB_SPEC)]);
static SERVICE_PORTS: Shape = list(&["port", "protocol"]);
static SERVICE_SPEC: Shape = Shape::Object(&[Link("ports", &SERVICE_PORTS)]);
static SERVICE: Shape = Shape::Object(&[Link("metadata", &METADATA), Link("spec", &SERVICE_SPEC), Link("status", &CONDITIONS)]);
static SERVICE_ACCOUNT: Shape = Shape::Object(&[Link("metadata", &METADATA), Link("secrets", &BY_NAME)]);
static NODE_SPEC: Shape = Shape::Object(&[Link("podCIDRs", &SCALARS)]);
static NODE_STATUS: Shape = Shape::Object(&[Link("addresses", &BY_TYPE), Link("conditions", &BY_TYPE)]);
static NODE: Shape = Shape::Object(&[Link("metadata", &METADATA), Link("spec", &NODE_SPEC), Link("status", &NODE_STATUS)]);
static WITH_CONDITIONS: Shape = Shape::Object(&[Link("metadata", &METADATA), Link("status", &CONDITIONS)]);
static COMPONENT_STATUS: Shape = Shape::Object(&[Link("conditions", &BY_TYPE), Link("metadata", &METADATA)]);
static WEBHOOKS: Shape = Shape::Object(&[Link("metadata", &METADATA), Link("webhooks", &BY_NAME)]);
static CSI_NODE_SPEC: Shape = Shape::Object(&[Link("drivers", &BY_NAME)]);
static CSI_NODE: Shape = Shape::Object(&[Link("metadata", &METADATA), Link("spec", &CSI_NODE_SPEC)]);

/// Versions, kinds and their shape.
static KINDS: &[(&[&str], &[&str], &Shape)] = &[
    (&["v1"], &["Pod"], &POD),
    (&["v1"], &["PodTemplate"], &POD_TEMPLATE),
    (&["v1"], &["ReplicationController"], &WORKLOAD),
    (&["apps/v1"], &["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"], &WORKLOAD),
    (&["batch/v1"], &["Job"], &WORKLOAD),
    (&["batch/v1", "batch/v1beta1"], &["CronJob"], &CRON_JOB),
    (&["v1"], &["Service"], &SERVICE),
    (&["v1"], &["ServiceAccount"], &SERVICE_ACCOUNT),
    (&["v1"], &["Node"], &NODE),
    (&["v1"], &["ComponentStatus"], &COMPONENT_STATUS),
    (&["v1"], &["Namespace", "PersistentVolumeClaim"], &WITH_CONDITIONS),
    (&["policy/v1", "policy/v1beta1"], &["PodDisruptionBudget"], &WITH_CONDITIONS),
    (&["apiregistration.k8s.io/v1", "apiregistration.k8s.io/v1beta1"], &["APIService"], &WITH_CONDITIONS),
    (
        &["admissionregistration.k8s.io/v1", "admissionregistration.k8s.io/v1beta1"],
        &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"],
        &WEBHOOKS,
    ),
    (&["storage.k8s.io/v1", "storage.k8s.io/v1beta1"], &["CSINode"], &CSI_NODE),
    (
        &["v1"],
        &["Binding", "ConfigMap", "Endpoints", "Event", "LimitRange", "PersistentVolume", "ResourceQuota", "Secret"],
        &WITH_METADATA,
    ),
    (&["apps/v1"], &["ControllerRevision"], &WITH_METADATA),
    (&["apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"], &["CustomResourceDefinition"], &WITH_METADATA),
    (&["autoscaling/v1", "autoscaling/v2beta1", "autoscaling/v2beta2"], &["HorizontalPodAutoscaler"], &WITH_METADATA),
    (&["autoscaling/v1"], &["Scale"], &WITH_METADATA),
    (&["certificates.k8s.io/v1", "certificates.k8s.io/v1beta1"], &["CertificateSigningRequest"], &WITH_METADATA),
    (&["coordination.k8s.io/v1", "coordination.k8s.io/v1beta1"], &["Lease"], &WITH_METADATA),
    (&["discovery.k8s.io/v1", "discovery.k8s.io/v1beta1"], &["EndpointSlice"], &WITH_METADATA),
    (&["events.k8s.io/v1", "events.k8s.io/v1beta1"], &["Event"], &WITH_METADATA),
    (&["extensions/v1beta1"], &["Ingress"], &WITH_METADATA),
    (&["flowcontrol.apiserver.k8s.io/v1beta1"], &["FlowSchema", "PriorityLevelConfiguration"], &WITH_METADATA),
    (&["networking.k8s.io/v1", "networking.k8s.io/v1beta1"], &["Ingress", "IngressClass"], &WITH_METADATA),
    (&["networking.k8s.io/v1"], &["NetworkPolicy"], &WITH_METADATA),
    (&["node.k8s.io/v1", "node.k8s.io/v1beta1"], &["RuntimeClass"], &WITH_METADATA),
    (&["policy/v1beta1"], &["Eviction", "PodSecurityPolicy"], &WITH_METADATA),
    (
        &["rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io/v1beta1"],
        &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
        &WITH_METADATA,
    ),
    (&["scheduling.k8s.io/v1", "scheduling.k8s.io/v1beta1"], &["PriorityClass"], &WITH_METADATA),
    (&["storage.k8s.io/v1", "storage.k8s.io/v1beta1"], &["CSIDriver", "StorageClass", "VolumeAttachment"], &WITH_METADATA),
    (&["storage.k8s.io/v1beta1"], &["CSIStorageCapacity"], &WITH_METADATA),
];

/// The shape of a kind, when it is known.
pub(super) fn shape_of(api_version: &str, kind: &str) -> Option<&'static Shape> {
    KINDS.iter().find(|(versions, kinds, _)| versions.contains(&api_version) && kinds.contains(&kind)).map(|(.., shape)| *shape)
}

/// Definitions of the built-in schema that those of custom resources refer to.
static DEFINITIONS: &[(&str, &Shape)] = &[
    ("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", &METADATA),
    ("io.k8s.api.core.v1.Container", &CONTAINER),
    ("io.k8s.api.core.v1.EphemeralContainer", &EPHEMERAL_CONTAINER),
    ("io.k8s.api.core.v1.EphemeralVolumeSource", &EPHEMERAL_VOLUME),
    ("io.k8s.api.core.v1.NodeSpec", &NODE_SPEC),
    ("io.k8s.api.core.v1.NodeStatus", &NODE_STATUS),
    ("io.k8s.api.core.v1.PersistentVolumeClaim", &WITH_CONDITIONS),
    ("io.k8s.api.core.v1.PersistentVolumeClaimTemplate", &WITH_METADATA),
    ("io.k8s.api.core.v1.Pod", &POD),
    ("io.k8s.api.core.v1.PodSpec", &POD_SPEC),
    ("io.k8s.api.core.v1.PodStatus", &POD_STATUS),
    ("io.k8s.api.core.v1.PodTemplateSpec", &POD_TEMPLATE_SPEC),
    ("io.k8s.api.core.v1.ServiceSpec", &SERVICE_SPEC),
    ("io.k8s.api.core.v1.ServiceAccount", &SERVICE_ACCOUNT),
    ("io.k8s.api.core.v1.Volume", &VOLUME),
    ("io.k8s.api.apps.v1.DaemonSetSpec", &WITH_TEMPLATE),
    ("io.k8s.api.apps.v1.DeploymentSpec", &WITH_TEMPLATE),
    ("io.k8s.api.apps.v1.ReplicaSetSpec", &WITH_TEMPLATE),
    ("io.k8s.api.apps.v1.StatefulSetSpec", &WITH_TEMPLATE),
    ("io.k8s.api.batch.v1.CronJobSpec", &CRON_JOB_SPEC),
    ("io.k8s.api.batch.v1.JobSpec", &WITH_TEMPLATE),
    ("io.k8s.api.batch.v1.JobTemplateSpec", &JOB_TEMPLATE),
];

/// The shape of a definition by its name.
pub(super) fn definition(name: &str) -> Option<&'static Shape> {
    DEFINITIONS.iter().find(|(known, _)| *known == name).map(|(_, shape)| *shape)
}

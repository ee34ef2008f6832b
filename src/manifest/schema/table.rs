//! The fields of the kinds that podstead reads and all that they are made of, as Kubernetes 1.34 has them.
//!
//! Made from k8s-openapi's schema by `UPDATE=1 cargo test --test manifest schema`; a test compares it.
#![allow(missing_docs, reason = "the structures are documented by the Kubernetes API reference")]

use super::Type::{Any, Base64, Bool, Int32, Int64, IntOrString, List, Map, Object, Quantity, Str, Time};
use super::{Struct, o, r};

#[rustfmt::skip]
pub static AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE: Struct = Struct {
    name: "AWSElasticBlockStoreVolumeSource",
    fields: &[
        o("fsType", Str), o("partition", Int32), o("readOnly", Bool), r("volumeID", Str),
    ],
};

#[rustfmt::skip]
pub static AFFINITY: Struct = Struct {
    name: "Affinity",
    fields: &[
        o("nodeAffinity", Object(&NODE_AFFINITY)), o("podAffinity", Object(&POD_AFFINITY)),
        o("podAntiAffinity", Object(&POD_ANTI_AFFINITY)),
    ],
};

#[rustfmt::skip]
pub static APP_ARMOR_PROFILE: Struct = Struct {
    name: "AppArmorProfile",
    fields: &[
        o("localhostProfile", Str), r("type", Str),
    ],
};

#[rustfmt::skip]
pub static AZURE_DISK_VOLUME_SOURCE: Struct = Struct {
    name: "AzureDiskVolumeSource",
    fields: &[
        o("cachingMode", Str), r("diskName", Str), r("diskURI", Str), o("fsType", Str), o("kind", Str), o("readOnly", Bool),
    ],
};

#[rustfmt::skip]
pub static AZURE_FILE_VOLUME_SOURCE: Struct = Struct {
    name: "AzureFileVolumeSource",
    fields: &[
        o("readOnly", Bool), r("secretName", Str), r("shareName", Str),
    ],
};

#[rustfmt::skip]
pub static CSI_VOLUME_SOURCE: Struct = Struct {
    name: "CSIVolumeSource",
    fields: &[
        r("driver", Str), o("fsType", Str), o("nodePublishSecretRef", Object(&LOCAL_OBJECT_REFERENCE)), o("readOnly", Bool),
        o("volumeAttributes", Map(&Str)),
    ],
};

#[rustfmt::skip]
pub static CAPABILITIES: Struct = Struct {
    name: "Capabilities",
    fields: &[
        o("add", List(&Str)), o("drop", List(&Str)),
    ],
};

#[rustfmt::skip]
pub static CEPH_FS_VOLUME_SOURCE: Struct = Struct {
    name: "CephFSVolumeSource",
    fields: &[
        r("monitors", List(&Str)), o("path", Str), o("readOnly", Bool), o("secretFile", Str),
        o("secretRef", Object(&LOCAL_OBJECT_REFERENCE)), o("user", Str),
    ],
};

#[rustfmt::skip]
pub static CINDER_VOLUME_SOURCE: Struct = Struct {
    name: "CinderVolumeSource",
    fields: &[
        o("fsType", Str), o("readOnly", Bool), o("secretRef", Object(&LOCAL_OBJECT_REFERENCE)), r("volumeID", Str),
    ],
};

#[rustfmt::skip]
pub static CLIENT_IP_CONFIG: Struct = Struct {
    name: "ClientIPConfig",
    fields: &[
        o("timeoutSeconds", Int32),
    ],
};

#[rustfmt::skip]
pub static CLUSTER_TRUST_BUNDLE_PROJECTION: Struct = Struct {
    name: "ClusterTrustBundleProjection",
    fields: &[
        o("labelSelector", Object(&LABEL_SELECTOR)), o("name", Str), o("optional", Bool), r("path", Str),
        o("signerName", Str),
    ],
};

#[rustfmt::skip]
pub static CONDITION: Struct = Struct {
    name: "Condition",
    fields: &[
        r("lastTransitionTime", Time), r("message", Str), o("observedGeneration", Int64), r("reason", Str), r("status", Str),
        r("type", Str),
    ],
};

#[rustfmt::skip]
pub static CONFIG_MAP: Struct = Struct {
    name: "ConfigMap",
    fields: &[
        o("apiVersion", Str), o("binaryData", Map(&Base64)), o("data", Map(&Str)), o("immutable", Bool), o("kind", Str),
        r("metadata", Object(&OBJECT_META)),
    ],
};

#[rustfmt::skip]
pub static CONFIG_MAP_ENV_SOURCE: Struct = Struct {
    name: "ConfigMapEnvSource",
    fields: &[
        r("name", Str), o("optional", Bool),
    ],
};

#[rustfmt::skip]
pub static CONFIG_MAP_KEY_SELECTOR: Struct = Struct {
    name: "ConfigMapKeySelector",
    fields: &[
        r("key", Str), r("name", Str), o("optional", Bool),
    ],
};

#[rustfmt::skip]
pub static CONFIG_MAP_PROJECTION: Struct = Struct {
    name: "ConfigMapProjection",
    fields: &[
        o("items", List(&Object(&KEY_TO_PATH))), r("name", Str), o("optional", Bool),
    ],
};

#[rustfmt::skip]
pub static CONFIG_MAP_VOLUME_SOURCE: Struct = Struct {
    name: "ConfigMapVolumeSource",
    fields: &[
        o("defaultMode", Int32), o("items", List(&Object(&KEY_TO_PATH))), r("name", Str), o("optional", Bool),
    ],
};

#[rustfmt::skip]
pub static CONTAINER: Struct = Struct {
    name: "Container",
    fields: &[
        o("args", List(&Str)), o("command", List(&Str)), o("env", List(&Object(&ENV_VAR))),
        o("envFrom", List(&Object(&ENV_FROM_SOURCE))), o("image", Str), o("imagePullPolicy", Str),
        o("lifecycle", Object(&LIFECYCLE)), o("livenessProbe", Object(&PROBE)), r("name", Str),
        o("ports", List(&Object(&CONTAINER_PORT))), o("readinessProbe", Object(&PROBE)),
        o("resizePolicy", List(&Object(&CONTAINER_RESIZE_POLICY))), o("resources", Object(&RESOURCE_REQUIREMENTS)),
        o("restartPolicy", Str), o("restartPolicyRules", List(&Object(&CONTAINER_RESTART_RULE))),
        o("securityContext", Object(&SECURITY_CONTEXT)), o("startupProbe", Object(&PROBE)), o("stdin", Bool),
        o("stdinOnce", Bool), o("terminationMessagePath", Str), o("terminationMessagePolicy", Str), o("tty", Bool),
        o("volumeDevices", List(&Object(&VOLUME_DEVICE))), o("volumeMounts", List(&Object(&VOLUME_MOUNT))),
        o("workingDir", Str),
    ],
};

#[rustfmt::skip]
pub static CONTAINER_EXTENDED_RESOURCE_REQUEST: Struct = Struct {
    name: "ContainerExtendedResourceRequest",
    fields: &[
        r("containerName", Str), r("requestName", Str), r("resourceName", Str),
    ],
};

#[rustfmt::skip]
pub static CONTAINER_PORT: Struct = Struct {
    name: "ContainerPort",
    fields: &[
        r("containerPort", Int32), o("hostIP", Str), o("hostPort", Int32), o("name", Str), o("protocol", Str),
    ],
};

#[rustfmt::skip]
pub static CONTAINER_RESIZE_POLICY: Struct = Struct {
    name: "ContainerResizePolicy",
    fields: &[
        r("resourceName", Str), r("restartPolicy", Str),
    ],
};

#[rustfmt::skip]
pub static CONTAINER_RESTART_RULE: Struct = Struct {
    name: "ContainerRestartRule",
    fields: &[
        r("action", Str), o("exitCodes", Object(&CONTAINER_RESTART_RULE_ON_EXIT_CODES)),
    ],
};

#[rustfmt::skip]
pub static CONTAINER_RESTART_RULE_ON_EXIT_CODES: Struct = Struct {
    name: "ContainerRestartRuleOnExitCodes",
    fields: &[
        r("operator", Str), o("values", List(&Int32)),
    ],
};

#[rustfmt::skip]
pub static CONTAINER_STATE: Struct = Struct {
    name: "ContainerState",
    fields: &[
        o("running", Object(&CONTAINER_STATE_RUNNING)), o("terminated", Object(&CONTAINER_STATE_TERMINATED)),
        o("waiting", Object(&CONTAINER_STATE_WAITING)),
    ],
};

#[rustfmt::skip]
pub static CONTAINER_STATE_RUNNING: Struct = Struct {
    name: "ContainerStateRunning",
    fields: &[
        o("startedAt", Time),
    ],
};

#[rustfmt::skip]
pub static CONTAINER_STATE_TERMINATED: Struct = Struct {
    name: "ContainerStateTerminated",
    fields: &[
        o("containerID", Str), r("exitCode", Int32), o("finishedAt", Time), o("message", Str), o("reason", Str),
        o("signal", Int32), o("startedAt", Time),
    ],
};

#[rustfmt::skip]
pub static CONTAINER_STATE_WAITING: Struct = Struct {
    name: "ContainerStateWaiting",
    fields: &[
        o("message", Str), o("reason", Str),
    ],
};

#[rustfmt::skip]
pub static CONTAINER_STATUS: Struct = Struct {
    name: "ContainerStatus",
    fields: &[
        o("allocatedResources", Map(&Quantity)), o("allocatedResourcesStatus", List(&Object(&RESOURCE_STATUS))),
        o("containerID", Str), r("image", Str), r("imageID", Str), o("lastState", Object(&CONTAINER_STATE)), r("name", Str),
        r("ready", Bool), o("resources", Object(&RESOURCE_REQUIREMENTS)), r("restartCount", Int32), o("started", Bool),
        o("state", Object(&CONTAINER_STATE)), o("stopSignal", Str), o("user", Object(&CONTAINER_USER)),
        o("volumeMounts", List(&Object(&VOLUME_MOUNT_STATUS))),
    ],
};

#[rustfmt::skip]
pub static CONTAINER_USER: Struct = Struct {
    name: "ContainerUser",
    fields: &[
        o("linux", Object(&LINUX_CONTAINER_USER)),
    ],
};

#[rustfmt::skip]
pub static CRON_JOB: Struct = Struct {
    name: "CronJob",
    fields: &[
        o("apiVersion", Str), o("kind", Str), r("metadata", Object(&OBJECT_META)), o("spec", Object(&CRON_JOB_SPEC)),
        o("status", Object(&CRON_JOB_STATUS)),
    ],
};

#[rustfmt::skip]
pub static CRON_JOB_SPEC: Struct = Struct {
    name: "CronJobSpec",
    fields: &[
        o("concurrencyPolicy", Str), o("failedJobsHistoryLimit", Int32), r("jobTemplate", Object(&JOB_TEMPLATE_SPEC)),
        r("schedule", Str), o("startingDeadlineSeconds", Int64), o("successfulJobsHistoryLimit", Int32), o("suspend", Bool),
        o("timeZone", Str),
    ],
};

#[rustfmt::skip]
pub static CRON_JOB_STATUS: Struct = Struct {
    name: "CronJobStatus",
    fields: &[
        o("active", List(&Object(&OBJECT_REFERENCE))), o("lastScheduleTime", Time), o("lastSuccessfulTime", Time),
    ],
};

#[rustfmt::skip]
pub static DAEMON_SET: Struct = Struct {
    name: "DaemonSet",
    fields: &[
        o("apiVersion", Str), o("kind", Str), r("metadata", Object(&OBJECT_META)), o("spec", Object(&DAEMON_SET_SPEC)),
        o("status", Object(&DAEMON_SET_STATUS)),
    ],
};

#[rustfmt::skip]
pub static DAEMON_SET_CONDITION: Struct = Struct {
    name: "DaemonSetCondition",
    fields: &[
        o("lastTransitionTime", Time), o("message", Str), o("reason", Str), r("status", Str), r("type", Str),
    ],
};

#[rustfmt::skip]
pub static DAEMON_SET_SPEC: Struct = Struct {
    name: "DaemonSetSpec",
    fields: &[
        o("minReadySeconds", Int32), o("revisionHistoryLimit", Int32), r("selector", Object(&LABEL_SELECTOR)),
        r("template", Object(&POD_TEMPLATE_SPEC)), o("updateStrategy", Object(&DAEMON_SET_UPDATE_STRATEGY)),
    ],
};

#[rustfmt::skip]
pub static DAEMON_SET_STATUS: Struct = Struct {
    name: "DaemonSetStatus",
    fields: &[
        o("collisionCount", Int32), o("conditions", List(&Object(&DAEMON_SET_CONDITION))), r("currentNumberScheduled", Int32),
        r("desiredNumberScheduled", Int32), o("numberAvailable", Int32), r("numberMisscheduled", Int32),
        r("numberReady", Int32), o("numberUnavailable", Int32), o("observedGeneration", Int64),
        o("updatedNumberScheduled", Int32),
    ],
};

#[rustfmt::skip]
pub static DAEMON_SET_UPDATE_STRATEGY: Struct = Struct {
    name: "DaemonSetUpdateStrategy",
    fields: &[
        o("rollingUpdate", Object(&ROLLING_UPDATE_DAEMON_SET)), o("type", Str),
    ],
};

#[rustfmt::skip]
pub static DELETE_OPTIONS: Struct = Struct {
    name: "DeleteOptions",
    fields: &[
        o("apiVersion", Str), o("dryRun", List(&Str)), o("gracePeriodSeconds", Int64),
        o("ignoreStoreReadErrorWithClusterBreakingPotential", Bool), o("kind", Str), o("orphanDependents", Bool),
        o("preconditions", Object(&PRECONDITIONS)), o("propagationPolicy", Str),
    ],
};

#[rustfmt::skip]
pub static DEPLOYMENT: Struct = Struct {
    name: "Deployment",
    fields: &[
        o("apiVersion", Str), o("kind", Str), r("metadata", Object(&OBJECT_META)), o("spec", Object(&DEPLOYMENT_SPEC)),
        o("status", Object(&DEPLOYMENT_STATUS)),
    ],
};

#[rustfmt::skip]
pub static DEPLOYMENT_CONDITION: Struct = Struct {
    name: "DeploymentCondition",
    fields: &[
        o("lastTransitionTime", Time), o("lastUpdateTime", Time), o("message", Str), o("reason", Str), r("status", Str),
        r("type", Str),
    ],
};

#[rustfmt::skip]
pub static DEPLOYMENT_SPEC: Struct = Struct {
    name: "DeploymentSpec",
    fields: &[
        o("minReadySeconds", Int32), o("paused", Bool), o("progressDeadlineSeconds", Int32), o("replicas", Int32),
        o("revisionHistoryLimit", Int32), r("selector", Object(&LABEL_SELECTOR)), o("strategy", Object(&DEPLOYMENT_STRATEGY)),
        r("template", Object(&POD_TEMPLATE_SPEC)),
    ],
};

#[rustfmt::skip]
pub static DEPLOYMENT_STATUS: Struct = Struct {
    name: "DeploymentStatus",
    fields: &[
        o("availableReplicas", Int32), o("collisionCount", Int32), o("conditions", List(&Object(&DEPLOYMENT_CONDITION))),
        o("observedGeneration", Int64), o("readyReplicas", Int32), o("replicas", Int32), o("terminatingReplicas", Int32),
        o("unavailableReplicas", Int32), o("updatedReplicas", Int32),
    ],
};

#[rustfmt::skip]
pub static DEPLOYMENT_STRATEGY: Struct = Struct {
    name: "DeploymentStrategy",
    fields: &[
        o("rollingUpdate", Object(&ROLLING_UPDATE_DEPLOYMENT)), o("type", Str),
    ],
};

#[rustfmt::skip]
pub static DOWNWARD_API_PROJECTION: Struct = Struct {
    name: "DownwardAPIProjection",
    fields: &[
        o("items", List(&Object(&DOWNWARD_API_VOLUME_FILE))),
    ],
};

#[rustfmt::skip]
pub static DOWNWARD_API_VOLUME_FILE: Struct = Struct {
    name: "DownwardAPIVolumeFile",
    fields: &[
        o("fieldRef", Object(&OBJECT_FIELD_SELECTOR)), o("mode", Int32), r("path", Str),
        o("resourceFieldRef", Object(&RESOURCE_FIELD_SELECTOR)),
    ],
};

#[rustfmt::skip]
pub static DOWNWARD_API_VOLUME_SOURCE: Struct = Struct {
    name: "DownwardAPIVolumeSource",
    fields: &[
        o("defaultMode", Int32), o("items", List(&Object(&DOWNWARD_API_VOLUME_FILE))),
    ],
};

#[rustfmt::skip]
pub static EMPTY_DIR_VOLUME_SOURCE: Struct = Struct {
    name: "EmptyDirVolumeSource",
    fields: &[
        o("medium", Str), o("sizeLimit", Quantity),
    ],
};

#[rustfmt::skip]
pub static ENDPOINT: Struct = Struct {
    name: "Endpoint",
    fields: &[
        r("addresses", List(&Str)), o("conditions", Object(&ENDPOINT_CONDITIONS)), o("deprecatedTopology", Map(&Str)),
        o("hints", Object(&ENDPOINT_HINTS)), o("hostname", Str), o("nodeName", Str),
        o("targetRef", Object(&OBJECT_REFERENCE)), o("zone", Str),
    ],
};

#[rustfmt::skip]
pub static ENDPOINT_CONDITIONS: Struct = Struct {
    name: "EndpointConditions",
    fields: &[
        o("ready", Bool), o("serving", Bool), o("terminating", Bool),
    ],
};

#[rustfmt::skip]
pub static ENDPOINT_HINTS: Struct = Struct {
    name: "EndpointHints",
    fields: &[
        o("forNodes", List(&Object(&FOR_NODE))), o("forZones", List(&Object(&FOR_ZONE))),
    ],
};

#[rustfmt::skip]
pub static ENDPOINT_PORT: Struct = Struct {
    name: "EndpointPort",
    fields: &[
        o("appProtocol", Str), o("name", Str), o("port", Int32), o("protocol", Str),
    ],
};

#[rustfmt::skip]
pub static ENDPOINT_SLICE: Struct = Struct {
    name: "EndpointSlice",
    fields: &[
        r("addressType", Str), o("apiVersion", Str), r("endpoints", List(&Object(&ENDPOINT))), o("kind", Str),
        r("metadata", Object(&OBJECT_META)), o("ports", List(&Object(&ENDPOINT_PORT))),
    ],
};

#[rustfmt::skip]
pub static ENV_FROM_SOURCE: Struct = Struct {
    name: "EnvFromSource",
    fields: &[
        o("configMapRef", Object(&CONFIG_MAP_ENV_SOURCE)), o("prefix", Str), o("secretRef", Object(&SECRET_ENV_SOURCE)),
    ],
};

#[rustfmt::skip]
pub static ENV_VAR: Struct = Struct {
    name: "EnvVar",
    fields: &[
        r("name", Str), o("value", Str), o("valueFrom", Object(&ENV_VAR_SOURCE)),
    ],
};

#[rustfmt::skip]
pub static ENV_VAR_SOURCE: Struct = Struct {
    name: "EnvVarSource",
    fields: &[
        o("configMapKeyRef", Object(&CONFIG_MAP_KEY_SELECTOR)), o("fieldRef", Object(&OBJECT_FIELD_SELECTOR)),
        o("fileKeyRef", Object(&FILE_KEY_SELECTOR)), o("resourceFieldRef", Object(&RESOURCE_FIELD_SELECTOR)),
        o("secretKeyRef", Object(&SECRET_KEY_SELECTOR)),
    ],
};

#[rustfmt::skip]
pub static EPHEMERAL_CONTAINER: Struct = Struct {
    name: "EphemeralContainer",
    fields: &[
        o("args", List(&Str)), o("command", List(&Str)), o("env", List(&Object(&ENV_VAR))),
        o("envFrom", List(&Object(&ENV_FROM_SOURCE))), o("image", Str), o("imagePullPolicy", Str),
        o("lifecycle", Object(&LIFECYCLE)), o("livenessProbe", Object(&PROBE)), r("name", Str),
        o("ports", List(&Object(&CONTAINER_PORT))), o("readinessProbe", Object(&PROBE)),
        o("resizePolicy", List(&Object(&CONTAINER_RESIZE_POLICY))), o("resources", Object(&RESOURCE_REQUIREMENTS)),
        o("restartPolicy", Str), o("restartPolicyRules", List(&Object(&CONTAINER_RESTART_RULE))),
        o("securityContext", Object(&SECURITY_CONTEXT)), o("startupProbe", Object(&PROBE)), o("stdin", Bool),
        o("stdinOnce", Bool), o("targetContainerName", Str), o("terminationMessagePath", Str),
        o("terminationMessagePolicy", Str), o("tty", Bool), o("volumeDevices", List(&Object(&VOLUME_DEVICE))),
        o("volumeMounts", List(&Object(&VOLUME_MOUNT))), o("workingDir", Str),
    ],
};

#[rustfmt::skip]
pub static EPHEMERAL_VOLUME_SOURCE: Struct = Struct {
    name: "EphemeralVolumeSource",
    fields: &[
        o("volumeClaimTemplate", Object(&PERSISTENT_VOLUME_CLAIM_TEMPLATE)),
    ],
};

#[rustfmt::skip]
pub static EVICTION: Struct = Struct {
    name: "Eviction",
    fields: &[
        o("apiVersion", Str), o("deleteOptions", Object(&DELETE_OPTIONS)), o("kind", Str),
        r("metadata", Object(&OBJECT_META)),
    ],
};

#[rustfmt::skip]
pub static EXEC_ACTION: Struct = Struct {
    name: "ExecAction",
    fields: &[
        o("command", List(&Str)),
    ],
};

#[rustfmt::skip]
pub static FC_VOLUME_SOURCE: Struct = Struct {
    name: "FCVolumeSource",
    fields: &[
        o("fsType", Str), o("lun", Int32), o("readOnly", Bool), o("targetWWNs", List(&Str)), o("wwids", List(&Str)),
    ],
};

#[rustfmt::skip]
pub static FIELD_SELECTOR_ATTRIBUTES: Struct = Struct {
    name: "FieldSelectorAttributes",
    fields: &[
        o("rawSelector", Str), o("requirements", List(&Object(&FIELD_SELECTOR_REQUIREMENT))),
    ],
};

#[rustfmt::skip]
pub static FIELD_SELECTOR_REQUIREMENT: Struct = Struct {
    name: "FieldSelectorRequirement",
    fields: &[
        r("key", Str), r("operator", Str), o("values", List(&Str)),
    ],
};

#[rustfmt::skip]
pub static FILE_KEY_SELECTOR: Struct = Struct {
    name: "FileKeySelector",
    fields: &[
        r("key", Str), o("optional", Bool), r("path", Str), r("volumeName", Str),
    ],
};

#[rustfmt::skip]
pub static FLEX_VOLUME_SOURCE: Struct = Struct {
    name: "FlexVolumeSource",
    fields: &[
        r("driver", Str), o("fsType", Str), o("options", Map(&Str)), o("readOnly", Bool),
        o("secretRef", Object(&LOCAL_OBJECT_REFERENCE)),
    ],
};

#[rustfmt::skip]
pub static FLOCKER_VOLUME_SOURCE: Struct = Struct {
    name: "FlockerVolumeSource",
    fields: &[
        o("datasetName", Str), o("datasetUUID", Str),
    ],
};

#[rustfmt::skip]
pub static FOR_NODE: Struct = Struct {
    name: "ForNode",
    fields: &[
        r("name", Str),
    ],
};

#[rustfmt::skip]
pub static FOR_ZONE: Struct = Struct {
    name: "ForZone",
    fields: &[
        r("name", Str),
    ],
};

#[rustfmt::skip]
pub static GCE_PERSISTENT_DISK_VOLUME_SOURCE: Struct = Struct {
    name: "GCEPersistentDiskVolumeSource",
    fields: &[
        o("fsType", Str), o("partition", Int32), r("pdName", Str), o("readOnly", Bool),
    ],
};

#[rustfmt::skip]
pub static GRPC_ACTION: Struct = Struct {
    name: "GRPCAction",
    fields: &[
        r("port", Int32), o("service", Str),
    ],
};

#[rustfmt::skip]
pub static GIT_REPO_VOLUME_SOURCE: Struct = Struct {
    name: "GitRepoVolumeSource",
    fields: &[
        o("directory", Str), r("repository", Str), o("revision", Str),
    ],
};

#[rustfmt::skip]
pub static GLUSTERFS_VOLUME_SOURCE: Struct = Struct {
    name: "GlusterfsVolumeSource",
    fields: &[
        r("endpoints", Str), r("path", Str), o("readOnly", Bool),
    ],
};

#[rustfmt::skip]
pub static HTTP_GET_ACTION: Struct = Struct {
    name: "HTTPGetAction",
    fields: &[
        o("host", Str), o("httpHeaders", List(&Object(&HTTP_HEADER))), o("path", Str), r("port", IntOrString),
        o("scheme", Str),
    ],
};

#[rustfmt::skip]
pub static HTTP_HEADER: Struct = Struct {
    name: "HTTPHeader",
    fields: &[
        r("name", Str), r("value", Str),
    ],
};

#[rustfmt::skip]
pub static HOST_ALIAS: Struct = Struct {
    name: "HostAlias",
    fields: &[
        o("hostnames", List(&Str)), r("ip", Str),
    ],
};

#[rustfmt::skip]
pub static HOST_IP: Struct = Struct {
    name: "HostIP",
    fields: &[
        r("ip", Str),
    ],
};

#[rustfmt::skip]
pub static HOST_PATH_VOLUME_SOURCE: Struct = Struct {
    name: "HostPathVolumeSource",
    fields: &[
        r("path", Str), o("type", Str),
    ],
};

#[rustfmt::skip]
pub static IP_BLOCK: Struct = Struct {
    name: "IPBlock",
    fields: &[
        r("cidr", Str), o("except", List(&Str)),
    ],
};

#[rustfmt::skip]
pub static ISCSI_VOLUME_SOURCE: Struct = Struct {
    name: "ISCSIVolumeSource",
    fields: &[
        o("chapAuthDiscovery", Bool), o("chapAuthSession", Bool), o("fsType", Str), o("initiatorName", Str), r("iqn", Str),
        o("iscsiInterface", Str), r("lun", Int32), o("portals", List(&Str)), o("readOnly", Bool),
        o("secretRef", Object(&LOCAL_OBJECT_REFERENCE)), r("targetPortal", Str),
    ],
};

#[rustfmt::skip]
pub static IMAGE_VOLUME_SOURCE: Struct = Struct {
    name: "ImageVolumeSource",
    fields: &[
        o("pullPolicy", Str), o("reference", Str),
    ],
};

#[rustfmt::skip]
pub static JOB: Struct = Struct {
    name: "Job",
    fields: &[
        o("apiVersion", Str), o("kind", Str), r("metadata", Object(&OBJECT_META)), o("spec", Object(&JOB_SPEC)),
        o("status", Object(&JOB_STATUS)),
    ],
};

#[rustfmt::skip]
pub static JOB_CONDITION: Struct = Struct {
    name: "JobCondition",
    fields: &[
        o("lastProbeTime", Time), o("lastTransitionTime", Time), o("message", Str), o("reason", Str), r("status", Str),
        r("type", Str),
    ],
};

#[rustfmt::skip]
pub static JOB_SPEC: Struct = Struct {
    name: "JobSpec",
    fields: &[
        o("activeDeadlineSeconds", Int64), o("backoffLimit", Int32), o("backoffLimitPerIndex", Int32),
        o("completionMode", Str), o("completions", Int32), o("managedBy", Str), o("manualSelector", Bool),
        o("maxFailedIndexes", Int32), o("parallelism", Int32), o("podFailurePolicy", Object(&POD_FAILURE_POLICY)),
        o("podReplacementPolicy", Str), o("selector", Object(&LABEL_SELECTOR)), o("successPolicy", Object(&SUCCESS_POLICY)),
        o("suspend", Bool), r("template", Object(&POD_TEMPLATE_SPEC)), o("ttlSecondsAfterFinished", Int32),
    ],
};

#[rustfmt::skip]
pub static JOB_STATUS: Struct = Struct {
    name: "JobStatus",
    fields: &[
        o("active", Int32), o("completedIndexes", Str), o("completionTime", Time),
        o("conditions", List(&Object(&JOB_CONDITION))), o("failed", Int32), o("failedIndexes", Str), o("ready", Int32),
        o("startTime", Time), o("succeeded", Int32), o("terminating", Int32),
        o("uncountedTerminatedPods", Object(&UNCOUNTED_TERMINATED_PODS)),
    ],
};

#[rustfmt::skip]
pub static JOB_TEMPLATE_SPEC: Struct = Struct {
    name: "JobTemplateSpec",
    fields: &[
        o("metadata", Object(&OBJECT_META)), o("spec", Object(&JOB_SPEC)),
    ],
};

#[rustfmt::skip]
pub static KEY_TO_PATH: Struct = Struct {
    name: "KeyToPath",
    fields: &[
        r("key", Str), o("mode", Int32), r("path", Str),
    ],
};

#[rustfmt::skip]
pub static LABEL_SELECTOR: Struct = Struct {
    name: "LabelSelector",
    fields: &[
        o("matchExpressions", List(&Object(&LABEL_SELECTOR_REQUIREMENT))), o("matchLabels", Map(&Str)),
    ],
};

#[rustfmt::skip]
pub static LABEL_SELECTOR_ATTRIBUTES: Struct = Struct {
    name: "LabelSelectorAttributes",
    fields: &[
        o("rawSelector", Str), o("requirements", List(&Object(&LABEL_SELECTOR_REQUIREMENT))),
    ],
};

#[rustfmt::skip]
pub static LABEL_SELECTOR_REQUIREMENT: Struct = Struct {
    name: "LabelSelectorRequirement",
    fields: &[
        r("key", Str), r("operator", Str), o("values", List(&Str)),
    ],
};

#[rustfmt::skip]
pub static LIFECYCLE: Struct = Struct {
    name: "Lifecycle",
    fields: &[
        o("postStart", Object(&LIFECYCLE_HANDLER)), o("preStop", Object(&LIFECYCLE_HANDLER)), o("stopSignal", Str),
    ],
};

#[rustfmt::skip]
pub static LIFECYCLE_HANDLER: Struct = Struct {
    name: "LifecycleHandler",
    fields: &[
        o("exec", Object(&EXEC_ACTION)), o("httpGet", Object(&HTTP_GET_ACTION)), o("sleep", Object(&SLEEP_ACTION)),
        o("tcpSocket", Object(&TCP_SOCKET_ACTION)),
    ],
};

#[rustfmt::skip]
pub static LINUX_CONTAINER_USER: Struct = Struct {
    name: "LinuxContainerUser",
    fields: &[
        r("gid", Int64), o("supplementalGroups", List(&Int64)), r("uid", Int64),
    ],
};

#[rustfmt::skip]
pub static LOAD_BALANCER_INGRESS: Struct = Struct {
    name: "LoadBalancerIngress",
    fields: &[
        o("hostname", Str), o("ip", Str), o("ipMode", Str), o("ports", List(&Object(&PORT_STATUS))),
    ],
};

#[rustfmt::skip]
pub static LOAD_BALANCER_STATUS: Struct = Struct {
    name: "LoadBalancerStatus",
    fields: &[
        o("ingress", List(&Object(&LOAD_BALANCER_INGRESS))),
    ],
};

#[rustfmt::skip]
pub static LOCAL_OBJECT_REFERENCE: Struct = Struct {
    name: "LocalObjectReference",
    fields: &[
        r("name", Str),
    ],
};

#[rustfmt::skip]
pub static MANAGED_FIELDS_ENTRY: Struct = Struct {
    name: "ManagedFieldsEntry",
    fields: &[
        o("apiVersion", Str), o("fieldsType", Str), o("fieldsV1", Any), o("manager", Str), o("operation", Str),
        o("subresource", Str), o("time", Time),
    ],
};

#[rustfmt::skip]
pub static MODIFY_VOLUME_STATUS: Struct = Struct {
    name: "ModifyVolumeStatus",
    fields: &[
        r("status", Str), o("targetVolumeAttributesClassName", Str),
    ],
};

#[rustfmt::skip]
pub static NFS_VOLUME_SOURCE: Struct = Struct {
    name: "NFSVolumeSource",
    fields: &[
        r("path", Str), o("readOnly", Bool), r("server", Str),
    ],
};

#[rustfmt::skip]
pub static NAMESPACE: Struct = Struct {
    name: "Namespace",
    fields: &[
        o("apiVersion", Str), o("kind", Str), r("metadata", Object(&OBJECT_META)), o("spec", Object(&NAMESPACE_SPEC)),
        o("status", Object(&NAMESPACE_STATUS)),
    ],
};

#[rustfmt::skip]
pub static NAMESPACE_CONDITION: Struct = Struct {
    name: "NamespaceCondition",
    fields: &[
        o("lastTransitionTime", Time), o("message", Str), o("reason", Str), r("status", Str), r("type", Str),
    ],
};

#[rustfmt::skip]
pub static NAMESPACE_SPEC: Struct = Struct {
    name: "NamespaceSpec",
    fields: &[
        o("finalizers", List(&Str)),
    ],
};

#[rustfmt::skip]
pub static NAMESPACE_STATUS: Struct = Struct {
    name: "NamespaceStatus",
    fields: &[
        o("conditions", List(&Object(&NAMESPACE_CONDITION))), o("phase", Str),
    ],
};

#[rustfmt::skip]
pub static NETWORK_POLICY: Struct = Struct {
    name: "NetworkPolicy",
    fields: &[
        o("apiVersion", Str), o("kind", Str), r("metadata", Object(&OBJECT_META)), o("spec", Object(&NETWORK_POLICY_SPEC)),
    ],
};

#[rustfmt::skip]
pub static NETWORK_POLICY_EGRESS_RULE: Struct = Struct {
    name: "NetworkPolicyEgressRule",
    fields: &[
        o("ports", List(&Object(&NETWORK_POLICY_PORT))), o("to", List(&Object(&NETWORK_POLICY_PEER))),
    ],
};

#[rustfmt::skip]
pub static NETWORK_POLICY_INGRESS_RULE: Struct = Struct {
    name: "NetworkPolicyIngressRule",
    fields: &[
        o("from", List(&Object(&NETWORK_POLICY_PEER))), o("ports", List(&Object(&NETWORK_POLICY_PORT))),
    ],
};

#[rustfmt::skip]
pub static NETWORK_POLICY_PEER: Struct = Struct {
    name: "NetworkPolicyPeer",
    fields: &[
        o("ipBlock", Object(&IP_BLOCK)), o("namespaceSelector", Object(&LABEL_SELECTOR)),
        o("podSelector", Object(&LABEL_SELECTOR)),
    ],
};

#[rustfmt::skip]
pub static NETWORK_POLICY_PORT: Struct = Struct {
    name: "NetworkPolicyPort",
    fields: &[
        o("endPort", Int32), o("port", IntOrString), o("protocol", Str),
    ],
};

#[rustfmt::skip]
pub static NETWORK_POLICY_SPEC: Struct = Struct {
    name: "NetworkPolicySpec",
    fields: &[
        o("egress", List(&Object(&NETWORK_POLICY_EGRESS_RULE))), o("ingress", List(&Object(&NETWORK_POLICY_INGRESS_RULE))),
        o("podSelector", Object(&LABEL_SELECTOR)), o("policyTypes", List(&Str)),
    ],
};

#[rustfmt::skip]
pub static NODE_AFFINITY: Struct = Struct {
    name: "NodeAffinity",
    fields: &[
        o("preferredDuringSchedulingIgnoredDuringExecution", List(&Object(&PREFERRED_SCHEDULING_TERM))),
        o("requiredDuringSchedulingIgnoredDuringExecution", Object(&NODE_SELECTOR)),
    ],
};

#[rustfmt::skip]
pub static NODE_SELECTOR: Struct = Struct {
    name: "NodeSelector",
    fields: &[
        r("nodeSelectorTerms", List(&Object(&NODE_SELECTOR_TERM))),
    ],
};

#[rustfmt::skip]
pub static NODE_SELECTOR_REQUIREMENT: Struct = Struct {
    name: "NodeSelectorRequirement",
    fields: &[
        r("key", Str), r("operator", Str), o("values", List(&Str)),
    ],
};

#[rustfmt::skip]
pub static NODE_SELECTOR_TERM: Struct = Struct {
    name: "NodeSelectorTerm",
    fields: &[
        o("matchExpressions", List(&Object(&NODE_SELECTOR_REQUIREMENT))),
        o("matchFields", List(&Object(&NODE_SELECTOR_REQUIREMENT))),
    ],
};

#[rustfmt::skip]
pub static NON_RESOURCE_ATTRIBUTES: Struct = Struct {
    name: "NonResourceAttributes",
    fields: &[
        o("path", Str), o("verb", Str),
    ],
};

#[rustfmt::skip]
pub static NON_RESOURCE_RULE: Struct = Struct {
    name: "NonResourceRule",
    fields: &[
        o("nonResourceURLs", List(&Str)), r("verbs", List(&Str)),
    ],
};

#[rustfmt::skip]
pub static OBJECT_FIELD_SELECTOR: Struct = Struct {
    name: "ObjectFieldSelector",
    fields: &[
        o("apiVersion", Str), r("fieldPath", Str),
    ],
};

#[rustfmt::skip]
pub static OBJECT_META: Struct = Struct {
    name: "ObjectMeta",
    fields: &[
        o("annotations", Map(&Str)), o("creationTimestamp", Time), o("deletionGracePeriodSeconds", Int64),
        o("deletionTimestamp", Time), o("finalizers", List(&Str)), o("generateName", Str), o("generation", Int64),
        o("labels", Map(&Str)), o("managedFields", List(&Object(&MANAGED_FIELDS_ENTRY))), o("name", Str), o("namespace", Str),
        o("ownerReferences", List(&Object(&OWNER_REFERENCE))), o("resourceVersion", Str), o("selfLink", Str), o("uid", Str),
    ],
};

#[rustfmt::skip]
pub static OBJECT_REFERENCE: Struct = Struct {
    name: "ObjectReference",
    fields: &[
        o("apiVersion", Str), o("fieldPath", Str), o("kind", Str), o("name", Str), o("namespace", Str),
        o("resourceVersion", Str), o("uid", Str),
    ],
};

#[rustfmt::skip]
pub static OWNER_REFERENCE: Struct = Struct {
    name: "OwnerReference",
    fields: &[
        r("apiVersion", Str), o("blockOwnerDeletion", Bool), o("controller", Bool), r("kind", Str), r("name", Str),
        r("uid", Str),
    ],
};

#[rustfmt::skip]
pub static PERSISTENT_VOLUME_CLAIM: Struct = Struct {
    name: "PersistentVolumeClaim",
    fields: &[
        o("apiVersion", Str), o("kind", Str), r("metadata", Object(&OBJECT_META)),
        o("spec", Object(&PERSISTENT_VOLUME_CLAIM_SPEC)), o("status", Object(&PERSISTENT_VOLUME_CLAIM_STATUS)),
    ],
};

#[rustfmt::skip]
pub static PERSISTENT_VOLUME_CLAIM_CONDITION: Struct = Struct {
    name: "PersistentVolumeClaimCondition",
    fields: &[
        o("lastProbeTime", Time), o("lastTransitionTime", Time), o("message", Str), o("reason", Str), r("status", Str),
        r("type", Str),
    ],
};

#[rustfmt::skip]
pub static PERSISTENT_VOLUME_CLAIM_SPEC: Struct = Struct {
    name: "PersistentVolumeClaimSpec",
    fields: &[
        o("accessModes", List(&Str)), o("dataSource", Object(&TYPED_LOCAL_OBJECT_REFERENCE)),
        o("dataSourceRef", Object(&TYPED_OBJECT_REFERENCE)), o("resources", Object(&VOLUME_RESOURCE_REQUIREMENTS)),
        o("selector", Object(&LABEL_SELECTOR)), o("storageClassName", Str), o("volumeAttributesClassName", Str),
        o("volumeMode", Str), o("volumeName", Str),
    ],
};

#[rustfmt::skip]
pub static PERSISTENT_VOLUME_CLAIM_STATUS: Struct = Struct {
    name: "PersistentVolumeClaimStatus",
    fields: &[
        o("accessModes", List(&Str)), o("allocatedResourceStatuses", Map(&Str)), o("allocatedResources", Map(&Quantity)),
        o("capacity", Map(&Quantity)), o("conditions", List(&Object(&PERSISTENT_VOLUME_CLAIM_CONDITION))),
        o("currentVolumeAttributesClassName", Str), o("modifyVolumeStatus", Object(&MODIFY_VOLUME_STATUS)), o("phase", Str),
    ],
};

#[rustfmt::skip]
pub static PERSISTENT_VOLUME_CLAIM_TEMPLATE: Struct = Struct {
    name: "PersistentVolumeClaimTemplate",
    fields: &[
        o("metadata", Object(&OBJECT_META)), r("spec", Object(&PERSISTENT_VOLUME_CLAIM_SPEC)),
    ],
};

#[rustfmt::skip]
pub static PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE: Struct = Struct {
    name: "PersistentVolumeClaimVolumeSource",
    fields: &[
        r("claimName", Str), o("readOnly", Bool),
    ],
};

#[rustfmt::skip]
pub static PHOTON_PERSISTENT_DISK_VOLUME_SOURCE: Struct = Struct {
    name: "PhotonPersistentDiskVolumeSource",
    fields: &[
        o("fsType", Str), r("pdID", Str),
    ],
};

#[rustfmt::skip]
pub static POD: Struct = Struct {
    name: "Pod",
    fields: &[
        o("apiVersion", Str), o("kind", Str), r("metadata", Object(&OBJECT_META)), o("spec", Object(&POD_SPEC)),
        o("status", Object(&POD_STATUS)),
    ],
};

#[rustfmt::skip]
pub static POD_AFFINITY: Struct = Struct {
    name: "PodAffinity",
    fields: &[
        o("preferredDuringSchedulingIgnoredDuringExecution", List(&Object(&WEIGHTED_POD_AFFINITY_TERM))),
        o("requiredDuringSchedulingIgnoredDuringExecution", List(&Object(&POD_AFFINITY_TERM))),
    ],
};

#[rustfmt::skip]
pub static POD_AFFINITY_TERM: Struct = Struct {
    name: "PodAffinityTerm",
    fields: &[
        o("labelSelector", Object(&LABEL_SELECTOR)), o("matchLabelKeys", List(&Str)), o("mismatchLabelKeys", List(&Str)),
        o("namespaceSelector", Object(&LABEL_SELECTOR)), o("namespaces", List(&Str)), r("topologyKey", Str),
    ],
};

#[rustfmt::skip]
pub static POD_ANTI_AFFINITY: Struct = Struct {
    name: "PodAntiAffinity",
    fields: &[
        o("preferredDuringSchedulingIgnoredDuringExecution", List(&Object(&WEIGHTED_POD_AFFINITY_TERM))),
        o("requiredDuringSchedulingIgnoredDuringExecution", List(&Object(&POD_AFFINITY_TERM))),
    ],
};

#[rustfmt::skip]
pub static POD_CERTIFICATE_PROJECTION: Struct = Struct {
    name: "PodCertificateProjection",
    fields: &[
        o("certificateChainPath", Str), o("credentialBundlePath", Str), o("keyPath", Str), r("keyType", Str),
        o("maxExpirationSeconds", Int32), r("signerName", Str),
    ],
};

#[rustfmt::skip]
pub static POD_CONDITION: Struct = Struct {
    name: "PodCondition",
    fields: &[
        o("lastProbeTime", Time), o("lastTransitionTime", Time), o("message", Str), o("observedGeneration", Int64),
        o("reason", Str), r("status", Str), r("type", Str),
    ],
};

#[rustfmt::skip]
pub static POD_DNS_CONFIG: Struct = Struct {
    name: "PodDNSConfig",
    fields: &[
        o("nameservers", List(&Str)), o("options", List(&Object(&POD_DNS_CONFIG_OPTION))), o("searches", List(&Str)),
    ],
};

#[rustfmt::skip]
pub static POD_DNS_CONFIG_OPTION: Struct = Struct {
    name: "PodDNSConfigOption",
    fields: &[
        o("name", Str), o("value", Str),
    ],
};

#[rustfmt::skip]
pub static POD_EXTENDED_RESOURCE_CLAIM_STATUS: Struct = Struct {
    name: "PodExtendedResourceClaimStatus",
    fields: &[
        r("requestMappings", List(&Object(&CONTAINER_EXTENDED_RESOURCE_REQUEST))), r("resourceClaimName", Str),
    ],
};

#[rustfmt::skip]
pub static POD_FAILURE_POLICY: Struct = Struct {
    name: "PodFailurePolicy",
    fields: &[
        r("rules", List(&Object(&POD_FAILURE_POLICY_RULE))),
    ],
};

#[rustfmt::skip]
pub static POD_FAILURE_POLICY_ON_EXIT_CODES_REQUIREMENT: Struct = Struct {
    name: "PodFailurePolicyOnExitCodesRequirement",
    fields: &[
        o("containerName", Str), r("operator", Str), r("values", List(&Int32)),
    ],
};

#[rustfmt::skip]
pub static POD_FAILURE_POLICY_ON_POD_CONDITIONS_PATTERN: Struct = Struct {
    name: "PodFailurePolicyOnPodConditionsPattern",
    fields: &[
        o("status", Str), r("type", Str),
    ],
};

#[rustfmt::skip]
pub static POD_FAILURE_POLICY_RULE: Struct = Struct {
    name: "PodFailurePolicyRule",
    fields: &[
        r("action", Str), o("onExitCodes", Object(&POD_FAILURE_POLICY_ON_EXIT_CODES_REQUIREMENT)),
        o("onPodConditions", List(&Object(&POD_FAILURE_POLICY_ON_POD_CONDITIONS_PATTERN))),
    ],
};

#[rustfmt::skip]
pub static POD_IP: Struct = Struct {
    name: "PodIP",
    fields: &[
        r("ip", Str),
    ],
};

#[rustfmt::skip]
pub static POD_OS: Struct = Struct {
    name: "PodOS",
    fields: &[
        r("name", Str),
    ],
};

#[rustfmt::skip]
pub static POD_READINESS_GATE: Struct = Struct {
    name: "PodReadinessGate",
    fields: &[
        r("conditionType", Str),
    ],
};

#[rustfmt::skip]
pub static POD_RESOURCE_CLAIM: Struct = Struct {
    name: "PodResourceClaim",
    fields: &[
        r("name", Str), o("resourceClaimName", Str), o("resourceClaimTemplateName", Str),
    ],
};

#[rustfmt::skip]
pub static POD_RESOURCE_CLAIM_STATUS: Struct = Struct {
    name: "PodResourceClaimStatus",
    fields: &[
        r("name", Str), o("resourceClaimName", Str),
    ],
};

#[rustfmt::skip]
pub static POD_SCHEDULING_GATE: Struct = Struct {
    name: "PodSchedulingGate",
    fields: &[
        r("name", Str),
    ],
};

#[rustfmt::skip]
pub static POD_SECURITY_CONTEXT: Struct = Struct {
    name: "PodSecurityContext",
    fields: &[
        o("appArmorProfile", Object(&APP_ARMOR_PROFILE)), o("fsGroup", Int64), o("fsGroupChangePolicy", Str),
        o("runAsGroup", Int64), o("runAsNonRoot", Bool), o("runAsUser", Int64), o("seLinuxChangePolicy", Str),
        o("seLinuxOptions", Object(&SE_LINUX_OPTIONS)), o("seccompProfile", Object(&SECCOMP_PROFILE)),
        o("supplementalGroups", List(&Int64)), o("supplementalGroupsPolicy", Str), o("sysctls", List(&Object(&SYSCTL))),
        o("windowsOptions", Object(&WINDOWS_SECURITY_CONTEXT_OPTIONS)),
    ],
};

#[rustfmt::skip]
pub static POD_SPEC: Struct = Struct {
    name: "PodSpec",
    fields: &[
        o("activeDeadlineSeconds", Int64), o("affinity", Object(&AFFINITY)), o("automountServiceAccountToken", Bool),
        r("containers", List(&Object(&CONTAINER))), o("dnsConfig", Object(&POD_DNS_CONFIG)), o("dnsPolicy", Str),
        o("enableServiceLinks", Bool), o("ephemeralContainers", List(&Object(&EPHEMERAL_CONTAINER))),
        o("hostAliases", List(&Object(&HOST_ALIAS))), o("hostIPC", Bool), o("hostNetwork", Bool), o("hostPID", Bool),
        o("hostUsers", Bool), o("hostname", Str), o("hostnameOverride", Str),
        o("imagePullSecrets", List(&Object(&LOCAL_OBJECT_REFERENCE))), o("initContainers", List(&Object(&CONTAINER))),
        o("nodeName", Str), o("nodeSelector", Map(&Str)), o("os", Object(&POD_OS)), o("overhead", Map(&Quantity)),
        o("preemptionPolicy", Str), o("priority", Int32), o("priorityClassName", Str),
        o("readinessGates", List(&Object(&POD_READINESS_GATE))), o("resourceClaims", List(&Object(&POD_RESOURCE_CLAIM))),
        o("resources", Object(&RESOURCE_REQUIREMENTS)), o("restartPolicy", Str), o("runtimeClassName", Str),
        o("schedulerName", Str), o("schedulingGates", List(&Object(&POD_SCHEDULING_GATE))),
        o("securityContext", Object(&POD_SECURITY_CONTEXT)), o("serviceAccount", Str), o("serviceAccountName", Str),
        o("setHostnameAsFQDN", Bool), o("shareProcessNamespace", Bool), o("subdomain", Str),
        o("terminationGracePeriodSeconds", Int64), o("tolerations", List(&Object(&TOLERATION))),
        o("topologySpreadConstraints", List(&Object(&TOPOLOGY_SPREAD_CONSTRAINT))), o("volumes", List(&Object(&VOLUME))),
    ],
};

#[rustfmt::skip]
pub static POD_STATUS: Struct = Struct {
    name: "PodStatus",
    fields: &[
        o("conditions", List(&Object(&POD_CONDITION))), o("containerStatuses", List(&Object(&CONTAINER_STATUS))),
        o("ephemeralContainerStatuses", List(&Object(&CONTAINER_STATUS))),
        o("extendedResourceClaimStatus", Object(&POD_EXTENDED_RESOURCE_CLAIM_STATUS)), o("hostIP", Str),
        o("hostIPs", List(&Object(&HOST_IP))), o("initContainerStatuses", List(&Object(&CONTAINER_STATUS))),
        o("message", Str), o("nominatedNodeName", Str), o("observedGeneration", Int64), o("phase", Str), o("podIP", Str),
        o("podIPs", List(&Object(&POD_IP))), o("qosClass", Str), o("reason", Str), o("resize", Str),
        o("resourceClaimStatuses", List(&Object(&POD_RESOURCE_CLAIM_STATUS))), o("startTime", Time),
    ],
};

#[rustfmt::skip]
pub static POD_TEMPLATE_SPEC: Struct = Struct {
    name: "PodTemplateSpec",
    fields: &[
        o("metadata", Object(&OBJECT_META)), o("spec", Object(&POD_SPEC)),
    ],
};

#[rustfmt::skip]
pub static PORT_STATUS: Struct = Struct {
    name: "PortStatus",
    fields: &[
        o("error", Str), r("port", Int32), r("protocol", Str),
    ],
};

#[rustfmt::skip]
pub static PORTWORX_VOLUME_SOURCE: Struct = Struct {
    name: "PortworxVolumeSource",
    fields: &[
        o("fsType", Str), o("readOnly", Bool), r("volumeID", Str),
    ],
};

#[rustfmt::skip]
pub static PRECONDITIONS: Struct = Struct {
    name: "Preconditions",
    fields: &[
        o("resourceVersion", Str), o("uid", Str),
    ],
};

#[rustfmt::skip]
pub static PREFERRED_SCHEDULING_TERM: Struct = Struct {
    name: "PreferredSchedulingTerm",
    fields: &[
        r("preference", Object(&NODE_SELECTOR_TERM)), r("weight", Int32),
    ],
};

#[rustfmt::skip]
pub static PROBE: Struct = Struct {
    name: "Probe",
    fields: &[
        o("exec", Object(&EXEC_ACTION)), o("failureThreshold", Int32), o("grpc", Object(&GRPC_ACTION)),
        o("httpGet", Object(&HTTP_GET_ACTION)), o("initialDelaySeconds", Int32), o("periodSeconds", Int32),
        o("successThreshold", Int32), o("tcpSocket", Object(&TCP_SOCKET_ACTION)), o("terminationGracePeriodSeconds", Int64),
        o("timeoutSeconds", Int32),
    ],
};

#[rustfmt::skip]
pub static PROJECTED_VOLUME_SOURCE: Struct = Struct {
    name: "ProjectedVolumeSource",
    fields: &[
        o("defaultMode", Int32), o("sources", List(&Object(&VOLUME_PROJECTION))),
    ],
};

#[rustfmt::skip]
pub static QUOBYTE_VOLUME_SOURCE: Struct = Struct {
    name: "QuobyteVolumeSource",
    fields: &[
        o("group", Str), o("readOnly", Bool), r("registry", Str), o("tenant", Str), o("user", Str), r("volume", Str),
    ],
};

#[rustfmt::skip]
pub static RBD_VOLUME_SOURCE: Struct = Struct {
    name: "RBDVolumeSource",
    fields: &[
        o("fsType", Str), r("image", Str), o("keyring", Str), r("monitors", List(&Str)), o("pool", Str), o("readOnly", Bool),
        o("secretRef", Object(&LOCAL_OBJECT_REFERENCE)), o("user", Str),
    ],
};

#[rustfmt::skip]
pub static REPLICA_SET: Struct = Struct {
    name: "ReplicaSet",
    fields: &[
        o("apiVersion", Str), o("kind", Str), r("metadata", Object(&OBJECT_META)), o("spec", Object(&REPLICA_SET_SPEC)),
        o("status", Object(&REPLICA_SET_STATUS)),
    ],
};

#[rustfmt::skip]
pub static REPLICA_SET_CONDITION: Struct = Struct {
    name: "ReplicaSetCondition",
    fields: &[
        o("lastTransitionTime", Time), o("message", Str), o("reason", Str), r("status", Str), r("type", Str),
    ],
};

#[rustfmt::skip]
pub static REPLICA_SET_SPEC: Struct = Struct {
    name: "ReplicaSetSpec",
    fields: &[
        o("minReadySeconds", Int32), o("replicas", Int32), r("selector", Object(&LABEL_SELECTOR)),
        o("template", Object(&POD_TEMPLATE_SPEC)),
    ],
};

#[rustfmt::skip]
pub static REPLICA_SET_STATUS: Struct = Struct {
    name: "ReplicaSetStatus",
    fields: &[
        o("availableReplicas", Int32), o("conditions", List(&Object(&REPLICA_SET_CONDITION))),
        o("fullyLabeledReplicas", Int32), o("observedGeneration", Int64), o("readyReplicas", Int32), r("replicas", Int32),
        o("terminatingReplicas", Int32),
    ],
};

#[rustfmt::skip]
pub static REPLICATION_CONTROLLER: Struct = Struct {
    name: "ReplicationController",
    fields: &[
        o("apiVersion", Str), o("kind", Str), r("metadata", Object(&OBJECT_META)),
        o("spec", Object(&REPLICATION_CONTROLLER_SPEC)), o("status", Object(&REPLICATION_CONTROLLER_STATUS)),
    ],
};

#[rustfmt::skip]
pub static REPLICATION_CONTROLLER_CONDITION: Struct = Struct {
    name: "ReplicationControllerCondition",
    fields: &[
        o("lastTransitionTime", Time), o("message", Str), o("reason", Str), r("status", Str), r("type", Str),
    ],
};

#[rustfmt::skip]
pub static REPLICATION_CONTROLLER_SPEC: Struct = Struct {
    name: "ReplicationControllerSpec",
    fields: &[
        o("minReadySeconds", Int32), o("replicas", Int32), o("selector", Map(&Str)),
        o("template", Object(&POD_TEMPLATE_SPEC)),
    ],
};

#[rustfmt::skip]
pub static REPLICATION_CONTROLLER_STATUS: Struct = Struct {
    name: "ReplicationControllerStatus",
    fields: &[
        o("availableReplicas", Int32), o("conditions", List(&Object(&REPLICATION_CONTROLLER_CONDITION))),
        o("fullyLabeledReplicas", Int32), o("observedGeneration", Int64), o("readyReplicas", Int32), r("replicas", Int32),
    ],
};

#[rustfmt::skip]
pub static RESOURCE_ATTRIBUTES: Struct = Struct {
    name: "ResourceAttributes",
    fields: &[
        o("fieldSelector", Object(&FIELD_SELECTOR_ATTRIBUTES)), o("group", Str),
        o("labelSelector", Object(&LABEL_SELECTOR_ATTRIBUTES)), o("name", Str), o("namespace", Str), o("resource", Str),
        o("subresource", Str), o("verb", Str), o("version", Str),
    ],
};

#[rustfmt::skip]
pub static RESOURCE_CLAIM: Struct = Struct {
    name: "ResourceClaim",
    fields: &[
        r("name", Str), o("request", Str),
    ],
};

#[rustfmt::skip]
pub static RESOURCE_FIELD_SELECTOR: Struct = Struct {
    name: "ResourceFieldSelector",
    fields: &[
        o("containerName", Str), o("divisor", Quantity), r("resource", Str),
    ],
};

#[rustfmt::skip]
pub static RESOURCE_HEALTH: Struct = Struct {
    name: "ResourceHealth",
    fields: &[
        o("health", Str), r("resourceID", Str),
    ],
};

#[rustfmt::skip]
pub static RESOURCE_REQUIREMENTS: Struct = Struct {
    name: "ResourceRequirements",
    fields: &[
        o("claims", List(&Object(&RESOURCE_CLAIM))), o("limits", Map(&Quantity)), o("requests", Map(&Quantity)),
    ],
};

#[rustfmt::skip]
pub static RESOURCE_RULE: Struct = Struct {
    name: "ResourceRule",
    fields: &[
        o("apiGroups", List(&Str)), o("resourceNames", List(&Str)), o("resources", List(&Str)), r("verbs", List(&Str)),
    ],
};

#[rustfmt::skip]
pub static RESOURCE_STATUS: Struct = Struct {
    name: "ResourceStatus",
    fields: &[
        r("name", Str), o("resources", List(&Object(&RESOURCE_HEALTH))),
    ],
};

#[rustfmt::skip]
pub static ROLLING_UPDATE_DAEMON_SET: Struct = Struct {
    name: "RollingUpdateDaemonSet",
    fields: &[
        o("maxSurge", IntOrString), o("maxUnavailable", IntOrString),
    ],
};

#[rustfmt::skip]
pub static ROLLING_UPDATE_DEPLOYMENT: Struct = Struct {
    name: "RollingUpdateDeployment",
    fields: &[
        o("maxSurge", IntOrString), o("maxUnavailable", IntOrString),
    ],
};

#[rustfmt::skip]
pub static ROLLING_UPDATE_STATEFUL_SET_STRATEGY: Struct = Struct {
    name: "RollingUpdateStatefulSetStrategy",
    fields: &[
        o("maxUnavailable", IntOrString), o("partition", Int32),
    ],
};

#[rustfmt::skip]
pub static SE_LINUX_OPTIONS: Struct = Struct {
    name: "SELinuxOptions",
    fields: &[
        o("level", Str), o("role", Str), o("type", Str), o("user", Str),
    ],
};

#[rustfmt::skip]
pub static SCALE: Struct = Struct {
    name: "Scale",
    fields: &[
        o("apiVersion", Str), o("kind", Str), r("metadata", Object(&OBJECT_META)), o("spec", Object(&SCALE_SPEC)),
        o("status", Object(&SCALE_STATUS)),
    ],
};

#[rustfmt::skip]
pub static SCALE_IO_VOLUME_SOURCE: Struct = Struct {
    name: "ScaleIOVolumeSource",
    fields: &[
        o("fsType", Str), r("gateway", Str), o("protectionDomain", Str), o("readOnly", Bool),
        r("secretRef", Object(&LOCAL_OBJECT_REFERENCE)), o("sslEnabled", Bool), o("storageMode", Str), o("storagePool", Str),
        r("system", Str), o("volumeName", Str),
    ],
};

#[rustfmt::skip]
pub static SCALE_SPEC: Struct = Struct {
    name: "ScaleSpec",
    fields: &[
        o("replicas", Int32),
    ],
};

#[rustfmt::skip]
pub static SCALE_STATUS: Struct = Struct {
    name: "ScaleStatus",
    fields: &[
        r("replicas", Int32), o("selector", Str),
    ],
};

#[rustfmt::skip]
pub static SECCOMP_PROFILE: Struct = Struct {
    name: "SeccompProfile",
    fields: &[
        o("localhostProfile", Str), r("type", Str),
    ],
};

#[rustfmt::skip]
pub static SECRET: Struct = Struct {
    name: "Secret",
    fields: &[
        o("apiVersion", Str), o("data", Map(&Base64)), o("immutable", Bool), o("kind", Str),
        r("metadata", Object(&OBJECT_META)), o("stringData", Map(&Str)), o("type", Str),
    ],
};

#[rustfmt::skip]
pub static SECRET_ENV_SOURCE: Struct = Struct {
    name: "SecretEnvSource",
    fields: &[
        r("name", Str), o("optional", Bool),
    ],
};

#[rustfmt::skip]
pub static SECRET_KEY_SELECTOR: Struct = Struct {
    name: "SecretKeySelector",
    fields: &[
        r("key", Str), r("name", Str), o("optional", Bool),
    ],
};

#[rustfmt::skip]
pub static SECRET_PROJECTION: Struct = Struct {
    name: "SecretProjection",
    fields: &[
        o("items", List(&Object(&KEY_TO_PATH))), r("name", Str), o("optional", Bool),
    ],
};

#[rustfmt::skip]
pub static SECRET_VOLUME_SOURCE: Struct = Struct {
    name: "SecretVolumeSource",
    fields: &[
        o("defaultMode", Int32), o("items", List(&Object(&KEY_TO_PATH))), o("optional", Bool), o("secretName", Str),
    ],
};

#[rustfmt::skip]
pub static SECURITY_CONTEXT: Struct = Struct {
    name: "SecurityContext",
    fields: &[
        o("allowPrivilegeEscalation", Bool), o("appArmorProfile", Object(&APP_ARMOR_PROFILE)),
        o("capabilities", Object(&CAPABILITIES)), o("privileged", Bool), o("procMount", Str),
        o("readOnlyRootFilesystem", Bool), o("runAsGroup", Int64), o("runAsNonRoot", Bool), o("runAsUser", Int64),
        o("seLinuxOptions", Object(&SE_LINUX_OPTIONS)), o("seccompProfile", Object(&SECCOMP_PROFILE)),
        o("windowsOptions", Object(&WINDOWS_SECURITY_CONTEXT_OPTIONS)),
    ],
};

#[rustfmt::skip]
pub static SELF_SUBJECT_ACCESS_REVIEW: Struct = Struct {
    name: "SelfSubjectAccessReview",
    fields: &[
        o("apiVersion", Str), o("kind", Str), r("metadata", Object(&OBJECT_META)),
        r("spec", Object(&SELF_SUBJECT_ACCESS_REVIEW_SPEC)), o("status", Object(&SUBJECT_ACCESS_REVIEW_STATUS)),
    ],
};

#[rustfmt::skip]
pub static SELF_SUBJECT_ACCESS_REVIEW_SPEC: Struct = Struct {
    name: "SelfSubjectAccessReviewSpec",
    fields: &[
        o("nonResourceAttributes", Object(&NON_RESOURCE_ATTRIBUTES)), o("resourceAttributes", Object(&RESOURCE_ATTRIBUTES)),
    ],
};

#[rustfmt::skip]
pub static SELF_SUBJECT_REVIEW: Struct = Struct {
    name: "SelfSubjectReview",
    fields: &[
        o("apiVersion", Str), o("kind", Str), r("metadata", Object(&OBJECT_META)),
        o("status", Object(&SELF_SUBJECT_REVIEW_STATUS)),
    ],
};

#[rustfmt::skip]
pub static SELF_SUBJECT_REVIEW_STATUS: Struct = Struct {
    name: "SelfSubjectReviewStatus",
    fields: &[
        o("userInfo", Object(&USER_INFO)),
    ],
};

#[rustfmt::skip]
pub static SELF_SUBJECT_RULES_REVIEW: Struct = Struct {
    name: "SelfSubjectRulesReview",
    fields: &[
        o("apiVersion", Str), o("kind", Str), r("metadata", Object(&OBJECT_META)),
        r("spec", Object(&SELF_SUBJECT_RULES_REVIEW_SPEC)), o("status", Object(&SUBJECT_RULES_REVIEW_STATUS)),
    ],
};

#[rustfmt::skip]
pub static SELF_SUBJECT_RULES_REVIEW_SPEC: Struct = Struct {
    name: "SelfSubjectRulesReviewSpec",
    fields: &[
        o("namespace", Str),
    ],
};

#[rustfmt::skip]
pub static SERVICE: Struct = Struct {
    name: "Service",
    fields: &[
        o("apiVersion", Str), o("kind", Str), r("metadata", Object(&OBJECT_META)), o("spec", Object(&SERVICE_SPEC)),
        o("status", Object(&SERVICE_STATUS)),
    ],
};

#[rustfmt::skip]
pub static SERVICE_ACCOUNT_TOKEN_PROJECTION: Struct = Struct {
    name: "ServiceAccountTokenProjection",
    fields: &[
        o("audience", Str), o("expirationSeconds", Int64), r("path", Str),
    ],
};

#[rustfmt::skip]
pub static SERVICE_PORT: Struct = Struct {
    name: "ServicePort",
    fields: &[
        o("appProtocol", Str), o("name", Str), o("nodePort", Int32), r("port", Int32), o("protocol", Str),
        o("targetPort", IntOrString),
    ],
};

#[rustfmt::skip]
pub static SERVICE_SPEC: Struct = Struct {
    name: "ServiceSpec",
    fields: &[
        o("allocateLoadBalancerNodePorts", Bool), o("clusterIP", Str), o("clusterIPs", List(&Str)),
        o("externalIPs", List(&Str)), o("externalName", Str), o("externalTrafficPolicy", Str),
        o("healthCheckNodePort", Int32), o("internalTrafficPolicy", Str), o("ipFamilies", List(&Str)),
        o("ipFamilyPolicy", Str), o("loadBalancerClass", Str), o("loadBalancerIP", Str),
        o("loadBalancerSourceRanges", List(&Str)), o("ports", List(&Object(&SERVICE_PORT))),
        o("publishNotReadyAddresses", Bool), o("selector", Map(&Str)), o("sessionAffinity", Str),
        o("sessionAffinityConfig", Object(&SESSION_AFFINITY_CONFIG)), o("trafficDistribution", Str), o("type", Str),
    ],
};

#[rustfmt::skip]
pub static SERVICE_STATUS: Struct = Struct {
    name: "ServiceStatus",
    fields: &[
        o("conditions", List(&Object(&CONDITION))), o("loadBalancer", Object(&LOAD_BALANCER_STATUS)),
    ],
};

#[rustfmt::skip]
pub static SESSION_AFFINITY_CONFIG: Struct = Struct {
    name: "SessionAffinityConfig",
    fields: &[
        o("clientIP", Object(&CLIENT_IP_CONFIG)),
    ],
};

#[rustfmt::skip]
pub static SLEEP_ACTION: Struct = Struct {
    name: "SleepAction",
    fields: &[
        r("seconds", Int64),
    ],
};

#[rustfmt::skip]
pub static STATEFUL_SET: Struct = Struct {
    name: "StatefulSet",
    fields: &[
        o("apiVersion", Str), o("kind", Str), r("metadata", Object(&OBJECT_META)), o("spec", Object(&STATEFUL_SET_SPEC)),
        o("status", Object(&STATEFUL_SET_STATUS)),
    ],
};

#[rustfmt::skip]
pub static STATEFUL_SET_CONDITION: Struct = Struct {
    name: "StatefulSetCondition",
    fields: &[
        o("lastTransitionTime", Time), o("message", Str), o("reason", Str), r("status", Str), r("type", Str),
    ],
};

#[rustfmt::skip]
pub static STATEFUL_SET_ORDINALS: Struct = Struct {
    name: "StatefulSetOrdinals",
    fields: &[
        o("start", Int32),
    ],
};

#[rustfmt::skip]
pub static STATEFUL_SET_PERSISTENT_VOLUME_CLAIM_RETENTION_POLICY: Struct = Struct {
    name: "StatefulSetPersistentVolumeClaimRetentionPolicy",
    fields: &[
        o("whenDeleted", Str), o("whenScaled", Str),
    ],
};

#[rustfmt::skip]
pub static STATEFUL_SET_SPEC: Struct = Struct {
    name: "StatefulSetSpec",
    fields: &[
        o("minReadySeconds", Int32), o("ordinals", Object(&STATEFUL_SET_ORDINALS)),
        o("persistentVolumeClaimRetentionPolicy", Object(&STATEFUL_SET_PERSISTENT_VOLUME_CLAIM_RETENTION_POLICY)),
        o("podManagementPolicy", Str), o("replicas", Int32), o("revisionHistoryLimit", Int32),
        r("selector", Object(&LABEL_SELECTOR)), o("serviceName", Str), r("template", Object(&POD_TEMPLATE_SPEC)),
        o("updateStrategy", Object(&STATEFUL_SET_UPDATE_STRATEGY)),
        o("volumeClaimTemplates", List(&Object(&PERSISTENT_VOLUME_CLAIM))),
    ],
};

#[rustfmt::skip]
pub static STATEFUL_SET_STATUS: Struct = Struct {
    name: "StatefulSetStatus",
    fields: &[
        o("availableReplicas", Int32), o("collisionCount", Int32), o("conditions", List(&Object(&STATEFUL_SET_CONDITION))),
        o("currentReplicas", Int32), o("currentRevision", Str), o("observedGeneration", Int64), o("readyReplicas", Int32),
        r("replicas", Int32), o("updateRevision", Str), o("updatedReplicas", Int32),
    ],
};

#[rustfmt::skip]
pub static STATEFUL_SET_UPDATE_STRATEGY: Struct = Struct {
    name: "StatefulSetUpdateStrategy",
    fields: &[
        o("rollingUpdate", Object(&ROLLING_UPDATE_STATEFUL_SET_STRATEGY)), o("type", Str),
    ],
};

#[rustfmt::skip]
pub static STORAGE_OS_VOLUME_SOURCE: Struct = Struct {
    name: "StorageOSVolumeSource",
    fields: &[
        o("fsType", Str), o("readOnly", Bool), o("secretRef", Object(&LOCAL_OBJECT_REFERENCE)), o("volumeName", Str),
        o("volumeNamespace", Str),
    ],
};

#[rustfmt::skip]
pub static SUBJECT_ACCESS_REVIEW_STATUS: Struct = Struct {
    name: "SubjectAccessReviewStatus",
    fields: &[
        r("allowed", Bool), o("denied", Bool), o("evaluationError", Str), o("reason", Str),
    ],
};

#[rustfmt::skip]
pub static SUBJECT_RULES_REVIEW_STATUS: Struct = Struct {
    name: "SubjectRulesReviewStatus",
    fields: &[
        o("evaluationError", Str), r("incomplete", Bool), r("nonResourceRules", List(&Object(&NON_RESOURCE_RULE))),
        r("resourceRules", List(&Object(&RESOURCE_RULE))),
    ],
};

#[rustfmt::skip]
pub static SUCCESS_POLICY: Struct = Struct {
    name: "SuccessPolicy",
    fields: &[
        r("rules", List(&Object(&SUCCESS_POLICY_RULE))),
    ],
};

#[rustfmt::skip]
pub static SUCCESS_POLICY_RULE: Struct = Struct {
    name: "SuccessPolicyRule",
    fields: &[
        o("succeededCount", Int32), o("succeededIndexes", Str),
    ],
};

#[rustfmt::skip]
pub static SYSCTL: Struct = Struct {
    name: "Sysctl",
    fields: &[
        r("name", Str), r("value", Str),
    ],
};

#[rustfmt::skip]
pub static TCP_SOCKET_ACTION: Struct = Struct {
    name: "TCPSocketAction",
    fields: &[
        o("host", Str), r("port", IntOrString),
    ],
};

#[rustfmt::skip]
pub static TOLERATION: Struct = Struct {
    name: "Toleration",
    fields: &[
        o("effect", Str), o("key", Str), o("operator", Str), o("tolerationSeconds", Int64), o("value", Str),
    ],
};

#[rustfmt::skip]
pub static TOPOLOGY_SPREAD_CONSTRAINT: Struct = Struct {
    name: "TopologySpreadConstraint",
    fields: &[
        o("labelSelector", Object(&LABEL_SELECTOR)), o("matchLabelKeys", List(&Str)), r("maxSkew", Int32),
        o("minDomains", Int32), o("nodeAffinityPolicy", Str), o("nodeTaintsPolicy", Str), r("topologyKey", Str),
        r("whenUnsatisfiable", Str),
    ],
};

#[rustfmt::skip]
pub static TYPED_LOCAL_OBJECT_REFERENCE: Struct = Struct {
    name: "TypedLocalObjectReference",
    fields: &[
        o("apiGroup", Str), r("kind", Str), r("name", Str),
    ],
};

#[rustfmt::skip]
pub static TYPED_OBJECT_REFERENCE: Struct = Struct {
    name: "TypedObjectReference",
    fields: &[
        o("apiGroup", Str), r("kind", Str), r("name", Str), o("namespace", Str),
    ],
};

#[rustfmt::skip]
pub static UNCOUNTED_TERMINATED_PODS: Struct = Struct {
    name: "UncountedTerminatedPods",
    fields: &[
        o("failed", List(&Str)), o("succeeded", List(&Str)),
    ],
};

#[rustfmt::skip]
pub static USER_INFO: Struct = Struct {
    name: "UserInfo",
    fields: &[
        o("extra", Map(&List(&Str))), o("groups", List(&Str)), o("uid", Str), o("username", Str),
    ],
};

#[rustfmt::skip]
pub static VOLUME: Struct = Struct {
    name: "Volume",
    fields: &[
        o("awsElasticBlockStore", Object(&AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE)),
        o("azureDisk", Object(&AZURE_DISK_VOLUME_SOURCE)), o("azureFile", Object(&AZURE_FILE_VOLUME_SOURCE)),
        o("cephfs", Object(&CEPH_FS_VOLUME_SOURCE)), o("cinder", Object(&CINDER_VOLUME_SOURCE)),
        o("configMap", Object(&CONFIG_MAP_VOLUME_SOURCE)), o("csi", Object(&CSI_VOLUME_SOURCE)),
        o("downwardAPI", Object(&DOWNWARD_API_VOLUME_SOURCE)), o("emptyDir", Object(&EMPTY_DIR_VOLUME_SOURCE)),
        o("ephemeral", Object(&EPHEMERAL_VOLUME_SOURCE)), o("fc", Object(&FC_VOLUME_SOURCE)),
        o("flexVolume", Object(&FLEX_VOLUME_SOURCE)), o("flocker", Object(&FLOCKER_VOLUME_SOURCE)),
        o("gcePersistentDisk", Object(&GCE_PERSISTENT_DISK_VOLUME_SOURCE)), o("gitRepo", Object(&GIT_REPO_VOLUME_SOURCE)),
        o("glusterfs", Object(&GLUSTERFS_VOLUME_SOURCE)), o("hostPath", Object(&HOST_PATH_VOLUME_SOURCE)),
        o("image", Object(&IMAGE_VOLUME_SOURCE)), o("iscsi", Object(&ISCSI_VOLUME_SOURCE)), r("name", Str),
        o("nfs", Object(&NFS_VOLUME_SOURCE)), o("persistentVolumeClaim", Object(&PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE)),
        o("photonPersistentDisk", Object(&PHOTON_PERSISTENT_DISK_VOLUME_SOURCE)),
        o("portworxVolume", Object(&PORTWORX_VOLUME_SOURCE)), o("projected", Object(&PROJECTED_VOLUME_SOURCE)),
        o("quobyte", Object(&QUOBYTE_VOLUME_SOURCE)), o("rbd", Object(&RBD_VOLUME_SOURCE)),
        o("scaleIO", Object(&SCALE_IO_VOLUME_SOURCE)), o("secret", Object(&SECRET_VOLUME_SOURCE)),
        o("storageos", Object(&STORAGE_OS_VOLUME_SOURCE)), o("vsphereVolume", Object(&VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE)),
    ],
};

#[rustfmt::skip]
pub static VOLUME_DEVICE: Struct = Struct {
    name: "VolumeDevice",
    fields: &[
        r("devicePath", Str), r("name", Str),
    ],
};

#[rustfmt::skip]
pub static VOLUME_MOUNT: Struct = Struct {
    name: "VolumeMount",
    fields: &[
        r("mountPath", Str), o("mountPropagation", Str), r("name", Str), o("readOnly", Bool), o("recursiveReadOnly", Str),
        o("subPath", Str), o("subPathExpr", Str),
    ],
};

#[rustfmt::skip]
pub static VOLUME_MOUNT_STATUS: Struct = Struct {
    name: "VolumeMountStatus",
    fields: &[
        r("mountPath", Str), r("name", Str), o("readOnly", Bool), o("recursiveReadOnly", Str),
    ],
};

#[rustfmt::skip]
pub static VOLUME_PROJECTION: Struct = Struct {
    name: "VolumeProjection",
    fields: &[
        o("clusterTrustBundle", Object(&CLUSTER_TRUST_BUNDLE_PROJECTION)), o("configMap", Object(&CONFIG_MAP_PROJECTION)),
        o("downwardAPI", Object(&DOWNWARD_API_PROJECTION)), o("podCertificate", Object(&POD_CERTIFICATE_PROJECTION)),
        o("secret", Object(&SECRET_PROJECTION)), o("serviceAccountToken", Object(&SERVICE_ACCOUNT_TOKEN_PROJECTION)),
    ],
};

#[rustfmt::skip]
pub static VOLUME_RESOURCE_REQUIREMENTS: Struct = Struct {
    name: "VolumeResourceRequirements",
    fields: &[
        o("limits", Map(&Quantity)), o("requests", Map(&Quantity)),
    ],
};

#[rustfmt::skip]
pub static VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE: Struct = Struct {
    name: "VsphereVirtualDiskVolumeSource",
    fields: &[
        o("fsType", Str), o("storagePolicyID", Str), o("storagePolicyName", Str), r("volumePath", Str),
    ],
};

#[rustfmt::skip]
pub static WEIGHTED_POD_AFFINITY_TERM: Struct = Struct {
    name: "WeightedPodAffinityTerm",
    fields: &[
        r("podAffinityTerm", Object(&POD_AFFINITY_TERM)), r("weight", Int32),
    ],
};

#[rustfmt::skip]
pub static WINDOWS_SECURITY_CONTEXT_OPTIONS: Struct = Struct {
    name: "WindowsSecurityContextOptions",
    fields: &[
        o("gmsaCredentialSpec", Str), o("gmsaCredentialSpecName", Str), o("hostProcess", Bool), o("runAsUserName", Str),
    ],
};

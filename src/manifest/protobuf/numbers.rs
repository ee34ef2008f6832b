//! Numbers of fields in Kubernetes' protobuf form, by structure of the [schema table](crate::schema::table). They are those of the tags in the Go
//! types of `k8s.io/api` and `k8s.io/apimachinery`, and never change. A test finds fields of the table without a number.

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    pub(super) number: u32,
    /// The field in JSON; of an inlined message, the message.
    pub(super) name: &'static str,
    pub(super) form: Form,
}

/// Form of a field in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// There if it is in the message.
    Kept,
    /// Absent when empty: messages always have it.
    Elided,
    /// Its fields are those of the message around it.
    Inline,
}

const fn k(number: u32, name: &'static str) -> Number {
    Number { number, name, form: Form::Kept }
}

const fn z(number: u32, name: &'static str) -> Number {
    Number { number, name, form: Form::Elided }
}

const fn i(number: u32, name: &'static str) -> Number {
    Number { number, name, form: Form::Inline }
}

/// The fields of the message of this name; none of one that is not known.
pub(super) fn numbers_of(message: &str) -> &'static [Number] {
    NUMBERS.binary_search_by(|(name, _)| name.cmp(&message)).map_or(&[], |at| NUMBERS[at].1)
}

/// All messages, sorted by name.
#[rustfmt::skip]
static NUMBERS: &[(&str, &[Number])] = &[
    ("AWSElasticBlockStoreVolumeSource", &[k(1, "volumeID"), z(2, "fsType"), z(3, "partition"), z(4, "readOnly")]),
    ("Affinity", &[k(1, "nodeAffinity"), k(2, "podAffinity"), k(3, "podAntiAffinity")]),
    ("AppArmorProfile", &[k(1, "type"), k(2, "localhostProfile")]),
    ("AzureDiskVolumeSource", &[
        k(1, "diskName"), k(2, "diskURI"), k(3, "cachingMode"), k(4, "fsType"), k(5, "readOnly"), k(6, "kind"),
    ]),
    ("AzureFileVolumeSource", &[k(1, "secretName"), k(2, "shareName"), z(3, "readOnly")]),
    ("CSIVolumeSource", &[
        k(1, "driver"), k(2, "readOnly"), k(3, "fsType"), z(4, "volumeAttributes"), k(5, "nodePublishSecretRef"),
    ]),
    ("Capabilities", &[z(1, "add"), z(2, "drop")]),
    ("CephFSVolumeSource", &[
        k(1, "monitors"), z(2, "path"), z(3, "user"), z(4, "secretFile"), k(5, "secretRef"), z(6, "readOnly"),
    ]),
    ("CinderVolumeSource", &[k(1, "volumeID"), z(2, "fsType"), z(3, "readOnly"), k(4, "secretRef")]),
    ("ClientIPConfig", &[k(1, "timeoutSeconds")]),
    ("ClusterTrustBundleProjection", &[
        k(1, "name"), k(2, "signerName"), k(3, "labelSelector"), k(4, "path"), k(5, "optional"),
    ]),
    ("Condition", &[
        k(1, "type"), k(2, "status"), z(3, "observedGeneration"), k(4, "lastTransitionTime"), k(5, "reason"), k(6, "message"),
    ]),
    ("ConfigMap", &[z(1, "metadata"), z(2, "data"), z(3, "binaryData"), k(4, "immutable")]),
    ("ConfigMapEnvSource", &[i(1, "LocalObjectReference"), k(2, "optional")]),
    ("ConfigMapKeySelector", &[i(1, "LocalObjectReference"), k(2, "key"), k(3, "optional")]),
    ("ConfigMapProjection", &[i(1, "LocalObjectReference"), z(2, "items"), k(4, "optional")]),
    ("ConfigMapVolumeSource", &[i(1, "LocalObjectReference"), z(2, "items"), k(3, "defaultMode"), k(4, "optional")]),
    ("Container", &[
        k(1, "name"), z(2, "image"), z(3, "command"), z(4, "args"), z(5, "workingDir"), z(6, "ports"), z(7, "env"),
        z(8, "resources"), z(9, "volumeMounts"), k(10, "livenessProbe"), k(11, "readinessProbe"), k(12, "lifecycle"),
        z(13, "terminationMessagePath"), z(14, "imagePullPolicy"), k(15, "securityContext"), z(16, "stdin"),
        z(17, "stdinOnce"), z(18, "tty"), z(19, "envFrom"), z(20, "terminationMessagePolicy"), z(21, "volumeDevices"),
        k(22, "startupProbe"), z(23, "resizePolicy"), k(24, "restartPolicy"), z(25, "restartPolicyRules"),
    ]),
    ("ContainerExtendedResourceRequest", &[k(1, "containerName"), k(2, "resourceName"), k(3, "requestName")]),
    ("ContainerPort", &[z(1, "name"), z(2, "hostPort"), k(3, "containerPort"), z(4, "protocol"), z(5, "hostIP")]),
    ("ContainerResizePolicy", &[k(1, "resourceName"), k(2, "restartPolicy")]),
    ("ContainerRestartRule", &[z(1, "action"), k(2, "exitCodes")]),
    ("ContainerRestartRuleOnExitCodes", &[z(1, "operator"), z(2, "values")]),
    ("ContainerState", &[k(1, "waiting"), k(2, "running"), k(3, "terminated")]),
    ("ContainerStateRunning", &[z(1, "startedAt")]),
    ("ContainerStateTerminated", &[
        k(1, "exitCode"), z(2, "signal"), z(3, "reason"), z(4, "message"), z(5, "startedAt"), z(6, "finishedAt"),
        z(7, "containerID"),
    ]),
    ("ContainerStateWaiting", &[z(1, "reason"), z(2, "message")]),
    ("ContainerStatus", &[
        k(1, "name"), z(2, "state"), z(3, "lastState"), k(4, "ready"), k(5, "restartCount"), k(6, "image"), k(7, "imageID"),
        z(8, "containerID"), k(9, "started"), z(10, "allocatedResources"), k(11, "resources"), z(12, "volumeMounts"),
        k(13, "user"), z(14, "allocatedResourcesStatus"), k(15, "stopSignal"),
    ]),
    ("ContainerUser", &[k(1, "linux")]),
    ("CronJob", &[z(1, "metadata"), z(2, "spec"), z(3, "status")]),
    ("CronJobSpec", &[
        k(1, "schedule"), k(2, "startingDeadlineSeconds"), z(3, "concurrencyPolicy"), k(4, "suspend"), k(5, "jobTemplate"),
        k(6, "successfulJobsHistoryLimit"), k(7, "failedJobsHistoryLimit"), k(8, "timeZone"),
    ]),
    ("CronJobStatus", &[z(1, "active"), k(4, "lastScheduleTime"), k(5, "lastSuccessfulTime")]),
    ("DaemonSet", &[z(1, "metadata"), z(2, "spec"), z(3, "status")]),
    ("DaemonSetCondition", &[k(1, "type"), k(2, "status"), z(3, "lastTransitionTime"), z(4, "reason"), z(5, "message")]),
    ("DaemonSetSpec", &[
        k(1, "selector"), k(2, "template"), z(3, "updateStrategy"), z(4, "minReadySeconds"), k(6, "revisionHistoryLimit"),
    ]),
    ("DaemonSetStatus", &[
        k(1, "currentNumberScheduled"), k(2, "numberMisscheduled"), k(3, "desiredNumberScheduled"), k(4, "numberReady"),
        z(5, "observedGeneration"), z(6, "updatedNumberScheduled"), z(7, "numberAvailable"), z(8, "numberUnavailable"),
        k(9, "collisionCount"), z(10, "conditions"),
    ]),
    ("DaemonSetUpdateStrategy", &[z(1, "type"), k(2, "rollingUpdate")]),
    ("DeleteOptions", &[
        k(1, "gracePeriodSeconds"), k(2, "preconditions"), k(3, "orphanDependents"), k(4, "propagationPolicy"),
        z(5, "dryRun"), k(6, "ignoreStoreReadErrorWithClusterBreakingPotential"),
    ]),
    ("Deployment", &[z(1, "metadata"), z(2, "spec"), z(3, "status")]),
    ("DeploymentCondition", &[
        k(1, "type"), k(2, "status"), z(4, "reason"), z(5, "message"), z(6, "lastUpdateTime"), z(7, "lastTransitionTime"),
    ]),
    ("DeploymentSpec", &[
        k(1, "replicas"), k(2, "selector"), k(3, "template"), z(4, "strategy"), z(5, "minReadySeconds"),
        k(6, "revisionHistoryLimit"), z(7, "paused"), k(9, "progressDeadlineSeconds"),
    ]),
    ("DeploymentStatus", &[
        z(1, "observedGeneration"), z(2, "replicas"), z(3, "updatedReplicas"), z(4, "availableReplicas"),
        z(5, "unavailableReplicas"), z(6, "conditions"), z(7, "readyReplicas"), k(8, "collisionCount"),
        k(9, "terminatingReplicas"),
    ]),
    ("DeploymentStrategy", &[z(1, "type"), k(2, "rollingUpdate")]),
    ("DownwardAPIProjection", &[z(1, "items")]),
    ("DownwardAPIVolumeFile", &[k(1, "path"), k(2, "fieldRef"), k(3, "resourceFieldRef"), k(4, "mode")]),
    ("DownwardAPIVolumeSource", &[z(1, "items"), k(2, "defaultMode")]),
    ("EmptyDirVolumeSource", &[z(1, "medium"), k(2, "sizeLimit")]),
    ("Endpoint", &[
        k(1, "addresses"), z(2, "conditions"), k(3, "hostname"), k(4, "targetRef"), z(5, "deprecatedTopology"),
        k(6, "nodeName"), k(7, "zone"), k(8, "hints"),
    ]),
    ("EndpointConditions", &[k(1, "ready"), k(2, "serving"), k(3, "terminating")]),
    ("EndpointHints", &[z(1, "forZones"), z(2, "forNodes")]),
    ("EndpointPort", &[z(1, "name"), k(2, "port"), z(3, "protocol"), k(4, "appProtocol")]),
    ("EndpointSlice", &[z(1, "metadata"), k(2, "endpoints"), k(3, "ports"), k(4, "addressType")]),
    ("EnvFromSource", &[z(1, "prefix"), k(2, "configMapRef"), k(3, "secretRef")]),
    ("EnvVar", &[k(1, "name"), z(2, "value"), k(3, "valueFrom")]),
    ("EnvVarSource", &[
        k(1, "fieldRef"), k(2, "resourceFieldRef"), k(3, "configMapKeyRef"), k(4, "secretKeyRef"), k(5, "fileKeyRef"),
    ]),
    ("EphemeralContainer", &[i(1, "EphemeralContainerCommon"), z(2, "targetContainerName")]),
    ("EphemeralContainerCommon", &[
        k(1, "name"), z(2, "image"), z(3, "command"), z(4, "args"), z(5, "workingDir"), z(6, "ports"), z(7, "env"),
        z(8, "resources"), z(9, "volumeMounts"), k(10, "livenessProbe"), k(11, "readinessProbe"), k(12, "lifecycle"),
        z(13, "terminationMessagePath"), z(14, "imagePullPolicy"), k(15, "securityContext"), z(16, "stdin"),
        z(17, "stdinOnce"), z(18, "tty"), z(19, "envFrom"), z(20, "terminationMessagePolicy"), z(21, "volumeDevices"),
        k(22, "startupProbe"), z(23, "resizePolicy"), k(24, "restartPolicy"), z(25, "restartPolicyRules"),
    ]),
    ("EphemeralVolumeSource", &[k(1, "volumeClaimTemplate")]),
    ("Eviction", &[z(1, "metadata"), k(2, "deleteOptions")]),
    ("ExecAction", &[z(1, "command")]),
    ("FCVolumeSource", &[z(1, "targetWWNs"), k(2, "lun"), z(3, "fsType"), z(4, "readOnly"), z(5, "wwids")]),
    ("FieldSelectorAttributes", &[z(1, "rawSelector"), z(2, "requirements")]),
    ("FieldSelectorRequirement", &[k(1, "key"), k(2, "operator"), z(3, "values")]),
    ("FileKeySelector", &[k(1, "volumeName"), k(2, "path"), k(3, "key"), k(4, "optional")]),
    ("FlexVolumeSource", &[k(1, "driver"), z(2, "fsType"), k(3, "secretRef"), z(4, "readOnly"), z(5, "options")]),
    ("FlockerVolumeSource", &[z(1, "datasetName"), z(2, "datasetUUID")]),
    ("ForNode", &[k(1, "name")]),
    ("ForZone", &[k(1, "name")]),
    ("GCEPersistentDiskVolumeSource", &[k(1, "pdName"), z(2, "fsType"), z(3, "partition"), z(4, "readOnly")]),
    ("GRPCAction", &[k(1, "port"), k(2, "service")]),
    ("GitRepoVolumeSource", &[k(1, "repository"), z(2, "revision"), z(3, "directory")]),
    ("GlusterfsVolumeSource", &[k(1, "endpoints"), k(2, "path"), z(3, "readOnly")]),
    ("HTTPGetAction", &[z(1, "path"), k(2, "port"), z(3, "host"), z(4, "scheme"), z(5, "httpHeaders")]),
    ("HTTPHeader", &[k(1, "name"), k(2, "value")]),
    ("HostAlias", &[k(1, "ip"), z(2, "hostnames")]),
    ("HostIP", &[k(1, "ip")]),
    ("HostPathVolumeSource", &[k(1, "path"), k(2, "type")]),
    ("IPBlock", &[k(1, "cidr"), z(2, "except")]),
    ("ISCSIVolumeSource", &[
        k(1, "targetPortal"), k(2, "iqn"), k(3, "lun"), z(4, "iscsiInterface"), z(5, "fsType"), z(6, "readOnly"),
        z(7, "portals"), z(8, "chapAuthDiscovery"), k(10, "secretRef"), z(11, "chapAuthSession"), k(12, "initiatorName"),
    ]),
    ("ImageVolumeSource", &[z(1, "reference"), z(2, "pullPolicy")]),
    ("Job", &[z(1, "metadata"), z(2, "spec"), z(3, "status")]),
    ("JobCondition", &[
        k(1, "type"), k(2, "status"), z(3, "lastProbeTime"), z(4, "lastTransitionTime"), z(5, "reason"), z(6, "message"),
    ]),
    ("JobSpec", &[
        k(1, "parallelism"), k(2, "completions"), k(3, "activeDeadlineSeconds"), k(4, "selector"), k(5, "manualSelector"),
        k(6, "template"), k(7, "backoffLimit"), k(8, "ttlSecondsAfterFinished"), k(9, "completionMode"), k(10, "suspend"),
        k(11, "podFailurePolicy"), k(12, "backoffLimitPerIndex"), k(13, "maxFailedIndexes"), k(14, "podReplacementPolicy"),
        k(15, "managedBy"), k(16, "successPolicy"),
    ]),
    ("JobStatus", &[
        z(1, "conditions"), k(2, "startTime"), k(3, "completionTime"), z(4, "active"), z(5, "succeeded"), z(6, "failed"),
        z(7, "completedIndexes"), k(8, "uncountedTerminatedPods"), k(9, "ready"), k(10, "failedIndexes"),
        k(11, "terminating"),
    ]),
    ("JobTemplateSpec", &[z(1, "metadata"), z(2, "spec")]),
    ("KeyToPath", &[k(1, "key"), k(2, "path"), k(3, "mode")]),
    ("LabelSelector", &[z(1, "matchLabels"), z(2, "matchExpressions")]),
    ("LabelSelectorAttributes", &[z(1, "rawSelector"), z(2, "requirements")]),
    ("LabelSelectorRequirement", &[k(1, "key"), k(2, "operator"), z(3, "values")]),
    ("Lifecycle", &[k(1, "postStart"), k(2, "preStop"), k(3, "stopSignal")]),
    ("LifecycleHandler", &[k(1, "exec"), k(2, "httpGet"), k(3, "tcpSocket"), k(4, "sleep")]),
    ("LinuxContainerUser", &[k(1, "uid"), k(2, "gid"), z(3, "supplementalGroups")]),
    ("LoadBalancerIngress", &[z(1, "ip"), z(2, "hostname"), k(3, "ipMode"), z(4, "ports")]),
    ("LoadBalancerStatus", &[z(1, "ingress")]),
    ("LocalObjectReference", &[z(1, "name")]),
    ("ManagedFieldsEntry", &[
        z(1, "manager"), z(2, "operation"), z(3, "apiVersion"), k(4, "time"), z(6, "fieldsType"), k(7, "fieldsV1"),
        z(8, "subresource"),
    ]),
    ("ModifyVolumeStatus", &[z(1, "targetVolumeAttributesClassName"), k(2, "status")]),
    ("NFSVolumeSource", &[k(1, "server"), k(2, "path"), z(3, "readOnly")]),
    ("Namespace", &[z(1, "metadata"), z(2, "spec"), z(3, "status")]),
    ("NamespaceCondition", &[k(1, "type"), k(2, "status"), z(4, "lastTransitionTime"), z(5, "reason"), z(6, "message")]),
    ("NamespaceSpec", &[z(1, "finalizers")]),
    ("NamespaceStatus", &[z(1, "phase"), z(2, "conditions")]),
    ("NetworkPolicy", &[z(1, "metadata"), z(2, "spec")]),
    ("NetworkPolicyEgressRule", &[z(1, "ports"), z(2, "to")]),
    ("NetworkPolicyIngressRule", &[z(1, "ports"), z(2, "from")]),
    ("NetworkPolicyPeer", &[k(1, "podSelector"), k(2, "namespaceSelector"), k(3, "ipBlock")]),
    ("NetworkPolicyPort", &[k(1, "protocol"), k(2, "port"), k(3, "endPort")]),
    ("NetworkPolicySpec", &[k(1, "podSelector"), z(2, "ingress"), z(3, "egress"), z(4, "policyTypes")]),
    ("NodeAffinity", &[
        k(1, "requiredDuringSchedulingIgnoredDuringExecution"), z(2, "preferredDuringSchedulingIgnoredDuringExecution"),
    ]),
    ("NodeSelector", &[k(1, "nodeSelectorTerms")]),
    ("NodeSelectorRequirement", &[k(1, "key"), k(2, "operator"), z(3, "values")]),
    ("NodeSelectorTerm", &[z(1, "matchExpressions"), z(2, "matchFields")]),
    ("NonResourceAttributes", &[z(1, "path"), z(2, "verb")]),
    ("NonResourceRule", &[k(1, "verbs"), z(2, "nonResourceURLs")]),
    ("ObjectFieldSelector", &[z(1, "apiVersion"), k(2, "fieldPath")]),
    ("ObjectMeta", &[
        z(1, "name"), z(2, "generateName"), z(3, "namespace"), z(4, "selfLink"), z(5, "uid"), z(6, "resourceVersion"),
        z(7, "generation"), z(8, "creationTimestamp"), k(9, "deletionTimestamp"), k(10, "deletionGracePeriodSeconds"),
        z(11, "labels"), z(12, "annotations"), z(13, "ownerReferences"), z(14, "finalizers"), z(17, "managedFields"),
    ]),
    ("ObjectReference", &[
        z(1, "kind"), z(2, "namespace"), z(3, "name"), z(4, "uid"), z(5, "apiVersion"), z(6, "resourceVersion"),
        z(7, "fieldPath"),
    ]),
    ("OwnerReference", &[
        k(1, "kind"), k(3, "name"), k(4, "uid"), k(5, "apiVersion"), k(6, "controller"), k(7, "blockOwnerDeletion"),
    ]),
    ("PersistentVolumeClaim", &[z(1, "metadata"), z(2, "spec"), z(3, "status")]),
    ("PersistentVolumeClaimCondition", &[
        k(1, "type"), k(2, "status"), z(3, "lastProbeTime"), z(4, "lastTransitionTime"), z(5, "reason"), z(6, "message"),
    ]),
    ("PersistentVolumeClaimSpec", &[
        z(1, "accessModes"), z(2, "resources"), z(3, "volumeName"), k(4, "selector"), k(5, "storageClassName"),
        k(6, "volumeMode"), k(7, "dataSource"), k(8, "dataSourceRef"), k(9, "volumeAttributesClassName"),
    ]),
    ("PersistentVolumeClaimStatus", &[
        z(1, "phase"), z(2, "accessModes"), z(3, "capacity"), z(4, "conditions"), z(5, "allocatedResources"),
        z(7, "allocatedResourceStatuses"), k(8, "currentVolumeAttributesClassName"), k(9, "modifyVolumeStatus"),
    ]),
    ("PersistentVolumeClaimTemplate", &[z(1, "metadata"), k(2, "spec")]),
    ("PersistentVolumeClaimVolumeSource", &[k(1, "claimName"), z(2, "readOnly")]),
    ("PhotonPersistentDiskVolumeSource", &[k(1, "pdID"), z(2, "fsType")]),
    ("Pod", &[z(1, "metadata"), z(2, "spec"), z(3, "status")]),
    ("PodAffinity", &[
        z(1, "requiredDuringSchedulingIgnoredDuringExecution"), z(2, "preferredDuringSchedulingIgnoredDuringExecution"),
    ]),
    ("PodAffinityTerm", &[
        k(1, "labelSelector"), z(2, "namespaces"), k(3, "topologyKey"), k(4, "namespaceSelector"), z(5, "matchLabelKeys"),
        z(6, "mismatchLabelKeys"),
    ]),
    ("PodAntiAffinity", &[
        z(1, "requiredDuringSchedulingIgnoredDuringExecution"), z(2, "preferredDuringSchedulingIgnoredDuringExecution"),
    ]),
    ("PodCertificateProjection", &[
        z(1, "signerName"), z(2, "keyType"), k(3, "maxExpirationSeconds"), z(4, "credentialBundlePath"), z(5, "keyPath"),
        z(6, "certificateChainPath"),
    ]),
    ("PodCondition", &[
        k(1, "type"), k(2, "status"), z(3, "lastProbeTime"), z(4, "lastTransitionTime"), z(5, "reason"), z(6, "message"),
        z(7, "observedGeneration"),
    ]),
    ("PodDNSConfig", &[z(1, "nameservers"), z(2, "searches"), z(3, "options")]),
    ("PodDNSConfigOption", &[z(1, "name"), k(2, "value")]),
    ("PodExtendedResourceClaimStatus", &[k(1, "requestMappings"), k(2, "resourceClaimName")]),
    ("PodFailurePolicy", &[k(1, "rules")]),
    ("PodFailurePolicyOnExitCodesRequirement", &[k(1, "containerName"), k(2, "operator"), k(3, "values")]),
    ("PodFailurePolicyOnPodConditionsPattern", &[k(1, "type"), k(2, "status")]),
    ("PodFailurePolicyRule", &[k(1, "action"), k(2, "onExitCodes"), z(3, "onPodConditions")]),
    ("PodIP", &[k(1, "ip")]),
    ("PodOS", &[k(1, "name")]),
    ("PodReadinessGate", &[k(1, "conditionType")]),
    ("PodResourceClaim", &[k(1, "name"), k(3, "resourceClaimName"), k(4, "resourceClaimTemplateName")]),
    ("PodResourceClaimStatus", &[k(1, "name"), k(2, "resourceClaimName")]),
    ("PodSchedulingGate", &[k(1, "name")]),
    ("PodSecurityContext", &[
        k(1, "seLinuxOptions"), k(2, "runAsUser"), k(3, "runAsNonRoot"), z(4, "supplementalGroups"), k(5, "fsGroup"),
        k(6, "runAsGroup"), z(7, "sysctls"), k(8, "windowsOptions"), k(9, "fsGroupChangePolicy"), k(10, "seccompProfile"),
        k(11, "appArmorProfile"), k(12, "supplementalGroupsPolicy"), k(13, "seLinuxChangePolicy"),
    ]),
    ("PodSpec", &[
        z(1, "volumes"), k(2, "containers"), z(3, "restartPolicy"), k(4, "terminationGracePeriodSeconds"),
        k(5, "activeDeadlineSeconds"), z(6, "dnsPolicy"), z(7, "nodeSelector"), z(8, "serviceAccountName"),
        z(9, "serviceAccount"), z(10, "nodeName"), z(11, "hostNetwork"), z(12, "hostPID"), z(13, "hostIPC"),
        k(14, "securityContext"), z(15, "imagePullSecrets"), z(16, "hostname"), z(17, "subdomain"), k(18, "affinity"),
        z(19, "schedulerName"), z(20, "initContainers"), k(21, "automountServiceAccountToken"), z(22, "tolerations"),
        z(23, "hostAliases"), z(24, "priorityClassName"), k(25, "priority"), k(26, "dnsConfig"),
        k(27, "shareProcessNamespace"), z(28, "readinessGates"), k(29, "runtimeClassName"), k(30, "enableServiceLinks"),
        k(31, "preemptionPolicy"), z(32, "overhead"), z(33, "topologySpreadConstraints"), z(34, "ephemeralContainers"),
        k(35, "setHostnameAsFQDN"), k(36, "os"), k(37, "hostUsers"), z(38, "schedulingGates"), z(39, "resourceClaims"),
        k(40, "resources"), k(41, "hostnameOverride"),
    ]),
    ("PodStatus", &[
        z(1, "phase"), z(2, "conditions"), z(3, "message"), z(4, "reason"), z(5, "hostIP"), z(6, "podIP"), k(7, "startTime"),
        z(8, "containerStatuses"), z(9, "qosClass"), z(10, "initContainerStatuses"), z(11, "nominatedNodeName"),
        z(12, "podIPs"), z(13, "ephemeralContainerStatuses"), z(14, "resize"), z(15, "resourceClaimStatuses"),
        z(16, "hostIPs"), z(17, "observedGeneration"), k(18, "extendedResourceClaimStatus"),
    ]),
    ("PodTemplateSpec", &[z(1, "metadata"), z(2, "spec")]),
    ("PortStatus", &[k(1, "port"), k(2, "protocol"), k(3, "error")]),
    ("PortworxVolumeSource", &[k(1, "volumeID"), z(2, "fsType"), z(3, "readOnly")]),
    ("Preconditions", &[k(1, "uid"), k(2, "resourceVersion")]),
    ("PreferredSchedulingTerm", &[k(1, "weight"), k(2, "preference")]),
    ("Probe", &[
        i(1, "ProbeHandler"), z(2, "initialDelaySeconds"), z(3, "timeoutSeconds"), z(4, "periodSeconds"),
        z(5, "successThreshold"), z(6, "failureThreshold"), k(7, "terminationGracePeriodSeconds"),
    ]),
    ("ProbeHandler", &[k(1, "exec"), k(2, "httpGet"), k(3, "tcpSocket"), k(4, "grpc")]),
    ("ProjectedVolumeSource", &[k(1, "sources"), k(2, "defaultMode")]),
    ("QuobyteVolumeSource", &[k(1, "registry"), k(2, "volume"), z(3, "readOnly"), z(4, "user"), z(5, "group"), z(6, "tenant")]),
    ("RBDVolumeSource", &[
        k(1, "monitors"), k(2, "image"), z(3, "fsType"), z(4, "pool"), z(5, "user"), z(6, "keyring"), k(7, "secretRef"),
        z(8, "readOnly"),
    ]),
    ("ReplicaSet", &[z(1, "metadata"), z(2, "spec"), z(3, "status")]),
    ("ReplicaSetCondition", &[k(1, "type"), k(2, "status"), z(3, "lastTransitionTime"), z(4, "reason"), z(5, "message")]),
    ("ReplicaSetSpec", &[k(1, "replicas"), k(2, "selector"), z(3, "template"), z(4, "minReadySeconds")]),
    ("ReplicaSetStatus", &[
        k(1, "replicas"), z(2, "fullyLabeledReplicas"), z(3, "observedGeneration"), z(4, "readyReplicas"),
        z(5, "availableReplicas"), z(6, "conditions"), k(7, "terminatingReplicas"),
    ]),
    ("ReplicationController", &[z(1, "metadata"), z(2, "spec"), z(3, "status")]),
    ("ReplicationControllerCondition", &[
        k(1, "type"), k(2, "status"), z(3, "lastTransitionTime"), z(4, "reason"), z(5, "message"),
    ]),
    ("ReplicationControllerSpec", &[k(1, "replicas"), z(2, "selector"), k(3, "template"), z(4, "minReadySeconds")]),
    ("ReplicationControllerStatus", &[
        k(1, "replicas"), z(2, "fullyLabeledReplicas"), z(3, "observedGeneration"), z(4, "readyReplicas"),
        z(5, "availableReplicas"), z(6, "conditions"),
    ]),
    ("ResourceAttributes", &[
        z(1, "namespace"), z(2, "verb"), z(3, "group"), z(4, "version"), z(5, "resource"), z(6, "subresource"), z(7, "name"),
        k(8, "fieldSelector"), k(9, "labelSelector"),
    ]),
    ("ResourceClaim", &[k(1, "name"), z(2, "request")]),
    ("ResourceFieldSelector", &[z(1, "containerName"), k(2, "resource"), z(3, "divisor")]),
    ("ResourceHealth", &[k(1, "resourceID"), z(2, "health")]),
    ("ResourceRequirements", &[z(1, "limits"), z(2, "requests"), z(3, "claims")]),
    ("ResourceRule", &[k(1, "verbs"), z(2, "apiGroups"), z(3, "resources"), z(4, "resourceNames")]),
    ("ResourceStatus", &[k(1, "name"), z(2, "resources")]),
    ("RollingUpdateDaemonSet", &[k(1, "maxUnavailable"), k(2, "maxSurge")]),
    ("RollingUpdateDeployment", &[k(1, "maxUnavailable"), k(2, "maxSurge")]),
    ("RollingUpdateStatefulSetStrategy", &[k(1, "partition"), k(2, "maxUnavailable")]),
    ("SELinuxOptions", &[z(1, "user"), z(2, "role"), z(3, "type"), z(4, "level")]),
    ("Scale", &[z(1, "metadata"), z(2, "spec"), z(3, "status")]),
    ("ScaleIOVolumeSource", &[
        k(1, "gateway"), k(2, "system"), k(3, "secretRef"), z(4, "sslEnabled"), z(5, "protectionDomain"), z(6, "storagePool"),
        z(7, "storageMode"), z(8, "volumeName"), z(9, "fsType"), z(10, "readOnly"),
    ]),
    ("ScaleSpec", &[z(1, "replicas")]),
    ("ScaleStatus", &[k(1, "replicas"), z(2, "selector")]),
    ("SeccompProfile", &[k(1, "type"), k(2, "localhostProfile")]),
    ("Secret", &[z(1, "metadata"), z(2, "data"), z(3, "type"), z(4, "stringData"), k(5, "immutable")]),
    ("SecretEnvSource", &[i(1, "LocalObjectReference"), k(2, "optional")]),
    ("SecretKeySelector", &[i(1, "LocalObjectReference"), k(2, "key"), k(3, "optional")]),
    ("SecretProjection", &[i(1, "LocalObjectReference"), z(2, "items"), k(4, "optional")]),
    ("SecretVolumeSource", &[z(1, "secretName"), z(2, "items"), k(3, "defaultMode"), k(4, "optional")]),
    ("SecurityContext", &[
        k(1, "capabilities"), k(2, "privileged"), k(3, "seLinuxOptions"), k(4, "runAsUser"), k(5, "runAsNonRoot"),
        k(6, "readOnlyRootFilesystem"), k(7, "allowPrivilegeEscalation"), k(8, "runAsGroup"), k(9, "procMount"),
        k(10, "windowsOptions"), k(11, "seccompProfile"), k(12, "appArmorProfile"),
    ]),
    ("SelfSubjectAccessReview", &[z(1, "metadata"), k(2, "spec"), z(3, "status")]),
    ("SelfSubjectAccessReviewSpec", &[k(1, "resourceAttributes"), k(2, "nonResourceAttributes")]),
    ("SelfSubjectReview", &[z(1, "metadata"), z(2, "status")]),
    ("SelfSubjectReviewStatus", &[z(1, "userInfo")]),
    ("SelfSubjectRulesReview", &[z(1, "metadata"), k(2, "spec"), z(3, "status")]),
    ("SelfSubjectRulesReviewSpec", &[z(1, "namespace")]),
    ("Service", &[z(1, "metadata"), z(2, "spec"), z(3, "status")]),
    ("ServiceAccountTokenProjection", &[z(1, "audience"), k(2, "expirationSeconds"), k(3, "path")]),
    ("ServicePort", &[z(1, "name"), z(2, "protocol"), k(3, "port"), z(4, "targetPort"), z(5, "nodePort"), k(6, "appProtocol")]),
    ("ServiceSpec", &[
        z(1, "ports"), z(2, "selector"), z(3, "clusterIP"), z(4, "type"), z(5, "externalIPs"), z(7, "sessionAffinity"),
        z(8, "loadBalancerIP"), z(9, "loadBalancerSourceRanges"), z(10, "externalName"), z(11, "externalTrafficPolicy"),
        z(12, "healthCheckNodePort"), z(13, "publishNotReadyAddresses"), k(14, "sessionAffinityConfig"),
        k(17, "ipFamilyPolicy"), z(18, "clusterIPs"), z(19, "ipFamilies"), k(20, "allocateLoadBalancerNodePorts"),
        k(21, "loadBalancerClass"), k(22, "internalTrafficPolicy"), k(23, "trafficDistribution"),
    ]),
    ("ServiceStatus", &[z(1, "loadBalancer"), z(2, "conditions")]),
    ("SessionAffinityConfig", &[k(1, "clientIP")]),
    ("SleepAction", &[k(1, "seconds")]),
    ("StatefulSet", &[z(1, "metadata"), z(2, "spec"), z(3, "status")]),
    ("StatefulSetCondition", &[k(1, "type"), k(2, "status"), z(3, "lastTransitionTime"), z(4, "reason"), z(5, "message")]),
    ("StatefulSetOrdinals", &[k(1, "start")]),
    ("StatefulSetPersistentVolumeClaimRetentionPolicy", &[z(1, "whenDeleted"), z(2, "whenScaled")]),
    ("StatefulSetSpec", &[
        k(1, "replicas"), k(2, "selector"), k(3, "template"), z(4, "volumeClaimTemplates"), k(5, "serviceName"),
        z(6, "podManagementPolicy"), z(7, "updateStrategy"), k(8, "revisionHistoryLimit"), z(9, "minReadySeconds"),
        k(10, "persistentVolumeClaimRetentionPolicy"), k(11, "ordinals"),
    ]),
    ("StatefulSetStatus", &[
        z(1, "observedGeneration"), k(2, "replicas"), z(3, "readyReplicas"), z(4, "currentReplicas"), z(5, "updatedReplicas"),
        z(6, "currentRevision"), z(7, "updateRevision"), k(9, "collisionCount"), z(10, "conditions"),
        k(11, "availableReplicas"),
    ]),
    ("StatefulSetUpdateStrategy", &[z(1, "type"), k(2, "rollingUpdate")]),
    ("StorageOSVolumeSource", &[
        z(1, "volumeName"), z(2, "volumeNamespace"), z(3, "fsType"), z(4, "readOnly"), k(5, "secretRef"),
    ]),
    ("SubjectAccessReviewStatus", &[k(1, "allowed"), z(2, "reason"), z(3, "evaluationError"), z(4, "denied")]),
    ("SubjectRulesReviewStatus", &[
        k(1, "resourceRules"), k(2, "nonResourceRules"), k(3, "incomplete"), z(4, "evaluationError"),
    ]),
    ("SuccessPolicy", &[k(1, "rules")]),
    ("SuccessPolicyRule", &[k(1, "succeededIndexes"), k(2, "succeededCount")]),
    ("Sysctl", &[k(1, "name"), k(2, "value")]),
    ("TCPSocketAction", &[k(1, "port"), z(2, "host")]),
    ("Toleration", &[z(1, "key"), z(2, "operator"), z(3, "value"), z(4, "effect"), k(5, "tolerationSeconds")]),
    ("TopologySpreadConstraint", &[
        k(1, "maxSkew"), k(2, "topologyKey"), k(3, "whenUnsatisfiable"), k(4, "labelSelector"), k(5, "minDomains"),
        k(6, "nodeAffinityPolicy"), k(7, "nodeTaintsPolicy"), z(8, "matchLabelKeys"),
    ]),
    ("TypedLocalObjectReference", &[k(1, "apiGroup"), k(2, "kind"), k(3, "name")]),
    ("TypedObjectReference", &[k(1, "apiGroup"), k(2, "kind"), k(3, "name"), k(4, "namespace")]),
    ("UncountedTerminatedPods", &[z(1, "succeeded"), z(2, "failed")]),
    ("UserInfo", &[z(1, "username"), z(2, "uid"), z(3, "groups"), z(4, "extra")]),
    ("Volume", &[k(1, "name"), i(2, "VolumeSource")]),
    ("VolumeDevice", &[k(1, "name"), k(2, "devicePath")]),
    ("VolumeMount", &[
        k(1, "name"), z(2, "readOnly"), k(3, "mountPath"), z(4, "subPath"), k(5, "mountPropagation"), z(6, "subPathExpr"),
        k(7, "recursiveReadOnly"),
    ]),
    ("VolumeMountStatus", &[k(1, "name"), k(2, "mountPath"), z(3, "readOnly"), k(4, "recursiveReadOnly")]),
    ("VolumeProjection", &[
        k(1, "secret"), k(2, "downwardAPI"), k(3, "configMap"), k(4, "serviceAccountToken"), k(5, "clusterTrustBundle"),
        k(6, "podCertificate"),
    ]),
    ("VolumeResourceRequirements", &[z(1, "limits"), z(2, "requests")]),
    ("VolumeSource", &[
        k(1, "hostPath"), k(2, "emptyDir"), k(3, "gcePersistentDisk"), k(4, "awsElasticBlockStore"), k(5, "gitRepo"),
        k(6, "secret"), k(7, "nfs"), k(8, "iscsi"), k(9, "glusterfs"), k(10, "persistentVolumeClaim"), k(11, "rbd"),
        k(12, "flexVolume"), k(13, "cinder"), k(14, "cephfs"), k(15, "flocker"), k(16, "downwardAPI"), k(17, "fc"),
        k(18, "azureFile"), k(19, "configMap"), k(20, "vsphereVolume"), k(21, "quobyte"), k(22, "azureDisk"),
        k(23, "photonPersistentDisk"), k(24, "portworxVolume"), k(25, "scaleIO"), k(26, "projected"), k(27, "storageos"),
        k(28, "csi"), k(29, "ephemeral"), k(30, "image"),
    ]),
    ("VsphereVirtualDiskVolumeSource", &[
        k(1, "volumePath"), z(2, "fsType"), z(3, "storagePolicyName"), z(4, "storagePolicyID"),
    ]),
    ("WeightedPodAffinityTerm", &[k(1, "weight"), k(2, "podAffinityTerm")]),
    ("WindowsSecurityContextOptions", &[
        k(1, "gmsaCredentialSpecName"), k(2, "gmsaCredentialSpec"), k(3, "runAsUserName"), k(4, "hostProcess"),
    ]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Struct, Type, table};
    use std::collections::BTreeSet;

    /// JSON names of a message's fields, with those of inlined messages.
    fn names(message: &str) -> Vec<&'static str> {
        let names = |field: &Number| match field.form {
            Form::Kept | Form::Elided => vec![field.name],
            Form::Inline => names(field.name),
        };
        numbers_of(message).iter().flat_map(names).collect()
    }

    fn check(structure: &'static Struct, seen: &mut BTreeSet<&'static str>) {
        if !seen.insert(structure.name) {
            return;
        }
        let numbers: BTreeSet<u32> = numbers_of(structure.name).iter().map(|field| field.number).collect();
        assert_eq!(numbers.len(), numbers_of(structure.name).len(), "{}", structure.name);
        let known: BTreeSet<&str> = names(structure.name).into_iter().collect();
        // They are those of the envelope where the message has none.
        let is_type = |name: &str| matches!(name, "apiVersion" | "kind");
        for field in structure.fields {
            assert!(known.contains(field.name) || is_type(field.name), "{}.{} has no number", structure.name, field.name);
            if let Some(inner) = field.ty.structure() {
                check(inner, seen);
            }
        }
        for name in known {
            assert!(structure.field(name).is_some(), "{} has no {name}", structure.name);
        }
    }

    #[test]
    fn every_field_has_a_number() {
        let mut seen = BTreeSet::new();
        for kind in crate::kind::names().filter_map(crate::kind::kind_named) {
            check(kind.structure, &mut seen);
        }
        let reviews = [&table::SELF_SUBJECT_ACCESS_REVIEW, &table::SELF_SUBJECT_RULES_REVIEW, &table::SELF_SUBJECT_REVIEW];
        for structure in reviews.into_iter().chain([&table::EVICTION, &table::SCALE, &table::DELETE_OPTIONS]) {
            check(structure, &mut seen);
        }
        assert!(matches!(table::POD.field("spec").map(|field| &field.ty), Some(Type::Object(_))));
        assert!(NUMBERS.is_sorted_by_key(|(name, _)| *name));
    }
}

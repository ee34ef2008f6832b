//! The table itself. A field that refuses or ignores stands for all that is below it.

use super::Support::{self, Honoured, Ignored, Partly, Refused};
use super::{Section, TABLE, judge};
use std::collections::HashSet;
use std::sync::LazyLock;

/// Whether fields of the object at `pattern` have entries of their own; a map of labels has not.
pub(super) fn has_fields(pattern: &str) -> bool {
    static PARENTS: LazyLock<HashSet<&str>> =
        LazyLock::new(|| TABLE.keys().filter_map(|field| field.rsplit_once('.')).map(|(parent, _)| parent).collect());
    PARENTS.contains(pattern)
}

const YES: Support = Honoured("");
const LATER: Support = refused("not supported yet", "");
const WRITTEN_BY_A_SERVER: Support = ignored("a server writes this");
const NOT_SCHEDULED: Support = ignored_unless(
    "nothing is scheduled here, the pod runs on the host that its manifest lies on",
    &["{}", "\"default-scheduler\""],
);
const NOT_WINDOWS: Support = ignored("this host runs Linux");
const NO_CLUSTER_STORAGE: Support = refused("needs a cluster", "mount it on the host and use a hostPath volume");
const NO_OLD_STORAGE: Support = refused("Kubernetes has removed this type", "mount it on the host and use a hostPath volume");
const NO_SELINUX: Support = refused("SELinux is not supported", "");
const APPARMOR_TYPE: Support =
    Partly { note: "`Unconfined`, `Localhost`; podstead brings no profile for `RuntimeDefault`", judge: judge::apparmor_type };
const LOCALHOST_APPARMOR: Support = Honoured("the name of a profile that is loaded on the host");
const LOCALHOST_SECCOMP: Support = Honoured("a file below podstead's directory of seccomp profiles");

const fn ignored(reason: &'static str) -> Support {
    Ignored { reason, silent: &[] }
}

const fn ignored_unless(reason: &'static str, silent: &'static [&'static str]) -> Support {
    Ignored { reason, silent }
}

const fn refused(reason: &'static str, instead: &'static str) -> Support {
    Refused { reason, instead }
}

/// Every field of a Pod.
pub(super) const SECTIONS: &[Section] = &[
    Section { title: "Pod", places: &[""], fields: POD },
    Section { title: "Metadata", places: &["metadata"], fields: METADATA },
    Section { title: "Pod spec", places: &["spec"], fields: SPEC },
    Section { title: "Security context of the pod", places: &["spec.securityContext"], fields: POD_SECURITY },
    Section { title: "Volumes", places: &["spec.volumes[]"], fields: VOLUME },
    Section { title: "Containers and init containers", places: &["spec.containers[]", "spec.initContainers[]"], fields: CONTAINER },
    Section {
        title: "Security context of a container",
        places: &["spec.containers[].securityContext", "spec.initContainers[].securityContext"],
        fields: CONTAINER_SECURITY,
    },
    Section { title: "Containers only", places: &["spec.containers[]"], fields: MAIN_CONTAINER },
    Section { title: "Init containers only", places: &["spec.initContainers[]"], fields: INIT_CONTAINER },
];

const POD: &[(&str, Support)] = &[
    ("metadata", YES),
    ("spec", YES),
    ("status", ignored_unless("podstead observes the status itself", &["{}", "{\"phase\":\"Pending\"}"])),
];

const METADATA: &[(&str, Support)] = &[
    (
        "annotations",
        Partly {
            note: "`cdi.k8s.io/*` name devices of the host; `kubernetes.io/config.*` are podstead's own; the seccomp annotations of Kubernetes before 1.27 are refused",
            judge: judge::annotations,
        },
    ),
    ("creationTimestamp", WRITTEN_BY_A_SERVER),
    ("deletionGracePeriodSeconds", WRITTEN_BY_A_SERVER),
    ("deletionTimestamp", WRITTEN_BY_A_SERVER),
    ("finalizers", ignored("a pod goes when its manifest goes")),
    ("generateName", ignored("a static pod has the name that is written")),
    ("generation", WRITTEN_BY_A_SERVER),
    ("labels", YES),
    ("managedFields", WRITTEN_BY_A_SERVER),
    ("name", Honoured("the pod is called `<name>-<node>`")),
    ("namespace", Honoured("`default` if it is left out; namespaces need not exist")),
    ("ownerReferences", ignored("the manifest is the pod's only owner")),
    ("resourceVersion", WRITTEN_BY_A_SERVER),
    ("selfLink", WRITTEN_BY_A_SERVER),
    ("uid", Honoured("kept if it is written; else podstead gives the pod one")),
];

const SPEC: &[(&str, Support)] = &[
    ("activeDeadlineSeconds", YES),
    ("affinity", NOT_SCHEDULED),
    ("automountServiceAccountToken", Partly { note: "`false`; there are no tokens", judge: judge::automount }),
    ("containers", YES),
    ("dnsConfig", YES),
    ("dnsConfig.nameservers", YES),
    ("dnsConfig.options", YES),
    ("dnsConfig.options[].name", YES),
    ("dnsConfig.options[].value", YES),
    ("dnsConfig.searches", YES),
    ("dnsPolicy", Honoured("without name servers of a cluster, `ClusterFirst` is `Default`: the host's")),
    ("enableServiceLinks", ignored_unless("there are no services", &["true", "false"])),
    ("ephemeralContainers", refused("a manifest cannot have them", "use podstead exec")),
    ("hostAliases", YES),
    ("hostAliases[].hostnames", YES),
    ("hostAliases[].ip", YES),
    ("hostIPC", YES),
    ("hostNetwork", YES),
    ("hostPID", YES),
    ("hostUsers", Partly { note: "`true`", judge: judge::host_users }),
    ("hostname", YES),
    ("hostnameOverride", YES),
    ("imagePullSecrets", refused("not supported yet", "give the registry's credentials in podstead's configuration")),
    ("initContainers", YES),
    ("nodeName", Partly { note: "set to this host's name", judge: judge::node_name }),
    ("nodeSelector", NOT_SCHEDULED),
    ("os", YES),
    ("os.name", Partly { note: "`linux`", judge: judge::os }),
    ("overhead", refused("only a runtime class has overhead", "add it to the requests of a container")),
    ("preemptionPolicy", ignored_unless("pods do not displace each other here", &["\"PreemptLowerPriority\""])),
    ("priority", ignored_unless("pods do not displace each other here", &["0"])),
    ("priorityClassName", Partly { note: "`system-node-critical` protects from the OOM killer", judge: judge::priority_class }),
    ("readinessGates", ignored("nothing sets such conditions here, and the pod is ready without them")),
    ("resourceClaims", refused("dynamic resource allocation needs a cluster", "name the device by a CDI annotation of the pod")),
    ("resources", Honoured("its limits hold for containers without some of their own")),
    ("resources.claims", refused("dynamic resource allocation needs a cluster", "annotate the pod with the names of CDI devices")),
    ("resources.limits", Honoured("`cpu`, `memory`, `hugepages-*`")),
    ("resources.requests", Honoured("`cpu`, `memory`, `hugepages-*`")),
    ("restartPolicy", YES),
    ("runtimeClassName", refused("there is one runtime", "leave it out")),
    ("schedulerName", NOT_SCHEDULED),
    ("schedulingGates", refused("a static pod cannot wait for a scheduler", "leave it out")),
    ("securityContext", YES),
    ("serviceAccount", Partly { note: "`default`, which has no token", judge: judge::service_account }),
    ("serviceAccountName", Partly { note: "`default`, which has no token", judge: judge::service_account }),
    ("setHostnameAsFQDN", YES),
    ("shareProcessNamespace", YES),
    ("subdomain", YES),
    ("terminationGracePeriodSeconds", YES),
    (
        "tolerations",
        // What admission adds to every static pod is nobody's wish.
        ignored_unless(
            "the host has no taints, and a static pod tolerates all that evict",
            &["[{\"effect\":\"NoExecute\",\"operator\":\"Exists\"}]"],
        ),
    ),
    ("topologySpreadConstraints", NOT_SCHEDULED),
    ("volumes", YES),
];

const POD_SECURITY: &[(&str, Support)] = &[
    ("appArmorProfile", YES),
    ("appArmorProfile.localhostProfile", LOCALHOST_APPARMOR),
    ("appArmorProfile.type", APPARMOR_TYPE),
    (
        "fsGroup",
        Honoured("emptyDir and persistent volumes belong to the group; a hostPath volume keeps its owner, as in Kubernetes"),
    ),
    ("fsGroupChangePolicy", Honoured("for persistent volumes")),
    ("runAsGroup", YES),
    ("runAsNonRoot", YES),
    ("runAsUser", YES),
    ("seLinuxChangePolicy", ignored("SELinux is not supported")),
    ("seLinuxOptions", NO_SELINUX),
    ("seccompProfile", YES),
    ("seccompProfile.localhostProfile", LOCALHOST_SECCOMP),
    ("seccompProfile.type", Honoured("`RuntimeDefault` if it is left out")),
    ("supplementalGroups", YES),
    ("supplementalGroupsPolicy", YES),
    ("sysctls", YES),
    ("sysctls[].name", Partly { note: "the sysctls that Kubernetes calls safe", judge: judge::sysctl }),
    ("sysctls[].value", YES),
    ("windowsOptions", NOT_WINDOWS),
];

const VOLUME: &[(&str, Support)] = &[
    ("awsElasticBlockStore", NO_CLUSTER_STORAGE),
    ("azureDisk", NO_CLUSTER_STORAGE),
    ("azureFile", NO_CLUSTER_STORAGE),
    ("cephfs", NO_OLD_STORAGE),
    ("cinder", NO_CLUSTER_STORAGE),
    ("configMap", Honoured("in memory; a change of the object changes all files at once, without a restart")),
    ("configMap.defaultMode", YES),
    ("configMap.items", YES),
    ("configMap.items[].key", YES),
    ("configMap.items[].mode", YES),
    ("configMap.items[].path", YES),
    ("configMap.name", YES),
    ("configMap.optional", YES),
    ("csi", NO_CLUSTER_STORAGE),
    ("downwardAPI", Honoured("an edit of labels or annotations changes all files at once, without a restart")),
    ("downwardAPI.defaultMode", YES),
    ("downwardAPI.items", YES),
    ("downwardAPI.items[].fieldRef", YES),
    ("downwardAPI.items[].fieldRef.apiVersion", YES),
    ("downwardAPI.items[].fieldRef.fieldPath", YES),
    ("downwardAPI.items[].mode", YES),
    ("downwardAPI.items[].path", YES),
    ("downwardAPI.items[].resourceFieldRef", YES),
    ("downwardAPI.items[].resourceFieldRef.containerName", YES),
    ("downwardAPI.items[].resourceFieldRef.divisor", YES),
    ("downwardAPI.items[].resourceFieldRef.resource", YES),
    ("emptyDir", YES),
    ("emptyDir.medium", Honoured("disk, `Memory`, `HugePages` or `HugePages-<size>`")),
    ("emptyDir.sizeLimit", Honoured("in memory the kernel limits; on disk the pod is evicted when it has used more")),
    ("ephemeral", NO_CLUSTER_STORAGE),
    ("fc", refused("not supported", "mount it on the host and use a hostPath volume")),
    ("flexVolume", refused("not supported", "mount it on the host and use a hostPath volume")),
    ("flocker", NO_OLD_STORAGE),
    ("gcePersistentDisk", NO_CLUSTER_STORAGE),
    ("gitRepo", refused("Kubernetes has disabled this type", "clone in an init container into an emptyDir volume")),
    ("glusterfs", NO_OLD_STORAGE),
    ("hostPath", YES),
    ("hostPath.path", YES),
    ("hostPath.type", YES),
    ("image", LATER),
    ("iscsi", refused("not supported", "mount it on the host and use a hostPath volume")),
    ("name", YES),
    ("nfs", refused("not supported", "mount it on the host and use a hostPath volume")),
    ("persistentVolumeClaim", Honoured("a directory of this host that outlives the pod")),
    ("persistentVolumeClaim.claimName", YES),
    ("persistentVolumeClaim.readOnly", YES),
    ("photonPersistentDisk", NO_OLD_STORAGE),
    ("portworxVolume", NO_CLUSTER_STORAGE),
    ("projected", Honoured("in memory; a change of a source changes all files at once, without a restart")),
    ("projected.defaultMode", YES),
    ("projected.sources", YES),
    ("projected.sources[].clusterTrustBundle", refused("needs a cluster", "put the certificates into a ConfigMap")),
    ("projected.sources[].configMap", YES),
    ("projected.sources[].configMap.items", YES),
    ("projected.sources[].configMap.items[].key", YES),
    ("projected.sources[].configMap.items[].mode", YES),
    ("projected.sources[].configMap.items[].path", YES),
    ("projected.sources[].configMap.name", YES),
    ("projected.sources[].configMap.optional", YES),
    ("projected.sources[].downwardAPI", YES),
    ("projected.sources[].downwardAPI.items", YES),
    ("projected.sources[].downwardAPI.items[].fieldRef", YES),
    ("projected.sources[].downwardAPI.items[].fieldRef.apiVersion", YES),
    ("projected.sources[].downwardAPI.items[].fieldRef.fieldPath", YES),
    ("projected.sources[].downwardAPI.items[].mode", YES),
    ("projected.sources[].downwardAPI.items[].path", YES),
    ("projected.sources[].downwardAPI.items[].resourceFieldRef", YES),
    ("projected.sources[].downwardAPI.items[].resourceFieldRef.containerName", YES),
    ("projected.sources[].downwardAPI.items[].resourceFieldRef.divisor", YES),
    ("projected.sources[].downwardAPI.items[].resourceFieldRef.resource", YES),
    ("projected.sources[].podCertificate", refused("needs a cluster", "put the certificate into a Secret")),
    ("projected.sources[].secret", YES),
    ("projected.sources[].secret.items", YES),
    ("projected.sources[].secret.items[].key", YES),
    ("projected.sources[].secret.items[].mode", YES),
    ("projected.sources[].secret.items[].path", YES),
    ("projected.sources[].secret.name", YES),
    ("projected.sources[].secret.optional", YES),
    ("projected.sources[].serviceAccountToken", refused("no API server issues tokens", "put credentials into a Secret")),
    ("quobyte", NO_OLD_STORAGE),
    ("rbd", NO_OLD_STORAGE),
    ("scaleIO", NO_OLD_STORAGE),
    ("secret", Honoured("in memory; a change of the object changes all files at once, without a restart")),
    ("secret.defaultMode", YES),
    ("secret.items", YES),
    ("secret.items[].key", YES),
    ("secret.items[].mode", YES),
    ("secret.items[].path", YES),
    ("secret.optional", YES),
    ("secret.secretName", YES),
    ("storageos", NO_OLD_STORAGE),
    ("vsphereVolume", NO_CLUSTER_STORAGE),
];

const CONTAINER: &[(&str, Support)] = &[
    ("args", YES),
    ("command", YES),
    ("env", YES),
    ("env[].name", YES),
    ("env[].value", Honoured("`$(NAME)` is replaced by variables declared before it")),
    ("env[].valueFrom", YES),
    ("env[].valueFrom.configMapKeyRef", Honoured("a change of the value restarts the container")),
    ("env[].valueFrom.configMapKeyRef.key", YES),
    ("env[].valueFrom.configMapKeyRef.name", YES),
    ("env[].valueFrom.configMapKeyRef.optional", YES),
    ("env[].valueFrom.fieldRef", YES),
    ("env[].valueFrom.fieldRef.apiVersion", YES),
    ("env[].valueFrom.fieldRef.fieldPath", YES),
    ("env[].valueFrom.fileKeyRef", Honoured("a file that an init container wrote; read when the container starts")),
    ("env[].valueFrom.fileKeyRef.key", YES),
    ("env[].valueFrom.fileKeyRef.optional", YES),
    ("env[].valueFrom.fileKeyRef.path", YES),
    ("env[].valueFrom.fileKeyRef.volumeName", YES),
    ("env[].valueFrom.resourceFieldRef", YES),
    ("env[].valueFrom.resourceFieldRef.containerName", YES),
    ("env[].valueFrom.resourceFieldRef.divisor", YES),
    ("env[].valueFrom.resourceFieldRef.resource", YES),
    ("env[].valueFrom.secretKeyRef", Honoured("a change of the value restarts the container")),
    ("env[].valueFrom.secretKeyRef.key", YES),
    ("env[].valueFrom.secretKeyRef.name", YES),
    ("env[].valueFrom.secretKeyRef.optional", YES),
    ("envFrom", Honoured("a change of the object restarts the container")),
    ("envFrom[].configMapRef", YES),
    ("envFrom[].configMapRef.name", YES),
    ("envFrom[].configMapRef.optional", YES),
    ("envFrom[].prefix", YES),
    ("envFrom[].secretRef", YES),
    ("envFrom[].secretRef.name", YES),
    ("envFrom[].secretRef.optional", YES),
    ("image", YES),
    ("imagePullPolicy", Honoured("with `Always`, an image that is present is used when its registry cannot be reached")),
    ("lifecycle", YES),
    ("lifecycle.postStart", LATER),
    ("lifecycle.preStop", LATER),
    ("lifecycle.stopSignal", YES),
    ("livenessProbe", refused("not supported yet", "let the program end when it cannot go on; it is restarted then")),
    ("name", YES),
    ("ports", Honoured("they inform")),
    ("ports[].containerPort", YES),
    ("ports[].hostIP", YES),
    ("ports[].hostPort", Honoured("a pod whose port another pod or the host has waits; `[::1]` leads to no pod")),
    ("ports[].name", YES),
    ("ports[].protocol", YES),
    ("readinessProbe", refused("not supported yet", "leave it out; the container is ready when it runs")),
    ("resizePolicy", Honoured("cpu and memory of a running container change without a restart unless it says `RestartContainer`")),
    ("resizePolicy[].resourceName", YES),
    ("resizePolicy[].restartPolicy", YES),
    ("resources", YES),
    ("resources.claims", refused("dynamic resource allocation needs a cluster", "name the device by a CDI annotation of the pod")),
    ("resources.limits", Partly { note: "`cpu`, `memory`, `hugepages-*`; `ephemeral-storage` by eviction", judge: judge::amounts }),
    (
        "resources.requests",
        Partly { note: "`cpu`, `memory`, `hugepages-*`; `ephemeral-storage` reserves nothing", judge: judge::amounts },
    ),
    ("restartPolicyRules", YES),
    ("restartPolicyRules[].action", Honoured("`Restart`, `RestartAllContainers`")),
    ("restartPolicyRules[].exitCodes", YES),
    ("restartPolicyRules[].exitCodes.operator", YES),
    ("restartPolicyRules[].exitCodes.values", YES),
    ("securityContext", YES),
    ("startupProbe", refused("not supported yet", "leave it out")),
    ("stdin", YES),
    ("stdinOnce", YES),
    ("terminationMessagePath", YES),
    ("terminationMessagePolicy", YES),
    ("tty", YES),
    (
        "volumeDevices",
        refused("raw block devices are not supported", "mount the device with a hostPath volume of type BlockDevice"),
    ),
    ("volumeMounts", YES),
    ("volumeMounts[].mountPath", YES),
    ("volumeMounts[].mountPropagation", YES),
    ("volumeMounts[].name", YES),
    ("volumeMounts[].readOnly", YES),
    ("volumeMounts[].recursiveReadOnly", YES),
    ("volumeMounts[].subPath", YES),
    ("volumeMounts[].subPathExpr", YES),
    ("workingDir", YES),
];

const CONTAINER_SECURITY: &[(&str, Support)] = &[
    ("allowPrivilegeEscalation", YES),
    ("appArmorProfile", YES),
    ("appArmorProfile.localhostProfile", LOCALHOST_APPARMOR),
    ("appArmorProfile.type", APPARMOR_TYPE),
    ("capabilities", YES),
    ("capabilities.add", YES),
    ("capabilities.drop", YES),
    ("privileged", YES),
    ("procMount", Honoured("`Unmasked` needs `hostUsers: false`, as in Kubernetes")),
    ("readOnlyRootFilesystem", YES),
    ("runAsGroup", YES),
    ("runAsNonRoot", YES),
    ("runAsUser", YES),
    ("seLinuxOptions", NO_SELINUX),
    ("seccompProfile", YES),
    ("seccompProfile.localhostProfile", LOCALHOST_SECCOMP),
    ("seccompProfile.type", Honoured("the pod's if it is left out")),
    ("windowsOptions", NOT_WINDOWS),
];

const MAIN_CONTAINER: &[(&str, Support)] = &[("restartPolicy", Honoured("goes before the pod's"))];

const INIT_CONTAINER: &[(&str, Support)] =
    &[("restartPolicy", Honoured("`Always` makes it a sidecar; `OnFailure` and `Never` go before the pod's"))];

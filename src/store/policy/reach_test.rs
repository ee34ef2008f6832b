//! Classifies every field that podstead honours: which of them reach the host, and by which key of `allow` a source may use them. A field that
//! the table of supported fields has and this one has not fails the test, and so does a key that does not refuse its field.

use super::tests::{checked_by, violations};
use podstead_config::{Config, HostFacts};
use podstead_pod::testing::{fields_with_effect, workload_fields_with_effect};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The reach of a field beyond the pod.
#[derive(Clone, Copy, Debug)]
enum Reach {
    /// `allow.<key>` decides, and refuses this pod: fields of `metadata`, of the spec, of the container.
    Key(&'static str, Sample),
    /// Part of a field that `allow.<key>` decides on.
    PartOf(&'static str),
    /// It stays within the pod.
    Own(&'static str),
}
use Reach::{Key, Own, PartOf};

/// A pod that uses a field: the place where the text belongs, and the text.
#[derive(Clone, Copy, Debug)]
enum Sample {
    Metadata(&'static str),
    Spec(&'static str),
    Container(&'static str),
}
use Sample::{Container, Metadata, Spec};

const CONTAINERS: &[&str] = &["spec.containers[]", "spec.initContainers[]"];
const PROBES: &[&str] = &["livenessProbe", "readinessProbe", "startupProbe"];
const HOOKS: &[&str] = &["lifecycle.postStart", "lifecycle.preStop"];

/// Reason why a field of this kind affects nothing outside the pod.
const STRUCTURE: &str = "what counts are the fields below it";
const NAMES: &str = "names of the pod; sources are kept apart by namespace";
const INSIDE: &str = "processes in the container";
const OWN_FILES: &str = "files of the pod alone";
const OBJECTS: &str = "objects of the source's namespaces; what is shared between sources is decided where references are followed";
const LIMITS: &str = "a part of the host that every pod has; require.limits bounds it";
const TIMING: &str = "when the pod's own containers are asked, started and stopped";
const ASKED: &str = "asked of the pod itself";

/// Fields of the pod, the spec and its security context, and of volumes.
const POD: &[(&str, Reach)] = &[
    ("metadata", Own(STRUCTURE)),
    ("metadata.annotations", Key("devices", Metadata("annotations: {cdi.k8s.io/a: v.org/radio=0}"))),
    ("metadata.labels", Own(NAMES)),
    ("metadata.name", Own(NAMES)),
    ("metadata.namespace", Own("`namespaces` restricts it")),
    ("metadata.uid", Own("a UID that another pod has is given to nobody twice")),
    ("spec", Own(STRUCTURE)),
    ("spec.activeDeadlineSeconds", Own(TIMING)),
    ("spec.automountServiceAccountToken", Own("there are no tokens")),
    ("spec.containers", Own(STRUCTURE)),
    ("spec.dnsPolicy", Own("the pod's resolv.conf, which names the host's resolvers at most")),
    ("spec.enableServiceLinks", Own("variables with the addresses of Services")),
    ("spec.hostIPC", Key("hostIPC", Spec("hostIPC: true"))),
    ("spec.hostNetwork", Key("hostNetwork", Spec("hostNetwork: true"))),
    ("spec.hostPID", Key("hostPID", Spec("hostPID: true"))),
    ("spec.hostUsers", Own("takes the host's users away; require.userNamespace demands it")),
    ("spec.hostname", Own(NAMES)),
    ("spec.hostnameOverride", Own(NAMES)),
    ("spec.imagePullSecrets", Own(OBJECTS)),
    ("spec.imagePullSecrets[].name", Own(OBJECTS)),
    ("spec.initContainers", Own(STRUCTURE)),
    ("spec.nodeName", Own("another host's name has no effect")),
    ("spec.os", Own(STRUCTURE)),
    ("spec.os.name", Own("linux, or refused")),
    ("spec.priorityClassName", Key("priorityClasses", Spec("priorityClassName: system-node-critical"))),
    ("spec.resources", Own(LIMITS)),
    ("spec.resources.limits", Own(LIMITS)),
    ("spec.resources.requests", Own(LIMITS)),
    ("spec.restartPolicy", Own(TIMING)),
    ("spec.securityContext", Own(STRUCTURE)),
    ("spec.securityContext.appArmorProfile", Own(STRUCTURE)),
    (
        "spec.securityContext.appArmorProfile.localhostProfile",
        Key("appArmorProfiles", Spec("securityContext: {appArmorProfile: {type: Localhost, localhostProfile: a}}")),
    ),
    (
        "spec.securityContext.appArmorProfile.type",
        Key("unconfined", Spec("securityContext: {appArmorProfile: {type: Unconfined}}")),
    ),
    ("spec.securityContext.fsGroup", Own("owner of the pod's volumes; none of those of the host's paths")),
    ("spec.securityContext.fsGroupChangePolicy", Own("owner of the pod's volumes")),
    ("spec.securityContext.runAsGroup", Own(INSIDE)),
    ("spec.securityContext.runAsNonRoot", Own(INSIDE)),
    ("spec.securityContext.runAsUser", Own(INSIDE)),
    ("spec.securityContext.seccompProfile", Own(STRUCTURE)),
    (
        "spec.securityContext.seccompProfile.localhostProfile",
        Key("seccompProfiles", Spec("securityContext: {seccompProfile: {type: Localhost, localhostProfile: a}}")),
    ),
    ("spec.securityContext.seccompProfile.type", Key("unconfined", Spec("securityContext: {seccompProfile: {type: Unconfined}}"))),
    ("spec.securityContext.supplementalGroups", Own(INSIDE)),
    ("spec.securityContext.supplementalGroupsPolicy", Own(INSIDE)),
    ("spec.securityContext.sysctls", Own(STRUCTURE)),
    (
        "spec.securityContext.sysctls[].name",
        Key("sysctls", Spec("securityContext: {sysctls: [{name: net.core.somaxconn, value: '1'}]}")),
    ),
    ("spec.securityContext.sysctls[].value", PartOf("sysctls")),
    ("spec.serviceAccount", Own("default, which has no token")),
    ("spec.serviceAccountName", Own("default, which has no token")),
    ("spec.setHostnameAsFQDN", Own(NAMES)),
    ("spec.shareProcessNamespace", Own("between the pod's own containers")),
    ("spec.subdomain", Own(NAMES)),
    ("spec.terminationGracePeriodSeconds", Own("when the host shuts down, systemd's limit counts")),
    ("spec.volumes", Own(STRUCTURE)),
    ("spec.volumes[].hostPath", Key("hostPaths", Spec("volumes: [{name: v, hostPath: {path: /srv}}]"))),
    ("spec.volumes[].hostPath.path", PartOf("hostPaths")),
    ("spec.volumes[].hostPath.type", PartOf("hostPaths")),
    ("spec.volumes[].image", Own("`images` restricts it")),
    ("spec.volumes[].image.pullPolicy", Own("`images` restricts the image")),
    ("spec.volumes[].image.reference", Own("`images` restricts it")),
    ("spec.volumes[].name", Own(NAMES)),
    ("spec.volumes[].nfs", Key("nfs", Spec("volumes: [{name: v, nfs: {server: nas, path: /srv}}]"))),
    ("spec.volumes[].nfs.path", PartOf("nfs")),
    ("spec.volumes[].nfs.readOnly", PartOf("nfs")),
    ("spec.volumes[].nfs.server", PartOf("nfs")),
    // A pod can only use a claim that is there, and a source can only have one with the key.
    ("spec.volumes[].persistentVolumeClaim", PartOf("persistentVolumes")),
    ("spec.volumes[].persistentVolumeClaim.claimName", PartOf("persistentVolumes")),
    ("spec.volumes[].persistentVolumeClaim.readOnly", PartOf("persistentVolumes")),
];

/// Fields of every container.
const CONTAINER: &[(&str, Reach)] = &[
    ("args", Own(INSIDE)),
    ("command", Own(INSIDE)),
    ("image", Own("`images` restricts it")),
    ("imagePullPolicy", Own("`images` restricts the image")),
    ("lifecycle", Own(STRUCTURE)),
    ("lifecycle.stopSignal", Own(INSIDE)),
    ("name", Own(NAMES)),
    ("ports", Own(STRUCTURE)),
    ("ports[].containerPort", Own("a port of the pod")),
    ("ports[].hostIP", PartOf("hostPorts")),
    ("ports[].hostPort", Key("hostPorts", Container("ports: [{containerPort: 1, hostPort: 1}]"))),
    ("ports[].name", Own(NAMES)),
    ("ports[].protocol", Own("of a port that is allowed or the pod's")),
    ("resources", Own(LIMITS)),
    ("resources.limits", Own(LIMITS)),
    ("resources.requests", Own(LIMITS)),
    ("restartPolicy", Own(TIMING)),
    ("securityContext", Own(STRUCTURE)),
    ("securityContext.allowPrivilegeEscalation", Own("within the capabilities of the container; podSecurity can refuse it")),
    ("securityContext.appArmorProfile", Own(STRUCTURE)),
    (
        "securityContext.appArmorProfile.localhostProfile",
        Key("appArmorProfiles", Container("securityContext: {appArmorProfile: {type: Localhost, localhostProfile: a}}")),
    ),
    (
        "securityContext.appArmorProfile.type",
        Key("unconfined", Container("securityContext: {appArmorProfile: {type: Unconfined}}")),
    ),
    ("securityContext.capabilities", Own(STRUCTURE)),
    ("securityContext.capabilities.add", Key("capabilities", Container("securityContext: {capabilities: {add: [NET_ADMIN]}}"))),
    ("securityContext.capabilities.drop", Own("takes capabilities away")),
    ("securityContext.privileged", Key("privileged", Container("securityContext: {privileged: true}"))),
    ("securityContext.procMount", Key("unconfined", Container("securityContext: {procMount: Unmasked}"))),
    ("securityContext.readOnlyRootFilesystem", Own("takes a right away")),
    ("securityContext.runAsGroup", Own(INSIDE)),
    ("securityContext.runAsNonRoot", Own(INSIDE)),
    ("securityContext.runAsUser", Own(INSIDE)),
    ("securityContext.seccompProfile", Own(STRUCTURE)),
    (
        "securityContext.seccompProfile.localhostProfile",
        Key("seccompProfiles", Container("securityContext: {seccompProfile: {type: Localhost, localhostProfile: a}}")),
    ),
    ("securityContext.seccompProfile.type", Key("unconfined", Container("securityContext: {seccompProfile: {type: Unconfined}}"))),
    ("stdin", Own(INSIDE)),
    ("stdinOnce", Own(INSIDE)),
    ("terminationMessagePath", Own(OWN_FILES)),
    ("terminationMessagePolicy", Own(OWN_FILES)),
    ("tty", Own(INSIDE)),
    ("volumeDevices", Own(STRUCTURE)),
    ("volumeDevices[].devicePath", Own("a path of the container")),
    ("volumeDevices[].name", Own("`hostPaths`, `persistentVolumes` and `devices` restrict the volume")),
    ("volumeMounts", Own(STRUCTURE)),
    ("volumeMounts[].mountPath", Own("a path of the container")),
    (
        "volumeMounts[].mountPropagation",
        Own("`Bidirectional` is for privileged containers; the rest brings mounts below an allowed path"),
    ),
    ("volumeMounts[].name", Own(NAMES)),
    ("volumeMounts[].readOnly", PartOf("hostPaths")),
    ("volumeMounts[].recursiveReadOnly", PartOf("hostPaths")),
    ("volumeMounts[].subPath", Own("resolved beneath the volume")),
    ("volumeMounts[].subPathExpr", Own("resolved beneath the volume")),
    ("workingDir", Own(INSIDE)),
];

/// Fields of each probe.
const PROBE: &[(&str, Reach)] = &[
    ("", Own(STRUCTURE)),
    (".exec", Own(INSIDE)),
    (".exec.command", Own(INSIDE)),
    (".failureThreshold", Own(TIMING)),
    (".grpc", Own(ASKED)),
    (".grpc.port", Own(ASKED)),
    (".grpc.service", Own(ASKED)),
    (".initialDelaySeconds", Own(TIMING)),
    (".periodSeconds", Own(TIMING)),
    (".successThreshold", Own(TIMING)),
    (".tcpSocket", Own(STRUCTURE)),
    (".tcpSocket.host", Key("probeHosts", Container("PLACE: {tcpSocket: {host: 127.0.0.1, port: 1}}"))),
    (".tcpSocket.port", Own("of the pod, or of a host that is allowed")),
    (".terminationGracePeriodSeconds", Own(TIMING)),
    (".timeoutSeconds", Own(TIMING)),
];

/// Fields of each hook.
const HOOK: &[(&str, Reach)] = &[
    ("", Own(STRUCTURE)),
    (".exec", Own(INSIDE)),
    (".exec.command", Own(INSIDE)),
    (".sleep", Own(TIMING)),
    (".sleep.seconds", Own(TIMING)),
];

/// Fields of `httpGet` of each probe and hook.
const HTTP_GET: &[(&str, Reach)] = &[
    (".httpGet", Own("redirects lead to the same host only")),
    (".httpGet.host", Key("probeHosts", Container("PLACE: {httpGet: {host: 127.0.0.1, port: 1}}"))),
    (".httpGet.httpHeaders", Own("told to the pod, or to a host that is allowed")),
    (".httpGet.httpHeaders[].name", Own("told to the pod, or to a host that is allowed")),
    (".httpGet.httpHeaders[].value", Own("told to the pod, or to a host that is allowed")),
    (".httpGet.path", Own("told to the pod, or to a host that is allowed")),
    (".httpGet.port", Own("of the pod, or of a host that is allowed")),
    (".httpGet.scheme", Own("of the pod, or of a host that is allowed")),
];

/// Fields that stand for all that is below them, with the reason: nothing there names anything but the pod and its objects.
const WHOLE: &[(&str, &str)] = &[
    ("spec.dnsConfig", OWN_FILES),
    ("spec.hostAliases", OWN_FILES),
    ("spec.volumes[].configMap", OBJECTS),
    ("spec.volumes[].downwardAPI", OWN_FILES),
    ("spec.volumes[].emptyDir", "room on the host's disk or in its memory; require.limits bounds it"),
    ("spec.volumes[].projected", OBJECTS),
    ("spec.volumes[].secret", OBJECTS),
    ("spec.containers[].env", OBJECTS),
    ("spec.containers[].envFrom", OBJECTS),
    ("spec.containers[].resizePolicy", TIMING),
    ("spec.containers[].restartPolicyRules", TIMING),
    ("spec.initContainers[].env", OBJECTS),
    ("spec.initContainers[].envFrom", OBJECTS),
    ("spec.initContainers[].resizePolicy", TIMING),
    ("spec.initContainers[].restartPolicyRules", TIMING),
];

/// Fields of workloads without their kind, each with the reason why it reaches no further than a Pod does, or the key that decides.
const WORKLOAD: &[(&str, &str)] = &[
    ("metadata", STRUCTURE),
    ("metadata.annotations", "pods do not inherit them"),
    ("metadata.labels", "pods do not inherit them"),
    ("metadata.name", NAMES),
    ("metadata.namespace", "`namespaces` restricts it"),
    ("spec", STRUCTURE),
    ("spec.activeDeadlineSeconds", TIMING),
    ("spec.backoffLimit", TIMING),
    ("spec.backoffLimitPerIndex", TIMING),
    ("spec.completionMode", NAMES),
    ("spec.completions", TIMING),
    ("spec.concurrencyPolicy", TIMING),
    ("spec.failedJobsHistoryLimit", TIMING),
    ("spec.jobTemplate", STRUCTURE),
    ("spec.jobTemplate.metadata", STRUCTURE),
    ("spec.jobTemplate.metadata.annotations", "pods do not inherit them"),
    ("spec.jobTemplate.metadata.labels", "pods do not inherit them"),
    ("spec.jobTemplate.spec", TEMPLATE),
    ("spec.managedBy", "nobody else, or refused"),
    ("spec.manualSelector", SELECTOR),
    ("spec.maxFailedIndexes", TIMING),
    ("spec.minReadySeconds", TIMING),
    ("spec.ordinals", STRUCTURE),
    ("spec.ordinals.start", NAMES),
    ("spec.parallelism", NUMBER),
    ("spec.paused", TIMING),
    ("spec.persistentVolumeClaimRetentionPolicy", CLAIMS),
    ("spec.persistentVolumeClaimRetentionPolicy.whenDeleted", CLAIMS),
    ("spec.persistentVolumeClaimRetentionPolicy.whenScaled", CLAIMS),
    ("spec.podFailurePolicy", TIMING),
    ("spec.podManagementPolicy", TIMING),
    ("spec.podReplacementPolicy", TIMING),
    ("spec.progressDeadlineSeconds", TIMING),
    ("spec.replicas", NUMBER),
    ("spec.revisionHistoryLimit", "at most 100 are kept, whatever is written"),
    ("spec.schedule", TIMING),
    ("spec.selector", SELECTOR),
    ("spec.serviceName", NAMES),
    ("spec.startingDeadlineSeconds", TIMING),
    ("spec.strategy", TIMING),
    ("spec.strategy.rollingUpdate", TIMING),
    ("spec.strategy.rollingUpdate.maxSurge", NUMBER),
    ("spec.strategy.rollingUpdate.maxUnavailable", TIMING),
    ("spec.strategy.type", TIMING),
    ("spec.successPolicy", TIMING),
    ("spec.successfulJobsHistoryLimit", TIMING),
    ("spec.suspend", TIMING),
    ("spec.template", TEMPLATE),
    ("spec.timeZone", TIMING),
    ("spec.ttlSecondsAfterFinished", TIMING),
    ("spec.updateStrategy", TIMING),
    ("spec.updateStrategy.rollingUpdate", TIMING),
    ("spec.updateStrategy.rollingUpdate.maxSurge", NUMBER),
    ("spec.updateStrategy.rollingUpdate.maxUnavailable", TIMING),
    ("spec.updateStrategy.rollingUpdate.partition", TIMING),
    ("spec.updateStrategy.type", TIMING),
    ("spec.volumeClaimTemplates", CLAIMS),
];

const TEMPLATE: &str = "every sample of a Pod is refused in it";
const SELECTOR: &str = "a pod belongs to the workload that made it";
const NUMBER: &str = "at most 500; each pod is allowed what any pod is";
const CLAIMS: &str = "`persistentVolumes` restricts it";

/// Samples of annotations that have keys of their own beside `devices`.
const ANNOTATIONS: &[(&str, &str)] = &[
    ("networks", "annotations: {k8s.v1.cni.cncf.io/networks: plant}"),
    ("networks", "annotations: {v1.multus-cni.io/default-network: plant}"),
    ("appArmorProfiles", "annotations: {container.apparmor.security.beta.kubernetes.io/c: localhost/a}"),
    ("unconfined", "annotations: {container.apparmor.security.beta.kubernetes.io/c: unconfined}"),
];

/// Every classified field with its full path.
fn classified() -> BTreeMap<String, (Reach, String)> {
    let mut all = BTreeMap::new();
    let mut add = |field: String, reach: Reach, place: &str| {
        assert!(all.insert(field.clone(), (reach, place.to_owned())).is_none(), "{field} is classified twice");
    };
    POD.iter().for_each(|(field, reach)| add((*field).to_owned(), *reach, ""));
    for container in CONTAINERS {
        CONTAINER.iter().for_each(|(field, reach)| add(format!("{container}.{field}"), *reach, ""));
        for (places, fields) in [(PROBES, PROBE), (HOOKS, HOOK), (PROBES, HTTP_GET), (HOOKS, HTTP_GET)] {
            for place in places {
                fields.iter().for_each(|(field, reach)| add(format!("{container}.{place}{field}"), *reach, place));
            }
        }
    }
    all
}

fn is_in_whole(field: &str) -> bool {
    WHOLE.iter().any(|(whole, _)| field.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '['])))
}

#[test]
fn every_supported_field_is_classified() {
    let classified = classified();
    let fields: BTreeSet<&str> = fields_with_effect().collect();
    let without: Vec<_> = fields.iter().filter(|field| !classified.contains_key(**field) && !is_in_whole(field)).collect();
    assert!(without.is_empty(), "does it reach the host? {without:#?}");
    let stale: Vec<_> = classified.keys().filter(|field| !fields.contains(field.as_str()) || is_in_whole(field)).collect();
    // Refused for readiness probes, and hooks of type tcpSocket everywhere.
    let stale: Vec<_> =
        stale.into_iter().filter(|field| !field.ends_with("readinessProbe.terminationGracePeriodSeconds")).collect();
    assert!(stale.is_empty(), "these have no effect any more: {stale:#?}");
    for (whole, _) in WHOLE {
        assert!(fields.contains(whole), "{whole} has no effect any more");
    }
}

/// A pod with the sample, in the container that the field belongs to.
fn manifest(field: &str, sample: Sample, place: &str) -> String {
    let (metadata, spec, own) = match sample {
        Metadata(text) => (format!(", {text}"), String::new(), String::new()),
        Spec(text) => (String::new(), format!("{text}, "), String::new()),
        Container(text) => {
            let (hook, place) = place.split_once('.').map_or((None, place), |(parent, hook)| (Some(hook), parent));
            let text = match hook {
                Some(hook) => text.replace("PLACE: {", &format!("{place}: {{{hook}: {{")) + "}",
                None => text.replace("PLACE", place),
            };
            (String::new(), String::new(), format!(", {text}"))
        }
    };
    let (init, main) = if field.starts_with("spec.initContainers") {
        (format!("initContainers: [{{name: i, image: x, restartPolicy: Always{own}}}], "), String::new())
    } else {
        (String::new(), own)
    };
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: a{metadata}}}\nspec: {{{spec}{init}containers: [{{name: c, image: x{main}}}]}}\n"
    )
}

#[test]
fn every_field_that_reaches_the_host_is_refused_unless_its_key_allows_it() {
    let mut samples: Vec<(String, String)> = Vec::new();
    for (field, (reach, place)) in classified() {
        match reach {
            Key(key, sample) => samples.push((key.to_owned(), manifest(&field, sample, &place))),
            PartOf(key) => assert!(is_key(key), "{key}"),
            Own(reason) => assert!(!reason.is_empty()),
        }
    }
    for (key, text) in ANNOTATIONS {
        samples.push(((*key).to_owned(), manifest("metadata.annotations", Metadata(text), "")));
    }
    let of_workloads = samples.iter().flat_map(|(key, text)| workloads_with(text).into_iter().map(move |text| (key.clone(), text)));
    for (key, text) in of_workloads.chain(samples.iter().cloned()) {
        let problems: Vec<String> = checked_by("allow: {}", &text).problems.iter().map(ToString::to_string).collect();
        let names_key = |problem: &String| problem.contains(&format!("permit it with allow.{key} of the source"));
        assert!(problems.iter().any(names_key), "{key} does not refuse\n{text}{problems:#?}");
        assert!(is_key(&key), "{key}");
    }
    let modest = manifest("", Spec("hostUsers: false"), "");
    assert_eq!(violations("{}", &modest), [""; 0]);
}

/// Templates with the content of a Pod's manifest, in each kind of workload.
fn workloads_with(pod: &str) -> Vec<String> {
    let (metadata, spec) = pod.split_once("metadata: {name: a").unwrap().1.split_once("}\nspec: {").unwrap();
    let template = |policy: &str| format!("{{metadata: {{labels: {{l: l}}{metadata}}}, spec: {{{policy}{}}}", spec.trim_end());
    let (lasting, ending) = (template(""), template("restartPolicy: Never, "));
    let object = |version: &str, kind: &str, spec: &str| {
        format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: w}}\nspec: {{{spec}}}\n")
    };
    let apps = format!("selector: {{matchLabels: {{l: l}}}}, template: {lasting}");
    vec![
        object("apps/v1", "Deployment", &apps),
        object("apps/v1", "ReplicaSet", &apps),
        object("apps/v1", "StatefulSet", &apps),
        object("apps/v1", "DaemonSet", &apps),
        object("v1", "ReplicationController", &format!("template: {lasting}")),
        object("batch/v1", "Job", &format!("template: {ending}")),
        object("batch/v1", "CronJob", &format!("schedule: '@daily', jobTemplate: {{spec: {{template: {ending}}}}}")),
    ]
}

#[test]
fn every_field_of_workloads_is_classified() {
    let fields = workload_fields_with_effect();
    let own = |field: &String| field.split_once('.').unwrap().1.to_owned();
    let fields: BTreeSet<String> = fields.iter().map(own).collect();
    let classified: BTreeSet<String> = WORKLOAD.iter().map(|(field, _)| (*field).to_owned()).collect();
    assert_eq!(fields.difference(&classified).collect::<Vec<_>>(), Vec::<&String>::new(), "does it reach the host?");
    assert_eq!(classified.difference(&fields).collect::<Vec<_>>(), Vec::<&String>::new(), "these have no effect any more");
}

#[test]
fn workload_is_no_way_round_a_rule() {
    let claims = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: w}\nspec: {selector: {matchLabels: {l: l}}, template: {metadata: \
                  {labels: {l: l}}, spec: {containers: [{name: c, image: x, volumeMounts: [{name: d, mountPath: /d}]}]}}, volumeClaimTemplates: \
                  [{metadata: {name: d}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}\n";
    assert_eq!(violations("{}", claims), ["4 spec.volumeClaimTemplates[0]"]);
    assert_eq!(violations("{persistentVolumes: true}", claims), [""; 0]);
    let modest = manifest("", Spec("hostUsers: false"), "");
    for text in workloads_with(&modest) {
        assert_eq!(violations("{}", &text), [""; 0], "{text}");
        let elsewhere = text.replace("metadata: {name: w}", "metadata: {name: w, namespace: kube-system}");
        assert_eq!(violations("{namespaces: [default]}", &elsewhere), ["3 metadata.namespace"], "{text}");
        let hidden = text.replace("labels: {l: l}", "namespace: other, labels: {l: l}");
        assert_eq!(checked_by("allow: {namespaces: [default]}", &hidden).accepted[0].key.namespace, "default");
        for rule in [
            "require: {limits: [memory]}",
            "require: {imageDigest: true}",
            "require: {images: [registry.lan/]}",
            "require: {readOnlyRootFilesystem: true}",
            "podSecurity: {level: restricted}",
            "allow: {images: [registry.lan/]}",
        ] {
            let checked = checked_by(rule, &text);
            assert_eq!(checked.accepted, [], "{rule}\n{text}");
            let is_in_template = |problem: &podstead_manifest::Problem| problem.field.contains(".template.spec.");
            assert!(checked.problems.iter().any(is_in_template), "{rule}: {:#?}", checked.problems);
        }
        let open = checked_by("require: {userNamespace: true}", &text.replace("hostUsers: false", "hostUsers: true"));
        assert_eq!(open.accepted, [], "{text}");
    }
}

/// Reports whether `allow` has such a field, of any type.
fn is_key(key: &str) -> bool {
    let text = format!(
        "apiVersion: podstead.dev/v1alpha1\nkind: Config\nsources: [{{name: a, directory: {{path: /a}}, allow: {{{key}: {{no: type}}}}}}]\n"
    );
    let facts = HostFacts { host_name: "edge".into(), executable: None };
    Config::parse(text.as_bytes(), &facts, Path::new("/c")).unwrap_err().to_string().contains("is a mapping, must be")
}

//! Checks of a pod's host ports, networks, probe hosts, profiles, sysctls and priority classes against [`Channels`].

use super::{containers_of, violation};
use k8s_openapi::api::core::v1::{Container, LifecycleHandler, PodSpec};
use podstead_pod::networks::{DEFAULT_NETWORK, NETWORKS, Selection, additional, default_network};
use podstead_pod::security::sysctls;
use podstead_pod::{FieldProblem, Pod, is_safe_sysctl};
use podstead_settings::{Allow, Channels};

/// Annotations that came before the field `appArmorProfile`, by container.
const APPARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";
/// Priority classes of Kubernetes itself begin so.
const SYSTEM_CLASS: &str = "system-";

/// Returns the violations of a pod, defaulted or as written.
pub(crate) fn of_pod(pod: &Pod, allow: &Allow) -> Vec<FieldProblem> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let channels = allow.channels();
    let mut found = Vec::new();
    // A pod on the host's network, if it may be there, needs no other way to ports and services of the host.
    if spec.host_network != Some(true) {
        networks(pod, channels, &mut found);
        for (field, container) in containers_of(pod) {
            ports(container, &field, channels, &mut found);
            hosts(container, &field, channels, &mut found);
        }
    }
    if !allow.unconfined() {
        profiles(pod, spec, channels, &mut found);
    }
    if let Some(class) = spec.priority_class_name.as_deref().filter(|class| class.starts_with(SYSTEM_CLASS))
        && !channels.priority_class(class)
    {
        found.push(violation("spec.priorityClassName", format!("the priority class {class:?}"), "priorityClasses"));
    }
    for (index, (name, _)) in sysctls(pod).iter().enumerate() {
        if !is_safe_sysctl(name) && !channels.sysctl(name) {
            found.push(violation(
                &format!("spec.securityContext.sysctls[{index}].name"),
                format!("the sysctl {name:?}"),
                "sysctls",
            ));
        }
    }
    found
}

/// Networks of CNI plugins that annotations name, and ports of the host that lead there. An annotation that cannot be read is refused by
/// validation.
fn networks(pod: &Pod, channels: &Channels, found: &mut Vec<FieldProblem>) {
    let annotation = |key: &str| pod.metadata.annotations.as_ref()?.get(key).map(String::as_str);
    let of_networks = annotation(NETWORKS).and_then(|text| additional(text).ok()).unwrap_or_default();
    let of_default = annotation(DEFAULT_NETWORK).and_then(|text| default_network(text).ok());
    let selections = of_networks.iter().map(|selection| (NETWORKS, selection));
    for (key, Selection { name, ports, .. }) in selections.chain(of_default.iter().map(|selection| (DEFAULT_NETWORK, selection))) {
        let field = format!("metadata.annotations[{key}]");
        if !channels.network(name) {
            found.push(violation(&field, format!("the network {name:?}"), "networks"));
        }
        for port in ports.iter().filter(|port| !channels.host_port(port.host_port)) {
            found.push(violation(&field, format!("host port {}", port.host_port), "hostPorts"));
        }
    }
}

fn ports(container: &Container, field: &str, channels: &Channels, found: &mut Vec<FieldProblem>) {
    for (index, port) in container.ports.iter().flatten().enumerate() {
        let Some(number) = port.host_port.filter(|number| *number != 0) else { continue };
        if !u16::try_from(number).is_ok_and(|number| channels.host_port(number)) {
            found.push(violation(&format!("{field}.ports[{index}].hostPort"), format!("host port {number}"), "hostPorts"));
        }
    }
}

/// Hosts of probes and hooks: they are connected to from the host's network, where services of the host and of its network listen.
fn hosts(container: &Container, field: &str, channels: &Channels, found: &mut Vec<FieldProblem>) {
    let probes = [
        ("livenessProbe", &container.liveness_probe),
        ("readinessProbe", &container.readiness_probe),
        ("startupProbe", &container.startup_probe),
    ];
    let of_probes = probes.into_iter().flat_map(|(name, probe)| {
        let (http, tcp) = probe.as_ref().map_or((None, None), |probe| (probe.http_get.as_ref(), probe.tcp_socket.as_ref()));
        [
            (format!("{name}.httpGet"), http.and_then(|action| action.host.as_deref())),
            (format!("{name}.tcpSocket"), tcp.and_then(|action| action.host.as_deref())),
        ]
    });
    let lifecycle = container.lifecycle.as_ref();
    let hooks = [
        ("postStart", lifecycle.and_then(|lifecycle| lifecycle.post_start.as_ref())),
        ("preStop", lifecycle.and_then(|lifecycle| lifecycle.pre_stop.as_ref())),
    ];
    let of_hooks = hooks.into_iter().flat_map(|(name, handler)| hosts_of_hook(name, handler));
    for (action, host) in of_probes.chain(of_hooks) {
        let Some(host) = host.filter(|host| !host.is_empty() && !channels.probe_host(host)) else { continue };
        let what = format!("the host {host:?} in a probe or hook");
        found.push(violation(&format!("{field}.{action}.host"), what, "probeHosts"));
    }
}

fn hosts_of_hook<'a>(name: &str, handler: Option<&'a LifecycleHandler>) -> [(String, Option<&'a str>); 2] {
    let http = handler.and_then(|handler| handler.http_get.as_ref()).and_then(|action| action.host.as_deref());
    let tcp = handler.and_then(|handler| handler.tcp_socket.as_ref()).and_then(|action| action.host.as_deref());
    [(format!("lifecycle.{name}.httpGet"), http), (format!("lifecycle.{name}.tcpSocket"), tcp)]
}

/// Profiles of the host that the pod, its containers and its annotations name.
fn profiles(pod: &Pod, spec: &PodSpec, channels: &Channels, found: &mut Vec<FieldProblem>) {
    let of_pod = spec.security_context.as_ref();
    let mut named = vec![(
        "spec.securityContext".to_owned(),
        of_pod.and_then(|context| context.app_armor_profile.as_ref()),
        of_pod.and_then(|context| context.seccomp_profile.as_ref()),
    )];
    for (field, container) in containers_of(pod) {
        let context = container.security_context.as_ref();
        named.push((
            format!("{field}.securityContext"),
            context.and_then(|context| context.app_armor_profile.as_ref()),
            context.and_then(|context| context.seccomp_profile.as_ref()),
        ));
    }
    for (context, apparmor, seccomp) in named {
        let name = apparmor.and_then(|profile| local(&profile.type_, profile.localhost_profile.as_ref()));
        if let Some(name) = name.filter(|name| !channels.app_armor_profile(name)) {
            let field = format!("{context}.appArmorProfile.localhostProfile");
            found.push(violation(&field, format!("the AppArmor profile {name:?} of the host"), "appArmorProfiles"));
        }
        let file = seccomp.and_then(|profile| local(&profile.type_, profile.localhost_profile.as_ref()));
        if let Some(file) = file.filter(|file| !channels.seccomp_profile(file)) {
            let field = format!("{context}.seccompProfile.localhostProfile");
            found.push(violation(&field, format!("the seccomp profile {file:?} of the host"), "seccompProfiles"));
        }
    }
    for (key, value) in pod.metadata.annotations.iter().flatten().filter(|(key, _)| key.starts_with(APPARMOR_ANNOTATION)) {
        if let Some(name) = value.strip_prefix("localhost/").filter(|name| !channels.app_armor_profile(name)) {
            let what = format!("the AppArmor profile {name:?} of the host");
            found.push(violation(&format!("metadata.annotations[{key}]"), what, "appArmorProfiles"));
        }
    }
}

/// The host's profile that is named; `None` for an empty name, which validation refuses.
fn local<'a>(kind: &str, name: Option<&'a String>) -> Option<&'a str> {
    name.map(String::as_str).filter(|name| kind == "Localhost" && !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::tests::violations;

    const POD: &str = "apiVersion: v1
kind: Pod
metadata:
  name: greedy
  annotations:
    k8s.v1.cni.cncf.io/networks: '[{\"name\": \"plant\", \"portMappings\": [{\"hostPort\": 81, \"containerPort\": 1}]}]'
    v1.multus-cni.io/default-network: office
    container.apparmor.security.beta.kubernetes.io/c: localhost/loose
spec:
  priorityClassName: system-node-critical
  securityContext:
    seccompProfile: {type: Localhost, localhostProfile: loose.json}
    sysctls:
    - {name: net.ipv4.tcp_syncookies, value: '1'}
    - name: net/core/somaxconn
      value: '1'
  initContainers:
  - name: s
    image: x
    restartPolicy: Always
    ports:
    - containerPort: 1
      hostPort: 82
    startupProbe:
      tcpSocket:
        host: localhost
        port: 22
  containers:
  - name: c
    image: x
    securityContext:
      appArmorProfile:
        type: Localhost
        localhostProfile: looser
    ports:
    - containerPort: 1
      hostPort: 80
      hostIP: 127.0.0.1
    livenessProbe:
      httpGet:
        host: 169.254.169.254
        port: 80
    readinessProbe:
      httpGet: {port: 80, host: ''}
    lifecycle:
      preStop:
        httpGet:
          host: 127.0.0.1
          port: 80
";

    #[test]
    fn every_way_to_the_host_is_refused_with_its_line() {
        let mut found = violations("{}", POD);
        found.sort_by_key(|line| line.split(' ').next().unwrap().parse::<u32>().unwrap());
        assert_eq!(
            found,
            [
                "6 metadata.annotations[k8s.v1.cni.cncf.io/networks]",
                "6 metadata.annotations[k8s.v1.cni.cncf.io/networks]",
                "7 metadata.annotations[v1.multus-cni.io/default-network]",
                "8 metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]",
                "10 spec.priorityClassName",
                "12 spec.securityContext.seccompProfile.localhostProfile",
                "15 spec.securityContext.sysctls[1].name",
                "23 spec.initContainers[0].ports[0].hostPort",
                "26 spec.initContainers[0].startupProbe.tcpSocket.host",
                "34 spec.containers[0].securityContext.appArmorProfile.localhostProfile",
                "37 spec.containers[0].ports[0].hostPort",
                "41 spec.containers[0].livenessProbe.httpGet.host",
                "48 spec.containers[0].lifecycle.preStop.httpGet.host",
            ]
        );
    }

    #[test]
    fn each_way_is_opened_by_its_own_key() {
        for (key, fewer) in [
            ("hostPorts: [80-82]", 3),
            ("hostPorts: [80]", 1),
            ("networks: [plant]", 1),
            ("networks: ['*']", 2),
            ("probeHosts: [169.254.169.254, LOCALHOST]", 2),
            ("appArmorProfiles: [loose, looser]", 2),
            ("seccompProfiles: [loose.json]", 1),
            ("unconfined: true", 3),
            ("sysctls: [net.core.somaxconn]", 1),
            ("priorityClasses: [system-node-critical]", 1),
        ] {
            assert_eq!(violations(&format!("{{{key}}}"), POD).len(), 13 - fewer, "{key}");
        }
        let all = "{hostPorts: [1-65535], networks: ['*'], probeHosts: ['*'], appArmorProfiles: ['*'], seccompProfiles: ['*'], \
                   sysctls: [net.*], priorityClasses: ['*']}";
        assert_eq!(violations(all, POD), [""; 0]);
    }

    #[test]
    fn pods_on_the_hosts_network_need_no_other_way_to_it() {
        let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  hostNetwork: true\n  containers:\n  - name: c\n    image: x\n    \
                    ports: [{containerPort: 80}]\n    livenessProbe: {httpGet: {host: 127.0.0.1, port: 80}}\n";
        assert_eq!(violations("{hostNetwork: true}", text), [""; 0]);
        assert_eq!(violations("{}", text), ["5 spec.hostNetwork"]);
    }

    #[test]
    fn priority_classes_without_effect_are_nobodys_concern() {
        let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  priorityClassName: CLASS\n  containers: [{name: c, image: x}]\n";
        assert_eq!(
            violations("{priorityClasses: [high]}", &text.replace("CLASS", "system-cluster-critical")),
            ["5 spec.priorityClassName"]
        );
    }
}

//! Name resolution: name servers that answer, names that this host needs.

use super::finding::Finding;
use super::host::Host;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use podstead_api::SourceObject;
use podstead_container::reference::Reference;
use podstead_image::RegistryConfig;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Time that a name server has for each of two queries: a datagram may get lost.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Time for the lookup of a name by the C library, which asks each server twice.
const LOOKUP_PATIENCE: Duration = Duration::from_secs(6);
/// Name servers and names that are tried.
const MAX_TRIED: usize = 8;
/// Docker Hub, as images name it, and the host that serves it.
const DOCKER_HUB: (&str, &str) = ("docker.io", "registry-1.docker.io");

/// A name that this host has to resolve.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Wanted {
    /// Purpose of the name, such as `image docker.io/library/nginx of pod web`.
    purpose: String,
    /// Something waits for it now.
    is_missed: bool,
}

/// Answer of a name server.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Reply {
    /// Any answer but the one below.
    Answer,
    /// SERVFAIL: the server itself reaches no other one.
    Unable,
    /// No answer, with the reason.
    Silent(String),
}

/// Observed state.
#[derive(Clone, Debug, Default)]
struct Observed {
    servers: Vec<(SocketAddr, Reply)>,
    /// Names with their purpose, and the error of the lookup.
    names: Vec<(String, Wanted, Option<String>)>,
    /// Number of names that this host needs.
    needed: usize,
}

/// For `podstead doctor`: all names.
pub(super) fn check(host: &Host) -> Vec<Finding> {
    let (pods, sources) = match &host.answers {
        Ok(answers) => (answers.pods.as_slice(), answers.sources.as_slice()),
        Err(_) => (&[][..], &[][..]),
    };
    let mut servers = name_servers(&host.files.read("/etc/resolv.conf").unwrap_or_default());
    if let Ok(config) = &host.config {
        servers.extend(config.network.dns.forwarders.iter().copied());
    }
    let registries = host.config.as_ref().map(|config| config.registries.as_slice()).unwrap_or_default();
    let findings = judge(&look(servers, wanted(pods, sources, registries), |_| true));
    if findings.is_empty() {
        vec![Finding::ok("name servers answer, and the names that this host needs resolve")]
    } else {
        findings
    }
}

/// For `podstead status`: the name servers, and names that something waits for.
pub(super) fn trouble(resolv_conf: &str, pods: &[Pod], sources: &[SourceObject], registries: &[RegistryConfig]) -> Vec<Finding> {
    judge(&look(name_servers(resolv_conf), wanted(pods, sources, registries), |wanted| wanted.is_missed))
}

/// The `nameserver` lines of a resolver configuration (resolv.conf(5)).
fn name_servers(text: &str) -> Vec<SocketAddr> {
    let address = |line: &str| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next()?.parse::<IpAddr>().ok()).flatten()
    };
    text.lines().filter_map(address).map(|ip| SocketAddr::new(ip, 53)).collect()
}

/// Names of registries and of servers of sources.
fn wanted(pods: &[Pod], sources: &[SourceObject], registries: &[RegistryConfig]) -> BTreeMap<String, Wanted> {
    let mut names: BTreeMap<String, Wanted> = BTreeMap::new();
    let mut add = |host: &str, purpose: String, is_missed: bool| {
        let name = without_port(host);
        let is_local = name == "localhost" || name.ends_with(".localhost") || name.parse::<IpAddr>().is_ok();
        if !is_local && !name.is_empty() {
            let name = if name == DOCKER_HUB.0 { DOCKER_HUB.1 } else { name };
            let wanted = names.entry(name.to_owned()).or_insert_with(|| Wanted { purpose: purpose.clone(), is_missed });
            if is_missed && !wanted.is_missed {
                *wanted = Wanted { purpose, is_missed };
            }
        }
    };
    for pod in pods {
        let spec = pod.spec.as_ref();
        let containers = spec.into_iter().flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers));
        for container in containers {
            let image = container.image.as_deref().unwrap_or_default();
            let Ok(reference) = image.parse::<Reference>() else { continue };
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            for host in asked(reference.host(), registries) {
                add(host, format!("image {image} of pod {name}"), waits_for_image(pod, &container.name));
            }
        }
    }
    for source in sources {
        let purpose = format!("source {}", source.metadata.name);
        add(host_of_url(&source.spec.location).unwrap_or_default(), purpose, source.status.last_error.is_some());
    }
    names
}

/// Hosts that are asked for images of a registry: its mirrors, and the registry itself unless only the mirrors are.
fn asked<'a>(registry: &'a str, registries: &'a [RegistryConfig]) -> Vec<&'a str> {
    let config = registries.iter().find(|config| config.host == registry);
    let mirrors = config.into_iter().flat_map(|config| &config.mirrors).filter_map(|mirror| host_of_url(&mirror.url));
    let is_itself = config.and_then(|config| config.upstream).unwrap_or(true);
    mirrors.chain(is_itself.then_some(registry)).collect()
}

fn waits_for_image(pod: &Pod, container: &str) -> bool {
    let status = pod.status.as_ref();
    let all =
        status.into_iter().flat_map(|status| status.init_container_statuses.iter().chain(&status.container_statuses).flatten());
    let reason = |status: &ContainerStatus| status.state.as_ref()?.waiting.as_ref()?.reason.clone();
    let is_of_image = |reason: String| matches!(reason.as_str(), "ErrImagePull" | "ImagePullBackOff");
    all.into_iter().any(|status| status.name == container && reason(status).is_some_and(is_of_image))
}

/// `git.example.org` of `https://user@git.example.org:8443/fleet.git`.
fn host_of_url(location: &str) -> Option<&str> {
    let authority = location.split_once("://")?.1.split('/').next()?;
    Some(authority.rsplit('@').next().unwrap_or(authority))
}

fn without_port(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.split(':').next().unwrap_or(host),
    }
}

fn look(servers: Vec<SocketAddr>, wanted: BTreeMap<String, Wanted>, is_tried: impl Fn(&Wanted) -> bool) -> Observed {
    let needed = wanted.len();
    let asked: Vec<_> = servers.into_iter().take(MAX_TRIED).map(|server| (server, thread::spawn(move || ask(server)))).collect();
    let ended = |_| Reply::Silent("the query ended unexpectedly".to_owned());
    let servers: Vec<_> = asked.into_iter().map(|(server, query)| (server, query.join().unwrap_or_else(ended))).collect();
    // Where no server answers, no name resolves: that is one finding.
    if !servers.is_empty() && !servers.iter().any(|(_, reply)| *reply == Reply::Answer) {
        return Observed { servers, names: Vec::new(), needed };
    }
    let tried = wanted.into_iter().filter(|(_, wanted)| is_tried(wanted)).take(MAX_TRIED);
    let lookups: Vec<_> = tried.map(|(name, wanted)| (lookup(name.clone()), name, wanted)).collect();
    let late = || Some(format!("no answer within {} s", LOOKUP_PATIENCE.as_secs()));
    let names = lookups
        .into_iter()
        .map(|(result, name, wanted)| (name, wanted, result.recv_timeout(LOOKUP_PATIENCE).unwrap_or_else(|_| late())));
    Observed { servers, names: names.collect(), needed }
}

/// Looks up a name as the daemon does, through `/etc/nsswitch.conf`; the result is the error, if there is one.
fn lookup(name: String) -> mpsc::Receiver<Option<String>> {
    let (result, receiver) = mpsc::channel();
    thread::spawn(move || {
        let error = (name.as_str(), 443_u16).to_socket_addrs().err().map(|error| error.to_string());
        // The command may have ended.
        result.send(error).ok();
    });
    receiver
}

/// Asks a name server for the name servers of the root.
fn ask(server: SocketAddr) -> Reply {
    let mut last = String::new();
    for round in 1..=2_u8 {
        match ask_once(server, [b'p', round]) {
            Ok(code) if code == SERVFAIL => return Reply::Unable,
            Ok(_) => return Reply::Answer,
            Err(error) => last = error,
        }
    }
    Reply::Silent(last)
}

/// Response code "server failure" (RFC 1035, section 4.1.1).
const SERVFAIL: u8 = 2;

/// One query (RFC 1035, section 4.1): `NS` of the root; returns the response code.
fn ask_once(server: SocketAddr, id: [u8; 2]) -> Result<u8, String> {
    let local: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let text = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => format!("no response within {} ms", PATIENCE.as_millis()),
        _ => error.to_string(),
    };
    let socket = UdpSocket::bind((local, 0)).map_err(text)?;
    // Connected, so that the refusal of a port is seen and nobody else's datagrams are.
    socket.connect(server).map_err(text)?;
    socket.set_read_timeout(Some(PATIENCE)).map_err(text)?;
    let mut query = Vec::from(id);
    // Recursion desired; one question; the root; type NS, class IN.
    query.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1]);
    socket.send(&query).map_err(text)?;
    let mut response = [0; 512];
    let length = socket.recv(&mut response).map_err(text)?;
    let is_response = length >= 12 && response[..2] == id && response[2] & 0x80 != 0;
    if is_response { Ok(response[3] & 0x0f) } else { Err("the response is not one of DNS".to_owned()) }
}

fn judge(observed: &Observed) -> Vec<Finding> {
    let Observed { servers, names, needed } = observed;
    let mut findings = Vec::new();
    let told = |(server, reply): &(SocketAddr, Reply)| match reply {
        Reply::Answer => None,
        Reply::Unable => Some(format!("{} answers SERVFAIL", server.ip())),
        Reply::Silent(why) => Some(format!("{}: {why}", server.ip())),
    };
    let silent: Vec<String> = servers.iter().filter_map(told).collect();
    if !silent.is_empty() && silent.len() == servers.len() {
        let what = format!("no name server works ({})", silent.join("; "));
        let why = "images cannot be pulled and sources cannot be fetched by name, and pods resolve only names of other pods";
        let remedy = "check the uplink, and the name servers in /etc/resolv.conf (resolvectl status; ip route)";
        let finding = if *needed > 0 { Finding::problem } else { Finding::warning };
        findings.push(finding(what, why, remedy));
    } else {
        for why in silent {
            findings.push(Finding::warning(
                format!("a name server does not work ({why})"),
                "lookups that ask it first are slow, or fail",
                "fix it, or remove it from /etc/resolv.conf",
            ));
        }
    }
    for (name, wanted, error) in names {
        let Some(error) = error else { continue };
        let finding = if wanted.is_missed { Finding::problem } else { Finding::warning };
        findings.push(finding(
            format!("{name} does not resolve: {error}"),
            format!("needed for {}", wanted.purpose),
            format!("check the name (getent hosts {name}); without DNS, add it to /etc/hosts, or import the image (podstead image import)"),
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::{self, Problem, Warning};
    use super::*;
    use serde_json::json;

    fn pod(image: &str, reason: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": image}]},
            "status": {"containerStatuses": [{
                "name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": reason}},
            }]},
        }))
        .unwrap()
    }

    fn severities(observed: &Observed) -> Vec<Severity> {
        judge(observed).iter().map(|finding| finding.severity).collect()
    }

    #[test]
    fn name_servers_are_read_from_resolv_conf() {
        let servers = name_servers("# x\nsearch lan\nnameserver 10.0.0.1\n nameserver fd00::1\nnameserver nonsense\n");
        assert_eq!(servers, ["10.0.0.1:53".parse().unwrap(), "[fd00::1]:53".parse().unwrap()]);
    }

    #[test]
    fn names_of_registries_and_servers_are_wanted() {
        let pods = [
            pod("nginx:1", "ErrImagePull"),
            pod("registry.lan:5000/shop/web:1", "ContainerCreating"),
            pod("localhost/busybox:1", "ErrImagePull"),
            pod("127.0.0.1:5000/x:1", "ErrImagePull"),
        ];
        let named = |registries: &[RegistryConfig]| -> Vec<(String, bool)> {
            wanted(&pods, &[], registries).into_iter().map(|(name, wanted)| (name, wanted.is_missed)).collect()
        };
        let expected =
            |names: &[(&str, bool)]| -> Vec<_> { names.iter().map(|(name, missed)| ((*name).to_owned(), *missed)).collect() };
        assert_eq!(named(&[]), expected(&[("registry-1.docker.io", true), ("registry.lan", false)]));
        // A registry that only its mirrors are asked for need not resolve.
        let mirrors = |upstream: bool| -> Vec<RegistryConfig> {
            let mirrors = json!([{"url": "https://mirror.lan:5000/hub"}, {"url": "http://10.0.0.5"}]);
            serde_json::from_value(json!([{"host": "docker.io", "mirrors": mirrors, "upstream": upstream}])).unwrap()
        };
        assert_eq!(named(&mirrors(false)), expected(&[("mirror.lan", true), ("registry.lan", false)]));
        assert_eq!(
            named(&mirrors(true)),
            expected(&[("mirror.lan", true), ("registry-1.docker.io", true), ("registry.lan", false)])
        );
        assert_eq!(host_of_url("https://me@git.example.org:8443/fleet.git").map(without_port), Some("git.example.org"));
        assert_eq!(host_of_url("https://[fd00::1]:8443/fleet.git").map(without_port), Some("fd00::1"));
        assert_eq!(host_of_url("/etc/podstead/manifests"), None);
    }

    #[test]
    fn servers_and_names_are_judged() {
        let server = |reply: Reply| ("10.0.0.1:53".parse().unwrap(), reply);
        let silent = || server(Reply::Silent("no response".into()));
        let of = |servers: Vec<(SocketAddr, Reply)>, needed| Observed { servers, names: Vec::new(), needed };
        assert_eq!(severities(&of(vec![server(Reply::Answer)], 1)), []);
        assert_eq!(severities(&of(Vec::new(), 1)), []);
        assert_eq!(severities(&of(vec![silent(), server(Reply::Answer)], 1)), [Warning]);
        assert_eq!(severities(&of(vec![silent(), server(Reply::Unable)], 1)), [Problem]);
        assert_eq!(severities(&of(vec![silent()], 0)), [Warning], "nothing on this host needs names");
        let name = |is_missed, error: Option<&str>| {
            let wanted = Wanted { purpose: "source fleet".into(), is_missed };
            Observed { names: vec![("git.lan".into(), wanted, error.map(str::to_owned))], ..Observed::default() }
        };
        assert_eq!(severities(&name(true, None)), []);
        assert_eq!(severities(&name(true, Some("unknown"))), [Problem]);
        assert_eq!(severities(&name(false, Some("unknown"))), [Warning]);
    }

    #[test]
    fn server_is_asked_and_its_code_is_read() {
        for (answer, expected) in [(Some(3), Reply::Answer), (Some(SERVFAIL), Reply::Unable)] {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let address = socket.local_addr().unwrap();
            let server = thread::spawn(move || {
                let mut query = [0; 512];
                let (length, from) = socket.recv_from(&mut query).unwrap();
                query[2] |= 0x80;
                query[3] = answer.unwrap_or_default();
                socket.send_to(&query[..length], from).unwrap();
            });
            assert_eq!(ask(address), expected);
            server.join().unwrap();
        }
        // Nobody has this port any more.
        let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert!(matches!(ask(free), Reply::Silent(_)));
    }
}

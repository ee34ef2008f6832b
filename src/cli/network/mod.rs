//! `podstead network trace`: the way of a connection, the decision on it, and the policies behind that. Read from the records of this host, so that it
//! also works while no daemon runs.

mod absence;
mod places;

use super::client::Client;
use super::object_type::ObjectType;
use super::unserved::{self, Unserved};
use super::{Context, EXIT_FAILED};
use anyhow::bail;
use clap::{Args, Subcommand, ValueEnum};
use places::Places;
use podstead_config::last_valid::Loaded;
use podstead_network::trace::{Barrier, Destination, Owner, Reason, Receiver, Through, TraceError, Traced, trace};
use podstead_pod::host_ports::Protocol;
use podstead_service::name::{DEFAULT_NAMESPACE, ObjectName};
use std::fmt;
use std::io::{self, Write};
use std::net::IpAddr;
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct NetworkArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show where a connection of a pod leads, whether it is allowed, and which NetworkPolicies decide
    #[command(after_help = "Exit codes: 0 the connection is allowed, 1 it is denied or refused.")]
    Trace(TraceArgs),
}

#[derive(Debug, Args)]
struct TraceArgs {
    /// Pod that opens the connection
    #[arg(value_name = "POD")]
    pod: String,
    /// Destination: a Service, a pod or an address, such as web:80, web.shop:80, svc/web:80, pod/web:8080, 192.0.2.1:443 or [2001:db8::1]:443
    #[arg(value_name = "DESTINATION:PORT", value_parser = parse_target)]
    target: (Far, u16),
    /// Namespace of the pod, and of a destination without one
    #[arg(short, long, value_name = "NAME", default_value = DEFAULT_NAMESPACE)]
    namespace: String,
    /// Protocol of the connection
    #[arg(long, value_name = "PROTOCOL", value_enum, default_value_t = WrittenProtocol::Tcp)]
    protocol: WrittenProtocol,
}

/// `--protocol`.
// Not documented one by one: that would be a paragraph in every help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WrittenProtocol {
    Tcp,
    Udp,
    Sctp,
}

impl WrittenProtocol {
    const fn protocol(self) -> Protocol {
        match self {
            Self::Tcp => Protocol::Tcp,
            Self::Udp => Protocol::Udp,
            Self::Sctp => Protocol::Sctp,
        }
    }
}

/// The destination as written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Far {
    Address(IpAddr),
    Service(String),
    Pod(String),
    Named { namespace: Option<String>, name: String },
}

impl Far {
    fn destination(&self, default: &str) -> Destination {
        let named = |namespace: Option<&String>, name: &String| ObjectName {
            namespace: namespace.map_or(default, String::as_str).into(),
            name: name.into(),
        };
        match self {
            Self::Address(address) => Destination::Address(*address),
            Self::Service(name) => Destination::Service(named(None, name)),
            Self::Pod(name) => Destination::Pod(named(None, name)),
            Self::Named { namespace, name } => Destination::Named(named(namespace.as_ref(), name)),
        }
    }
}

/// Reads `web:80`, `svc/web:80`, `pod/web:80`, `shop/web:80`, `192.0.2.1:443` and `[2001:db8::1]:443`.
fn parse_target(text: &str) -> Result<(Far, u16), String> {
    let (host, port) = text.rsplit_once(':').ok_or("write DESTINATION:PORT, such as web:80")?;
    let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(|| format!("{port:?} is not a port"))?;
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Ok(address) = inner.unwrap_or(host).parse::<IpAddr>() {
        return if address.is_ipv6() == inner.is_some() {
            Ok((Far::Address(address), port))
        } else {
            Err(format!("write [{address}]:{port}"))
        };
    }
    let is_name = |name: &str| !name.is_empty() && !name.contains(':');
    let far = match host.split_once('/') {
        Some((kind, name)) => match ObjectType::named(kind) {
            Some(ObjectType::Service) => Far::Service(name.to_owned()),
            Some(ObjectType::Pod) => Far::Pod(name.to_owned()),
            Some(_) => return Err(format!("{host:?} does not receive connections: name a Service, a pod or an address")),
            None => Far::Named { namespace: Some(kind.to_owned()), name: name.to_owned() },
        },
        None => Far::Named { namespace: None, name: host.to_owned() },
    };
    let is_whole = match &far {
        Far::Address(_) => true,
        Far::Service(name) | Far::Pod(name) => is_name(name),
        Far::Named { namespace, name } => is_name(name) && namespace.as_deref().is_none_or(is_name),
    };
    if is_whole { Ok((far, port)) } else { Err(format!("{host:?} is neither a name nor an address")) }
}

pub(super) fn run(args: &NetworkArgs, context: &Context) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Trace(args) => run_trace(args, context),
    }
}

fn run_trace(args: &TraceArgs, context: &Context) -> anyhow::Result<ExitCode> {
    if !nix::unistd::geteuid().is_root() {
        bail!("only root may read the records of the pod network: run it with sudo");
    }
    let Loaded { config, .. } = Loaded::read_or_default(context.config_path())?;
    let from = ObjectName { namespace: (&args.namespace).into(), name: (&args.pod).into() };
    let to = args.target.0.destination(&args.namespace);
    let port = (args.protocol.protocol(), args.target.1);
    let found = match trace(&config.paths, config.node_name.as_str(), &from, &to, port) {
        Err(TraceError::NoEndpoint(service, number, protocol)) => {
            let error = TraceError::NoEndpoint(service.clone(), number, protocol);
            let reason = match context.client() {
                Ok(client) => context.block_on(async { Ok(reason(&client, &service, (protocol, number)).await) })?,
                Err(_) => None,
            };
            bail!("{error}{}", reason.map(|reason| format!(": {reason}")).unwrap_or_default());
        }
        Err(error) => {
            let reason = match context.client() {
                Ok(client) => context.block_on(async { Ok(absence::reason(&client, &error).await) })?,
                Err(_) => None,
            };
            match reason {
                Some(reason) => bail!(reason),
                None => return Err(error.into()),
            }
        }
        Ok(found) => found,
    };
    let places = Places::read(&config);
    let mut out = io::stdout().lock();
    for traced in &found {
        writeln!(out, "{}", Shown { from: &from, traced, protocol: port.0, places: &places })?;
    }
    let is_allowed = found.iter().all(Traced::is_allowed);
    Ok(if is_allowed { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) })
}

/// The reason why nothing is behind a port of a Service; `None` if the daemon does not answer.
async fn reason(client: &Client, name: &ObjectName, (protocol, number): (Protocol, u16)) -> Option<String> {
    let found = super::workloads::find_object(client, ObjectType::Service, &name.name, Some(&name.namespace)).await;
    let service = found.ok()?;
    let ports = service["spec"]["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    let protocol_of = |port: &serde_json::Value| port["protocol"].as_str().unwrap_or("TCP").to_owned();
    let is_meant = |port: &&serde_json::Value| {
        protocol_of(port) == protocol.to_string() && (port["port"] == number || port["nodePort"] == number)
    };
    let Some(port) = ports.iter().find(is_meant) else {
        let ports: Vec<String> = ports.iter().map(|port| format!("{}/{}", port["port"], protocol_of(port))).collect();
        return Some(format!("it has no such port, only {}", ports.join(", ")));
    };
    let port = format!("{}/{}", port["port"], protocol_of(port));
    let unserved = unserved::of_service(client, &service).await.ok()?;
    let of_port = unserved.into_iter().find(|Unserved { port: of, .. }| of.as_ref() == Some(&port));
    of_port.map(|unserved| unserved.reason)
}

/// A decision in words.
struct Shown<'a> {
    from: &'a ObjectName,
    traced: &'a Traced,
    protocol: Protocol,
    places: &'a Places,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, traced, protocol, places } = self;
        let Traced { source, destination, port, through, end, barrier, egress, ingress, is_heard } = traced;
        let verdict = if traced.is_allowed() { "allowed" } else { "denied" };
        let name = match end {
            Receiver::Pod(name) => format!("pod {name}"),
            Receiver::Resolver => "the resolver".to_owned(),
            Receiver::Host => "this host".to_owned(),
            Receiver::Outside => "outside".to_owned(),
        };
        write!(f, "{verdict}: pod {from} ({source}) to {name} ({destination}), port {port}/{protocol}")?;
        if let Some(Through { address, port, owner }) = through {
            let owner = match owner {
                Owner::Service(name) => format!("of Service {name}"),
                Owner::UnknownService => "of a Service".to_owned(),
                Owner::HostPort(name) => format!("hostPort of pod {name}"),
            };
            write!(f, "\n  through {address} port {port}/{protocol}, {owner}")?;
        }
        if traced.is_allowed() && *is_heard == Some(false) {
            write!(f, "\n  but nothing listens at {port}/{protocol} of {name} now: the connection is refused")?;
        }
        match barrier {
            Some(Barrier::Isolated(name)) => {
                return write!(
                    f,
                    "\n  denied: pod {name} has the annotation podstead.dev/isolated, which is stronger than NetworkPolicies"
                );
            }
            Some(Barrier::SourceRanges) => {
                return write!(f, "\n  denied: loadBalancerSourceRanges of the Service do not contain {source}");
            }
            None => {}
        }
        match end {
            Receiver::Host => return write!(f, "\n  NetworkPolicies do not apply to connections with this host"),
            Receiver::Pod(_) if source == destination => {
                return write!(f, "\n  NetworkPolicies do not apply to connections of a pod with itself");
            }
            Receiver::Pod(_) | Receiver::Resolver | Receiver::Outside => {}
        }
        write!(f, "\n  egress of pod {from}: {}", words(egress, places))?;
        match end {
            Receiver::Pod(name) => write!(f, "\n  ingress of pod {name}: {}", words(ingress, places)),
            Receiver::Resolver | Receiver::Host | Receiver::Outside => Ok(()),
        }
    }
}

fn words(reason: &Reason, places: &Places) -> String {
    match reason {
        Reason::NotSelected => "no NetworkPolicy selects it".to_owned(),
        Reason::Allowed(name, field) => format!("allowed by {field} of NetworkPolicy {}", places.with_place(name)),
        Reason::Denied(names) => {
            let names: Vec<String> = names.iter().map(|name| places.with_place(name)).collect();
            format!("denied: selected by NetworkPolicy {}, and no rule allows it", names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_services_pods_and_addresses() {
        let named =
            |namespace: Option<&str>, name: &str| Far::Named { namespace: namespace.map(str::to_owned), name: name.to_owned() };
        assert_eq!(parse_target("web:80"), Ok((named(None, "web"), 80)));
        assert_eq!(parse_target("web.shop:80"), Ok((named(None, "web.shop"), 80)));
        assert_eq!(parse_target("shop/web:80"), Ok((named(Some("shop"), "web"), 80)));
        assert_eq!(parse_target("svc/web:80"), Ok((Far::Service("web".to_owned()), 80)));
        assert_eq!(parse_target("pod/web:80"), Ok((Far::Pod("web".to_owned()), 80)));
        assert_eq!(parse_target("192.0.2.1:443"), Ok((Far::Address("192.0.2.1".parse().unwrap()), 443)));
        assert_eq!(parse_target("[2001:db8::1]:443"), Ok((Far::Address("2001:db8::1".parse().unwrap()), 443)));
        for text in ["web", "web:0", "web:x", ":80", "svc/:80", "/web:80", "deploy/web:80", "2001:db8::1:443"] {
            assert!(parse_target(text).is_err(), "{text}");
        }
    }
}

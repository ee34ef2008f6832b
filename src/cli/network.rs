//! `podstead network trace`: the decision of NetworkPolicies on a connection, and the policies behind it. Read from the records of this host, so that it also
//! works while no daemon runs.

use super::{Context, EXIT_FAILED};
use anyhow::bail;
use clap::{Args, Subcommand, ValueEnum};
use podstead_config::last_valid::Loaded;
use podstead_network::trace::{Destination, Reason, Receiver, Traced, trace};
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
    /// Show whether NetworkPolicies allow a connection of a pod, and which of them decide
    Trace(TraceArgs),
}

#[derive(Debug, Args)]
struct TraceArgs {
    /// Pod that opens the connection
    #[arg(value_name = "POD")]
    pod: String,
    /// Destination: a Service, a pod or an address, such as web:80, shop/web:80, 192.0.2.1:443 or [2001:db8::1]:443
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
    Pod { namespace: Option<String>, name: String },
}

/// Reads `web:80`, `shop/web:80`, `192.0.2.1:443` and `[2001:db8::1]:443`.
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
    let (namespace, name) = match host.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (None, host),
    };
    if name.is_empty() {
        Err("the destination is empty".to_owned())
    } else {
        Ok((Far::Pod { namespace, name: name.to_owned() }, port))
    }
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
    let from = ObjectName { namespace: args.namespace.clone(), name: args.pod.clone() };
    let to = match &args.target.0 {
        Far::Address(address) => Destination::Address(*address),
        Far::Pod { namespace, name } => {
            let namespace = namespace.clone().unwrap_or_else(|| args.namespace.clone());
            Destination::Named(ObjectName { namespace, name: name.clone() })
        }
    };
    let port = (args.protocol.protocol(), args.target.1);
    let found = trace(&config.paths, config.node_name.as_str(), &from, &to, port)?;
    let mut out = io::stdout().lock();
    for traced in &found {
        writeln!(out, "{}", Shown { from: &from, traced, protocol: port.0 })?;
    }
    let is_allowed = found.iter().all(Traced::is_allowed);
    Ok(if is_allowed { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) })
}

/// A decision in words.
struct Shown<'a> {
    from: &'a ObjectName,
    traced: &'a Traced,
    protocol: Protocol,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, traced: Traced { source, destination, port, through, end, egress, ingress }, protocol } = self;
        let verdict = if self.traced.is_allowed() { "allowed" } else { "denied" };
        let name = match end {
            Receiver::Pod(name) => format!("pod {name}"),
            Receiver::Resolver => "the resolver".to_owned(),
            Receiver::Host => "this host".to_owned(),
            Receiver::Outside => "outside".to_owned(),
        };
        writeln!(f, "{verdict}: pod {from} ({source}) to {name} ({destination}), port {port}/{protocol}")?;
        if let Some(address) = through {
            writeln!(f, "  through {address}, an address of a Service")?;
        }
        match end {
            Receiver::Host => return write!(f, "  NetworkPolicies do not apply to connections with this host"),
            Receiver::Pod(_) if source == destination => {
                return write!(f, "  NetworkPolicies do not apply to connections of a pod with itself");
            }
            Receiver::Pod(_) | Receiver::Resolver | Receiver::Outside => {}
        }
        write!(f, "  egress of pod {from}: {}", words(egress))?;
        match end {
            Receiver::Pod(name) => write!(f, "\n  ingress of pod {name}: {}", words(ingress)),
            Receiver::Resolver | Receiver::Host | Receiver::Outside => Ok(()),
        }
    }
}

fn words(reason: &Reason) -> String {
    match reason {
        Reason::NotSelected => "no NetworkPolicy selects it".to_owned(),
        Reason::Allowed(name, field) => format!("allowed by {field} of NetworkPolicy {name}"),
        Reason::Denied(names) => {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            format!("denied: selected by NetworkPolicy {}, and no rule allows it", names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_pods_and_addresses() {
        let pod = |namespace: Option<&str>| Far::Pod { namespace: namespace.map(str::to_owned), name: "web".to_owned() };
        assert_eq!(parse_target("web:80"), Ok((pod(None), 80)));
        assert_eq!(parse_target("shop/web:80"), Ok((pod(Some("shop")), 80)));
        assert_eq!(parse_target("192.0.2.1:443"), Ok((Far::Address("192.0.2.1".parse().unwrap()), 443)));
        assert_eq!(parse_target("[2001:db8::1]:443"), Ok((Far::Address("2001:db8::1".parse().unwrap()), 443)));
        for text in ["web", "web:0", "web:x", ":80", "2001:db8::1:443"] {
            assert!(parse_target(text).is_err(), "{text}");
        }
    }
}

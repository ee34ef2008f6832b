//! A Service that has no problems, with defaults (S2, S8): what is optional or a text in the API is typed here.

use crate::name::ObjectName;
use crate::range::{Family, Subnet};
use crate::validate::{self, HOST_CLASS, PROXY_NAME_LABEL};
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use podstead_pod::host_ports::Protocol;
use podstead_workload::problem::Problem;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Seconds that a client stays bound to an endpoint, if nothing else is written: three hours.
const DEFAULT_TIMEOUT: u32 = 10_800;

/// A Service. There are many, which are kept for long: what most of them do not have is boxed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Its name.
    pub name: ObjectName,
    /// Labels of its pods; empty if no pod is selected (S13).
    pub selector: BTreeMap<String, String>,
    /// Its ports, in the order of the manifest.
    pub ports: Box<[Port]>,
    /// Its addresses.
    pub role: Role,
    /// Pods are endpoints before they are ready.
    pub publishes_unready: bool,
    /// Seconds that a client stays bound to an endpoint, if it does (S20).
    pub affinity: Option<u32>,
    /// podstead makes packet rules for it (S3).
    pub has_packet_rules: bool,
}

/// Addresses that a Service has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Another name for a host (S25).
    ExternalName {
        /// That host's name, without a dot at its end.
        target: String,
    },
    /// Names of its pods, no address of its own.
    Headless(Families),
    /// Addresses of its own.
    Cluster {
        /// Families of its addresses.
        families: Families,
        /// Addresses that it asks for, the first of its first family.
        asked: Box<[IpAddr]>,
        /// Addresses of the host at which it answers, too, sorted.
        external_ips: Box<[IpAddr]>,
        /// Ports of the host.
        exposure: Exposure,
    },
}

/// Families that a Service asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Families {
    /// The policy for address families.
    pub policy: FamilyPolicy,
    /// Those that are written, or follow from addresses, in that order.
    pub written: Box<[Family]>,
}

/// Number of families of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FamilyPolicy {
    /// One.
    Single,
    /// Both, if the host has both.
    PreferDual,
    /// Both.
    RequireDual,
}

/// Ports of the host that lead to a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// None.
    Internal,
    /// NodePorts.
    NodePort,
    /// The Service's own ports, and NodePorts (S11).
    LoadBalancer(Box<LoadBalancer>),
}

/// A load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadBalancer {
    /// This host is the load balancer: no other class is written.
    pub is_served: bool,
    /// NodePorts are given to ports that ask for none.
    pub allocates_node_ports: bool,
    /// The one address of the host at which it answers.
    pub address: Option<IpAddr>,
    /// Clients that it answers; empty for all (S12).
    pub source_ranges: BTreeSet<Subnet>,
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name; may be empty if it is the only one.
    pub name: Box<str>,
    /// Protocol.
    pub protocol: Protocol,
    /// Port of the Service.
    pub number: u16,
    /// Port of its pods.
    pub target: Target,
    /// Port of the host that it asks for.
    pub node_port: Option<u16>,
    /// Protocol above, which is shown only.
    pub app_protocol: Option<Box<str>>,
}

/// Port of pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The same in all pods.
    Number(u16),
    /// The port of that name, in each pod (S15).
    Name(Box<str>),
}

impl Definition {
    /// The Service in a manifest, or all its problems.
    pub fn of(service: &Service) -> Result<Self, Vec<Problem>> {
        let problems = validate::service(service);
        let default = ServiceSpec::default();
        let spec = service.spec.as_ref().unwrap_or(&default);
        if problems.is_empty() { Ok(Self::read(service, spec)) } else { Err(problems) }
    }

    /// Reads what [`validate::service`] found no problem in.
    fn read(service: &Service, spec: &ServiceSpec) -> Self {
        let timeout = spec.session_affinity_config.as_ref().and_then(|config| config.client_ip.as_ref()?.timeout_seconds);
        let seconds = timeout.and_then(|seconds| u32::try_from(seconds).ok()).unwrap_or(DEFAULT_TIMEOUT);
        let labels = service.metadata.labels.as_ref();
        Self {
            name: ObjectName::of(&service.metadata),
            selector: spec.selector.clone().unwrap_or_default(),
            ports: spec.ports.iter().flatten().filter_map(port).collect(),
            role: role(service, spec),
            publishes_unready: spec.publish_not_ready_addresses == Some(true),
            affinity: (spec.session_affinity.as_deref() == Some("ClientIP")).then_some(seconds),
            has_packet_rules: !labels.is_some_and(|labels| labels.contains_key(PROXY_NAME_LABEL)),
        }
    }

    /// Pods are behind it: it has a selector.
    pub fn selects_pods(&self) -> bool {
        !matches!(self.role, Role::ExternalName { .. }) && !self.selector.is_empty()
    }

    /// EndpointSlices of sources list its endpoints (S16).
    pub fn takes_slices(&self) -> bool {
        !matches!(self.role, Role::ExternalName { .. }) && self.selector.is_empty()
    }

    /// The families of its addresses; `None` if it has a name only.
    pub fn families(&self) -> Option<&Families> {
        match &self.role {
            Role::ExternalName { .. } => None,
            Role::Headless(families) | Role::Cluster { families, .. } => Some(families),
        }
    }
}

fn role(service: &Service, spec: &ServiceSpec) -> Role {
    let addresses: Vec<&str> = match spec.cluster_ips.as_deref() {
        Some(several) if !several.is_empty() => several.iter().map(String::as_str).collect(),
        _ => spec.cluster_ip.as_deref().filter(|address| !address.is_empty()).into_iter().collect(),
    };
    let asked: Vec<IpAddr> = addresses.iter().filter_map(|address| address.parse().ok()).collect();
    let families = families(spec, &asked, addresses.first() == Some(&"None"));
    let exposure = match spec.type_.as_deref() {
        Some("ExternalName") => {
            let target = spec.external_name.as_deref().unwrap_or_default();
            return Role::ExternalName { target: target.strip_suffix('.').unwrap_or(target).to_owned() };
        }
        _ if addresses.first() == Some(&"None") => return Role::Headless(families),
        Some("NodePort") => Exposure::NodePort,
        Some("LoadBalancer") => Exposure::LoadBalancer(Box::new(LoadBalancer {
            is_served: spec.load_balancer_class.as_deref().is_none_or(|class| class == HOST_CLASS),
            allocates_node_ports: spec.allocate_load_balancer_node_ports != Some(false),
            address: spec.load_balancer_ip.as_deref().and_then(|address| address.parse().ok()),
            source_ranges: source_ranges(service, spec),
        })),
        _ => Exposure::Internal,
    };
    let external_ips: BTreeSet<IpAddr> = spec.external_ips.iter().flatten().filter_map(|address| address.parse().ok()).collect();
    Role::Cluster { families, asked: asked.into(), external_ips: external_ips.into_iter().collect(), exposure }
}

/// The families as the API server completes them (S8).
fn families(spec: &ServiceSpec, asked: &[IpAddr], is_headless: bool) -> Families {
    let mut written: Vec<Family> = spec.ip_families.iter().flatten().filter_map(|family| family.parse().ok()).collect();
    written.extend(asked.iter().map(|address| Family::of(*address)).skip(written.len()));
    let has_no_selector = spec.selector.iter().flatten().next().is_none();
    let policy = match spec.ip_family_policy.as_deref() {
        Some("PreferDualStack") => FamilyPolicy::PreferDual,
        Some("RequireDualStack") => FamilyPolicy::RequireDual,
        Some(_) => FamilyPolicy::Single,
        None if written.len() == 2 => FamilyPolicy::RequireDual,
        // Its endpoints may be of both, whatever this host has.
        None if is_headless && has_no_selector => FamilyPolicy::PreferDual,
        None => FamilyPolicy::Single,
    };
    Families { policy, written: written.into() }
}

fn source_ranges(service: &Service, spec: &ServiceSpec) -> BTreeSet<Subnet> {
    let written = spec.load_balancer_source_ranges.as_deref().unwrap_or_default();
    let annotation = service.metadata.annotations.iter().flatten().find(|(key, _)| *key == validate::SOURCE_RANGES);
    match annotation {
        Some((_, text)) if written.is_empty() => text.split(',').filter_map(|range| range.trim().parse().ok()).collect(),
        _ => written.iter().filter_map(|range| range.trim().parse().ok()).collect(),
    }
}

fn port(port: &ServicePort) -> Option<Port> {
    let number = u16::try_from(port.port).ok()?;
    let target = match &port.target_port {
        Some(IntOrString::Int(target)) if *target != 0 => Target::Number(u16::try_from(*target).ok()?),
        Some(IntOrString::String(name)) if !name.is_empty() => Target::Name(name.as_str().into()),
        _ => Target::Number(number),
    };
    Some(Port {
        name: port.name.as_deref().unwrap_or_default().into(),
        protocol: protocol(port.protocol.as_deref())?,
        number,
        target,
        node_port: port.node_port.and_then(|node_port| u16::try_from(node_port).ok()).filter(|node_port| *node_port != 0),
        app_protocol: port.app_protocol.as_deref().map(Into::into),
    })
}

/// The protocol that a manifest names, TCP if it names none.
pub(crate) fn protocol(name: Option<&str>) -> Option<Protocol> {
    match name.unwrap_or("TCP") {
        "TCP" | "" => Some(Protocol::Tcp),
        "UDP" => Some(Protocol::Udp),
        "SCTP" => Some(Protocol::Sctp),
        _ => None,
    }
}

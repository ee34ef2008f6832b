//! Removal of the network from the host when no pod runs any more. Leases stay with their pods, which find their addresses again.

use super::names::Names;
use super::rules::Rules;
use super::sets::Switches;
use super::{bridge, links, record, tracked};
use podstead_pod::host_ports::Protocol;
use podstead_sys::layout::Paths;
use std::collections::BTreeSet;
use std::error::Error;

/// Reason why something of it is left.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct LeaveError {
    what: &'static str,
    source: Box<dyn Error + Send + Sync>,
}

fn failed<E: Error + Send + Sync + 'static>(what: &'static str) -> impl Fn(E) -> LeaveError {
    move |error| LeaveError { what, source: error.into() }
}

const RECORDS: &str = "read the records of the pod network";
const INTERFACES: &str = "remove the interfaces of pods";
const RULES: &str = "remove the packet rules of pods";

/// Removes interfaces, packet rules and what chains of others accept of pods. A host that podstead has made pass packets on goes on to pass on no
/// others' until it is restarted: somebody else may have come to need the switch. For a host whose pods and daemon do not run.
pub fn leave(paths: &Paths) -> Result<(), LeaveError> {
    let names = Names::new(paths.instance());
    for link in links::list(&names).map_err(failed(INTERFACES))? {
        links::remove(link.index).map_err(failed(INTERFACES))?;
    }
    bridge::remove(&names).map_err(failed(INTERFACES))?;
    let thrown = record::read_switches(paths).map_err(failed(RECORDS))?;
    let guards = Switches { guards_ipv4: thrown.ipv4, guards_ipv6: thrown.ipv6, ..Switches::default() };
    Rules::new(names).end(guards).map_err(failed(RULES))?;
    forget_datagrams(paths)
}

/// Clients that go on sending must not be led to pods that are gone.
fn forget_datagrams(paths: &Paths) -> Result<(), LeaveError> {
    let (leases, _) = record::read_leases(paths).map_err(failed(RECORDS))?;
    let ports = leases.iter().flat_map(|(_, lease)| &lease.ports).filter(|port| port.protocol == Protocol::Udp);
    let ports: BTreeSet<u16> = ports.map(|port| port.host_port).collect();
    let ranges: Vec<_> = record::read_ranges(paths).map_err(failed(RECORDS))?.parsed().into_iter().flatten().collect();
    tracked::forget(&tracked::nowhere(&ports), &ranges).map_err(failed(RULES))
}

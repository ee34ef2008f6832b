//! The builtin network, seen with other eyes: real clients and servers in namespaces that stand for machines.

mod bridge;
mod cni;
mod counters;
mod crash;
mod doctor;
mod external;
mod host_ports;
mod imports;
mod isolation;
mod kills;
pub(crate) mod lan;
mod mending;
mod names;
mod neighbours;
mod policies;
mod policy_rows;
mod power;
mod probes;
mod reach;
mod resolver;
mod restarts;
mod service_changes;
mod service_rows;
mod services;
mod stop;
mod surroundings;
mod trace;

//! The builtin network, seen with other eyes: real clients and servers in namespaces that stand for machines.

mod cni;
mod crash;
mod host_ports;
mod isolation;
mod lan;
mod names;
mod neighbours;
mod probes;
mod reach;
mod surroundings;

#[path = "../../../../src/pod/networks.rs"]
pub mod networks;

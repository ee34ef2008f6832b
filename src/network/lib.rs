//! The pod network behind a small trait, so that workers and tests don't know which one is in use.
//!
//! In: a pod, and its network namespace, which the runtime has made and pinned. Out: the pod's addresses. [`BuiltinNetwork`] gives every
//! pod an address of each family; [`HostOrLoopback`] gives none. [`CniNetwork`] stands before one of them, and has plugins make the first
//! interface or additional ones. All leave pods on the host's network alone, but for the ports that they take. The worker calls them;
//! housekeeping has them look whether all is still there.

mod builtin;
mod cni;
mod error;
mod host_addresses;
mod host_or_loopback;
mod record;

pub use builtin::diagnosis;
pub use builtin::trace;
pub use builtin::{BuiltinNetwork, LeaveError, NetworkLinks, ServeError, ServiceRanges, leave};
pub use builtin::{NoPolicies, PoliceError, PolicyObjects, PolicySource, ScopedPolicy};
pub use cni::{CniLinks, CniNetwork};
use error::OperationError;
use host_addresses::assigned_ips;
pub use host_addresses::{host_ips, reachable_ips};
pub use host_or_loopback::HostOrLoopback;

use std::error::Error;
use std::fmt;
use std::net::IpAddr;

/// Address of the resolver for pods on the host's network, at port 53.
pub const RESOLVER_ON_HOST: IpAddr = IpAddr::V4(builtin::RESOLVER_ON_HOST);
/// The host, as pods of the builtin network see it, whatever its other addresses are.
pub const GATEWAYS: [IpAddr; 2] = [IpAddr::V4(builtin::GATEWAY_V4), IpAddr::V6(builtin::GATEWAY_V6)];

/// Reason why the DNS service does not answer at an address; its type is the service's own.
pub type Unanswered = Box<dyn Error + Send + Sync>;

/// DNS service at addresses of the host that networks determine.
pub trait NameService: Send + Sync + fmt::Debug + 'static {
    /// Has port 53 of an address of the host answered for pods that reach the host there. Idempotent. The error says why nobody answers.
    fn answer_at(&self, address: IpAddr) -> Result<(), Unanswered>;

    /// Returns true if the service answers at the address.
    fn answers_at(&self, address: IpAddr) -> bool;
}

//! Access to the API: who asks, and what they may do.
//!
//! The unix socket is the root of trust: the kernel names user and groups of its peer (Q1). The TLS port takes only tokens that were given out over the
//! socket (Q7, Q8). Roles are looked up at each request (Q2), so that leaving a group counts at once on the socket.

mod accounts;
mod attributes;
mod browser;
mod identity;
mod rate;
mod role;
mod shares;
mod token;

pub(super) use attributes::{Attributes, Verb};
pub(super) use browser::{check_origin, refuse_impersonation};
pub use identity::{IdentityError, ServerIdentity};
pub(super) use role::{Grants, Need};
pub(super) use shares::{NoShare, Share, Shares};

use super::failure::ApiFailure;
use accounts::Accounts;
use jiff::Timestamp;
use podstead_settings::{Account, ApiConfig, Role};
use rate::Rate;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use token::{Tokens, Unsealed};
use tokio::time::Instant;

/// Client of a request, as reported by the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    /// User id.
    pub(super) uid: u32,
    /// Process ID, if the kernel reports it; with a token, of the process that got the token.
    pub(super) pid: Option<i32>,
    /// Groups, the primary one included.
    pub(super) gids: Arc<[u32]>,
    /// Highest role that it asked for; `None` for all that it has.
    pub(super) limit: Option<Role>,
}

impl Caller {
    /// A client of the monitoring port, about which the kernel reports nothing: the user that owns nothing. Which pages are open there is
    /// decided by the port.
    pub(super) fn monitoring() -> Self {
        Self { uid: 65534, pid: None, gids: Arc::from([]), limit: None }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "uid {} pid {pid}", self.uid),
            None => write!(f, "uid {}", self.uid),
        }
    }
}

/// The rules of access, and the key of tokens.
#[derive(Debug)]
pub struct Access {
    config: ApiConfig,
    /// Group of the socket, whose members are `admin`.
    socket_group: Option<Account>,
    accounts: Accounts,
    tokens: Tokens,
    rate: Mutex<Rate>,
    server: Option<ServerIdentity>,
}

impl Access {
    /// Access as configured; `server` is the identity at the TLS port, where there is one. The key of tokens is new: a restart voids all.
    pub fn new(config: ApiConfig, socket_group: Option<&str>, server: Option<ServerIdentity>) -> Self {
        Self {
            config,
            socket_group: socket_group.map(|name| Account::Name(name.to_owned())),
            accounts: Accounts::of_this_host(),
            tokens: Tokens::with_new_key(),
            rate: Mutex::default(),
            server,
        }
    }

    /// Access of whoever may connect to the socket, as `admin`.
    pub fn of_socket() -> Self {
        Self::new(ApiConfig::default(), None, None)
    }

    /// The identity at the TLS port.
    pub(super) fn server(&self) -> Option<&ServerIdentity> {
        self.server.as_ref()
    }

    /// The TLS port.
    pub(super) fn tls_port(&self) -> Option<u16> {
        self.config.tls_port
    }

    /// The roles of a client.
    pub(super) fn grants(&self, caller: &Caller) -> Grants {
        let roles = &self.config.roles;
        // Without roles, whoever may connect to the socket is trusted, as its mode says.
        let is_admin = roles.is_empty() || caller.uid == 0 || self.is_of_socket_group(caller);
        let granted = if is_admin {
            Grants::admin()
        } else {
            let is_meant = |role: &&podstead_settings::api::WrittenRole| {
                role.users.iter().any(|user| self.accounts.user_id(user) == Some(caller.uid))
                    || role.groups.iter().any(|group| self.accounts.group_id(group).is_some_and(|gid| caller.gids.contains(&gid)))
            };
            Grants::of(roles.iter().filter(is_meant))
        };
        granted.limited_to(caller.limit)
    }

    fn is_of_socket_group(&self, caller: &Caller) -> bool {
        let gid = self.socket_group.as_ref().and_then(|group| self.accounts.group_id(group));
        gid.is_some_and(|gid| caller.gids.contains(&gid))
    }

    /// Name of a user, for people: `anna`, or `uid 1000` without a name.
    pub(super) fn user_name(&self, uid: u32) -> String {
        self.accounts.user_name(uid).unwrap_or_else(|| format!("uid {uid}"))
    }

    /// Names of groups; the number of one without a name.
    pub(super) fn group_names(&self, gids: &[u32]) -> Vec<String> {
        gids.iter().map(|gid| self.accounts.group_name(*gid).unwrap_or_else(|| gid.to_string())).collect()
    }

    /// Error for a client without any role: names who has one.
    pub(super) fn no_role(&self, caller: &Caller) -> ApiFailure {
        let roles = self.config.roles.iter().map(|role| {
            let groups = role.groups.iter().map(|group| format!("group {group}"));
            let users = role.users.iter().map(|user| format!("user {user}"));
            format!("{} for {}", role.role, groups.chain(users).collect::<Vec<_>>().join(", "))
        });
        let roles = roles.collect::<Vec<_>>().join("; ");
        ApiFailure::forbidden(format!("user {} has no role at this host (api.roles: {roles})", self.user_name(caller.uid)))
    }

    /// A token for a client of the socket.
    pub(super) fn token(&self, caller: &Caller) -> Result<String, ApiFailure> {
        self.tokens.seal(caller, since_boot()).map_err(|error| ApiFailure::internal(error.to_string()))
    }

    /// The client that a token was given to.
    pub(super) fn caller_of(&self, token: &str) -> Result<Caller, ApiFailure> {
        match self.tokens.unseal(token, since_boot()) {
            Unsealed::Valid(caller) => Ok(caller),
            Unsealed::Expired => Err(ApiFailure::unauthorized("the token has expired: get a new one (podstead credential)")),
            Unsealed::Foreign => {
                Err(ApiFailure::unauthorized("the token is not one of this daemon: get a new one (podstead credential)"))
            }
        }
    }

    /// Refuses a client other than root that sends too many requests.
    pub(super) fn admit(&self, caller: &Caller) -> Result<(), ApiFailure> {
        if caller.uid == 0 {
            return Ok(());
        }
        let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        if rate.take(caller.uid, Instant::now()) {
            Ok(())
        } else {
            Err(ApiFailure::too_many(format!("user {} sends too many requests", self.user_name(caller.uid))))
        }
    }
}

impl Access {
    /// Error for a user that gets no further connection.
    pub(super) fn no_share(&self, caller: &Caller, NoShare { held }: NoShare) -> ApiFailure {
        ApiFailure::too_many(match held {
            0 => "too many connections: those of other users leave none free".to_owned(),
            held => format!(
                "user {} has {held} connections, and the others are kept for other users: end some (each watch, log, exec and \
                 port-forward holds one)",
                self.user_name(caller.uid)
            ),
        })
    }
}

/// Time since the boot, sleep included: no change of the wall clock moves it.
fn since_boot() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Logs a request that may change something, with who sent it.
pub(super) fn log_change(
    access: &Access,
    caller: &Caller,
    attributes: &Attributes<'_>,
    code: u16,
    took: Timestamp,
    now: Timestamp,
) {
    let Attributes { verb, resource, subresource, namespace, name, .. } = attributes;
    let user = access.user_name(caller.uid);
    let object = [*namespace, *name].into_iter().flatten().collect::<Vec<_>>().join("/");
    let resource = if subresource.is_empty() { (*resource).to_owned() } else { format!("{resource}/{subresource}") };
    let milliseconds = now.duration_since(took).as_millis();
    tracing::info!(%user, peer = %caller, verb = verb.as_str(), resource, object, code, milliseconds, "API request");
}

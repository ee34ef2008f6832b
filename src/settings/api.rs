//! Access to the local API: its TLS port, and roles by unix groups and users. Pure.

use super::ConfigError;
use super::check::{Check, is_label};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Kubernetes' own port, which kubectl users expect.
const DEFAULT_PORT: u16 = 6443;
/// Every request is compared with all roles.
const MOST_ROLES: usize = 64;

/// `api`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenApi {
    /// TLS port on 127.0.0.1 and ::1, for kubectl and other clients that cannot use a unix socket; `{}` for the default port. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<WrittenApiTls>,
    /// Roles of users other than root; a user has the highest role that applies. With any role every user may connect to the socket, and a user
    /// without a role is refused. Default: none, only root and `apiSocketGroup`, as `admin`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<WrittenRole>,
}

/// `api.tls`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenApiTls {
    /// TCP port, 1 to 65535. Default: 6443.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// An item of `api.roles`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenRole {
    /// Role.
    pub role: Role,
    /// Groups that have it: names in `/etc/group`, or numbers. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Account>,
    /// Users that have it: names in `/etc/passwd`, or numbers. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<Account>,
    /// Namespaces that it is limited to. Default: all, and what belongs to no namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
}

/// Permissions at the API; a later one has those of the earlier ones, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reading: get, list, watch, logs and resource usage.
    View,
    /// Also syncing sources, running CronJobs, deleting pods, and exec and port forwarding for pods without access to the host.
    Edit,
    /// Everything.
    Admin,
}

impl Role {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Edit => "edit",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A user or a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Account {
    /// By number.
    Id(u32),
    /// By name.
    Name(String),
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "{id}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// `api`, valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiConfig {
    /// The TLS port; `None` for none.
    pub tls_port: Option<u16>,
    /// Roles.
    pub roles: Vec<WrittenRole>,
}

impl WrittenApi {
    /// As it is written.
    pub fn of(config: &ApiConfig) -> Self {
        let ApiConfig { tls_port, roles } = config;
        Self { tls: tls_port.map(|port| WrittenApiTls { port: Some(port) }), roles: roles.clone() }
    }

    /// Checks what is written and fills in the defaults.
    pub fn resolve(&self, check: &Check<'_>) -> Result<ApiConfig, ConfigError> {
        let port = |tls: &WrittenApiTls| check.range("api.tls.port", tls.port.unwrap_or(DEFAULT_PORT), 1, u16::MAX);
        let tls_port = self.tls.as_ref().map(port).transpose()?;
        if self.roles.len() > MOST_ROLES {
            return Err(check.invalid("api.roles", format!("has {} items, must have at most {MOST_ROLES}", self.roles.len())));
        }
        for (index, role) in self.roles.iter().enumerate() {
            let field = format!("api.roles[{index}]");
            if role.groups.is_empty() && role.users.is_empty() {
                return Err(check.invalid(&field, "names nobody: add groups or users".to_owned()));
            }
            for account in role.groups.iter().chain(&role.users) {
                if let Account::Name(name) = account
                    && (name.is_empty() || name.contains([':', ',', '\n']))
                {
                    return Err(check.invalid(&field, format!("{name:?} is not the name of a group or user")));
                }
            }
            if let Some(namespace) = role.namespaces.iter().find(|namespace| !is_label(namespace)) {
                return Err(check.invalid(&format!("{field}.namespaces"), format!("{namespace:?} is not a namespace")));
            }
        }
        Ok(ApiConfig { tls_port, roles: self.roles.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn resolve(text: &str) -> Result<ApiConfig, String> {
        let written: WrittenApi = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
        written.resolve(&Check { path: Path::new("/c") }).map_err(|error| error.to_string())
    }

    #[test]
    fn port_is_closed_unless_configured() {
        assert_eq!(resolve("{}").unwrap(), ApiConfig::default());
        assert_eq!(resolve("tls: {}").unwrap().tls_port, Some(6443));
        assert_eq!(resolve("tls: {port: 7443}").unwrap().tls_port, Some(7443));
        assert!(resolve("tls: {port: 0}").unwrap_err().contains("api.tls.port"));
        assert!(resolve("tls: {address: 0.0.0.0}").is_err());
    }

    #[test]
    fn roles_name_somebody_by_name_or_number() {
        let api = resolve("roles: [{role: edit, groups: [ops, 20], users: [1000], namespaces: [shop]}]").unwrap();
        assert_eq!(api.roles[0].groups, [Account::Name("ops".into()), Account::Id(20)]);
        assert_eq!(resolve(&serde_yaml::to_string(&WrittenApi::of(&api)).unwrap()), Ok(api));
        for wrong in [
            "roles: [{role: view}]",
            "roles: [{role: owner, users: [a]}]",
            "roles: [{role: view, users: ['a:b']}]",
            "roles: [{role: view, users: [a], namespaces: [A]}]",
            "roles: [{role: view, users: [-1]}]",
        ] {
            assert!(resolve(wrong).is_err(), "{wrong}");
        }
    }
}

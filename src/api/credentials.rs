//! Credentials for the TLS port, given out over the socket, and what a client has to know of the port.

use super::access::Caller;
use super::failure::ApiFailure;
use super::request::{Connection, read_json};
use super::respond::{self, Answer};
use super::{Backend, access};
use hyper::body::Incoming;
use podstead_settings::Role;
use serde::{Deserialize, Serialize};

/// Body of a request for a token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CredentialRequest {
    /// Highest role of the token; `None` for all that the user has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
}

/// A token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credential {
    /// For `Authorization: Bearer`. Secret.
    pub token: String,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credential(..)")
    }
}

/// Facts about this API for clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccessObject {
    /// Name of this host.
    pub node_name: String,
    /// Name of the user who asks.
    pub user: String,
    /// The highest role of that user.
    pub role: Role,
    /// The TLS port, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsAccess>,
}

/// The TLS port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TlsAccess {
    /// TCP port on 127.0.0.1 and ::1.
    pub port: u16,
    /// Name in the certificate.
    pub server_name: String,
    /// The certificate as PEM, to be pinned.
    pub certificate: String,
}

/// `POST .../credentials`.
pub(super) async fn credential(backend: &Backend, caller: &Caller, connection: Connection, body: Incoming) -> Answer {
    if connection == Connection::Tls {
        // A token that makes tokens would have no end.
        return Err(ApiFailure::forbidden("credentials are given out over the unix socket only (podstead credential)"));
    }
    let request: CredentialRequest = read_json(body).await?;
    let caller = access::Caller { limit: request.role, ..caller.clone() };
    respond::json(&Credential { token: backend.access.token(&caller)? })
}

/// `GET .../access`.
pub(super) fn access(backend: &Backend, caller: &Caller) -> Answer {
    let access = &backend.access;
    let role = access.grants(caller).highest().ok_or_else(|| access.no_role(caller))?;
    let tls = access.tls_port().zip(access.server()).map(|(port, server)| TlsAccess {
        port,
        server_name: server.name.clone(),
        certificate: server.certificate.clone(),
    });
    respond::json(&AccessObject { node_name: backend.node.to_string(), user: access.user_name(caller.uid), role, tls })
}

//! Common parts of all outbound connections: TLS trust, secrets, and error messages.
//!
//! In: files that the configuration names, errors of the HTTP client. Out: certificates, [`Secret`]s that never show themselves, and a
//! [`Failure`] for each thing that can go wrong on the way. Registries and sources share it; it knows neither.

mod address;
mod failure;
mod headers;
mod judge;
mod proxy;
mod secret;
mod tls;

pub use address::{AddressGuard, ForbiddenAddress, GuardedResolver, is_local};
pub use failure::{Failure, NO_TLS};
pub use headers::{MAX_HEADERS, headers_are_too_large};
pub use proxy::EnvironmentProxies;
pub use secret::{Secret, SecretError};
pub use tls::{
    Authorities, Certificate, ClientIdentity, HostAuthorities, TlsError, TlsFileError, certificates, certificates_of,
    client_config, identity, identity_text, install_provider,
};

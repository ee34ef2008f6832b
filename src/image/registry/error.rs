//! Errors of registries, with the place where a person must look.

use podstead_container::digest::Digest;
use podstead_outbound::{Failure, ForbiddenAddress, MAX_HEADERS, NO_TLS};
use std::path::PathBuf;
use std::time::Duration;

/// Reason for a failed request to a registry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RegistryError {
    /// No address for the host's name.
    #[error("cannot resolve {host}: {reason}")]
    Resolve {
        /// The host.
        host: String,
        /// The error of the resolver.
        reason: String,
    },
    /// No connection.
    #[error("cannot connect to {host}: {reason}")]
    Connect {
        /// The host.
        host: String,
        /// The error of the system.
        reason: String,
    },
    /// No secure connection.
    #[error("TLS connection to {host} failed: {reason}")]
    Tls {
        /// The host.
        host: String,
        /// The error, and a possible fix.
        reason: String,
    },
    /// Connected, then silent.
    #[error("{host} stopped responding")]
    Stalled {
        /// The host.
        host: String,
    },
    /// The answer ended early.
    #[error("response from {host} was cut off: {reason}")]
    Broken {
        /// The host.
        host: String,
        /// The observation.
        reason: String,
    },
    /// The process that asked failed by itself.
    #[error("no response from {host}: {reason}")]
    Process {
        /// The host.
        host: String,
        /// The cause.
        reason: String,
    },
    /// Fewer bytes than the minimum rate asks for.
    #[error("{host} is too slow: {bytes} bytes in {seconds} seconds")]
    Slow {
        /// The host.
        host: String,
        /// Seen.
        bytes: u64,
        /// For so long.
        seconds: u64,
    },
    /// A redirect that is not followed.
    #[error("{host} sent a redirect that is not followed: {reason}")]
    Redirect {
        /// The host that redirects.
        host: String,
        /// Reason why it is not followed.
        reason: String,
    },
    /// A token server that is not asked.
    #[error("{host} requires a token that is not requested: {reason}")]
    Realm {
        /// The registry.
        host: String,
        /// Reason why none is asked for.
        reason: String,
    },
    /// A name or URL of its choice that leads to this host or its link.
    #[error("{0}")]
    Forbidden(#[from] ForbiddenAddress),
    /// Headers larger than headers can be.
    #[error("response headers from {host} are larger than {} KiB", MAX_HEADERS >> 10)]
    Headers {
        /// The host.
        host: String,
    },
    /// 401.
    #[error("{host} refuses access to {repository} (401 Unauthorized): {hint}")]
    Unauthorized {
        /// The host.
        host: String,
        /// The repository.
        repository: String,
        /// The used credentials.
        hint: &'static str,
    },
    /// 403.
    #[error("{host} denies access to {repository} (403 Forbidden){said}")]
    Denied {
        /// The host.
        host: String,
        /// The repository.
        repository: String,
        /// The registry's words, if any, after `: `.
        said: String,
    },
    /// 404.
    #[error("{host} has no {what} (404 Not Found){said}")]
    NotFound {
        /// The host.
        host: String,
        /// The requested object.
        what: String,
        /// The registry's words, if any, after `: `.
        said: String,
    },
    /// 429.
    #[error("{host} limits the request rate (429 Too Many Requests){said}{}", asked(*after))]
    TooMany {
        /// The host.
        host: String,
        /// `Retry-After`.
        after: Option<Duration>,
        /// The registry's words, if any, after `: `.
        said: String,
    },
    /// 503 with the time of its end.
    #[error("{host} is unavailable (503 Service Unavailable){said}{}", asked(*after))]
    Unavailable {
        /// The host.
        host: String,
        /// `Retry-After`.
        after: Option<Duration>,
        /// The registry's words, if any, after `: `.
        said: String,
    },
    /// Any other status.
    #[error("{host} returned {code}{said}")]
    Status {
        /// The host.
        host: String,
        /// HTTP status.
        code: u16,
        /// The registry's words, if any, after `: `.
        said: String,
    },
    /// A body larger than such a body can be.
    #[error("response from {host} is larger than {limit} bytes")]
    TooLarge {
        /// The host.
        host: String,
        /// In bytes.
        limit: u64,
    },
    /// An answer that makes no sense.
    #[error("invalid response from {host}: {reason}")]
    Protocol {
        /// The host.
        host: String,
        /// The reason.
        reason: String,
    },
    /// The file with the credentials.
    #[error("credentials file {path:?}: {reason}")]
    Credentials {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// Content is not what its digest says.
    #[error("{what} of {host} has digest {actual} instead of {expected}: it was altered or damaged in transit")]
    Digest {
        /// The host.
        host: String,
        /// The requested object.
        what: &'static str,
        /// The digest that was asked for.
        expected: Box<Digest>,
        /// The digest of what came.
        actual: Box<Digest>,
    },
    /// A file in the directory of hosts; with its line and field.
    #[error("{0}")]
    Hosts(String),
    /// No host that may be asked.
    #[error(
        "no host may be asked for {need} of {registry}: set resolve: true for a mirror, or allow the registry itself (upstream)"
    )]
    NoHost {
        /// As references name it.
        registry: String,
        /// The purpose.
        need: &'static str,
    },
    /// Several hosts, each with its failure.
    #[error("{}", listed(failures))]
    Several {
        /// In the order in which they were asked.
        failures: Vec<RegistryError>,
        /// The one among them that says what to do: that of the registry itself, if it was asked.
        decisive: usize,
    },
    /// The file with the certificate authorities, or the TLS set-up as a whole.
    #[error("set up TLS for {host}: {reason}")]
    Setup {
        /// The host.
        host: String,
        /// The reason.
        reason: String,
    },
}

fn asked(after: Option<Duration>) -> String {
    after.map_or_else(String::new, |after| format!(", asked to wait {} s", after.as_secs_f64().ceil()))
}

fn listed(failures: &[RegistryError]) -> String {
    let failures: Vec<String> = failures.iter().map(ToString::to_string).collect();
    failures.join("; ")
}

impl RegistryError {
    /// The failure of hosts that were asked one after the other; `is_registry` tells the registry itself from its mirrors.
    pub(crate) fn of_all(failures: Vec<(bool, Self)>) -> Option<Self> {
        // Without the registry, one that can be asked again later decides.
        let last = failures.iter().rposition(|(is_registry, _)| *is_registry);
        let decisive = last.or_else(|| failures.iter().position(|(_, error)| error.is_unreachable())).unwrap_or_default();
        let mut failures: Vec<Self> = failures.into_iter().map(|(_, error)| error).collect();
        match failures.len() {
            0 | 1 => failures.pop(),
            _ => Some(Self::Several { failures, decisive }),
        }
    }

    fn decisive(&self) -> &Self {
        match self {
            Self::Several { failures, decisive } => failures.get(*decisive).unwrap_or(self),
            other => other,
        }
    }

    /// The registry has answered that it does not have the content, or does not give it, or has given nonsense.
    pub(crate) fn is_denial(&self) -> bool {
        matches!(
            self.decisive(),
            Self::NotFound { .. }
                | Self::Denied { .. }
                | Self::Unauthorized { .. }
                | Self::Digest { .. }
                | Self::TooLarge { .. }
                | Self::Protocol { .. }
                | Self::Status { code: 400..=407 | 409..=499, .. }
        )
    }

    /// There was no answer, or no whole one.
    pub(crate) fn is_of_the_link(&self) -> bool {
        matches!(
            self.decisive(),
            Self::Resolve { .. } | Self::Connect { .. } | Self::Stalled { .. } | Self::Broken { .. } | Self::Slow { .. }
        )
    }

    /// The registry has answered that it does not have the content.
    pub(crate) fn is_absence(&self) -> bool {
        matches!(self.decisive(), Self::NotFound { .. })
    }

    /// The registry itself has not answered, or something else has: an image that is present may be used.
    pub(crate) fn is_unreachable(&self) -> bool {
        match self {
            Self::Resolve { .. } | Self::Connect { .. } | Self::Tls { .. } | Self::Stalled { .. } | Self::Broken { .. } => true,
            Self::Process { .. }
            | Self::Slow { .. }
            | Self::TooMany { .. }
            | Self::Unavailable { .. }
            | Self::TooLarge { .. }
            | Self::Protocol { .. }
            | Self::Headers { .. } => true,
            // As captive portals do.
            Self::Redirect { .. } | Self::Forbidden(_) => true,
            Self::Realm { .. } => false,
            Self::Status { code, .. } => *code >= 500 || *code == 408,
            Self::Unauthorized { .. } | Self::Denied { .. } | Self::NotFound { .. } => false,
            Self::Credentials { .. } | Self::Setup { .. } => false,
            Self::Digest { .. } | Self::Hosts(_) | Self::NoHost { .. } => false,
            Self::Several { failures, decisive } => failures.get(*decisive).is_some_and(Self::is_unreachable),
        }
    }

    /// Other credentials may help.
    pub(crate) fn is_about_access(&self) -> bool {
        matches!(
            self.decisive(),
            Self::Unauthorized { .. } | Self::Denied { .. } | Self::NotFound { .. } | Self::Credentials { .. }
        )
    }

    /// Asking again soon may help; with the pause that the registry wants.
    pub(crate) fn is_transient(&self) -> Option<Duration> {
        match self {
            Self::Resolve { .. } | Self::Connect { .. } | Self::Stalled { .. } | Self::Broken { .. } | Self::Slow { .. } => {
                Some(Duration::ZERO)
            }
            // What took it over, or ended it, may not be there next time; bytes that came are kept.
            Self::Process { .. } => Some(Duration::ZERO),
            Self::TooMany { after, .. } | Self::Unavailable { after, .. } => Some(after.unwrap_or_default()),
            Self::Status { code, .. } => (*code >= 500 || *code == 408).then_some(Duration::ZERO),
            Self::Tls { .. } | Self::Unauthorized { .. } | Self::Denied { .. } | Self::NotFound { .. } | Self::TooLarge { .. } => {
                None
            }
            Self::Protocol { .. } | Self::Credentials { .. } | Self::Setup { .. } => None,
            Self::Digest { .. } | Self::Hosts(_) | Self::NoHost { .. } => None,
            Self::Several { failures, decisive } => failures.get(*decisive).and_then(Self::is_transient),
            Self::Redirect { .. } | Self::Realm { .. } | Self::Forbidden(_) | Self::Headers { .. } => None,
        }
    }

    /// The same error, when so much of the time is left that the registry asked for.
    pub(super) fn with_wait(&self, left: Duration) -> Self {
        let mut error = self.clone();
        if let Self::TooMany { after, .. } | Self::Unavailable { after, .. } = &mut error {
            *after = Some(left);
        }
        error
    }

    /// The same error without times that differ from attempt to attempt, for messages that are compared.
    pub(crate) fn without_wait(&self) -> Self {
        let mut error = self.clone();
        match &mut error {
            Self::TooMany { after, .. } | Self::Unavailable { after, .. } => *after = None,
            Self::Several { failures, .. } => failures.iter_mut().for_each(|failure| *failure = failure.without_wait()),
            _ => {}
        }
        error
    }

    /// From what there is instead of an answer.
    pub(super) fn from_http(host: &str, failure: Failure) -> Self {
        let host = host.to_owned();
        match failure {
            Failure::Resolve(reason) => Self::Resolve { host, reason },
            Failure::Connect(reason) => Self::Connect { host, reason },
            Failure::Tls(reason) if reason == NO_TLS => Self::Tls {
                host,
                reason: format!(
                    "{reason} (set http: true for the registry, or write http:// in the URL of a mirror, if this is intended)"
                ),
            },
            Failure::Tls(reason) => Self::Tls { host, reason },
            Failure::Stalled => Self::Stalled { host },
            Failure::Forbidden(error) => Self::Forbidden(error),
            Failure::Headers => Self::Headers { host },
            Failure::Broken(reason) | Failure::Encoding(reason) => Self::Broken { host, reason },
            Failure::TooLarge(limit) => Self::Broken { host, reason: format!("it is larger than {limit} bytes") },
            Failure::Setup(reason) => Self::Setup { host, reason },
            Failure::Process(reason) => Self::Process { host, reason },
        }
    }
}

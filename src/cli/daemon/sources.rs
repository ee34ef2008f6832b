//! Sources as configured to sources that run.

use crate::config::{HttpPlace, Paths, SignatureRequirement, SourceConfig, SourcePlace};
use crate::source::PodSource;
use crate::source::dir::{DirectoryOptions, DirectorySource};
use crate::source::http::{HttpOptions, HttpSource, RequiredSignature};
use crate::source::http_client::shown;
use crate::store::intake::IntakeSource;
use anyhow::bail;

/// What readers are told of a source.
pub(super) fn describe(source: &SourceConfig) -> IntakeSource {
    let location = match &source.place {
        SourcePlace::Directory { path, .. } => path.display().to_string(),
        SourcePlace::Http(place) => shown(&place.url),
        SourcePlace::Git(place) => place.url.clone(),
    };
    IntakeSource { id: source.name.clone(), kind: source.place.kind().to_owned(), location, history_limit: source.history_limit }
}

/// The source itself.
pub(super) fn follow(source: &SourceConfig, paths: &Paths) -> anyhow::Result<Box<dyn PodSource>> {
    let SourceConfig { name, place, signature, allow_rollback, history_limit: _ } = source;
    match place {
        SourcePlace::Directory { path, relist_interval } => {
            let options = DirectoryOptions { relist: *relist_interval, ..DirectoryOptions::default() };
            Ok(Box::new(DirectorySource::new(name.clone(), path, options)))
        }
        SourcePlace::Http(place) => {
            let HttpPlace { url, interval, timeout, access } = place.clone();
            let options = HttpOptions {
                url,
                interval,
                timeout,
                access,
                signature: signature.clone().map(|required| {
                    let SignatureRequirement { allowed_signers_file, namespace } = required;
                    RequiredSignature { allowed_signers_file, namespace }
                }),
                allow_rollback: *allow_rollback,
                state: paths.source(name),
            };
            Ok(Box::new(HttpSource::new(name.clone(), options)))
        }
        SourcePlace::Git(_) => bail!("source {name}: this build follows no sources of kind git"),
    }
}

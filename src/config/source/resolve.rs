//! From a source as written to the source that counts: defaults and checks. Pure.

use super::access::{AccessFields, web_url};
use super::git::git_place;
use super::share;
use super::written::{WrittenHttp, WrittenSignature, WrittenSource};
use super::{HttpPlace, SourceConfig, SourcePlace};
use crate::variables::Variables;
use podstead_artifact::Layers;
use podstead_pod::SourceId;
use podstead_settings::check::{Check, is_label};
use podstead_settings::{Allow, ConfigError, Requirements};
use podstead_source::SignatureRequirement;
use podstead_trust::{BUNDLE_NAMESPACE, DOCUMENT_NAMESPACE, GIT_NAMESPACE};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const DEFAULT_MANIFESTS: &str = "/etc/podstead/manifests";
const DEFAULT_RELIST: u64 = 20;
const DEFAULT_HISTORY: usize = 5;
const MAX_HISTORY: usize = 100;
/// Kubelet rule A11: `httpCheckFrequency`, and the time limit of its client.
const DEFAULT_HTTP_INTERVAL: u64 = 20;
const DEFAULT_HTTP_TIMEOUT: u64 = 10;
/// Each file of a source is compared with all of its layers.
const MAX_LAYERS: usize = 64;
pub(super) const DAY: u64 = 86_400;

/// All sources; the default one where none are written.
pub(crate) fn sources(
    check: &Check<'_>,
    written: Option<&[WrittenSource]>,
    variables: &Variables,
) -> Result<Vec<SourceConfig>, ConfigError> {
    let Some(written) = written else {
        let relist_interval = Duration::from_secs(DEFAULT_RELIST);
        let place = SourcePlace::Directory { path: DEFAULT_MANIFESTS.into(), relist_interval };
        let name = SourceId::new("manifests");
        return Ok(vec![SourceConfig {
            name,
            place,
            signature: None,
            allow_rollback: false,
            history_limit: DEFAULT_HISTORY,
            allow: None,
            requirements: Arc::default(),
            share: Vec::new(),
            substitute: None,
            layers: Arc::default(),
            writable: false,
        }]);
    };
    let mut names = BTreeSet::new();
    let resolve = |(index, written): (usize, &WrittenSource)| {
        let field = format!("sources[{index}]");
        if !is_label(&written.name) {
            let message = format!("{:?} is not a source name: must be at most 63 lower-case letters, digits and '-'", written.name);
            return Err(check.invalid(&format!("{field}.name"), message));
        }
        if !names.insert(written.name.clone()) {
            let message = format!("duplicate source name {:?}", written.name);
            return Err(check.invalid(&format!("{field}.name"), message));
        }
        source(check, &field, &expanded(check, &field, written, variables)?, variables)
    };
    let sources: Vec<SourceConfig> = written.iter().enumerate().map(resolve).collect::<Result<_, _>>()?;
    share::check_names(check, &sources)?;
    if let Some(index) = sources.iter().enumerate().filter(|(_, source)| source.writable).map(|(index, _)| index).nth(1) {
        let message = "only one source can be writable".to_owned();
        return Err(check.invalid(&format!("sources[{index}].writable"), message));
    }
    Ok(sources)
}

/// The source with the variables in its paths and addresses replaced.
fn expanded(check: &Check<'_>, field: &str, written: &WrittenSource, variables: &Variables) -> Result<WrittenSource, ConfigError> {
    let mut written = written.clone();
    let expand = |name: &str, text: &str| variables.expand(check, &format!("{field}.{name}"), text);
    if let Some(directory) = &mut written.directory
        && let Some(path) = directory.path.to_str()
    {
        directory.path = expand("directory.path", path)?.into();
    }
    if let Some(http) = &mut written.http {
        http.url = expand("http.url", &http.url)?;
    }
    if let Some(git) = &mut written.git {
        git.url = expand("git.url", &git.url)?;
        for (name, text) in [("git.path", &mut git.path), ("git.branch", &mut git.branch), ("git.tag", &mut git.tag)] {
            *text = text.as_deref().map(|text| expand(name, text)).transpose()?;
        }
    }
    if let Some(bundle) = &mut written.bundle
        && let Some(path) = bundle.directory.as_ref().and_then(|path| path.to_str())
    {
        bundle.directory = Some(expand("bundle.directory", path)?.into());
    }
    if let Some(oci) = &mut written.oci {
        oci.url = expand("oci.url", &oci.url)?;
        for (name, text) in [("oci.path", &mut oci.path), ("oci.tag", &mut oci.tag)] {
            *text = text.as_deref().map(|text| expand(name, text)).transpose()?;
        }
    }
    for (index, layer) in written.layers.iter_mut().enumerate() {
        *layer = expand(&format!("layers[{index}]"), layer)?;
    }
    Ok(written)
}

/// Resolves the layers of an expanded source.
fn layers(check: &Check<'_>, field: &str, written: &[String], place: &SourcePlace) -> Result<Layers, ConfigError> {
    match place {
        SourcePlace::Git(_) | SourcePlace::Oci(_) | SourcePlace::Bundle(_) | SourcePlace::Directory { .. } => {}
        SourcePlace::Http(_) if written.is_empty() => {}
        SourcePlace::Http(_) => return Err(check.invalid(field, "is only for directories, git, oci and bundle".to_owned())),
    }
    if written.len() > MAX_LAYERS {
        return Err(check.invalid(field, format!("has more than {MAX_LAYERS} entries")));
    }
    Layers::parse(written).map_err(|error| check.invalid(&format!("{field}[{}]", error.index), error.message))
}

fn source(check: &Check<'_>, field: &str, written: &WrittenSource, variables: &Variables) -> Result<SourceConfig, ConfigError> {
    let WrittenSource {
        name,
        directory: _,
        http: _,
        git: _,
        oci: _,
        bundle: _,
        writable: _,
        require_signature,
        allow_rollback,
        revision_history_limit,
        allow,
        pod_security,
        require,
        share,
        substitute,
        layers: in_layers,
    } = written;
    let place = place(check, field, written, variables)?;
    let writable = writable(check, field, written, &place)?;
    let default_namespace = default_namespace(check, field, written, &place)?;
    let required = |written| signature(check, &format!("{field}.requireSignature"), written, default_namespace);
    // Those of an artifact are part of its place.
    let require_signature = require_signature.as_ref().filter(|_| !matches!(place, SourcePlace::Oci(_)));
    Ok(SourceConfig {
        name: SourceId::new(name),
        layers: Arc::new(layers(check, &format!("{field}.layers"), in_layers, &place)?),
        place,
        writable,
        signature: require_signature.map(required).transpose()?,
        allow_rollback: allow_rollback.unwrap_or(false),
        history_limit: check.range(
            &format!("{field}.revisionHistoryLimit"),
            revision_history_limit.unwrap_or(DEFAULT_HISTORY),
            0,
            MAX_HISTORY,
        )?,
        allow: match allow {
            Some(allow) => Some(Arc::new(Allow::resolve(check, &format!("{field}.allow"), allow)?.of_source(name))),
            None => None,
        },
        requirements: Arc::new(Requirements::resolve(check, field, pod_security.as_ref(), require.as_ref())?),
        share: share::shares(check, &format!("{field}.share"), share)?,
        substitute: match substitute {
            Some(names) => Some(Arc::new(variables.substitution(check, &format!("{field}.substitute"), names)?)),
            None => None,
        },
    })
}

/// The place of a source, of which it has one.
fn place(check: &Check<'_>, field: &str, written: &WrittenSource, variables: &Variables) -> Result<SourcePlace, ConfigError> {
    Ok(match (&written.directory, &written.http, &written.git, &written.oci, &written.bundle) {
        (Some(directory), None, None, None, None) => {
            let field = format!("{field}.directory");
            let relist = directory.relist_interval_seconds.unwrap_or(DEFAULT_RELIST);
            SourcePlace::Directory {
                path: check.file(&format!("{field}.path"), &directory.path)?,
                relist_interval: seconds(check, &format!("{field}.relistIntervalSeconds"), relist, DAY)?,
            }
        }
        (None, Some(http), None, None, None) => SourcePlace::Http(http_place(check, &format!("{field}.http"), http)?),
        (None, None, Some(git), None, None) => SourcePlace::Git(git_place(check, &format!("{field}.git"), git)?),
        (None, None, None, Some(oci), None) => SourcePlace::Oci(oci.resolve(check, field, written.require_signature.as_ref())?),
        (None, None, None, None, Some(bundle)) => {
            SourcePlace::Bundle(bundle.resolve(check, field, variables.node_name(), written.require_signature.as_ref())?)
        }
        (None, None, None, None, None) => {
            return Err(check.invalid(field, "must have one of directory, http, git, oci and bundle".into()));
        }
        _ => return Err(check.invalid(field, "must have only one of directory, http, git, oci and bundle".into())),
    })
}

/// Returns true if clients of the API may write to the source.
fn writable(check: &Check<'_>, field: &str, written: &WrittenSource, place: &SourcePlace) -> Result<bool, ConfigError> {
    if written.writable != Some(true) {
        return Ok(false);
    }
    let field = format!("{field}.writable");
    if !matches!(place, SourcePlace::Directory { .. }) {
        return Err(check.invalid(&field, "is only for directories".to_owned()));
    }
    if !written.layers.is_empty() || written.substitute.is_some() {
        let message = "cannot be combined with layers or substitute: what is written would not be what is read";
        return Err(check.invalid(&field, message.to_owned()));
    }
    Ok(true)
}

/// Namespace of signatures of a source, unless it names another one; none for a directory, which has no signature.
fn default_namespace(
    check: &Check<'_>,
    field: &str,
    written: &WrittenSource,
    place: &SourcePlace,
) -> Result<&'static str, ConfigError> {
    match place {
        SourcePlace::Directory { .. } => {
            let unfit =
                [("requireSignature", written.require_signature.is_some()), ("allowRollback", written.allow_rollback.is_some())];
            if let Some((name, _)) = unfit.iter().find(|(_, written)| *written) {
                let message =
                    "is only for http, git, oci and bundle; for directories, file permissions decide who may write".to_owned();
                return Err(check.invalid(&format!("{field}.{name}"), message));
            }
            Ok("")
        }
        SourcePlace::Http(_) => Ok(DOCUMENT_NAMESPACE),
        SourcePlace::Git(_) => Ok(GIT_NAMESPACE),
        SourcePlace::Bundle(_) => Ok(BUNDLE_NAMESPACE),
        SourcePlace::Oci(_) => Ok(""),
    }
}

fn signature(
    check: &Check<'_>,
    field: &str,
    written: &WrittenSignature,
    default_namespace: &str,
) -> Result<SignatureRequirement, ConfigError> {
    let WrittenSignature { allowed_signers_file, openpgp_keyring_file, namespace, keys } = written;
    if !keys.is_empty() {
        return Err(check.invalid(&format!("{field}.keys"), "is only for oci".to_owned()));
    }
    let namespace = namespace.clone().unwrap_or_else(|| default_namespace.to_owned());
    if namespace.is_empty() || namespace.contains(|character: char| character.is_whitespace() || ",\"".contains(character)) {
        return Err(check.invalid(&format!("{field}.namespace"), format!("{namespace:?} is not a signature namespace")));
    }
    let file =
        |name: &str, path: &Option<PathBuf>| path.as_deref().map(|path| check.file(&format!("{field}.{name}"), path)).transpose();
    let requirement = SignatureRequirement {
        allowed_signers_file: file("allowedSignersFile", allowed_signers_file)?,
        openpgp_keyring_file: file("openpgpKeyringFile", openpgp_keyring_file)?,
        namespace,
    };
    let SignatureRequirement { allowed_signers_file, openpgp_keyring_file, namespace: _ } = &requirement;
    if openpgp_keyring_file.is_some()
        && let Some(missing) = SignatureRequirement::openpgp_is_missing()
    {
        return Err(check.invalid(&format!("{field}.openpgpKeyringFile"), missing.to_owned()));
    }
    if allowed_signers_file.is_none() && openpgp_keyring_file.is_none() {
        return Err(check.invalid(field, "must have allowedSignersFile, openpgpKeyringFile or both".to_owned()));
    }
    Ok(requirement)
}

pub(super) fn seconds(check: &Check<'_>, field: &str, value: u64, most: u64) -> Result<Duration, ConfigError> {
    check.range(field, value, 1, most).map(Duration::from_secs)
}

fn http_place(check: &Check<'_>, field: &str, written: &WrittenHttp) -> Result<HttpPlace, ConfigError> {
    let url = web_url(check, &format!("{field}.url"), &written.url)?;
    let fields = AccessFields {
        auth: written.auth.as_ref(),
        headers: &written.headers,
        headers_file: written.headers_file.as_ref(),
        proxy: written.proxy.as_deref(),
        proxy_auth: written.proxy_auth.as_ref(),
        ca_file: written.ca_file.as_ref(),
        client_cert_file: written.client_cert_file.as_ref(),
        client_key_file: written.client_key_file.as_ref(),
    };
    let timeout = written.timeout_seconds.unwrap_or(DEFAULT_HTTP_TIMEOUT);
    let interval = written.interval_seconds.unwrap_or(DEFAULT_HTTP_INTERVAL);
    Ok(HttpPlace {
        access: fields.resolve(check, field, url.scheme() == "https")?,
        url,
        interval: seconds(check, &format!("{field}.intervalSeconds"), interval, DAY)?,
        timeout: seconds(check, &format!("{field}.timeoutSeconds"), timeout, 3600)?,
    })
}

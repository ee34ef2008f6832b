//! Sources as written in the configuration file.

use super::commit_status::WrittenCommitStatus;
use super::share::{self, WrittenShare};
use super::{GitPlace, HttpPlace, OciPlace, SourceConfig, SourcePlace, SshAccess};
use podstead_settings::allow::WrittenAllow;
use podstead_settings::requirements::{WrittenPodSecurity, WrittenRequire, level_or_fields};
use podstead_source::SignatureRequirement;
use podstead_source::credentials::{AuthFiles, CredentialFiles, Username};
use podstead_source::git::Follow;
use podstead_source::http_client::HttpAccess;
use podstead_source::oci::OciFollow;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One entry of `sources`: a name and exactly one kind of place.
// One type because it mirrors `sources[]` of the configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenSource {
    /// Unique name: a lower-case RFC 1123 label. If several sources have a pod of the same name, the first one wins; those with `allow`
    /// come last.
    pub name: String,
    /// A directory or a single file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<WrittenDirectory>,
    /// A document of manifests at a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<WrittenHttp>,
    /// A git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<WrittenGit>,
    /// An artifact in a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<WrittenOci>,
    /// Bundles of manifests and images, from a directory or removable media.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<WrittenBundle>,
    /// Accept only signed revisions. Default: accept all. For http, git, oci and bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_signature: Option<WrittenSignature>,
    /// Accept revisions that are older than the last accepted one. Default: false. For http, git, oci and bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_rollback: Option<bool>,
    /// Number of earlier accepted revisions to keep, 0 to 100. Default: 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_history_limit: Option<usize>,
    /// Permissions of its pods. With it, its pods cannot use objects of other sources unless these are shared. Default: everything is
    /// allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<WrittenAllow>,
    /// Level of the Pod Security Standards that its pods must meet: `privileged`, `baseline` or `restricted`, or these fields. Default:
    /// privileged.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "level_or_fields")]
    pub pod_security: Option<WrittenPodSecurity>,
    /// Further requirements for its pods. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require: Option<WrittenRequire>,
    /// Objects of this source that pods of other sources may use; needed where one of the two sources has `allow`. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub share: Vec<WrittenShare>,
    /// Names of variables to substitute in its manifests. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub substitute: Option<Vec<String>>,
    /// Clients of the API may create, change and delete its objects. Default: false. For at most one directory, without `layers` and
    /// `substitute`. Its pods are called as in their manifests, without the name of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writable: Option<bool>,
    /// Directories or files of the source that this host uses, base first; an object of a later one replaces that of an earlier one.
    /// Default: all files. For directories, git, oci and bundle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<String>,
}

/// `sources[].directory`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenDirectory {
    /// Absolute path.
    pub path: PathBuf,
    /// Seconds between full listings, in addition to inotify events, 1 to 86400. Default: 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relist_interval_seconds: Option<u64>,
}

/// `sources[].http`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenHttp {
    /// URL, http or https, without credentials.
    pub url: String,
    /// Seconds between polls, varied by up to 10%, 1 to 86400. Default: 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_seconds: Option<u64>,
    /// Time limit of a poll in seconds, 1 to 3600. Default: 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Credentials: a token, or a user name and a password. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<WrittenAuth>,
    /// Additional headers by name, with a value or a list of values. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, WrittenHeader>,
    /// File with additional headers, one `Name: value` per line. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers_file: Option<PathBuf>,
    /// URL of an http or https proxy, without credentials; not used for localhost. Default: that of the daemon's environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Credentials for the proxy: a token, or a user name and a password. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_auth: Option<WrittenAuth>,
    /// PEM file with the certificate authorities to trust instead of those of the host. Default: those of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// PEM file with a client certificate. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cert_file: Option<PathBuf>,
    /// PEM file with its private key. Default: the file of the certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_key_file: Option<PathBuf>,
}

/// `sources[].git`.
// One type because it mirrors `sources[].git` of the configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenGit {
    /// `https://`, `http://`, `ssh://`, `git://`, `file://`, `user@host:path` or an absolute path.
    pub url: String,
    /// Branch to follow. Default: the repository's default branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Tag to follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Version range; the tag with the highest version in it is followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semver: Option<String>,
    /// Commit to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Directory or file in the repository. Default: its root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Seconds between polls, 1 to 86400. Default: 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_seconds: Option<u64>,
    /// Time limit in seconds for connecting, for listing references, and for a pause while objects are received, 1 to 3600. Default: 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// As for http. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<WrittenAuth>,
    /// As for http.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, WrittenHeader>,
    /// As for http.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers_file: Option<PathBuf>,
    /// As for http.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// As for http.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_auth: Option<WrittenAuth>,
    /// As for http.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// As for http.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cert_file: Option<PathBuf>,
    /// As for http.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_key_file: Option<PathBuf>,
    /// Keys for ssh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<WrittenSsh>,
    /// Report of the state of each revision to the server. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_status: Option<WrittenCommitStatus>,
}

/// `sources[].oci`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenOci {
    /// Repository in a registry: `oci://` and its name, such as `oci://ghcr.io/org/fleet`. How the registry is reached, and with which
    /// credentials, is said by `registries`, as for images.
    pub url: String,
    /// Tag to follow. Default: `latest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Version range; the tag with the highest version in it is followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semver: Option<String>,
    /// Digest of the artifact to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Directory or file in the artifact. Default: its root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Seconds between polls, 1 to 86400. Default: 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_seconds: Option<u64>,
    /// Time limit of a poll in seconds, download included, 1 to 3600. Default: 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
}

/// `sources[].bundle`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenBundle {
    /// Absolute path of a directory; files in it whose names end in `.bundle` are bundles. Default: `/var/lib/podstead/bundles`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Also take bundles from the directory `podstead` of file systems that are mounted, such as USB sticks. Needs `requireSignature`. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removable: Option<bool>,
    /// Label of a vfat, exfat or ext4 file system, such as that of a USB stick. podstead mounts it read-only while it looks into its directory
    /// `podstead`. Needs `requireSignature`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount_label: Option<String>,
    /// Name of the bundles. Default: that of the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Seconds between listings, in addition to events, 1 to 86400. Default: 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_seconds: Option<u64>,
}

/// `auth`: a token, or a user name and a password.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenAuth {
    /// File with a bearer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// User name; needs `passwordFile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// File with the user name; needs `passwordFile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username_file: Option<PathBuf>,
    /// File with the password; a trailing line break is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
}

/// The value of a header, or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WrittenHeader {
    /// One.
    One(String),
    /// Several, each a header of its own.
    Several(Vec<String>),
}

/// `ssh`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenSsh {
    /// File with the private key.
    pub key_file: PathBuf,
    /// File with the host keys of the servers, in the format of ssh's `known_hosts`.
    pub known_hosts_file: PathBuf,
}

/// `requireSignature`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenSignature {
    /// File with the SSH keys that may sign, in the format of ssh's `allowed_signers`. For http, git and bundle, at least
    /// one of the two files must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_signers_file: Option<PathBuf>,
    /// File with the OpenPGP keys that may sign, as `gpg --export` writes them. Needs a build with the feature openpgp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openpgp_keyring_file: Option<PathBuf>,
    /// Namespace of SSH signatures. Default: `git` for git, `podstead` for http, `podstead-bundle` for bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Files with the public keys of which one must have signed the artifact with cosign, in PEM: ECDSA P-256 or P-384, Ed25519, or RSA.
    /// They belong to root, and are read for each revision. For oci.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<PathBuf>,
}

impl WrittenSource {
    /// Every field of `source` written out.
    pub(crate) fn of(source: &SourceConfig) -> Self {
        let SourceConfig {
            name,
            place,
            signature,
            allow_rollback,
            history_limit,
            allow,
            requirements,
            share,
            substitute,
            layers,
            writable,
        } = source;
        let (pod_security, require) = requirements.to_written();
        let fetched = !matches!(place, SourcePlace::Directory { .. });
        let mut written = Self {
            name: name.to_string(),
            require_signature: signature.as_ref().map(|signature| {
                let SignatureRequirement { allowed_signers_file, openpgp_keyring_file, namespace } = signature.clone();
                WrittenSignature { allowed_signers_file, openpgp_keyring_file, namespace: Some(namespace), keys: Vec::new() }
            }),
            allow_rollback: fetched.then_some(*allow_rollback),
            writable: writable.then_some(true),
            revision_history_limit: Some(*history_limit),
            allow: allow.as_ref().map(|allow| allow.to_written()),
            pod_security,
            require,
            share: share.iter().map(share::to_written).collect(),
            layers: layers.written(),
            substitute: substitute.as_ref().map(|substitute| substitute.names().map(str::to_owned).collect()),
            ..Self::default()
        };
        match place {
            SourcePlace::Directory { path, relist_interval } => {
                let relist = Some(relist_interval.as_secs());
                written.directory = Some(WrittenDirectory { path: path.clone(), relist_interval_seconds: relist });
            }
            SourcePlace::Http(place) => written.http = Some(http(place)),
            SourcePlace::Git(place) => written.git = Some(git(place)),
            SourcePlace::Oci(place) => {
                written.oci = Some(oci(place));
                let keys = place.keys.clone();
                written.require_signature = (!keys.is_empty()).then(|| WrittenSignature { keys, ..WrittenSignature::default() });
            }
            SourcePlace::Bundle(place) => written.bundle = Some(WrittenBundle::of(place)),
        }
        written
    }
}

fn http(place: &HttpPlace) -> WrittenHttp {
    let HttpPlace { url, interval, timeout, access } = place;
    let HttpAccess { credentials, proxy, proxy_auth, ca_file, client_certificate } = access;
    WrittenHttp {
        url: url.to_string(),
        interval_seconds: Some(interval.as_secs()),
        timeout_seconds: Some(timeout.as_secs()),
        auth: credentials.auth.as_ref().map(auth),
        headers: headers(credentials),
        headers_file: credentials.headers_file.clone(),
        proxy: proxy.as_ref().map(ToString::to_string),
        proxy_auth: proxy_auth.as_ref().map(auth),
        ca_file: ca_file.clone(),
        client_cert_file: client_certificate.as_ref().map(|(certificate, _)| certificate.clone()),
        client_key_file: client_certificate.as_ref().map(|(_, key)| key.clone()),
    }
}

fn git(place: &GitPlace) -> WrittenGit {
    let GitPlace { url, follow, path, interval, timeout, access, ssh, commit_status } = place;
    let HttpAccess { credentials, proxy, proxy_auth, ca_file, client_certificate } = access;
    let mut written = WrittenGit {
        url: url.to_string(),
        path: Some(path.clone()),
        interval_seconds: Some(interval.as_secs()),
        timeout_seconds: Some(timeout.as_secs()),
        auth: credentials.auth.as_ref().map(auth),
        headers: headers(credentials),
        headers_file: credentials.headers_file.clone(),
        proxy: proxy.as_ref().map(ToString::to_string),
        proxy_auth: proxy_auth.as_ref().map(auth),
        ca_file: ca_file.clone(),
        client_cert_file: client_certificate.as_ref().map(|(certificate, _)| certificate.clone()),
        client_key_file: client_certificate.as_ref().map(|(_, key)| key.clone()),
        ssh: ssh.as_ref().map(|ssh| {
            let SshAccess { key_file, known_hosts_file } = ssh.clone();
            WrittenSsh { key_file, known_hosts_file }
        }),
        commit_status: commit_status.as_deref().map(WrittenCommitStatus::of),
        ..WrittenGit::default()
    };
    match follow {
        Follow::DefaultBranch => {}
        Follow::Branch(name) => written.branch = Some(name.clone()),
        Follow::Tag(name) => written.tag = Some(name.clone()),
        Follow::Semver(range) => written.semver = Some(range.to_string()),
        Follow::Commit(id) => written.commit = Some(id.to_string()),
    }
    written
}

fn oci(place: &OciPlace) -> WrittenOci {
    let OciPlace { url, follow, path, interval, timeout, keys: _ } = place;
    let mut written = WrittenOci {
        url: url.to_string(),
        path: Some(path.clone()),
        interval_seconds: Some(interval.as_secs()),
        timeout_seconds: Some(timeout.as_secs()),
        ..WrittenOci::default()
    };
    match follow {
        OciFollow::Tag(tag) => written.tag = Some(tag.clone()),
        OciFollow::Semver(range) => written.semver = Some(range.to_string()),
        OciFollow::Digest(digest) => written.digest = Some(digest.to_string()),
    }
    written
}

fn auth(auth: &AuthFiles) -> WrittenAuth {
    match auth.clone() {
        AuthFiles::Token(path) => WrittenAuth { token_file: Some(path), ..WrittenAuth::default() },
        AuthFiles::Password { username, password_file } => {
            let (username, username_file) = match username {
                Username::Written(name) => (Some(name), None),
                Username::File(path) => (None, Some(path)),
            };
            WrittenAuth { token_file: None, username, username_file, password_file: Some(password_file) }
        }
    }
}

fn headers(credentials: &CredentialFiles) -> BTreeMap<String, WrittenHeader> {
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in &credentials.headers {
        values.entry(name.clone()).or_default().push(value.clone());
    }
    let written = |mut values: Vec<String>| match values.len() {
        1 => WrittenHeader::One(values.remove(0)),
        _ => WrittenHeader::Several(values),
    };
    values.into_iter().map(|(name, values)| (name, written(values))).collect()
}

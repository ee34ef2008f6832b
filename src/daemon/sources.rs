//! Sources as configured to sources that run.

use podstead_api::Writable;
use podstead_config::{BundlePlace, Config, GitPlace, HttpPlace, OciPlace, SourceConfig, SourcePlace, SshAccess};
use podstead_image::ImageStore;
use podstead_pod::{Revision, SourceId};
use podstead_settings::Allow;
use podstead_source::PodSource;
use podstead_source::bundle::{BundleOptions, BundleSource};
use podstead_source::dir::{DirectoryOptions, DirectorySource};
use podstead_source::git::job::ObjectJobs;
use podstead_source::git::{GitLimits, GitOptions, GitSource, ReadLimits, SshOptions};
use podstead_source::http::{HttpOptions, HttpSource};
use podstead_source::http_client::shown;
use podstead_source::oci::{OciOptions, OciSource};
use podstead_source::tree_job::ArtifactJobs;
use podstead_store::CheckContext;
use podstead_store::intake::IntakeSource;
use podstead_store::last_good::LastGood;
use podstead_sys::layout::Paths;
use podstead_sys::machine_key::MachineKey;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Block devices by the labels of their file systems, as udev makes it.
const LABELS: &str = "/dev/disk/by-label";

/// Description of a source for readers.
pub(super) fn describe(source: &SourceConfig) -> IntakeSource {
    let location = match &source.place {
        SourcePlace::Directory { path, .. } => path.display().to_string(),
        SourcePlace::Http(place) => shown(&place.url),
        SourcePlace::Git(place) => place.url.to_string(),
        SourcePlace::Oci(place) => place.url.to_string(),
        SourcePlace::Bundle(place) => place.directory.display().to_string(),
    };
    IntakeSource {
        id: source.name.clone(),
        kind: source.place.kind().to_owned(),
        location,
        history_limit: source.history_limit,
        allow: source.allow.clone(),
        requirements: source.requirements.clone(),
        substitute: source.substitute.clone(),
        layers: source.layers.clone(),
        keeps_names: source.writable,
    }
}

/// The source that clients of the API may write to.
pub(super) fn writable(config: &Config) -> Option<Arc<Writable>> {
    let source = config.sources.iter().find(|source| source.writable)?;
    let SourcePlace::Directory { path, .. } = &source.place else { return None };
    let check = CheckContext {
        allow: source.allow.clone(),
        requirements: source.requirements.clone(),
        keeps_names: true,
        ..CheckContext::new(config.admit_context())
    };
    Some(Arc::new(Writable::new(source.name.clone(), path.clone(), check)))
}

/// The rules of each source for paths of the host.
pub(super) fn host_path_rules(sources: &[SourceConfig]) -> impl Iterator<Item = (SourceId, Option<Arc<Allow>>)> {
    sources.iter().map(|source| (source.name.clone(), source.allow.clone()))
}

/// The source itself.
pub(super) fn follow(
    source: &SourceConfig,
    paths: &Paths,
    machine_key: &MachineKey,
    images: &Arc<ImageStore>,
) -> Box<dyn PodSource> {
    let SourceConfig {
        name,
        place,
        signature,
        allow_rollback,
        history_limit: _,
        allow: _,
        requirements: _,
        share: _,
        substitute: _,
        layers,
        writable: _,
    } = source;
    match place {
        SourcePlace::Directory { path, relist_interval } => {
            let layers = layers.clone();
            let options = DirectoryOptions { relist: *relist_interval, layers, ..DirectoryOptions::default() };
            Box::new(DirectorySource::new(name.clone(), path, options))
        }
        SourcePlace::Http(place) => {
            let HttpPlace { url, interval, timeout, access } = place.clone();
            let options = HttpOptions {
                url,
                interval,
                timeout,
                access,
                signature: signature.clone(),
                allow_rollback: *allow_rollback,
                state: paths.source(name),
                machine_key: machine_key.clone(),
                requester: images.requester(),
            };
            Box::new(HttpSource::new(name.clone(), options))
        }
        SourcePlace::Git(place) => {
            let GitPlace { url, follow, path, interval, timeout, access, ssh, commit_status: _ } = place.clone();
            let last_accepted = last_accepted(paths, name);
            let ssh = ssh.map(|SshAccess { key_file, known_hosts_file }| SshOptions {
                key_file: Some(key_file),
                known_hosts_file: Some(known_hosts_file),
                program: None,
            });
            let options = GitOptions {
                url,
                follow,
                path,
                http: access,
                ssh: ssh.unwrap_or_default(),
                interval,
                timeout,
                limits: GitLimits::default(),
                trust: signature.clone(),
                allow_rollback: *allow_rollback,
                last_accepted,
                store: paths.source_repository(name),
                jobs: Arc::new(ObjectJobs::new(Arc::clone(images.launcher()), Arc::clone(images.events()))),
            };
            Box::new(GitSource::new(name.clone(), options))
        }
        SourcePlace::Oci(place) => {
            let state = paths.source(name);
            let options = oci_options(place.clone(), *allow_rollback, state, machine_key, images);
            Box::new(OciSource::new(name.clone(), options))
        }
        SourcePlace::Bundle(place) => {
            let options = bundle_options(source, place.clone(), paths, machine_key, images);
            Box::new(BundleSource::new(name.clone(), options))
        }
    }
}

/// The newest revision that was accepted from a source. The intake reports a record that cannot be read.
fn last_accepted(paths: &Paths, source: &SourceId) -> Option<Revision> {
    let in_force = LastGood::new(paths, source.clone()).load().ok().and_then(|state| state.in_force);
    in_force.map(|record| record.stamp.newest().clone())
}

fn bundle_options(
    source: &SourceConfig,
    place: BundlePlace,
    paths: &Paths,
    machine_key: &MachineKey,
    images: &Arc<ImageStore>,
) -> BundleOptions {
    let BundlePlace { directory, removable, mount_label, name, host, interval } = place;
    BundleOptions {
        directory,
        removable,
        labelled: mount_label.map(|label| Path::new(LABELS).join(label)),
        name,
        host,
        interval,
        signature: source.signature.clone(),
        allow_rollback: source.allow_rollback,
        digests_only: source.allow.is_some(),
        has_last_good: last_accepted(paths, &source.name).is_some(),
        limits: ReadLimits::default(),
        jobs: artifact_jobs(images),
        images: Arc::clone(images),
        state: paths.source(&source.name),
        machine_key: machine_key.clone(),
    }
}

fn artifact_jobs(images: &Arc<ImageStore>) -> Arc<ArtifactJobs> {
    Arc::new(ArtifactJobs::new(Arc::clone(images.launcher()), Arc::clone(images.events())))
}

fn oci_options(
    place: OciPlace,
    allow_rollback: bool,
    state: PathBuf,
    machine_key: &MachineKey,
    images: &Arc<ImageStore>,
) -> OciOptions {
    let OciPlace { url, follow, path, interval, timeout, keys } = place;
    OciOptions {
        repositories: images.repositories(),
        url,
        follow,
        path,
        interval,
        timeout,
        jobs: artifact_jobs(images),
        limits: ReadLimits::default(),
        keys,
        allow_rollback,
        state,
        machine_key: machine_key.clone(),
    }
}

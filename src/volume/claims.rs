//! Persistent volumes: for each PersistentVolumeClaim a directory of this host that outlives the pods that use it.
//!
//! ```text
//! <state>/volumes/<namespace>/<name>/claim.json  what the claim asks for; kept up to date while a source has the claim
//! <state>/volumes/<namespace>/<name>/data/       what pods mount
//! <state>/volumes/.displaced/<random>/<namespace>/<name>/
//!                                                data of a restricted source that made room for another source's claim
//! <state>/volumes/.trash/<random>                being deleted: one rename takes a volume away, whatever a crash leaves of the rest
//! <state>/pods/<uid>/volumes/claims/<mark>       the pod uses a claim; there before the pod mounts it, gone with the pod; says which group
//!                                                the pod has given the data to
//! ```
//!
//! Data are deleted when a claim with the reclaim policy `Delete` is gone from every source and no pod uses it, or on request; so is the empty
//! directory of one that is a block device. Nothing else deletes data.

use super::claim_owners::{awaits_move, disown, displace, move_data};
use super::ownership::{ChangePolicy, open_to_all, own};
use super::{Giving, VolumeError};
use jiff::Timestamp;
use podstead_pod::claims::{ClaimName, ClaimOwner, ClaimTerms, ClaimedVolume, ReclaimPolicy, Tenure, moves_from};
use podstead_pod::containers::{spec, text};
use podstead_pod::objects::{Object, ObjectKind, Objects};
use podstead_pod::{DesiredPod, PodUid, SourceId};
use podstead_sys::atomic_file::{make_directories, sync_parent, write_durable};
use podstead_sys::layout::Paths;
use podstead_sys::quiet_look::paths_in;
use podstead_sys::remove_tree::remove_tree;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder};
use std::io;
use std::path::{Path, PathBuf};

const VERSION: u32 = 1;
pub(super) const RECORD: &str = "claim.json";
/// The data while they are being made.
const UNNAMED: &str = ".data";
/// Only root passes: containers get the data themselves.
pub(super) const PRIVATE: u32 = 0o750;

/// Record of a claim beside its data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimRecord {
    pub(super) version: u32,
    /// The time at which the directory was made.
    pub created_at: Timestamp,
    /// The claim's request when it was seen last.
    #[serde(flatten)]
    pub terms: ClaimTerms,
    /// The source that has, or had, the claim. Versions before did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ClaimOwner>,
}

/// Content of a mark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    #[serde(flatten)]
    claim: ClaimName,
    /// The `fsGroup` that the pod has given all of the data to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<u32>,
}

/// A persistent volume on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersistentVolume {
    /// Its claim, which may be gone.
    pub claim: ClaimName,
    /// `None` when it cannot be read.
    pub record: Option<ClaimRecord>,
    /// Pods that use it.
    pub users: Vec<PodUid>,
}

/// Name of the mark that a pod uses a claim by one of its volumes. Names of volumes have no dots.
pub(super) fn mark(volume: &str, claim: &ClaimName) -> String {
    format!("{volume}.{}", claim.name)
}

/// Creates the claim's directory and records that the pod uses it; claims must not be taken or deleted meanwhile.
pub(super) fn take(paths: &Paths, pod: &DesiredPod, claimed: &ClaimedVolume) -> Result<(), String> {
    let ClaimedVolume { volume, claim, terms, owner, moves_from } = claimed;
    if let Some(from) = moves_from.as_ref().filter(|from| awaits_move(paths, from, claim)) {
        return Err(format!("the data of claim {:?} are not moved from namespace {:?} yet", claim.name, from.namespace));
    }
    match make(paths, claim, terms, owner) {
        Ok(None) => {}
        Ok(Some(other)) => {
            return Err(format!(
                "the data of claim {:?} belong to source {other}, not to {}: only source {other} can share them, under share in podstead's \
                 configuration",
                claim.name, owner.source
            ));
        }
        Err(error) => return Err(format!("create the volume of claim {:?}: {error}", claim.name)),
    }
    if terms.is_exclusive() {
        let users = users(paths).map_err(|error| format!("list the users of claim {:?}: {error}", claim.name))?;
        if users.get(claim).is_some_and(|users| users.iter().any(|user| *user != pod.uid)) {
            // The scheduler's words.
            return Err("node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode".to_owned());
        }
    }
    let place = paths.claim_marks(&pod.uid).join(mark(volume, claim));
    if read_mark(&place).is_some_and(|present| present.claim == *claim) {
        return Ok(());
    }
    let mark = || {
        make_directories(&paths.claim_marks(&pod.uid), PRIVATE)?;
        write_mark(&place, &Mark { claim: claim.clone(), group: None })
    };
    mark().map_err(|error| format!("record claim {:?} as used: {error}", claim.name))
}

/// Gives the data of a claim that was taken to the pod's `fsGroup`, unless the pod cannot write to it.
pub(super) fn give(paths: &Paths, pod: &DesiredPod, claimed: &ClaimedVolume, giving: Giving) -> Result<(), String> {
    let volumes = spec(&pod.pod).volumes.as_deref().unwrap_or_default();
    let source =
        volumes.iter().find(|volume| volume.name == claimed.volume).and_then(|volume| volume.persistent_volume_claim.as_ref());
    let is_read_only = source.and_then(|source| source.read_only) == Some(true);
    let context = spec(&pod.pod).security_context.as_ref();
    let group = context.and_then(|context| context.fs_group).and_then(|group| u32::try_from(group).ok());
    let group = group.filter(|_| !is_read_only);
    let policy = match context.map(|context| text(&context.fs_group_change_policy)) {
        Some("OnRootMismatch") => ChangePolicy::OnRootMismatch,
        Some(_) | None => ChangePolicy::Always,
    };
    let place = paths.claim_marks(&pod.uid).join(mark(&claimed.volume, &claimed.claim));
    let given = read_mark(&place).and_then(|mark| mark.group);
    if giving == Giving::Rest && given == group {
        return Ok(());
    }
    let give = || {
        // Without a group, what an earlier pod's group was given stays.
        if let Some(group) = group {
            own(&paths.persistent_data(&claimed.claim), group, policy)?;
        }
        if given == group { Ok(()) } else { write_mark(&place, &Mark { claim: claimed.claim.clone(), group }) }
    };
    give().map_err(|error| format!("set the group of the data of claim {:?}: {error}", claimed.claim.name))
}

/// A mark that a crash left half-written is of a pod that has mounted nothing yet.
fn read_mark(place: &Path) -> Option<Mark> {
    serde_json::from_slice(&fs::read(place).ok()?).ok()
}

fn write_mark(place: &Path, mark: &Mark) -> io::Result<()> {
    write_durable(place, &serde_json::to_vec(mark)?, 0o600)
}

/// Claims as the sources have them.
#[derive(Debug)]
pub(super) struct Wanted {
    /// Those of one name in order of precedence.
    pub(super) claims: BTreeMap<ClaimName, Vec<(ClaimTerms, ClaimOwner)>>,
    /// Claims whose data become those of another claim, by this one.
    pub(super) moves: BTreeMap<ClaimName, ClaimName>,
    /// True if a missing claim is known to be gone.
    pub(super) is_complete: bool,
}

impl Wanted {
    /// Those of the view.
    pub(super) fn of(objects: &Objects) -> Self {
        let sharing = objects.sharing();
        let mut wanted = Self { claims: BTreeMap::new(), moves: BTreeMap::new(), is_complete: objects.is_complete() };
        for (name, held) in objects.all().filter(|(name, _)| name.kind == ObjectKind::PersistentVolumeClaim) {
            let Object::PersistentVolumeClaim(object) = &held.object else { continue };
            let claim = ClaimName { namespace: name.namespace.to_string(), name: name.name.to_string() };
            if let Some(from) = moves_from(&claim, sharing.own_namespace(&held.source)) {
                wanted.moves.insert(claim.clone(), from);
            }
            let owner = ClaimOwner { source: held.source.clone(), restricted: sharing.is_restricted(&held.source) };
            wanted.claims.entry(claim).or_default().push((ClaimTerms::of(object), owner));
        }
        wanted
    }

    /// Returns true if these data are about to move to another claim.
    pub(super) fn awaits(&self, paths: &Paths, claim: &ClaimName) -> bool {
        !self.claims.contains_key(claim) && self.moves.iter().any(|(to, from)| from == claim && awaits_move(paths, from, to))
    }

    /// Returns true if a source has the claim of these data.
    pub(super) fn has(&self, volume: &PersistentVolume) -> bool {
        let recorded = volume.record.as_ref().and_then(|record| record.owner.as_ref());
        let claims = self.claims.get(&volume.claim).into_iter().flatten();
        claims.into_iter().any(|(_, owner)| owner.tenure(recorded) != Tenure::None)
    }
}

/// Creates the directories of all claims, and moves the volumes to be deleted into the trash; claims must not be taken meanwhile. Tells of each that
/// was moved.
pub(super) fn reclaim(paths: &Paths, wanted: &Wanted, deleted: &dyn Fn()) -> Result<(), VolumeError> {
    let mut failures = Vec::new();
    failures.extend(move_data(paths, wanted).err().map(|error| error.to_string()));
    let awaits_move = |claim: &ClaimName| wanted.moves.get(claim).is_some_and(|from| awaits_move(paths, from, claim));
    for (claim, claimants) in wanted.claims.iter().filter(|(claim, _)| !awaits_move(claim)) {
        for (terms, owner) in claimants {
            // A source that may not have the data is told when its pods want them.
            if let Err(error) = make(paths, claim, terms, owner) {
                failures.push(format!("create claim {}/{}: {error}", claim.namespace, claim.name));
            }
        }
    }
    if wanted.is_complete {
        match list(paths) {
            Ok(volumes) => {
                let is_gone = |volume: &&PersistentVolume| {
                    !wanted.has(volume) && volume.users.is_empty() && !wanted.awaits(paths, &volume.claim)
                };
                for volume in volumes.iter().filter(is_gone).filter(|volume| is_disposable(paths, &volume.claim)) {
                    tracing::info!(
                        namespace = volume.claim.namespace,
                        claim = volume.claim.name,
                        "deleting the data of a removed claim"
                    );
                    match discard(paths, &volume.claim) {
                        Ok(()) => deleted(),
                        Err(error) => failures.push(error.to_string()),
                    }
                }
            }
            Err(error) => failures.push(error.to_string()),
        }
        failures.extend(disown(paths, wanted).err().map(|error| error.to_string()));
    }
    if failures.is_empty() { Ok(()) } else { Err(VolumeError::Claims(failures.join("; "))) }
}

/// Returns true if there are data that are deleted when no source has the claim. Of a block device there are none here but an empty directory.
pub(super) fn is_disposable(paths: &Paths, claim: &ClaimName) -> bool {
    let Some(ClaimRecord { terms, .. }) = read_record(&paths.persistent_volume(claim)) else { return false };
    let is_empty = || entries(&paths.persistent_data(claim)).is_ok_and(|entries| entries.is_empty());
    terms.reclaim_policy == ReclaimPolicy::Delete || terms.device.is_some() && is_empty()
}

/// Takes a volume away by one rename. What is in the trash is no claim's any more.
pub(super) fn discard(paths: &Paths, claim: &ClaimName) -> io::Result<()> {
    let trash = paths.volume_trash();
    make_directories(&trash, PRIVATE)?;
    let volume = paths.persistent_volume(claim);
    let target = trash.join(uuid::Uuid::new_v4().simple().to_string());
    match fs::rename(&volume, &target) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    sync_parent(&target)?;
    sync_parent(&volume)
}

/// Deletes what is in the trash.
pub(super) fn empty_trash(paths: &Paths) -> io::Result<()> {
    for entry in entries(&paths.volume_trash())? {
        remove_tree(&entry)?;
    }
    Ok(())
}

/// All persistent volumes on disk.
pub fn list(paths: &Paths) -> io::Result<Vec<PersistentVolume>> {
    let mut users = users(paths)?;
    let mut found = Vec::new();
    for namespace in entries(&paths.persistent_volumes())? {
        let Some(name) = name_of(&namespace).filter(|name| !name.starts_with('.')) else { continue };
        for volume in entries(&namespace)? {
            let Some(claim) = name_of(&volume) else { continue };
            let claim = ClaimName { namespace: name.to_owned(), name: claim.to_owned() };
            let record = read_record(&volume);
            let users = users.remove(&claim).unwrap_or_default().into_iter().collect();
            found.push(PersistentVolume { claim, record, users });
        }
    }
    found.sort_by(|one, other| one.claim.cmp(&other.claim));
    Ok(found)
}

/// Pods by the claims that they use.
pub(super) fn users(paths: &Paths) -> io::Result<BTreeMap<ClaimName, BTreeSet<PodUid>>> {
    let mut users: BTreeMap<ClaimName, BTreeSet<PodUid>> = BTreeMap::new();
    for pod in entries(&paths.pods())? {
        let Some(uid) = name_of(&pod) else { continue };
        let uid = PodUid::new(uid);
        for mark in entries(&paths.claim_marks(&uid))? {
            if let Some(Mark { claim, group: _ }) = read_mark(&mark) {
                users.entry(claim).or_default().insert(uid.clone());
            }
        }
    }
    Ok(users)
}

/// Makes the volume of a claim, unless the data that are there are those of another source, which is returned.
fn make(paths: &Paths, claim: &ClaimName, terms: &ClaimTerms, owner: &ClaimOwner) -> io::Result<Option<SourceId>> {
    let (volume, data) = (paths.persistent_volume(claim), paths.persistent_data(claim));
    let mut present = read_record(&volume);
    let recorded = present.as_ref().and_then(|record| record.owner.clone());
    match (owner.tenure(recorded.as_ref()), recorded) {
        (Tenure::Owns, _) | (_, None) => {}
        (Tenure::Displaces, Some(recorded)) => {
            displace(paths, claim, &recorded)?;
            present = None;
        }
        (Tenure::None, Some(recorded)) => return Ok(Some(recorded.source)),
    }
    if present.is_none() {
        // The record comes after the names that lead to it: where there is one, these are durable.
        make_directories(&volume, PRIVATE)?;
    }
    if present.as_ref().is_none_or(|record| record.terms != *terms || record.owner.as_ref() != Some(owner)) {
        let created_at = present.map_or_else(Timestamp::now, |record| record.created_at);
        let record = ClaimRecord { version: VERSION, created_at, terms: terms.clone(), owner: Some(owner.clone()) };
        write_durable(&volume.join(RECORD), &serde_json::to_vec_pretty(&record)?, 0o600)?;
    }
    if fs::symlink_metadata(&data).is_ok() {
        return Ok(None);
    }
    // It gets its name last: what has the name is open to the pods.
    let unnamed = volume.join(UNNAMED);
    DirBuilder::new().recursive(true).create(&unnamed)?;
    open_to_all(&unnamed)?;
    fs::rename(&unnamed, &data)?;
    sync_parent(&data)?;
    Ok(None)
}

pub(super) fn read_record(volume: &Path) -> Option<ClaimRecord> {
    let record: ClaimRecord = serde_json::from_slice(&fs::read(volume.join(RECORD)).ok()?).ok()?;
    Some(record).filter(|record| record.version == VERSION)
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// Paths of what is in a directory; none if there is no such directory.
fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    match paths_in(directory) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::desired;
    use podstead_pod::testing::{seen, view};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    struct Disk {
        _root: tempfile::TempDir,
        paths: Paths,
    }

    fn disk() -> Disk {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { state: root.path().join("state"), run: root.path().join("run"), logs: root.path().join("logs") };
        Disk { _root: root, paths }
    }

    fn objects(mode: &str, policy: &str) -> Objects {
        let claim = format!(
            "{{kind: PersistentVolumeClaim, metadata: {{name: data, namespace: shop, annotations: {{podstead.dev/reclaim-policy: {policy}}}}},
              spec: {{accessModes: [{mode}], resources: {{requests: {{storage: 1Gi}}}}}}}}"
        );
        view(&[("a", Some(&claim))])
    }

    fn pod(uid: &str, fields: &str) -> DesiredPod {
        let pod = desired(&format!(
            "{{{fields} containers: [{{name: c, volumeMounts: [{{name: d, mountPath: /d}}]}}], volumes: [{{name: d, persistentVolumeClaim: {{claimName: data}}}}]}}"
        ));
        DesiredPod { uid: PodUid::new(uid), ..pod }
    }

    fn prepare(disk: &Disk, pod: &DesiredPod, objects: &Objects) -> Result<(), String> {
        prepare_and_give(disk, pod, objects, Giving::All)
    }

    fn prepare_and_give(disk: &Disk, pod: &DesiredPod, objects: &Objects, giving: Giving) -> Result<(), String> {
        let claimed = podstead_pod::claims::claimed_volumes(&pod.pod, seen(objects)).remove(0).unwrap();
        take(&disk.paths, pod, &claimed).and_then(|()| give(&disk.paths, pod, &claimed, giving))
    }

    fn data(disk: &Disk) -> std::path::PathBuf {
        disk.paths.persistent_data(&ClaimName { namespace: "shop".into(), name: "data".into() })
    }

    #[test]
    fn data_outlive_the_pod_and_are_deleted_only_where_the_claim_says_so() {
        for (policy, stays) in [("Retain", true), ("Delete", false)] {
            let disk = disk();
            let with = objects("ReadWriteOnce", policy);
            reclaim(&disk.paths, &Wanted::of(&with), &|| {}).unwrap();
            let pod = pod("1", "");
            prepare(&disk, &pod, &with).unwrap();
            fs::write(data(&disk).join("kept"), "x").unwrap();
            let gone = Wanted::of(&view(&[("a", Some(""))]));
            reclaim(&disk.paths, &gone, &|| {}).unwrap();
            assert!(data(&disk).join("kept").is_file(), "a pod uses it");
            fs::remove_dir_all(disk.paths.volumes(&pod.uid)).unwrap();
            for unsure in [view(&[("a", None)]), view(&[])] {
                reclaim(&disk.paths, &Wanted::of(&unsure), &|| {}).unwrap();
                assert!(data(&disk).join("kept").is_file(), "the claim may still come");
            }
            reclaim(&disk.paths, &gone, &|| {}).unwrap();
            assert_eq!(data(&disk).join("kept").is_file(), stays, "{policy}");
            empty_trash(&disk.paths).unwrap();
            assert_eq!(fs::read_dir(disk.paths.volume_trash()).map_or(0, Iterator::count), 0);
            assert_eq!(list(&disk.paths).unwrap().len(), usize::from(stays));
        }
    }

    #[test]
    fn nothing_is_left_of_a_claim_of_a_block_device() {
        let claim = "{kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop, annotations: {podstead.dev/block-device: /dev/sdz}},
              spec: {accessModes: [ReadWriteOnce], volumeMode: Block, resources: {requests: {storage: 1Gi}}}}";
        for (is_empty, left) in [(true, 0), (false, 1)] {
            let disk = disk();
            reclaim(&disk.paths, &Wanted::of(&view(&[("a", Some(claim))])), &|| {}).unwrap();
            assert_eq!(list(&disk.paths).unwrap().len(), 1);
            if !is_empty {
                // Of a time when it was a directory.
                fs::write(data(&disk).join("kept"), "x").unwrap();
            }
            reclaim(&disk.paths, &Wanted::of(&view(&[("a", Some(""))])), &|| {}).unwrap();
            assert_eq!(list(&disk.paths).unwrap().len(), left);
        }
    }

    #[test]
    fn one_pod_at_a_time_has_an_exclusive_claim() {
        let disk = disk();
        let exclusive = objects("ReadWriteOncePod", "Retain");
        prepare(&disk, &pod("1", ""), &exclusive).unwrap();
        prepare(&disk, &pod("1", ""), &exclusive).unwrap();
        assert!(prepare(&disk, &pod("2", ""), &exclusive).unwrap_err().contains("ReadWriteOncePod"));
        assert_eq!(list(&disk.paths).unwrap()[0].users, [PodUid::new("1")]);
        fs::remove_dir_all(disk.paths.volumes(&PodUid::new("1"))).unwrap();
        prepare(&disk, &pod("2", ""), &exclusive).unwrap();
        prepare(&disk, &pod("3", ""), &objects("ReadWriteOnce", "Retain")).unwrap();
    }

    #[test]
    fn data_belong_to_the_group_as_the_policy_says() {
        let disk = disk();
        let objects = objects("ReadWriteOnce", "Retain");
        let group = |fields: &str| pod("1", &format!("securityContext: {{{fields}}},"));
        prepare(&disk, &pod("1", ""), &objects).unwrap();
        assert_eq!(fs::metadata(data(&disk)).unwrap().mode() & 0o7777, 0o777);
        fs::write(data(&disk).join("file"), "x").unwrap();
        let gid = || fs::metadata(data(&disk).join("file")).unwrap().gid();
        prepare(&disk, &group("fsGroup: 4321"), &objects).unwrap();
        assert_eq!(gid(), 4321);
        rustix::fs::chown(data(&disk).join("file"), None, Some(rustix::fs::Gid::from_raw(7))).unwrap();
        prepare(&disk, &group("fsGroup: 4321, fsGroupChangePolicy: OnRootMismatch"), &objects).unwrap();
        assert_eq!(gid(), 7);
        prepare(&disk, &group("fsGroup: 4321, fsGroupChangePolicy: Always"), &objects).unwrap();
        assert_eq!(gid(), 4321);
    }

    #[test]
    fn modes_are_the_containers_as_long_as_the_pod_runs() {
        let disk = disk();
        let objects = objects("ReadWriteOnce", "Retain");
        let of = |group: u32| pod("1", &format!("securityContext: {{fsGroup: {group}}},"));
        prepare(&disk, &of(4321), &objects).unwrap();
        let file = data(&disk).join("file");
        fs::write(&file, "x").unwrap();
        let close = || {
            fs::set_permissions(data(&disk), fs::Permissions::from_mode(0o700)).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        };
        let modes = || [data(&disk), file.clone()].map(|path| fs::metadata(path).unwrap().mode() & 0o7777);
        close();
        prepare_and_give(&disk, &of(4321), &objects, Giving::Rest).unwrap();
        assert_eq!(modes(), [0o700, 0o600]);
        prepare_and_give(&disk, &of(99), &objects, Giving::Rest).unwrap();
        assert_eq!((modes(), fs::metadata(&file).unwrap().gid()), ([0o2770, 0o660], 99), "another group");
        close();
        prepare(&disk, &of(99), &objects).unwrap();
        assert_eq!(modes(), [0o2770, 0o660], "at its next start");
        close();
        // An earlier version did not mark which group has the data; nor does a crash before all of it was given.
        let claim = ClaimName { namespace: "shop".into(), name: "data".into() };
        let place = disk.paths.claim_marks(&PodUid::new("1")).join(mark("d", &claim));
        fs::write(place, serde_json::to_vec(&claim).unwrap()).unwrap();
        prepare_and_give(&disk, &of(99), &objects, Giving::Rest).unwrap();
        assert_eq!(modes(), [0o2770, 0o660]);
        assert_eq!(list(&disk.paths).unwrap()[0].users, [PodUid::new("1")]);
    }

    #[test]
    fn what_a_crash_leaves_of_making_or_deleting_is_finished() {
        let disk = disk();
        let volume = data(&disk).parent().unwrap().to_owned();
        fs::create_dir_all(volume.join(UNNAMED)).unwrap();
        fs::write(volume.join(".claim.json.tmp"), "{").unwrap();
        prepare(&disk, &pod("1", ""), &objects("ReadWriteOnce", "Delete")).unwrap();
        assert!(list(&disk.paths).unwrap()[0].record.is_some());
        assert_eq!(fs::metadata(data(&disk)).unwrap().mode() & 0o7777, 0o777);
        fs::create_dir_all(disk.paths.volume_trash().join("half/data/deep")).unwrap();
        empty_trash(&disk.paths).unwrap();
        assert!(data(&disk).is_dir());
        // A record that cannot be read says nothing of deleting.
        fs::write(volume.join("claim.json"), "{").unwrap();
        fs::remove_dir_all(disk.paths.volumes(&PodUid::new("1"))).unwrap();
        reclaim(&disk.paths, &Wanted::of(&view(&[("a", Some(""))])), &|| {}).unwrap();
        assert!(data(&disk).is_dir());
    }
}

//! The source whose claim a persistent volume is: what becomes of the data of one when another one has a claim of that name.

use super::claims::{ClaimRecord, PRIVATE, PersistentVolume, RECORD, Wanted, list, read_record, users};
use podstead_pod::claims::{ClaimName, ClaimOwner};
use podstead_sys::atomic_file::{make_directories, sync_parent, write_durable};
use podstead_sys::layout::Paths;
use std::fs;
use std::io;

/// Lets the volume of a restricted source make room for a claim of an unrestricted one. Its data stay until somebody deletes them; pods that
/// have mounted them keep them.
pub(super) fn displace(paths: &Paths, claim: &ClaimName, owner: &ClaimOwner) -> io::Result<()> {
    let target = paths.displaced_volume(&uuid::Uuid::new_v4().simple().to_string(), claim);
    target.parent().map_or(Ok(()), |parent| make_directories(parent, PRIVATE))?;
    let ClaimName { namespace, name } = claim;
    tracing::warn!(
        namespace, claim = name, source = %owner.source, kept_in = %target.display(),
        "moved the data of a restricted source's claim aside: an unrestricted source declares the same claim"
    );
    let volume = paths.persistent_volume(claim);
    fs::rename(&volume, &target)?;
    sync_parent(&target)?;
    sync_parent(&volume)
}

/// Returns true if data of a version that did not record their owner move to a claim that has no data yet.
pub(super) fn awaits_move(paths: &Paths, from: &ClaimName, to: &ClaimName) -> bool {
    let has_no_owner = || read_record(&paths.persistent_volume(from)).is_some_and(|record| record.owner.is_none());
    read_record(&paths.persistent_volume(to)).is_none() && has_no_owner()
}

/// Moves data to the claims that they are for, once it is known that no other source has a claim to them and no pod uses them.
pub(super) fn move_data(paths: &Paths, wanted: &Wanted) -> io::Result<()> {
    if !wanted.is_complete || wanted.moves.is_empty() {
        return Ok(());
    }
    let users = users(paths)?;
    let is_free = |from: &ClaimName| !wanted.claims.contains_key(from) && !users.contains_key(from);
    for (to, from) in wanted.moves.iter().filter(|(to, from)| awaits_move(paths, from, to) && is_free(from)) {
        tracing::info!(
            claim = to.name,
            from = from.namespace,
            to = to.namespace,
            "moving the data of a claim to the source's namespace"
        );
        let (volume, target) = (paths.persistent_volume(from), paths.persistent_volume(to));
        target.parent().map_or(Ok(()), |parent| make_directories(parent, PRIVATE))?;
        fs::rename(&volume, &target)?;
        sync_parent(&target)?;
        sync_parent(&volume)?;
    }
    Ok(())
}

/// Records of data that nobody claims and whose owner was not recorded that they are no restricted source's.
pub(super) fn disown(paths: &Paths, wanted: &Wanted) -> io::Result<()> {
    let has_no_owner = |volume: &PersistentVolume| volume.record.as_ref().is_some_and(|record| record.owner.is_none());
    for volume in list(paths)?.into_iter().filter(has_no_owner) {
        if let Some(record) = volume.record.clone().filter(|_| !wanted.has(&volume) && !wanted.awaits(paths, &volume.claim)) {
            let record = ClaimRecord { owner: Some(ClaimOwner::unknown()), ..record };
            write_durable(&paths.persistent_volume(&volume.claim).join(RECORD), &serde_json::to_vec_pretty(&record)?, 0o600)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::{reclaim, take};
    use crate::tests::desired;
    use podstead_pod::SourceId;
    use podstead_pod::objects::{Objects, SourceView};
    use podstead_pod::sharing::{Sharing, SharingSource};
    use podstead_pod::testing::{shared_view, sharing};
    use std::path::PathBuf;

    struct Disk {
        _root: tempfile::TempDir,
        paths: Paths,
    }

    impl Disk {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let paths = Paths { state: root.path().join("state"), run: root.path().join("run"), logs: root.path().join("logs") };
            Self { _root: root, paths }
        }

        fn data(&self, namespace: &str) -> PathBuf {
            self.paths.persistent_data(&ClaimName { namespace: namespace.into(), name: "data".into() })
        }

        /// Writes the data as a version before the one that recorded owners did.
        fn leave(&self, namespace: &str, text: &str) {
            fs::create_dir_all(self.data(namespace)).unwrap();
            fs::write(self.data(namespace).join("file"), text).unwrap();
            let record = r#"{"version":1,"createdAt":"2026-01-01T00:00:00Z","accessModes":["ReadWriteOnce"],"capacity":"1Gi","reclaimPolicy":"Delete"}"#;
            fs::write(self.data(namespace).parent().unwrap().join(RECORD), record).unwrap();
        }

        fn reclaim(&self, objects: &Objects) {
            reclaim(&self.paths, &Wanted::of(objects), &|| {}).unwrap();
        }

        /// Takes the claim for a pod of this source.
        fn take(&self, uid: &str, namespace: &str, objects: SourceView<'_>) -> Result<(), String> {
            let mut pod = desired(
                "{containers: [{name: c, volumeMounts: [{name: d, mountPath: /d}]}], volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}",
            );
            pod.uid = podstead_pod::PodUid::new(uid);
            std::sync::Arc::make_mut(&mut pod.pod).metadata.namespace = Some(namespace.to_owned());
            let claimed = podstead_pod::claims::claimed_volumes(&pod.pod, objects).remove(0).map_err(|error| error.to_string())?;
            take(&self.paths, &pod, &claimed)
        }

        fn displaced(&self) -> Vec<PathBuf> {
            let root = self.paths.persistent_volumes().join(".displaced");
            let entries = fs::read_dir(root).into_iter().flatten().flatten();
            entries.map(|entry| entry.path().join("shop/data/data/file")).filter(|path| path.is_file()).collect()
        }
    }

    fn claim(namespace: &str) -> String {
        format!(
            "{{kind: PersistentVolumeClaim, metadata: {{name: data, namespace: {namespace}}}, spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}}}"
        )
    }

    /// The view of sources that have the claim in `shop`.
    fn having(sources: &[&str], having: &[&str]) -> Objects {
        let shop = claim("shop");
        let names = sources.iter().map(|source| source.trim_end_matches('!'));
        let delivered: Vec<_> = names.map(|name| (name, Some(if having.contains(&name) { shop.as_str() } else { "" }))).collect();
        shared_view(&sharing(sources, &[]), &delivered)
    }

    fn id(name: &str) -> SourceId {
        SourceId::new(name)
    }

    #[test]
    fn retained_data_stay_out_of_reach_of_a_restricted_source() {
        let disk = Disk::new();
        let (with_a, with_r) = (having(&["a", "r!"], &["a"]), having(&["a", "r!"], &["r"]));
        disk.take("1", "shop", with_a.seen_by(&id("a"))).unwrap();
        fs::write(disk.data("shop").join("file"), "of a").unwrap();
        disk.reclaim(&with_r);
        let refused = disk.take("2", "shop", with_r.seen_by(&id("r"))).unwrap_err();
        assert!(refused.starts_with("the data of claim \"data\" belong to source a, not to r"), "{refused}");
        // Unrestricted sources take over from each other.
        let with_b = having(&["a", "b", "r!"], &["b"]);
        disk.take("3", "shop", with_b.seen_by(&id("b"))).unwrap();
        assert_eq!(fs::read_to_string(disk.data("shop").join("file")).unwrap(), "of a");
    }

    #[test]
    fn data_of_a_restricted_source_make_room_and_are_kept() {
        let disk = Disk::new();
        let with_r = having(&["r!", "a"], &["r"]);
        disk.take("1", "shop", with_r.seen_by(&id("r"))).unwrap();
        fs::write(disk.data("shop").join("file"), "planted").unwrap();
        let both = having(&["r!", "a"], &["r", "a"]);
        disk.reclaim(&both);
        assert_eq!(fs::read_dir(disk.data("shop")).unwrap().count(), 0, "it is a new one");
        assert_eq!(disk.displaced().len(), 1);
        assert!(disk.take("1", "shop", both.seen_by(&id("r"))).is_err());
        disk.take("2", "shop", both.seen_by(&id("a"))).unwrap();
    }

    #[test]
    fn among_restricted_sources_data_stay_whose_they_are() {
        let disk = Disk::new();
        let with_s = having(&["r!", "s!"], &["s"]);
        disk.take("1", "shop", with_s.seen_by(&id("s"))).unwrap();
        let both = having(&["r!", "s!"], &["r", "s"]);
        disk.reclaim(&both);
        disk.take("1", "shop", both.seen_by(&id("s"))).unwrap();
        assert!(disk.take("2", "shop", both.seen_by(&id("r"))).unwrap_err().contains("belong to source s"));
    }

    /// A restricted source `shop` with a namespace of its own, beside an unrestricted one.
    fn in_own_namespace(shop: &str, base: Option<&str>) -> Objects {
        let source = |name: &str, own: Option<&str>| SharingSource {
            id: id(name),
            is_restricted: own.is_some(),
            uses_registry_credentials: own.is_none(),
            own_namespace: own.map(str::to_owned),
            shares: Vec::new(),
        };
        shared_view(
            &Sharing::new(vec![source("base", None), source("shop", Some("shop"))]),
            &[("base", base), ("shop", Some(shop))],
        )
    }

    #[test]
    fn data_come_over_to_the_namespace_of_their_source() {
        let disk = Disk::new();
        disk.leave("default", "kept");
        let mark = disk.paths.claim_marks(&podstead_pod::PodUid::new("old"));
        fs::create_dir_all(&mark).unwrap();
        fs::write(mark.join("d.data"), r#"{"namespace":"default","name":"data"}"#).unwrap();
        let shop = claim("shop");
        for waiting in [in_own_namespace(&shop, None), in_own_namespace(&shop, Some(""))] {
            disk.reclaim(&waiting);
            let refused = disk.take("1", "shop", waiting.seen_by(&id("shop"))).unwrap_err();
            assert!(refused.contains("are not moved from namespace \"default\" yet"), "{refused}");
            assert!(disk.data("default").join("file").is_file());
        }
        fs::remove_dir_all(mark).unwrap();
        let now = in_own_namespace(&shop, Some(""));
        disk.reclaim(&now);
        disk.take("1", "shop", now.seen_by(&id("shop"))).unwrap();
        assert_eq!(fs::read_to_string(disk.data("shop").join("file")).unwrap(), "kept");
        assert!(fs::symlink_metadata(disk.data("default")).is_err());
    }

    #[test]
    fn data_that_another_source_claims_do_not_come_over() {
        let disk = Disk::new();
        disk.leave("default", "of base");
        let (shop, base) = (claim("shop"), claim("default"));
        let both = in_own_namespace(&shop, Some(&base));
        disk.reclaim(&both);
        disk.reclaim(&both);
        disk.take("1", "shop", both.seen_by(&id("shop"))).unwrap();
        assert_eq!(fs::read_dir(disk.data("shop")).unwrap().count(), 0);
        assert_eq!(fs::read_to_string(disk.data("default").join("file")).unwrap(), "of base");
    }

    #[test]
    fn data_that_nobody_claimed_at_the_upgrade_are_nobodys() {
        let disk = Disk::new();
        disk.leave("shop", "orphan");
        let record = disk.data("shop").parent().unwrap().join(RECORD);
        fs::write(&record, fs::read_to_string(&record).unwrap().replace("Delete", "Retain")).unwrap();
        disk.reclaim(&having(&["a", "r!"], &[]));
        let with_r = having(&["a", "r!"], &["r"]);
        assert!(disk.take("1", "shop", with_r.seen_by(&id("r"))).is_err());
        let with_a = having(&["a", "r!"], &["a"]);
        disk.take("2", "shop", with_a.seen_by(&id("a"))).unwrap();
        assert_eq!(fs::read_to_string(disk.data("shop").join("file")).unwrap(), "orphan");
    }
}

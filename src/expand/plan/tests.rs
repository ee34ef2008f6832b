//! Tests of whole plans: SETs and observations in, SETs out, on a host without anything real.

use super::*;
use jiff::Timestamp;
use podstead_pod::{NodeName, Origin, Position, Revision};
use podstead_store::SetWorkload;
use podstead_workload::cron;
use serde_json::{Value, json};
use std::cell::Cell;
use std::time::Duration;

pub(super) struct Bench {
    pub(super) expander: Expander,
    /// The files on disk.
    pub(super) disk: BTreeMap<ObjectKey, Memory>,
    /// Pods of the last SETs that exist, by UID.
    pub(super) pods: BTreeMap<PodUid, (ObjectKey, ObservedPod)>,
    next_uid: Cell<u32>,
    pub(super) seconds: u64,
    pub(super) wall: Timestamp,
    pub(super) sent: BTreeMap<SourceId, Vec<String>>,
    pub(super) events: Vec<String>,
    warm: Vec<Warm>,
    /// Images are in the image store.
    has_images: bool,
    /// Claims with data on disk that nothing wants and that were not deleted yet.
    disposable: BTreeSet<String>,
}

pub(super) fn source(name: &str) -> SourceId {
    SourceId::new(name)
}

/// Sources whose names begin with `r` are restricted.
fn sharing(sources: &[&str]) -> Sharing {
    let source = |name: &&str| podstead_pod::sharing::SharingSource {
        id: source(name),
        is_restricted: name.starts_with('r'),
        uses_registry_credentials: !name.starts_with('r'),
        own_namespace: None,
        shares: Vec::new(),
    };
    Sharing::new(sources.iter().map(source).collect())
}

pub(super) fn key(kind: &str, name: &str) -> ObjectKey {
    ObjectKey { kind: kind.into(), namespace: "default".into(), name: name.into() }
}

/// A SET with these workloads.
pub(super) fn set(name: &str, workloads: &[Workload]) -> Set {
    let origin = || Origin { file: "web.yaml".into(), position: Position { line: 1, column: 1 } };
    let workloads = workloads.iter().map(|workload| {
        let name = workload.metadata().name.clone().unwrap();
        let key = key(workload.kind().as_str(), &name);
        (key, SetWorkload { workload: Arc::new(workload.clone()), origin: origin() })
    });
    Set {
        source: source(name),
        revision: Revision("1".into()),
        pods: BTreeMap::new(),
        config_maps: BTreeMap::new(),
        secrets: BTreeMap::new(),
        claims: BTreeMap::new(),
        network: BTreeMap::new(),
        workloads: workloads.collect(),
        problems: Vec::new(),
    }
}

fn template(image: &str, restart_policy: Option<&str>) -> Value {
    let mut template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": image}]},
    });
    if let Some(policy) = restart_policy {
        template["spec"]["restartPolicy"] = json!(policy);
    }
    template
}

pub(super) fn deployment(name: &str, replicas: u32, image: &str) -> Workload {
    let object = json!({
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template(image, None)},
    });
    Workload::Deployment(serde_json::from_value(object).unwrap())
}

pub(super) fn stateful_set(name: &str, replicas: u32) -> Workload {
    let object = json!({
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "serviceName": name, "selector": {"matchLabels": {"app": "web"}},
                 "template": template("db:1", None), "volumeClaimTemplates": [{"metadata": {"name": "data"},
                 "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]},
    });
    Workload::StatefulSet(serde_json::from_value(object).unwrap())
}

pub(super) fn job(name: &str) -> Workload {
    let object = json!({"metadata": {"name": name}, "spec": {"template": template("job:1", Some("Never"))}});
    Workload::Job(serde_json::from_value(object).unwrap())
}

pub(super) fn cron_job(name: &str, schedule: &str) -> Workload {
    let object = json!({
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": template("job:1", Some("Never"))}}},
    });
    Workload::CronJob(serde_json::from_value(object).unwrap())
}

impl Bench {
    pub(super) fn new(sources: &[&str]) -> Self {
        let host = Host { name: "till-7".into(), labels: BTreeMap::new() };
        let admit = AdmitContext::new(NodeName::new("till-7"));
        Self {
            expander: Expander::new(sharing(sources), host, admit, Memories::default(), Vec::new()),
            disk: BTreeMap::new(),
            pods: BTreeMap::new(),
            next_uid: Cell::new(0),
            seconds: 1000,
            wall: "2026-11-23T10:00:30Z".parse().unwrap(),
            sent: BTreeMap::new(),
            events: Vec::new(),
            warm: Vec::new(),
            has_images: true,
            disposable: BTreeSet::new(),
        }
    }

    /// The daemon ends and another one starts, after a reboot or without: the disk and the pods are what they were.
    pub(super) fn restart(&mut self, sources: &[&str]) {
        let known = self.pods.iter().map(|(uid, (owner, pod))| KnownPod {
            uid: uid.clone(),
            owner: owner.clone(),
            name: pod.name.clone(),
            is_terminating: pod.is_terminating,
        });
        let memories = Memories { read: self.disk.clone(), lost: BTreeSet::new() };
        let host = Host { name: "till-7".into(), labels: BTreeMap::new() };
        let admit = AdmitContext::new(NodeName::new("till-7"));
        self.expander = Expander::new(sharing(sources), host, admit, memories, known.collect());
        self.sent.clear();
    }

    fn uid(&self) -> String {
        self.next_uid.set(self.next_uid.get() + 1);
        format!("uid-{}", self.next_uid.get())
    }

    /// Plans once, without acting on it.
    fn plan_once(&mut self) -> Expansion {
        let clocks = cron::Clocks {
            wall: self.wall,
            moment: Moment::after_boot(Duration::from_secs(self.seconds)),
            boot_id: "boot".into(),
            synchronised: Some(true),
            built: "2026-01-01T00:00:00Z".parse().unwrap(),
            wait_for_sync: cron::WAIT_FOR_SYNC,
        };
        let next_uid = &self.next_uid;
        let uid = || {
            next_uid.set(next_uid.get() + 1);
            format!("uid-{}", next_uid.get())
        };
        self.expander.plan(&Now {
            clocks,
            zones: jiff::tz::db(),
            fresh_uid: &uid,
            is_disposable: &|_, name| self.disposable.contains(name),
        })
    }

    /// Plans; the disk and the host follow: wanted pods exist, others are being stopped.
    pub(super) fn plan(&mut self) -> Expansion {
        loop {
            let expansion = self.plan_once();
            self.follow(&expansion);
            let wanted: Vec<Warm> = expansion.warm.values().flatten().cloned().collect();
            if !self.has_images || wanted.is_empty() {
                return expansion;
            }
            for warm in wanted {
                let images: Vec<String> = warm.images.iter().map(|(image, _)| image.clone()).collect();
                self.expander.images_arrived(&warm.key, images);
            }
        }
    }

    /// Plans and loses power when some of the changes are on disk, before anybody else hears of the plan.
    pub(super) fn lose_power_in_plan(&mut self, written: usize) {
        let expansion = self.plan_once();
        self.write(&expansion.changes[..written.min(expansion.changes.len())]);
    }

    fn write(&mut self, changes: &[Change]) {
        for Change { key, content, boot: _ } in changes {
            match content {
                Some(content) => self.disk.insert(key.clone(), serde_json::from_slice(content).unwrap()),
                None => self.disk.remove(key),
            };
        }
    }

    fn follow(&mut self, expansion: &Expansion) {
        self.write(&expansion.changes);
        self.events.extend(expansion.events.iter().map(|event| event.event.reason.to_owned()));
        self.warm = expansion.warm.values().flatten().cloned().collect();
        for set in &expansion.sets {
            let names = set.pods.values().map(|pod| pod.pod.metadata.name.clone().unwrap()).collect();
            self.sent.insert(set.source.clone(), names);
            for pod in set.pods.values() {
                let name = pod.pod.metadata.name.clone().unwrap();
                if !self.pods.values().any(|(_, known)| known.name == name && !known.is_terminating) {
                    let owner = crate::observations::owner(&pod.pod, "default").unwrap();
                    let uid = PodUid::new(self.uid());
                    self.see(uid, owner, pending(name));
                }
            }
        }
        let wanted: BTreeSet<&String> = self.sent.values().flatten().collect();
        let going: Vec<PodUid> = self
            .pods
            .iter()
            .filter(|(_, (_, pod))| !pod.is_terminating && !wanted.contains(&pod.name))
            .map(|(uid, _)| uid.clone())
            .collect();
        if self.sent.len() == self.expander.sharing.order().count() {
            for uid in going {
                let (owner, mut pod) = self.pods[&uid].clone();
                pod.is_terminating = true;
                self.see(uid, owner, pod);
            }
        }
    }

    fn see(&mut self, uid: PodUid, owner: ObjectKey, pod: ObservedPod) {
        self.pods.insert(uid.clone(), (owner.clone(), pod.clone()));
        self.expander.observe(uid, Sight::Seen(Box::new(Seen { owner, pod, lost: Vec::new() })));
    }

    /// Changes what is observed of all pods.
    pub(super) fn change(&mut self, change: impl Fn(&mut ObservedPod)) {
        for (uid, (owner, mut pod)) in self.pods.clone() {
            change(&mut pod);
            self.see(uid, owner, pod);
        }
    }

    pub(super) fn make_ready(&mut self) {
        let now = Moment::after_boot(Duration::from_secs(self.seconds));
        self.change(|pod| {
            if pod.is_active() {
                pod.phase = Phase::Running;
                pod.ready_since.get_or_insert(now);
            }
        });
    }

    pub(super) fn finish_stops(&mut self) {
        let gone: Vec<PodUid> = self.pods.iter().filter(|(_, (_, pod))| pod.is_terminating).map(|(uid, _)| uid.clone()).collect();
        for uid in gone {
            self.pods.remove(&uid);
            self.expander.observe(uid, Sight::Gone);
        }
    }

    /// Lets everything come to rest.
    pub(super) fn settle(&mut self) {
        for _ in 0..50 {
            self.plan();
            self.make_ready();
            self.plan();
            self.finish_stops();
        }
        self.plan();
    }

    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.sent.values().flatten().cloned().collect();
        names.sort();
        names
    }
}

fn pending(name: String) -> ObservedPod {
    ObservedPod {
        name,
        phase: Phase::Pending,
        ready_since: None,
        is_terminating: false,
        restarts: 0,
        ends: Vec::new(),
        ended_at: None,
        conditions: Vec::new(),
        deletion_cost: 0,
    }
}

#[test]
fn deployment_becomes_pods_once() {
    let mut bench = Bench::new(&["a"]);
    bench.expander.apply(set("a", &[deployment("web", 2, "web:1")]));
    let first = bench.plan();
    assert_eq!(first.changes.len(), 1, "the memory is written with the first SET");
    assert_eq!(bench.names().len(), 2);
    bench.settle();
    let again = bench.plan();
    assert_eq!((again.changes.len(), again.sets.len(), again.events.len()), (0, 0, 0));
    bench.expander.apply(set("a", &[deployment("web", 2, "web:1")]));
    let same = bench.plan();
    assert_eq!((same.changes.len(), same.sets.len()), (0, 1), "each SET gives one, and nothing is written");
}

#[test]
fn new_template_rolls_out() {
    let mut bench = Bench::new(&["a"]);
    bench.expander.apply(set("a", &[deployment("web", 3, "web:1")]));
    bench.settle();
    let before = bench.names();
    bench.expander.apply(set("a", &[deployment("web", 3, "web:2")]));
    bench.settle();
    let after = bench.names();
    assert_eq!(after.len(), 3);
    assert!(before.iter().all(|name| !after.contains(name)), "{before:?} {after:?}");
    assert_eq!(bench.pods.len(), 3);
}

/// TD19.
#[test]
fn missing_images_delay_update() {
    let mut bench = Bench::new(&["a"]);
    let exclusive = |image: &str| {
        let Workload::Deployment(mut object) = deployment("web", 1, image) else { panic!() };
        object.spec.as_mut().unwrap().strategy = serde_json::from_value(json!({"type": "Recreate"})).unwrap();
        Workload::Deployment(object)
    };
    bench.expander.apply(set("a", &[exclusive("web:1")]));
    bench.settle();
    let before = bench.names();
    bench.has_images = false;
    bench.expander.apply(set("a", &[exclusive("web:2")]));
    bench.settle();
    assert_eq!(bench.names(), before);
    assert_eq!(bench.warm.len().min(1), 0, "asked for once, not in every plan");
    bench.has_images = true;
    bench.expander.images_arrived(&key("Deployment", "web"), ["web:2".to_owned()]);
    bench.settle();
    assert_ne!(bench.names(), before);
}

/// W96.
#[test]
fn rollout_continues_after_restart() {
    let mut bench = Bench::new(&["a"]);
    bench.expander.apply(set("a", &[deployment("web", 4, "web:1")]));
    bench.settle();
    bench.expander.apply(set("a", &[deployment("web", 4, "web:2")]));
    bench.plan();
    let half = bench.names();
    bench.restart(&["a"]);
    bench.expander.apply(set("a", &[deployment("web", 4, "web:2")]));
    bench.plan();
    assert_eq!(bench.names(), half, "the same pods are wanted");
    bench.change(|_| {});
    bench.settle();
    assert_eq!(bench.names().len(), 4);
    assert_eq!(bench.pods.len(), 4);
}

/// W94.
#[test]
fn nothing_is_removed_before_all_sources_delivered() {
    let mut bench = Bench::new(&["a", "b"]);
    bench.expander.apply(set("a", &[deployment("web", 4, "web:1")]));
    bench.expander.apply(set("b", &[]));
    bench.settle();
    let before = bench.names();
    bench.restart(&["a", "b"]);
    bench.expander.apply(set("a", &[deployment("web", 4, "web:2")]));
    bench.change(|_| {});
    for _ in 0..5 {
        bench.plan();
        bench.make_ready();
    }
    assert!(before.iter().all(|name| bench.names().contains(name)), "{:?}", bench.names());
    bench.expander.apply(set("b", &[]));
    bench.settle();
    assert!(before.iter().all(|name| !bench.names().contains(name)));
}

/// W18.
#[test]
fn removed_workload_is_forgotten_with_last_pod() {
    let mut bench = Bench::new(&["a"]);
    bench.expander.apply(set("a", &[deployment("web", 2, "web:1")]));
    bench.settle();
    bench.expander.apply(set("a", &[]));
    let expansion = bench.plan();
    assert_eq!(bench.names(), Vec::<String>::new());
    assert_eq!(expansion.withdrawn.len(), 2, "the Deployment and its ReplicaSet");
    bench.plan();
    assert_eq!(bench.disk.len(), 1, "pods are being stopped");
    bench.finish_stops();
    bench.plan();
    assert_eq!(bench.disk.len(), 0);
}

/// TX1.
#[test]
fn first_source_has_precedence() {
    let mut bench = Bench::new(&["a", "b"]);
    bench.expander.apply(set("a", &[deployment("web", 1, "web:a")]));
    bench.expander.apply(set("b", &[deployment("web", 1, "web:b")]));
    let expansion = bench.plan();
    assert_eq!(expansion.conflicts.len(), 1);
    bench.settle();
    assert_eq!((bench.sent[&source("a")].len(), bench.sent[&source("b")].len()), (1, 0));
    let uid = |bench: &Bench| match &bench.disk[&key("Deployment", "web")].kind {
        KindMemory::Deployment(memory) => memory.identity.uid.clone(),
        _ => panic!(),
    };
    let before = uid(&bench);
    bench.expander.apply(set("a", &[]));
    bench.settle();
    assert_eq!((bench.sent[&source("a")].len(), bench.sent[&source("b")].len()), (0, 1));
    assert_eq!(uid(&bench), before, "it rolls out with the same memory");
}

/// TX3: a rollout that is half done, and what may come then.
#[test]
fn rollout_half_done_goes_on_or_back() {
    let half = || {
        let mut bench = Bench::new(&["a"]);
        bench.expander.apply(set("a", &[deployment("web", 4, "web:1")]));
        bench.settle();
        let first: BTreeSet<String> = bench.names().into_iter().collect();
        bench.expander.apply(set("a", &[deployment("web", 4, "web:2")]));
        bench.plan();
        let now: BTreeSet<String> = bench.names().into_iter().collect();
        assert!(!now.is_disjoint(&first) && !now.is_subset(&first), "{now:?}");
        (bench, first)
    };
    let names = |bench: &Bench| bench.names().into_iter().collect::<BTreeSet<String>>();
    // A source that is suspended delivers nothing: the rollout ends.
    let (mut bench, first) = half();
    bench.settle();
    assert!(names(&bench).is_disjoint(&first) && bench.names().len() == 4);
    // A rollback: the earlier revision has its names again, and the pods of it that are left stay.
    let (mut bench, first) = half();
    let left: BTreeSet<PodUid> = bench
        .pods
        .iter()
        .filter(|(_, (_, pod))| first.contains(&pod.name) && !pod.is_terminating)
        .map(|(uid, _)| uid.clone())
        .collect();
    bench.expander.apply(set("a", &[deployment("web", 4, "web:1")]));
    bench.settle();
    let hash = |name: &String| name.rsplit_once('-').unwrap().0.to_owned();
    assert_eq!(bench.names().iter().map(hash).collect::<BTreeSet<_>>(), first.iter().map(hash).collect());
    assert!(!left.is_empty() && left.iter().all(|uid| bench.pods.contains_key(uid)));
    // A file that cannot be read any more: the SET has the workload as it was, with a problem.
    let (mut bench, first) = half();
    bench.expander.apply(Set { revision: Revision("broken".into()), ..set("a", &[deployment("web", 4, "web:2")]) });
    bench.settle();
    assert!(names(&bench).is_disjoint(&first) && bench.names().len() == 4);
    // A restart: nothing leaves before all pods were observed.
    let (mut bench, _) = half();
    let wanted = names(&bench);
    bench.restart(&["a"]);
    bench.expander.apply(set("a", &[deployment("web", 4, "web:2")]));
    let one = bench.pods.iter().next().map(|(uid, (owner, pod))| (uid.clone(), owner.clone(), pod.clone())).unwrap();
    bench.see(one.0, one.1, one.2);
    bench.plan();
    assert_eq!(names(&bench), wanted);
}

/// TS12, W43.
#[test]
fn ordinal_waits_until_its_old_data_are_deleted() {
    let of = |replicas: u32| {
        let Workload::StatefulSet(mut object) = stateful_set("db", replicas) else { panic!() };
        object.spec.as_mut().unwrap().persistent_volume_claim_retention_policy =
            serde_json::from_value(json!({"whenScaled": "Delete", "whenDeleted": "Retain"})).unwrap();
        set("a", &[Workload::StatefulSet(object)])
    };
    let mut bench = Bench::new(&["a"]);
    bench.expander.apply(of(2));
    bench.settle();
    bench.expander.apply(of(1));
    bench.settle();
    assert_eq!(bench.names(), ["db-0"]);
    bench.disposable = ["data-db-1".to_owned()].into();
    bench.expander.apply(of(2));
    bench.settle();
    assert_eq!(bench.names(), ["db-0"], "the data are still there");
    // A restart forgets nothing of it.
    bench.restart(&["a"]);
    bench.expander.apply(of(2));
    bench.settle();
    assert_eq!(bench.names(), ["db-0"]);
    bench.disposable.clear();
    bench.plan();
    assert_eq!(bench.names(), ["db-0"], "nothing looks by itself");
    bench.expander.data_were_deleted();
    bench.settle();
    assert_eq!(bench.names(), ["db-0", "db-1"]);
    // Data that a claim in force has are not in the way, whatever their policy.
    bench.disposable = ["data-db-0".to_owned(), "data-db-1".to_owned()].into();
    bench.expander.apply(of(2));
    bench.settle();
    bench.restart(&["a"]);
    bench.expander.apply(of(2));
    bench.settle();
    assert_eq!(bench.names(), ["db-0", "db-1"]);
}

/// W99 (8): the order in which sources deliver does not matter.
#[test]
fn order_of_sources_changes_nothing() {
    let sets = || {
        let both = [deployment("web", 2, "web:a"), stateful_set("db", 2), job("web")];
        [set("a", &both), set("b", &[deployment("web", 3, "web:b"), job("dump")]), set("c", &[stateful_set("db", 3)])]
    };
    let of = |order: [usize; 3]| {
        let mut bench = Bench::new(&["a", "b", "c"]);
        for index in order {
            bench.expander.apply(sets()[index].clone());
            bench.plan();
        }
        bench.settle();
        (bench.sent.clone(), bench.disk.keys().cloned().collect::<Vec<_>>())
    };
    let expected = of([0, 1, 2]);
    assert_eq!(expected.0[&source("a")].len(), 5);
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        assert_eq!(of(order), expected, "{order:?}");
    }
}

/// W93: the source that had it before the restart comes first.
#[test]
fn workload_waits_for_its_source_after_restart() {
    let mut bench = Bench::new(&["a", "b"]);
    bench.expander.apply(set("a", &[deployment("web", 1, "web:a")]));
    bench.expander.apply(set("b", &[deployment("web", 1, "web:b")]));
    bench.settle();
    let before = bench.names();
    bench.restart(&["a", "b"]);
    bench.expander.apply(set("b", &[deployment("web", 1, "web:b")]));
    bench.plan();
    assert_eq!(bench.names(), Vec::<String>::new());
    bench.expander.apply(set("a", &[deployment("web", 1, "web:a")]));
    bench.plan();
    assert_eq!(bench.names(), before);
}

/// Restricted sources: what is there stays, and nothing of one source is the memory of another one.
#[test]
fn restricted_source_takes_nothing_over() {
    let mut bench = Bench::new(&["r1", "r2"]);
    bench.expander.apply(set("r1", &[]));
    bench.expander.apply(set("r2", &[deployment("web", 1, "web:2")]));
    bench.settle();
    let uid = |bench: &Bench| match &bench.disk[&key("Deployment", "web")] {
        Memory { kind: KindMemory::Deployment(memory), source, .. } => (source.clone(), memory.identity.uid.clone()),
        other => panic!("{other:?}"),
    };
    let before = uid(&bench);
    bench.expander.apply(set("r1", &[deployment("web", 1, "web:1")]));
    bench.settle();
    assert_eq!(uid(&bench), before);
    bench.expander.apply(set("r2", &[]));
    bench.settle();
    assert_eq!(uid(&bench).0, source("r1"));
    assert_ne!(uid(&bench).1, before.1);
    assert_eq!((bench.sent[&source("r1")].len(), bench.pods.len()), (1, 1));
    // Nor through the memory on disk.
    bench.restart(&["r2"]);
    bench.expander.apply(set("r2", &[deployment("web", 1, "web:1")]));
    bench.change(|_| {});
    bench.settle();
    let KindMemory::Deployment(memory) = &bench.disk[&key("Deployment", "web")].kind else { panic!() };
    assert_eq!(memory.revisions.iter().count(), 1);
    assert_eq!(bench.pods.len(), 1);
}

/// TX2.
#[test]
fn names_go_to_stateful_sets_first() {
    let mut bench = Bench::new(&["a"]);
    let replica_set = |replicas: u32| {
        let object = json!({"metadata": {"name": "web"}, "spec": {"replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}}, "template": template("web:1", None)}});
        Workload::ReplicaSet(serde_json::from_value(object).unwrap())
    };
    bench.expander.apply(set("a", &[replica_set(2), stateful_set("web", 2), job("web")]));
    bench.settle();
    assert_eq!(bench.names(), ["web-0", "web-1", "web-2", "web-3", "web-4"]);
}

/// W41.
#[test]
fn claims_of_templates_are_in_the_set() {
    let mut bench = Bench::new(&["a"]);
    bench.expander.apply(set("a", &[stateful_set("db", 1)]));
    let expansion = bench.plan();
    let claims: Vec<&str> = expansion.sets[0].claims.keys().map(|key| key.name.as_str()).collect();
    assert_eq!(claims, ["data-db-0"]);
}

fn end_all(bench: &mut Bench, phase: Phase) {
    let now = Moment::after_boot(Duration::from_secs(bench.seconds));
    bench.change(|pod| {
        if pod.is_active() {
            pod.phase = phase;
            pod.ended_at = Some(now);
        }
    });
}

/// W60, TJ19.
#[test]
fn finished_job_does_not_run_again_after_restart() {
    let mut bench = Bench::new(&["a"]);
    bench.expander.apply(set("a", &[job("dump")]));
    bench.plan();
    assert_eq!(bench.names(), ["dump-0"]);
    end_all(&mut bench, Phase::Succeeded);
    bench.plan();
    assert!(bench.events.contains(&"Completed".to_owned()), "{:?}", bench.events);
    for _ in 0..3 {
        bench.restart(&["a"]);
        bench.expander.apply(set("a", &[job("dump")]));
        bench.change(|_| {});
        bench.plan();
        assert_eq!(bench.names(), ["dump-0"], "its pod is kept for the log");
    }
}

/// W53, TJ8 with OnFailure: nine power cuts are no failure, and a container that fails nine times is.
#[test]
fn restarts_after_power_cuts_fail_no_job() {
    let on_failure = || {
        let Workload::Job(mut object) = job("dump") else { panic!() };
        object.spec.as_mut().unwrap().template.spec.as_mut().unwrap().restart_policy = Some("OnFailure".into());
        Workload::Job(object)
    };
    let run = |is_power_cut: bool| {
        let mut bench = Bench::new(&["a"]);
        bench.expander.apply(set("a", &[on_failure()]));
        bench.plan();
        for restarts in 1..=9 {
            bench.restart(&["a"]);
            bench.expander.apply(set("a", &[on_failure()]));
            for (uid, (owner, mut pod)) in bench.pods.clone() {
                (pod.phase, pod.restarts) = (Phase::Running, restarts);
                let container = LostContainer { container: "main".into(), restarts };
                let lost = is_power_cut.then_some(container).into_iter().collect();
                bench.expander.observe(uid, Sight::Seen(Box::new(Seen { owner, pod, lost })));
            }
            bench.plan();
        }
        bench.events.contains(&"BackoffLimitExceeded".to_owned()) || bench.names().is_empty()
    };
    assert!(!run(true));
    assert!(run(false));
}

#[test]
fn cron_job_starts_job_at_its_time() {
    let mut bench = Bench::new(&["a"]);
    bench.expander.apply(set("a", &[cron_job("dump", "* * * * *")]));
    let expansion = bench.plan();
    assert_eq!(bench.names(), Vec::<String>::new());
    assert_eq!(expansion.wake_wall, Some("2026-11-23T10:01:00Z".parse().unwrap()));
    bench.wall = "2026-11-23T10:01:00Z".parse().unwrap();
    bench.seconds += 30;
    bench.expander.wake(Moment::after_boot(Duration::from_secs(bench.seconds)), bench.wall, false);
    let expansion = bench.plan();
    let jobs: Vec<&ObjectKey> = expansion.changes.iter().map(|change| &change.key).collect();
    assert_eq!(jobs[0].kind, "CronJob", "a run is recorded before its Job");
    let minute = bench.wall.as_second() / 60;
    assert_eq!(bench.names(), [format!("dump-{minute}-0")]);
    end_all(&mut bench, Phase::Succeeded);
    bench.plan();
    assert!(bench.events.contains(&"SawCompletedJob".to_owned()), "{:?}", bench.events);
}

/// TC5.
#[test]
fn recorded_run_starts_once_after_power_cut() {
    let mut bench = Bench::new(&["a"]);
    bench.expander.apply(set("a", &[cron_job("dump", "* * * * *")]));
    bench.plan();
    bench.wall = "2026-11-23T10:01:00Z".parse().unwrap();
    bench.expander.wake(Moment::default(), bench.wall, true);
    bench.plan();
    let names = bench.names();
    // The Job's own memory and its pod were not made before the power went.
    bench.disk.retain(|key, _| key.kind == "CronJob");
    bench.pods.clear();
    bench.restart(&["a"]);
    bench.expander.apply(set("a", &[cron_job("dump", "* * * * *")]));
    bench.plan();
    assert_eq!(bench.names(), names);
}

/// TC13.
#[test]
fn each_minute_runs_once_across_restarts_and_jumps_of_the_clock() {
    let mut bench = Bench::new(&["a"]);
    bench.expander.apply(set("a", &[cron_job("dump", "* * * * *")]));
    bench.plan();
    // The time of each look, and the minute that starts by it. Between two looks, half a minute passes on the clock that never jumps.
    let looks = [
        ("2026-11-23T10:01:00Z", Some("2026-11-23T10:01:00Z")),
        ("2026-11-23T10:01:30Z", None),
        ("2026-11-23T10:02:00Z", Some("2026-11-23T10:02:00Z")),
        // Forward: of the minutes that never were, the last one starts.
        ("2026-11-23T12:30:20Z", Some("2026-11-23T12:30:00Z")),
        // Back: minutes that have been run do not run again, nor do those before them.
        ("2026-11-23T12:20:20Z", None),
        ("2026-11-23T12:21:00Z", None),
        ("2026-11-23T12:30:00Z", None),
        ("2026-11-23T12:31:00Z", Some("2026-11-23T12:31:00Z")),
        // A clock that lost its battery, and what corrects it.
        ("1970-01-01T00:05:00Z", None),
        ("1970-01-01T00:06:00Z", None),
        ("2026-11-23T12:33:10Z", Some("2026-11-23T12:33:00Z")),
    ];
    let mut started = BTreeSet::new();
    for (wall, minute) in looks {
        for is_restarted in [false, true] {
            if is_restarted {
                bench.restart(&["a"]);
                bench.expander.apply(set("a", &[cron_job("dump", "* * * * *")]));
                // The pods that the host had are seen again.
                bench.change(|_| {});
            } else {
                bench.wall = wall.parse().unwrap();
                bench.seconds += 30;
                bench.expander.wake(Moment::after_boot(Duration::from_secs(bench.seconds)), bench.wall, true);
            }
            bench.plan();
            let new: Vec<String> = bench.names().into_iter().filter(|name| started.insert(name.clone())).collect();
            let minute = minute.filter(|_| !is_restarted).map(|minute| minute.parse::<Timestamp>().unwrap().as_second() / 60);
            let expected: Vec<String> = minute.into_iter().map(|minute| format!("dump-{minute}-0")).collect();
            assert_eq!(new, expected, "{wall}, restarted: {is_restarted}");
            end_all(&mut bench, Phase::Succeeded);
            bench.plan();
        }
    }
}

#[test]
fn jobs_over_the_history_limit_are_forgotten() {
    let mut bench = Bench::new(&["a"]);
    bench.expander.apply(set("a", &[cron_job("dump", "* * * * *")]));
    bench.plan();
    for _ in 0..8 {
        bench.wall += Duration::from_secs(60);
        bench.seconds += 60;
        bench.expander.wake(Moment::after_boot(Duration::from_secs(bench.seconds)), bench.wall, false);
        bench.plan();
        end_all(&mut bench, Phase::Succeeded);
        bench.plan();
        bench.finish_stops();
        bench.plan();
    }
    assert_eq!(bench.names().len(), 3, "{:?}", bench.names());
    assert_eq!(bench.disk.keys().filter(|key| key.kind == "Job").count(), 3);
}

#[test]
fn cron_job_gone_takes_its_jobs() {
    let mut bench = Bench::new(&["a"]);
    bench.expander.apply(set("a", &[cron_job("dump", "* * * * *")]));
    bench.plan();
    bench.wall += Duration::from_secs(60);
    bench.expander.wake(Moment::default(), bench.wall, true);
    bench.plan();
    assert_eq!(bench.names().len(), 1);
    bench.expander.apply(set("a", &[]));
    bench.settle();
    assert_eq!((bench.names().len(), bench.disk.len(), bench.pods.len()), (0, 0, 0));
}

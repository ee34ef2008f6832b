//! StatefulSets, evaluated whole.

use super::*;
use crate::observed::Phase;
use crate::testing::{TestHost, merge, names, template};
use serde_json::{Value, json};

struct Case {
    host: TestHost,
    spec: Value,
    memory: Option<StatefulSetMemory>,
}

impl Case {
    fn new(spec: &Value) -> Self {
        let mut all = json!({"selector": {"matchLabels": {"app": "db"}}, "serviceName": "db", "template": template("db:1")});
        merge(&mut all, spec);
        Self { host: TestHost::new(), spec: all, memory: None }
    }

    fn edit(&mut self, spec: &Value) {
        merge(&mut self.spec, spec);
    }

    fn image(&mut self, image: &str) {
        self.edit(&json!({"template": template(image)}));
    }

    fn step(&mut self) -> Step {
        let object: StatefulSet = serde_json::from_value(json!({"metadata": {"name": "db"}, "spec": self.spec})).unwrap();
        let step = self.host.evaluate(|pods, context| super::step(&object, self.memory.as_ref(), pods, context));
        self.host.apply(&step.pods);
        self.memory = Some(serde_json::from_str(&serde_json::to_string(&step.memory).unwrap()).unwrap());
        step
    }

    /// Pods as `name image`.
    fn look(&mut self) -> Vec<String> {
        let step = self.step();
        let image = |pod: &Pod| pod.spec.as_ref().unwrap().containers[0].image.clone().unwrap();
        step.pods.iter().map(|pod| format!("{} {}", pod.metadata.name.clone().unwrap(), image(pod))).collect()
    }

    fn names(&mut self) -> Vec<String> {
        names(&self.step().pods)
    }

    fn settle(&mut self) -> Vec<String> {
        for _ in 0..40 {
            self.step();
            self.host.finish_stops();
            self.host.make_ready();
        }
        self.look()
    }
}

/// TS1.
#[test]
fn ordered_set_starts_one_by_one() {
    let mut case = Case::new(&json!({"replicas": 3}));
    assert_eq!(case.names(), ["db-0"]);
    assert_eq!(case.names(), ["db-0"]);
    case.host.make_ready();
    assert_eq!(case.names(), ["db-0", "db-1"]);
    case.host.make_ready();
    assert_eq!(case.names(), ["db-0", "db-1", "db-2"]);
}

/// TS1.
#[test]
fn parallel_set_starts_at_once() {
    let mut case = Case::new(&json!({"replicas": 3, "podManagementPolicy": "Parallel"}));
    assert_eq!(case.names(), ["db-0", "db-1", "db-2"]);
}

#[test]
fn pod_has_its_identity() {
    let mut case = Case::new(&json!({"replicas": 1}));
    let pod = case.step().pods.remove(0);
    let labels = pod.metadata.labels.unwrap();
    assert_eq!(labels["statefulset.kubernetes.io/pod-name"], "db-0");
    assert_eq!(labels["apps.kubernetes.io/pod-index"], "0");
    let revision = case.memory.as_ref().unwrap().current.clone();
    assert_eq!(labels["controller-revision-hash"], format!("db-{revision}"));
    let spec = pod.spec.unwrap();
    assert_eq!((spec.hostname.as_deref(), spec.subdomain.as_deref()), (Some("db-0"), Some("db")));
}

/// TS2.
#[test]
fn next_pod_waits_for_minimum_time() {
    let mut case = Case::new(&json!({"replicas": 2, "minReadySeconds": 10}));
    case.step();
    case.host.make_ready();
    case.host.seconds += 9;
    let step = case.step();
    assert_eq!((step.pods.len(), step.wake), (1, Some(case.host.now() + std::time::Duration::from_secs(1))));
    case.host.seconds += 1;
    assert_eq!(case.names(), ["db-0", "db-1"]);
}

/// TS3.
#[test]
fn ordered_set_stops_from_the_top() {
    let mut case = Case::new(&json!({"replicas": 3}));
    case.settle();
    case.edit(&json!({"replicas": 0}));
    assert_eq!(case.names(), ["db-0", "db-1"]);
    assert_eq!(case.names(), ["db-0", "db-1"], "db-2 is still being stopped");
    case.host.finish_stops();
    assert_eq!(case.names(), ["db-0"]);
    case.host.finish_stops();
    assert!(case.names().is_empty());
}

/// TS4.
#[test]
fn unready_pod_holds_ordered_scaling() {
    for (policy, expected) in [("OrderedReady", 3), ("Parallel", 2)] {
        let mut case = Case::new(&json!({"replicas": 3, "podManagementPolicy": policy}));
        case.settle();
        case.host.make_unready("db-1");
        case.edit(&json!({"replicas": 2}));
        assert_eq!(case.names().len(), expected, "{policy}");
        case.host.make_ready();
        assert_eq!(case.names(), ["db-0", "db-1"], "{policy}");
    }
}

/// TS5.
#[test]
fn update_goes_from_the_top() {
    let mut case = Case::new(&json!({"replicas": 3}));
    case.settle();
    case.image("db:2");
    assert_eq!(case.look(), ["db-0 db:1", "db-1 db:1"]);
    assert_eq!(case.look(), ["db-0 db:1", "db-1 db:1"], "the old pod still exists");
    case.host.finish_stops();
    assert_eq!(case.look(), ["db-0 db:1", "db-1 db:1", "db-2 db:2"]);
    assert_eq!(case.look(), ["db-0 db:1", "db-1 db:1", "db-2 db:2"], "it is not available yet");
    case.host.make_ready();
    assert_eq!(case.look(), ["db-0 db:1", "db-2 db:2"]);
    assert_eq!(case.settle(), ["db-0 db:2", "db-1 db:2", "db-2 db:2"]);
    let memory = case.memory.unwrap();
    assert_eq!(memory.current, memory.revisions.newest().unwrap().hash);
}

/// TS6.
#[test]
fn partition_keeps_lower_ordinals() {
    let partition = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
    let mut case = Case::new(&json!({"replicas": 3, "updateStrategy": partition}));
    case.settle();
    case.image("db:2");
    assert_eq!(case.settle(), ["db-0 db:1", "db-1 db:1", "db-2 db:2"]);
    case.host.pods.remove("db-1");
    case.memory.as_mut().unwrap().pods.remove(&1);
    assert_eq!(case.settle(), ["db-0 db:1", "db-1 db:1", "db-2 db:2"], "below the partition pods come back as they were");
    case.edit(&json!({"replicas": 5}));
    assert_eq!(case.settle(), ["db-0 db:1", "db-1 db:1", "db-2 db:2", "db-3 db:2", "db-4 db:2"]);
}

/// TS7, TS8.
#[test]
fn several_pods_may_be_unavailable() {
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 3, "maxUnavailable": 2}});
    let mut case = Case::new(&json!({"replicas": 6, "podManagementPolicy": "Parallel", "updateStrategy": strategy}));
    case.settle();
    case.image("db:2");
    assert_eq!(case.names(), ["db-0", "db-1", "db-2", "db-3"]);
    case.host.finish_stops();
    assert_eq!(case.names().len(), 6);
    case.host.make_ready_one("db-5");
    assert_eq!(case.names(), ["db-0", "db-1", "db-2", "db-4", "db-5"]);
    assert_eq!(case.settle(), ["db-0 db:1", "db-1 db:1", "db-2 db:1", "db-3 db:2", "db-4 db:2", "db-5 db:2"]);
    for name in ["db-0", "db-1", "db-2"] {
        case.host.make_unready(name);
    }
    case.image("db:3");
    assert_eq!(case.names().len(), 6, "three are unavailable already");
}

/// TS8.
#[test]
fn unavailable_pods_round_down() {
    let of = |percent: &str, replicas: u32| {
        let strategy = json!({"rollingUpdate": {"maxUnavailable": percent}});
        let spec = json!({"selector": {}, "template": {}, "updateStrategy": strategy});
        Update::of(&serde_json::from_value(spec).unwrap(), 0, replicas)
    };
    assert_eq!(of("10%", 25), Update::Rolling { lowest: 0, unavailable: 2 });
    assert_eq!(of("50%", 5), Update::Rolling { lowest: 0, unavailable: 2 });
    assert_eq!(of("1%", 5), Update::Rolling { lowest: 0, unavailable: 1 });
}

/// TS9.
#[test]
fn on_delete_replaces_nothing() {
    let mut case = Case::new(&json!({"replicas": 2, "updateStrategy": {"type": "OnDelete"}}));
    case.settle();
    case.image("db:2");
    assert_eq!(case.settle(), ["db-0 db:1", "db-1 db:1"]);
    case.edit(&json!({"replicas": 3}));
    assert_eq!(case.settle(), ["db-0 db:1", "db-1 db:1", "db-2 db:2"]);
}

/// TS10.
#[test]
fn ordinals_begin_where_spec_says() {
    let mut case = Case::new(&json!({"replicas": 2, "ordinals": {"start": 4}}));
    assert_eq!(case.settle(), ["db-4 db:1", "db-5 db:1"]);
}

/// TS11, W39.
#[test]
fn repaired_template_reaches_broken_pod() {
    let mut case = Case::new(&json!({"replicas": 3}));
    case.settle();
    case.image("broken:1");
    case.step();
    case.host.finish_stops();
    assert_eq!(case.look(), ["db-0 db:1", "db-1 db:1", "db-2 broken:1"]);
    case.image("db:2");
    assert_eq!(case.look(), ["db-0 db:1", "db-1 db:1"]);
    assert_eq!(case.settle(), ["db-0 db:2", "db-1 db:2", "db-2 db:2"]);
}

/// All pods start again, as after a boot.
fn boot(case: &mut Case) {
    case.host.seconds = 30;
    for pod in case.host.pods.values_mut() {
        (pod.phase, pod.ready_since) = (Phase::Pending, None);
    }
}

/// TS13, W39: after a boot nothing is available, and nothing is broken because of that.
#[test]
fn update_goes_on_in_its_order_after_a_power_cut() {
    for policy in ["OrderedReady", "Parallel"] {
        let mut case = Case::new(&json!({"replicas": 3, "podManagementPolicy": policy}));
        case.settle();
        case.image("db:2");
        assert_eq!(case.look(), ["db-0 db:1", "db-1 db:1"]);
        case.host.finish_stops();
        boot(&mut case);
        let both = ["db-0 db:1", "db-1 db:1"];
        case.step();
        assert!(case.look().starts_with(&both.map(str::to_owned)), "{policy}: {:?}", case.look());
        case.host.make_ready_one("db-0");
        assert!(case.look().starts_with(&both.map(str::to_owned)), "{policy}: {:?}", case.look());
        case.host.make_ready_one("db-1");
        assert_eq!(case.look(), ["db-0 db:1", "db-1 db:1", "db-2 db:2"], "{policy}");
        assert_eq!(case.settle(), ["db-0 db:2", "db-1 db:2", "db-2 db:2"]);
    }
}

/// W39: a pod that does not come back after a boot is replaced in the end, and one that was never available at once.
#[test]
fn broken_pod_is_replaced_after_a_boot() {
    let mut case = Case::new(&json!({"replicas": 2}));
    case.settle();
    case.image("db:2");
    boot(&mut case);
    case.host.make_ready_one("db-0");
    let step = case.step();
    assert_eq!((step.pods.len(), step.wake), (2, Some(Moment::after_boot(RECOVERY))), "db-1 may come back");
    case.host.seconds = 601;
    assert_eq!(case.look(), ["db-0 db:1"]);
    case.host.finish_stops();
    case.step();
    case.image("db:3");
    boot(&mut case);
    case.host.make_ready_one("db-0");
    assert_eq!(case.look(), ["db-0 db:1"], "db-1 was never available with its template");
}

fn with_claims(spec: &Value) -> Case {
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}});
    let mut case = Case::new(&json!({"replicas": 2, "volumeClaimTemplates": [claim]}));
    case.edit(spec);
    case
}

fn claims(step: &Step) -> Vec<(String, bool)> {
    let deletes = |claim: &PersistentVolumeClaim| claim.metadata.annotations.iter().flatten().any(|(_, policy)| policy == "Delete");
    step.claims.iter().map(|claim| (claim.metadata.name.clone().unwrap(), deletes(claim))).collect()
}

/// W41.
#[test]
fn pods_mount_their_own_claims() {
    let mut case = with_claims(&json!({}));
    case.settle();
    let step = case.step();
    assert_eq!(claims(&step), [("data-db-0".to_owned(), false), ("data-db-1".to_owned(), false)]);
    assert_eq!(step.claims[0].metadata.labels.as_ref().unwrap()["app"], "db");
    let volumes = step.pods[1].spec.as_ref().unwrap().volumes.as_ref().unwrap();
    assert_eq!(volumes[0].name, "data");
    assert_eq!(volumes[0].persistent_volume_claim.as_ref().unwrap().claim_name, "data-db-1");
}

/// TS12, W42, W43.
#[test]
fn claims_outlive_their_pods() {
    let mut case = with_claims(&json!({}));
    case.settle();
    case.edit(&json!({"replicas": 1}));
    case.settle();
    assert_eq!(claims(&case.step()).len(), 2, "a claim out of range is kept");

    let mut case = with_claims(&json!({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete", "whenDeleted": "Retain"}}));
    case.settle();
    case.edit(&json!({"replicas": 1}));
    case.step();
    assert_eq!(claims(&case.step()), [("data-db-0".to_owned(), false), ("data-db-1".to_owned(), true)], "the pod still exists");
    case.host.finish_stops();
    assert_eq!(claims(&case.step()).len(), 1);
    case.edit(&json!({"replicas": 2}));
    case.host.leaving_claims = ["data-db-1".to_owned()].into();
    assert_eq!(case.names(), ["db-0"], "the old data are still being deleted");
    case.host.leaving_claims.clear();
    assert_eq!(case.names(), ["db-0", "db-1"]);
}

/// W42, W85: a label that leaves the host, or a port that only one pod can have, deletes no data.
#[test]
fn ordinals_without_a_place_keep_their_claims() {
    let mut case = with_claims(&json!({"replicas": 2, "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}));
    case.settle();
    let all = claims(&case.step());
    assert_eq!(all.len(), 2);
    let mut elsewhere = case.spec["template"].clone();
    elsewhere["spec"]["nodeSelector"] = json!({"site": "bonn"});
    case.edit(&json!({"template": elsewhere}));
    assert_eq!(case.settle(), [""; 0]);
    assert_eq!(claims(&case.step()), all);
}

/// TS14, W17.
#[test]
fn pod_that_ended_keeps_its_name_and_the_others_stay() {
    for phase in [Phase::Failed, Phase::Succeeded] {
        for policy in ["OrderedReady", "Parallel"] {
            let mut case = Case::new(&json!({"replicas": 3, "podManagementPolicy": policy}));
            let before = case.settle();
            case.host.make_unready("db-1");
            case.host.pods.get_mut("db-1").unwrap().phase = phase;
            assert_eq!(case.look(), before, "{policy}: it is wanted, and made anew by those who run it");
            let step = case.step();
            assert!(step.events.is_empty(), "{:?}", step.events);
            assert_eq!(step.status.available_replicas, Some(2));
        }
    }
}

/// W6: the name of the revision is a label, of at most 63 characters.
#[test]
fn long_name_of_a_set_leaves_labels_short_and_revisions_apart() {
    let name = "d".repeat(61);
    let mut host = TestHost::new();
    let mut memory = None;
    let mut labels = BTreeSet::new();
    for image in ["db:1", "db:2"] {
        let spec = json!({"selector": {"matchLabels": {"app": "db"}}, "serviceName": "db", "template": template(image)});
        let object: StatefulSet = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap();
        for _ in 0..4 {
            let step = host.evaluate(|pods, context| super::step(&object, memory.as_ref(), pods, context));
            host.apply(&step.pods);
            host.finish_stops();
            host.make_ready();
            for pod in &step.pods {
                let of_pod = pod.metadata.labels.clone().unwrap();
                assert!(of_pod.values().all(|value| value.len() <= 63), "{of_pod:?}");
                labels.insert(of_pod["controller-revision-hash"].clone());
            }
            memory = Some(step.memory);
        }
    }
    assert_eq!(labels.len(), 2, "{labels:?}");
}

/// W14, W94.
#[test]
fn update_waits_for_images_and_sources() {
    let mut case = Case::new(&json!({"replicas": 2}));
    case.settle();
    case.host.has_images = false;
    case.image("db:2");
    let step = case.step();
    assert!(step.pods.len() == 2 && step.warm.is_some());
    case.host.has_images = true;
    case.host.may_remove = false;
    assert_eq!(case.names().len(), 2);
    case.host.may_remove = true;
    assert_eq!(case.names(), ["db-0"]);
}

/// W82.
#[test]
fn host_port_leaves_first_ordinal() {
    let mut case = Case::new(&json!({"replicas": 3}));
    let ports = json!([{"containerPort": 80, "hostPort": 80}]);
    case.edit(&json!({"template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "m", "image": "db:1", "ports": ports}]}}}));
    assert_eq!(case.settle(), ["db-0 db:1"]);
}

proptest::proptest! {
    /// W99 (4): no ordinal starts before all lower ones, and never are two replaced at once.
    #[test]
    fn ordered_set_keeps_its_order(events in proptest::collection::vec(0_u8..5, 1..80)) {
        let mut case = Case::new(&json!({"replicas": 4}));
        let mut version = 1;
        let mut known = BTreeSet::new();
        for event in events {
            match event {
                0 => case.host.make_ready(),
                1 => case.host.finish_stops(),
                2 => {
                    version += 1;
                    case.image(&format!("db:{version}"));
                }
                3 => case.edit(&json!({"replicas": 1 + version % 5})),
                _ => {
                    let first = case.host.pods.keys().next().cloned();
                    first.iter().for_each(|name| case.host.make_unready(name));
                }
            }
            let ready: BTreeSet<String> =
                case.host.pods.values().filter(|pod| pod.is_active() && pod.ready_since.is_some()).map(|pod| pod.name.clone()).collect();
            let now: BTreeSet<String> = case.names().into_iter().collect();
            for name in now.difference(&known) {
                let ordinal: u32 = name.trim_start_matches("db-").parse().unwrap();
                for lower in 0..ordinal {
                    let lower = format!("db-{lower}");
                    proptest::prop_assert!(ready.contains(&lower), "{} started before {}", name, lower);
                }
            }
            proptest::prop_assert!(known.difference(&now).count() <= 1, "{:?} became {:?}", known, now);
            known = now;
        }
    }
}

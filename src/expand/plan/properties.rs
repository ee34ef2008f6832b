//! Properties of whole plans under edits, restarts and power cuts in any order (W99).

use super::tests::{Bench, deployment, job, set, stateful_set};
use super::*;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
enum Happening {
    /// The template is another one.
    Edit(u8),
    /// The number of replicas is another one.
    Scale(u8),
    /// Pods become ready.
    Ready,
    /// Stops come to their end.
    Stopped,
    /// The daemon is killed and starts again.
    Restart,
    /// The power goes when a plan is partly written.
    PowerCut(u8),
    /// Time goes on.
    Wait(u8),
    /// Pods end.
    End { succeed: bool },
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        1 => (0..3_u8).prop_map(Happening::Edit),
        1 => (0..5_u8).prop_map(Happening::Scale),
        3 => Just(Happening::Ready),
        3 => Just(Happening::Stopped),
        1 => Just(Happening::Restart),
        1 => (0..3_u8).prop_map(Happening::PowerCut),
        1 => (1..60_u8).prop_map(Happening::Wait),
    ]
}

fn of_job() -> impl Strategy<Value = Happening> {
    prop_oneof![
        1 => Just(Happening::Ready),
        1 => Just(Happening::Stopped),
        1 => Just(Happening::Restart),
        1 => (0..2_u8).prop_map(Happening::PowerCut),
        2 => (1..200_u8).prop_map(Happening::Wait),
        2 => any::<bool>().prop_map(|succeed| Happening::End { succeed }),
    ]
}

fn of_running_host() -> impl Strategy<Value = Happening> {
    prop_oneof![
        1 => Just(Happening::Ready),
        1 => Just(Happening::Restart),
        1 => (0..3_u8).prop_map(Happening::PowerCut),
        1 => (1..200_u8).prop_map(Happening::Wait),
        1 => any::<bool>().prop_map(|succeed| Happening::End { succeed }),
    ]
}

/// Applies what happens; `object` makes the workload of a template and a size.
fn happen(bench: &mut Bench, happening: Happening, state: &mut (u8, u8), object: &dyn Fn(u8, u8) -> Workload) {
    match happening {
        Happening::Edit(template) => state.0 = template,
        Happening::Scale(replicas) => state.1 = replicas,
        Happening::Ready => return bench.make_ready(),
        Happening::Stopped => return bench.finish_stops(),
        Happening::Wait(seconds) => {
            bench.seconds += u64::from(seconds);
            bench.wall += Duration::from_secs(seconds.into());
            let moment = Moment::after_boot(Duration::from_secs(bench.seconds));
            return bench.expander.wake(moment, bench.wall, false);
        }
        Happening::End { succeed } => {
            let now = Moment::after_boot(Duration::from_secs(bench.seconds));
            return bench.change(|pod| {
                if !pod.is_terminal() {
                    pod.phase = if succeed { Phase::Succeeded } else { Phase::Failed };
                    pod.ready_since = None;
                    pod.ended_at = Some(now);
                }
            });
        }
        Happening::Restart | Happening::PowerCut(_) => {
            if let Happening::PowerCut(written) = happening {
                bench.expander.apply(set("a", &[object(state.0, state.1)]));
                bench.lose_power_in_plan(written.into());
            }
            bench.restart(&["a"]);
            bench.expander.apply(set("a", &[object(state.0, state.1)]));
            bench.plan();
            return bench.change(|_| {});
        }
    }
    bench.expander.apply(set("a", &[object(state.0, state.1)]));
}

/// Nothing more is decided on what was decided (1).
fn is_at_rest(bench: &mut Bench) -> bool {
    bench.plan();
    let again = bench.plan();
    again.changes.is_empty() && again.sets.is_empty() && again.events.is_empty()
}

fn with_limits(template: u8, replicas: u8) -> Workload {
    let Workload::Deployment(mut object) = deployment("web", replicas.into(), &format!("web:{template}")) else { unreachable!() };
    if let Some(spec) = &mut object.spec {
        let rolling = spec.strategy.get_or_insert_default().rolling_update.get_or_insert_default();
        (rolling.max_surge, rolling.max_unavailable) = (Some(IntOrString::Int(1)), Some(IntOrString::Int(1)));
    }
    Workload::Deployment(object)
}

fn with_template(template: u8, replicas: u8) -> Workload {
    let Workload::StatefulSet(mut object) = stateful_set("db", replicas.into()) else { unreachable!() };
    if let Some(spec) = object.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()) {
        spec.containers[0].image = Some(format!("db:{template}"));
    }
    Workload::StatefulSet(object)
}

/// Images of all wanted pods.
fn images(bench: &Bench) -> BTreeSet<String> {
    let live = bench.expander.units.values().filter_map(Unit::live).flat_map(|live| live.pods.values());
    live.filter_map(|pod| pod.written.spec.as_ref()?.containers[0].image.clone()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// (1), (2), (3): whatever happened, the rollout ends with the newest template, and on the way no more pods than the surge allows.
    #[test]
    fn deployment_ends_with_newest_template(happenings in vec(happening(), 0..40)) {
        let mut bench = Bench::new(&["a"]);
        let mut state = (0, 3);
        bench.expander.apply(set("a", &[with_limits(0, 3)]));
        bench.plan();
        let mut most = 3;
        for happening in happenings {
            happen(&mut bench, happening, &mut state, &with_limits);
            bench.plan();
            most = most.max(usize::from(state.1));
            prop_assert!(bench.names().len() <= most + 1, "{:?}", bench.names());
        }
        bench.settle();
        prop_assert_eq!(bench.names().len(), usize::from(state.1));
        prop_assert_eq!(bench.pods.len(), usize::from(state.1));
        if state.1 > 0 {
            prop_assert_eq!(images(&bench), BTreeSet::from([format!("web:{}", state.0)]));
        }
        prop_assert!(is_at_rest(&mut bench));
    }

    /// (2), (4): ordinals without a gap, and one at a time while it is updated.
    #[test]
    fn stateful_set_keeps_its_order(happenings in vec(happening(), 0..40)) {
        let mut bench = Bench::new(&["a"]);
        let mut state = (0, 3);
        bench.expander.apply(set("a", &[with_template(0, 3)]));
        bench.plan();
        for happening in happenings {
            happen(&mut bench, happening, &mut state, &with_template);
            bench.plan();
        }
        bench.settle();
        let expected: Vec<String> = (0..state.1).map(|ordinal| format!("db-{ordinal}")).collect();
        prop_assert_eq!(bench.names(), expected);
        if state.1 > 0 {
            prop_assert_eq!(images(&bench), BTreeSet::from([format!("db:{}", state.0)]));
        }
        prop_assert!(is_at_rest(&mut bench));
    }

    /// (10): without an edit no pod is withdrawn, whatever becomes of pods and of the daemon.
    #[test]
    fn nothing_leaves_without_an_edit(happenings in vec(of_running_host(), 0..40)) {
        let mut bench = Bench::new(&["a"]);
        let both = [with_limits(0, 3), with_template(0, 3)];
        bench.expander.apply(set("a", &both));
        bench.settle();
        let names = bench.names();
        for happening in happenings {
            match happening {
                Happening::End { .. } => bench.change(|pod| pod.ready_since = None),
                Happening::Restart | Happening::PowerCut(_) => {
                    if let Happening::PowerCut(written) = happening {
                        bench.lose_power_in_plan(written.into());
                    }
                    bench.restart(&["a"]);
                    bench.expander.apply(set("a", &both));
                }
                other => happen(&mut bench, other, &mut (0, 3), &with_limits),
            }
            bench.plan();
            prop_assert_eq!(bench.names(), names.clone());
        }
    }

    /// (5), (6): no attempt has the name of an earlier one, and each end is counted once.
    #[test]
    fn job_counts_each_end_once(happenings in vec(of_job(), 0..40)) {
        let mut bench = Bench::new(&["a"]);
        let object = |_: u8, _: u8| job("dump");
        let mut state = (0, 0);
        bench.expander.apply(set("a", &[job("dump")]));
        bench.plan();
        let mut ended: BTreeSet<String> = BTreeSet::new();
        let mut failed = 0;
        for happening in happenings {
            if let Happening::End { succeed } = happening {
                let running = bench.pods.values().filter(|(_, pod)| pod.is_active()).map(|(_, pod)| pod.name.clone());
                let running: Vec<String> = running.collect();
                for name in running {
                    prop_assert!(ended.insert(name), "a name was used twice");
                    failed += u32::from(!succeed);
                }
            }
            happen(&mut bench, happening, &mut state, &object);
            bench.plan();
            let memory = bench.disk.values().find_map(|memory| match &memory.kind {
                KindMemory::Job { job, .. } => Some((job.succeeded, job.failed)),
                _ => None,
            });
            let (succeeded, counted) = memory.unwrap_or_default();
            prop_assert!(succeeded <= 1);
            prop_assert_eq!(counted, failed);
        }
    }
}

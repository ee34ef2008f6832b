//! Convergence after any events in any order: when they stop, the host matches the manifests, and the daemon rests.

use super::host::{Host, pod};
use podstead_container::ContainerState;
use podstead_mux::PodOp;
use podstead_runtime::fake::OnSignal;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Happening {
    /// The manifest becomes this one of [`SPECS`].
    Edit(usize),
    /// A container ends by itself.
    Exit(&'static str, i32),
    LoseSandbox,
    KillDaemon,
    Reboot,
    IgnoreSignals(bool),
    HoldPulls(bool),
    Time(u64),
}

const SPECS: [&str; 6] = [
    "{terminationGracePeriodSeconds: 3, containers: [{name: x, image: a}]}",
    "{terminationGracePeriodSeconds: 3, containers: [{name: x, image: b}, {name: y, image: a}]}",
    "{terminationGracePeriodSeconds: 3, containers: [{name: y, image: pulled}]}",
    "{terminationGracePeriodSeconds: 3, initContainers: [{name: s, image: a, restartPolicy: Always}], containers: [{name: x, image: a}]}",
    "{terminationGracePeriodSeconds: 3, hostNetwork: true, containers: [{name: x, image: a}, {name: y, image: a}]}",
    "{terminationGracePeriodSeconds: 3, initContainers: [{name: s, image: b, restartPolicy: Always}], containers: [{name: y, image: b}]}",
];

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        6 => (0..SPECS.len()).prop_map(Happening::Edit),
        4 => (prop::sample::select(vec!["x", "y", "s"]), 0..2).prop_map(|(name, code)| Happening::Exit(name, code)),
        1 => Just(Happening::LoseSandbox),
        2 => Just(Happening::KillDaemon),
        1 => Just(Happening::Reboot),
        1 => any::<bool>().prop_map(Happening::IgnoreSignals),
        1 => any::<bool>().prop_map(Happening::HoldPulls),
        4 => (0u64..20).prop_map(Happening::Time),
    ]
}

async fn converges(happenings: Vec<Happening>) -> Result<(), TestCaseError> {
    let mut host = Host::new().await;
    host.images.publish("pulled");
    let mut spec = 0;
    host.say(PodOp::Add, &[&pod("p", SPECS[spec])]).await;
    let uid = pod("p", SPECS[spec]).uid.clone();
    for happening in happenings {
        match happening {
            Happening::Edit(index) => {
                spec = index;
                host.say(PodOp::Update, &[&pod("p", SPECS[spec])]).await;
            }
            Happening::Exit(name, code) => {
                host.runtime.exit(&uid, name, code);
            }
            Happening::LoseSandbox => {
                host.runtime.lose_sandbox(&uid);
            }
            Happening::KillDaemon => {
                host.kill_daemon();
                host.start_daemon().await;
                host.say(PodOp::Add, &[&pod("p", SPECS[spec])]).await;
            }
            Happening::Reboot => {
                host.kill_daemon();
                host.runtime.reboot();
                host.start_daemon().await;
                host.say(PodOp::Add, &[&pod("p", SPECS[spec])]).await;
            }
            Happening::IgnoreSignals(ignore) => {
                host.runtime.on_signal(if ignore { OnSignal::Ignore } else { OnSignal::End });
            }
            Happening::HoldPulls(hold) => host.images.hold(hold),
            Happening::Time(seconds) => host.run(seconds).await,
        }
        // Some happenings come while a turn is under way, some after it.
        host.run_millis(1).await;
    }
    host.images.hold(false);
    host.run(1200).await;

    let desired = pod("p", SPECS[spec]);
    let mut wanted: Vec<String> =
        podstead_pod::containers::all(&desired.pod).map(|(_, container)| container.name.clone()).collect();
    let mut running: Vec<String> =
        host.running(&uid).iter().map(|run| run.split('/').next().unwrap_or_default().to_owned()).collect();
    wanted.sort();
    running.sort();
    prop_assert_eq!(&running, &wanted);
    let definition = podstead_worker::definition::PodDefinition::new(desired, &host.definition_context());
    let observed = host.observed(&uid);
    for run in observed.containers.iter().filter(|run| matches!(run.state, ContainerState::Running { .. })) {
        let container = definition.container(&run.name).unwrap();
        prop_assert!(container.hash.is(&run.hash), "{} runs an old definition", run.name);
    }
    prop_assert!(definition.fits(&observed.sandbox.unwrap().spec));
    host.runtime.take_calls();
    let changes = host.statuses.changes(&uid);
    host.run(600).await;
    prop_assert_eq!(host.runtime.take_calls(), Vec::<String>::new(), "the daemon does not rest");
    prop_assert_eq!(host.statuses.changes(&uid), changes);

    host.say(PodOp::Remove, &[&pod("p", SPECS[spec])]).await;
    host.run(60).await;
    prop_assert!(host.runtime.pods().is_empty());
    prop_assert!(host.volumes.pods().is_empty());
    prop_assert!(host.network.pods().is_empty());
    prop_assert!(!host.paths.pod(&uid).is_dir());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_edits_crashes_and_losses_converges_and_leaves_nothing(happenings in prop::collection::vec(happening(), 0..24)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(converges(happenings))?;
    }
}

//! Effects of probes: status, restarts, and the state that survives a restart of the daemon.

use super::host::{Host, pod};
use podstead_mux::PodOp;
use podstead_pod::{ContainerId, DesiredPod};
use podstead_probe::{ProbeKind, ProbeResult};
use std::sync::Arc;

const WEB: &str = "{terminationGracePeriodSeconds: 5, containers: [{name: web, image: a, startupProbe: {tcpSocket: {port: 1}}, \
                   readinessProbe: {tcpSocket: {port: 1}}, livenessProbe: {tcpSocket: {port: 1}, terminationGracePeriodSeconds: 2}}]}";

fn latest(host: &Host, pod: &DesiredPod) -> ContainerId {
    host.observed(&pod.uid).containers.last().unwrap().id.clone()
}

async fn say(host: &mut Host, pod: &Arc<DesiredPod>, kind: ProbeKind, result: ProbeResult) {
    let id = latest(host, pod);
    host.probes.say(&pod.uid, &id, kind, result);
    host.poke(&pod.uid);
    host.settle().await;
}

/// `started` and `ready` of the first container, and the condition Ready.
fn health(host: &Host, pod: &DesiredPod) -> (bool, bool, bool) {
    let status = host.status(&pod.uid);
    let container = &status.container_statuses.as_ref().unwrap()[0];
    let ready = status.conditions.iter().flatten().find(|condition| condition.type_ == "Ready").unwrap();
    (container.started.unwrap(), container.ready, ready.status == "True")
}

#[tokio::test(start_paused = true)]
async fn d15_a_container_is_started_and_ready_as_its_probes_say() {
    let mut host = Host::new().await;
    let web = pod("web", WEB);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    assert_eq!(health(&host, &web), (false, false, false));
    let declared = host.probes.declared(&web.uid).unwrap();
    assert_eq!(declared.runs[&latest(&host, &web)].probes.as_ref().unwrap().len(), 3);
    say(&mut host, &web, ProbeKind::Startup, ProbeResult::Success).await;
    assert_eq!(health(&host, &web), (true, false, false));
    say(&mut host, &web, ProbeKind::Readiness, ProbeResult::Success).await;
    assert_eq!(health(&host, &web), (true, true, true));
    say(&mut host, &web, ProbeKind::Readiness, ProbeResult::Failure).await;
    assert_eq!(health(&host, &web), (true, false, false));
}

#[tokio::test(start_paused = true)]
async fn d15_a_container_that_fails_its_liveness_probe_is_restarted() {
    let mut host = Host::new().await;
    let web = pod("web", WEB);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    host.runtime.take_calls();
    say(&mut host, &web, ProbeKind::Startup, ProbeResult::Success).await;
    say(&mut host, &web, ProbeKind::Liveness, ProbeResult::Failure).await;
    host.run(1).await;
    assert_eq!(host.runtime.take_calls(), ["signal_container web 15", "start_container web 1"]);
    let told = host.events.take();
    let killing = "Container web failed liveness probe, will be restarted";
    assert!(told.iter().any(|event| event.contains(killing)), "{told:?}");
    // The new run has not started as far as its own probe tells.
    assert_eq!(health(&host, &web), (false, false, false));
    say(&mut host, &web, ProbeKind::Startup, ProbeResult::Failure).await;
    host.run(15).await;
    assert_eq!(host.runtime.take_calls(), ["signal_container web 15", "remove_container web", "start_container web 2"]);
}

#[tokio::test(start_paused = true)]
async fn d12_only_readiness_is_asked_for_while_a_pod_ends() {
    let mut host = Host::new().await;
    let web = pod("web", WEB);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    host.runtime.on_signal(podstead_runtime::fake::OnSignal::Ignore);
    host.say(PodOp::Remove, &[&web]).await;
    host.settle().await;
    assert!(host.probes.declared(&web.uid).unwrap().runs.values().all(|run| run.is_ending));
    host.run(10).await;
    assert_eq!(host.probes.declared(&web.uid), None);
}

#[tokio::test(start_paused = true)]
async fn an_edited_probe_takes_effect_without_a_restart() {
    let mut host = Host::new().await;
    let before = pod("web", "{containers: [{name: web, image: a}]}");
    host.say(PodOp::Add, &[&before]).await;
    host.settle().await;
    assert_eq!(health(&host, &before), (true, true, true));
    assert_eq!(host.probes.declared(&before.uid), None);
    host.runtime.take_calls();
    let after = pod("web", "{containers: [{name: web, image: a, readinessProbe: {tcpSocket: {port: 1}}}]}");
    host.say(PodOp::Update, &[&after]).await;
    host.settle().await;
    assert_eq!(host.runtime.take_calls(), Vec::<String>::new());
    assert_eq!(host.probes.declared(&after.uid).unwrap().runs.len(), 1);
    // Ready until it is asked.
    assert_eq!(health(&host, &after), (true, true, true));
    say(&mut host, &after, ProbeKind::Readiness, ProbeResult::Failure).await;
    assert_eq!(health(&host, &after), (true, false, false));
}

#[tokio::test(start_paused = true)]
async fn d15_a_restart_of_the_daemon_keeps_what_containers_were() {
    let mut host = Host::new().await;
    let (ready, starting) = (pod("ready", WEB), pod("starting", WEB));
    host.say(PodOp::Add, &[&ready, &starting]).await;
    host.settle().await;
    for pod in [&ready, &starting] {
        // The shim makes it in the product.
        std::fs::create_dir_all(host.paths.pod_run(&pod.uid)).unwrap();
    }
    say(&mut host, &ready, ProbeKind::Startup, ProbeResult::Success).await;
    say(&mut host, &ready, ProbeKind::Readiness, ProbeResult::Success).await;
    host.run(60).await;
    host.kill_daemon();
    host.probes.restart_daemon();
    host.start_daemon().await;
    host.say(PodOp::Add, &[&ready, &starting]).await;
    host.settle().await;
    assert_eq!(health(&host, &ready), (true, true, true));
    let run = &host.probes.declared(&ready.uid).unwrap().runs[&latest(&host, &ready)];
    assert!(run.was_started && run.was_ready);
    // Exact, where the kubelet goes by age: one that is slow to start is not taken for started.
    assert_eq!(health(&host, &starting), (false, false, false));

    // Without a file (of an earlier version), by age.
    host.kill_daemon();
    host.probes.restart_daemon();
    for pod in [&ready, &starting] {
        std::fs::remove_file(host.paths.pod_health(&pod.uid)).unwrap();
    }
    host.start_daemon().await;
    host.say(PodOp::Add, &[&ready, &starting]).await;
    host.settle().await;
    assert_eq!(health(&host, &starting), (true, true, true));
}

#[tokio::test(start_paused = true)]
async fn d7_main_containers_wait_for_the_startup_probe_of_a_sidecar() {
    let mut host = Host::new().await;
    let spec = "{initContainers: [{name: log, image: a, restartPolicy: Always, startupProbe: {tcpSocket: {port: 1}}}], \
                containers: [{name: web, image: a}]}";
    let web = pod("web", spec);
    host.say(PodOp::Add, &[&web]).await;
    host.run(5).await;
    assert_eq!(host.running(&web.uid), ["log/0"]);
    assert_eq!(host.summary(&web.uid), "Pending log=Running web=PodInitializing");
    say(&mut host, &web, ProbeKind::Startup, ProbeResult::Success).await;
    assert_eq!(host.running(&web.uid), ["log/0", "web/0"]);
}

#[tokio::test(start_paused = true)]
async fn d14_a_pod_is_not_over_while_its_unhealthy_container_waits_for_its_restart() {
    let mut host = Host::new().await;
    let web = pod("web", "{restartPolicy: OnFailure, containers: [{name: web, image: a, livenessProbe: {tcpSocket: {port: 1}}}]}");
    host.runtime.on_signal(podstead_runtime::fake::OnSignal::Ignore);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    for _ in 0..2 {
        say(&mut host, &web, ProbeKind::Liveness, ProbeResult::Failure).await;
        // It answers to SIGTERM as programs do that are proud of it.
        assert!(host.runtime.exit(&web.uid, "web", 0));
        host.settle().await;
    }
    assert_eq!(host.summary(&web.uid), "Running web=CrashLoopBackOff");
    assert!(host.status(&web.uid).pod_ip.is_some());
    host.run(10).await;
    assert_eq!(host.running(&web.uid), ["web/2"]);
}

//! Pods come, change, crash and go.

use super::host::{Host, pod};
use podstead_mux::PodOp;
use podstead_runtime::fake::OnSignal;
use std::collections::BTreeSet;
use std::time::Duration;

const ONE: &str = "{containers: [{name: web, image: a}]}";

#[tokio::test(start_paused = true)]
async fn an_added_pod_runs_and_a_removed_one_leaves_nothing() {
    let mut host = Host::new().await;
    let web = pod("web", ONE);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    assert_eq!(host.running(&web.uid), ["web/0"]);
    assert_eq!(host.summary(&web.uid), "Running web=Running");
    assert_eq!(host.runtime.take_calls(), ["create_sandbox 0", "start_container web 0"]);
    assert!(host.paths.pod_record(&web.uid).is_file());

    host.say(PodOp::Remove, &[&web]).await;
    host.settle().await;
    assert_eq!(host.runtime.take_calls(), ["signal_container web 15", "stop_sandbox", "remove_pod"]);
    assert!(host.runtime.pods().is_empty());
    assert!(host.volumes.pods().is_empty());
    assert!(host.network.pods().is_empty());
    assert!(host.statuses.get(&web.uid).is_none());
    assert!(!host.paths.pod(&web.uid).is_dir());
}

#[tokio::test(start_paused = true)]
async fn an_edit_restarts_only_the_container_that_changed() {
    let mut host = Host::new().await;
    let before = pod("web", "{containers: [{name: web, image: a}, {name: log, image: a}]}");
    host.say(PodOp::Add, &[&before]).await;
    host.settle().await;
    host.runtime.take_calls();
    let after = pod("web", "{containers: [{name: web, image: b}, {name: log, image: a}]}");
    host.say(PodOp::Update, &[&after]).await;
    host.settle().await;
    assert_eq!(host.running(&after.uid), ["log/0", "web/1"]);
    assert_eq!(host.runtime.take_calls(), ["signal_container web 15", "start_container web 1"]);
}

#[tokio::test(start_paused = true)]
async fn the_old_container_runs_until_the_image_of_the_new_one_is_there() {
    let mut host = Host::new().await;
    host.say(PodOp::Add, &[&pod("web", ONE)]).await;
    host.settle().await;
    host.runtime.take_calls();
    host.images.hold(true);
    host.images.publish("new");
    let after = pod("web", "{containers: [{name: web, image: new}]}");
    host.say(PodOp::Update, &[&after]).await;
    host.run(3600).await;
    assert_eq!(host.running(&after.uid), ["web/0"]);
    assert!(host.runtime.take_calls().is_empty());
    host.images.hold(false);
    host.settle().await;
    assert_eq!(host.running(&after.uid), ["web/1"]);
}

/// An update that waits for a window waits no more when what it replaces has ended.
#[tokio::test(start_paused = true)]
async fn ended_container_does_not_wait_for_windows() {
    let mut host = Host::new().await;
    host.say(PodOp::Add, &[&pod("web", "{containers: [{name: web, image: a}, {name: log, image: a}]}")]).await;
    host.settle().await;
    host.images.hold_updates(true);
    host.images.publish("new");
    let after = pod("web", "{containers: [{name: web, image: new}, {name: log, image: a}, {name: more, image: new}]}");
    host.say(PodOp::Update, &[&after]).await;
    host.run(3600).await;
    let running = |host: &Host| BTreeSet::from_iter(host.running(&after.uid));
    assert_eq!(running(&host), ["log/0", "web/0"].map(str::to_owned).into());
    assert_eq!(host.images.waiting_updates(), 2);
    assert!(host.runtime.exit(&after.uid, "web", 1));
    host.settle().await;
    assert_eq!(running(&host), ["log/0", "more/0", "web/1"].map(str::to_owned).into());
}

#[tokio::test(start_paused = true)]
async fn superseded_update_does_not_wait_on() {
    let mut host = Host::new().await;
    host.say(PodOp::Add, &[&pod("web", ONE)]).await;
    host.settle().await;
    host.images.hold_updates(true);
    for image in ["first", "second"] {
        let after = pod("web", &format!("{{containers: [{{name: web, image: {image}}}]}}"));
        host.say(PodOp::Update, &[&after]).await;
        host.run(60).await;
        assert_eq!((host.running(&after.uid), host.images.waiting_updates()), (vec!["web/0".to_owned()], 1), "{image}");
    }
    let new_pod = pod("other", ONE);
    host.say(PodOp::Add, &[&new_pod]).await;
    host.settle().await;
    assert_eq!(host.running(&new_pod.uid), ["web/0"], "nothing of it runs yet");
    let removed = pod("web", ONE);
    host.say(PodOp::Remove, &[&removed]).await;
    host.settle().await;
    assert_eq!(host.images.waiting_updates(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_ignores_its_signal_is_killed_when_its_grace_is_over() {
    let mut host = Host::new().await;
    host.runtime.on_signal(OnSignal::Ignore);
    let web = pod("web", "{terminationGracePeriodSeconds: 7, containers: [{name: web, image: a}]}");
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    host.say(PodOp::Remove, &[&web]).await;
    assert_eq!(host.statuses.deleted(&web.uid), None);
    let removed_at = host.clock.now().wall;
    host.run(6).await;
    assert_eq!(host.running(&web.uid), ["web/0"]);
    assert_eq!(host.statuses.deleted(&web.uid), Some(removed_at + Duration::from_secs(7)), "it is shown as terminating");
    host.run(2).await;
    assert!(host.runtime.pods().is_empty());
    assert!(host.runtime.take_calls().contains(&"kill_container web".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_crashing_container_is_restarted_at_once_and_then_after_10_and_20_seconds() {
    let mut host = Host::new().await;
    let web = pod("web", ONE);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    host.runtime.exit(&web.uid, "web", 1);
    host.settle().await;
    assert_eq!(host.running(&web.uid), ["web/1"]);
    for (pause, attempt) in [(10, 2), (20, 3), (40, 4)] {
        host.runtime.exit(&web.uid, "web", 1);
        host.run(pause - 1).await;
        assert_eq!(host.summary(&web.uid), "Running web=CrashLoopBackOff");
        assert!(host.running(&web.uid).is_empty());
        host.run(2).await;
        assert_eq!(host.running(&web.uid), [format!("web/{attempt}")]);
    }
    assert_eq!(host.observed(&web.uid).containers.len(), 2, "one dead run is kept");
    assert!(host.events.take().iter().any(|event| event.starts_with("BackOff: Back-off restarting failed container web")));
}

#[tokio::test(start_paused = true)]
async fn a_crash_loop_outlives_the_daemon_but_not_the_host() {
    let mut host = Host::new().await;
    let web = pod("web", ONE);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    for pause in [0, 11, 21] {
        host.runtime.exit(&web.uid, "web", 1);
        host.run(pause).await;
        host.settle().await;
    }
    assert_eq!(host.running(&web.uid), ["web/3"]);
    host.kill_daemon();
    host.runtime.exit(&web.uid, "web", 1);
    host.start_daemon().await;
    host.say(PodOp::Add, &[&web]).await;
    host.run(30).await;
    assert_eq!(host.summary(&web.uid), "Running web=CrashLoopBackOff");
    host.kill_daemon();
    host.runtime.reboot();
    host.start_daemon().await;
    host.say(PodOp::Add, &[&web]).await;
    host.run(1).await;
    assert_eq!(host.running(&web.uid).len(), 1, "{}", host.summary(&web.uid));
}

#[tokio::test(start_paused = true)]
async fn a_killed_daemon_finds_its_pods_again_and_restarts_nothing() {
    let mut host = Host::new().await;
    let web = pod("web", ONE);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    let before = host.observed(&web.uid);
    let shown = host.statuses.changes(&web.uid);
    host.runtime.take_calls();
    host.kill_daemon();
    host.start_daemon().await;
    host.run(30).await;
    assert_eq!(host.observed(&web.uid), before);
    // From the first status on with its addresses and the times of its conditions.
    assert_eq!(host.statuses.changes(&web.uid), shown);
    host.say(PodOp::Add, &[&web]).await;
    host.run(300).await;
    assert_eq!(host.observed(&web.uid), before);
    assert!(host.runtime.take_calls().is_empty());
    assert_eq!(host.summary(&web.uid), "Running web=Running");
}

#[tokio::test(start_paused = true)]
async fn burstable_pods_together_weigh_what_they_request() {
    let mut host = Host::new().await;
    let request = |milli: u32| format!("{{containers: [{{name: web, image: a, resources: {{requests: {{cpu: {milli}m}}}}}}]}}");
    let (one, two) = (pod("one", &request(250)), pod("two", &request(500)));
    host.say(PodOp::Add, &[&one, &two, &pod("idle", ONE)]).await;
    host.run(61).await;
    assert_eq!(host.runtime.burstable_shares(), Some(768));
    host.say(PodOp::Remove, &[&two]).await;
    host.run(61).await;
    assert_eq!(host.runtime.burstable_shares(), Some(256));
}

#[tokio::test(start_paused = true)]
async fn d14_a_pod_that_restarts_all_its_containers_is_not_over_in_between() {
    let mut host = Host::new().await;
    let spec = "{restartPolicy: Never, containers: [{name: job, image: a}], initContainers: [{name: init, image: a}, \
                {name: side, image: a, restartPolicy: Always, \
                restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}]}]}";
    let web = pod("web", spec);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    assert!(host.runtime.exit(&web.uid, "init", 0));
    host.settle().await;
    assert_eq!(host.summary(&web.uid), "Running init=Completed(0) side=Running job=Running");
    assert!(host.runtime.exit(&web.uid, "side", 42));
    host.settle().await;
    assert_eq!(host.summary(&web.uid), "Pending init=Running side=RestartingAllContainers job=RestartingAllContainers");
    assert!(host.runtime.exit(&web.uid, "init", 0));
    host.settle().await;
    assert_eq!(host.summary(&web.uid), "Running init=Completed(0) side=Running job=Running");
    let last = host.status(&web.uid).container_statuses.unwrap().remove(0).last_state.unwrap().terminated.unwrap();
    assert_eq!((last.reason.as_deref(), last.exit_code), (Some("RestartingAllContainers"), 137));
    // Again, with the pause of the one that asks.
    assert!(host.runtime.exit(&web.uid, "side", 42));
    host.settle().await;
    assert!(host.runtime.exit(&web.uid, "init", 0));
    host.settle().await;
    assert_eq!(host.summary(&web.uid), "Running init=Completed(0) side=CrashLoopBackOff job=RestartingAllContainers");
    host.run(600).await;
    assert_eq!(host.summary(&web.uid), "Running init=Completed(0) side=Running job=Running");
}

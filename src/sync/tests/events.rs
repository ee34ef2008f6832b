//! Events of pods, word for word the kubelet's.

use super::host::{Host, pod};
use podstead_mux::PodOp;
use podstead_pod::{ContainerName, DesiredPod};
use podstead_runtime::fake::{FakeOperation, OnSignal};
use std::sync::Arc;

const ONE: &str = "{containers: [{name: web, image: a}]}";

async fn started(spec: &str) -> (Host, Arc<DesiredPod>) {
    let mut host = Host::new().await;
    let web = pod("web", spec);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    (host, web)
}

/// The message of the container's waiting state.
fn waits(host: &Host, pod: &DesiredPod) -> String {
    let container = host.status(&pod.uid).container_statuses.unwrap().remove(0);
    container.state.unwrap().waiting.and_then(|waiting| waiting.message).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_start_is_told_step_by_step() {
    let (host, _) = started("{containers: [{name: web, image: a, imagePullPolicy: IfNotPresent}]}").await;
    assert_eq!(
        host.events.take(),
        [
            "Pulled: Container image \"a\" already present on machine and can be accessed by the pod",
            "Created: Created container: web",
            "Started: Started container web",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_pull_is_told_with_its_time() {
    let mut host = Host::new().await;
    let web = pod("web", "{containers: [{name: web, image: late}]}");
    host.images.publish("late");
    host.images.hold(true);
    host.say(PodOp::Add, &[&web]).await;
    host.run(80).await;
    host.images.hold(false);
    host.settle().await;
    let events = host.events.take();
    let took = "Pulled: Successfully pulled image \"late\" in 1m20s (1m20s including waiting).";
    assert_eq!(events[..2], ["Pulling: Pulling image \"late\"", took]);
}

#[tokio::test(start_paused = true)]
async fn d8_an_image_that_cannot_be_pulled_is_told_as_the_kubelet_does() {
    let (mut host, web) = started("{containers: [{name: web, image: late}]}").await;
    let tried = ["Pulling: Pulling image \"late\"", "Failed: Failed to pull image \"late\": no such image"];
    assert_eq!(host.events.take(), [&tried[..], &["Failed: Error: ErrImagePull"]].concat());
    host.run(11).await;
    let waits_longer = ["BackOff: Back-off pulling image \"late\"", "Failed: Error: ImagePullBackOff"];
    assert_eq!(host.events.take(), [&tried[..], &waits_longer].concat());
    assert_eq!(waits(&host, &web), "Back-off pulling image \"late\": ErrImagePull: pull image \"late\": no such image");
}

#[tokio::test(start_paused = true)]
async fn d8_an_image_that_must_not_be_pulled_is_told_as_the_kubelet_does() {
    let (host, web) = started("{containers: [{name: web, image: late, imagePullPolicy: Never}]}").await;
    let message = "Container image \"late\" is not present with pull policy of Never";
    assert_eq!(host.events.take(), [format!("ErrImageNeverPull: {message}"), "Failed: Error: ErrImageNeverPull".to_owned()]);
    assert_eq!(waits(&host, &web), message);
}

#[tokio::test(start_paused = true)]
async fn d9_a_back_off_says_how_long_in_minutes_and_seconds() {
    let (mut host, web) = started(ONE).await;
    for (pause, words) in [(0, ""), (10, "10s"), (20, "20s"), (40, "40s"), (80, "1m20s"), (160, "2m40s"), (300, "5m0s")] {
        host.events.take();
        host.runtime.exit(&web.uid, "web", 1);
        host.settle().await;
        if pause > 0 {
            let expected = format!("back-off {words} restarting failed container=web pod=web_default(web-uid)");
            assert_eq!(waits(&host, &web), expected);
            let told = "BackOff: Back-off restarting failed container web in pod web_default(web-uid)";
            assert_eq!(host.events.take(), [told], "and nothing else");
        }
        host.run(pause + 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn d12_a_stop_is_told_once_before_its_hook() {
    let spec =
        "{terminationGracePeriodSeconds: 60, containers: [{name: web, image: a, lifecycle: {preStop: {sleep: {seconds: 20}}}}]}";
    let (mut host, web) = started(spec).await;
    host.events.take();
    host.say(PodOp::Remove, &[&web]).await;
    host.settle().await;
    assert_eq!(host.events.take(), ["Killing: Stopping container web"]);
    host.run(30).await;
    assert!(host.runtime.pods().is_empty());
    assert_eq!(host.events.take(), [""; 0], "the signal is no news");
}

#[tokio::test(start_paused = true)]
async fn d3_an_edit_says_what_changed() {
    let spec = |command: &str, memory: &str| {
        let policy = "resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]";
        pod(
            "web",
            &format!(
                "{{containers: [{{name: web, image: a, command: [{command}], {policy}, resources: {{limits: {{memory: {memory}}}}}}}]}}"
            ),
        )
    };
    let mut host = Host::new().await;
    host.say(PodOp::Add, &[&spec("one", "32Mi")]).await;
    host.settle().await;
    for (edited, expected) in [
        (spec("two", "32Mi"), "Killing: Container web definition changed, will be restarted"),
        (spec("two", "64Mi"), "Killing: Container web resize requires restart"),
    ] {
        host.events.take();
        host.say(PodOp::Update, &[&edited]).await;
        host.settle().await;
        let events = host.events.take();
        let killing: Vec<_> = events.iter().filter(|event| event.starts_with("Killing")).collect();
        assert_eq!(killing, [expected], "{events:?}");
        assert_eq!(host.running(&edited.uid).len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn d13_the_deadline_is_told() {
    let (mut host, _web) = started("{activeDeadlineSeconds: 30, containers: [{name: web, image: a}]}").await;
    host.events.take();
    host.run(31).await;
    let told = "DeadlineExceeded: Pod was active on the node longer than the specified deadline";
    assert_eq!(host.events.take(), [told, "Killing: Stopping container web"]);
}

#[tokio::test(start_paused = true)]
async fn what_goes_wrong_with_a_sandbox_or_a_pod_s_end_is_told() {
    let mut host = Host::new().await;
    host.runtime.fail(FakeOperation::CreateSandbox, "no space left on device");
    let web = pod("web", ONE);
    host.say(PodOp::Add, &[&web]).await;
    host.run(5).await;
    let events = host.events.take();
    let told = "FailedCreatePodSandBox: Failed to create pod sandbox: create sandbox: no space left on device";
    assert!(events.contains(&told.to_owned()), "{events:?}");
    host.runtime.fail(FakeOperation::RemovePod, "device or resource busy");
    host.volumes.fail_removal("target is busy");
    host.say(PodOp::Remove, &[&web]).await;
    host.run(30).await;
    assert!(host.runtime.pods().is_empty());
    let events = host.events.take();
    let told = [
        "FailedKillPod: error killing pod: remove pod: device or resource busy",
        "FailedUnMount: remove volumes of pod web-uid: target is busy",
    ];
    for told in told {
        assert!(events.iter().any(|event| event.starts_with(told)), "{told}: {events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_be_looked_at_is_told() {
    let (mut host, web) = started(ONE).await;
    host.events.take();
    host.runtime.fail(FakeOperation::Observe, "the shim does not answer");
    host.poke(&web.uid);
    host.run(3).await;
    assert_eq!(host.events.take(), ["FailedSync: error determining status: observe: the shim does not answer"]);
}

#[tokio::test(start_paused = true)]
async fn d8_a_container_that_cannot_be_made_or_started_is_told_with_the_error() {
    let mut host = Host::new().await;
    host.runtime.on_signal(OnSignal::End);
    host.runtime.fail(FakeOperation::CreateContainer(ContainerName::new("web")), "bad mount");
    let web = pod("web", ONE);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    assert_eq!(host.summary(&web.uid), "Pending web=CreateContainerError");
    let events = host.events.take();
    assert!(events.iter().any(|event| event.starts_with("Failed: Error: ") && event.ends_with("bad mount")), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn d22_name_servers_that_are_left_out_are_told() {
    let mut host = Host::new().await;
    let told = "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 1.1.1.1";
    host.volumes.set_dns_exceeded(told);
    host.say(PodOp::Add, &[&pod("web", ONE)]).await;
    host.settle().await;
    assert!(host.events.take().contains(&format!("DNSConfigForming: {told}")));
}

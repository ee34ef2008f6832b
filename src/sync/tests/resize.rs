//! Resizing of pods and containers while they run.

use super::host::{Host, pod};
use k8s_openapi::api::core::v1::{ContainerStatus, PodCondition};
use podstead_mux::PodOp;
use podstead_pod::{ContainerName, DesiredPod};
use podstead_runtime::fake::FakeOperation;
use podstead_worker::definition::PodDefinition;
use std::sync::Arc;

fn web(resources: &str) -> Arc<DesiredPod> {
    pod("web", &format!("{{containers: [{{name: web, image: a, resources: {resources}}}]}}"))
}

async fn running(before: &Arc<DesiredPod>) -> Host {
    let mut host = Host::new().await;
    host.say(PodOp::Add, &[before]).await;
    host.settle().await;
    host.runtime.take_calls();
    host.events.take();
    host
}

fn container(host: &Host, pod: &DesiredPod) -> ContainerStatus {
    host.status(&pod.uid).container_statuses.unwrap().remove(0)
}

fn limit(status: &ContainerStatus) -> String {
    status.resources.as_ref().unwrap().limits.as_ref().unwrap()["memory"].0.clone()
}

fn condition(host: &Host, pod: &DesiredPod, kind: &str) -> Option<PodCondition> {
    host.status(&pod.uid).conditions.unwrap().into_iter().find(|condition| condition.type_ == kind)
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_limits_is_applied_to_the_running_container_and_shown() {
    let before = web("{limits: {memory: 32Mi, cpu: 100m}}");
    let mut host = running(&before).await;
    assert_eq!(limit(&container(&host, &before)), "32Mi");
    let after = web("{limits: {memory: 64Mi, cpu: 100m}}");
    host.say(PodOp::Update, &[&after]).await;
    host.settle().await;
    assert_eq!(host.running(&after.uid), ["web/0"]);
    assert_eq!(host.runtime.take_calls(), ["update_sandbox", "resize_container web"]);
    assert_eq!(limit(&container(&host, &after)), "64Mi");
    assert!(host.events.take().contains(&"ResizeCompleted: Resized container web".to_owned()));
    assert_eq!(condition(&host, &after, "PodResizeInProgress"), None);
    let sandbox = host.observed(&after.uid).sandbox.unwrap();
    assert_eq!(sandbox.spec.resources.memory_limit, Some(64 << 20));
}

#[tokio::test(start_paused = true)]
async fn a_limit_below_what_is_in_use_is_tried_again_and_the_container_keeps_what_it_has() {
    let before = web("{limits: {memory: 64Mi, cpu: 100m}}");
    let mut host = running(&before).await;
    let refused = "attempting to set container memory limit (33554432) below current usage (50000000)";
    host.runtime.fail(FakeOperation::ResizeContainer(ContainerName::new("web")), refused);
    let after = web("{requests: {memory: 32Mi}, limits: {memory: 32Mi, cpu: 100m}}");
    host.say(PodOp::Update, &[&after]).await;
    host.run_millis(10).await;
    let status = container(&host, &after);
    assert_eq!(limit(&status), "64Mi", "what is in force");
    assert_eq!(status.allocated_resources.unwrap()["memory"].0, "32Mi", "what is admitted");
    let condition_now = condition(&host, &after, "PodResizeInProgress").unwrap();
    assert_eq!((condition_now.status.as_str(), condition_now.reason.as_deref()), ("True", Some("Error")));
    assert!(condition_now.message.unwrap().contains(refused));
    assert_eq!(host.observed(&after.uid).sandbox.unwrap().spec.resources.memory_limit, Some(64 << 20), "the pod keeps its room");
    host.run(30).await;
    assert_eq!(limit(&container(&host, &after)), "32Mi");
    assert_eq!(condition(&host, &after, "PodResizeInProgress"), None);
    assert_eq!(host.observed(&after.uid).sandbox.unwrap().spec.resources.memory_limit, Some(32 << 20));
    assert_eq!(host.running(&after.uid), ["web/0"]);
}

#[tokio::test(start_paused = true)]
async fn more_than_the_host_has_is_infeasible_and_changes_nothing() {
    let before = web("{requests: {memory: 32Mi}, limits: {memory: 64Mi}}");
    let mut host = running(&before).await;
    let after = web("{requests: {memory: 2Gi}, limits: {memory: 2Gi}}");
    host.say(PodOp::Update, &[&after]).await;
    host.settle().await;
    assert_eq!(host.runtime.take_calls(), Vec::<String>::new());
    let pending = condition(&host, &after, "PodResizePending").unwrap();
    assert_eq!(pending.reason.as_deref(), Some("Infeasible"));
    let expected = "Node didn't have enough capacity: memory, requested: 2147483648, capacity: 1073741824";
    assert_eq!(pending.message.as_deref(), Some(expected));
    host.poke(&after.uid);
    host.settle().await;
    assert_eq!(host.events.take(), [format!("ResizeInfeasible: Pod resize Infeasible: {expected}")], "told once");
    let status = container(&host, &after);
    assert_eq!((limit(&status).as_str(), status.allocated_resources.unwrap()["memory"].0.as_str()), ("64Mi", "32Mi"));
}

#[tokio::test(start_paused = true)]
async fn other_resources_end_a_crash_loop_s_pause() {
    let before = web("{limits: {memory: 32Mi, cpu: 100m}}");
    let mut host = running(&before).await;
    for _ in 0..4 {
        host.runtime.exit(&before.uid, "web", 137);
        host.run(1).await;
    }
    assert!(host.running(&before.uid).is_empty(), "it pauses (kubelet rule D9)");
    let after = web("{limits: {memory: 64Mi, cpu: 100m}}");
    host.say(PodOp::Update, &[&after]).await;
    host.run(1).await;
    assert_eq!(host.running(&after.uid).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_in_force_is_known_to_the_next_daemon() {
    let before = web("{limits: {memory: 32Mi, cpu: 100m}}");
    let mut host = running(&before).await;
    host.say(PodOp::Update, &[&web("{limits: {memory: 64Mi, cpu: 100m}}")]).await;
    host.settle().await;
    host.runtime.take_calls();
    host.kill_daemon();
    host.start_daemon().await;
    host.say(PodOp::Add, &[&web("{limits: {memory: 64Mi, cpu: 100m}}")]).await;
    host.settle().await;
    assert_eq!(host.runtime.take_calls(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_version_started_is_recognised_by_its_hash() {
    let host = Host::new().await;
    let resources = "resources: {limits: {memory: 32Mi, cpu: 100m}}";
    let spec = format!(
        "{{initContainers: [{{name: init, image: a, {resources}}}], containers: [{{name: web, image: a, {resources}}}, {{name: log, image: a}}]}}"
    );
    let definition = PodDefinition::new(pod("web", &spec), &host.definition_context());
    for name in ["init", "web", "log"] {
        let hash = &definition.container(&ContainerName::new(name)).unwrap().hash;
        let (base, own) = hash.earlier.clone().unwrap();
        assert!(
            hash.is(&format!("{base}.{own}")) && hash.is(&hash.to_string()) && hash.has_base_of(&format!("{base}.x")),
            "{name}"
        );
        assert!(!hash.is(&format!("{base}.{}x", hash.own)));
    }
    let plain = PodDefinition::new(web("{}"), &host.definition_context());
    assert_eq!(plain.container(&ContainerName::new("web")).unwrap().hash.earlier, None);
}

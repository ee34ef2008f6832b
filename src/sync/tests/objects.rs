//! Pods that refer to ConfigMaps and Secrets: only those that refer to what changed do anything.

use super::host::{Host, pod};
use podstead_mux::PodOp;
use podstead_pod::testing::{config_map, view};

const USER: &str = "{containers: [
    {name: user, image: a, env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: a}}}]},
    {name: other, image: a}]}";

fn objects(data: &str) -> Option<String> {
    Some(config_map("m", data))
}

#[tokio::test(start_paused = true)]
async fn a_container_waits_for_its_object_and_starts_when_it_comes_while_its_neighbour_runs() {
    let mut host = Host::new().await;
    let pod = pod("web", USER);
    host.set_objects(view(&[("manifests", Some(""))])).await;
    host.say(PodOp::Add, &[&pod]).await;
    host.settle().await;
    assert_eq!(host.running(&pod.uid), ["other/0"]);
    assert_eq!(host.summary(&pod.uid), "Pending other=Running user=CreateContainerConfigError");
    let told = host.events.take();
    let expected = "Failed: Error: configmap \"m\" not found in namespace \"default\" (looked in source manifests)";
    assert_eq!(told.iter().filter(|event| *event == expected).count(), 1, "{told:?}");
    host.run(300).await;
    assert_eq!(host.events.take(), Vec::<String>::new(), "told once");
    host.set_objects(view(&[("manifests", objects("{a: one}").as_deref())])).await;
    host.settle().await;
    assert_eq!(host.running(&pod.uid), ["other/0", "user/0"]);
}

#[tokio::test(start_paused = true)]
async fn only_the_container_whose_value_changed_is_restarted() {
    let mut host = Host::new().await;
    let (pod, bystander) = (pod("web", USER), pod("bystander", "{containers: [{name: c, image: a}]}"));
    host.set_objects(view(&[("manifests", objects("{a: one, b: two}").as_deref())])).await;
    host.say(PodOp::Add, &[&pod, &bystander]).await;
    host.settle().await;
    host.runtime.take_calls();
    host.set_objects(view(&[("manifests", objects("{a: one, b: three}").as_deref())])).await;
    host.settle().await;
    assert_eq!(host.runtime.take_calls(), Vec::<String>::new(), "the key is not used");
    host.set_objects(view(&[("manifests", objects("{a: uno, b: three}").as_deref())])).await;
    host.run(40).await;
    assert_eq!(host.running(&pod.uid), ["other/0", "user/1"]);
    assert_eq!(host.running(&bystander.uid), ["c/0"]);
    assert_eq!(host.runtime.take_calls(), ["signal_container user 15", "start_container user 1"]);
}

#[tokio::test(start_paused = true)]
async fn what_runs_goes_on_when_its_object_is_deleted_and_a_restart_waits() {
    let mut host = Host::new().await;
    let pod = pod("web", USER);
    host.set_objects(view(&[("manifests", objects("{a: one}").as_deref())])).await;
    host.say(PodOp::Add, &[&pod]).await;
    host.settle().await;
    host.set_objects(view(&[("manifests", Some(""))])).await;
    host.run(300).await;
    assert_eq!(host.running(&pod.uid), ["user/0", "other/0"]);
    host.runtime.exit(&pod.uid, "user", 1);
    host.run(60).await;
    assert_eq!(host.running(&pod.uid), ["other/0"]);
    assert_eq!(
        host.status(&pod.uid).container_statuses.unwrap()[1].state.as_ref().unwrap().waiting.as_ref().unwrap().reason.as_deref(),
        Some("CreateContainerConfigError")
    );
    host.set_objects(view(&[("manifests", objects("{a: two}").as_deref())])).await;
    host.settle().await;
    assert_eq!(host.running(&pod.uid), ["other/0", "user/1"]);
}

#[tokio::test(start_paused = true)]
async fn a_restarted_daemon_restarts_nothing_before_and_after_it_has_heard_the_source_of_an_object() {
    let mut host = Host::new().await;
    let spec = "{containers: [{name: user, image: a, envFrom: [{configMapRef: {name: m, optional: true}}],
        env: [{name: B, valueFrom: {configMapKeyRef: {name: m, key: a}}}]}]}";
    let pod = pod("web", spec);
    host.set_objects(view(&[("manifests", Some("")), ("site", objects("{a: one}").as_deref())])).await;
    host.say(PodOp::Add, &[&pod]).await;
    host.settle().await;
    host.kill_daemon();
    host.forget_objects();
    host.start_daemon().await;
    host.set_objects(view(&[("manifests", Some("")), ("site", None)])).await;
    host.say(PodOp::Add, &[&pod]).await;
    host.run(300).await;
    assert_eq!(host.running(&pod.uid), ["user/0"]);
    host.set_objects(view(&[("manifests", Some("")), ("site", objects("{a: one}").as_deref())])).await;
    host.run(300).await;
    assert_eq!(host.running(&pod.uid), ["user/0"]);
    host.set_objects(view(&[("manifests", Some("")), ("site", objects("{a: two}").as_deref())])).await;
    host.run(300).await;
    assert_eq!(host.running(&pod.uid), ["user/1"]);
}

#[tokio::test(start_paused = true)]
async fn a_changed_environment_of_an_init_container_that_is_done_restarts_nothing() {
    let mut host = Host::new().await;
    let spec = "{initContainers: [{name: setup, image: a, env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: a}}}]}],
        containers: [{name: c, image: a}]}";
    let pod = pod("web", spec);
    host.set_objects(view(&[("manifests", objects("{a: one}").as_deref())])).await;
    host.say(PodOp::Add, &[&pod]).await;
    host.settle().await;
    host.runtime.exit(&pod.uid, "setup", 0);
    host.settle().await;
    assert_eq!(host.running(&pod.uid), ["c/0"]);
    host.set_objects(view(&[("manifests", objects("{a: two}").as_deref())])).await;
    host.run(300).await;
    assert_eq!(host.running(&pod.uid), ["c/0"]);
}

const MOUNTING: &str = "{containers: [{name: c, image: a, volumeMounts: [{name: v, mountPath: /v}]}],
    volumes: [{name: v, configMap: {name: m}}]}";

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_the_object_of_its_volume_and_is_told_once() {
    let mut host = Host::new().await;
    let pod = pod("web", MOUNTING);
    host.set_objects(view(&[("manifests", Some(""))])).await;
    host.say(PodOp::Add, &[&pod]).await;
    host.run(600).await;
    assert_eq!(host.summary(&pod.uid), "Pending c=ContainerCreating");
    let told = host.events.take();
    let expected = "FailedMount: MountVolume.SetUp failed for volume \"v\" : configmap \"m\" not found in namespace \"default\" (looked in source manifests)";
    assert_eq!(told.iter().filter(|event| *event == expected).count(), 1, "{told:?}");
    host.set_objects(view(&[("manifests", objects("{a: one}").as_deref())])).await;
    host.settle().await;
    assert_eq!(host.running(&pod.uid), ["c/0"]);
    assert_eq!(host.volumes.file(&pod.uid, "v", "a").as_deref(), Some("one"));
}

#[tokio::test(start_paused = true)]
async fn object_is_missing_only_when_its_source_delivered() {
    let mut host = Host::new().await;
    let (mounting, using) = (pod("web", MOUNTING), pod("user", USER));
    host.set_objects(view(&[("manifests", Some("")), ("later", None)])).await;
    host.say(PodOp::Add, &[&mounting, &using]).await;
    host.run(600).await;
    assert_eq!(host.summary(&mounting.uid), "Pending c=ContainerCreating");
    let is_missing = |event: &String| event.contains("not found");
    let told = host.events.take();
    assert!(!told.iter().any(is_missing), "{told:?}");
    host.set_objects(view(&[("manifests", Some("")), ("later", Some(""))])).await;
    host.run(60).await;
    let told = host.events.take();
    let count = |reason: &str| told.iter().filter(|event| event.starts_with(reason) && is_missing(event)).count();
    assert_eq!((count("FailedMount"), count("Failed:")), (1, 1), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_does_not_wait_for_volumes_that_no_container_has() {
    let mut host = Host::new().await;
    let spec = "{containers: [{name: c, image: a}], volumes: [{name: v, configMap: {name: m}}, {name: s, secret: {secretName: s}},
        {name: p, projected: {sources: [{secret: {name: s}}]}}, {name: d, persistentVolumeClaim: {claimName: d}}]}";
    let web = pod("web", spec);
    host.set_objects(view(&[("manifests", Some(""))])).await;
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    assert_eq!(host.running(&web.uid), ["c/0"]);
    let mounting = pod("web", &spec.replace("image: a}", "image: a, volumeDevices: [{name: v, devicePath: /v}]}"));
    host.say(PodOp::Update, &[&mounting]).await;
    host.run(60).await;
    let told = host.events.take();
    assert!(told.iter().any(|event| event.contains("configmap \"m\" not found")), "{told:?}");
    assert_eq!(host.running(&web.uid), ["c/0"], "what runs waits for what its edit needs");
}

#[tokio::test(start_paused = true)]
async fn a_changed_object_changes_files_and_restarts_nothing() {
    let mut host = Host::new().await;
    let pod = pod("web", MOUNTING);
    host.set_objects(view(&[("manifests", objects("{a: one}").as_deref())])).await;
    host.say(PodOp::Add, &[&pod]).await;
    host.settle().await;
    host.runtime.take_calls();
    host.set_objects(view(&[("manifests", objects("{a: two}").as_deref())])).await;
    host.settle().await;
    assert_eq!(host.volumes.file(&pod.uid, "v", "a").as_deref(), Some("two"));
    host.set_objects(view(&[("manifests", Some(""))])).await;
    host.run(300).await;
    assert_eq!(host.volumes.file(&pod.uid, "v", "a").as_deref(), Some("two"), "a deleted object leaves its files");
    assert_eq!(host.runtime.take_calls(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_new_daemon_brings_files_up_to_date_and_restarts_nothing() {
    let mut host = Host::new().await;
    let pod = pod("web", MOUNTING);
    host.set_objects(view(&[("manifests", objects("{a: one}").as_deref())])).await;
    host.say(PodOp::Add, &[&pod]).await;
    host.settle().await;
    host.kill_daemon();
    host.runtime.take_calls();
    host.forget_objects();
    host.start_daemon().await;
    host.set_objects(view(&[("manifests", objects("{a: two}").as_deref())])).await;
    host.say(PodOp::Add, &[&pod]).await;
    host.settle().await;
    assert_eq!(host.volumes.file(&pod.uid, "v", "a").as_deref(), Some("two"));
    assert_eq!(host.runtime.take_calls(), Vec::<String>::new());
}

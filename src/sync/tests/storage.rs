//! Pods that use more of the host's disk than they may.

use super::host::{Host, pod};
use podstead_mux::PodOp;
use podstead_pod::storage::StorageUsage;
use podstead_pod::testing::view;
use podstead_runtime::fake::OnSignal;
use podstead_volume::Giving;

fn used(volume: &str, bytes: u64) -> StorageUsage {
    StorageUsage { volumes: [(volume.to_owned(), bytes)].into(), ..StorageUsage::default() }
}

const LIMITED: &str = "{containers: [{name: c, image: a}], volumes: [{name: d, emptyDir: {sizeLimit: 1Mi}}]}";

#[tokio::test(start_paused = true)]
async fn a_pod_that_exceeds_a_limit_is_evicted_in_a_second_and_made_anew_after_a_pause() {
    let mut host = Host::new().await;
    let web = pod("web", LIMITED);
    host.volumes.set_usage(used("d", 1 << 20));
    host.say(PodOp::Add, &[&web]).await;
    host.run(300).await;
    assert_eq!(host.running(&web.uid), ["c/0"], "it has used all that it may");
    host.events.take();
    host.volumes.set_usage(used("d", (1 << 20) + 1));
    host.run(25).await;
    let status = host.status(&web.uid);
    let message = "Usage of EmptyDir volume \"d\" exceeds the limit \"1Mi\". ";
    assert_eq!((status.phase.as_deref(), status.reason.as_deref()), (Some("Failed"), Some("Evicted")));
    assert_eq!(status.message.as_deref(), Some(message));
    let events = host.events.take();
    assert!(events.contains(&format!("Evicted: {message}")), "{events:?}");
    assert!(host.running(&web.uid).is_empty());

    host.run(270).await;
    assert_eq!(host.incarnations.take(), []);
    // The pause is kept through a restart of the daemon.
    host.kill_daemon();
    host.start_daemon().await;
    host.say(PodOp::Add, &[&web]).await;
    host.run(60).await;
    assert_eq!(host.incarnations.take(), std::slice::from_ref(&web.uid));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_lived_for_long_is_made_anew_at_once() {
    let mut host = Host::new().await;
    let web = pod("web", LIMITED);
    host.say(PodOp::Add, &[&web]).await;
    host.run(700).await;
    host.volumes.set_usage(used("d", 2 << 20));
    host.run(25).await;
    assert_eq!(host.status(&web.uid).reason.as_deref(), Some("Evicted"));
    assert_eq!(host.incarnations.take(), std::slice::from_ref(&web.uid));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_shall_end_by_itself_stays_evicted() {
    let mut host = Host::new().await;
    let spec = "{restartPolicy: OnFailure, containers: [{name: c, image: a, resources: {limits: {ephemeral-storage: 1Mi}}}]}";
    let job = pod("job", spec);
    host.volumes.set_usage(StorageUsage { containers: [("c".to_owned(), 2 << 20)].into(), ..StorageUsage::default() });
    host.say(PodOp::Add, &[&job]).await;
    host.run(3600).await;
    let message = "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ";
    assert_eq!(host.status(&job.uid).message.as_deref(), Some(message));
    assert_eq!(host.incarnations.take(), []);
}

#[tokio::test(start_paused = true)]
async fn an_edit_that_raises_the_limit_is_measured_anew() {
    let mut host = Host::new().await;
    host.say(PodOp::Add, &[&pod("web", LIMITED)]).await;
    host.run(30).await;
    host.volumes.set_usage(used("d", 2 << 20));
    let raised = pod("web", &LIMITED.replace("1Mi", "4Mi"));
    host.say(PodOp::Update, &[&raised]).await;
    host.run(60).await;
    assert_eq!(host.running(&raised.uid), ["c/0"]);
}

#[tokio::test(start_paused = true)]
async fn volumes_that_an_edit_takes_away_go_once_no_container_has_them_any_more() {
    let mut host = Host::new().await;
    let mounting =
        "{containers: [{name: c, image: a, volumeMounts: [{name: d, mountPath: /d}]}], volumes: [{name: d, emptyDir: {}}]}";
    host.say(PodOp::Add, &[&pod("web", mounting)]).await;
    host.run(300).await;
    assert_eq!(host.volumes.take_trimmed(), []);
    host.runtime.on_signal(OnSignal::Ignore);
    let without = pod("web", "{containers: [{name: c, image: a}]}");
    host.say(PodOp::Update, &[&without]).await;
    host.run(20).await;
    assert_eq!((host.running(&without.uid), host.volumes.take_trimmed()), (vec!["c/0".to_owned()], vec![]), "it is still stopping");
    host.run(60).await;
    assert_eq!(host.running(&without.uid), ["c/1"]);
    assert_eq!(host.volumes.take_trimmed(), std::slice::from_ref(&without.uid));
    host.run(300).await;
    assert_eq!(host.volumes.take_trimmed(), []);
}

#[tokio::test(start_paused = true)]
async fn a_container_waits_for_the_image_of_its_volume_and_its_neighbour_does_not() {
    let mut host = Host::new().await;
    let spec = |image: &str| {
        format!(
            "{{containers: [{{name: user, image: a, volumeMounts: [{{name: v, mountPath: /v}}]}}, {{name: other, image: a}}],
               volumes: [{{name: v, image: {{reference: '{image}'}}}}]}}"
        )
    };
    host.say(PodOp::Add, &[&pod("web", &spec("models:1"))]).await;
    host.run(5).await;
    let web = pod("web", "{}").uid.clone();
    assert_eq!(host.summary(&web), "Pending other=Running user=ErrImagePull");
    host.run(60).await;
    assert_eq!(host.summary(&web), "Pending other=Running user=ImagePullBackOff");
    host.images.put("models:1");
    host.settle().await;
    assert_eq!(host.summary(&web), "Running other=Running user=Running");

    // Another image is fetched while the container goes on with the one that it has.
    host.say(PodOp::Update, &[&pod("web", &spec("models:2"))]).await;
    host.run(60).await;
    assert_eq!(host.running(&web), ["other/0", "user/0"]);
    host.images.put("models:2");
    host.settle().await;
    assert_eq!(host.running(&web), ["other/0", "user/1"]);
}

#[tokio::test(start_paused = true)]
async fn claims_are_given_to_the_group_when_a_sandbox_is_made_and_not_while_one_lives() {
    let mut host = Host::new().await;
    let spec = |more: &str| format!("{{{more} containers: [{{name: c, image: a}}], volumes: [{{name: d, emptyDir: {{}}}}]}}");
    let web = pod("web", &spec(""));
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    assert_eq!((host.running(&web.uid), host.volumes.take_givings()), (vec!["c/0".to_owned()], vec![Giving::All]));
    host.kill_daemon();
    host.start_daemon().await;
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    host.runtime.exit(&web.uid, "c", 1);
    host.run(60).await;
    assert_eq!((host.running(&web.uid), host.volumes.take_givings()), (vec!["c/1".to_owned()], vec![Giving::Rest]));
    host.say(PodOp::Update, &[&pod("web", &spec("hostname: other,"))]).await;
    host.run(60).await;
    assert_eq!(host.volumes.take_givings(), [Giving::Rest, Giving::All], "another sandbox is made");
}

#[tokio::test(start_paused = true)]
async fn claims_are_made_before_they_are_given() {
    let mut host = Host::new().await;
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n\
                 spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}\n";
    host.set_objects(view(&[("manifests", Some(claim))])).await;
    let spec = "{securityContext: {fsGroup: 970}, containers: [{name: c, image: a, volumeMounts: [{name: d, mountPath: /d}]}],
        volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}";
    let web = pod("web", spec);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    assert_eq!(host.running(&web.uid), ["c/0"]);
    assert_eq!(host.volumes.take_givings(), [Giving::All]);
    let told = host.events.take();
    assert!(!told.iter().any(|event| event.contains("FailedMount")), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn claims_are_reclaimed_when_their_last_pod_is_gone() {
    let mut host = Host::new().await;
    let plain = pod("plain", "{containers: [{name: c, image: a}], volumes: [{name: d, emptyDir: {}}]}");
    let user = pod("user", "{containers: [{name: c, image: a}], volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}");
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n\
                 spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}\n";
    host.set_objects(view(&[("manifests", Some(claim))])).await;
    host.say(PodOp::Add, &[&plain, &user]).await;
    host.settle().await;
    assert_eq!((host.running(&plain.uid).len(), host.running(&user.uid).len()), (1, 1));
    host.volumes.take_reclaims();
    host.say(PodOp::Remove, &[&plain]).await;
    host.settle().await;
    assert_eq!((host.volumes.pods(), host.volumes.take_reclaims()), (vec![user.uid.clone()], 0));
    host.say(PodOp::Remove, &[&user]).await;
    host.settle().await;
    assert_eq!((host.volumes.pods(), host.volumes.take_reclaims()), (Vec::new(), 1), "not at the next tick only");
}

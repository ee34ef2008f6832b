//! Pods of one name, one after the other (kubelet rules C9, C10).

use super::host::{Host, pod_with_uid};
use podstead_mux::PodOp;
use podstead_runtime::fake::OnSignal;

const ONE: &str = "{terminationGracePeriodSeconds: 5, containers: [{name: web, image: a}]}";

#[tokio::test(start_paused = true)]
async fn a_pod_of_the_same_name_starts_the_moment_the_old_one_is_gone() {
    let mut host = Host::new().await;
    host.runtime.on_signal(OnSignal::Ignore);
    let old = pod_with_uid("web", "old", ONE);
    let new = pod_with_uid("web", "new", ONE);
    host.say(PodOp::Add, &[&old]).await;
    host.settle().await;
    host.say(PodOp::Remove, &[&old]).await;
    host.say(PodOp::Add, &[&new]).await;
    host.run(4).await;
    assert_eq!(host.running(&old.uid), ["web/0"]);
    assert!(host.runtime.observed(&new.uid).is_none(), "only one of a name is started");
    host.runtime.exit(&old.uid, "web", 0);
    host.settle().await;
    assert_eq!(host.running(&new.uid), ["web/0"]);
    assert_eq!(host.runtime.pods(), std::slice::from_ref(&new.uid));
}

#[tokio::test(start_paused = true)]
async fn of_several_that_wait_for_a_name_only_the_last_one_runs() {
    let mut host = Host::new().await;
    host.runtime.on_signal(OnSignal::Ignore);
    let pods: Vec<_> = (0..4).map(|number| pod_with_uid("web", &number.to_string(), ONE)).collect();
    host.say(PodOp::Add, &[&pods[0]]).await;
    host.settle().await;
    for pair in pods.windows(2) {
        host.say(PodOp::Remove, &[&pair[0]]).await;
        host.say(PodOp::Add, &[&pair[1]]).await;
    }
    host.settle().await;
    host.runtime.exit(&pods[0].uid, "web", 0);
    host.settle().await;
    assert_eq!(host.runtime.pods(), [pods[3].uid.clone()]);
    assert_eq!(host.running(&pods[3].uid), ["web/0"]);
}

#[tokio::test(start_paused = true)]
async fn a_uid_that_comes_back_while_it_is_being_removed_starts_anew_afterwards() {
    let mut host = Host::new().await;
    host.runtime.on_signal(OnSignal::Ignore);
    let web = pod_with_uid("web", "fixed", ONE);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    host.say(PodOp::Remove, &[&web]).await;
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    host.runtime.take_calls();
    host.runtime.exit(&web.uid, "web", 0);
    host.settle().await;
    assert_eq!(host.runtime.take_calls(), ["stop_sandbox", "remove_pod", "create_sandbox 0", "start_container web 0"]);
}

#[tokio::test(start_paused = true)]
async fn pods_of_other_names_do_not_wait() {
    let mut host = Host::new().await;
    host.runtime.on_signal(OnSignal::Ignore);
    let old = pod_with_uid("web", "old", ONE);
    host.say(PodOp::Add, &[&old]).await;
    host.settle().await;
    let other = pod_with_uid("db", "other", ONE);
    host.say(PodOp::Remove, &[&old]).await;
    host.say(PodOp::Add, &[&other]).await;
    host.settle().await;
    assert_eq!(host.running(&other.uid), ["web/0"]);
}

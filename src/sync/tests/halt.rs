//! Stops and starts by an operator.

use super::host::{Host, pod};
use podstead_mux::PodOp;
use podstead_runtime::fake::OnSignal;
use podstead_worker::halt::{Order, OrderError};
use std::time::Duration;

const ONE: &str = "{containers: [{name: web, image: a}]}";

#[tokio::test(start_paused = true)]
async fn stopped_pod_stays_stopped_until_started() {
    let mut host = Host::new().await;
    let web = pod("web", ONE);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    host.order(&web.uid, Order::Stop).await.unwrap();
    host.run(60).await;
    assert_eq!(host.running(&web.uid), [""; 0]);
    assert_eq!(host.summary(&web.uid), "Running web=Stopped");
    host.kill_daemon();
    host.start_daemon().await;
    host.say(PodOp::Add, &[&web]).await;
    host.run(300).await;
    assert_eq!(host.summary(&web.uid), "Running web=Stopped");
    host.order(&web.uid, Order::Start).await.unwrap();
    host.run(5).await;
    assert_eq!(host.running(&web.uid), ["web/1"]);
    assert_eq!(host.summary(&web.uid), "Running web=Running");
}

#[tokio::test(start_paused = true)]
async fn stopped_pod_starts_with_next_boot() {
    for (is_started, expected) in [(true, "Running web=Running"), (false, "Running web=Stopped")] {
        let mut host = Host::new().await;
        let web = pod("web", ONE);
        host.say(PodOp::Add, &[&web]).await;
        host.settle().await;
        host.order(&web.uid, Order::Stop).await.unwrap();
        host.run(60).await;
        host.kill_daemon();
        (host.boot_id, host.starts_stopped_at_boot) = ("boot-2".to_owned(), is_started);
        host.start_daemon().await;
        host.say(PodOp::Add, &[&web]).await;
        host.run(5).await;
        assert_eq!(host.summary(&web.uid), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn edit_starts_stopped_pod() {
    let mut host = Host::new().await;
    let web = pod("web", ONE);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    host.order(&web.uid, Order::Stop).await.unwrap();
    host.run(60).await;
    host.say(PodOp::Update, &[&pod("web", "{containers: [{name: web, image: b}]}")]).await;
    host.run(5).await;
    assert_eq!(host.summary(&web.uid), "Running web=Running");
    // The edit ended the stop for good.
    host.kill_daemon();
    host.start_daemon().await;
    host.run(5).await;
    assert_eq!(host.summary(&web.uid), "Running web=Running");
}

#[tokio::test(start_paused = true)]
async fn stop_does_not_count_as_failure() {
    let mut host = Host::new().await;
    let job = pod("job", "{restartPolicy: Never, containers: [{name: job, image: a}]}");
    host.say(PodOp::Add, &[&job]).await;
    host.settle().await;
    host.order(&job.uid, Order::Stop).await.unwrap();
    host.run(60).await;
    host.kill_daemon();
    host.start_daemon().await;
    host.run(5).await;
    host.order(&job.uid, Order::Start).await.unwrap();
    host.run(5).await;
    assert_eq!(host.summary(&job.uid), "Running job=Running");
}

#[tokio::test(start_paused = true)]
async fn orders_for_ended_pods_are_refused() {
    let mut host = Host::new().await;
    let job = pod("job", "{restartPolicy: Never, containers: [{name: job, image: a}]}");
    host.say(PodOp::Add, &[&job]).await;
    host.settle().await;
    assert!(host.runtime.exit(&job.uid, "job", 0));
    host.settle().await;
    assert!(matches!(host.order(&job.uid, Order::Stop).await, Err(OrderError::Ended)));
    assert!(matches!(host.order(&pod("other", ONE).uid, Order::Start).await, Err(OrderError::Gone)));
}

#[tokio::test(start_paused = true)]
async fn stopped_pod_is_removed_with_its_manifest() {
    let mut host = Host::new().await;
    let web = pod("web", ONE);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    host.order(&web.uid, Order::Stop).await.unwrap();
    host.run(60).await;
    host.say(PodOp::Remove, &[&web]).await;
    host.run(60).await;
    assert!(host.statuses.get(&web.uid).is_none());
    assert!(matches!(host.order(&web.uid, Order::Start).await, Err(OrderError::Gone)));
}

#[tokio::test(start_paused = true)]
async fn recorded_replacement_outlives_the_daemon() {
    let mut host = Host::new().await;
    let web = pod("web", ONE);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    host.order(&web.uid, Order::Replace).await.unwrap();
    assert_eq!(host.running(&web.uid), ["web/0"], "the mux removes it, in its order");
    host.order(&web.uid, Order::Replace).await.unwrap();
    // The daemon dies before the mux said anything.
    host.kill_daemon();
    host.start_daemon().await;
    host.run(60).await;
    assert_eq!(host.running(&web.uid), [""; 0]);
    assert!(host.statuses.get(&web.uid).is_none());
}

#[tokio::test(start_paused = true)]
async fn end_comes_closer_as_ordered() {
    let stubborn = "{terminationGracePeriodSeconds: 600, containers: [{name: web, image: a}]}";
    for is_first in [true, false] {
        let mut host = Host::new().await;
        let web = pod("web", stubborn);
        host.runtime.on_signal(OnSignal::Ignore);
        host.say(PodOp::Add, &[&web]).await;
        host.settle().await;
        if is_first {
            host.order(&web.uid, Order::End(Duration::from_secs(5))).await.unwrap();
        }
        host.say(PodOp::Remove, &[&web]).await;
        if !is_first {
            host.run(1).await;
            host.order(&web.uid, Order::End(Duration::from_secs(5))).await.unwrap();
        }
        host.run(3).await;
        assert_eq!(host.running(&web.uid), ["web/0"]);
        host.run(10).await;
        assert!(host.statuses.get(&web.uid).is_none());
    }
}

//! Failures, and how the daemon continues after them.

use super::host::{Host, pod};
use podstead_mux::PodOp;
use podstead_pod::{ContainerName, DesiredPod, Revision};
use podstead_runtime::fake::{FakeOperation, OnSignal};
use std::sync::Arc;

const ONE: &str = "{containers: [{name: web, image: a}]}";

#[tokio::test(start_paused = true)]
async fn an_image_that_cannot_be_pulled_backs_off_and_is_used_when_it_comes() {
    let mut host = Host::new().await;
    let web = pod("web", "{containers: [{name: web, image: late}]}");
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    assert_eq!(host.summary(&web.uid), "Pending web=ErrImagePull");
    host.run(11).await;
    assert_eq!(host.summary(&web.uid), "Pending web=ImagePullBackOff");
    host.images.publish("late");
    host.run(25).await;
    assert_eq!(host.running(&web.uid), ["web/0"]);
    let events = host.events.take();
    assert!(events.iter().any(|event| event.starts_with("BackOff: Back-off pulling image \"late\"")), "{events:?}");
}

/// I14.
#[tokio::test(start_paused = true)]
async fn pull_is_tried_again_when_the_network_is_back() {
    let mut host = Host::new().await;
    let web = pod("web", "{containers: [{name: web, image: late}]}");
    host.say(PodOp::Add, &[&web]).await;
    // The pause is five minutes by now.
    host.run(3600).await;
    host.images.publish("late");
    host.images.try_again();
    host.run(1).await;
    assert_eq!(host.running(&web.uid), ["web/0"]);
}

#[tokio::test(start_paused = true)]
async fn image_that_arrives_while_a_pull_hangs_is_used() {
    let mut host = Host::new().await;
    let spec = |policy: &str| format!("{{containers: [{{name: web, image: late, imagePullPolicy: {policy}}}]}}");
    let (web, always) = (pod("web", &spec("IfNotPresent")), pod("always", &spec("Always")));
    host.images.hold(true);
    host.say(PodOp::Add, &[&web, &always]).await;
    host.run(5).await;
    assert_eq!(host.running(&web.uid), [""; 0]);
    host.images.put("late");
    host.run(2).await;
    assert_eq!(host.running(&web.uid), ["web/0"]);
    assert_eq!(host.running(&always.uid), [""; 0], "the registry has to be asked");
    let events = host.events.take();
    assert!(events.iter().any(|event| event.starts_with("Pulled: Container image \"late\" already present")), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn an_image_that_must_not_be_pulled_says_so() {
    let mut host = Host::new().await;
    let web = pod("web", "{containers: [{name: web, image: late, imagePullPolicy: Never}]}");
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    assert_eq!(host.summary(&web.uid), "Pending web=ErrImageNeverPull");
}

#[tokio::test(start_paused = true)]
async fn an_image_that_arrives_by_another_way_is_used_at_once() {
    for policy in ["Never", "IfNotPresent"] {
        let mut host = Host::new().await;
        let web = pod("web", &format!("{{containers: [{{name: web, image: late, imagePullPolicy: {policy}}}]}}"));
        host.say(PodOp::Add, &[&web]).await;
        host.run(1).await;
        host.images.put("another");
        host.settle().await;
        assert_eq!(host.running(&web.uid), [""; 0]);
        host.images.put("late");
        host.settle().await;
        assert_eq!(host.running(&web.uid), ["web/0"], "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_cannot_be_made_is_tried_again() {
    let mut host = Host::new().await;
    for _ in 0..3 {
        host.runtime.fail(FakeOperation::CreateSandbox, "no space left on device");
    }
    let web = pod("web", ONE);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    assert_eq!(host.summary(&web.uid), "Pending web=ContainerCreating");
    let events = host.events.take();
    assert!(events.iter().any(|event| event.starts_with("FailedCreatePodSandBox: ")), "{events:?}");
    host.run(10).await;
    assert_eq!(host.running(&web.uid), ["web/0"]);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_cannot_be_made_says_why_and_is_tried_again() {
    let mut host = Host::new().await;
    host.runtime.fail(FakeOperation::CreateContainer(ContainerName::new("web")), "no such device");
    let web = pod("web", ONE);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    assert_eq!(host.summary(&web.uid), "Pending web=CreateContainerError");
    host.run(2).await;
    assert_eq!(host.running(&web.uid), ["web/0"]);
}

#[tokio::test(start_paused = true)]
async fn program_that_is_none_puts_its_image_in_doubt() {
    let mut host = Host::new().await;
    let web = || FakeOperation::ExecuteContainer(ContainerName::new("web"));
    // Only the last one may be damage.
    for reason in
        ["no such file or directory", "exec format error: it is a program for arm64, and this host is amd64", "exec format error"]
    {
        host.runtime.fail(web(), &format!("exec \"/bin/web\": {reason}"));
    }
    host.say(PodOp::Add, &[&pod("web", ONE)]).await;
    host.run(300).await;
    assert_eq!(host.images.doubts().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_program_that_cannot_be_executed_crash_loops() {
    let mut host = Host::new().await;
    for _ in 0..20 {
        host.runtime.fail(FakeOperation::ExecuteContainer(ContainerName::new("web")), "exec: \"x\": no such file or directory");
    }
    let web = pod("web", ONE);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    assert_eq!(host.summary(&web.uid), "Running web=RunContainerError");
    host.run(5).await;
    assert_eq!(host.summary(&web.uid), "Running web=CrashLoopBackOff");
    let status = host.status(&web.uid).container_statuses.unwrap()[0].clone();
    let last = status.last_state.unwrap().terminated.unwrap();
    assert_eq!((last.reason.as_deref(), last.exit_code), (Some("StartError"), 128));
    host.run(600).await;
    assert!(host.observed(&web.uid).containers[0].attempt < 10, "it must not spin");
}

#[tokio::test(start_paused = true)]
async fn a_container_that_must_not_be_root_is_refused_in_the_kubelets_words() {
    let mut host = Host::new().await;
    let web = pod("web", "{securityContext: {runAsNonRoot: true}, containers: [{name: web, image: a}]}");
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    assert_eq!(host.summary(&web.uid), "Pending web=CreateContainerConfigError");
    let message = host.status(&web.uid).container_statuses.unwrap()[0].clone().state.unwrap().waiting.unwrap().message.unwrap();
    assert!(message.starts_with("container has runAsNonRoot and image will run as root"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn volumes_that_are_not_there_yet_are_waited_for() {
    let mut host = Host::new().await;
    host.volumes.fail("/data does not exist");
    let web = pod("web", ONE);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    assert_eq!(host.summary(&web.uid), "Pending web=ContainerCreating");
    assert!(host.events.take().iter().any(|event| event.starts_with("FailedMount: ")));
    host.run(3).await;
    assert_eq!(host.running(&web.uid), ["web/0"]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_sandbox_is_made_again_at_once_and_then_ever_more_slowly() {
    let mut host = Host::new().await;
    let web = pod("web", ONE);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    host.runtime.lose_sandbox(&web.uid);
    host.settle().await;
    assert_eq!(host.running(&web.uid), ["web/1"]);
    assert_eq!(host.observed(&web.uid).sandbox.unwrap().spec.attempt, 1);
    let mut losses = 0;
    for _ in 0..60 {
        losses += u32::from(host.runtime.lose_sandbox(&web.uid));
        host.run(1).await;
    }
    assert!(losses < 15, "{losses} in a minute");
}

#[tokio::test(start_paused = true)]
async fn after_a_reboot_everything_is_started_again_and_counted() {
    let mut host = Host::new().await;
    let web = pod("web", "{initContainers: [{name: init, image: a}], containers: [{name: web, image: a}]}");
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    assert!(host.runtime.exit(&web.uid, "init", 0));
    host.settle().await;
    assert_eq!(host.running(&web.uid), ["web/0"]);
    host.kill_daemon();
    host.runtime.reboot();
    host.start_daemon().await;
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    assert_eq!(host.running(&web.uid), ["init/1"], "init containers run again in the new sandbox");
    host.runtime.exit(&web.uid, "init", 0);
    host.settle().await;
    assert_eq!(host.running(&web.uid), ["web/1"]);
}

#[tokio::test(start_paused = true)]
async fn a_finished_pod_stays_finished_through_restart_and_reboot_and_is_made_anew_when_edited() {
    let mut host = Host::new().await;
    let once = pod("once", "{restartPolicy: Never, containers: [{name: job, image: a}]}");
    host.say(PodOp::Add, &[&once]).await;
    host.settle().await;
    host.runtime.exit(&once.uid, "job", 0);
    host.settle().await;
    assert_eq!(host.summary(&once.uid), "Succeeded job=Completed(0)");
    host.kill_daemon();
    host.runtime.reboot();
    host.start_daemon().await;
    host.runtime.take_calls();
    let mut other_revision = (*once).clone();
    other_revision.revision = podstead_pod::Revision("2".into());
    host.say(PodOp::Add, &[&Arc::new(other_revision)]).await;
    host.run(100).await;
    assert_eq!(host.summary(&once.uid), "Succeeded job=Completed(0)");
    assert!(host.runtime.take_calls().is_empty());
    assert!(host.incarnations.take().is_empty(), "another revision of the same content is no edit");

    let edited = pod("once", "{restartPolicy: Never, containers: [{name: job, image: b}]}");
    host.say(PodOp::Update, &[&edited]).await;
    host.settle().await;
    assert_eq!(host.incarnations.take(), std::slice::from_ref(&edited.uid));
}

#[tokio::test(start_paused = true)]
async fn a_pod_recorded_but_not_wanted_any_more_goes_when_the_sources_were_heard() {
    let mut host = Host::new().await;
    let web = pod("web", ONE);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    host.kill_daemon();
    host.start_daemon().await;
    host.run(100).await;
    assert_eq!(host.running(&web.uid), ["web/0"], "nobody said that it should go");
    host.say(PodOp::Remove, &[&web]).await;
    host.say(PodOp::Add, &[]).await;
    host.settle().await;
    assert!(host.runtime.pods().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_dies_while_a_pod_is_removed_finishes_the_removal() {
    let mut host = Host::new().await;
    host.runtime.on_signal(OnSignal::Ignore);
    let web = pod("web", ONE);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    host.say(PodOp::Remove, &[&web]).await;
    host.run(5).await;
    host.kill_daemon();
    host.start_daemon().await;
    host.run(40).await;
    assert!(host.runtime.pods().is_empty());
    assert!(!host.paths.pod(&web.uid).is_dir());
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_record_is_lost_keeps_running_if_it_is_still_wanted() {
    let mut host = Host::new().await;
    let web = pod("web", ONE);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    let before = host.observed(&web.uid);
    host.kill_daemon();
    std::fs::write(host.paths.pod_record(&web.uid), b"{\"vers").unwrap();
    host.start_daemon().await;
    host.run(10).await;
    host.say(PodOp::Add, &[&web]).await;
    host.run(10).await;
    assert_eq!(host.observed(&web.uid), before);
}

#[tokio::test(start_paused = true)]
async fn a_failed_clean_up_is_tried_again() {
    let mut host = Host::new().await;
    let web = pod("web", ONE);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    host.runtime.fail(FakeOperation::StopSandbox, "device or resource busy");
    host.runtime.fail(FakeOperation::RemovePod, "directory not empty");
    host.say(PodOp::Remove, &[&web]).await;
    host.run(10).await;
    assert!(host.runtime.pods().is_empty());
    assert!(host.statuses.get(&web.uid).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_lost_sandbox_that_cannot_be_cleared_away_is_tried_again_with_pauses_and_no_new_one_is_made_before() {
    let mut host = Host::new().await;
    let web = pod("web", ONE);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    for _ in 0..4 {
        host.runtime.fail(FakeOperation::StopSandbox, "device or resource busy");
    }
    host.runtime.take_calls();
    host.runtime.lose_sandbox(&web.uid);
    host.run(2).await;
    let calls = host.runtime.take_calls();
    let attempts = calls.iter().filter(|call| *call == "stop_sandbox").count();
    assert!((1..=3).contains(&attempts), "{calls:?}");
    assert!(!calls.iter().any(|call| call.contains("create_sandbox")), "{calls:?}");
    host.run(30).await;
    assert_eq!(host.running(&web.uid).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_is_stopped_for_another_reason_than_an_edit_is_asked_once_whatever_commits_come() {
    let mut host = Host::new().await;
    host.runtime.on_signal(OnSignal::Ignore);
    let spec = "{restartPolicy: Never, terminationGracePeriodSeconds: 20, \
                initContainers: [{name: side, image: a, restartPolicy: Always}], containers: [{name: web, image: a}]}";
    let web = pod("web", spec);
    host.say(PodOp::Add, &[&web]).await;
    host.settle().await;
    host.runtime.take_calls();
    host.runtime.exit(&web.uid, "web", 0);
    host.run(3).await;
    for revision in ["2", "3"] {
        let same = Arc::new(DesiredPod { revision: Revision(revision.into()), ..(*web).clone() });
        host.say(PodOp::Update, &[&same]).await;
        host.run(5).await;
    }
    let calls = host.runtime.take_calls();
    assert_eq!(calls.iter().filter(|call| call.starts_with("signal")).count(), 1, "{calls:?}");
    host.run(10).await;
    assert!(host.running(&web.uid).is_empty(), "the grace period did not begin anew");
}

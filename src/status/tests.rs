//! Whole statuses, modelled on the kubelet's tables: `Test_generateAPIPodStatus`, `TestGenerateContainersReadyCondition`,
//! `TestGeneratePodReadyCondition`, `TestGeneratePodInitializedCondition`.

use super::{PodResult, StatusInput, Unready, Waiting, pod_status, reason};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodStatus;
use podstead_container::{ContainerState, ContainerStatus, ObservedPod, ProcessUser, SandboxSpec, SandboxState, SandboxStatus};
use podstead_pod::resources::{pod_cgroup, qos_class};
use podstead_pod::security::pod_namespaces;
use podstead_pod::{
    ContainerId, ContainerName, DesiredPod, Origin, Pod, PodFullName, PodUid, Position, Revision, SourceId, containers,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_second(secs).unwrap()
}

/// A run of a container: `name:running`, `name:0` (ended with that code), `name:lost`, each with `/attempt` if it is not the first.
fn run(pod: &Pod, text: &str) -> ContainerStatus {
    let (text, attempt) = text.split_once('/').unwrap_or((text, "0"));
    let (name, state) = text.split_once(':').unwrap();
    let state = match state {
        "running" => ContainerState::Running { pid: 1, started_at: at(10) },
        "lost" => ContainerState::Unknown { started_at: Some(at(10)), found_at: at(30) },
        code => ContainerState::Exited {
            started_at: Some(at(10)),
            finished_at: at(20),
            exit_code: code.parse().unwrap(),
            signal: code.parse().ok().filter(|code: &i32| *code > 128).map(|code| code - 128),
            oom_killed: false,
            error: None,
            message: None,
        },
    };
    ContainerStatus {
        id: ContainerId::new(format!("{name}-{attempt}")),
        name: ContainerName::new(name),
        kind: containers::find(pod, name).unwrap().0,
        attempt: attempt.parse().unwrap(),
        sandbox_attempt: 0,
        hash: String::new(),
        image_ref: "web:1".into(),
        image_id: "sha256:11".into(),
        user: Some(ProcessUser { uid: 1000, gid: 2000, additional_gids: vec![3000, 2000] }),
        stop_signal: 15,
        created_at: at(9),
        log_path: "/log".into(),
        state,
    }
}

/// Inputs besides the runs.
struct Known {
    /// The attempt of the present sandbox; runs are of the first one.
    sandbox: Option<u32>,
    waiting: BTreeMap<ContainerName, Waiting>,
    starting: BTreeMap<ContainerName, Waiting>,
    result: Option<PodResult>,
    previous: Option<PodStatus>,
    sandbox_ready: bool,
    now: Timestamp,
    unready: BTreeMap<ContainerName, Unready>,
    shall_run: bool,
    surpassed: BTreeSet<ContainerId>,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            sandbox: None,
            waiting: BTreeMap::new(),
            starting: BTreeMap::new(),
            result: None,
            previous: None,
            sandbox_ready: true,
            now: at(100),
            unready: BTreeMap::new(),
            shall_run: false,
            surpassed: BTreeSet::new(),
        }
    }
}

fn sandbox(attempt: u32) -> SandboxStatus {
    let pod = Pod::default();
    let spec = SandboxSpec {
        uid: PodUid::new("uid-1"),
        full_name: PodFullName { name: "web-edge".into(), namespace: "shop".into() },
        attempt,
        hostname: "web".into(),
        namespaces: pod_namespaces(&pod),
        qos: qos_class(&pod),
        resources: pod_cgroup(&pod),
        sysctls: Vec::new(),
        own_users: false,
        first_host_id: None,
    };
    SandboxStatus { spec, state: SandboxState::Ready, created_at: at(8), shim_pid: Some(7), netns: None }
}

/// The status of a pod with this spec, of which these runs are seen.
fn status_with(spec: &str, runs: &[&str], known: &Known) -> PodStatus {
    let pod: Pod = serde_yaml::from_str(&format!("{{metadata: {{name: web-edge, namespace: shop}}, spec: {{{spec}}}}}")).unwrap();
    let observed = ObservedPod {
        uid: PodUid::new("uid-1"),
        sandbox: known.sandbox.map(sandbox),
        containers: runs.iter().map(|text| run(&pod, text)).collect(),
        given: BTreeMap::new(),
        plugged: BTreeMap::new(),
    };
    let desired = DesiredPod {
        uid: PodUid::new("uid-1"),
        full_name: PodFullName { name: "web-edge".into(), namespace: "shop".into() },
        source: SourceId::new("dir"),
        revision: Revision("1".into()),
        origin: Origin { file: "web.yaml".into(), position: Position { line: 1, column: 1 } },
        pod: Arc::new(pod),
    };
    pod_status(&StatusInput {
        desired: &desired,
        observed: Some(&observed),
        waiting: &known.waiting,
        starting: &known.starting,
        result: known.result.as_ref(),
        shall_run: known.shall_run,
        surpassed: &known.surpassed,
        unready: &known.unready,
        sandbox_ready: known.sandbox_ready,
        pod_ips: &["10.0.0.7".parse().unwrap()],
        host_ips: &["192.0.2.1".parse().unwrap()],
        plugged: None,
        resize: None,
        started_at: Some(at(5)),
        previous: known.previous.as_ref(),
        now: known.now,
    })
}

fn status(spec: &str, runs: &[&str]) -> PodStatus {
    status_with(spec, runs, &Known::default())
}

/// `phase; type=status reason message; ...` without conditions that are true and say nothing.
fn summary(status: &PodStatus) -> String {
    let mut words = vec![status.phase.clone().unwrap()];
    for condition in status.conditions.iter().flatten() {
        let said = [&condition.reason, &condition.message].into_iter().flatten().map(|text| format!(" {text}"));
        let said: String = said.collect();
        if condition.status != "True" || !said.is_empty() {
            words.push(format!("{}={}{said}", condition.type_, condition.status));
        }
    }
    words.join("; ")
}

const TWO: &str = "containers: [{name: a, image: x}, {name: b, image: x}]";
const WITH_INIT: &str = "initContainers: [{name: i, image: x}, {name: j, image: x}], containers: [{name: a, image: x}]";
const WITH_SIDECAR: &str = "initContainers: [{name: s, image: x, restartPolicy: Always}], containers: [{name: a, image: x}]";

#[test]
fn phase_and_conditions_follow_the_kubelets_tables() {
    let never = |spec: &str| format!("restartPolicy: Never, {spec}");
    for (spec, runs, expected) in [
        (
            TWO.to_owned(),
            &[][..],
            "Pending; Ready=False ContainersNotReady containers with unready status: [a b]; \
             ContainersReady=False ContainersNotReady containers with unready status: [a b]",
        ),
        (TWO.to_owned(), &["a:running", "b:running"], "Running"),
        (
            TWO.to_owned(),
            &["a:running", "b:1"],
            "Running; Ready=False ContainersNotReady containers with unready status: [b]; \
             ContainersReady=False ContainersNotReady containers with unready status: [b]",
        ),
        (
            never(TWO),
            &["a:0", "b:0"],
            "Succeeded; Initialized=True PodCompleted; Ready=False PodCompleted; ContainersReady=False PodCompleted",
        ),
        (never(TWO), &["a:0", "b:3"], "Failed; Ready=False PodFailed; ContainersReady=False PodFailed"),
        (
            WITH_INIT.to_owned(),
            &["i:0", "j:running"],
            "Pending; Initialized=False ContainersNotInitialized containers with incomplete status: [j]; \
             Ready=False ContainersNotReady containers with unready status: [a]; \
             ContainersReady=False ContainersNotReady containers with unready status: [a]",
        ),
        (WITH_INIT.to_owned(), &["i:0", "j:0", "a:running"], "Running"),
        // A running pod was initialised, even if its init containers are gone.
        (WITH_INIT.to_owned(), &["a:running"], "Running"),
        (
            never(WITH_INIT),
            &["i:1"],
            "Failed; Initialized=False ContainersNotInitialized containers with incomplete status: [i j]; \
             Ready=False PodFailed; ContainersReady=False PodFailed",
        ),
        (WITH_SIDECAR.to_owned(), &["s:running", "a:running"], "Running"),
        (
            WITH_SIDECAR.to_owned(),
            &["s:1", "a:running"],
            "Running; Ready=False ContainersNotReady containers with unready status: [s]; \
             ContainersReady=False ContainersNotReady containers with unready status: [s]",
        ),
        // Nothing here could set the condition.
        (format!("readinessGates: [{{conditionType: example.org/lb}}], {TWO}"), &["a:running", "b:running"], "Running"),
    ] {
        assert_eq!(summary(&status(&spec, runs)), expected, "{spec} {runs:?}");
    }
}

#[test]
fn conditions_come_in_order_and_keep_the_time_of_their_change() {
    let first = status(TWO, &["a:running", "b:1"]);
    let kinds: Vec<_> = first.conditions.iter().flatten().map(|condition| condition.type_.as_str()).collect();
    assert_eq!(kinds, ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]);
    let later = status_with(TWO, &["a:running", "b:running"], &Known { previous: Some(first), now: at(200), ..Known::default() });
    let changed = |kind: &str| {
        let condition = later.conditions.iter().flatten().find(|condition| condition.type_ == kind).unwrap();
        condition.last_transition_time.clone().unwrap().0
    };
    assert_eq!((changed("Initialized"), changed("Ready"), changed("ContainersReady")), (at(100), at(200), at(200)));
}

#[test]
fn a_pod_without_a_sandbox_is_not_ready_to_start_containers() {
    let status = status_with(TWO, &[], &Known { sandbox_ready: false, ..Known::default() });
    assert!(summary(&status).contains("PodReadyToStartContainers=False"));
}

#[test]
fn a_pod_that_is_evicted_for_its_own_limits_is_not_disrupted() {
    let result = PodResult {
        succeeded: false,
        reason: Some(reason::EVICTED.to_owned()),
        message: Some("Pod ephemeral local storage usage exceeds the total limit of containers 2Mi.".to_owned()),
    };
    let status = status_with(TWO, &["a:137", "b:137"], &Known { result: Some(result), ..Known::default() });
    assert_eq!(status.reason.as_deref(), Some("Evicted"));
    let kinds: Vec<_> = status.conditions.iter().flatten().map(|condition| condition.type_.as_str()).collect();
    assert_eq!(kinds, ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]);
}

#[test]
fn container_statuses_say_what_is_what_was_and_why() {
    let waiting = BTreeMap::from([(
        ContainerName::new("a"),
        Waiting { reason: reason::CRASH_LOOP_BACK_OFF, message: "back-off 10s".into() },
    )]);
    let status = status_with(TWO, &["a:1", "a:3/1", "b:lost"], &Known { waiting, ..Known::default() });
    let [a, b] = status.container_statuses.as_deref().unwrap() else { panic!("two containers") };
    let (state, last) = (a.state.clone().unwrap(), a.last_state.clone().unwrap());
    assert_eq!(state.waiting.unwrap().reason.as_deref(), Some("CrashLoopBackOff"));
    let terminated = last.terminated.unwrap();
    assert_eq!((terminated.exit_code, terminated.reason.as_deref()), (3, Some("Error")));
    assert_eq!(terminated.container_id.as_deref(), Some("podstead://a-1"));
    assert_eq!((a.restart_count, a.ready, a.started, a.image_id.as_str()), (1, false, Some(false), "sha256:11"));
    let lost = b.state.clone().unwrap().terminated.unwrap();
    assert_eq!((lost.exit_code, lost.reason.as_deref()), (255, Some("ContainerStatusUnknown")));
}

#[test]
fn a_container_status_has_user_and_mounts() {
    let spec = "containers: [{name: a, image: x, volumeMounts: [{name: v, mountPath: /v}, {name: r, mountPath: /r, readOnly: true},
        {name: d, mountPath: /d, readOnly: true, recursiveReadOnly: IfPossible}]}]";
    let status = status(spec, &["a:running"]);
    let a = &status.container_statuses.as_deref().unwrap()[0];
    let user = a.user.clone().unwrap().linux.unwrap();
    assert_eq!((user.uid, user.gid, user.supplemental_groups), (1000, 2000, Some(vec![2000, 3000])));
    assert_eq!(a.stop_signal.as_deref(), Some("SIGTERM"), "what it is asked to end by");
    let mounts: Vec<_> =
        a.volume_mounts.iter().flatten().map(|mount| (&*mount.name, mount.recursive_read_only.as_deref())).collect();
    assert_eq!(mounts, [("v", None), ("r", Some("Disabled")), ("d", Some("Enabled"))]);
}

/// After a reboot, for one: kubectl then shows `Init:0/2` and not how the containers of before were lost.
#[test]
fn d14_init_containers_that_run_in_a_new_sandbox_make_the_pod_pending_again() {
    let with =
        |sandbox, runs: &[&str]| summary(&status_with(WITH_INIT, runs, &Known { sandbox: Some(sandbox), ..Known::default() }));
    let before = ["i:0", "j:0", "a:lost"];
    assert!(with(0, &before).starts_with("Running; Ready=False"), "{}", with(0, &before));
    let again = with(1, &["i:running/1", "j:0", "a:lost"]);
    assert!(
        again
            .starts_with("Pending; Initialized=False ContainersNotInitialized containers with incomplete status: [i]; Ready=False"),
        "{again}"
    );
}

#[test]
fn addresses_class_and_start_are_those_of_the_pod() {
    let status = status("containers: [{name: a, image: x, resources: {requests: {cpu: 1}}}]", &["a:running"]);
    assert_eq!((status.pod_ip.as_deref(), status.host_ip.as_deref()), (Some("10.0.0.7"), Some("192.0.2.1")));
    assert_eq!(status.qos_class.as_deref(), Some("Burstable"));
    assert_eq!(status.start_time.unwrap().0, at(5));
}

/// The reasons for which containers wait, init containers first.
fn reasons(status: &PodStatus) -> Vec<String> {
    let all = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    all.map(|container| container.state.clone().unwrap().waiting.and_then(|waiting| waiting.reason).unwrap_or_default()).collect()
}

/// kubectl counts `Init:0/2` only while init containers, too, wait with this word.
#[test]
fn what_has_not_started_says_whether_the_pod_has_init_containers() {
    assert_eq!(reasons(&status(TWO, &["b:running"])), ["ContainerCreating", ""]);
    assert_eq!(reasons(&status(WITH_INIT, &[])), ["PodInitializing"; 3]);
    assert_eq!(reasons(&status(WITH_INIT, &["i:0", "j:0"])), ["", "", "PodInitializing"]);
    assert_eq!(reasons(&status(WITH_SIDECAR, &["s:running"])), ["", "PodInitializing"]);
    let because = |reason| Waiting { reason, message: "no such volume".into() };
    let waiting = BTreeMap::from([
        (ContainerName::new("i"), because(reason::CONTAINER_CREATING)),
        (ContainerName::new("a"), because(reason::ERR_IMAGE_PULL)),
    ]);
    let status = status_with(WITH_INIT, &[], &Known { waiting, ..Known::default() });
    assert_eq!(reasons(&status), ["PodInitializing", "PodInitializing", "ErrImagePull"]);
    let first = status.init_container_statuses.unwrap().remove(0).state.unwrap().waiting.unwrap();
    assert_eq!(first.message.as_deref(), Some("no such volume"));
}

#[test]
fn containers_are_listed_by_name_and_init_containers_in_their_order() {
    let spec = "initContainers: [{name: z, image: x}, {name: i, image: x}], containers: [{name: c, image: x}, {name: a, image: x}]";
    let status = status(spec, &["z:0", "i:0", "c:running", "a:1"]);
    let names = |list: &Option<Vec<k8s_openapi::api::core::v1::ContainerStatus>>| -> Vec<String> {
        list.iter().flatten().map(|container| container.name.clone()).collect()
    };
    assert_eq!(
        (names(&status.container_statuses), names(&status.init_container_statuses)),
        (vec!["a".into(), "c".into()], vec!["z".into(), "i".into()])
    );
    let ready: Vec<bool> = status.container_statuses.iter().flatten().map(|container| container.ready).collect();
    assert_eq!(ready, [false, true]);
}

#[test]
fn d8_a_container_whose_post_start_hook_is_not_done_does_not_count_as_running() {
    let starting = BTreeMap::from([(ContainerName::new("a"), Waiting { reason: "ContainerCreating", message: String::new() })]);
    let status = status_with(TWO, &["a:running", "b:running"], &Known { starting, ..Known::default() });
    let (a, b) = (&status.container_statuses.as_ref().unwrap()[0], &status.container_statuses.as_ref().unwrap()[1]);
    assert_eq!(a.state.as_ref().unwrap().waiting.as_ref().unwrap().reason.as_deref(), Some("ContainerCreating"));
    assert_eq!((a.ready, a.started, b.ready), (false, Some(false), true));
    assert!(a.container_id.is_some(), "it can be looked into");
    assert_eq!(status.phase.as_deref(), Some("Pending"));
}

/// `TestGenerateAllContainersRestartingCondition`, and what containers show meanwhile.
#[test]
fn d5_a_restart_of_all_containers_is_told_and_begins_with_a_pending_pod() {
    let spec = "restartPolicy: Never, initContainers: [{name: i, image: x}], containers: [{name: a, image: x, restartPolicy: Never, \
                restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}]}, {name: b, image: x}]";
    let seen = |runs: &[&str], surpassed: &[&str]| {
        let surpassed = surpassed.iter().map(|id| ContainerId::new(*id)).collect();
        let status = status_with(spec, runs, &Known { shall_run: true, surpassed, ..Known::default() });
        let condition = |kind: &str| {
            let condition = status.conditions.iter().flatten().find(|condition| condition.type_ == kind).unwrap();
            let words = [Some(condition.status.as_str()), condition.reason.as_deref(), condition.message.as_deref()];
            words.into_iter().flatten().collect::<Vec<_>>().join(" ")
        };
        let is_initialized = condition("Initialized").starts_with("True");
        let last = |at: usize| {
            let last = status.container_statuses.as_ref().unwrap()[at].last_state.clone().unwrap_or_default().terminated;
            last.map(|last| format!("{}({})", last.reason.unwrap(), last.exit_code)).unwrap_or_default()
        };
        let phase = status.phase.clone().unwrap();
        (
            phase,
            is_initialized,
            condition("AllContainersRestarting"),
            reasons(&status).join(","),
            format!("{} {}", last(0), last(1)),
        )
    };
    let words = |phase: &str, initialized, restarting: &str, waiting: &str, last: &str| {
        (phase.to_owned(), initialized, restarting.to_owned(), waiting.to_owned(), last.to_owned())
    };
    let all = ["i-0", "a-0", "b-0"];
    let restarting = "RestartingAllContainers";
    assert_eq!(seen(&["i:0", "a:running", "b:running"], &[]), words("Running", true, "False", ",,", " "));
    assert_eq!(
        seen(&["i:0", "a:42", "b:running"], &all),
        words(
            "Running",
            true,
            "True RestartAllContainersStarted container exited with restart policy rule",
            &format!("{restarting},{restarting},"),
            "Error(42) "
        )
    );
    let killed = "Error(42) RestartingAllContainers(137)";
    let waiting = format!("{restarting},{restarting},{restarting}");
    assert_eq!(seen(&["i:0", "a:42", "b:137"], &all), words("Pending", false, "False", &waiting, killed));
    let waiting = format!(",{restarting},{restarting}");
    assert_eq!(seen(&["i:0", "a:42", "b:137", "i:running/1"], &all), words("Pending", false, "False", &waiting, killed));
    let next = ["i:0", "a:42", "b:137", "i:0/1", "a:running/1", "b:running/1"];
    assert_eq!(seen(&next, &all), words("Running", true, "False", ",,", killed));
}

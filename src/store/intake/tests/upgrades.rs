//! Sets that an earlier version of podstead accepted, whose rules were fewer.

use super::*;
use crate::last_good::LastGood;
use podstead_config::{Config, HostFacts};

fn spec(name: &str, field: &str, container: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{{field} containers: [{{name: c, image: one{container}}}]}}}}"
    )
}

/// A pod that uses what `allow` decides on since there are records of what a set was judged by, and one that uses what it always decided on.
fn files() -> [(&'static str, String); 2] {
    [("new.yaml", spec("new", "", ", ports: [{containerPort: 1, hostPort: 81}]")), ("old.yaml", spec("old", "hostPID: true,", ""))]
}

/// A record of both pods that says it was judged by the configuration of a source with `allow`, or does not say.
async fn accepted_before(root: &Path, allow: Option<&str>) {
    let mut running = start(root);
    let files = files();
    running.artifact("here", &[(files[0].0, &files[0].1), (files[1].0, &files[1].1)]).await;
    assert_eq!(running.pods().await, ["new=one", "old=one"]);
    running.end().await;
    let last_good = LastGood::new(&paths(root), id());
    let mut state = last_good.load().unwrap();
    let policy = allow.map(|allow| podstead_settings::PolicyRecord::of(allowed(allow).as_deref(), &Requirements::default()));
    state.in_force.as_mut().unwrap().stamp.policy = policy;
    last_good.save(&state).unwrap();
}

#[tokio::test]
async fn an_upgrade_stops_no_pod_that_older_rules_allow() {
    let root = tempfile::tempdir().unwrap();
    accepted_before(root.path(), None).await;
    for _ in 0..2 {
        let mut running = start_with(root.path(), "{}");
        assert_eq!(running.pods().await, ["new=one"], "what older rules refuse goes, as it would have then");
        let told = running.status().await.problems;
        assert!(told.iter().any(|problem| problem.message.contains("host port 81")), "{told:?}");
        let files = files();
        running.artifact("here", &[(files[0].0, &files[0].1)]).await;
        assert_eq!(running.pods().await, ["new=one"], "it is refused, and its last good version stays");
        running.end().await;
    }
    let mut running = start_with(root.path(), "{namespaces: [default]}");
    assert_eq!(running.pods().await, [""; 0], "whoever changes the configuration has it judged anew");
}

#[tokio::test]
async fn rules_of_a_newer_version_stop_no_pod_under_the_same_configuration() {
    let root = tempfile::tempdir().unwrap();
    accepted_before(root.path(), Some("{}")).await;
    let mut running = start_with(root.path(), "{}");
    assert_eq!(running.pods().await, ["new=one", "old=one"]);
    assert_eq!(running.status().await.problems.len(), 2);
    running.end().await;
    let mut running = start_with(root.path(), "{hostPorts: [81]}");
    assert_eq!(running.pods().await, ["new=one"]);
    assert_eq!(running.status().await.problems.len(), 1);
}

#[tokio::test]
async fn a_set_that_another_configuration_accepts_anew_is_recorded_as_its_own() {
    let root = tempfile::tempdir().unwrap();
    accepted_before(root.path(), None).await;
    let files = files();
    let both = [(files[0].0, &*files[0].1), (files[1].0, &*files[1].1)];
    let all = "{hostPorts: [81], hostPID: true}";
    let mut running = start_with(root.path(), all);
    running.pods().await;
    running.artifact("here", &both).await;
    running.pods().await;
    running.end().await;
    let stamp = LastGood::new(&paths(root.path()), id()).load().unwrap().in_force.unwrap().stamp;
    assert!(stamp.policy.unwrap().is_of(allowed(all).as_deref(), &Requirements::default()));
    assert_eq!(stamp.number, 1, "it is the same revision");
}

#[tokio::test]
async fn a_level_that_is_configured_anew_counts_for_what_is_in_force() {
    let root = tempfile::tempdir().unwrap();
    accepted_before(root.path(), None).await;
    let text =
        "apiVersion: podstead.dev/v1alpha1\nkind: Config\nsources: [{name: a, directory: {path: /a}, podSecurity: baseline}]\n";
    let facts = HostFacts { host_name: "edge".into(), executable: None };
    let requirements = Config::parse(text.as_bytes(), &facts, Path::new("/c")).unwrap().sources.remove(0).requirements;
    let described = |requirements| IntakeSource {
        id: id(),
        kind: "directory".into(),
        location: "/etc/m".into(),
        history_limit: 3,
        allow: None,
        requirements,
        substitute: None,
        layers: Arc::default(),
        keeps_names: false,
    };
    let mut running = start(root.path());
    assert_eq!(running.pods().await, ["new=one", "old=one"]);
    let configured = running.configurator.clone();
    let configure = tokio::spawn(async move { configured.configure(vec![described(requirements)]).await });
    assert_eq!(running.pods().await, [""; 0]);
    configure.await.unwrap();
}

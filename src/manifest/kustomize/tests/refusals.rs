//! Fields and references that are refused.

use super::*;

#[test]
fn what_is_on_the_network_is_refused() {
    for path in ["https://example.com/a.yaml", "github.com/owner/repo//path?ref=v1", "git@github.com:owner/repo"] {
        let text = error("", &[("kustomization.yaml", &format!("resources:\n- {path}\n"))]);
        assert!(text.starts_with("kustomization.yaml:2:3: error[kustomization]:"), "{text}");
        assert!(text.contains("podstead builds only from the files of its source"), "{text}");
    }
}

#[test]
fn paths_outside_are_refused() {
    let files = [
        ("a/kustomization.yaml", "resources: [../../x]\n"),
        ("b/kustomization.yaml", "resources: [../c.yaml]\n"),
        ("c.yaml", CONFIG_MAP),
    ];
    let outside = error("a", &files);
    assert!(outside.contains("\"../../x\" is outside of the source"), "{outside}");
    assert!(outside.contains("set the source's path to a directory that contains it"), "{outside}");
    assert!(error("b", &files).contains("\"../c.yaml\" is not in the directory of the kustomization or below"));
    assert!(error("..", &files).contains("the directory is outside of the source"));
    let absolute = error("", &[("kustomization.yaml", "configMapGenerator: [{name: c, files: [/etc/passwd]}]\n")]);
    assert!(absolute.contains("\"/etc/passwd\" is absolute"), "{absolute}");
}

#[test]
fn cycles_are_refused_with_their_chain() {
    let files = [("a/kustomization.yaml", "resources: [../b]\n"), ("b/kustomization.yaml", "resources: [../a]\n")];
    assert!(
        error("a", &files)
            .contains("b/kustomization.yaml:1:13: error[kustomization]: the kustomizations form a cycle: a -> b -> a")
    );
    assert!(error("", &[("kustomization.yaml", "resources: [.]\n")]).contains("form a cycle: . -> ."));
}

#[test]
fn fields_that_run_something_are_refused() {
    for field in ["helmCharts: [{name: x}]", "validators: [v.yaml]"] {
        let text = error_of(field, CONFIG_MAP);
        assert!(text.contains("are not run") || text.contains("are not rendered"), "{text}");
    }
    assert_eq!(output_of("helmCharts: []\nvars:\n", CONFIG_MAP), output_of("", CONFIG_MAP));
}

#[test]
fn unknown_fields_are_refused_with_the_nearest() {
    let text = error_of("namePrefx: a\n", CONFIG_MAP);
    assert_eq!(text, "kustomization.yaml:2:1: error[unknown-field]: namePrefx: unknown field (did you mean \"namePrefix\"?)");
    let text = error_of("images:\n- name: a\n  tag: b\n", CONFIG_MAP);
    assert!(text.starts_with("kustomization.yaml:4:3: error[unknown-field]: images[0].tag: unknown field"), "{text}");
}

#[test]
fn wrong_types_are_refused_with_a_remedy() {
    let text = error_of("images: [{name: a, newTag: 1.10}]\n", CONFIG_MAP);
    assert!(text.contains("images[0].newTag: expected a string, found the number 1.1 (put quotes around it)"), "{text}");
    assert!(error_of("commonLabels: {a: yes}\n", CONFIG_MAP).contains("commonLabels.a: expected a string, found true"));
    assert!(error_of("resources: a\n", CONFIG_MAP).contains("resources: expected a list"));
}

#[test]
fn a_directory_has_one_kustomization_file() {
    let two = error("", &[("kustomization.yaml", "resources: [c]\n"), ("Kustomization", "resources: [c]\n")]);
    assert!(two.contains("has several kustomization files"), "{two}");
    assert!(error("a", &[("b/kustomization.yml", "")]).contains("the directory \"a\" has no kustomization.yaml"));
    assert!(error("b", &[("b/kustomization.yml", "kind: Kustomization\n")]).contains("the kustomization is empty"));
    assert!(output("", &[("kustomization.yml", "resources: [c]\n"), ("c", CONFIG_MAP)]).contains("name: c"));
}

#[test]
fn kinds_and_versions_are_those_of_upstream() {
    assert!(error_of("kind: Foo\n", CONFIG_MAP).contains("the kind must be Kustomization or Component"));
    assert!(error_of("apiVersion: v1\n", CONFIG_MAP).contains("write kustomize.config.k8s.io/v1beta1"));
    let files = [
        ("kustomization.yaml", "components: [base]\n"),
        ("base/kustomization.yaml", "resources: [c.yaml]\n"),
        ("base/c.yaml", CONFIG_MAP),
        ("other/kustomization.yaml", "resources: [../component]\n"),
        ("component/kustomization.yaml", "kind: Component\nnamePrefix: a\n"),
    ];
    assert!(error("", &files).contains("\"base\" is not a component"));
    assert!(error("other", &files).contains("\"component\" is a component"));
}

#[test]
fn objects_are_there_once() {
    let text = error_of("", &format!("{CONFIG_MAP}---\n{CONFIG_MAP}"));
    assert!(text.starts_with("r.yaml:5:1: error[duplicate-name]: there is another object ConfigMap.v1.[noGrp]/c.[noNs]"), "{text}");
    assert!(error_of("configMapGenerator: [{name: c}]\n", CONFIG_MAP).contains("write behavior: merge or behavior: replace"));
    assert!(error_of("configMapGenerator: [{name: d, behavior: merge}]\n", CONFIG_MAP).contains("there is no object"));
}

#[test]
fn files_that_hold_no_objects_are_refused() {
    assert!(error_of("", "a: b\n").contains("r.yaml:1:1: error[required]: kind: is required"));
    assert!(error_of("", "kind: Pod\nmetadata: {}\n").contains("metadata.name: is required"));
    assert!(error_of("", "- a\n").contains("expected an object of Kubernetes, found a list"));
    assert!(error("", &[("kustomization.yaml", "resources: [none.yaml]\n")]).contains("there is no file \"none.yaml\""));
}

#[test]
fn patches_that_fit_nothing_are_refused() {
    let patch = |text: &str| format!("patches:\n- patch: |-\n    {}\n", text.replace('\n', "\n    "));
    let missing = error_of(&patch("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d}"), CONFIG_MAP);
    assert!(missing.contains("there is no object ConfigMap.v1.[noGrp]/d.[noNs], which the patch is for"), "{missing}");
    assert!(error_of(&patch("- {op: remove, path: /data}"), CONFIG_MAP).contains("a JSON patch must have a target"));
    let target = "patches:\n- target: {kind: ConfigMap}\n  patch: '[{\"op\": \"remove\", \"path\": \"/data\"}]'\n";
    assert!(error_of(target, CONFIG_MAP).contains("/data does not exist, in ConfigMap.v1.[noGrp]/c.[noNs]"));
    let wrong = error_of(
        &patch("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: [a]"),
        &format!("{CONFIG_MAP}data: {{a: b}}\n"),
    );
    assert!(wrong.starts_with("kustomization.yaml:7:12: error[kustomization]: data: expected a mapping"), "{wrong}");
    assert!(error_of("patches: [{path: p, patch: q}]\n", CONFIG_MAP).contains("a patch has a path or a patch, not both"));
}

#[test]
fn replacements_that_fit_nothing_are_refused() {
    let replace = |source: &str, target: &str| format!("replacements: [{{source: {source}, targets: [{target}]}}]\n");
    let own = "{select: {kind: ConfigMap}, fieldPaths: [data.a]}";
    assert!(error_of(&replace("{kind: Pod}", own), CONFIG_MAP).contains("it selects no object"));
    assert!(error_of(&replace("{kind: ConfigMap, fieldPath: data.x}", own), CONFIG_MAP).contains("has no field \"data.x\""));
    assert!(error_of(&replace("{kind: ConfigMap}", own), CONFIG_MAP).contains("\"data.a\": the field does not exist"));
    assert!(error_of("replacements: [{targets: []}]\n", CONFIG_MAP).contains("must have a source and at least one target"));
    let expression = replace("{kind: ConfigMap}", "{select: {name: \"(\"}, fieldPaths: [data.a]}");
    assert!(error_of(&expression, CONFIG_MAP).contains("is not a regular expression"));
}

#[test]
fn builds_stay_within_their_limits() {
    let files = |pairs: &[(&str, &str)]| -> BTreeMap<String, Vec<u8>> {
        pairs.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
    };
    let two = format!("{CONFIG_MAP}---\n{}", CONFIG_MAP.replace("name: c", "name: d"));
    let source = files(&[
        ("kustomization.yaml", "resources: [a]\n"),
        ("a/kustomization.yaml", "resources: [r.yaml]\nconfigMapGenerator: [{name: g, files: [r.yaml]}]\n"),
        ("a/r.yaml", &two),
    ]);
    let fails = |limits: BuildLimits, message: &str| {
        let built = build(&source, "", &limits);
        assert!(built.problems.last().unwrap().message.contains(message), "{:?}", built.problems);
    };
    assert!(!build(&source, "", &BuildLimits::default()).has_failed());
    fails(BuildLimits { max_objects: 1, ..BuildLimits::default() }, "more than 1 objects");
    fails(BuildLimits { max_files: 2, ..BuildLimits::default() }, "reads more than 2 files");
    fails(BuildLimits { max_bytes: 100, ..BuildLimits::default() }, "reads more than 100 bytes");
    let labelled = files(&[("kustomization.yaml", "resources: [r.yaml]\nimages: [{name: a}, {name: b}]\n"), ("r.yaml", &two)]);
    let built = build(&labelled, "", &BuildLimits { max_visits: 3, ..BuildLimits::default() });
    assert!(built.problems[0].message.contains("too many changes of too many objects"), "{:?}", built.problems);
    fails(BuildLimits { max_depth: 1, ..BuildLimits::default() }, "more than 1 kustomizations are nested");
}

#[test]
fn copies_that_grow_are_refused() {
    let mut replacements = String::from("replacements:\n");
    for index in 0..40 {
        let source = format!("{{kind: Foo, name: f, fieldPath: spec.x{index}}}");
        let target =
            format!("{{select: {{kind: Foo}}, fieldPaths: [spec.x{0}.a, spec.x{0}.b], options: {{create: true}}}}", index + 1);
        replacements.push_str(&format!("- {{source: {source}, targets: [{target}]}}\n"));
    }
    let text = error_of(&replacements, "apiVersion: example.com/v1\nkind: Foo\nmetadata: {name: f}\nspec: {x0: {v: 1}}\n");
    assert!(text.contains("too large"), "{text}");
}

#[test]
fn blank_namespaces_of_subjects_are_refused() {
    let binding = |kind: &str, subject: &str| {
        let role = "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}";
        format!("apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata: {{name: b}}\n{role}\nsubjects:\n{subject}\n")
    };
    let account = "- kind: ServiceAccount\n  name: a\n  namespace:";
    let text = error_of("", &binding("RoleBinding", account));
    assert!(
        text.starts_with("r.yaml:8:3: error[kustomization]: subjects.namespace: the namespace of a subject is blank"),
        "{text}"
    );
    assert!(error_of("", &binding("RoleBinding", &format!("{account} 5"))).contains("is blank or no string"));
    output_of("", &binding("ClusterRoleBinding", account));
    output_of("", &binding("RoleBinding", &format!("{account} \"\"")));
    output_of("", &binding("RoleBinding", &account.replace("ServiceAccount", "User")));
}

#[test]
fn patches_without_objects_are_refused() {
    let files = |patches: &'static str| {
        [("kustomization.yaml", patches), ("r.yaml", CONFIG_MAP), ("p.yaml", "# nothing\n"), ("q.yaml", CONFIG_MAP)]
    };
    let text = error("", &files("resources: [r.yaml]\npatchesStrategicMerge: [p.yaml, \"# nothing\\n\"]\n"));
    assert!(
        text.starts_with("kustomization.yaml:2:25: error[kustomization]: patchesStrategicMerge: the patches are empty"),
        "{text}"
    );
    output("", &files("resources: [r.yaml]\npatchesStrategicMerge: [p.yaml, q.yaml]\n"));
}

#[test]
fn trees_that_become_too_deep_are_refused() {
    let deep = |steps: usize, sign: &str| vec!["a"; steps].join(sign);
    let labels = |steps: usize| format!("labels: [{{pairs: {{a: b}}, fields: [{{path: {}, create: true}}]}}]\n", deep(steps, "/"));
    output_of(&labels(64), CONFIG_MAP);
    for steps in [65, 100_000] {
        assert!(error_of(&labels(steps), CONFIG_MAP).contains("the path of a field has more than 64 steps"), "{steps}");
        let target = format!("{{select: {{kind: ConfigMap}}, options: {{create: true}}, fieldPaths: [{}]}}", deep(steps, "."));
        let text = error_of(&format!("replacements: [{{sourceValue: a, targets: [{target}]}}]\n"), CONFIG_MAP);
        assert!(text.contains("the path has more than 64 steps"), "{steps}");
        let values = format!(
            "kind: ValueAddTransformer\n  metadata: {{name: v}}\n  value: a\n  targets: [{{fieldPath: {}}}]\n",
            deep(steps, "/")
        );
        let text = error_of(&format!("transformers:\n- |\n  apiVersion: builtin\n  {values}"), CONFIG_MAP);
        assert!(text.contains("the path has more than 64 steps"), "{steps}");
    }
    // Each copies the last one to a place further down.
    let copies = |count: usize| {
        let copy = |index: usize| {
            let source = format!("{{kind: ConfigMap, fieldPath: x{index}}}");
            let path = format!("x{}.{}", index + 1, deep(50, "."));
            format!(
                "- {{source: {source}, targets: [{{select: {{kind: ConfigMap}}, options: {{create: true}}, fieldPaths: [{path}]}}]}}\n"
            )
        };
        format!("replacements:\n{}", (0..count).map(copy).collect::<String>())
    };
    let object = format!("{CONFIG_MAP}x0: {{a: b}}\n");
    output_of(&copies(4), &object);
    assert!(error_of(&copies(6), &object).contains("the object becomes too large"));
}

#[test]
fn long_paths_are_cut_at_the_beginning() {
    let directory = "clusters/production/europe/west/applications/payment-gateway/overlays/blue-green-canary";
    let kustomization = format!("{directory}/kustomization.yaml");
    let said = error(directory, &[(&kustomization, "resources: [web.yaml]\n")]);
    let expected = format!(
        "{kustomization}:1:13: error[kustomization]: there is no file \
         \".../europe/west/applications/payment-gateway/overlays/blue-green-canary/web.yaml\""
    );
    assert_eq!(said, expected);
}

#[test]
fn objects_must_not_get_one_name() {
    let two = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: b}\n";
    let patch =
        "patches:\n- target: {kind: Service}\n  patch: '[{\"op\": \"replace\", \"path\": \"/metadata/name\", \"value\": \"c\"}]'\n";
    let message = error_of(patch, two);
    assert!(message.contains("there is another object Service.v1.[noGrp]/c.[noNs]"), "{message}");
    let component = format!("apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n{patch}");
    let files = [
        ("kustomization.yaml", "resources: [r.yaml]\ncomponents: [c]\nnamePrefix: p-\n"),
        ("r.yaml", two),
        ("c/kustomization.yaml", &component),
    ];
    let message = error("", &files);
    assert!(message.starts_with("kustomization.yaml:2:"), "{message}");
    assert!(message.contains("there is another object Service.v1.[noGrp]/c.[noNs]"), "{message}");
    // One that is only for the build is removed by its name, as in kubectl.
    let local = two.replace("{name: b}", "{name: b, annotations: {config.kubernetes.io/local-config: 'true'}}");
    assert!(error_of(patch, &local).contains("there is another object"));
    assert!(output_of("", &local).ends_with("name: a\n"));
}

#[test]
fn objects_must_keep_a_name() {
    let replacement = "replacements:\n- source: {kind: ConfigMap, name: c, fieldPath: data.empty}\n  targets:\n  \
                       - select: {kind: Service}\n    fieldPaths: [metadata.name]\n";
    let resources = format!("{CONFIG_MAP}data: {{empty: ''}}\n---\napiVersion: v1\nkind: Service\nmetadata: {{name: s}}\n");
    let message = error_of(replacement, &resources);
    assert!(message.contains("metadata.name: is required"), "{message}");
}

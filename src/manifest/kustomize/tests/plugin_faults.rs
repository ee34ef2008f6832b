//! Configurations of generators and transformers that are refused, or that are read with a warning.

use super::*;

/// The error for a kustomization of one ConfigMap with a file of transformers.
fn error_of_transformers(text: &str) -> String {
    let files = [("kustomization.yaml", "resources: [r.yaml]\ntransformers: [t.yaml]\n"), ("r.yaml", CONFIG_MAP), ("t.yaml", text)];
    error("", &files)
}

fn transformer(kind: &str, rest: &str) -> String {
    format!("apiVersion: builtin\nkind: {kind}\nmetadata: {{name: t, namespace: n}}\n{rest}")
}

#[test]
fn plugins_are_refused_with_their_kind() {
    let text = error_of_transformers("apiVersion: team.example.com/v1\nkind: Sign\nmetadata: {name: t}\n");
    assert!(
        text.starts_with("t.yaml:1:1: error[kustomization]: transformers: \"Sign\" of \"team.example.com/v1\" is not built into"),
        "{text}"
    );
    let inline = "generators:\n- |-\n  apiVersion: v1\n  kind: Container\n  metadata:\n    name: g\n    annotations:\n      \
                  config.kubernetes.io/function: \"container: {image: x}\"\n";
    let text = error_of(inline, CONFIG_MAP);
    assert!(text.starts_with("kustomization.yaml:4:3: error[kustomization]: generators: \"Container\" of \"v1\""), "{text}");
    let text = error_of_transformers(&transformer("SortOrderTransformer", ""));
    assert!(text.contains("the built-in kind \"SortOrderTransformer\" is not supported (it must be Annotations"), "{text}");
    let text = error_of_transformers(&transformer("SecretGenerator", ""));
    assert!(text.contains("SecretGenerator cannot be listed here (list it under generators)"), "{text}");
    let text = error_of("generators: [\"{apiVersion: builtin, kind: HashTransformer, metadata: {name: h}}\"]\n", CONFIG_MAP);
    assert!(text.contains("HashTransformer cannot be listed here (list it under transformers)"), "{text}");
}

#[test]
fn entries_that_are_no_configuration_are_refused() {
    let text = error_of("transformers: [t.yaml]\n", CONFIG_MAP);
    assert!(text.starts_with("kustomization.yaml:2:16: error[kustomization]: there is no file \"t.yaml\""), "{text}");
    let text = error_of("transformers:\n- |\n  kind: [\n  x\n", CONFIG_MAP);
    assert!(text.starts_with("kustomization.yaml:") && text.contains("error[yaml-syntax]"), "{text}");
    assert!(error_of_transformers("apiVersion: builtin\nkind: HashTransformer\n").contains("metadata.name: is required"));
    let twice = format!("{0}---\n{0}", transformer("HashTransformer", ""));
    assert!(error_of_transformers(&twice).starts_with("t.yaml:5:1: error[duplicate-name]: there is another object"));
    let files = [
        ("a/kustomization.yaml", "resources: [r.yaml]\ntransformers: [../a]\n"),
        ("a/r.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"),
    ];
    assert!(error("a", &files).contains("the kustomizations form a cycle: a -> a"));
}

#[test]
fn faults_are_placed_in_the_configuration() {
    let mut wrong = Vec::new();
    for (kind, rest, expected) in [
        ("PrefixTransformer", "prefix: a-\n", "1:1: error[required]: fieldSpecs: is required"),
        ("SuffixTransformer", "suffix: [a]\n", "1:1: error[required]: fieldSpecs: is required"),
        ("LabelTransformer", "labels: {a: [b]}\n", "4:14: error[wrong-type]: labels.a: expected a string, found a list"),
        ("LabelTransformer", "labels: {a: b}\nfieldSpecs: [{path: \"\", create: true}]\n", "4:13: error[kustomization]"),
        ("ImageTagTransformer", "imageTag: {name: \"(\"}\n", "4:18: error[kustomization]: \"^(("),
        ("ImageTagTransformer", "", "1:1: error[required]: imageTag: is required"),
        (
            "NamespaceTransformer",
            "setRoleBindingSubjects: some\n",
            "4:25: error[kustomization]: setRoleBindingSubjects: unknown word \"some\"",
        ),
        (
            "ReplicaCountTransformer",
            "replica: {name: web, count: 1}\nfieldSpecs: [{path: spec/size, kind: Foo}]\n",
            "4:11: error[kustomization]: replicas: no object of the kinds in fieldSpecs is named \"web\"",
        ),
        ("PatchTransformer", "target: {kind: Pod}\n", "1:1: error[kustomization]: a patch has a path or a patch"),
        ("PatchStrategicMergeTransformer", "", "1:1: error[kustomization]: paths: a list of paths, or patches, is required"),
        ("PatchJson6902Transformer", "jsonOp: '[]'\n", "1:1: error[kustomization]: target: a JSON patch must have a target"),
        (
            "PatchJson6902Transformer",
            "target: {name: c}\njsonOp: |\n  - op: remove\n    path: /x\n",
            "6:5: error[kustomization]: [0]",
        ),
        ("ReplacementTransformer", "replacements: [{sourceValue: 1, targets: []}]\n", "4:30: error[wrong-type]"),
        ("ValueAddTransformer", "value: a\n", "1:1: error[required]: targets: at least one target is required"),
        ("ValueAddTransformer", "targets: [{fieldPath: data/a}]\n", "1:1: error[required]: value: is required at the root"),
        ("ValueAddTransformer", "value: a\ntargets: [{fieldPath: \"\"}]\n", "5:23: error[kustomization]: targets[0].fieldPath"),
        (
            "ValueAddTransformer",
            "value: a\ntargets: [{fieldPath: a/-1}]\n",
            "5:23: error[kustomization]: fieldPath: \"a/-1\": -1 is",
        ),
        (
            "ValueAddTransformer",
            "value: a\ntargets: [{fieldPath: data}, {fieldPath: a/*/b}]\n",
            "5:42: error[kustomization]: fieldPath: \"a/*/b\"",
        ),
    ] {
        let text = error_of_transformers(&transformer(kind, rest));
        if !text.starts_with(&format!("t.yaml:{expected}")) {
            wrong.push(format!("{kind} {rest}: {text}, not {expected}"));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn unknown_fields_of_configurations_are_warnings() {
    let files = [
        ("kustomization.yaml", "resources: [r.yaml]\ntransformers: [t.yaml]\ngenerators: [g.yaml]\n"),
        ("r.yaml", CONFIG_MAP),
        (
            "t.yaml",
            &*transformer("LabelTransformer", "lables: {}\nlabels: {a: 1}\nfieldSpecs: [{path: metadata/labels, create: true}]\n"),
        ),
        ("g.yaml", "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: g}\nenv: missing.env\n"),
    ];
    let built = built("", &files);
    let problems: Vec<String> = built.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "g.yaml:4:1: warning[kustomization]: env: it counts in the generators of a kustomization only, and is ignored here \
             (write envs: [FILE])",
            "t.yaml:4:1: warning[unknown-field]: lables: unknown field, which is ignored (did you mean \"labels\"?)",
        ]
    );
    assert!(built.to_yaml().contains("  labels:\n    a: \"1\"\n"), "{}", built.to_yaml());
    let text =
        error("", &[("kustomization.yaml", "generators: [g.yaml]\n"), ("g.yaml", &transformer("ConfigMapGenerator", "name: 1\n"))]);
    assert!(text.starts_with("g.yaml:4:7: error[wrong-type]: name: expected a string"), "{text}");
}

#[test]
fn transformers_stay_within_limits() {
    let prefix = |text: &str, index: usize| {
        let rest = format!("prefix: {text}\nfieldSpecs: [{{path: metadata/name}}]\n");
        transformer("PrefixTransformer", &rest).replace("name: t", &format!("name: t{index}"))
    };
    let many = |count: usize| (0..count).map(|index| prefix(&"a".repeat(200), index)).collect::<Vec<_>>().join("---\n");
    let files = |text: &str| {
        let files =
            [("kustomization.yaml", "resources: [r.yaml]\ntransformers: [t.yaml]\n"), ("r.yaml", CONFIG_MAP), ("t.yaml", text)];
        files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).into_iter().collect::<BTreeMap<_, _>>()
    };
    assert!(!build(&files(&many(10)), "", &BuildLimits::default()).has_failed());
    let built_many = build(&files(&many(40)), "", &BuildLimits::default());
    assert!(built_many.problems[0].message.contains("an object becomes too large"), "{:?}", built_many.problems);
    // A long text counts as many changes.
    let few = BuildLimits { max_visits: 40, ..BuildLimits::default() };
    assert!(!build(&files(&prefix("a", 0)), "", &few).has_failed());
    let built = build(&files(&prefix(&"a".repeat(10_000), 0)), "", &few);
    assert!(built.problems[0].message.contains("too many changes of too many objects"), "{:?}", built.problems);
}

#[test]
fn values_have_the_place_of_the_configuration() {
    let files = [
        (
            "kustomization.yaml",
            "resources: [r.yaml]\ntransformers:\n- |\n  apiVersion: builtin\n  kind: LabelTransformer\n  metadata: {name: t}\n  labels:\n    a: b\n  fieldSpecs: [{path: metadata/labels, create: true}]\n",
        ),
        ("r.yaml", CONFIG_MAP),
    ];
    let built = built("", &files);
    let origin = built.objects[0].origin_of(&["metadata", "labels", "a"]);
    assert_eq!((origin.file.as_str(), origin.position.line, origin.position.column), ("kustomization.yaml", 8, 8));
}

//! Bad input is answered with file, line, field and fix, within bounded time and memory, and leaves good objects alone.

use crate::support::{WEB, decode, keys, names, place, problem};
use podstead::{
    manifest::{Decoded, Problem},
    pod::Position,
};
use std::time::{Duration, Instant};

/// A pod whose container has `extra` as its last lines.
fn pod_with(extra: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers:\n  - name: web\n    image: nginx\n{extra}")
}

/// The only problem of a file that gives nothing.
fn refusal(text: impl AsRef<[u8]>) -> Problem {
    let decoded = decode("bad.yaml", text);
    assert_eq!(decoded.objects, []);
    assert_eq!(decoded.problems.len(), 1, "{:#?}", decoded.problems);
    assert!(!decoded.broken.is_empty());
    decoded.problems.into_iter().next().unwrap()
}

#[test]
fn field_mistakes_have_place_and_fix() {
    // The lines, the place of the problem, code, field below the container, and words of message and hint.
    let cases: &[(&str, &str, &str, &str, &str)] = &[
        ("    imagePullPolcy: Always\n", "imagePullPolcy", "unknown-field", "imagePullPolcy", "did you mean \"imagePullPolicy\"?"),
        ("    hostNetwork: true\n", "hostNetwork", "unknown-field", "hostNetwork", "belongs to spec"),
        ("    runAsUser: 5\n", "runAsUser", "unknown-field", "runAsUser", "belongs under securityContext"),
        ("    environment: []\n", "environment", "unknown-field", "environment", "`env`"),
        ("    env: [{name: A, value: 1}]\n", "1}", "wrong-type", "env[0].value", "quote it: \"1\""),
        ("    env: [{name: A, value: 0644}]\n", "0644", "wrong-type", "env[0].value", "quote it: \"0644\""),
        ("    env: [{name: A, value: no}]\n", "no}", "wrong-type", "env[0].value", "quote it: \"no\""),
        ("    env: [{value: a}]\n", "value: a", "required", "env[0].name", "is required"),
        ("    env: {A: b}\n", "env", "wrong-type", "env", "begin each item with `- `"),
        ("    command: sleep 10\n", "sleep", "wrong-type", "command", "[\"sleep 10\"]"),
        ("    args: [--port, 80]\n", "80]", "wrong-type", "args[1]", "quote it: \"80\""),
        ("    args:\n    - a: b\n", "a: b", "wrong-type", "args[0]", "needs quotes"),
        ("    args:\n    -\n    - b\n", "args", "wrong-type", "args[0]", "write \"\""),
        ("    tty: \"yes\"\n", "\"yes\"", "wrong-type", "tty", "write true without quotes"),
        ("    ports: [{containerPort: \"80\"}]\n", "\"80\"", "wrong-type", "ports[0].containerPort", "write 80 without quotes"),
        ("    ports: [{containerPort: 5000000000}]\n", "5000000000", "wrong-type", "ports[0].containerPort", "2147483647"),
        ("    ports: [{containerPort: 80.5}]\n", "80.5", "wrong-type", "ports[0].containerPort", "a whole number"),
        ("    securityContext: [{privileged: true}]\n", "securityContext", "wrong-type", "securityContext", "without `- `"),
        ("    securityContext: true\n", "true", "wrong-type", "securityContext", "indented deeper"),
        ("    resources: {limits: {memory: 64MB}}\n", "64MB", "invalid-value", "resources.limits[memory]", "64M or 64Mi"),
        ("    resources: {limits: {memory: [1]}}\n", "memory", "wrong-type", "resources.limits[memory]", "a quantity"),
        (
            "    resources: {limits: {cpu: 1}}\n    resources: {}\n",
            "resources: {}",
            "duplicate-key",
            "resources",
            "first in line 9",
        ),
        ("    workingDir: !env HOME\n", "HOME", "unsupported-yaml", "workingDir", "the tag !env"),
        (
            "    livenessProbe: {httpGet: {port: [80]}}\n",
            "port",
            "wrong-type",
            "livenessProbe.httpGet.port",
            "a whole number or a string",
        ),
    ];
    for (extra, at, code, field, words) in cases {
        let text = pod_with(extra);
        let found = refusal(&text);
        let shown = found.to_string();
        assert_eq!((found.code.as_str(), found.field), (*code, format!("spec.containers[0].{field}")), "{shown}");
        let offset = text.len() - extra.len() + extra.find(at).unwrap();
        assert_eq!(found.position, Some(place(&text, offset)), "{shown}");
        assert!(shown.contains(words), "{shown} does not say {words}");
        assert!(shown.starts_with("bad.yaml:"));
        assert_eq!(found.object.unwrap().name, "web");
    }
}

#[test]
fn mistakes_of_all_documents_are_told_together() {
    let text = format!(
        "{}---\n{}---\n{WEB}",
        pod_with("    a: 1\n    b: 2\n"),
        pod_with("    tty: 1\n").replace("name: web\nspec", "name: two\nspec")
    );
    let decoded = decode("bad.yaml", &text);
    let fields: Vec<_> = decoded.problems.iter().map(|problem| problem.field.rsplit('.').next().unwrap()).collect();
    assert_eq!(fields, ["a", "b", "tty", "name"], "the third pod repeats the name of the first");
    assert_eq!(keys(&decoded.broken), ["web", "two", "web"]);
}

#[test]
fn unsupported_object_is_answered_with_alternatives() {
    let cases = [
        (
            "apiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {name: a}\nspec: {selector: {}, template: {}}\n",
            "\"extensions/v1beta1\" is not the version of a Deployment",
            "write apps/v1",
        ),
        (
            "apiVersion: batch/v1beta1\nkind: CronJob\nmetadata: {name: a}\nspec: {schedule: '@daily', jobTemplate: {}}\n",
            "\"batch/v1beta1\" is not the version of a CronJob",
            "write batch/v1",
        ),
        ("apiVersion: apps/v1\nkind: Deploymnt\n", "the kind \"Deploymnt\" is not supported", "did you mean \"Deployment\"?"),
        ("apiVersion: v1\nkind: Servce\n", "the kind \"Servce\" is not supported", "did you mean \"Service\"?"),
        ("apiVersion: v1\nkind: pod\n", "the kind \"pod\"", "did you mean \"Pod\"?"),
        ("apiVersion: v1\nkind: Widget\n", "the kind \"Widget\"", "podstead reads Pods, workloads such as Deployment"),
        ("apiVersion: podstead.dev/v1alpha1\nkind: Ptch\n", "the kind \"Ptch\"", ""),
        ("kind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n", "apiVersion: is required", "apiVersion: v1"),
        ("apiVersion: v1\nmetadata: {name: a}\n", "kind: is required", "such as Pod or Deployment"),
        (
            "apiVersion: v1beta1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n",
            "\"v1beta1\" is not the version of a Pod",
            "write v1",
        ),
        (
            "apiVersion: 1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n",
            "expected a string, found the number 1",
            "quote it",
        ),
        ("services: {web: {image: nginx}}\n", "neither apiVersion nor kind", "podstead import compose"),
        ("services: [web]\n", "neither apiVersion nor kind", "kind: Pod"),
        ("- a\n- b\n", "not a Kubernetes object", "keep other files out"),
        ("just text\n", "not a Kubernetes object", "keep other files out"),
        ("apiVersion: v1\nkind: Pod\nspec: {containers: []}\n", "metadata: is required", ""),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\nspec: {containers: []}\n",
            "metadata.name: is required",
            "generateName is not supported",
        ),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", "spec: is required", "spec.containers"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\n", "spec.containers: is required", ""),
        ("apiVersion: v1\nkind: PodList\nitem: []\n", "item: unknown field", "did you mean \"items\"?"),
        ("apiVersion: v1\nkind: List\nitems: {}\n", "items: expected a list", "items: []"),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {p: \"pass!\"}\n", "data[p]: not base64", "stringData"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a, creationTimestamp: today}\nspec: {containers: []}\n",
            "is not a time",
            "2006-01-02T15:04:05Z",
        ),
    ];
    for (text, message, hint) in cases {
        let decoded = decode("bad.yaml", text);
        let shown: Vec<String> = decoded.problems.iter().map(ToString::to_string).collect();
        assert!(shown.iter().any(|shown| shown.contains(message) && shown.contains(hint)), "{text:?}: {shown:?}");
        assert_eq!((decoded.objects.len(), decoded.broken.len()), (0, 1), "{text:?}");
        assert!(decoded.problems.iter().all(|problem| problem.position.is_some()));
        // A misspelt `items` is also missing.
        let expected = if text.contains("item:") { 2 } else { 1 };
        assert_eq!(decoded.problems.len(), expected, "{shown:?}");
    }
}

#[test]
fn syntax_error_leaves_documents_around_it() {
    for broken in ["a: \"b\n", "a: [1, 2\n", "a: b: c\n", "\tx: y\n", "a: *b\n", "a: 'x\n  y: |\n", "{\"a\": 1\n", "a: \u{1}\n"] {
        let text = format!("{WEB}---\n{broken}---\n{}", WEB.replace("name: web", "name: web3"));
        let decoded = decode("mixed.yaml", &text);
        assert_eq!(names(&decoded), ["web", "web3"], "{broken:?}: {:?}", decoded.problems);
        assert_eq!(decoded.broken, [None]);
        let line = decoded.problems[0].position.unwrap().line;
        let first = WEB.lines().count() as u32 + 1;
        assert!((first..=first + 2).contains(&line), "{broken:?}: line {line}");
    }
}

#[test]
fn truncated_file_gives_its_whole_documents() {
    let text = format!("{WEB}---\n{}", WEB.replace("name: web", "name: web2"));
    let cut = text.find("command: [sleep, \"10").unwrap();
    let second = text[cut + 1..].find("command: [sleep, \"10").unwrap() + cut + 1;
    let decoded = decode("cut.yaml", &text[..second + "command: [sleep, \"10".len()]);
    assert_eq!(names(&decoded), ["web"]);
    assert_eq!(decoded.broken, [None]);
    assert!(decoded.problems[0].hint.as_ref().unwrap().contains("cut off"), "{}", decoded.problems[0]);
}

#[test]
fn duplicate_name_is_told_with_both_lines() {
    let decoded = decode("twice.yaml", format!("{WEB}---\n{WEB}"));
    assert_eq!(names(&decoded), ["web"]);
    assert_eq!(decoded.broken, [], "the first one is good");
    let found = problem(&decoded, "duplicate-name");
    assert_eq!(found.position, Some(Position { line: WEB.lines().count() as u32 + 3, column: 1 }));
    assert!(found.message.contains("the first one is in line 2"), "{found}");
    let other_namespace = WEB.replace("name: web\n", "name: web\n  namespace: prod\n");
    assert_eq!(names(&decode("two.yaml", format!("{WEB}---\n{other_namespace}"))), ["web", "web"]);
}

#[test]
fn bad_item_of_list_leaves_others() {
    let item =
        |name: &str, image: &str| format!("- metadata: {{name: {name}}}\n  spec: {{containers: [{{name: a, image: {image}}}]}}\n");
    let text = format!("apiVersion: v1\nkind: PodList\nitems:\n{}{}{}- 5\n", item("a", "x"), item("b", "[y]"), item("c", "z"));
    let decoded = decode("list.yaml", &text);
    assert_eq!(names(&decoded), ["a", "c"]);
    assert_eq!(keys(&decoded.broken), ["b", "?"]);
    let shown: Vec<_> = decoded.problems.iter().map(ToString::to_string).collect();
    assert!(
        shown[0]
            .starts_with("list.yaml:7:33: error[wrong-type]: items[1].spec.containers[0].image: expected a string, found a list"),
        "{}",
        shown[0]
    );
    assert!(shown[1].starts_with("list.yaml:10:3: error[not-an-object]: items[3]: "), "{}", shown[1]);
    let typed = decode("list.yaml", "apiVersion: v1\nkind: PodList\nitems: [{kind: Secret, metadata: {name: s}}]\n");
    assert!(typed.problems[0].message.contains("a Secret cannot be an item of a PodList"));
    let nested = decode("list.yaml", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: []}]\n");
    assert!(nested.problems[0].message.contains("a list cannot be an item of a list"));
}

#[test]
fn object_without_identity_has_no_key() {
    for metadata in ["{name: 5}", "{name: [a]}", "{name: a, name: b}", "{name: a, namespace: 5}", "x", "[]", "{}", "{name: \"\"}"] {
        let decoded = decode("a.yaml", format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {metadata}\n"));
        assert_eq!(decoded.broken, [None], "{metadata}");
        assert!(!decoded.problems.is_empty());
    }
    let known = decode("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, lables: {}}\n");
    assert_eq!(keys(&known.broken), ["a"]);
}

#[test]
fn binary_files_are_refused_by_name() {
    assert!(
        refusal(b"\x7fELF\x02\x01\x01\0\0\0".as_slice())
            .to_string()
            .starts_with("bad.yaml: error[binary-file]: the file is binary")
    );
    assert_eq!(refusal(b"\xff\xfea\0b\0".as_slice()).message, "the file is UTF-16 text");
    let text = WEB.replace("nginx", "ngin\u{e9}").into_bytes();
    let latin: Vec<u8> = text.iter().copied().filter(|byte| *byte != 0xc3).collect();
    let found = refusal(&latin);
    assert_eq!((found.code.as_str(), found.position), ("encoding", Some(Position { line: 10, column: 16 })));
    let offset = latin.iter().position(|byte| *byte == 0xa9).unwrap();
    assert_eq!(found.message, format!("not UTF-8: byte 0xa9 at offset {offset} of the file"));
}

#[test]
fn invalid_utf_8_leaves_other_documents() {
    let mut bytes = format!("{WEB}---\na: ").into_bytes();
    bytes.push(0xff);
    bytes.extend_from_slice(format!("\n---\n{}", WEB.replace("name: web", "name: web3")).as_bytes());
    assert_eq!(names(&decode("mixed.yaml", bytes)), ["web", "web3"]);
}

#[test]
fn problems_contain_no_control_characters() {
    let decoded =
        decode("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n\"\\e[31m\\n\": 1\ndata: {\"x\\ny\": 1}\n");
    assert_eq!(decoded.problems.len(), 2);
    assert!(decoded.problems.iter().all(|problem| !problem.to_string().chars().any(char::is_control)), "{:?}", decoded.problems);
}

#[test]
fn windows_ends_marks_and_tabs_are_harmless() {
    let windows = format!("\u{feff}{}", WEB.replace('\n', "\r\n"));
    let decoded = decode("windows.yaml", windows);
    assert_eq!(decoded.problems, []);
    assert_eq!(decoded.objects[0].positions, decode("web.yaml", WEB).objects[0].positions);
    assert_eq!(names(&decode("a.yaml", WEB.replace("spec:", "spec:\t# tab"))), ["web"]);
    for nothing in ["", "\n\n", "# comment\n", "---\n---\n", "--- # comment\n...\n", "null\n", "~", "\u{feff}"] {
        assert_eq!(decode("nothing.yaml", nothing), Decoded::default(), "{nothing:?}");
    }
}

/// Decodes within a bound that only runaway work exceeds.
fn quickly(text: impl AsRef<[u8]>) -> Decoded {
    let begin = Instant::now();
    let decoded = decode("big.yaml", text);
    let taken = begin.elapsed();
    assert!(taken < Duration::from_secs(60), "{taken:?}");
    decoded
}

#[test]
fn hostile_files_are_refused_in_time() {
    const MEGABYTE: usize = 1 << 20;
    let one = |decoded: Decoded| {
        assert_eq!((decoded.objects.len(), decoded.broken), (0, vec![None]));
        assert_eq!(decoded.problems.len(), 1);
        decoded.problems[0].code.clone()
    };
    assert_eq!(one(quickly(vec![b'#'; 20 * MEGABYTE])), "file-too-large");
    assert_eq!(one(quickly("[".repeat(5 * MEGABYTE))), "too-complex");
    assert_eq!(one(quickly("- ".repeat(5 * MEGABYTE))), "too-complex");
    assert_eq!(one(quickly(format!("a: [{}", "a,".repeat(2 * MEGABYTE)))), "too-complex");
    assert_eq!(one(quickly(format!("{{\"a\": [{}1]}}", "1,".repeat(2 * MEGABYTE)))), "too-complex");
    assert_eq!(one(quickly(format!("a: {}{}", "[".repeat(900), "]".repeat(900)))), "too-complex");
    assert_eq!(one(quickly("\"".repeat(MEGABYTE))), "yaml-syntax");
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..30 {
        let alias = format!("*a{}, ", level - 1);
        bomb.push_str(&format!("a{level}: &a{level} [{}x]\n", alias.repeat(9)));
    }
    assert_eq!(one(quickly(&bomb)), "too-complex");
    assert_eq!(one(quickly(format!("a: &a [{}]\nb: [{}]\n", "x,".repeat(7000), "*a,".repeat(3000)))), "too-complex");
    let bombs = quickly(format!("---\n{bomb}").repeat(50));
    assert_eq!((bombs.problems.len(), bombs.broken), (50, vec![None]), "each one is bounded by its own size");
}

#[test]
fn mistakes_are_limited_in_number() {
    let fields: String = (0..50_000).map(|number| format!("  field{number}: 1\n")).collect();
    let decoded = quickly(format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n{fields}"));
    assert_eq!(decoded.problems.len(), 1000);
    let decoded = quickly("---\na\n".repeat(50_000));
    assert_eq!(decoded.problems.len(), 1001);
    assert_eq!(decoded.problems[1000].code, "too-many-problems");
    assert_eq!(decoded.broken, [None]);
}

#[test]
fn five_thousand_documents_are_five_thousand_pods() {
    let pod = pod_with("");
    let text: String =
        (0..5000).map(|number| format!("{}---\n", pod.replace("  name: web\n", &format!("  name: web-{number}\n")))).collect();
    let decoded = quickly(&text);
    assert_eq!((decoded.objects.len(), decoded.problems, decoded.broken), (5000, vec![], vec![]));
    assert_eq!(decoded.objects[4999].origin.position.line, 4999 * 9 + 1);
}

#[test]
fn a_large_config_map_is_no_problem() {
    let lines = "    {\"a\": [1, 2, {\"b\": \"c\"}]},\n".repeat(100_000);
    let decoded = quickly(format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata:\n  x: |\n{lines}"));
    assert_eq!((decoded.objects.len(), decoded.problems), (1, vec![]));
}

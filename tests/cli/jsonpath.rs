//! `-o jsonpath` and `-o custom-columns`: the same templates as the real kubectl takes, on the same objects.

use crate::host::{Host, text};
use crate::kubectl::Kubectl;
use podstead::jsonpath::{Columns, Template};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Templates and what they make of [`thing`]; `None`: an error.
const TABLE: &[(&str, Option<&str>)] = &[
    ("{.kind}", Some("Thing")),
    ("{$.kind}", Some("Thing")),
    ("{ .kind }", Some("Thing")),
    ("name: {.metadata.name}.", Some("name: x.")),
    ("{.kind}{.metadata.name}", Some("Thingx")),
    ("{.metadata}", Some(r#"{"annotations":{"a":"\u003cb\u003e\u0026","example.com/n":"1"},"name":"x"}"#)),
    ("{.metadata.annotations.a}", Some("<b>&")),
    (r"{.metadata.annotations.example\.com/n}", Some("1")),
    (r"{.metadata.annotations['example\.com/n']}", Some("1")),
    ("{['metadata']['name']}", Some("x")),
    (r#"{["metadata"]}"#, None),
    ("{.data.k}|{.data.z}", Some("v\nw|é")),
    ("{.data.nil}|{.data.yes}|{.data.empty}|{.data.none}", Some("null|true|[]|{}")),
    (
        "{.data.half}|{.data.big}|{.data.whole}|{.data.tiny}|{.data.huge}",
        Some("1.5|1.2345675e+06|7|2.5e-05|1.2345678901234567e+19"),
    ),
    ("{.data.numbers}", Some("[1234567.5,0.000025,2.5e-7,1e+21]")),
    ("{.missing}", Some("")),
    ("{.missing.more[*].x}", Some("")),
    ("{.kind.x}", Some("")),
    ("{.list[0].n}", Some("a")),
    ("{.list[-1].n}", Some("c")),
    ("{.list[5]}", None),
    ("{.list[*].n}", Some("a b c")),
    ("{.list[:].n}", Some("a b c")),
    ("{.list[0:2].n}", Some("a b")),
    ("{.list[1:].n}", Some("b c")),
    ("{.list[-2:].n}", Some("b c")),
    ("{.list[0:3:2].n}", Some("a c")),
    ("{.list[0:9].n}", None),
    ("{.list[2:1].n}", None),
    ("{.list[1:1].n}", Some("")),
    ("{.list[0:3:0].n}", None),
    ("{.list[0,2].n}", Some("a c")),
    ("{.list[0, -1].n}", Some("a c")),
    ("{.list[x]}", None),
    ("{.list.*.n}", Some("a b c")),
    ("{.metadata['name','annotations.a']}", Some("x <b>&")),
    ("{.list[0]['n','v']}", Some("a 1")),
    ("{.kind[0]}", None),
    ("{.metadata[*]}", None),
    ("{.data.z.*}", Some("195 169")),
    ("{..n}", Some("a b c")),
    ("{.list..v}", Some("1 2")),
    ("{..list[0].n}", Some("a")),
    ("{....n}", None),
    ("{.list[?(@.v>1)].n}", Some("b")),
    ("{.list[?(@.v >= 1)].n}", Some("a b")),
    ("{.list[?(@.v<2)].n}", Some("a")),
    ("{.list[?(@.v <= 2)].n}", Some("a b")),
    ("{.list[?(@.v==2)].n}", Some("b")),
    ("{.list[?(@.v!=2)].n}", Some("a")),
    (r#"{.list[?(@.n=="b")].v}"#, Some("2")),
    ("{.list[?(@.n=='b')].v}", Some("2")),
    (r#"{.list[?(@.n!="b")].n}"#, Some("a c")),
    (r#"{.list[?(@.n>"a")].n}"#, Some("b c")),
    ("{.list[?(@.v)].n}", Some("a b")),
    ("{.list[?(@.nope)].n}", Some("")),
    ("{.list[?(@.n[5])].n}", Some("a b c")),
    ("{.list[?(@.nope[5])].n}", Some("")),
    ("{.list[?(@.ok==true)].n}", Some("c")),
    ("{.list[?(@.ok<true)].n}", None),
    (r#"{.list[?(@.v=="2")].n}"#, None),
    ("{.list[?(@.v=<2)].n}", None),
    ("{.list[?(@.v==1.0)].n}", None),
    (r#"{.list[?(@.n==")")].n}"#, Some("")),
    (r#"{.list[?(@.t.u=="deep")].n}"#, Some("c")),
    ("{.metadata[?(@.a)]}", None),
    ("{range .list[*]}{.n}={.v}{\"\\n\"}{end}", Some("a=1\nb=2\nc=\n")),
    ("{range .list[*]}{.}{end}", Some("")),
    ("{range .list[*]}[{.n}]{end} of {.kind}", Some("[a][b][c] of Thing")),
    ("{range .missing[*]}{.n}{end}z", Some("z")),
    ("{range .list[*]}{.n}:{range .w[*]}{@},{end};{end}", Some("a:1,2,;b:;c:;")),
    ("{range .list[?(@.v)]}{@.n}{'\\t'}{end}", Some("a\tb\t")),
    ("{range .list[*]}{.n}", Some("abc")),
    ("{range}{.kind}{end}", Some("Thing")),
    ("{end}", None),
    ("{if}", None),
    (r#"{.kind "x"}"#, Some("x")),
    (r#"{"a\tb"}{'c\nd'}{"\""}"#, Some("a\tbc\nd\"")),
    (r"{'\x41\u00e9\101'}", Some("AéA")),
    (r#"{"\q"}"#, None),
    (r#"{"a}"#, None),
    ("{1}{-2}{2.50}{true}", Some("1-22.5true")),
    ("{1.2.3}", None),
    ("{.kind", None),
    ("{.list[0", None),
    ("{.list[?(@.n]}", None),
    ("{%}", None),
    ("}{.kind}}", Some("}Thing}")),
    ("plain", Some("plain")),
];

fn thing() -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": "x", "annotations": {"a": "<b>&", "example.com/n": "1"}},
        "data": {
            "k": "v\nw", "z": "é", "nil": null, "yes": true, "empty": [], "none": {}, "half": 1.5, "big": 1_234_567.5, "whole": 7,
            "tiny": 0.000025, "huge": 12_345_678_901_234_567_890_u64, "numbers": [1_234_567.5, 0.000025, 2.5e-7, 1e21],
        },
        "list": [{"n": "a", "v": 1, "w": [1, 2]}, {"n": "b", "v": 2}, {"n": "c", "ok": true, "t": {"u": "deep"}}],
    })
}

fn rendered(template: &str) -> Option<String> {
    Template::parse(template).ok()?.render(&thing()).ok()
}

#[test]
fn templates_give_what_the_table_says() {
    let thing = thing();
    for (template, expected) in TABLE {
        let found = Template::parse(template).map_err(|error| error.to_string());
        let found = found.and_then(|template| template.render(&thing).map_err(|error| error.to_string()));
        assert_eq!(found.as_deref().ok(), *expected, "{template}: {found:?}");
    }
}

/// The real kubectl renders a local file: there is no host in it.
#[test]
fn kubectl_gives_the_same() {
    let host = Host::start();
    let file = host.root.path().join("thing.json");
    std::fs::write(&file, thing().to_string()).unwrap();
    let file = file.display().to_string();
    // 1.20 writes null in another way.
    let Some(kubectl) = Kubectl::all(&host).into_iter().find(|kubectl| kubectl.minor() > 20) else { return };
    let render = |template: &str| {
        let form = format!("jsonpath={template}");
        kubectl.output(&["patch", "--local", "-f", &file, "--type=merge", "-p", "{}", "-o", &form])
    };
    // In one go, since kubectl takes its time to start; a range without an end would go on into the next.
    let is_open = |template: &str| template.matches("{range").count() > template.matches("{end}").count();
    let (open, closed): (Vec<_>, Vec<_>) = TABLE.iter().filter(|(_, expected)| expected.is_some()).partition(|row| is_open(row.0));
    let joined: Vec<&str> = closed.iter().map(|(template, _)| *template).collect();
    let output = render(&joined.join("\u{1e}"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = text(&output.stdout);
    let found: Vec<&str> = output.split('\u{1e}').collect();
    assert_eq!(found.len(), closed.len());
    for ((template, expected), found) in closed.into_iter().zip(found) {
        assert_eq!(Some(found), expected, "{template}");
    }
    for (template, expected) in open {
        assert_eq!(Some(text(&render(template).stdout).as_str()), expected, "{template}");
    }
    for (template, _) in TABLE.iter().filter(|(_, expected)| expected.is_none()) {
        assert!(!render(template).status.success(), "{template}");
    }
}

#[test]
fn paths_may_stand_without_braces() {
    assert_eq!(rendered(".list[*].n").as_deref(), Some("a b c"));
    assert_eq!(rendered("$.kind").as_deref(), Some("Thing"));
}

#[test]
fn templates_and_outputs_have_limits() {
    assert!(rendered("").is_none());
    assert!(Template::parse(&"x".repeat(64 << 10)).is_ok());
    assert!(Template::parse(&"x".repeat((64 << 10) + 1)).is_err());
    assert!(rendered(&"{range .list[*]}".repeat(33)).is_none());
    let deep = format!("{}x{}", "[?('".repeat(20_000), "')]".repeat(20));
    assert!(Template::parse(&format!("{{{deep}}}")).is_err());
    // Numbers, since millions of objects would take gigabytes.
    let many = vec![json!(0); 2100];
    let squared = Template::parse("{range .list[*]}{range .again[*]}{@}{end}{end}").unwrap();
    let value = json!({"list": vec![json!({"again": many}); 2100]});
    let error = squared.render(&value).unwrap_err();
    assert!(error.to_string().contains("selects more than"), "{error}");
}

/// Pieces of templates.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "?(",
    ")",
    "@",
    "$",
    ".",
    "..",
    "*",
    ",",
    ":",
    "0",
    "-1",
    "99999999999999999999",
    "'",
    "\"",
    "\\",
    "n",
    "list",
    "é",
    "range",
    "end",
    "==",
    "!=",
    "<",
    "=",
    "!",
    " ",
    "\n",
    "{range .list[*]}",
    "{end}",
    "[?(@.v==1)]",
    "['n','v']",
    "[-9:9:2]",
    "true",
    "\\x4",
];

proptest! {
    #[test]
    fn no_template_makes_it_panic(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..24)) {
        let text = pieces.concat();
        // Either is an answer.
        rendered(&text);
        if let Ok(columns) = Columns::parse(&text) {
            columns.row(&thing()).ok();
        }
    }
}

#[test]
fn columns_are_read_as_by_kubectl() {
    for (columns, reason) in [
        ("", "no columns"),
        ("NAME", "expected HEADING:PATH"),
        ("NAME:.a,", "expected HEADING:PATH"),
        ("NAME:{.a}{.b}", "expected a path"),
        ("NAME:.a[x]", "\".a[x]\""),
    ] {
        let error = Columns::parse(columns).unwrap_err().to_string();
        assert!(error.contains(reason), "{columns}: {error}");
    }
    let cells = |columns: &str| Columns::parse(columns).unwrap().row(&thing()).unwrap();
    assert_eq!(
        cells("A:.metadata.annotations,B:list[*].n,C:{.list[0].w},D:{kind},E:.nope,F:.data.nil,G:"),
        ["map[a:<b>& example.com/n:1]", "a,b,c", "[1 2]", "Thing", "<none>", "<nil>", "<none>"]
    );
    for (file, reason) in [("A B\n", "a line of headings and a line of paths"), ("A B\n.a\n", "2 headings and 1 paths")] {
        assert!(Columns::parse_file(file).unwrap_err().to_string().contains(reason), "{file}");
    }
    assert_eq!(Columns::parse_file("KIND  NAME\n.kind .metadata.name\n").unwrap().row(&thing()).unwrap(), ["Thing", "x"]);
}

#[test]
fn get_prints_templates_as_kubectl_does() {
    let host = Host::start();
    host.publish_running("default", "web");
    host.publish_running("default", "db");
    let Some(kubectl) = Kubectl::find(&host) else { return };
    let (template, columns) = (host.root.path().join("template"), host.root.path().join("columns"));
    std::fs::write(&template, "{range .items[*]}{.metadata.name}\n{end}").unwrap();
    std::fs::write(&columns, "NAME IMAGE\n.metadata.name .spec.containers[*].image\n").unwrap();
    let (template, columns) =
        (format!("jsonpath-file={}", template.display()), format!("custom-columns-file={}", columns.display()));
    for arguments in [
        &["get", "pods", "-o", "jsonpath={.items[*].metadata.name}"][..],
        &["get", "pods", "-o", r#"jsonpath={range .items[*]}{.metadata.name}{"\t"}{.status.phase}{"\n"}{end}"#],
        &["get", "pods", "-o", "jsonpath={.items[?(@.metadata.name==\"db-edge\")].spec.containers[0].image}"],
        &["get", "pods", "web-edge", "-o", "jsonpath={.status.podIP}"],
        &["get", "pods", "-o", &template],
        &["get", "pods", "-o", "custom-columns=NAME:.metadata.name,IP:.status.podIP,NONE:.nope"],
        &["get", "pods", "--no-headers", "-o", "custom-columns=NAME:metadata.name"],
        &["get", "pods", "web-edge", "-o", "custom-columns=NAME:{.metadata.name},LABELS:.metadata.labels"],
        &["get", "pods", "-o", &columns],
        &["get", "pods", "-o", "name"],
    ] {
        assert_eq!(host.run(arguments), kubectl.run(arguments), "{arguments:?}");
    }
    let (code, error) = host.fail(&["get", "pods", "-o", "jsonpath={.items[9]}"]);
    assert!(code == 1 && error.contains("index 9 is out of bounds: the array has 2 elements"), "{code}: {error}");
    let (code, error) = host.fail(&["get", "pods", "-o", "jsonpath={.items"]);
    assert!(code == 2 && error.contains("a brace is not closed"), "{code}: {error}");
    let (code, error) = host.fail(&["get", "pods", "-o", "jsno"]);
    assert!(code == 2 && error.contains("'json'"), "{code}: {error}");
    let (code, error) = host.fail(&["get", "pods", "-o", "jsonpath-file=/nowhere"]);
    assert!(code == 2 && error.contains("open \"/nowhere\""), "{code}: {error}");
}

#[test]
fn states_are_documents_for_templates_too() {
    let host = Host::start();
    host.publish_source(None, None);
    host.publish_running("default", "web");
    assert_eq!(host.run(&["status", "-o", "jsonpath={.isWell} {.pods[*].name}"]), "true web-edge");
    assert_eq!(host.run(&["status", "-o", "custom-columns=POD:.name,IS:.status"]), "POD        IS\nweb-edge   Running\n");
    assert!(host.run(&["status", "-o", "yaml"]).contains("isWell: true\n"));
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(host.run(&["version", "-o", "jsonpath={.client} {.daemon}"]), format!("{version} {version}"));
    assert_eq!(host.run(&["version", "--client", "-o", "yaml"]), format!("client: {version}\n"));
    assert_eq!(host.run_any(&["doctor", "clock", "-o", "jsonpath={.kind}"]), "HostReport");
    assert_eq!(host.run(&["get", "sources", "manifests", "-o", "jsonpath={.metadata.name}"]), "manifests");
    assert!(host.run(&["history", "manifests", "-o", "jsonpath={.revisions[0].number}"]).parse::<u64>().is_ok());
    assert!(host.run(&["get", "images", "-o", "custom-columns=DIGEST:.digest"]).starts_with("DIGEST\n"));
    assert_eq!(host.run(&["top", "node", "-o", "jsonpath={.kind}"]), "NodeUsage");
}

//! The golden table of `$(VAR)` (kubelet rule D20), in the arguments and the environment of a process.

use crate::support::TestHost;
use std::fs;

/// Pairs of what is written and what the process sees.
const TABLE: [(&str, &str); 34] = [
    ("", ""),
    ("plain", "plain"),
    ("$(VAR_A)", "A"),
    ("___$(VAR_B)___", "___B___"),
    ("___$(VAR_C)", "___C"),
    ("$(VAR_A)___", "A___"),
    ("$(VAR_A)_$(VAR_B)", "A_B"),
    ("$(VAR_A)$(VAR_B)$(VAR_C)", "ABC"),
    ("$(VAR_A)_$(VAR_A)", "A_A"),
    ("$(VAR_REF)", "$(VAR_A)"),
    ("%%$(VAR_REF)%%", "%%$(VAR_A)%%"),
    ("$(VAR_EMPTY)", ""),
    ("foo$(VAR_EMPTY)bar", "foobar"),
    ("foo\\\\$(VAR_A)bar", "foo\\\\Abar"),
    ("$$(VAR_A)", "$(VAR_A)"),
    ("foo$$(VAR_A)bar", "foo$(VAR_A)bar"),
    ("$$$(VAR_A)", "$A"),
    ("$$$$(VAR_A)", "$$(VAR_A)"),
    ("$$$$$$$(VAR_A)", "$$$A"),
    ("$VAR_A)", "$VAR_A)"),
    ("${VAR_A}", "${VAR_A}"),
    ("$VAR_A", "$VAR_A"),
    ("$$VAR_A", "$VAR_A"),
    ("foo$(VAR_Awhoops!", "foo$(VAR_Awhoops!"),
    ("f00__(VAR_A)__", "f00__(VAR_A)__"),
    ("$?_boo_$!", "$?_boo_$!"),
    ("$(VAR_DNE)", "$(VAR_DNE)"),
    ("$$(VAR_DNE)", "$(VAR_DNE)"),
    ("$()", "$()"),
    ("$(", "$("),
    ("$)", "$)"),
    ("$", "$"),
    ("$$", "$"),
    ("foo_bar_$(", "foo_bar_$("),
];

/// Single quotes are safe: the table has none.
fn quoted(text: &str) -> String {
    format!("'{text}'")
}

#[test]
fn d20_expansion_follows_the_golden_table() {
    let host = TestHost::start();
    let args: Vec<String> = TABLE.iter().map(|(written, _)| quoted(written)).collect();
    let env = |(at, (written, _)): (usize, &(&str, &str))| format!("{{name: E{at:02}, value: {}}}", quoted(written));
    let entries: Vec<String> = TABLE.iter().enumerate().map(env).collect();
    let manifest = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: expand}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    - name: c\n      \
         image: localhost/busybox:1\n      command: [/bin/sh, -c, 'echo run; sleep 1000000 & wait', c]\n      args: [{}]\n      \
         env: [{{name: VAR_A, value: A}}, {{name: VAR_B, value: B}}, {{name: VAR_C, value: C}}, {{name: VAR_REF, value: '$$(VAR_A)'}}, \
         {{name: VAR_EMPTY, value: ''}}, {}]\n",
        args.join(", "),
        entries.join(", ")
    );
    host.write_manifest("expand.yaml", &manifest);
    let pid = host.container_pid(&host.wait_running("expand"), "c");
    let read = |file: &str| String::from_utf8(fs::read(format!("/proc/{pid}/{file}")).unwrap()).unwrap();
    let line = read("cmdline");
    let found: Vec<&str> = line.strip_suffix('\0').unwrap().split('\0').skip(4).collect();
    assert_eq!(found.len(), TABLE.len(), "{line:?}");
    let environment = read("environ");
    for (at, (written, expected)) in TABLE.iter().enumerate() {
        assert_eq!(found[at], *expected, "the argument {written:?}");
        let entry = format!("E{at:02}={expected}");
        assert!(environment.split('\0').any(|line| line == entry), "{entry:?} is not in {environment:?}");
    }
}

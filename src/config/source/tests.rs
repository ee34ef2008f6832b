//! Sources as people write them, right and wrong.

use crate::{Config, HostFacts, SourcePlace};
use podstead_settings::ConfigError;
use podstead_source::credentials::{AuthFiles, Username};
use podstead_source::git::Follow;
use podstead_source::oci::OciFollow;
use std::path::Path;

fn load(sources: &str) -> Result<Config, ConfigError> {
    let text = format!("apiVersion: podstead.dev/v1alpha1\nkind: Config\nsources:\n{sources}");
    let facts = HostFacts { host_name: "edge".into(), executable: None };
    Config::parse(text.as_bytes(), &facts, Path::new("/etc/podstead/config.yaml"))
}

fn place(source: &str) -> SourcePlace {
    load(source).unwrap().sources.remove(0).place
}

const EVERYTHING: &str = "
- name: web
  http:
    url: https://config.lan/edge.yaml?site=7
    intervalSeconds: 30
    timeoutSeconds: 5
    auth: {usernameFile: /run/user, passwordFile: /run/password}
    headers: {X-Site: a, X-Tag: [b, c]}
    headersFile: /run/headers
    proxy: http://proxy.lan:3128
    proxyAuth: {username: edge, passwordFile: /run/proxy}
    caFile: /etc/ca.pem
    clientCertFile: /etc/client.pem
    clientKeyFile: /etc/client.key
  requireSignature: {allowedSignersFile: /etc/signers}
  allowRollback: true
- name: repository
  git:
    url: https://git.lan/edge.git
    semver: '>=1.2'
    path: clusters/edge/
    auth: {tokenFile: /run/token}
  requireSignature: {allowedSignersFile: /etc/signers, namespace: deploy}
- {name: ssh, git: {url: 'git@git.lan:edge.git', commit: 0123456789ABCDEF0123456789abcdef01234567, ssh: {keyFile: /k, knownHostsFile: /h}}}
- {name: local, git: {url: /srv/edge.git, tag: v1}}
- name: artifact
  oci: {url: 'oci://registry.lan:5000/team/fleet', semver: '>=1.2', path: ./edge/, intervalSeconds: 30, timeoutSeconds: 5}
  requireSignature: {keys: [/etc/podstead/cosign.pub]}
  allowRollback: true
- {name: moving, oci: {url: 'oci://ghcr.io/org/fleet'}, layers: [base]}
- {name: pinned, oci: {url: 'oci://ghcr.io/org/fleet', digest: 'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'}}
- {name: plain, http: {url: 'http://config.lan/'}, revisionHistoryLimit: 9, allow: {hostNetwork: true, hostPaths: [{path: /srv, readOnly: true}], images: [registry.lan/]}, substitute: [NODE_NAME, SITE]}
";

#[test]
fn what_show_prints_of_all_kinds_is_read_back_as_the_same() {
    let config = load(EVERYTHING).unwrap();
    let shown = serde_yaml::to_string(&config.to_written()).unwrap();
    let facts = HostFacts { host_name: "other".into(), executable: None };
    assert_eq!(Config::parse(shown.as_bytes(), &facts, Path::new("/c")).unwrap(), config, "{shown}");
}

#[test]
fn a_keyring_is_read_back_or_names_the_build_that_can_read_it() {
    let text = "- {name: a, http: {url: 'http://h/'}, requireSignature: {openpgpKeyringFile: /k.asc, allowedSignersFile: /s}}";
    match (load(text), cfg!(feature = "openpgp")) {
        (Ok(config), true) => {
            let shown = serde_yaml::to_string(&config.to_written()).unwrap();
            let facts = HostFacts { host_name: "other".into(), executable: None };
            assert_eq!(Config::parse(shown.as_bytes(), &facts, Path::new("/c")).unwrap(), config, "{shown}");
            let required = config.sources[0].signature.clone().unwrap();
            assert_eq!(required.openpgp_keyring_file.as_deref(), Some(Path::new("/k.asc")));
        }
        (Err(error), false) => {
            let error = error.to_string();
            assert!(
                error.contains("requireSignature.openpgpKeyringFile: ") && error.contains("build it with --features openpgp"),
                "{error}"
            );
        }
        (loaded, _) => panic!("{loaded:?}"),
    }
}

#[test]
fn every_field_is_resolved() {
    let sources = load(EVERYTHING).unwrap().sources;
    let SourcePlace::Http(http) = &sources[0].place else { panic!() };
    assert_eq!((http.interval.as_secs(), http.timeout.as_secs()), (30, 5));
    assert_eq!(http.access.credentials.headers.len(), 3);
    assert!(matches!(&http.access.credentials.auth, Some(AuthFiles::Password { username: Username::File(_), .. })));
    assert_eq!(sources[0].signature.as_ref().unwrap().namespace, "podstead");
    assert!(sources[0].allow_rollback && !sources[1].allow_rollback);
    let SourcePlace::Git(git) = &sources[1].place else { panic!() };
    assert_eq!(git.path, "clusters/edge");
    assert_eq!(git.follow, Follow::Semver(">=1.2".parse().unwrap()));
    assert_eq!(sources[1].signature.as_ref().unwrap().namespace, "deploy");
    let SourcePlace::Git(git) = &sources[2].place else { panic!() };
    assert_eq!(git.follow, Follow::Commit("0123456789abcdef0123456789abcdef01234567".parse().unwrap()));
    let SourcePlace::Oci(oci) = &sources[4].place else { panic!() };
    assert_eq!((oci.url.to_string().as_str(), oci.path.as_str()), ("oci://registry.lan:5000/team/fleet", "edge"));
    assert_eq!((oci.interval.as_secs(), oci.timeout.as_secs()), (30, 5));
    assert_eq!(oci.keys, [Path::new("/etc/podstead/cosign.pub")]);
    assert!(matches!(&oci.follow, OciFollow::Semver(_)) && sources[4].signature.is_none());
    let SourcePlace::Oci(oci) = &sources[5].place else { panic!() };
    assert_eq!((&oci.follow, oci.interval.as_secs(), oci.timeout.as_secs()), (&OciFollow::Tag("latest".into()), 60, 60));
    let SourcePlace::Oci(oci) = &sources[6].place else { panic!() };
    assert!(matches!(oci.follow, OciFollow::Digest(_)));
    let SourcePlace::Http(plain) = &sources[7].place else { panic!() };
    assert_eq!((plain.interval.as_secs(), plain.timeout.as_secs()), (20, 10));
}

#[test]
fn a_certificate_file_may_hold_the_key() {
    let SourcePlace::Http(http) = place("- {name: a, http: {url: 'https://h/', clientCertFile: /both.pem}}") else { panic!() };
    assert_eq!(http.access.client_certificate, Some(("/both.pem".into(), "/both.pem".into())));
}

#[test]
fn every_mistake_names_its_line_and_its_field() {
    let http = |fields: &str| format!("- name: a\n  http:\n    url: https://h/x\n    {fields}\n");
    let git = |url: &str, fields: &str| format!("- name: a\n  git:\n    url: {url}\n    {fields}\n");
    let oci = |url: &str, fields: &str| format!("- name: a\n  oci:\n    url: {url}\n    {fields}\n");
    let cases = [
        ("- name: a\n  http: {url: 'ftp://h/x'}".to_owned(), r#":5:15: sources[0].http.url: has scheme "ftp""#),
        ("- name: a\n  http: {url: 'h/x'}".to_owned(), "sources[0].http.url: is not a URL"),
        ("- name: a\n  http: {url: 'https://u:geheim@h/x'}".to_owned(), "sources[0].http.url: must not contain credentials"),
        (http("intervalSeconds: 0"), ":7:22: sources[0].http.intervalSeconds: is 0, must be at least 1"),
        (http("timeoutSeconds: 3601"), "sources[0].http.timeoutSeconds: is 3601, must be at most 3600"),
        (http("intervalSecs: 5"), r#":7:5: sources[0].http: unknown field "intervalSecs", did you mean "intervalSeconds"?"#),
        (http("auth: {tokenFile: token}"), r#"sources[0].http.auth.tokenFile: "token" is not an absolute path"#),
        (http("auth: {username: u}"), ":7:12: sources[0].http.auth: must have either tokenFile, or"),
        (http("auth: {tokenFile: /t, passwordFile: /p}"), "sources[0].http.auth: must have either tokenFile, or"),
        (http("auth: {username: 'a:b', passwordFile: /p}"), "sources[0].http.auth.username: "),
        (http("headers: {Host: x}"), "sources[0].http.headers.Host: podstead sets this header itself"),
        (http("headers: {'a b': x}"), "sources[0].http.headers.a b: not a valid header name"),
        (http("clientKeyFile: /k"), "sources[0].http.clientKeyFile: requires clientCertFile"),
        (
            http("headers: {Proxy-Authorization: x}"),
            "sources[0].http.headers.Proxy-Authorization: this header would be sent to the server",
        ),
        (
            http("proxy: 'http://u:geheim@p'"),
            "sources[0].http.proxy: must not contain credentials; put them into files and name these in auth or proxyAuth",
        ),
        (http("proxyAuth: {tokenFile: /t}"), "sources[0].http.proxyAuth: requires proxy"),
        (http("proxy: socks5://p"), r#"sources[0].http.proxy: has scheme "socks5""#),
        ("- {name: a, http: {url: 'http://h/', caFile: /c}}".to_owned(), "sources[0].http.caFile: requires https"),
        ("- {name: a, http: {url: 'http://h/'}, git: {url: /r}}".to_owned(), "sources[0]: must have only one of"),
        (
            "- name: a\n  directory: {path: /d}\n  allowRollback: true\n".to_owned(),
            ":6:18: sources[0].allowRollback: is only for http, git, oci and bundle",
        ),
        (
            "- {name: a, http: {url: 'http://h/'}, requireSignature: {allowedSignersFile: s}}".to_owned(),
            "sources[0].requireSignature.allowedSignersFile: ",
        ),
        (
            "- {name: a, http: {url: 'http://h/'}, requireSignature: {namespace: x}}".to_owned(),
            "sources[0].requireSignature: must have allowedSignersFile, openpgpKeyringFile or both",
        ),
        (git("https://u@h/x", ""), "sources[0].git.url: the URL must not contain credentials"),
        (git("ssh://u:p@h/x", ""), "sources[0].git.url: the URL must not contain credentials"),
        (git("-oProxyCommand=x:y", ""), "sources[0].git.url: "),
        (git("ssh://-oProxyCommand=x/y", ""), "sources[0].git.url: "),
        (git("repo.git", ""), "is not the URL of a git repository"),
        (git("ext::sh", ""), "sources[0].git.url: "),
        (git("/r", "auth: {tokenFile: /t}"), "sources[0].git.auth: is only for http and https"),
        (git("https://h/r", "ssh: {keyFile: /k, knownHostsFile: /h}"), "sources[0].git.ssh: is only for ssh"),
        (git("/r", "branch: -x"), r#"sources[0].git.branch: "-x" is not a branch name"#),
        (git("/r", "commit: abc"), "sources[0].git.commit: \"abc\" is not a commit id"),
        (
            git("/r", "{}").replace("    {}\n", "    branch: a\n    tag: b\n"),
            "sources[0].git.tag: cannot be set together with branch",
        ),
        (git("/r", "semver: latest"), "sources[0].git.semver: \"latest\" is not a version range"),
        (git("/r", "path: ../x"), r#"sources[0].git.path: "../x" is not a path below"#),
        (oci("https://ghcr.io/a/b", ""), "sources[0].oci.url: is \"https://ghcr.io/a/b\", must begin with oci://"),
        (oci("oci://ghcr.io/a/b:v1", ""), "sources[0].oci.url: must not contain credentials, a tag or a digest"),
        (oci("oci://ghcr.io/a", "tag: 'a b'"), "sources[0].oci.tag: \"a b\" is not a tag"),
        (oci("oci://ghcr.io/a", "tag: 'a@sha256:b'"), "sources[0].oci.tag: "),
        (oci("oci://ghcr.io/a", "semver: latest"), "sources[0].oci.semver: \"latest\" is not a version range"),
        (oci("oci://ghcr.io/a", "digest: sha1:ab"), "sources[0].oci.digest: digest \"sha1:ab\" is not sha256"),
        (oci("oci://ghcr.io/a", "path: ../x"), "sources[0].oci.path: \"../x\" is not a path below the artifact's root"),
        (
            oci("oci://ghcr.io/a", "{}").replace("    {}\n", "    tag: a\n    semver: '1'\n"),
            "sources[0].oci.semver: cannot be set together with tag",
        ),
        (
            oci("oci://ghcr.io/a", "") + "  requireSignature: {allowedSignersFile: /s}\n",
            "sources[0].requireSignature.allowedSignersFile: is only for http, git and bundle",
        ),
        (oci("oci://ghcr.io/a", "") + "  requireSignature: {}\n", "sources[0].requireSignature: must have keys"),
        (git("/r", "") + "  requireSignature: {keys: [/k]}\n", "sources[0].requireSignature.keys: is only for oci"),
        (git("/r", "path: /x"), r#"sources[0].git.path: "/x" is not a path below"#),
    ];
    for (text, expected) in cases {
        let error = load(&text).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("config.yaml:"), "{text}\n  got:      {error}\n  expected: {expected}");
        assert!(!error.contains("geheim"), "{error}");
    }
}

#[test]
fn git_is_found_at_all_its_kinds_of_places() {
    for url in ["https://h/r", "http://h/r", "ssh://git@h:22/r", "git@h:r", "h:r", "git://h/r", "file:///r", "/r"] {
        let SourcePlace::Git(git) = place(&format!("- {{name: a, git: {{url: '{url}'}}}}")) else { panic!() };
        assert_eq!((git.url.to_string().as_str(), git.follow), (url.trim_start_matches("file://"), Follow::DefaultBranch));
    }
}

#[test]
fn paths_and_addresses_tell_hosts_apart_by_variables() {
    let with = |variables: &str, source: &str| {
        let text = format!(
            "apiVersion: podstead.dev/v1alpha1\nkind: Config\nnodeName: edge-1\nvariables: {variables}\nsources: [{source}]\n"
        );
        let facts = HostFacts { host_name: "x".into(), executable: None };
        Config::parse(text.as_bytes(), &facts, Path::new("/c")).map_err(|error| error.to_string())
    };
    let config = with(
        "{SITE: berlin}",
        "{name: a, git: {url: 'https://git.lan/${SITE}.git', branch: 'live-${SITE}', path: 'clusters/${NODE_NAME}'}}, \
         {name: b, directory: {path: '/srv/${SITE}/${NODE_NAME}'}, substitute: [SITE, UNSET]}, \
         {name: c, http: {url: 'http://lan/${NODE_NAME}?r=${SITE}'}}",
    )
    .unwrap();
    let SourcePlace::Git(git) = &config.sources[0].place else { panic!() };
    assert_eq!(git.path, "clusters/edge-1");
    assert!(format!("{git:?}").contains("git.lan/berlin.git") && format!("{git:?}").contains("live-berlin"), "{git:?}");
    let SourcePlace::Directory { path, .. } = &config.sources[1].place else { panic!() };
    assert_eq!(path, Path::new("/srv/berlin/edge-1"));
    assert_eq!(config.sources[1].substitute.as_ref().unwrap().names().collect::<Vec<_>>(), ["SITE", "UNSET"]);
    let SourcePlace::Http(http) = &config.sources[2].place else { panic!() };
    assert_eq!(http.url.as_str(), "http://lan/edge-1?r=berlin");
    for (variables, source, expected) in [
        (
            "{}",
            "{name: a, directory: {path: '/srv/${SITE}'}}",
            "sources[0].directory.path: unknown variable \"SITE\"; this host has NODE_NAME",
        ),
        ("{SITE: ../..}", "{name: a, directory: {path: '/srv/${SITE}'}}", "is not an absolute path without . and .."),
        ("{SITE: ../..}", "{name: a, git: {url: /r, path: 'a/${SITE}'}}", "sources[0].git.path"),
        ("{NODE_NAME: x}", "{name: a, directory: {path: /a}}", "variables.NODE_NAME: is reserved for the name of this host"),
        ("{a-b: x}", "{name: a, directory: {path: /a}}", "is not a variable name"),
        ("{A: \"x\\ny\"}", "{name: a, directory: {path: /a}}", "variables.A: must have at most"),
        ("{}", "{name: a, directory: {path: /a}, substitute: ['${A}']}", "sources[0].substitute[0]"),
    ] {
        let error = with(variables, source).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

fn load_fleet(text: &str) -> Result<Config, ConfigError> {
    let text = format!("apiVersion: podstead.dev/v1alpha1\nkind: Config\n{text}");
    let facts = HostFacts { host_name: "edge-7".into(), executable: None };
    Config::parse(text.as_bytes(), &facts, Path::new("/etc/podstead/config.yaml"))
}

#[test]
fn layers_have_the_name_and_the_labels_of_this_host() {
    let text = "labels: {role: kiosk, 'example.com/size': L}\nsources:\n- name: fleet\n  git: {url: 'https://h/${LABEL_ROLE}.git'}\n  \
                layers: [base, 'roles/${LABEL_ROLE}', 'hosts/${NODE_NAME}', 'racks/${LABEL_EXAMPLE_COM_SIZE}/**']\n";
    let config = load_fleet(text).unwrap();
    assert_eq!(config.sources[0].layers.written(), ["base", "roles/kiosk", "hosts/edge-7", "racks/L/**"]);
    let shown = serde_yaml::to_string(&config.to_written()).unwrap();
    assert_eq!(Config::parse(shown.as_bytes(), &HostFacts::of_this_host(), Path::new("/c")).unwrap(), config, "{shown}");
}

#[test]
fn mistakes_in_labels_and_layers_name_their_place() {
    let source = |rest: &str| format!("sources:\n- name: a\n  git: {{url: /r}}\n{rest}\n");
    let cases = [
        ("labels: {'a b': x}\n".to_owned(), "labels.a b: is not a label key"),
        ("labels: {a: ../x}\n".to_owned(), ":3:13: labels.a: is \"../x\", which is not a label value"),
        ("labels: {a.b: x, a-b: y}\n".to_owned(), "labels.a.b: becomes the variable LABEL_A_B, as another label does"),
        ("variables: {LABEL_A: x}\n".to_owned(), "variables.LABEL_A: starts with LABEL_"),
        (source("  layers: ['${LABEL_ROLE}']"), ":6:12: sources[0].layers[0]: unknown variable \"LABEL_ROLE\""),
        (source("  layers: [a, ../b]"), ":6:15: sources[0].layers[1]: \"../b\" is not a path below"),
        (source("  layers: [a, a]"), "sources[0].layers[1]: duplicate layer \"a\""),
        (
            source("  layers: [a]").replace("git: {url: /r}", "http: {url: 'http://h/'}"),
            "sources[0].layers: is only for directories, git, oci and bundle",
        ),
        (source("  layers: ['${LABEL_A}']") + "labels: {a: ''}\n", "sources[0].layers[0]: \"\" is not a path below"),
    ];
    for (text, expected) in cases {
        let error = load_fleet(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}\n  got:      {error}\n  expected: {expected}");
    }
}

#[test]
fn one_directory_can_be_writable() {
    let one = "- {name: a, directory: {path: /m}, writable: true}\n";
    let config = load(one).unwrap();
    assert!(config.sources[0].writable);
    let shown = serde_yaml::to_string(&config.to_written()).unwrap();
    assert!(shown.contains("writable: true"), "{shown}");
    for (more, message) in [
        ("- {name: b, directory: {path: /n}, writable: true}", "sources[1].writable: only one source can be writable"),
        ("- {name: b, http: {url: 'http://h/'}, writable: true}", "sources[1].writable: is only for directories"),
        ("- {name: b, directory: {path: /n}, writable: true, substitute: [A]}", "cannot be combined with layers or substitute"),
    ] {
        let told = podstead_telemetry::error_chain(&load(&format!("{one}{more}")).unwrap_err()).to_string();
        assert!(told.contains(message), "{told}");
    }
}

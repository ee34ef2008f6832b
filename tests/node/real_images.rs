//! Images that nobody made for the test: nginx from Debian's archive, and a real registry.

use crate::support::registry::Registry;
use crate::support::{DebianImage, TestHost, eventually, image_archive};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// A port on loopback that nobody uses at this moment.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn http_get(port: u16, path: &str) -> Result<String, String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").map_err(|error| error.to_string())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(|error| error.to_string())?;
    Ok(answer)
}

const NGINX: DebianImage = DebianImage {
    package: "nginx-light",
    before: "true",
    options: &["--entrypoint", "[\"/usr/sbin/nginx\"]", "--cmd", "[\"-g\",\"daemon off;\"]", "--stop-signal", "SIGQUIT"],
};

#[test]
fn debian_nginx_stops_by_image_signal() {
    let host = TestHost::start();
    host.cli_ok(&["image", "import", NGINX.archive().to_str().unwrap()]);
    let port = free_port();
    let site = host.path("site");
    std::fs::create_dir(&site).unwrap();
    std::fs::write(site.join("index.html"), "hello from the edge\n").unwrap();
    std::fs::write(
        host.path("nginx.conf"),
        format!(
            "error_log /dev/stderr notice; events {{}} http {{ access_log /dev/stdout; server {{ listen 127.0.0.1:{port}; root /site; }} }}\n"
        ),
    )
    .unwrap();
    let manifest = format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: nginx}}
spec:
  hostNetwork: true
  containers:
    - name: nginx
      image: {image}
      volumeMounts:
        - {{name: site, mountPath: /site, readOnly: true}}
        - {{name: conf, mountPath: /etc/nginx/nginx.conf, readOnly: true}}
  volumes:
    - {{name: site, hostPath: {{path: {root}/site, type: Directory}}}}
    - {{name: conf, hostPath: {{path: {root}/nginx.conf, type: File}}}}
",
        image = NGINX.reference(),
        root = host.path("").display().to_string().trim_end_matches('/')
    );
    host.write_manifest("nginx.yaml", &manifest);
    host.wait_running("nginx");
    let answer = eventually("nginx to answer", || http_get(port, "/"));
    assert!(answer.contains("hello from the edge"), "{answer}");
    host.wait_log("nginx", "nginx", "\"GET / HTTP/1.0\" 200");
    host.wait_log("nginx", "nginx", "start worker process");
    let pod = host.pod("nginx").unwrap();
    let log = host.path("log/pods").join(format!("default_nginx-edge-1_{}/nginx/0.log", pod.uid()));
    std::fs::hard_link(log, host.path("nginx.log")).unwrap();
    host.remove_manifest("nginx.yaml");
    host.wait_gone("nginx");
    let log = std::fs::read_to_string(host.path("nginx.log")).unwrap();
    assert!(log.contains("signal 3 (SIGQUIT) received"), "the image's STOPSIGNAL asks it to stop: {log}");
}

#[test]
fn pulled_image_runs_without_its_registry() {
    let registry = Registry::start();
    registry.push(image_archive(), "shop/till:1");
    let place = registry.host.clone();
    let host = TestHost::start_with(&format!("registries:\n  - host: {place}\n    http: true\n"));
    let manifest = |name: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    \
             - {{name: main, image: '{place}/shop/till:1', imagePullPolicy: Always, command: [sleep, '1000000']}}\n"
        )
    };
    host.write_manifest("first.yaml", &manifest("first"));
    let pod = host.wait_running("first");
    assert!(pod.container("main")["imageID"].as_str().unwrap().contains("sha256:"));
    assert!(host.cli_ok(&["get", "events"]).contains("Pulled"));
    drop(registry);
    host.write_manifest("second.yaml", &manifest("second"));
    host.wait_running("second");
    let missing = manifest("third").replace("shop/till:1", "shop/other:1");
    host.write_manifest("third.yaml", &missing);
    let pod = host.wait_for_pod("third", "a pull that failed", |pod| {
        matches!(pod.waiting_reason("main"), "ErrImagePull" | "ImagePullBackOff")
    });
    let message = pod.container("main").to_string();
    assert!(message.contains("shop/other:1"), "{message}");
    host.wait_running("first");
}

/// A key whose private half nobody has kept.
const NOBODY: &str =
    "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAY4KzzIgUErd7/K7tAmABw2ceMCXmbCD258uBZ5hRRio=\n-----END PUBLIC KEY-----\n";

#[test]
fn refused_image_waits_for_another_policy() {
    let registry = Registry::start();
    registry.push(image_archive(), "shop/till:1");
    let place = registry.host.clone();
    let mut host = TestHost::prepare(&format!("registries:\n  - host: {place}\n    http: true\n"));
    let (config, key) = (host.path("config.yaml"), host.path("release.pub"));
    std::fs::write(&key, NOBODY).unwrap();
    let open = std::fs::read_to_string(&config).unwrap();
    let rule = format!("imagePolicy:\n  rules:\n    - {{images: ['{place}/'], require: [signature], keys: [{}]}}\n", key.display());
    std::fs::write(&config, format!("{open}{rule}")).unwrap();
    host.start_daemon();
    let image = format!("{place}/shop/till:1");
    host.write_manifest(
        "first.yaml",
        &format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: first}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    \
             - {{name: main, image: '{image}', command: [sleep, '1000000']}}\n"
        ),
    );
    let pod = host.wait_for_pod("first", "the refusal", |pod| {
        ["SignatureValidationFailed", "ImagePullBackOff"].contains(&pod.waiting_reason("main"))
    });
    let line = open.lines().count() + 3;
    let place = format!("imagePolicy.rules[0] ({}:{line}) requires a signature by {} (SHA256:", config.display(), key.display());
    let message = pod.container("main").to_string();
    assert!(message.contains(&place) && message.contains("found: no signature"), "{message}");
    let events = host.cli_ok(&["get", "events", "-o", "json"]);
    assert!(events.contains("SignatureValidationFailed: imagePolicy.rules[0]"), "{events}");
    let refused = host.cli(&["image", "pull", &image]);
    assert!(!refused.status.success());
    std::fs::write(&config, open).unwrap();
    host.wait_running("first");
}

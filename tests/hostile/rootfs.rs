//! Images whose own `/dev`, `/proc`, `/sys` or links lead to the host when a container is created.

use crate::support::{TestHost, cgroups};
use crate::victim::{EvilImage, Sleeper, Victim, message, outcome, remove};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Starts of a container while a link flips; `PODSTEAD_RACES` replaces it.
const RACES: usize = 25;

/// A host that has the evil image, with the victim's path as a directory: links to it are followed inside of the image, too.
fn host(image: impl FnOnce(EvilImage, &Victim) -> EvilImage) -> (TestHost, Victim) {
    let mut host = TestHost::prepare("");
    // Pods with users of their own pass.
    fs::set_permissions(host.path(""), fs::Permissions::from_mode(0o711)).unwrap();
    let victim = Victim::make(&host);
    image(EvilImage::new(&host).directory(&victim.path), &victim).preload(&host);
    host.start_daemon();
    (host, victim)
}

/// A pod that runs `true` once in the evil image. `container` has more fields of the container, `pod` more of the pod, each line ended.
fn manifest(name: &str, container: &str, pod: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  restartPolicy: Never\n  terminationGracePeriodSeconds: 1\n{pod}  containers:\n    \
         - name: c\n      image: {}\n      command: ['true']\n{container}",
        EvilImage::REFERENCE
    )
}

/// Fields for hostPath volumes, each with its place in the container.
fn volumes(mounts: &[(&Path, &str)]) -> [String; 2] {
    let names = || mounts.iter().enumerate();
    let places: Vec<String> = names().map(|(n, (_, place))| format!("{{name: v{n}, mountPath: {place}}}")).collect();
    let sources: Vec<String> =
        names().map(|(n, (path, _))| format!("{{name: v{n}, hostPath: {{path: {}}}}}", path.display())).collect();
    [format!("      volumeMounts: [{}]\n", places.join(", ")), format!("  volumes: [{}]\n", sources.join(", "))]
}

/// Runs the pod once; returns why it was not started. Asserts that the victim is unharmed and that nothing is left.
#[track_caller]
fn run(host: &TestHost, victim: &Victim, [container, pod]: [&str; 2]) -> String {
    host.write_manifest("evil.yaml", &manifest("evil", container, pod));
    let reason = outcome(host, "evil");
    victim.assert_unharmed();
    remove(host, "evil");
    victim.assert_unharmed();
    reason
}

#[track_caller]
fn assert_says(reason: &str, expected: &str) {
    assert!(reason.contains(expected), "{reason:?} does not say {expected:?}");
}

/// Refuses an image with this link.
#[track_caller]
fn refuses_link(name: &str, target: impl FnOnce(&Victim) -> String, fields: [&str; 2]) {
    let (host, victim) = host(|image, victim| {
        let target = target(victim);
        // Links that a container runtime makes there are made only where the path is one of the image, too.
        let image = if target.starts_with('/') { image.directory(&target) } else { image };
        image.link(name, target)
    });
    let reason = run(&host, &victim, fields);
    assert_says(&reason, &format!("/{name} of the image is a symbolic link: make it a directory or remove it"));
}

fn absolute(victim: &Victim) -> String {
    victim.path.display().to_string()
}

#[test]
fn dev_linked_to_host_directory_is_refused() {
    refuses_link("dev", absolute, ["", ""]);
}

#[test]
fn dev_linked_upwards_is_refused() {
    refuses_link("dev", |victim| format!("{}{}", "../".repeat(20), &absolute(victim)[1..]), ["", ""]);
}

#[test]
fn dev_linked_through_proc_root_is_refused() {
    refuses_link("dev", |victim| format!("/proc/self/root{}", absolute(victim)), ["", ""]);
}

#[test]
fn dev_linked_through_root_process_is_refused() {
    let process = Sleeper::start(&["env"]);
    refuses_link("dev", |victim| format!("/proc/{}/root{}", process.pid(), absolute(victim)), ["", ""]);
}

#[test]
fn dev_linked_in_privileged_pod_is_refused() {
    refuses_link("dev", absolute, ["      securityContext: {privileged: true}\n", ""]);
}

#[test]
fn dev_linked_with_own_users_is_refused() {
    refuses_link("dev", absolute, ["", "  hostUsers: false\n"]);
}

#[test]
fn dev_linked_with_terminal_is_refused() {
    refuses_link("dev", absolute, ["      tty: true\n", ""]);
}

#[test]
fn dev_linked_inside_of_image_is_refused() {
    let (host, victim) = host(|image, _| image.directory("real").link("dev", "real"));
    assert_says(&run(&host, &victim, ["", ""]), "/dev of the image is a symbolic link");
}

#[test]
fn dev_that_is_a_file_is_refused() {
    let (host, victim) = host(|image, _| image.file("dev", "x"));
    assert_says(&run(&host, &victim, ["", ""]), "/dev of the image is not a directory");
}

#[test]
fn dev_linked_to_cgroups_leaves_no_group() {
    let hierarchy = if Path::new("/sys/fs/cgroup/memory").is_dir() { "/sys/fs/cgroup/memory" } else { "/sys/fs/cgroup" };
    let groups = || -> Vec<PathBuf> {
        let found = ["shm", "pts", "mqueue"].map(|name| Path::new(hierarchy).join(name));
        found.into_iter().filter(|group| group.is_dir()).collect()
    };
    assert_eq!(groups(), Vec::<PathBuf>::new(), "left by somebody else");
    let (host, victim) = host(|image, _| image.link("dev", hierarchy).directory(hierarchy));
    let reason = run(&host, &victim, ["", ""]);
    let left = groups();
    for group in &left {
        fs::remove_dir(group).unwrap();
    }
    assert_eq!(left, Vec::<PathBuf>::new());
    assert_says(&reason, "/dev of the image is a symbolic link");
    assert_eq!(cgroups(&host.path("").display().to_string()), Vec::<PathBuf>::new());
}

#[test]
fn proc_linked_to_host_directory_is_refused() {
    refuses_link("proc", absolute, ["", ""]);
}

#[test]
fn sys_linked_to_host_directory_is_refused() {
    refuses_link("sys", absolute, ["", ""]);
}

#[test]
fn links_below_image_dev_are_not_followed() {
    let names = ["ptmx", "fd", "shm", "pts", "mqueue", "null", "console"];
    let (host, victim) = host(|image, victim| {
        names
            .iter()
            .fold(image.link("sys/fs", absolute(victim)), |image, name| image.link(&format!("dev/{name}"), absolute(victim)))
    });
    assert_eq!(run(&host, &victim, ["      tty: true\n", ""]), "", "the container's own /dev hides them");
}

#[test]
fn working_directory_and_log_stay_in_image() {
    let (host, victim) = host(|image, victim| image.link("out", absolute(victim)));
    let fields = "      workingDir: /out/made\n      terminationMessagePath: /out/words\n";
    assert_eq!(run(&host, &victim, [fields, ""]), "");
}

#[test]
fn host_files_do_not_leave_the_image() {
    let (host, victim) =
        host(|image, victim| image.link("etc", absolute(victim)).file(&format!("{}/passwd", &absolute(victim)[1..]), ""));
    assert_eq!(run(&host, &victim, ["", ""]), "");
}

#[test]
fn volume_through_an_image_link_stays_inside() {
    let (host, victim) = host(|image, victim| image.link("out", absolute(victim)));
    let data = host.path("data");
    fs::create_dir(&data).unwrap();
    let [mounts, volumes] = volumes(&[(&data, "/out/keep/here")]);
    assert_eq!(run(&host, &victim, [&mounts, &volumes]), "");
}

/// A volume whose own `dev` leads elsewhere, and has what libcontainer needs to go on.
fn evil_volume(host: &TestHost, dev: &str) -> PathBuf {
    let volume = host.path("evil-volume");
    for name in ["proc", "sys", "bin", "tmp"] {
        fs::create_dir_all(volume.join(name)).unwrap();
    }
    fs::create_dir_all(volume.join(host.path("victim").strip_prefix("/").unwrap())).unwrap();
    if let Some(inside) = dev.strip_prefix('/') {
        fs::create_dir_all(volume.join(inside)).unwrap();
    }
    symlink(dev, volume.join("dev")).unwrap();
    volume
}

/// Refuses a volume at `/data`, which is a link to the image's root, when the volume's own `dev` is a link.
#[track_caller]
fn refuses_root(dev: impl FnOnce(&Victim) -> String, fields: [&str; 2]) {
    let (host, victim) = host(|image, _| image.link("data", "/"));
    let volume = evil_volume(&host, &dev(&victim));
    let [mounts, volumes] = volumes(&[(&volume, "/data")]);
    let reason = run(&host, &victim, [&format!("{mounts}{}", fields[0]), &format!("{volumes}{}", fields[1])]);
    assert_says(&reason, "volume at /data: the path leads to the root of the container");
}

#[test]
fn volume_over_the_root_is_refused() {
    refuses_root(absolute, ["", ""]);
}

#[test]
fn root_volume_by_proc_root_is_refused() {
    refuses_root(|victim| format!("/proc/self/root{}", absolute(victim)), ["", ""]);
}

#[test]
fn root_volume_by_root_process_is_refused() {
    let process = Sleeper::start(&["env"]);
    refuses_root(|victim| format!("/proc/{}/root{}", process.pid(), absolute(victim)), ["", ""]);
}

#[test]
fn root_volume_by_lesser_process_is_refused() {
    let process = Sleeper::start(&["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]);
    refuses_root(|victim| format!("/proc/{}/root{}", process.pid(), absolute(victim)), ["", ""]);
}

#[test]
fn root_volume_with_own_users_is_refused() {
    refuses_root(absolute, ["", "  hostUsers: false\n"]);
}

#[test]
fn link_in_volume_to_root_is_refused() {
    let (host, victim) = host(|image, _| image);
    let outer = host.path("outer");
    fs::create_dir(&outer).unwrap();
    symlink("/", outer.join("b")).unwrap();
    let inner = evil_volume(&host, &absolute(&victim));
    let [mounts, volumes] = volumes(&[(&outer, "/a"), (&inner, "/a/b")]);
    let reason = run(&host, &victim, [&mounts, &volumes]);
    assert_says(&reason, "volume at /a/b: the path leads to the root of the container");
}

#[test]
fn link_to_own_file_systems_is_refused() {
    for (place, expected) in [
        ("dev", "volume at /data: it is a symbolic link to /dev in the image: mount the volume on /dev instead"),
        ("proc", "volume at /data: cannot mount a volume on /proc itself"),
        ("sys", "volume at /data: cannot mount a volume on /sys itself"),
    ] {
        let (host, victim) = host(|image, _| image.link("data", format!("/{place}")).directory(place));
        let volume = evil_volume(&host, &absolute(&victim));
        let [mounts, volumes] = volumes(&[(&volume, "/data")]);
        assert_says(&run(&host, &victim, [&mounts, &volumes]), expected);
    }
}

#[test]
fn link_to_shared_memory_puts_volume_there() {
    let (host, victim) = host(|image, _| image.link("var/shm", "/dev/shm").directory("dev/shm"));
    let volume = host.path("data");
    fs::create_dir(&volume).unwrap();
    let [mounts, volumes] = volumes(&[(&volume, "/var/shm")]);
    let command = "      args: []\n";
    let text = manifest("evil", &format!("{mounts}{command}"), &volumes).replace("['true']", "[/bin/touch, /dev/shm/here]");
    host.write_manifest("evil.yaml", &text);
    assert_eq!(outcome(&host, "evil"), "");
    assert!(volume.join("here").is_file());
    victim.assert_unharmed();
    remove(&host, "evil");
}

#[test]
fn link_in_shared_memory_is_refused() {
    let (host, victim) = host(|image, _| image);
    let volume = evil_volume(&host, &absolute(&victim));
    let [mounts, volumes] = volumes(&[(&volume, "/dev/shm/x")]);
    let first = "  initContainers:\n    - {name: first, image: localhost/busybox:1, command: [/bin/ln, -s, /, /dev/shm/x]}\n";
    let reason = run(&host, &victim, [&mounts, &format!("{volumes}{first}")]);
    assert_says(&reason, "volume at /dev/shm/x: the path leads to the root of the container");
}

#[test]
fn flipping_link_at_start_reaches_nothing() {
    let (host, victim) = host(|image, _| image);
    let races = std::env::var("PODSTEAD_RACES").ok().and_then(|number| number.parse().ok()).unwrap_or(RACES);
    let outer = host.path("outer");
    fs::create_dir_all(outer.join("b")).unwrap();
    symlink("/", outer.join("link")).unwrap();
    let inner = evil_volume(&host, &absolute(&victim));
    let [mounts, volumes] = volumes(&[(&outer, "/a"), (&inner, "/a/b")]);
    let (mut started, mut refused) = (0, 0);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let directory = fs::File::open(&outer).unwrap();
            while !stop.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(&directory, "b", &directory, "link", rustix::fs::RenameFlags::EXCHANGE).unwrap();
            }
        });
        let attempt = || {
            for number in 0..races {
                let name = format!("evil-{number}");
                host.write_manifest(&format!("{name}.yaml"), &manifest(&name, &mounts, &volumes));
            }
            for number in 0..races {
                match outcome(&host, &format!("evil-{number}")).as_str() {
                    "" => started += 1,
                    _ => refused += 1,
                }
                victim.assert_unharmed();
            }
        };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(attempt));
        stop.store(true, Ordering::Relaxed);
        outcome.unwrap_or_else(|failure| std::panic::resume_unwind(failure));
    });
    assert_eq!(started + refused, races);
    victim.assert_unharmed();
    for number in 0..races {
        remove(&host, &format!("evil-{number}"));
    }
    victim.assert_unharmed();
}

/// A CDI device with files for the container at `/data`, and with a hook or not.
fn device(host: &TestHost, files: &Path, hook: &str) {
    let directory = host.path("cdi");
    fs::create_dir_all(&directory).unwrap();
    let spec = format!(
        "cdiVersion: 0.6.0\nkind: evil.org/device\ndevices:\n  - name: one\n    containerEdits:\n      env: [X=1]\n      mounts:\n        \
         - {{hostPath: {}, containerPath: /data, options: [ro]}}\n{hook}",
        files.display()
    );
    fs::write(directory.join("evil.yaml"), spec).unwrap();
}

/// A host whose devices are those of [`device`].
fn host_with_devices(image: impl FnOnce(EvilImage, &Victim) -> EvilImage, hook: &str) -> (TestHost, Victim, PathBuf) {
    let mut host = TestHost::prepare("");
    let config = fs::read_to_string(host.path("config.yaml")).unwrap();
    let directory = host.path("cdi").display().to_string();
    fs::write(host.path("config.yaml"), format!("{config}cdiSpecDirs: [{directory}]\n")).unwrap();
    let victim = Victim::make(&host);
    image(EvilImage::new(&host).directory(&victim.path), &victim).preload(&host);
    let volume = evil_volume(&host, &absolute(&victim));
    device(&host, &volume, hook);
    host.start_daemon();
    (host, victim, volume)
}

/// Runs the pod with the device.
#[track_caller]
fn run_with_device(host: &TestHost, victim: &Victim, [container, pod]: [&str; 2]) -> String {
    let annotated = "metadata: {name: evil, annotations: {cdi.k8s.io/x: evil.org/device=one}}";
    host.write_manifest("evil.yaml", &manifest("evil", container, pod).replace("metadata: {name: evil}", annotated));
    let reason = outcome(host, "evil");
    victim.assert_unharmed();
    remove(host, "evil");
    reason
}

#[test]
fn files_of_device_over_root_are_refused() {
    let (host, victim, _) = host_with_devices(|image, _| image.link("data", "/"), "");
    let reason = run_with_device(&host, &victim, ["", ""]);
    assert_says(&reason, "files of a device at /data: the path leads to the root of the container");
}

const HOOK: &str = "      hooks: [{hookName: createRuntime, path: /bin/true}]\n";

#[test]
fn dev_linked_with_hooks_is_refused() {
    let (host, victim, _) = host_with_devices(|image, victim| image.link("dev", absolute(victim)), HOOK);
    assert_says(&run_with_device(&host, &victim, ["", ""]), "/dev of the image is a symbolic link");
}

#[test]
fn root_volume_with_hooks_is_refused() {
    let (host, victim, volume) = host_with_devices(|image, _| image.link("else", "/"), HOOK);
    let [mounts, volumes] = volumes(&[(&volume, "/else")]);
    assert_says(
        &run_with_device(&host, &victim, [&mounts, &volumes]),
        "volume at /else: the path leads to the root of the container",
    );
}

#[test]
fn volume_with_cgroups_does_not_mislead() {
    let (host, victim, _) = host_with_devices(|image, _| image, HOOK);
    let [mounts, volumes] = volumes(&[(Path::new("/"), "/host")]);
    let mounts = mounts.replace("/host}", "/host, readOnly: true, recursiveReadOnly: Enabled}");
    assert_eq!(run_with_device(&host, &victim, [&mounts, &volumes]), "");
    assert_eq!(run(&host, &victim, [&mounts, &volumes]), "");
}

#[test]
fn container_sees_nothing_of_its_first_root() {
    let (host, victim) = host(|image, _| image);
    let text = manifest("evil", "", "").replace("['true']", "[/bin/sh, -c, 'exec sleep 1000000']");
    host.write_manifest("evil.yaml", &text);
    let pod = host.wait_running("evil");
    let shell = |script: &str| host.exec("evil", "c", &["/bin/sh", "-c", script]);
    assert_eq!(shell("ls -d /r /v /s /b /n /config.json 2>/dev/null; true"), "");
    let points = shell("cut -d' ' -f5 /proc/1/mountinfo");
    let beyond = |point: &&str| {
        !["/", "/etc", "/dev", "/proc", "/sys"].iter().any(|own| *point == *own || (*own != "/" && point.starts_with(own)))
    };
    assert_eq!(points.lines().find(beyond), None, "{points}");
    assert_eq!(shell("ls /proc/1/root/.. | grep -cx bin"), "1\n");
    assert_eq!(message(&pod), "");
    victim.assert_unharmed();
    remove(&host, "evil");
}

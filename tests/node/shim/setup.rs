//! The surroundings of a process: root file system, working directory, environment, stdio, mounts.

use super::harness::{Host, bind, make_privileged, outcome};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use podstead::{
    container::{ProcessUser, Propagation},
    runtime::{Runtime, StartError},
};
use std::fs;

#[tokio::test(flavor = "multi_thread")]
async fn process_has_directory_environment_and_streams() {
    let host = Host::new();
    let mut node = host.node();
    let pod = host.pod("process");
    node.runtime.create_sandbox(&pod).await.unwrap();
    let mut container = host.container(
        &pod,
        "main",
        "pwd; echo $HOME $GREETING; id -u; echo again > /dev/stdout; exec grep SigIgn /proc/self/status",
    );
    container.cwd = "/made/for/it".into();
    container.user = ProcessUser { uid: 33, gid: 33, additional_gids: vec![50] };
    node.runtime.start_container(&container).await.unwrap();
    assert_eq!(outcome(&node.exited(&container).await), (0, None, false));
    assert_eq!(host.log(&container), ["/made/for/it", "/var/www hello", "33", "again", "SigIgn:\t0000000000000000"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_stay_in_containers_own_layer() {
    let host = Host::new();
    let mut node = host.node();
    let (pod, container) = node.run(&host, "layers", "echo x > /bin/new; echo done; sleep 1000").await;
    super::harness::eventually("it has written", || host.log(&container) == ["done"]).await;
    assert!(!host.layer().join("bin/new").try_exists().unwrap(), "the image is untouched");
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let bundle = host.paths().bundle(&pod.uid, &container.id);
    assert!(!mounts.contains(bundle.to_str().unwrap()), "no mount of a container is on the host");
    node.runtime.kill_container(&pod.uid, &container.id).await.unwrap();
    node.exited(&container).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn image_with_many_layers_runs() {
    let host = Host::new();
    let mut node = host.node();
    let pod = host.pod("many");
    node.runtime.create_sandbox(&pod).await.unwrap();
    let mut container = host.container(&pod, "main", "cat /top; ls / | grep -c only");
    for number in 0..60 {
        let layer = host.root().join("x".repeat(200)).join(format!("{}-{number}", "y".repeat(200)));
        fs::create_dir_all(&layer).unwrap();
        fs::write(layer.join("top"), format!("{number}\n")).unwrap();
        fs::write(layer.join(format!("only-{number}")), "").unwrap();
        container.image.layers.push(layer);
    }
    node.runtime.start_container(&container).await.unwrap();
    assert_eq!(outcome(&node.exited(&container).await), (0, None, false));
    assert_eq!(host.log(&container), ["59", "60"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_creation_leaves_only_its_reason() {
    let host = Host::new();
    let node = host.node();
    let pod = host.pod("broken");
    node.runtime.create_sandbox(&pod).await.unwrap();
    let mut no_source = host.container(&pod, "no-source", "true");
    no_source.mounts.push(bind(&host.root().join("not-there"), "/mnt"));
    let mut no_layer = host.container(&pod, "no-layer", "true");
    no_layer.image.layers.push(host.root().join("no-such-layer"));
    let mut no_memory = host.container(&pod, "no-memory", "true");
    no_memory.resources.memory_limit = Some(4096);
    let mut no_directory = host.container(&pod, "no-directory", "true");
    no_directory.cwd = "/bin/busybox/below".into();
    for (container, expected, is_made) in [
        (&no_source, "No such file", false),
        (&no_layer, "no-such-layer", false),
        (&no_memory, "", true),
        (&no_directory, "working directory", true),
    ] {
        match (node.runtime.start_container(container).await, is_made) {
            (Err(StartError::Create(reason)), false) | (Err(StartError::Execute(reason)), true) => {
                assert!(reason.contains(expected), "{reason}");
            }
            (other, _) => panic!("{}: {other:?}", container.name),
        }
        let paths = host.paths();
        let runs = node.runtime.observe(&pod.uid).await.unwrap().unwrap().containers;
        assert_eq!(runs.iter().any(|run| run.id == container.id), is_made, "{}", container.name);
        assert_eq!(paths.container_record(&pod.uid, &container.id).try_exists().unwrap(), is_made, "{}", container.name);
        assert_eq!(paths.container_layer(&pod.uid, &container.id).try_exists().unwrap(), is_made, "{}", container.name);
        assert!(!paths.bundle(&pod.uid, &container.id).try_exists().unwrap());
        assert!(!paths.oci_state(&pod.uid).join(&container.id).try_exists().unwrap());
    }
    let cgroups = host.cgroups();
    let pod_group = cgroups.pod(pod.qos, &pod.uid);
    super::harness::eventually("the groups are gone", || cgroups.processes(&pod_group).unwrap().is_empty()).await;
    let shim = node.runtime.observe(&pod.uid).await.unwrap().unwrap().sandbox.unwrap().shim_pid.unwrap();
    let children = || fs::read_to_string(format!("/proc/{shim}/task/{shim}/children")).unwrap();
    super::harness::eventually("the shim has no child left", || children().is_empty()).await;
    let descriptors = fs::read_dir(format!("/proc/{shim}/fd")).unwrap().count();
    assert!(descriptors < 12, "{descriptors} descriptors are open");
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert_eq!(host.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn mounts_travel_as_each_volume_asks() {
    let host = Host::new();
    let mut node = host.node();
    // A shared mount, as the root of a host with systemd is.
    let volumes = host.root().join("volumes");
    fs::create_dir(&volumes).unwrap();
    mount(Some("tmpfs"), &volumes, Some("tmpfs"), MsFlags::empty(), None::<&str>).unwrap();
    mount(None::<&str>, &volumes, None::<&str>, MsFlags::MS_SHARED, None::<&str>).unwrap();
    for name in ["none", "in", "both"] {
        fs::create_dir_all(volumes.join(name).join("later")).unwrap();
        fs::create_dir_all(volumes.join(name).join("from-container")).unwrap();
    }
    let pod = host.pod("propagation");
    node.runtime.create_sandbox(&pod).await.unwrap();
    let mut container = host.container(&pod, "main", "sleep 1000");
    make_privileged(&mut container);
    for (name, propagation) in
        [("none", Propagation::Private), ("in", Propagation::HostToContainer), ("both", Propagation::Bidirectional)]
    {
        let mut volume = bind(&volumes.join(name), &format!("/{name}"));
        volume.propagation = propagation;
        container.mounts.push(volume);
    }
    node.runtime.start_container(&container).await.unwrap();
    for name in ["none", "in", "both"] {
        let later = volumes.join(name).join("later");
        mount(Some("tmpfs"), &later, Some("tmpfs"), MsFlags::empty(), None::<&str>).unwrap();
        fs::write(later.join("file"), "").unwrap();
    }
    for (name, seen) in [("none", ""), ("in", "file\n"), ("both", "file\n")] {
        assert_eq!(node.exec(&container, &["ls", &format!("/{name}/later")]).await.0, seen, "{name}");
        let target = format!("/{name}/from-container");
        let (_, error, code) = node.exec(&container, &["mount", "-t", "tmpfs", "tmpfs", &target]).await;
        assert_eq!(code, Some(0), "{error}");
        node.exec(&container, &["touch", &format!("{target}/file")]).await;
    }
    for (name, seen) in [("none", false), ("in", false), ("both", true)] {
        assert_eq!(volumes.join(name).join("from-container/file").try_exists().unwrap(), seen, "{name}");
    }
    node.runtime.kill_container(&pod.uid, &container.id).await.unwrap();
    node.exited(&container).await;
    umount2(&volumes, MntFlags::MNT_DETACH).unwrap();
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_may_exceed_a_socket_address() {
    let host = Host::with_roots_below(&"long/".repeat(40));
    let mut node = host.node();
    let pod = host.pod("long");
    node.runtime.create_sandbox(&pod).await.unwrap();
    let mut container = host.container(&pod, "main", "echo ready; exit 3");
    container.tty = true;
    node.runtime.start_container(&container).await.unwrap();
    assert_eq!(outcome(&node.exited(&container).await), (3, None, false));
    assert_eq!(host.log(&container), ["ready"]);
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    assert_eq!(host.leftovers(), Vec::<String>::new());
}

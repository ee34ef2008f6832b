//! Hosts on which a job cannot be confined: it refuses to work, which is told, and nothing of others is read.

use super::archive::{Image, Layer, file};
use super::store::{Registry, Store};
use crate::slice::Slice;
use podstead::image::list_job::{Form, Lister};
use podstead::image::{ImageStoreConfig, JobSettings, Limits, RegistryConfig};
use podstead::job::launch::Launcher;
use podstead::sys::seccomp::Program;
use podstead::telemetry::error_chain;
use podstead::telemetry::events::{EventRecorder, EventType, Subject};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Words of each refusal.
const REFUSED: &str = "cannot give up its rights on this host: '";

/// A program that runs the jobs of one task without a capability, as in a container that does not have it.
fn without(directory: &Path, task: &str, capability: &str) -> ImageStoreConfig {
    let binary = crate::support::binary("podstead");
    let run = format!("exec -a podstead-job {} \"$@\"", binary.display());
    let script = format!(
        "#!/bin/bash\n[ \"$1\" = {task} ] && exec setpriv --bounding-set=-{capability} bash -c '{run}' job \"$@\"\n{run}\n"
    );
    let program = directory.join(format!("{task}-without-{capability}"));
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let jobs = JobSettings { program, ..JobSettings::default() };
    ImageStoreConfig { jobs, ..ImageStoreConfig::default() }
}

/// Capabilities, and the step that needs them.
const STEPS: [(&str, &str); 3] =
    [("sys_admin", "leave the host"), ("setuid", "become another user"), ("setpcap", "become another user")];

#[test]
fn jobs_without_capabilities_to_give_up_rights_refuse_to_work() {
    let programs = tempfile::tempdir().unwrap();
    let layers = || [Layer::of(&[file("a", b"a")])];
    for task in ["list", "unpack"] {
        for (capability, step) in STEPS {
            let store = Store::with_program(without(programs.path(), task, capability));
            let reason = store.refused(&layers());
            assert!(reason.contains(&format!("{REFUSED}{step}")), "{task} without {capability}: {reason}");
            assert_eq!(store.reasons(), ["JobNotConfined"], "{task} without {capability}");
        }
    }
    let registry = Registry::of(Image::of(&layers()));
    for (capability, step) in STEPS {
        let registries = vec![RegistryConfig { host: registry.host(), http: true, ..Default::default() }];
        let config = ImageStoreConfig { registries, ..without(programs.path(), "fetch", capability) };
        let store = Store::with_program(config);
        let reason = store.pull_refused(&registry);
        assert!(reason.contains(&format!("{REFUSED}{step}")), "fetch without {capability}: {reason}");
        assert!(store.reasons().iter().all(|reason| reason == "JobNotConfined"), "{:?}", store.reasons());
        assert!(!store.reasons().is_empty(), "fetch without {capability}");
    }
    // What the scripts do beside that leaves all jobs as they are.
    let store = Store::with_program(without(programs.path(), "none", "sys_admin"));
    store.import(&layers()).unwrap();
    assert_eq!(store.reasons(), Vec::<String>::new());
}

/// Reasons of all events.
#[derive(Debug, Default)]
struct Recorded(Mutex<Vec<String>>);

impl EventRecorder for Recorded {
    fn record(&self, _: &Subject, _: EventType, reason: &str, message: &str) {
        self.0.lock().unwrap().push(format!("{reason}: {message}"));
    }
}

/// A filter that answers these system calls with EPERM.
fn refusing(calls: &[i64]) -> Program {
    let instruction =
        |code: u16, jump: u8, value: u32| -> Vec<u8> { [&code.to_ne_bytes()[..], &[0, jump], &value.to_ne_bytes()].concat() };
    // Loads the number of the call; jumps over the answer unless it is this one; lets all others pass.
    let mut all = instruction(0x20, 0, 0);
    for call in calls {
        all.extend(instruction(0x15, 1, u32::try_from(*call).unwrap()));
        all.extend(instruction(0x06, 0, 0x0005_0000 | libc::EPERM.unsigned_abs()));
    }
    all.extend(instruction(0x06, 0, 0x7fff_0000));
    Program::new(all).unwrap()
}

/// The result of a job that lists an empty archive on a host that refuses these calls to it, and the events.
fn listed(calls: &[i64], slice: Option<&Slice>) -> (Result<(), String>, Vec<String>) {
    let events = Arc::new(Recorded::default());
    let settings = slice.map_or_else(JobSettings::default, |slice| slice.settings().jobs);
    let settings = JobSettings { program: crate::support::binary("podstead"), ..settings };
    let lister = Lister::new(Arc::new(Launcher::new(settings)), events.clone());
    let archive = tempfile::tempfile().unwrap();
    // The thread keeps the filter, and what it starts has it, too.
    let list = |archive: File| {
        refusing(calls).load(0).unwrap();
        let mut listing = lister.list(archive, Form::Plain, &Limits::default())?;
        listing.next_entry().map(drop)
    };
    let result = std::thread::scope(|scope| scope.spawn(|| list(archive)).join().unwrap());
    let result = result.map_err(|error| error_chain(&error).to_string());
    let events = events.0.lock().unwrap().clone();
    (result, events)
}

#[test]
fn jobs_on_kernels_that_refuse_a_step_refuse_to_work() {
    for (call, step) in [
        (libc::SYS_seccomp, "restrict system calls"),
        (libc::SYS_unshare, "leave the host"),
        (libc::SYS_setresuid, "become another user"),
        (libc::SYS_capset, "become another user"),
        (libc::SYS_prctl, "become another user"),
        (libc::SYS_prlimit64, "set limits"),
    ] {
        let (result, events) = listed(&[call], None);
        let reason = result.unwrap_err();
        assert!(reason.contains(&format!("{REFUSED}{step}")), "{call}: {reason}");
        assert!(events.len() == 1 && events[0].starts_with("JobNotConfined: the job that "), "{call}: {events:?}");
        assert!(events[0].contains(step), "{call}: {events:?}");
    }
}

#[test]
fn jobs_work_without_the_empty_mount_namespace() {
    assert_eq!(listed(&[], None), (Ok(()), Vec::new()));
    // A copy of the mounts of the host is as good, and takes longer.
    assert_eq!(listed(&[libc::SYS_setns], None), (Ok(()), Vec::new()));
}

#[test]
fn jobs_work_without_cgroups() {
    let test = "layers::confinement::jobs_work_without_cgroups";
    podstead::sys::testing::in_private_mounts(test, || {
        let slice = Slice::new("no-groups");
        let unmounted = std::process::Command::new("umount").args(["-l", "-R", "/sys/fs/cgroup"]).status().unwrap();
        assert!(unmounted.success());
        assert_eq!(listed(&[], Some(&slice)), (Ok(()), Vec::new()));
        // The limits of the process hold.
        let store = Store::with(slice.settings());
        let reason = store.refused_archive(b"podstead-attack: memory\n");
        assert!(reason.contains("used up its 64 MiB of memory"), "{reason}");
    });
}

#[test]
fn no_mount_of_the_host_is_there() {
    let slice = Slice::new("mounts");
    let store = Store::with(slice.settings());
    let sleep = b"podstead-attack: sleep\n".to_vec();
    let attacks: [(&str, &(dyn Fn() -> String + Sync)); 2] =
        [("list", &|| store.refused_archive(&sleep)), ("unpack", &|| store.refused(&[Layer::raw(sleep.clone())]))];
    for (task, attack) in attacks {
        std::thread::scope(|scope| {
            let attacked = scope.spawn(attack);
            let of_task = |pid: &i32| {
                fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == format!("podstead-job\0{task}\0").into_bytes())
            };
            // When the job sleeps, it has given up its rights: one mount is left, its root directory.
            let mount = crate::support::eventually("the job to have one mount", || {
                let Some(pid) = slice.jobs().into_iter().find(of_task) else { return Err("no job".to_owned()) };
                let mounts = fs::read_to_string(format!("/proc/{pid}/mountinfo")).map_err(|error| error.to_string())?;
                if mounts.lines().count() == 1 { Ok(mounts) } else { Err(mounts) }
            });
            // It is tried once more.
            while !attacked.is_finished() {
                for pid in slice.jobs().into_iter().filter(of_task) {
                    // It may have ended.
                    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).ok();
                }
                std::thread::yield_now();
            }
            assert_eq!(mount.split(' ').nth(4), Some("/"), "{task}: {mount}");
            let reason = attacked.join().unwrap();
            assert!(reason.contains("ended by signal 9"), "{task}: {reason}");
        });
    }
    slice.assert_empty();
}

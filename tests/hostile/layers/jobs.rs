//! Layers that have taken the job over that unpacks them, the store they would like to poison, and jobs that are killed.
//!
//! A layer that begins with `podstead-attack:` tells the job of a test build what to try, as one that found an error in a decompressor would.

use super::archive::{Image, Layer, file, noise, tar};
use super::store::{Registry, Store, entries};
use crate::slice::Slice;
use podstead::container::digest::Digest;
use podstead::image::{ImageStoreConfig, JobSettings, RegistryConfig};
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn attack(words: &str) -> Layer {
    Layer::raw(format!("podstead-attack: {words}\n").into_bytes())
}

#[test]
fn forbidden_system_calls_end_the_job() {
    let slice = Slice::new("calls");
    let store = Store::with(slice.settings());
    for word in [
        "execve",
        "socket",
        "socket-inet",
        "kill",
        "kill-own",
        "mount",
        "ptrace",
        "unshare",
        "setns",
        "chroot",
        "setuid",
        "fork",
        "keyctl",
        "bpf",
        "io_uring",
        "tty",
        "setuid-program",
    ] {
        let reason = store.refused(&[attack(word)]);
        assert!(reason.contains("made a forbidden system call and was killed"), "{word}: {reason}");
    }
    assert_eq!(store.reasons(), ["JobViolation"].repeat(17));
    slice.assert_empty();
}

#[test]
fn files_of_the_host_are_not_there() {
    let store = Store::new();
    for (word, expected) in [
        ("name", "No such file or directory"),
        ("dotdot", "No such file or directory"),
        ("proc", "No such file or directory"),
        ("trusted", "Operation not permitted"),
        ("disk", "Permission denied"),
    ] {
        let reason = store.refused(&[attack(word)]);
        assert!(reason.contains(&format!("'{word}: {expected}")), "{word}: {reason}");
    }
}

#[test]
fn memory_and_time_end_at_their_limits() {
    let slice = Slice::new("limits");
    for grouped in [true, false] {
        let store = Store::with(if grouped { slice.settings() } else { ImageStoreConfig::default() });
        let reason = store.refused(&[attack("memory")]);
        assert!(reason.contains("used up its 256 MiB of memory"), "grouped: {grouped}: {reason}");
        assert_eq!(store.reasons(), ["LimitExceeded"]);
    }
    let jobs = JobSettings { patience: Duration::from_secs(1), ..slice.settings().jobs };
    let store = Store::with(ImageStoreConfig { jobs, ..ImageStoreConfig::default() });
    for word in ["spin", "sleep"] {
        let reason = store.refused(&[attack(word)]);
        assert!(reason.contains("did nothing for 1 seconds and was killed"), "{word}: {reason}");
    }
    // One that does not even read what it is sent.
    let bytes = [attack("sleep").bytes, noise(4 << 20)].concat();
    assert!(store.refused(&[Layer::raw(bytes)]).contains("did nothing"));
    slice.assert_empty();
}

#[test]
fn job_that_crashes_is_told() {
    let store = Store::new();
    for (words, expected) in [
        ("segfault", "ended by signal 11"),
        ("panic", "panicked, which is an error of podstead: '"),
        ("nest 2500", "and without an answer"),
    ] {
        let reason = store.refused(&[attack(words)]);
        assert!(reason.contains(expected), "{words}: {reason}");
    }
}

#[test]
fn lies_of_a_job_are_not_believed() {
    let store = Store::new();
    let digest = Digest::of(b"nothing");
    let claim = |word: &str| attack(&format!("{word} {digest}"));
    let early = Layer::raw([claim("early").bytes, noise(4 << 20)].concat());
    for (layer, expected) in [
        (claim("claim"), "diff ID"),
        (claim("twice"), "a message after the answer"),
        (early, "an answer before the end of the layer"),
        (attack("names /etc"), "a name that is no path"),
        (attack("names ../../outside"), "a name that is no path"),
        (attack("endless"), "progress without any"),
    ] {
        let reason = store.refused(&[layer]);
        assert!(reason.contains(expected), "{expected}: {reason}");
    }
    for word in ["huge", "words"] {
        let reason = store.refused(&[attack(word)]);
        assert!(reason.len() < 4096 && !reason.contains(char::is_control), "{} bytes: {reason:?}", reason.len());
    }
}

#[test]
fn claimed_layer_serves_no_other_image() {
    let archive = tar(&[file("base", b"genuine")]);
    let genuine = || Layer { bytes: archive.clone(), diff_id: Digest::of(&archive) };
    let claims = || Layer { bytes: attack(&format!("claim {}", genuine().diff_id)).bytes, diff_id: genuine().diff_id };
    let store = Store::new();
    // The image that says it has this base layer, and whose job agrees, is taken: it is the attacker's own.
    let poisoned = store.import(&[claims()]).unwrap();
    assert!(poisoned[0].join("poison").is_file());
    let trees = store.import_as("localhost/victim:1", &[genuine()]).unwrap();
    assert_eq!(fs::read(trees[0].join("base")).unwrap(), b"genuine");
    assert!(!trees[0].join("poison").try_exists().unwrap());
    // Nor on top of it, nor in an image of the attacker that has the same layers elsewhere.
    let top = || Layer::of(&[file("top", b"top")]);
    let above = store.import_as("localhost/above:1", &[claims(), top()]).unwrap();
    let trees = store.import_as("localhost/victim:2", &[genuine(), top()]).unwrap();
    assert!(trees[0].join("base").is_file() && above[1] != trees[1]);
    // Docker's archives name layers by what is in them.
    let trees = store.import_docker("localhost/victim:3", &genuine()).unwrap();
    assert!(trees[0].join("base").is_file() && !trees[0].join("poison").try_exists().unwrap());
}

#[test]
fn compressed_docker_layers_are_named_by_bytes() {
    let archive = tar(&[file("base", b"genuine")]);
    let diff_id = Digest::of(&archive);
    let store = Store::new();
    let compressed = Layer { bytes: super::archive::gzip(&archive), diff_id };
    let lie = Layer { bytes: super::archive::gzip(&attack(&format!("claim {diff_id}")).bytes), diff_id };
    let poison = Layer { bytes: attack(&format!("claim {diff_id}")).bytes, diff_id };
    store.import_docker("localhost/compressed:1", &compressed).unwrap();
    // The daemon does not look into what is compressed; the job says that it is no archive.
    assert!(store.import_docker("localhost/lie:1", &lie).is_err());
    // What is not compressed is the archive itself, whatever a job says.
    let reason = store.import_docker("localhost/poison:1", &poison).unwrap_err();
    assert!(reason.contains("instead of"), "{reason}");
    let trees = store.import_docker("localhost/plain:1", &Layer { bytes: archive, diff_id }).unwrap();
    assert!(trees[0].join("base").is_file());
}

/// Kills a job; returns its task, unless it had ended.
fn kill(pid: i32) -> Option<String> {
    let arguments = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
    let task = arguments.split('\0').nth(1).filter(|task| !task.is_empty())?.to_owned();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::SIGKILL).ok()?;
    Some(task)
}

#[test]
fn pulls_with_killed_jobs_are_atomic() {
    let slice = Slice::new("kills");
    let layer = |name: &str| Layer::of(&[file(name, &noise(3 << 20))]);
    let registry = Registry::of(Image::of(&[layer("a"), layer("b"), layer("c")]));
    let config = RegistryConfig { host: registry.host(), http: true, ..Default::default() };
    let store = Store::with(ImageStoreConfig { registries: vec![config], ..slice.settings() });
    // `make kills` sets it to 500.
    let wanted = std::env::var("PODSTEAD_KILLS").map_or(20, |text| text.parse::<usize>().unwrap());
    let (mut killed, mut failed) = (BTreeMap::<String, usize>::new(), 0);
    let is_enough = |killed: &BTreeMap<String, usize>| {
        killed.values().sum::<usize>() > wanted && ["fetch", "unpack"].iter().all(|task| killed.contains_key(*task))
    };
    // More rounds where jobs are mostly faster than their killer.
    for round in 0..20 * wanted as u64 {
        if round >= 20 && is_enough(&killed) {
            break;
        }
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let killer = scope.spawn(|| {
                let mut tasks = Vec::new();
                // Later and later, so that each step is met.
                while !done.load(Ordering::Relaxed) && tasks.len() < 4 {
                    std::thread::sleep(Duration::from_millis(round % 20 * 3));
                    tasks.extend(slice.jobs().into_iter().filter_map(kill));
                }
                tasks
            });
            let pulled = store.pull(&registry);
            done.store(true, Ordering::Relaxed);
            for task in killer.join().unwrap() {
                *killed.entry(task).or_default() += 1;
            }
            match pulled {
                Ok(trees) => assert!(
                    ["a", "b", "c"].iter().zip(&trees).all(|(name, tree)| fs::metadata(tree.join(name)).unwrap().len() == 3 << 20)
                ),
                Err(reason) => {
                    assert!(reason.contains("ended by signal 9"), "{reason}");
                    failed += 1;
                }
            }
        });
        assert_eq!(entries(&store.path("images/staging")), 0, "nothing is left in staging");
        slice.assert_empty();
        store.forget(&registry);
    }
    eprintln!("jobs that were killed: {killed:?}; {failed} pulls failed");
    assert!(is_enough(&killed), "{killed:?}");
    store.pull(&registry).unwrap();
}

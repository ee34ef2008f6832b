//! CRI logs under load and on a full disk.

use super::harness::{Host, eventually, log_lines, outcome};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use podstead::container::protocol::LogLimits;
use podstead::runtime::Runtime;
use std::fs;
use std::path::PathBuf;

#[tokio::test(flavor = "multi_thread")]
async fn long_and_binary_output_is_logged() {
    let host = Host::new();
    let mut node = host.node();
    let script = r"printf 'a\0\377b\n'; head -c 40000 /dev/zero | tr '\0' x; echo; printf 'no newline'";
    let (_, container) = node.run(&host, "bytes", script).await;
    node.exited(&container).await;
    let lines: Vec<Vec<u8>> = fs::read(&container.log_path).unwrap().split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let parts: Vec<(Vec<u8>, Vec<u8>)> = lines
        .iter()
        .filter(|line| !line.is_empty())
        .map(|line| {
            let mut fields = line.splitn(4, |byte| *byte == b' ').skip(2);
            (fields.next().unwrap().to_vec(), fields.next().unwrap().to_vec())
        })
        .collect();
    let x = |count: usize| vec![b'x'; count];
    assert_eq!(
        parts,
        [
            (b"F".to_vec(), b"a\0\xffb".to_vec()),
            (b"P".to_vec(), x(16384)),
            (b"P".to_vec(), x(16384)),
            (b"F".to_vec(), x(40000 - 2 * 16384)),
            (b"P".to_vec(), b"no newline".to_vec()),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn million_lines_are_rotated_without_losing_one() {
    let host = Host::new().with_log_limits(LogLimits { max_bytes: 10 << 20, max_files: 100 });
    let mut node = host.node();
    let (_, container) = node.run(&host, "million", "seq 1000000").await;
    assert_eq!(outcome(&node.exited(&container).await), (0, None, false));
    let files = || {
        let mut files: Vec<_> =
            fs::read_dir(container.log_path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.rotate_left(1);
        files
    };
    // The live file and the one rotated last are plain.
    let is_settled = |files: &[PathBuf]| files.iter().rev().skip(2).all(|file| file.extension().is_some_and(|end| end == "gz"));
    eventually("older files are compressed", || files().len() > 3 && is_settled(&files())).await;
    let files = files();
    let mut next = 1_u32;
    for file in &files {
        assert!(fs::metadata(file).unwrap().len() < 11 << 20);
        for line in log_lines(file) {
            assert_eq!(line.rsplit(' ').next().unwrap().parse::<u32>().unwrap(), next);
            next += 1;
        }
    }
    assert_eq!(next, 1_000_001);
}

#[tokio::test(flavor = "multi_thread")]
async fn full_disk_stops_no_workload() {
    let host = Host::new();
    let mut node = host.node();
    let logs = host.paths().logs.clone();
    fs::create_dir_all(&logs).unwrap();
    mount(Some("tmpfs"), &logs, Some("tmpfs"), MsFlags::empty(), Some("size=16m")).unwrap();
    // Far less room than the output takes, and with the ballast gone far more.
    fs::write(logs.join("ballast"), vec![0; (16 << 20) - (128 << 10)]).unwrap();
    let script = "seq 100000; echo through > /tmp/note; while ! [ -e /tmp/go ]; do sleep 0.02; done; echo after";
    let (_, container) = node.run(&host, "full", script).await;
    let note = host.paths().container_layer(&container.pod, &container.id).join("upper/tmp/note");
    eventually("the workload was not stopped", || note.try_exists().unwrap()).await;
    fs::remove_file(logs.join("ballast")).unwrap();
    node.exec(&container, &["touch", "/tmp/go"]).await;
    assert_eq!(outcome(&node.exited(&container).await), (0, None, false));

    let lines = host.log(&container);
    let (after, output) = lines.split_last().unwrap();
    assert_eq!(after, "after");
    let mut next = 1;
    let mut gaps = Vec::new();
    for line in output {
        if let Some(told) = line.strip_prefix("podstead: dropped ") {
            assert!(told.contains("No space left on device"), "{told}");
            gaps.push(next);
            next += told.split(' ').next().unwrap().parse::<usize>().unwrap();
        } else {
            assert_eq!(*line, next.to_string(), "no line is cut, and each one that is missing is counted; gaps at {gaps:?}");
            next += 1;
        }
    }
    assert_eq!(next, 100_001, "gaps at {gaps:?}");
    assert!(gaps.first().is_some_and(|first| *first > 100), "some lines fit: {gaps:?}");
    drop(node);
    umount2(&logs, MntFlags::MNT_DETACH).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn noisy_container_leaves_turns_to_others() {
    let host = Host::new().with_log_limits(LogLimits { max_bytes: 1 << 20, max_files: 2 });
    let node = host.node();
    let (pod, _noisy) = node.run(&host, "noisy", "yes").await;
    let quiet = host.container(&pod, "quiet", "echo heard; sleep 1000");
    node.runtime.start_container(&quiet).await.unwrap();
    eventually("the other is heard", || host.log(&quiet) == ["heard"]).await;
    let (output, _, code) = node.exec(&quiet, &["echo", "served"]).await;
    assert_eq!((output.as_str(), code), ("served\n", Some(0)));
}

/// F31.
#[tokio::test(flavor = "multi_thread")]
async fn exit_on_a_full_disk_is_told_and_recorded_later() {
    let host = Host::new();
    let state = host.paths().state.clone();
    fs::create_dir_all(&state).unwrap();
    mount(Some("tmpfs"), &state, Some("tmpfs"), MsFlags::empty(), Some("size=16m")).unwrap();
    let mut node = host.node();
    let (pod, container) = node.run(&host, "full", "while ! [ -e /tmp/go ]; do sleep 0.02; done; exit 3").await;
    let filler = state.join("filler");
    let full = fs::write(&filler, vec![1; 17 << 20]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    node.exec(&container, &["touch", "/tmp/go"]).await;
    assert_eq!(outcome(&node.exited(&container).await), (3, None, false));
    let record = host.paths().container_record(&pod.uid, &container.id);
    let is_recorded = || fs::read_to_string(&record).is_ok_and(|record| record.contains("exited"));
    assert!(!is_recorded(), "the disk is full");
    // A daemon that starts meanwhile learns of it, too.
    drop(node);
    let mut node = host.node();
    node.runtime.recover().await.unwrap();
    assert_eq!(outcome(&node.exited(&container).await), (3, None, false));
    fs::remove_file(filler).unwrap();
    eventually("the exit is recorded", is_recorded).await;
    node.runtime.stop_sandbox(&pod.uid).await.unwrap();
    drop(node);
    umount2(&state, MntFlags::MNT_DETACH).unwrap();
}

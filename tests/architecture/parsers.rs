//! Code that decompresses, reads archives or calls libgit2: in jobs, or for a reason that is here.

use crate::source_tree::{SourceFile, source_files};
use std::collections::BTreeSet;

/// Marks of a parser.
const MARKS: [&str; 8] =
    ["flate2::", "zstd::", "tar_core::", "TarReader::new", "compression::Decoder", "git2::", "podstead_libgit2::", "libgit2_sys::"];

/// Files that may, and why.
const ALLOWED: &[(&str, &str)] = &[
    ("image/compression.rs", "runs in the job"),
    ("image/tar.rs", "runs in jobs, and in commands of a user who names the archive: they have no Secrets of the host"),
    (
        "image/check/list.rs",
        "lists that the daemon compressed itself; read only with the digest that the record of the layer names",
    ),
    ("image/check/sum.rs", "CRC-32 of files that were unpacked"),
    ("image/check/walk.rs", "computes checksums of files, and decompresses nothing"),
    ("source/oci/tree/mod.rs", "runs in the job"),
    ("fetch/coming.rs", "runs in the job, and in the command of a user who makes a bundle"),
    ("source/git/protocol/pack.rs", "runs in the job"),
    (
        "source/git/work_tree.rs",
        "the configuration and the state of a clone, in the command of a user who works in it: it has no Secrets of the host",
    ),
    ("sys/libgit2/lib.rs", "settings, in the job and in commands"),
    ("api/log/files.rs", "logs that the shim compressed"),
    ("api/spdy_headers.rs", "headers of kubectl's streams; bounded, zlib-rs"),
    ("shim/log/compress.rs", "compresses"),
    ("cli/support_bundle/archive.rs", "compresses"),
    (
        "image/repository/copy.rs",
        "measures layers for a bundle, in the command of a user who makes one: it has no Secrets of the host",
    ),
    ("source/bundle/write.rs", "compresses"),
    ("cli/volume/archive.rs", "compresses"),
    ("cli/volume/block.rs", "an image of a device, in the command of a user who names the file: it has no Secrets"),
    ("cli/volume/backup.rs", "data of a volume, in the command of a user who names the archive: it has no Secrets"),
];

/// Folders of code that runs in the job.
const IN_JOB: &[&str] = &["image/list_job", "image/unpack", "image/unpack_job", "source/git/job"];

#[test]
fn outside_bytes_are_decompressed_in_jobs() {
    let files = source_files();
    let is_marked = |file: &&SourceFile| file.product_lines().any(|(_, line)| MARKS.iter().any(|mark| line.contains(mark)));
    let found: BTreeSet<&str> = files
        .iter()
        .filter(|file| !file.is_below(IN_JOB) && file.stem() != "tests")
        .filter(is_marked)
        .map(|file| file.path.as_str())
        .collect();
    let allowed: BTreeSet<&str> = ALLOWED.iter().map(|(path, _)| *path).collect();
    let others: Vec<_> = found.difference(&allowed).collect();
    assert!(
        others.is_empty(),
        "{others:#?} decompress, read archives or call libgit2 in the daemon: use a job (src/image/list_job, src/image/unpack_job, src/source/git/job), or give a reason here"
    );
    let unused: Vec<_> = allowed.difference(&found).collect();
    assert!(unused.is_empty(), "{unused:?} need no reason any more");
}

/// Parsers that run in a job alone, or in the command of a user, and the files that may name them.
const USERS: &[(&str, &[&str])] = &[
    ("oci::tree", &["source/tree_job/child.rs"]),
    ("unpack_alone", &["image/unpack_job/stream.rs"]),
    ("PackScan", &["source/git/job/index.rs"]),
    ("PlainEntries", &["image/list_job/listing.rs"]),
    ("reader::{TellError, tell}", &["image/list_job/child.rs"]),
    // Lists without a job.
    ("list_job::Here", &["cli/bundle/apply.rs", "cli/bundle/create.rs", "cli/bundle/show.rs"]),
];

#[test]
fn parsers_of_jobs_are_used_by_jobs_alone() {
    let files = source_files();
    for (parser, users) in USERS {
        let uses = |line: &str| line.trim_start().starts_with("use ") && line.contains(parser);
        let users_found = files.iter().filter(|file| file.product_lines().any(|(_, line)| uses(line)));
        let found: Vec<&str> = users_found.map(|file| file.path.as_str()).collect();
        assert_eq!(found, *users, "users of {parser}");
    }
}

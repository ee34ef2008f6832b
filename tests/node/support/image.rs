//! The images that the tests' pods run, as archives: Debian's busybox-static if nothing else is asked for.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Reference of the image.
pub(crate) const IMAGE: &str = "localhost/busybox:1";

/// Comes along with the tests to machines that have no sources.
const SCRIPT: &str = include_str!("../../support/make-image.sh");

/// Makes an archive of an image. `options` are those of `tests/support/make-image.sh`.
pub(crate) fn make_image(options: &[&OsStr], archive: &Path, name: &str) {
    let made = Command::new("sh").args(["-c", SCRIPT, "make-image.sh"]).args(options).arg(archive).arg(name).status().unwrap();
    assert!(made.success(), "make-image.sh failed");
}

/// The archive of [`IMAGE`]; made once per run.
pub(crate) fn image_archive() -> &'static Path {
    static ARCHIVE: OnceLock<PathBuf> = OnceLock::new();
    ARCHIVE.get_or_init(|| {
        if let Some(given) = std::env::var_os("PODSTEAD_TEST_IMAGE") {
            return given.into();
        }
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let archive = directory.join(format!("busybox-{}.tar", std::process::id()));
        make_image(&[], &archive, IMAGE);
        archive
    })
}

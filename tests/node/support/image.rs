//! The image that the tests' pods run: Debian's busybox-static, as an archive.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Reference of the image.
pub(crate) const IMAGE: &str = "localhost/busybox:1";

/// The archive; made once per run.
pub(crate) fn image_archive() -> &'static Path {
    static ARCHIVE: OnceLock<PathBuf> = OnceLock::new();
    ARCHIVE.get_or_init(|| {
        if let Some(given) = std::env::var_os("PODSTEAD_TEST_IMAGE") {
            return given.into();
        }
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let archive = directory.join(format!("busybox-{}.tar", std::process::id()));
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/make-image.sh");
        let status = Command::new(script).arg(&archive).arg(IMAGE).status().unwrap();
        assert!(status.success(), "make-image.sh failed");
        archive
    })
}

//! A disk that is full: from when on, until when, and what is said of it. **Pure**.

use super::plan::Amount;
use crate::limits::shown_bytes;
use crate::space::Free;
use podstead_runtime::ImageUsage;

/// Beyond the reserve, for the disk to count as having space again.
const MARGIN: u64 = 64 << 20;

/// State of the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Pressure {
    /// More is free than the reserve.
    #[default]
    Fine,
    /// The reserve is touched, and there was nothing more to be removed. Says how it is and what helps.
    Full(String),
}

impl Pressure {
    pub(super) fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
    }

    pub(super) fn message(&self) -> Option<&str> {
        match self {
            Self::Fine => None,
            Self::Full(message) => Some(message),
        }
    }
}

/// Bytes beyond the reserve at which a full disk has space again; less on a small file system.
pub(super) fn margin(free: &Free) -> u64 {
    MARGIN.min(free.all_bytes / 50)
}

/// States who holds the space, and the remedy.
pub(super) fn message(free: &Free, lacking: Amount, usage: &ImageUsage) -> String {
    let state = match lacking.bytes {
        0 => format!("{} of {} inodes free", free.inodes, free.all_inodes),
        _ => format!("{} of {} free", shown_bytes(free.bytes), shown_bytes(free.all_bytes)),
    };
    let needed: u64 = usage.disk_bytes.saturating_sub(usage.unused_bytes);
    format!(
        "the disk of the image store is full: {state}, which is less than images.reserve; images take {}, of which {} are needed by pods, by \
         revisions that can be restored, or pinned; no image is pulled until there is space: podstead doctor shows what takes it",
        shown_bytes(usage.disk_bytes),
        shown_bytes(needed)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_says_what_is_short() {
        let free = Free { bytes: 5 << 20, all_bytes: 1 << 30, inodes: 3, all_inodes: 100 };
        let usage = ImageUsage { disk_bytes: 800 << 20, unused_bytes: 300 << 20, ..ImageUsage::default() };
        let told = message(&free, Amount { bytes: 1, inodes: 0 }, &usage);
        assert!(told.contains("5 MiB of 1 GiB free") && told.contains("800 MiB, of which 500 MiB"), "{told}");
        assert!(message(&free, Amount { bytes: 0, inodes: 2 }, &usage).contains("3 of 100 inodes free"));
        assert_eq!(margin(&free), (1 << 30) / 50);
    }
}

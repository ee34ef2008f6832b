//! Which fields of a Pod podstead honours.

use super::Pod;
use super::field::Problems;

/// Reports what is set and not honoured.
pub(super) fn judge(_pod: &Pod, _problems: &mut Problems) {}

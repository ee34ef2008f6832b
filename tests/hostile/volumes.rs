//! Volumes that lead to places of the host which their source may not use.

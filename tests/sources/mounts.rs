//! Mounts on top of a followed directory, in a private mount namespace.

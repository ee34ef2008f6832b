//! What runs inside `podstead-shim`: the event loop of one pod, its logs, its reaper, and the helper that calls libcontainer.
//!
//! Single-threaded, no tokio, no libcontainer code executed in the shim process itself.

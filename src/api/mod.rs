//! The local API on a unix socket, shaped as Kubernetes': pods (list, get, watch), logs, events, exec, attach; and podstead's own
//! resources: sources, images. Nothing here decides: it reads what the sync loop published and asks the services.

pub mod published;

pub use published::Published;

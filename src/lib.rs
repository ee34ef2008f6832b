//! podstead runs Kubernetes Pod manifests on a single host, without a cluster and without a container engine.
//!
//! Manifests from a directory, an HTTP URL or a git repository become one desired set; a sync loop makes the
//! host match it through an embedded OCI runtime; status flows back out to the local API.
//!
//! # The map
//!
//! Data flows through the modules in this order, and dependencies point along the flow, never back:
//!
//! ```text
//!         bytes            objects           SET             ops              one per pod            actions
//! source  ------> manifest ------> store ---------> mux ------------> sync ------------> worker ------------> runtime image volume network
//! dir http git    decode, strict   undelta,         SET -> ADD,       one loop, one      plan (pure),         shim client, layer store,
//!                 defaults (pod),  last good        UPDATE, REMOVE,   select             then execute         mounts, namespaces
//!                 validation (pod) on disk          RECONCILE                               |
//!                                                                                           v
//!                                                                     status (pure: phase, conditions) ---> api, cli
//! ```
//!
//! * [`source`] fetches bytes and says what *revision* they are; it never interprets them. [`trust`] says who signed them.
//! * [`manifest`] turns bytes into strict, typed objects with positions; [`pod`] knows everything about a Pod that can be
//!   known without a host: defaults, validation, identity, hashes, environment, resource formulas.
//! * [`store`] keeps the last good version of every object, in memory ([`store`]'s undelta store) and on disk.
//! * [`mux`] compares each SET with what it knew and emits the operations of the kubelet's `PodConfig`.
//! * [`sync`] is the loop: it owns the pod workers and feeds them.
//! * [`worker`] serialises all work on one pod; its plan is a pure function from desired and observed state to actions.
//! * [`runtime`] drives `podstead-shim` processes ([`shim`]), one per pod, which own the containers.
//! * [`image`], [`volume`] and [`network`] prepare what a container needs; [`probe`] asks it how it is.
//! * [`dns`] answers pods that ask for names, from what [`status`] says of pods.
//! * [`status`] computes what the API shows; [`api`] serves it on a unix socket; [`cli`] asks for it.
//! * [`upstream`] shows the pods of this host to a cluster, where one is configured.
//! * [`sops`] opens encrypted manifests for [`manifest`].
//! * [`config`], [`telemetry`], [`outbound`] (what connections to other hosts need) and [`sys`] serve all of them.
//!
//! `tests/architecture` holds the table of allowed edges between these modules and fails when one is added.

pub mod api;
pub mod cli;
pub mod config;
pub mod dns;
pub mod image;
pub mod manifest;
pub mod mux;
pub mod network;
pub mod outbound;
pub mod pod;
pub mod probe;
pub mod runtime;
pub mod shim;
pub mod sops;
pub mod source;
pub mod status;
pub mod store;
pub mod sync;
pub mod sys;
pub mod telemetry;
pub mod trust;
pub mod upstream;
pub mod volume;
pub mod worker;

//! podstead runs Kubernetes Pod manifests on a single host, without a cluster and without a container engine.
//!
//! Manifests from directories, git repositories, URLs, registries and bundles become one desired set; a sync loop makes the
//! host match it through an embedded OCI runtime; status flows back out to the local API.
//!
//! # The map
//!
//! Each module here is a crate of its own, in a folder of `src/`. Data flows through them in this order, and dependencies point along the
//! flow, never back:
//!
//! ```text
//!         bytes            objects           SET             ops              one per pod            actions
//! source  ------> manifest ------> store ---------> mux ------------> sync ------------> worker ------------> runtime image volume network
//! dir http git    decode, strict   undelta,         SET -> ADD,       one loop, one      plan (pure),         shim client, layer store,
//! oci bundle      defaults (pod),  last good        UPDATE, REMOVE,   select             then execute         mounts, namespaces
//!                 validation (pod) on disk          RECONCILE                               |
//!                                                                                           v
//!                                                                     status (pure: phase, conditions) ---> api, cli
//! ```
//!
//! * [`source`] fetches bytes and says what *revision* they are; it never interprets them. [`trust`] says who signed them.
//! * [`manifest`] turns bytes into strict, typed objects with positions; [`pod`] knows everything about a Pod that can be
//!   known without a host: defaults, validation, identity, hashes, environment, resource formulas.
//! * [`workload`] decides what Deployments, StatefulSets, DaemonSets, Jobs and CronJobs want; [`expand`] gives it memory, observations and
//!   the time, and adds the pods to the SETs on their way from [`store`] to [`mux`].
//! * [`service`] decides about Services: addresses, ports, endpoints, what packet rules need.
//! * [`policy`] decides about NetworkPolicies: which connections of pods are allowed, and what packet rules need for that.
//! * [`jsonpath`] makes text of objects by a template, as kubectl does.
//! * [`store`] keeps the last good version of every object, in memory ([`store`]'s undelta store) and on disk.
//! * [`mux`] compares each SET with what it knew and emits the operations of the kubelet's `PodConfig`.
//! * [`sync`] is the loop: it owns the pod workers and feeds them.
//! * [`worker`] serialises all work on one pod; its plan is a pure function from desired and observed state to actions.
//! * [`runtime`] drives `podstead-shim` processes ([`shim`]), one per pod, which own the containers.
//! * [`image`], [`volume`] and [`network`] prepare what a container needs; [`probe`] asks it how it is.
//! * [`job`] starts short-lived processes without rights, which read what others wrote: [`image::unpack_job`] unpacks layers,
//!   [`source::git::job`] reads git objects, [`fetch`] asks servers.
//! * [`dns`] answers pods that ask for names, from what [`status`] says of pods.
//! * [`status`] computes what the API shows; [`api`] serves it on a unix socket; [`cli`] asks for it.
//! * [`upstream`] shows the pods of this host to a cluster, where one is configured.
//! * [`manifest::sops`] opens encrypted manifests.
//! * [`config`], [`telemetry`], [`outbound`] (what connections to other hosts need) and [`sys`] serve all of them.
//!
//! * [`copy`] is what `podstead cp` and a process in the container say to each other.
//! * [`artifact`] is what a [`source`] hands to the [`store`]; [`container`] is what the daemon and the [`shim`] say to each other;
//!   [`settings`] are parts of the configuration that stages are given. [`daemon`] puts all of them together.
//!
//! `docs/contributing/workspace.md` lists the crates and what each depends on.

pub use podstead_api as api;
pub use podstead_artifact as artifact;
pub use podstead_cli as cli;
pub use podstead_config as config;
pub use podstead_container as container;
pub use podstead_copy as copy;
pub use podstead_daemon as daemon;
pub use podstead_dns as dns;
pub use podstead_expand as expand;
pub use podstead_fetch as fetch;
pub use podstead_image as image;
pub use podstead_job as job;
pub use podstead_jsonpath as jsonpath;
pub use podstead_libgit2 as libgit2;
pub use podstead_manifest as manifest;
pub use podstead_mux as mux;
pub use podstead_network as network;
pub use podstead_outbound as outbound;
pub use podstead_pod as pod;
pub use podstead_policy as policy;
pub use podstead_probe as probe;
pub use podstead_runtime as runtime;
pub use podstead_service as service;
pub use podstead_settings as settings;
pub use podstead_shim as shim;
pub use podstead_source as source;
pub use podstead_status as status;
pub use podstead_store as store;
pub use podstead_sync as sync;
pub use podstead_sys as sys;
pub use podstead_sys_async as sys_async;
pub use podstead_telemetry as telemetry;
pub use podstead_trust as trust;
pub use podstead_upstream as upstream;
pub use podstead_volume as volume;
pub use podstead_worker as worker;
pub use podstead_workload as workload;

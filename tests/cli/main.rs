//! The local API and the command line over it, with a runtime and images that are stubs: every request and every subcommand as a
//! user meets it, without containers.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has to fail")]

mod api_objects;
mod api_pods;
mod api_resources;
mod api_workloads;
mod commands;
mod completion;
mod configuration;
mod doctor;
mod door;
mod exec;
mod get_watch;
mod help;
mod host;
mod http;
mod jsonpath;
mod kubectl;
mod kubectl_discovery;
mod kubectl_watch;
mod logs;
mod page;
mod port_forward;
mod reference;
mod revisions;
mod stub;
mod watches;
mod width;
mod workloads;

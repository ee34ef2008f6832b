//! `podstead get`: objects as tables, or as JSON and YAML.

mod claims;
mod events;
mod images;
mod kinds;
mod listed;
mod output_args;
mod server_table;
mod sort;

pub(super) use claims::{ServedClaim, ask as ask_claims};
pub(super) use events::{seen_column, type_cell};
pub(super) use kinds::style_of;
pub(super) use listed::{HostArgs, TypeArgs, run_host_type as list_of_host, run_type as list};

use super::Context;
use super::object_type::ObjectType;
use clap::{Args, Subcommand};
pub(super) use output_args::OutputArgs;
use podstead_workload::object::WorkloadKind;
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, arg_required_else_help = true)]
pub(super) struct GetArgs {
    #[command(subcommand)]
    kind: Option<Kind>,
    #[command(flatten)]
    objects: listed::ObjectsArgs,
}

#[derive(Debug, Subcommand)]
enum Kind {
    /// Pods of this host; the "-<node>" suffix of a name may be omitted
    #[command(visible_aliases = ["pod", "po"])]
    Pods(TypeArgs),
    /// Pods, Services and workloads
    All(listed::ListOptions),
    /// Deployments
    #[command(visible_aliases = ["deployment", "deploy"])]
    Deployments(TypeArgs),
    /// ReplicaSets, also those of Deployments
    #[command(name = "replicasets", visible_aliases = ["replicaset", "rs"])]
    ReplicaSets(TypeArgs),
    /// StatefulSets
    #[command(name = "statefulsets", visible_aliases = ["statefulset", "sts"])]
    StatefulSets(TypeArgs),
    /// DaemonSets
    #[command(name = "daemonsets", visible_aliases = ["daemonset", "ds"])]
    DaemonSets(TypeArgs),
    /// Jobs, also those of CronJobs
    #[command(visible_alias = "job")]
    Jobs(TypeArgs),
    /// CronJobs; with -o wide also the next run, and why the last one was missed
    #[command(name = "cronjobs", visible_aliases = ["cronjob", "cj"])]
    CronJobs(TypeArgs),
    /// ReplicationControllers
    #[command(name = "replicationcontrollers", visible_aliases = ["replicationcontroller", "rc"])]
    ReplicationControllers(TypeArgs),
    /// Recent events
    #[command(visible_aliases = ["event", "ev"])]
    Events(events::EventsArgs),
    /// Sources of manifests and their status
    #[command(visible_alias = "source")]
    Sources(HostArgs),
    /// ConfigMaps of this host
    #[command(name = "configmaps", visible_aliases = ["configmap", "cm"])]
    ConfigMaps(TypeArgs),
    /// Secrets of this host, without their values
    #[command(visible_alias = "secret")]
    Secrets(TypeArgs),
    /// PersistentVolumeClaims, also released ones with data on disk, whose size is measured
    #[command(name = "persistentvolumeclaims", visible_aliases = ["persistentvolumeclaim", "pvc"])]
    PersistentVolumeClaims(TypeArgs),
    /// Services of this host
    #[command(name = "services", visible_aliases = ["service", "svc"])]
    Services(TypeArgs),
    /// NetworkPolicies of this host
    #[command(name = "networkpolicies", visible_aliases = ["networkpolicy", "netpol"])]
    NetworkPolicies(TypeArgs),
    /// Endpoints of Services
    #[command(name = "endpointslices", visible_alias = "endpointslice")]
    EndpointSlices(TypeArgs),
    /// Namespaces that objects are in
    #[command(visible_aliases = ["namespace", "ns"])]
    Namespaces(TypeArgs),
    /// This host
    #[command(visible_aliases = ["node", "no"])]
    Nodes(TypeArgs),
    /// Images on this host
    #[command(visible_alias = "image")]
    Images(HostArgs),
    /// Pulls under way
    #[command(visible_alias = "pull")]
    Pulls(HostArgs),
}

pub(super) fn run(args: &GetArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    let color = context.color();
    context.block_on(async {
        let typed = async |args, object_type| listed::run_type(args, object_type, &client, color).await;
        let of_host = async |args, object_type| listed::run_host_type(args, object_type, &client, color).await;
        let workloads = async |args, kind| typed(args, ObjectType::Workload(kind)).await;
        match &args.kind {
            None => listed::run_objects(&args.objects, &client, color).await,
            Some(Kind::All(options)) => listed::run_all(options, &client, color).await,
            Some(Kind::Deployments(args)) => workloads(args, WorkloadKind::Deployment).await,
            Some(Kind::ReplicaSets(args)) => workloads(args, WorkloadKind::ReplicaSet).await,
            Some(Kind::StatefulSets(args)) => workloads(args, WorkloadKind::StatefulSet).await,
            Some(Kind::DaemonSets(args)) => workloads(args, WorkloadKind::DaemonSet).await,
            Some(Kind::Jobs(args)) => workloads(args, WorkloadKind::Job).await,
            Some(Kind::CronJobs(args)) => workloads(args, WorkloadKind::CronJob).await,
            Some(Kind::ReplicationControllers(args)) => workloads(args, WorkloadKind::ReplicationController).await,
            Some(Kind::Pods(args)) => typed(args, ObjectType::Pod).await,
            Some(Kind::Events(args)) => events::run(args, &client, color).await,
            Some(Kind::Sources(args)) => of_host(args, ObjectType::Source).await,
            Some(Kind::ConfigMaps(args)) => typed(args, ObjectType::ConfigMap).await,
            Some(Kind::Secrets(args)) => typed(args, ObjectType::Secret).await,
            Some(Kind::PersistentVolumeClaims(args)) => typed(args, ObjectType::PersistentVolumeClaim).await,
            Some(Kind::Services(args)) => typed(args, ObjectType::Service).await,
            Some(Kind::NetworkPolicies(args)) => typed(args, ObjectType::NetworkPolicy).await,
            Some(Kind::EndpointSlices(args)) => typed(args, ObjectType::EndpointSlice).await,
            Some(Kind::Namespaces(args)) => typed(args, ObjectType::Namespace).await,
            Some(Kind::Nodes(args)) => typed(args, ObjectType::Node).await,
            Some(Kind::Images(args)) => of_host(args, ObjectType::Image).await,
            Some(Kind::Pulls(args)) => of_host(args, ObjectType::Pull).await,
        }
    })
}

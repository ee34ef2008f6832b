//! Pods as served by the daemon, for all subcommands about pods.

use super::client::{Client, ClientError, Target};
use super::pod_name::{self, PodNameError};
use clap::Args;
use k8s_openapi::api::core::v1::Pod;
use podstead_api::published::SOURCE_ANNOTATION;
use serde::Deserialize;
use serde_json::Value;

/// Namespaces to list. Unlike in a cluster the default is all of them, because one host has few pods.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct NamespaceArgs {
    /// Only this namespace [default: all]
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    pub(super) namespace: Option<String>,
    /// All namespaces, with a column NAMESPACE
    #[arg(short = 'A', long)]
    pub(super) all_namespaces: bool,
}

/// The namespace of the one object that is meant.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct PodNamespaceArgs {
    /// Namespace of the object; needed only if several have this name
    #[arg(short, long, value_name = "NAME")]
    pub(super) namespace: Option<String>,
}

/// A list as served.
#[derive(Debug, Deserialize)]
pub(super) struct ServedList {
    /// Metadata with the version from which a watch continues.
    pub(super) metadata: ServedListMetadata,
    /// The objects.
    pub(super) items: Vec<Value>,
}

/// `metadata` of a list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ServedListMetadata {
    /// The version from which a watch continues.
    pub(super) resource_version: String,
}

/// The path of pods, or of another kind, in a namespace or in all.
pub(super) fn collection(plural: &str, namespace: Option<&str>) -> Target {
    match namespace {
        Some(namespace) => Target::new("/api/v1/namespaces", &[namespace, plural]),
        None => Target::new("/api/v1", &[plural]),
    }
}

/// Errors of finding a pod by name.
#[derive(Debug, thiserror::Error)]
pub(super) enum FindPodError {
    /// The daemon did not answer.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The name means no pod.
    #[error(transparent)]
    Name(#[from] PodNameError),
}

/// All pods of a namespace or of all.
pub(super) async fn list(client: &Client, namespace: Option<&str>) -> Result<Vec<Pod>, ClientError> {
    let list: ServedList = client.get(collection("pods", namespace)).await?;
    list.items
        .into_iter()
        .map(|value| serde_json::from_value(value).map_err(|source| ClientError::NotUnderstood { source }))
        .collect()
}

/// The pod that a name on the command line means.
pub(super) async fn find(client: &Client, name: &str, namespace: Option<&str>) -> Result<Pod, FindPodError> {
    let pods = list(client, namespace).await?;
    Ok(pod_name::find(&pods, name, namespace)?.clone())
}

/// The path of a pod, or of a subresource of it.
pub(super) fn pod_target(pod: &Pod, subresource: &[&str]) -> Target {
    let mut segments = vec![namespace_of(pod), "pods", name_of(pod)];
    segments.extend_from_slice(subresource);
    Target::new("/api/v1/namespaces", &segments)
}

/// Its name.
pub(super) fn name_of(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

/// Its namespace.
pub(super) fn namespace_of(pod: &Pod) -> &str {
    pod.metadata.namespace.as_deref().unwrap_or_default()
}

/// As people read it: the namespace goes before the name unless it is the default one.
pub(super) fn shown_name(pod: &Pod) -> String {
    match namespace_of(pod) {
        "default" => name_of(pod).to_owned(),
        namespace => format!("{namespace}/{}", name_of(pod)),
    }
}

/// As the arguments of a subcommand.
pub(super) fn name_on_command_line(pod: &Pod) -> String {
    match namespace_of(pod) {
        "default" => name_of(pod).to_owned(),
        namespace => format!("{} -n {namespace}", name_of(pod)),
    }
}

/// The source that it comes from.
pub(super) fn source_of(pod: &Pod) -> &str {
    annotation(pod, SOURCE_ANNOTATION).unwrap_or("<none>")
}

/// The value of an annotation.
pub(super) fn annotation<'a>(pod: &'a Pod, name: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

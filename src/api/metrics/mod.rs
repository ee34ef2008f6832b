//! Monitoring endpoints of a kubelet, for the same tools.
//!
//! In: what was published, and the kernel's counters. Out: text for Prometheus, and `/stats/summary`. Everything is read when somebody asks;
//! nothing is counted or kept in between.

pub(crate) mod api;
mod cadvisor;
pub(crate) mod disk;
mod doors;
mod exposition;
mod own;
#[cfg(test)]
mod page_test;
mod resource;
mod summary;
mod usage;

pub use doors::serve_monitoring;

use super::Backend;
use super::failure::ApiFailure;
use super::kinds::Page;
use super::respond::{self, Answer};
use k8s_openapi::api::core::v1::Pod;
use podstead_pod::SourceId;
use podstead_runtime::WaitCause;
use podstead_sys::proc_stat::process_usage;
use podstead_workload::object::WorkloadKind;
use serde_json::Value;
use std::sync::Arc;
use usage::Snapshot;

/// Answers with a page.
pub(super) async fn page(backend: &Backend, page: Page) -> Answer {
    match page {
        Page::Own => {
            let (_, published) = backend.published.pods().list();
            let pods: Vec<Pod> = published.iter().map(|pod| pod.object()).collect();
            let kinds = WorkloadKind::ALL.into_iter();
            let workloads = kinds.flat_map(|kind| backend.published.workloads(kind).list().1);
            let workloads: Vec<Value> = workloads.map(|workload| workload.object()).collect();
            let process = process_usage().map_err(|error| ApiFailure::internal(format!("read /proc: {error}")))?;
            let sources = backend.published.sources();
            let contact = |id: &SourceId| backend.wakers.get(id.as_str()).and_then(|waker| waker.looks().contact);
            let view = Arc::clone(&backend.services);
            let figures = tokio::task::spawn_blocking(move || view.figures()).await;
            let figures = figures.map_err(|error| ApiFailure::internal(format!("read the figures of Services: {error}")))?;
            let pulls = backend.images.pulls();
            let images = own::Images {
                figures: backend.images.pull_figures(),
                running: pulls.len(),
                waiting: WaitCause::ALL.map(|cause| pulls.iter().filter(|pull| pull.cause() == Some(cause)).count()),
                store: backend.images.figures().await,
            };
            let observed = own::Own {
                sources: &sources,
                contact: &contact,
                pods: &pods,
                workloads: &workloads,
                network: &figures,
                hooks: &backend.hooks.borrow(),
                images,
                process,
                started_at: backend.started_at,
            };
            respond::metrics(own::own(&observed))
        }
        Page::Resource => respond::metrics(resource::resource(&look(backend).await?)),
        Page::Cadvisor => respond::metrics(cadvisor::cadvisor(&look(backend).await?)),
        Page::Summary => respond::json(&summary::summary(&look(backend).await?)),
    }
}

async fn look(backend: &Backend) -> Result<Snapshot, ApiFailure> {
    let backend = backend.clone();
    let looked = tokio::task::spawn_blocking(move || usage::look(&backend)).await;
    let failed = |error: &dyn std::fmt::Display| ApiFailure::internal(format!("read resource usage of pods: {error}"));
    looked.map_err(|error| failed(&error))?.map_err(|error| failed(&error))
}

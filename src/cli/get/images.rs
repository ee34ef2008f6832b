//! Notes beside the table of images.

use crate::client::{Client, OWN, Target};
use podstead_api::show::human_size;
use podstead_runtime::ImageUsage;
use podstead_telemetry::counted;
use serde::Deserialize;

/// The part of the list that no table has.
#[derive(Debug, Deserialize)]
struct ServedImages {
    usage: ImageUsage,
}

/// States the space of all images: layers that several have count once.
pub(super) async fn total(client: &Client) -> anyhow::Result<String> {
    let ServedImages { usage } = client.get(Target::new(OWN, &["images"])).await?;
    let ImageUsage { images, disk_bytes, unused_bytes, free_bytes, all_bytes, .. } = usage;
    Ok(format!(
        "{}: {} on disk, {} of it unused; {} of {} free",
        counted(images, "image"),
        human_size(disk_bytes),
        human_size(unused_bytes),
        human_size(free_bytes),
        human_size(all_bytes)
    ))
}

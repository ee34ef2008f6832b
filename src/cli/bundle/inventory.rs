//! `podstead bundle inventory`, and inventories that `podstead bundle create --since` reads.
//!
//! A layer is of use to a host only above the layers that it was made for. So an inventory has the layers of each image in their order, and a layer is
//! left out of a bundle only where the host has all layers below it, too.

use crate::client::{Client, OWN, Target};
use crate::context::Context;
use anyhow::{Context as _, bail};
use clap::Args;
use podstead_container::digest::Digest;
use podstead_telemetry::counted;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const API_VERSION: &str = "podstead.dev/v1alpha1";
const KIND: &str = "BundleInventory";
/// Largest inventory, in bytes: some thousand images.
const MAX_BYTES: u64 = 16 << 20;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct InventoryArgs {
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The images of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Inventory {
    api_version: String,
    kind: String,
    images: Vec<InventoryImage>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct InventoryImage {
    /// For people.
    references: Vec<String>,
    /// Digests of the layers as they were fetched, lowest first.
    layers: Vec<Digest>,
}

/// The list of images, as the API has it, with more fields.
#[derive(Deserialize)]
struct Listed {
    items: Vec<ListedImage>,
}

#[derive(Deserialize)]
struct ListedImage {
    references: Vec<String>,
    layers: Vec<Digest>,
}

pub(super) fn run(args: &InventoryArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    let inventory = context.block_on(of_host(&client))?;
    let mut bytes = serde_json::to_vec_pretty(&inventory)?;
    bytes.push(b'\n');
    match &args.output {
        Some(path) => {
            std::fs::write(path, bytes).with_context(|| format!("write {}", path.display()))?;
            writeln!(io::stdout(), "{}: {}", path.display(), counted(inventory.images.len(), "image"))?;
        }
        None => io::stdout().write_all(&bytes)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn of_host(client: &Client) -> anyhow::Result<Inventory> {
    let Listed { items } = client.get(Target::new(OWN, &["images"])).await?;
    let images = items.into_iter().map(|ListedImage { references, layers }| InventoryImage { references, layers }).collect();
    Ok(Inventory { api_version: API_VERSION.into(), kind: KIND.into(), images })
}

impl Inventory {
    /// Reads a file, if it is one by its beginning.
    pub(super) fn read(path: &Path) -> anyhow::Result<Option<Self>> {
        let mut bytes = Vec::new();
        let mut file = File::open(path)?;
        (&mut file).take(1).read_to_end(&mut bytes)?;
        // A tar archive begins with the name of a file.
        if bytes != b"{" {
            return Ok(None);
        }
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_BYTES {
            bail!("an inventory has at most {MAX_BYTES} bytes");
        }
        Self::parse(&bytes).map(Some)
    }

    fn parse(bytes: &[u8]) -> anyhow::Result<Self> {
        let inventory: Self = serde_json::from_slice(bytes).context("it is neither a bundle nor an inventory")?;
        match (inventory.api_version.as_str(), inventory.kind.as_str()) {
            (API_VERSION, KIND) => Ok(inventory),
            (version, kind) => bail!("it is a {kind} of {version}, and not a {KIND} of {API_VERSION}"),
        }
    }

    /// Each layer with all layers below it, lowest first.
    pub(super) fn stacks(&self) -> BTreeSet<Vec<Digest>> {
        let of_image =
            |image: &InventoryImage| (1..=image.layers.len()).map(|count| image.layers[..count].to_vec()).collect::<Vec<_>>();
        self.images.iter().flat_map(of_image).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inventory(images: &[&[&str]]) -> Inventory {
        let image = |layers: &&[&str]| InventoryImage {
            references: vec!["a:1".into()],
            layers: layers.iter().map(|layer| Digest::of(layer.as_bytes())).collect(),
        };
        Inventory { api_version: API_VERSION.into(), kind: KIND.into(), images: images.iter().map(image).collect() }
    }

    #[test]
    fn layers_count_above_those_that_they_were_made_for() {
        let [a, b, c] = ["a", "b", "c"].map(|layer| Digest::of(layer.as_bytes()));
        let stacks = inventory(&[&["a", "b"], &["a", "c"]]).stacks();
        assert_eq!(stacks, BTreeSet::from([vec![a], vec![a, b], vec![a, c]]));
    }

    #[test]
    fn inventory_is_read_back_and_other_files_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let at = |content: &[u8]| {
            let path = directory.path().join("file");
            std::fs::write(&path, content).unwrap();
            Inventory::read(&path).map_err(|error| format!("{error:#}"))
        };
        let written = inventory(&[&["a"]]);
        assert_eq!(at(&serde_json::to_vec(&written).unwrap()), Ok(Some(written)));
        assert_eq!(at(b"podstead-bundle.json\0"), Ok(None));
        assert_eq!(at(b""), Ok(None));
        assert!(at(b"{}").unwrap_err().contains("neither a bundle nor an inventory"));
        let other = r#"{"apiVersion": "v2", "kind": "BundleInventory", "images": []}"#;
        assert!(at(other.as_bytes()).unwrap_err().contains("a BundleInventory of v2"));
        assert!(at(&vec![b'{'; (16 << 20) + 1]).unwrap_err().contains("at most"));
    }
}

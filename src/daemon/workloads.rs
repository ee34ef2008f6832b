//! The host, the known pods and the images, as the expansion of workloads needs them.

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{LocalObjectReference, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use podstead_config::Config;
use podstead_expand::{ClaimData, KnownPod, TemplateImages, Warm, owner};
use podstead_mux::ObjectView;
use podstead_pod::claims::ClaimName;
use podstead_pod::containers::PullPolicy;
use podstead_pod::{Pod, pull_secrets};
use podstead_runtime::{ImageError, ImageService, PullSecrets};
use podstead_sync::Recovered;
use podstead_telemetry::error_chain;
use podstead_volume::Volumes;
use podstead_workload::host_fit::Host;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The host as workloads select it: the labels of the configuration, those that a kubelet gives its node, and the older names of these that every
/// cluster gives it as well.
pub fn host(config: &Config, labels: &BTreeMap<String, String>) -> Host {
    let name = config.node_name.to_string();
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let own = [
        ("kubernetes.io/hostname", name.as_str()),
        ("kubernetes.io/arch", architecture),
        ("kubernetes.io/os", "linux"),
        ("beta.kubernetes.io/arch", architecture),
        ("beta.kubernetes.io/os", "linux"),
    ];
    let mut all: BTreeMap<String, String> = own.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    all.extend(labels.clone());
    Host { name, labels: all }
}

/// The pods of workloads of which records exist.
pub(super) fn known(recovered: &Recovered) -> Vec<KnownPod> {
    let known = recovered.all().filter_map(|(desired, is_terminating)| {
        let owner = owner(&desired.pod, &desired.full_name.namespace)?;
        Some(KnownPod { uid: desired.uid.clone(), owner, name: desired.full_name.name.clone(), is_terminating })
    });
    known.collect()
}

/// Claims of the volume store.
#[derive(Debug)]
pub(super) struct DiskClaims(pub(super) Arc<Volumes>);

#[async_trait]
impl ClaimData for DiskClaims {
    fn is_disposable(&self, namespace: &str, name: &str) -> bool {
        self.0.is_disposable(&ClaimName { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    async fn deleted(&self) {
        self.0.deleted().await;
    }
}

/// The image store with the Secrets of sources.
#[derive(Debug)]
pub(super) struct StoreImages {
    pub(super) images: Arc<dyn ImageService>,
    pub(super) objects: Arc<ObjectView>,
}

#[async_trait]
impl TemplateImages for StoreImages {
    async fn again(&self) {
        let mut retries = self.images.retries();
        retries.mark_unchanged();
        if retries.changed().await.is_err() {
            // There is no other occasion.
            std::future::pending().await
        }
    }

    async fn ensure(&self, image: &str, policy: PullPolicy, of: &Warm) -> Result<(), String> {
        let (source, namespace) = (&of.source, of.key.namespace.to_string());
        let references = of.pull_secrets.iter().map(|name| LocalObjectReference { name: name.clone() }).collect();
        let pod = Pod {
            metadata: ObjectMeta { namespace: Some(namespace), ..ObjectMeta::default() },
            spec: Some(PodSpec { image_pull_secrets: Some(references), ..PodSpec::default() }),
            status: None,
        };
        let objects = self.objects.get();
        let (secrets, _) = pull_secrets::find(&pod, objects.seen_by(source));
        let of_host = objects.sharing().uses_registry_credentials(source);
        let secrets = PullSecrets::new(&secrets).with_host_credentials(of_host);
        if policy == PullPolicy::IfNotPresent {
            match self.images.ensure(image, PullPolicy::Never, &secrets).await {
                Ok(_) => return Ok(()),
                // Its registry may have signatures that are not kept here.
                Err(ImageError::NeverPull(_) | ImageError::NotAllowed(_) | ImageError::Refused { .. }) => {}
                Err(error) => return Err(error_chain(&error).to_string()),
            }
        }
        let ensured = match of.is_served {
            true => self.images.ensure_update(image, policy, &secrets).await,
            false => self.images.ensure(image, policy, &secrets).await,
        };
        ensured.map(drop).map_err(|error| error_chain(&error).to_string())
    }
}

//! Parts of the configuration that count without a restart, beside sources and hooks.

use podstead_config::{Config, ImagesConfig};
use podstead_container::protocol::LogLimits;
use podstead_image::{ImageStore, RegistrySettings, StoreSettings, default_auth_files};
use podstead_runtime::client::ShimRuntime;
use podstead_worker::backoff::BackoffPolicy;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// The configuration as it is now.
pub(super) type LiveConfig = watch::Receiver<Arc<Config>>;

/// Rotation of the logs of pods that start from now on.
pub(super) const fn log_limits(config: &Config) -> LogLimits {
    LogLimits { max_bytes: config.log_rotation.max_size, max_files: config.log_rotation.max_files }
}

/// Ways to reach registries.
pub(super) fn registry_settings(config: &Config) -> RegistrySettings {
    RegistrySettings {
        registries: config.registries.clone(),
        auth_files: if config.default_auth_files { default_auth_files() } else { Vec::new() },
        hosts: Some(config.registries_directory.clone()),
    }
}

/// Limits, space and times of images.
pub(super) fn store_settings(config: &Config) -> StoreSettings {
    let ImagesConfig { limits, reserve, collection, bandwidth, windows } = config.images.clone();
    let (parallel_layers, minimum_rate) = (config.max_parallel_layer_pulls, config.minimum_pull_rate);
    StoreSettings { limits, reserve, collection, parallel_layers, minimum_rate, bandwidth, windows }
}

/// Settings of stages that are told of changes.
#[derive(Debug)]
pub(super) struct Told {
    /// Back-off of crashing containers.
    pub(super) crash_loop: watch::Sender<BackoffPolicy>,
    /// Directories of CDI specs.
    pub(super) cdi_directories: watch::Sender<Vec<PathBuf>>,
}

/// Applies changes to the stages that keep settings.
pub(super) async fn follow(mut configs: LiveConfig, runtime: Arc<ShimRuntime>, images: Arc<ImageStore>, told: Told) -> Infallible {
    let mut registries = registry_settings(&configs.borrow());
    let mut store = store_settings(&configs.borrow());
    loop {
        changed(&mut configs).await;
        let config = Arc::clone(&configs.borrow_and_update());
        runtime.set_log_limits(log_limits(&config));
        images.set_policy(config.image_policy.clone());
        let settings = registry_settings(&config);
        // Connections and tokens are kept unless something changed.
        if registries != settings {
            registries = settings.clone();
            images.set_registries(settings);
        }
        let settings = store_settings(&config);
        // Those who wait for something look again.
        if store != settings {
            store = settings.clone();
            images.set_settings(settings);
        }
        told.crash_loop.send_replace(BackoffPolicy::crash_loop(config.crash_loop_max));
        told.cdi_directories.send_replace(config.cdi_directories.clone());
    }
}

/// Runs a server with its part of the configuration, while there is one, and starts it again when that part changes.
pub(super) async fn serve<T, F>(mut configs: LiveConfig, part: impl Fn(&Config) -> Option<T>, serve: impl Fn(T) -> F) -> Infallible
where
    T: Clone + PartialEq,
    F: Future<Output = Infallible>,
{
    loop {
        let current = part(&configs.borrow_and_update());
        let other = async {
            while part(&configs.borrow()) == current {
                changed(&mut configs).await;
            }
        };
        match current.clone() {
            // The server may be dropped at any await: clients ask again.
            Some(current) => tokio::select! {
                never = serve(current) => match never {},
                () = other => {}
            },
            None => other.await,
        }
    }
}

/// Waits for a change. The sender lives as long as the daemon.
async fn changed(configs: &mut LiveConfig) {
    if configs.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

//! Changing the devices of a pod's running containers when one is plugged in or unplugged.

use super::backoff::{BackoffPolicy, Failure};
use super::event_subject::subject;
use super::host_devices;
use super::plugged::{Change, DeviceWork, change};
use super::pod_worker::PodWorker;
use super::services::Services;
use podstead_container::{ContainerState, ContainerStatus, ObservedPod};
use podstead_pod::devices::DeviceRequest;
use podstead_status::{PluggedDevices, reason};
use podstead_sys_async::clock::Moment;
use podstead_telemetry::error_chain;
use podstead_telemetry::events::EventType;
use std::path::Path;
use std::sync::Arc;

impl PodWorker {
    /// Registers a pod that names devices, and tries again at once what waits for one when something was plugged in.
    pub(super) fn look_for_devices(&mut self, services: &Services) {
        let desired = &self.definition.desired;
        if self.definition.devices.is_empty() {
            services.devices.remove(&desired.uid);
            return;
        }
        services.devices.add(&desired.uid);
        let changes = services.devices.changes();
        if std::mem::replace(&mut self.devices.seen, changes) != changes {
            self.devices.failure = None;
            self.state.devices_changed();
        }
    }

    /// Gives running containers the devices that are there, and takes those away that are not. Returns when to try again.
    pub(super) async fn plug_devices(&mut self, services: &Arc<Services>, observed: &ObservedPod) -> Option<Moment> {
        let requests = self.definition.devices.clone();
        if requests.is_empty() {
            self.devices = DeviceWork { seen: self.devices.seen, ..DeviceWork::default() };
            return None;
        }
        let (asked, now) = (requests.clone(), services.clock.now().moment);
        let find = move || {
            let find = |request: &DeviceRequest| host_devices::find(&request.selector, Path::new(host_devices::SYSFS));
            asked.iter().map(find).collect::<Vec<_>>()
        };
        let found = match tokio::task::spawn_blocking(find).await {
            Ok(found) => found,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        let absent = requests.iter().zip(&found).filter_map(|(request, found)| {
            let absent = found.as_ref().err()?;
            Some(format!("device {}: {}", request.name, error_chain(absent)))
        });
        self.devices.shown = Some(PluggedDevices { absent: absent.collect() });
        if let Some(failure) = self.devices.failure.as_ref().filter(|failure| !failure.is_due(now)) {
            return Some(failure.retry_at);
        }
        let is_running = |run: &&ContainerStatus| matches!(run.state, ContainerState::Running { .. });
        let changes: Vec<Change> = observed
            .containers
            .iter()
            .filter(is_running)
            .filter_map(|run| change(run, observed.plugged.get(&run.id)?, &requests, &found))
            .collect();
        let mut failed = None;
        for change in changes {
            if let Err(message) = self.plug(services, &change).await {
                failed = Some(message);
            }
        }
        self.devices.failure = failed
            .map(|message| Failure::again(self.devices.failure.as_ref(), &BackoffPolicy::retry(), reason::ERROR, message, now));
        self.devices.failure.as_ref().map(|failure| failure.retry_at)
    }

    async fn plug(&self, services: &Arc<Services>, change: &Change) -> Result<(), String> {
        let Change { id, container, wanted, attached, detached } = change;
        let desired = &self.definition.desired;
        let subject = subject(desired, Some(container));
        if let Err(error) = services.runtime.plug_devices(&desired.uid, id, wanted).await {
            let message = format!("cannot change the devices of container {container}: {}", error_chain(&error));
            if self.devices.failure.as_ref().is_none_or(|failure| failure.message != message) {
                services.events.record(&subject, EventType::Warning, "FailedAttachDevice", &message);
            }
            return Err(message);
        }
        for name in detached {
            let message = format!("Device {name} was unplugged: container {container} cannot open it any more");
            services.events.record(&subject, EventType::Warning, "DeviceDetached", &message);
        }
        for name in attached {
            let message = format!("Device {name} was plugged in: container {container} has it again");
            services.events.record(&subject, EventType::Normal, "DeviceAttached", &message);
        }
        Ok(())
    }
}

//! Advice for pods that do not run. **Pure**.

/// A command or a hint for a pod's status; `None` where there is nothing to do but wait. `ended` is the reason of the last run's end,
/// `name` the pod's, `container` the one that the status is about, `origin` the place of the pod's manifest.
pub(super) fn advice(
    status: &str,
    ended: Option<&str>,
    name: &str,
    container: Option<&str>,
    origin: Option<&str>,
) -> Option<String> {
    let of_container = container.map(|container| format!(" -c {container}")).unwrap_or_default();
    let manifest = origin.unwrap_or("the manifest");
    // The advice for init containers is the same.
    let status = status.strip_prefix("Init:").unwrap_or(status);
    match (status, ended) {
        ("CrashLoopBackOff", Some("OOMKilled")) | ("OOMKilled", _) => {
            Some(format!("raise resources.limits.memory in {manifest}, or reduce the memory usage of the container"))
        }
        ("CrashLoopBackOff", Some("StartError" | "ContainerCannotRun")) | ("StartError" | "ContainerCannotRun", _) => {
            Some(format!("fix the command or the image of container {} in {manifest}", container.unwrap_or_default()))
        }
        ("CrashLoopBackOff", _) => Some(format!("podstead logs -p {name}{of_container}")),
        ("Error" | "Failed", _) => Some(format!("podstead logs {name}{of_container}")),
        // The container that caused the restart shows the reason.
        ("RestartingAllContainers", _) => Some(format!(
            "podstead describe pod {name}: all its containers are restarted together because of restartPolicyRules in {manifest}"
        )),
        ("ErrImagePull" | "ImagePullBackOff", _) => Some(format!(
            "podstead describe pod {name}; check the image name and the registry, or import the image (podstead image import)"
        )),
        ("SignatureValidationFailed", _) => Some(format!("podstead describe pod {name}; sign the image, or change imagePolicy")),
        ("ErrImageNeverPull", _) => Some("import the image (podstead image import), or change imagePullPolicy".into()),
        ("InvalidImageName", _) => Some(format!("fix the image name in {manifest}")),
        ("HostPortConflict", _) => Some(format!("change hostPort in {manifest}, or stop the program that uses the port")),
        ("CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" | "PostStartHookError", _) => {
            Some(format!("podstead describe pod {name}"))
        }
        ("DeviceMissing", _) => Some("plug in the device; containers that run get it back without a restart".into()),
        ("DeadlineExceeded", _) => Some("activeDeadlineSeconds was exceeded; change the manifest to run the pod again".into()),
        ("ContainerCreating" | "PodInitializing" | "Pending" | "Running" | "NotReady" | "Unknown", _) => {
            Some(format!("podstead describe pod {name}, if this persists"))
        }
        ("Stopped", _) => Some(format!("podstead start {name}")),
        ("Terminating", _) => None,
        // How far initialisation is.
        (progress, _) if progress.split_once('/').is_some_and(|(done, _)| done.parse::<u32>().is_ok()) => {
            Some(format!("podstead describe pod {name}, if this persists"))
        }
        (code, _) if code.starts_with("ExitCode:") || code.starts_with("Signal:") => {
            Some(format!("podstead logs {name}{of_container}"))
        }
        _ => Some(format!("podstead describe pod {name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_something_to_do_about_every_failure() {
        let cases = [
            ("CrashLoopBackOff", None, "podstead logs -p web -c app"),
            ("Init:CrashLoopBackOff", Some("Error"), "podstead logs -p web -c app"),
            ("CrashLoopBackOff", Some("OOMKilled"), "raise resources.limits.memory in web.yaml:1:1"),
            ("Init:StartError", Some("StartError"), "fix the command or the image of container app in web.yaml:1:1"),
            ("ExitCode:3", None, "podstead logs web -c app"),
            (
                "RestartingAllContainers",
                Some("RestartingAllContainers"),
                "podstead describe pod web: all its containers are restarted together because of restartPolicyRules in web.yaml:1:1",
            ),
            ("Init:RestartingAllContainers", None, "podstead describe pod web: all its containers are restarted together"),
            ("ImagePullBackOff", None, "podstead describe pod web; check"),
            ("HostPortConflict", None, "change hostPort in web.yaml:1:1"),
            ("Init:0/2", None, "podstead describe pod web, if this persists"),
            ("SomethingNew", None, "podstead describe pod web"),
        ];
        for (status, ended, expected) in cases {
            let advice = advice(status, ended, "web", Some("app"), Some("web.yaml:1:1")).unwrap();
            assert!(advice.starts_with(expected), "{status}: {advice}");
        }
        assert_eq!(advice("Terminating", None, "web", None, None), None);
    }
}

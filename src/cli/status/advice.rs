//! What a person can do about a pod that does not run. **Pure**.

/// A command or a hint for a pod's status; `None` where there is nothing to do but wait. `name` is the pod's, `container` the one that
/// the status is about.
pub(in crate::cli) fn advice(status: &str, name: &str, container: Option<&str>) -> Option<String> {
    let of_container = container.map(|container| format!(" -c {container}")).unwrap_or_default();
    // What goes wrong in an init container is mended in the same way.
    let status = status.strip_prefix("Init:").unwrap_or(status);
    match status {
        "CrashLoopBackOff" => Some(format!("podstead logs -p {name}{of_container}")),
        "Error" | "Failed" => Some(format!("podstead logs {name}{of_container}")),
        "OOMKilled" => Some("raise resources.limits.memory, or find out what needs so much".into()),
        "ErrImagePull" | "ImagePullBackOff" => {
            Some(format!("podstead describe pod {name}; check name and registry, or import the image (podstead image import)"))
        }
        "ErrImageNeverPull" => Some("import the image (podstead image import), or change imagePullPolicy".into()),
        "InvalidImageName" => Some("mend the image's name in the manifest".into()),
        "CreateContainerConfigError"
        | "CreateContainerError"
        | "RunContainerError"
        | "PostStartHookError"
        | "ContainerCannotRun" => Some(format!("podstead describe pod {name}")),
        "DeadlineExceeded" => Some("activeDeadlineSeconds is over; change the manifest to run it again".into()),
        "ContainerCreating" | "PodInitializing" | "Pending" | "Running" | "NotReady" | "Unknown" => {
            Some(format!("podstead describe pod {name}, if it stays so"))
        }
        "Terminating" => None,
        // How far initialisation is.
        progress if progress.split_once('/').is_some_and(|(done, _)| done.parse::<u32>().is_ok()) => {
            Some(format!("podstead describe pod {name}, if it stays so"))
        }
        code if code.starts_with("ExitCode:") || code.starts_with("Signal:") => Some(format!("podstead logs {name}{of_container}")),
        _ => Some(format!("podstead describe pod {name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_something_to_do_about_every_failure() {
        let cases = [
            ("CrashLoopBackOff", "podstead logs -p web -c app"),
            ("Init:CrashLoopBackOff", "podstead logs -p web -c app"),
            ("ExitCode:3", "podstead logs web -c app"),
            ("ImagePullBackOff", "podstead describe pod web; check"),
            ("Init:0/2", "podstead describe pod web, if it stays so"),
            ("SomethingNew", "podstead describe pod web"),
        ];
        for (status, expected) in cases {
            let advice = advice(status, "web", Some("app")).unwrap();
            assert!(advice.starts_with(expected), "{status}: {advice}");
        }
        assert_eq!(advice("Terminating", "web", None), None);
    }
}

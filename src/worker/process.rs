//! The first process of a container: arguments, environment, directory, user and stop signal, from pod and image. Nothing here asks
//! the host.

use podstead_container::{ImageConfig, ProcessUser};
use podstead_pod::security::RunAs;
use podstead_pod::signal::signal_number;

/// Default `PATH`, used when neither image nor pod sets one.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const SIGTERM: i32 = 15;

/// Arguments by Kubernetes' table: `command` replaces the image's entrypoint and its command, `args` replace the image's command.
pub(super) fn arguments(command: Vec<String>, args: Vec<String>, image: &ImageConfig) -> Vec<String> {
    let (first, second) = if !command.is_empty() {
        (command, args)
    } else if !args.is_empty() {
        (image.entrypoint.clone(), args)
    } else {
        (image.entrypoint.clone(), image.cmd.clone())
    };
    first.into_iter().chain(second).collect()
}

/// The image's variables, then HOSTNAME (and TERM for a terminal), then the container's, each replacing earlier ones of its name. PATH
/// is always there.
pub(super) fn environment(image: &ImageConfig, hostname: &str, tty: bool, declared: &[(String, String)]) -> Vec<String> {
    let mut environment: Vec<(String, String)> = Vec::new();
    let mut set = |name: &str, value: &str| match environment.iter_mut().find(|(known, _)| known == name) {
        Some(variable) => value.clone_into(&mut variable.1),
        None => environment.push((name.to_owned(), value.to_owned())),
    };
    set("PATH", DEFAULT_PATH);
    set("HOSTNAME", hostname);
    if tty {
        set("TERM", "xterm");
    }
    for variable in &image.env {
        let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
        set(name, value);
    }
    for (name, value) in declared {
        set(name, value);
    }
    environment.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
}

/// Variables that come with devices replace those of their names.
pub(super) fn with_variables(mut environment: Vec<String>, more: Vec<String>) -> Vec<String> {
    for variable in more {
        let name = variable.split_once('=').map_or(variable.as_str(), |(name, _)| name);
        environment.retain(|known| known.split_once('=').is_none_or(|(known, _)| known != name));
        environment.push(variable);
    }
    environment
}

/// The container's working directory, else the image's, else `/`.
pub(super) fn working_directory(declared: Option<&str>, image: &ImageConfig) -> String {
    let written = declared.filter(|path| !path.is_empty()).unwrap_or(&image.working_dir);
    match written {
        "" => "/".to_owned(),
        path if path.starts_with('/') => path.to_owned(),
        path => format!("/{path}"),
    }
}

/// The user to look up in the image's user database.
pub(super) fn user_to_resolve(run_as: &RunAs, image: &ImageConfig) -> String {
    run_as.uid.map_or_else(|| image.user.clone(), |uid| uid.to_string())
}

/// The resolved user with the pod's groups.
pub(super) fn with_groups(run_as: &RunAs, resolved: ProcessUser) -> ProcessUser {
    let ProcessUser { uid, gid, additional_gids } = resolved;
    let gid = run_as.gid.and_then(|gid| u32::try_from(gid).ok()).unwrap_or(gid);
    let mut groups = if run_as.image_groups { additional_gids } else { Vec::new() };
    for group in run_as.supplemental.iter().filter_map(|group| u32::try_from(*group).ok()) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    ProcessUser { uid, gid, additional_gids: groups }
}

/// `runAsNonRoot`, in the kubelet's words. The kubelet cannot look a name up; here it is looked up.
pub(super) fn check_non_root(run_as: &RunAs, user: &ProcessUser, pod: &str, container: &str) -> Result<(), String> {
    match (run_as.non_root, run_as.uid, user.uid) {
        (true, Some(0), _) => Err(format!("container's runAsUser breaks non-root policy (pod: \"{pod}\", container: {container})")),
        (true, _, 0) => {
            Err(format!("container has runAsNonRoot and image will run as root (pod: \"{pod}\", container: {container})"))
        }
        (true | false, _, _) => Ok(()),
    }
}

/// `lifecycle.stopSignal`, else the image's, else SIGTERM. What cannot be read counts as absent.
pub(super) fn stop_signal(declared: Option<&str>, image: &ImageConfig) -> i32 {
    declared.and_then(signal_number).or_else(|| image.stop_signal.as_deref().and_then(signal_number)).unwrap_or(SIGTERM)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    fn image() -> ImageConfig {
        ImageConfig {
            entrypoint: strings(&["/entry"]),
            cmd: strings(&["cmd"]),
            env: strings(&["A=image", "PATH=/image", "EMPTY"]),
            stop_signal: Some("SIGQUIT".into()),
            ..ImageConfig::default()
        }
    }

    fn root() -> ProcessUser {
        ProcessUser { uid: 0, gid: 0, additional_gids: vec![] }
    }

    fn anyone() -> RunAs {
        RunAs { uid: None, gid: None, non_root: false, supplemental: vec![], image_groups: true }
    }

    #[test]
    fn command_and_args_replace_entrypoint_and_cmd_as_in_kubernetes() {
        for (command, args, expected) in [
            (&[][..], &[][..], &["/entry", "cmd"][..]),
            (&[], &["a"], &["/entry", "a"]),
            (&["c"], &[], &["c"]),
            (&["c"], &["a"], &["c", "a"]),
        ] {
            assert_eq!(arguments(strings(command), strings(args), &image()), expected, "{command:?} {args:?}");
        }
    }

    #[test]
    fn the_containers_variables_replace_the_images_and_path_is_always_there() {
        let declared = [("A".to_owned(), "pod".to_owned()), ("B".to_owned(), "=".to_owned())];
        assert_eq!(environment(&image(), "web", false, &declared), ["PATH=/image", "HOSTNAME=web", "A=pod", "EMPTY=", "B=="]);
        let bare = environment(&ImageConfig::default(), "web", true, &[]);
        assert_eq!(bare, [&format!("PATH={DEFAULT_PATH}"), "HOSTNAME=web", "TERM=xterm"]);
    }

    #[test]
    fn the_working_directory_is_absolute() {
        let image = ImageConfig { working_dir: "srv".into(), ..ImageConfig::default() };
        assert_eq!(working_directory(None, &image), "/srv");
        assert_eq!(working_directory(Some("/tmp"), &image), "/tmp");
        assert_eq!(working_directory(Some(""), &ImageConfig::default()), "/");
    }

    #[test]
    fn groups_of_the_pod_are_added_and_strict_drops_the_images() {
        let resolved = ProcessUser { uid: 5, gid: 5, additional_gids: vec![7] };
        let run_as = RunAs { gid: Some(9), supplemental: vec![7, 8], ..anyone() };
        let user = with_groups(&run_as, resolved.clone());
        assert_eq!(user, ProcessUser { uid: 5, gid: 9, additional_gids: vec![7, 8] });
        let strict = RunAs { image_groups: false, supplemental: vec![8], ..anyone() };
        assert_eq!(with_groups(&strict, resolved).additional_gids, [8]);
    }

    #[test]
    fn non_root_is_refused_in_the_kubelets_words() {
        let non_root = RunAs { non_root: true, ..anyone() };
        assert!(
            check_non_root(&non_root, &root(), "p", "c").unwrap_err().starts_with("container has runAsNonRoot and image will run")
        );
        let as_root = RunAs { uid: Some(0), ..non_root.clone() };
        assert!(
            check_non_root(&as_root, &root(), "p", "c").unwrap_err().starts_with("container's runAsUser breaks non-root policy")
        );
        assert!(check_non_root(&non_root, &ProcessUser { uid: 7, ..root() }, "p", "c").is_ok());
        assert!(check_non_root(&anyone(), &root(), "p", "c").is_ok());
    }

    #[test]
    fn the_stop_signal_is_the_manifests_then_the_images_then_sigterm() {
        assert_eq!(stop_signal(None, &image()), 3);
        assert_eq!(stop_signal(Some("SIGINT"), &image()), 2);
        assert_eq!(stop_signal(None, &ImageConfig::default()), 15);
    }
}

//! Subcommands of kubectl, docker and systemctl that podstead does not have: the error says what to type. **Pure** but for
//! the output.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::io::{self, Write};
use std::process::ExitCode;

/// Exit code of a command line that is not understood, as clap has it.
const USAGE: u8 = 2;

/// Command to type instead of `docker run`.
const RUN_HINT: &str = "it takes a manifest and no image: podstead run -f FILE; podstead import run 'docker run ...' writes one";

/// Prints what clap has to say of a command line that it does not run: an error, or a help.
pub(super) fn report(error: &clap::Error) -> ExitCode {
    // A closed stream is not an error.
    if let Some((word, hint)) = word_of(error).filter(|_| is_of("rollout")).and_then(|word| Some((word, rollout_hint(word)?))) {
        writeln!(io::stderr(), "podstead rollout: there is no subcommand {word:?}: {hint}").ok();
        return ExitCode::from(USAGE);
    }
    if is_word(error) && is_of("run") {
        writeln!(io::stderr(), "podstead run: {RUN_HINT}").ok();
        return ExitCode::from(USAGE);
    }
    match word_of(error).filter(|word| is_first(word)).and_then(|word| Some((word, hint(word)?))) {
        Some((word, hint)) => {
            writeln!(io::stderr(), "podstead: there is no subcommand {word:?}: {hint}").ok();
            ExitCode::from(USAGE)
        }
        None => {
            error.print().ok();
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE))
        }
    }
}

/// Reports whether the error is about a word that no argument is for.
fn is_word(error: &clap::Error) -> bool {
    let argument = error.get(ContextKind::InvalidArg);
    error.kind() == ErrorKind::UnknownArgument && matches!(argument, Some(ContextValue::String(word)) if !word.starts_with('-'))
}

/// The unknown subcommand.
fn word_of(error: &clap::Error) -> Option<&str> {
    match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word))) => Some(word),
        (_, _) => None,
    }
}

/// Reports whether the word is the subcommand itself, and not one of a subcommand.
fn is_first(word: &str) -> bool {
    let known = super::command();
    let mut arguments = std::env::args().skip(1);
    arguments.find(|argument| argument == word || known.find_subcommand(argument).is_some()).as_deref() == Some(word)
}

/// Reports whether the subcommand is this one.
fn is_of(subcommand: &str) -> bool {
    let known = super::command();
    let mut arguments = std::env::args().skip(1);
    arguments.find(|argument| known.find_subcommand(argument).is_some()).as_deref() == Some(subcommand)
}

/// Command to type instead of one of `kubectl rollout`.
fn rollout_hint(word: &str) -> Option<&'static str> {
    Some(match word {
        "restart" => "podstead restart TYPE/NAME replaces the pods of a workload one after the other",
        "undo" => "podstead rollback returns the source to an earlier revision",
        "pause" | "resume" => "edit spec.paused in the manifest; podstead suspend and podstead resume hold a source",
        _ => return None,
    })
}

/// Command to type instead.
fn hint(word: &str) -> Option<&'static str> {
    Some(match word {
        "apply" | "create" | "edit" | "patch" | "replace" | "set" | "scale" | "label" | "annotate" | "expose" => {
            "objects come from sources: change the manifest there; for a writable source, kubectl does it (see podstead kubeconfig)"
        }
        "delete" | "rm" | "remove" => {
            "remove the manifest from its source; podstead stop stops a pod, podstead restart replaces it, podstead image rm and podstead \
             volume prune remove images and data"
        }
        "events" => "podstead get events lists them",
        "explain" => "kubectl explain describes fields (see podstead kubeconfig), and podstead validate checks them",
        "ps" | "ls" | "list" | "pods" => "podstead get pods lists pods, podstead get all lists workloads and Services, too",
        "images" => "podstead image ls lists images",
        "pull" | "push" | "load" | "save" => "podstead image --help lists what can be done with images",
        "volumes" => "podstead volume ls lists the data of claims",
        "inspect" | "show" | "why" => "podstead describe pod NAME shows a pod and its events, podstead status what is wrong",
        "kill" | "down" => "podstead stop stops pods until they are started",
        "up" | "play" | "kube" => "put manifests into a source (podstead get sources), or run one once with podstead run -f FILE",
        "wait" => "podstead rollout status waits for a workload, podstead sync --wait for a source",
        "reload" => "the daemon follows its configuration and its sources by itself; podstead sync fetches them now",
        "refresh" | "fetch" | "reconcile" => "podstead sync fetches sources now",
        "cordon" | "uncordon" | "drain" | "taint" => "pods of this host have no other host; podstead stop stops them",
        "hold" | "pause" | "freeze" => "podstead suspend holds a source at its revision; podstead stop stops a pod",
        "undo" | "revert" => "podstead rollback returns a source to an earlier revision",
        "backup" | "restore" => "podstead volume export and podstead volume import save and restore the data of claims",
        "debug" => "podstead exec runs a program in a container, and podstead doctor checks the host",
        "sh" | "shell" | "ssh" => "podstead exec -it POD -- sh starts a shell in a container",
        "tail" => "podstead logs -f follows the log of a pod",
        "login" | "logout" => "files of docker login and podman login are read here; imagePullSecrets of pods work, too",
        "update" | "upgrade" => "apt upgrade podstead does it; pods keep running",
        "stats" => "podstead top shows the usage of pods",
        "compose" => "podstead import compose FILE makes manifests of a compose file",
        "secret" | "configmap" => {
            "put its manifest into a source; podstead get secrets and podstead get configmaps list what is there"
        }
        "enable" | "disable" => "systemctl enable podstead lets the daemon start at boot; podstead stop stops a pod",
        "journal" => "journalctl -u podstead shows the log of the daemon",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_hint_is_about_a_subcommand_that_exists() {
        let error = super::super::command().try_get_matches_from(["podstead", "apply"]).unwrap_err();
        assert_eq!(word_of(&error), Some("apply"));
        for subcommand in super::super::command().get_subcommands() {
            assert_eq!(hint(subcommand.get_name()), None, "{}", subcommand.get_name());
        }
    }

    #[test]
    fn hints_name_subcommands_that_exist() {
        let known = super::super::command();
        for word in [
            "hold", "undo", "backup", "shell", "login", "apply", "delete", "events", "ps", "images", "pull", "volumes", "inspect",
            "kill", "up", "wait", "reload", "drain", "stats", "compose", "secret", "enable",
        ] {
            let hint = hint(word).unwrap();
            let named = hint.split("podstead ").skip(1).filter_map(|rest| rest.split([' ', ';', ',', ')']).next());
            for name in named.filter(|name| !["does", "lets"].contains(name)) {
                assert!(known.find_subcommand(name).is_some(), "{word}: {name}");
            }
        }
    }
}

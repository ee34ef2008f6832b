//! A row of a table.

use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The part of a scenario that can be seen in the world. What else it says is for the plan.
#[derive(Debug, Deserialize)]
pub(super) struct Row {
    /// A sentence.
    pub(super) name: String,
    /// The wanted pod.
    pub(super) pod: Value,
    /// The pod before.
    pub(super) was: Option<Value>,
    /// ConfigMaps with their data.
    #[serde(default)]
    pub(super) config_maps: BTreeMap<String, BTreeMap<String, String>>,
    /// The ConfigMaps before; the same unless given.
    pub(super) config_maps_were: Option<BTreeMap<String, BTreeMap<String, String>>>,
    /// Its sandbox, if there is one.
    pub(super) sandbox: Option<Sandbox>,
    /// Its containers as the daemon finds them.
    #[serde(default)]
    pub(super) containers: Vec<Run>,
    /// Results of probes.
    #[serde(default)]
    pub(super) probes: BTreeMap<String, Said>,
    /// Images that are not there.
    #[serde(default)]
    pub(super) images: BTreeMap<String, Image>,
    /// Containers that were asked to end, and have so many seconds left: they do not end by themselves.
    #[serde(default)]
    pub(super) stopping: BTreeMap<String, u64>,
    /// Containers that do not end by themselves either.
    #[serde(default)]
    pub(super) stubborn: BTreeSet<String>,
    /// Stages of postStart hooks.
    #[serde(default)]
    pub(super) post_start: BTreeMap<String, Stage>,
    /// Stages of preStop hooks.
    #[serde(default)]
    pub(super) pre_stop: BTreeMap<String, Stage>,
    /// A volume of the pod cannot be made.
    #[serde(default)]
    pub(super) volumes_failed: bool,
    /// Its manifest is gone, or it is over.
    pub(super) end: Option<End>,
    /// The outcome, by container; of its `sandbox` and other things, too. `None` for what cannot be provoked.
    pub(super) world: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Sandbox {
    state: Option<String>,
    #[serde(default)]
    attempt: u32,
}

#[derive(Debug, Deserialize)]
pub(super) struct Run {
    pub(super) name: String,
    #[serde(default)]
    pub(super) attempt: u32,
    /// `running`, `created`, `unknown` or an exit code.
    pub(super) state: String,
    /// Attempt of its sandbox, where that is not there any more.
    pub(super) sandbox: Option<u32>,
    /// Number of restarts of all containers before.
    #[serde(default)]
    pub(super) round: u32,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(super) enum Said {
    Starting,
    Unready,
    Startup,
    Liveness,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(super) enum Image {
    Present,
    Pulling,
    Failed,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(super) enum Stage {
    Owed,
    Running,
    Ended,
    Failed,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(super) enum End {
    /// Seconds ago, which are for the plan.
    Removed(u64),
    Finished(u64),
}

/// The rows of a table that have a world.
pub(super) fn rows(table: &str) -> Vec<Row> {
    let documents = serde_yaml::Deserializer::from_str(table);
    documents.map(|document| Row::deserialize(document).unwrap()).filter(|row| row.world.is_some()).collect()
}

/// The signal that makes a container end with this code.
pub(super) fn signal_for(code: &str) -> nix::sys::signal::Signal {
    use nix::sys::signal::Signal;
    match code {
        "0" => Signal::SIGUSR1,
        "1" => Signal::SIGUSR2,
        "2" => Signal::SIGPROF,
        "111" => Signal::SIGHUP,
        "42" => Signal::SIGALRM,
        "137" => Signal::SIGKILL,
        other => panic!("no signal makes a container end with {other}"),
    }
}

impl Row {
    /// The last run that the row has of a container; `None` if nothing was made of it yet.
    pub(super) fn run(&self, name: &str) -> Option<&Run> {
        self.containers.iter().filter(|run| run.name == name).max_by_key(|run| run.attempt)
    }

    /// Number of that run; 0 without one.
    pub(super) fn attempt(&self, name: &str) -> u32 {
        self.run(name).map_or(0, |run| run.attempt)
    }

    /// Containers in the order of their start, before the daemon goes: name, and whether the next ones wait for their end.
    pub(super) fn order(&self) -> Vec<(String, bool)> {
        containers(self.was.as_ref().unwrap_or(&self.pod))
    }

    /// Names of all containers, of those too that only were or only will be.
    pub(super) fn names(&self) -> BTreeSet<String> {
        let all = containers(&self.pod).into_iter().chain(self.was.as_ref().map(containers).unwrap_or_default());
        all.map(|(name, _)| name).collect()
    }

    /// Number of restarts of all containers.
    pub(super) fn rounds(&self) -> u32 {
        self.containers.iter().map(|run| run.round).max().unwrap_or(0)
    }

    /// The container whose end restarts all.
    pub(super) fn trigger(&self) -> Option<&str> {
        let lists = ["initContainers", "containers"].iter().filter_map(|list| self.pod[list].as_array());
        let is_it = |container: &&Value| {
            container["restartPolicyRules"]
                .as_array()
                .is_some_and(|rules| rules.iter().any(|rule| rule["action"] == "RestartAllContainers"))
        };
        lists.flatten().find(is_it).and_then(|container| container["name"].as_str())
    }

    /// True if the daemon finds its sandbox dead. So it is too where a row has another one without anything in it.
    pub(super) fn loses_sandbox(&self) -> bool {
        self.sandbox.as_ref().is_some_and(|sandbox| match sandbox.state.as_deref() {
            Some("Lost") => true,
            _ => sandbox.attempt > 0 && !self.is_in_second_sandbox(),
        })
    }

    /// True if it runs in its second sandbox when the daemon goes.
    pub(super) fn is_in_second_sandbox(&self) -> bool {
        let is_second = self.sandbox.as_ref().is_some_and(|sandbox| sandbox.attempt > 0);
        is_second && self.containers.iter().any(|run| run.sandbox.is_none())
    }

    /// True if the container fails by a probe as soon as there is a daemon.
    pub(super) fn is_sick(&self, name: &str) -> bool {
        self.probes.get(name).is_some_and(|said| matches!(said, Said::Startup | Said::Liveness))
    }

    /// The code with which a container ends when it is asked to. Rows may begin after an end that a daemon is the reason for; here that
    /// daemon is the next one.
    pub(super) fn code_when_asked(&self, name: &str) -> Option<&str> {
        let state = self.run(name)?.state.as_str();
        let is_end = !matches!(state, "running" | "created" | "unknown");
        (is_end && (state == "143" || self.is_sick(name))).then_some(state)
    }

    /// True if a container goes on when it is asked to end.
    pub(super) fn is_stubborn(&self, name: &str) -> bool {
        self.stubborn.contains(name) || (self.stopping.contains_key(name) && !self.pre_stop.contains_key(name))
    }
}

fn containers(spec: &Value) -> Vec<(String, bool)> {
    let mut order = Vec::new();
    for (list, is_init) in [("initContainers", true), ("containers", false)] {
        for container in spec[list].as_array().into_iter().flatten() {
            let waits = is_init && container["restartPolicy"] != "Always";
            order.push((container["name"].as_str().unwrap().to_owned(), waits));
        }
    }
    order
}

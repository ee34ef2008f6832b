//! The tables of `tests/scenarios` once more, on real pods: what a plan says there is seen here in processes, cgroups, mounts and logs.
//!
//! One daemon runs all pods of a few tables ([`table`], their manifests are in [`manifest`]). They are brought as near to their row as a pod
//! that runs can be ([`reach`]). Then the daemon is killed, and while it is away containers end, records go, sandboxes die and manifests
//! change ([`away`]). The next daemon finds each pod in the state of its row, and makes the world as the row says ([`world`], [`facts`]).

mod away;
mod back_off;
mod expansion;
mod facts;
mod host_files;
mod logs;
mod manifest;
mod order;
mod quality;
mod reach;
mod row;
mod shim_line;
mod snapshot;
mod stops;
mod table;
mod world;

#[test]
fn d2_d3_d4_pods_become_what_their_tables_say() {
    table::check(&[
        ("plain", include_str!("../../scenarios/cases/actions-plain.yaml")),
        ("main", include_str!("../../scenarios/cases/main-containers.yaml")),
        ("sandboxes", include_str!("../../scenarios/cases/sandboxes.yaml")),
    ]);
}

#[test]
fn d6_init_container_pods_follow_their_tables() {
    table::check(&[
        ("init", include_str!("../../scenarios/cases/actions-init.yaml")),
        ("more-init", include_str!("../../scenarios/cases/init-containers.yaml")),
    ]);
}

#[test]
fn d7_sidecar_pods_follow_their_tables() {
    table::check(&[
        ("sidecars", include_str!("../../scenarios/cases/actions-sidecars.yaml")),
        ("more-sidecars", include_str!("../../scenarios/cases/sidecars.yaml")),
    ]);
}

#[test]
fn d5_restart_rule_pods_follow_their_tables() {
    table::check(&[
        ("rules", include_str!("../../scenarios/cases/restart-rules.yaml")),
        ("all", include_str!("../../scenarios/cases/restart-all-containers.yaml")),
    ]);
}

#[test]
fn edited_pods_become_what_their_tables_say() {
    table::check(&[
        ("edits", include_str!("../../scenarios/cases/edits.yaml")),
        ("resize", include_str!("../../scenarios/cases/resize.yaml")),
        ("objects", include_str!("../../scenarios/cases/objects.yaml")),
    ]);
}

#[test]
fn d12_d15_hook_and_probe_pods_follow_tables() {
    table::check(&[
        ("hooks", include_str!("../../scenarios/cases/hooks.yaml")),
        ("probes", include_str!("../../scenarios/cases/probes.yaml")),
        ("ends", include_str!("../../scenarios/cases/ends.yaml")),
    ]);
}

#[test]
fn d14_pods_have_phase_that_their_table_says() {
    table::check(&[("phases", include_str!("phases.yaml"))]);
}

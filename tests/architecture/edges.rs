//! Which module of the crate may depend on which. Along the flow of the crate page, never back.

/// One module and what it may name.
pub(crate) struct Row {
    /// The module.
    pub(crate) from: &'static str,
    /// The modules that it may depend on.
    pub(crate) to: &'static [&'static str],
}

/// The table.
pub(crate) const ROWS: &[Row] = &[
    // What everybody may use.
    // Cgroups are made for pods: their limits and tiers are the pod's own types.
    Row { from: "sys", to: &["pod"] },
    Row { from: "pod", to: &["manifest"] },
    // Values are opened where their places are known.
    Row { from: "manifest", to: &["sops"] },
    Row { from: "sops", to: &[] },
    Row { from: "telemetry", to: &["pod"] },
    // Connections to other hosts: trust, secrets, what went wrong.
    Row { from: "outbound", to: &[] },
    // `image` and `source` for what the configuration says about registries and about places that manifests come from.
    // `trust` for what signatures are for unless the configuration says so.
    Row { from: "config", to: &["image", "manifest", "pod", "source", "sys", "telemetry", "trust"] },
    Row { from: "trust", to: &[] },
    // The flow.
    // `trust`: a source refuses a revision before it reports it.
    Row { from: "source", to: &["outbound", "pod", "sys", "telemetry", "trust"] },
    Row { from: "store", to: &["config", "manifest", "pod", "sops", "source", "status", "sys", "telemetry"] },
    Row { from: "mux", to: &["manifest", "pod", "source", "store", "telemetry"] },
    Row { from: "image", to: &["outbound", "pod", "sys", "telemetry"] },
    Row { from: "runtime", to: &["config", "image", "pod", "shim", "sys", "telemetry"] },
    Row { from: "shim", to: &["config", "image", "pod", "runtime", "sys"] },
    Row { from: "volume", to: &["config", "image", "mux", "pod", "runtime", "sys", "telemetry"] },
    Row { from: "network", to: &["config", "pod", "sys", "telemetry"] },
    // `runtime`: probes by exec run in containers.
    Row { from: "probe", to: &["pod", "runtime", "sys", "telemetry"] },
    // `status`: it is told what is published of pods.
    Row { from: "dns", to: &["config", "mux", "pod", "status", "sys", "telemetry"] },
    Row { from: "status", to: &["manifest", "mux", "pod", "runtime", "source"] },
    Row {
        from: "worker",
        // `source` for the revision that a pod record carries.
        to: &[
            "config",
            "image",
            "manifest",
            "mux",
            "network",
            "pod",
            "probe",
            "runtime",
            "source",
            "status",
            "sys",
            "telemetry",
            "volume",
        ],
    },
    Row {
        from: "sync",
        to: &["config", "image", "mux", "network", "pod", "runtime", "status", "sys", "telemetry", "volume", "worker"],
    },
    Row {
        from: "api",
        to: &["config", "image", "manifest", "mux", "pod", "runtime", "source", "status", "sys", "telemetry", "volume"],
    },
    // `api` for the pods as they are published.
    Row { from: "upstream", to: &["api", "config", "outbound", "pod", "status", "sys", "telemetry"] },
    Row {
        from: "cli",
        to: &[
            "api",
            "config",
            "dns",
            "image",
            "manifest",
            "mux",
            "network",
            "pod",
            "probe",
            "runtime",
            "shim",
            "sops",
            "source",
            "status",
            "store",
            "sync",
            "sys",
            "telemetry",
            "upstream",
            "volume",
            "worker",
        ],
    },
];

/// What `from` may depend on; `None` for a module without a row.
pub(crate) fn allowed_from(from: &str) -> Option<&'static [&'static str]> {
    ROWS.iter().find(|row| row.from == from).map(|row| row.to)
}

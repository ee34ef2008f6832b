//! Limits of the kernel that many pods run into.

use super::finding::Finding;
use super::host::{Host, names};

/// Observed state; `None` for values that the kernel does not report.
#[derive(Debug, Default)]
struct Observed {
    inotify_instances: Option<u64>,
    inotify_watches: Option<u64>,
    pid_max: Option<u64>,
    threads_max: Option<u64>,
    /// Threads of all processes.
    threads: Option<u64>,
    open_files: Option<u64>,
    file_max: Option<u64>,
    /// Of the daemon.
    daemon_open_files: Option<u64>,
    daemon_nofile: Option<u64>,
    /// Bits that the random number generator has been given; 256 once it is ready.
    entropy: Option<u64>,
}

pub(super) fn check(host: &Host) -> Vec<Finding> {
    judge(&look(host))
}

fn look(host: &Host) -> Observed {
    let number = |path: &str| host.files.number(path);
    let field = |path: &str, index: usize| host.files.read(path)?.split_whitespace().nth(index)?.parse::<u64>().ok();
    // `0.20 0.18 0.12 1/80 11206`: running and existing threads.
    let threads = host.files.read("/proc/loadavg").and_then(|text| {
        let (_, all) = text.split_whitespace().nth(3)?.split_once('/')?;
        all.parse().ok()
    });
    let pid = host.answers.as_ref().ok().map(|answers| answers.daemon.pid);
    let of_daemon = |file: &str| pid.map(|pid| format!("/proc/{pid}/{file}"));
    let nofile = of_daemon("limits").and_then(|path| host.files.read(&path)).and_then(|limits| {
        limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next()?.parse().ok())
    });
    let open = of_daemon("fd").map(|path| names(&host.files.at(&path)).len()).filter(|open| *open > 0);
    Observed {
        inotify_instances: number("/proc/sys/fs/inotify/max_user_instances"),
        inotify_watches: number("/proc/sys/fs/inotify/max_user_watches"),
        pid_max: number("/proc/sys/kernel/pid_max"),
        threads_max: number("/proc/sys/kernel/threads-max"),
        threads,
        open_files: field("/proc/sys/fs/file-nr", 0),
        file_max: number("/proc/sys/fs/file-max"),
        daemon_open_files: open.and_then(|open| u64::try_from(open).ok()),
        daemon_nofile: nofile,
        entropy: number("/proc/sys/kernel/random/entropy_avail"),
    }
}

fn judge(observed: &Observed) -> Vec<Finding> {
    let mut findings = Vec::new();
    let persist = |setting: &str| format!("sysctl -w {setting}, and set it in /etc/sysctl.d");
    if let Some(instances) = observed.inotify_instances.filter(|instances| *instances < 128) {
        findings.push(Finding::warning(
            format!("only {instances} inotify instances are allowed per user"),
            "programs in pods and the daemon share this number; when none is left, the daemon notices changed manifests only when it polls",
            persist("fs.inotify.max_user_instances=512"),
        ));
    }
    if let Some(watches) = observed.inotify_watches.filter(|watches| *watches < 8192) {
        findings.push(Finding::warning(
            format!("only {watches} inotify watches are allowed per user"),
            "programs in pods and the daemon share this number",
            persist("fs.inotify.max_user_watches=65536"),
        ));
    }
    let ceiling = [observed.pid_max, observed.threads_max].into_iter().flatten().min();
    if let (Some(threads), Some(ceiling)) = (observed.threads, ceiling)
        && is_nearly(threads, ceiling)
    {
        findings.push(Finding::problem(
            format!("{threads} of {ceiling} possible threads are in use"),
            "no program can be started when the limit is reached",
            format!(
                "find the processes with many threads (ps -eLf), limit pods with podPidsLimit, or {}",
                persist("kernel.pid_max=4194304")
            ),
        ));
    } else if let Some(ceiling) = ceiling.filter(|ceiling| *ceiling < 4096) {
        let why = "every thread of every pod counts";
        findings.push(Finding::warning(format!("the host allows only {ceiling} threads"), why, persist("kernel.pid_max=32768")));
    }
    if let (Some(open), Some(max)) = (observed.open_files, observed.file_max)
        && is_nearly(open, max)
    {
        let why = "no file can be opened when the limit is reached";
        findings.push(Finding::problem(format!("{open} of {max} possible files are open"), why, persist("fs.file-max=1048576")));
    }
    if let (Some(open), Some(limit)) = (observed.daemon_open_files, observed.daemon_nofile) {
        let remedy = "set LimitNOFILE=1048576 in the unit";
        if is_nearly(open, limit) {
            let what = format!("the daemon has {open} of {limit} possible files open");
            findings.push(Finding::problem(what, "it cannot manage more pods", remedy));
        } else if limit < 4096 {
            let what = format!("the daemon may open only {limit} files");
            findings.push(Finding::warning(what, "it needs one for the shim of each pod, and more for images and logs", remedy));
        }
    }
    if let Some(bits) = observed.entropy.filter(|bits| *bits < 64) {
        findings.push(Finding::warning(
            format!("the random number generator has {bits} bits of entropy"),
            "until it has enough, TLS connections are delayed",
            "run rngd or jitterentropy-rngd, or give the machine a hardware generator (virtio-rng)",
        ));
    }
    if findings.is_empty() {
        let threads = match (observed.threads, ceiling) {
            (Some(threads), Some(ceiling)) => format!("{threads} of {ceiling} threads"),
            _ => "all limits are sufficient".to_owned(),
        };
        findings.push(Finding::ok(threads));
    }
    findings
}

/// More than nine tenths.
fn is_nearly(used: u64, limit: u64) -> bool {
    used > limit / 10 * 9
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::{self, Ok, Problem, Warning};
    use super::*;

    #[test]
    fn what_is_nearly_used_up_is_a_problem_and_what_is_small_a_warning() {
        let severities = |observed: Observed| judge(&observed).iter().map(|finding| finding.severity).collect::<Vec<Severity>>();
        let well = || Observed {
            inotify_instances: Some(128),
            inotify_watches: Some(65536),
            pid_max: Some(32768),
            threads_max: Some(60000),
            threads: Some(800),
            open_files: Some(1000),
            file_max: Some(100_000),
            daemon_open_files: Some(40),
            daemon_nofile: Some(1 << 20),
            entropy: Some(256),
        };
        assert_eq!(severities(well()), [Ok]);
        assert_eq!(severities(Observed::default()), [Ok], "what the kernel does not tell is no finding");
        assert_eq!(severities(Observed { inotify_instances: Some(8), ..well() }), [Warning]);
        assert_eq!(severities(Observed { inotify_watches: Some(100), ..well() }), [Warning]);
        assert_eq!(severities(Observed { threads: Some(32000), ..well() }), [Problem]);
        assert_eq!(severities(Observed { pid_max: Some(2000), ..well() }), [Warning]);
        assert_eq!(severities(Observed { open_files: Some(99_000), ..well() }), [Problem]);
        assert_eq!(severities(Observed { daemon_open_files: Some(1000), daemon_nofile: Some(1024), ..well() }), [Problem]);
        assert_eq!(severities(Observed { daemon_nofile: Some(1024), ..well() }), [Warning]);
        assert_eq!(severities(Observed { entropy: Some(3), ..well() }), [Warning]);
    }
}

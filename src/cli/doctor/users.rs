//! IDs of the host for user namespaces of pods, which no other user should have.

use super::finding::Finding;
use super::host::Host;
use podstead_settings::{Clash, ID_FILES, IdRange, sentence};
use podstead_telemetry::counted;

pub(super) fn check(host: &Host) -> Vec<Finding> {
    let range = host.config.as_ref().map(|config| config.user_namespaces).unwrap_or_default();
    let clashes = ID_FILES.map(|file| (file, host.files.read(file).map(|text| range.clashes(&text)).unwrap_or_default()));
    judge(range, &clashes)
}

fn judge(range: IdRange, clashes: &[(&str, Vec<Clash>)]) -> Vec<Finding> {
    let told = clashes.iter().flat_map(|(file, clashes)| clashes.iter().map(move |clash| told(range, file, clash)));
    let mut findings: Vec<Finding> = told.collect();
    if findings.is_empty() {
        findings
            .push(Finding::ok(format!("IDs {range} are free for {}", counted(usize::try_from(range.pods).unwrap_or(0), "pod"))));
    }
    findings
}

fn told(range: IdRange, file: &str, clash: &Clash) -> Finding {
    Finding::warning(
        sentence(range, file, clash),
        "a pod with hostUsers: false and that user could have the same UIDs on the host",
        "set userNamespaces.firstId in the configuration to an unused multiple of 65536; running pods keep their IDs",
    )
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity;
    use super::*;

    #[test]
    fn a_user_with_ids_of_pods_is_named_with_file_and_line() {
        let range = IdRange { first: 65536, pods: 1 };
        let found = judge(range, &[("/etc/subuid", range.clashes("a:1:2\nbob:100000:65536")), ("/etc/subgid", Vec::new())]);
        assert_eq!(
            found[0].what,
            "/etc/subuid:2 assigns IDs 100000 to 165535 to bob, but userNamespaces assigns 65536 to 131071 to pods"
        );
        assert_eq!((found.len(), found[0].severity), (1, Severity::Warning));
        assert_eq!(judge(range, &[]), [Finding::ok("IDs 65536 to 131071 are free for 1 pod")]);
    }
}

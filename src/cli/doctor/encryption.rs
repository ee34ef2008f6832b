//! The keys that open encrypted manifests.

use super::finding::Finding;
use super::host::Host;
use podstead_config::age_keys;

/// Observed state.
#[derive(Debug)]
struct Observed {
    /// The configured file, its error, and the problem of its mode.
    file: Option<(String, Option<String>, Option<String>)>,
    is_root: bool,
}

pub(super) fn check(host: &Host) -> Vec<Finding> {
    let configured = host.config.as_ref().ok().and_then(|config| config.age_key_file.clone());
    let file = configured.map(|path| {
        let problem = age_keys::check(&path).err().map(|error| format!("{error:#}"));
        (path.display().to_string(), problem, age_keys::exposure(&path))
    });
    judge(&Observed { file, is_root: host.is_root })
}

fn judge(observed: &Observed) -> Vec<Finding> {
    let Some((path, problem, exposure)) = &observed.file else {
        return vec![Finding::ok(
            "no ageKeyFile is configured: encrypted manifests are decrypted with the systemd credential podstead.age-key, if it exists",
        )];
    };
    let mut findings = vec![match problem {
        None => Finding::ok(format!("the keys in {path} are usable")),
        Some(_) if !observed.is_root => Finding::note(format!("this user cannot read {path}"), "", "sudo podstead doctor"),
        Some(problem) => Finding::problem(
            format!("cannot use the keys for encrypted manifests: {problem}"),
            "encrypted objects keep their last accepted version, or are missing if there is none",
            format!("restore {path} or correct ageKeyFile in the configuration, then run podstead sync"),
        ),
    }];
    if let Some(exposure) = exposure {
        let why = "anyone who can read it can decrypt every encrypted Secret of the repository";
        findings.push(Finding::problem(exposure, why, format!("chmod 600 {path}")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::{self, Note, Ok as Well, Problem};
    use super::*;

    #[test]
    fn a_configured_key_is_readable_for_root_and_for_nobody_else() {
        let severities = |problem: Option<&str>, exposure: Option<&str>, is_root| {
            let file = Some(("/k".to_owned(), problem.map(str::to_owned), exposure.map(str::to_owned)));
            judge(&Observed { file, is_root }).iter().map(|finding| finding.severity).collect::<Vec<Severity>>()
        };
        assert_eq!(severities(None, None, true), [Well]);
        assert_eq!(severities(Some("not found"), None, true), [Problem]);
        assert_eq!(severities(Some("permission denied"), None, false), [Note]);
        assert_eq!(severities(None, Some("age key file /k has mode 0644"), true), [Well, Problem]);
        let none = judge(&Observed { file: None, is_root: true });
        assert_eq!((none.len(), none[0].severity), (1, Well));
    }

    #[test]
    fn a_file_without_a_key_is_a_problem() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("age.key");
        assert!(format!("{:#}", age_keys::check(&path).unwrap_err()).contains("read age key file"));
        std::fs::write(&path, "# no key\n").unwrap();
        assert!(age_keys::check(&path).is_err());
    }
}

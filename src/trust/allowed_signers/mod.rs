//! The file of allowed signers: "ALLOWED SIGNERS" of ssh-keygen(1), the one that git's `gpg.ssh.allowedSignersFile` names.
//!
//! Stricter than OpenSSH, which passes over lines that it does not understand: a file with such a line is refused as a whole, with the
//! line's number, so that a trusted key is never silently absent.

mod line;
mod option;
mod pattern;

use super::key::PublicKey;
use super::{Signer, TrustError};
use jiff::Timestamp;
use line::Line;
use std::fmt;

/// Bytes of the file.
const MAX_SIZE: usize = 1 << 20;
/// Problems that are reported.
const MAX_PROBLEMS: usize = 20;

/// Keys that may sign, with namespaces and validity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedSigners {
    lines: Vec<Line>,
}

/// Problem with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SignersProblem {
    /// The line, from 1; 0 for the file as a whole.
    pub line: u32,
    /// Message in lower case, without a final period.
    pub message: String,
}

impl fmt::Display for SignersProblem {
    /// `line 3: unknown option "touch-required"`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.message),
            line => write!(f, "line {line}: {}", self.message),
        }
    }
}

impl AllowedSigners {
    /// Parses a file; on any fault, returns all of them (the first 20).
    pub fn parse(bytes: &[u8]) -> Result<Self, Vec<SignersProblem>> {
        let whole = |message: String| vec![SignersProblem { line: 0, message }];
        if bytes.len() > MAX_SIZE {
            return Err(whole(format!("the file is larger than {MAX_SIZE} bytes")));
        }
        let (mut lines, mut problems) = (Vec::new(), Vec::new());
        for (number, bytes) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            let parsed = std::str::from_utf8(bytes).map_err(|_| "the line is not UTF-8".to_owned()).and_then(line::parse);
            match parsed {
                Ok(line) => lines.extend(line),
                Err(message) => problems.push(SignersProblem { line: number, message }),
            }
            if problems.len() == MAX_PROBLEMS {
                break;
            }
        }
        match (problems.is_empty(), lines.is_empty()) {
            (false, _) => Err(problems),
            (true, true) => Err(whole("the file has no keys".to_owned())),
            (true, false) => Ok(Self { lines }),
        }
    }

    /// Returns the owner of the key, if it may sign for `namespace` at `at`. If several lines have the key, one that allows it is enough.
    pub(super) fn signer(&self, key: &PublicKey, namespace: &str, at: Timestamp) -> Result<Signer, TrustError> {
        let mut refusal = None;
        for line in self.lines.iter().filter(|line| line.key == *key) {
            match line.judge(namespace, at) {
                Ok(signer) => return Ok(signer),
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        Err(refusal.unwrap_or_else(|| TrustError::UnknownKey { key: key.fingerprint() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::put_string;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    fn blob(byte: u8) -> Vec<u8> {
        let mut blob = Vec::new();
        put_string(&mut blob, b"ssh-ed25519");
        put_string(&mut blob, &[byte; 32]);
        blob
    }

    fn key(byte: u8) -> String {
        format!("ssh-ed25519 {}", STANDARD.encode(blob(byte)))
    }

    fn public(byte: u8) -> PublicKey {
        PublicKey::parse(&blob(byte)).unwrap()
    }

    fn parse(text: &str) -> AllowedSigners {
        AllowedSigners::parse(text.as_bytes()).unwrap()
    }

    fn problem(text: &str) -> String {
        AllowedSigners::parse(text.as_bytes()).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    const NOW: &str = "2026-01-01T00:00:00Z";

    #[test]
    fn comments_and_empty_lines_are_passed_over_and_a_line_may_end_with_a_comment_or_cr() {
        let signers = parse(&format!("# people\n\n \t# more\nann@example.org {} ann's laptop\r\n\"bob b\"\t{}", key(1), key(2)));
        let who = |byte| signers.signer(&public(byte), "git", time(NOW)).unwrap().principal;
        assert_eq!((who(1).as_str(), who(2).as_str()), ("ann@example.org", "bob b"));
        assert!(matches!(signers.signer(&public(3), "git", time(NOW)), Err(TrustError::UnknownKey { .. })));
    }

    #[test]
    fn a_key_signs_only_for_its_namespaces() {
        let signers = parse(&format!("ann namespaces=\"git,deploy-*,!deploy-x\" {}", key(1)));
        let may = |namespace: &str| signers.signer(&public(1), namespace, time(NOW)).is_ok();
        assert!(may("git") && may("deploy-a"));
        assert!(!may("deploy-x") && !may("file") && !may("Git") && !may("gi"));
    }

    #[test]
    fn a_key_signs_only_in_its_time_both_ends_included() {
        let signers = parse(&format!("ann valid-after=\"20250101Z\",valid-before=\"202512312359\" {}", key(1)));
        let at = |text: &str| signers.signer(&public(1), "git", time(text));
        assert!(at("2025-01-01T00:00:00Z").is_ok() && at("2025-12-31T23:59:00Z").is_ok());
        let early = at("2024-12-31T23:59:59Z").unwrap_err();
        assert!(matches!(early, TrustError::NotYetValid { .. }), "{early}");
        let late = at("2025-12-31T23:59:01Z").unwrap_err();
        assert!(late.to_string().contains("expired at 2025-12-31T23:59:00Z, and it is 2025-12-31T23:59:01Z"), "{late}");
    }

    #[test]
    fn one_line_that_allows_it_is_enough() {
        let text = format!("old valid-before=\"20200101Z\" {}\nnew namespaces=\"git\" {}\n", key(1), key(1));
        assert_eq!(parse(&text).signer(&public(1), "git", time(NOW)).unwrap().principal, "new");
        let refused = parse(&text).signer(&public(1), "file", time(NOW)).unwrap_err();
        assert!(matches!(refused, TrustError::Expired { .. }), "the first line says why: {refused}");
    }

    #[test]
    fn option_names_are_read_in_any_case_and_values_may_hold_quotes() {
        let signers = parse(&format!("ann NameSpaces=\"a\\\"b\",VALID-AFTER=\"20200101\" {}", key(1)));
        assert!(signers.signer(&public(1), "a\"b", time(NOW)).is_ok());
    }

    #[test]
    fn every_fault_is_told_with_its_line() {
        let good = key(1);
        for (line, word) in [
            ("ann".to_owned(), "no key"),
            (format!("\"ann {good}"), "quotation mark"),
            (format!("ann cert-authority {good}"), "certificate authorities are not supported"),
            (format!("ann touch-required {good}"), "unknown option \"touch-required\""),
            (format!("ann namespaces=git {good}"), "quotation marks"),
            (format!("ann namespaces=\"git {good}"), "quotation mark"),
            (format!("ann namespaces=\"git\"x {good}"), "comma"),
            (format!("ann namespaces=\"\" {good}"), "empty"),
            (format!("ann namespaces=\"git\",namespaces=\"git\" {good}"), "duplicate option"),
            (format!("ann valid-after=\"2025\" {good}"), "YYYYMMDD"),
            (format!("ann valid-after=\"20251301\" {good}"), "YYYYMMDD"),
            (
                format!("ann valid-after=\"20250101\",valid-before=\"20250101\" {good}"),
                "valid-before is not later than valid-after",
            ),
            ("ann ssh-ed25519".to_owned(), "no key"),
            ("ann ssh-ed25519 A*".to_owned(), "base64"),
            ("ann ssh-ed25519 AAAA".to_owned(), "truncated"),
            (good.replace("ssh-ed25519", "ann ssh-rsa"), "says key type \"ssh-rsa\""),
            ("ann ecdsa-sha2-nistp521 AAAA".to_owned(), "P-521"),
            ("ann ssh-ed25519-cert-v01@openssh.com AAAA".to_owned(), "certificates"),
            (format!(", {good}"), "principal"),
        ] {
            let problem = problem(&format!("# x\n{line}\n"));
            assert!(problem.starts_with("line 2: ") && problem.contains(word), "{line}: {problem}");
        }
        assert_eq!(problem(&format!("a\n{good}\nb\nann {good}")).lines().count(), 3, "each faulty line is told");
        assert!(problem("# nobody\n").contains("no key"));
        assert!(AllowedSigners::parse(b"ann \xff").unwrap_err()[0].to_string().contains("UTF-8"));
        assert!(AllowedSigners::parse(&vec![b'#'; MAX_SIZE + 1]).is_err());
        assert_eq!(AllowedSigners::parse("x\n".repeat(100).as_bytes()).unwrap_err().len(), MAX_PROBLEMS);
    }
}

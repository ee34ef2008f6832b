//! Rules that code cites by their ids, and the pages that hold them.

use crate::source_tree::source_files;
use std::collections::BTreeSet;

/// A page of rules.
struct Rules {
    page: &'static str,
    /// Letters that its ids begin with.
    letters: &'static str,
    /// Code that cites them, below `src`.
    places: &'static [&'static str],
    /// Rules that it has at least.
    least: usize,
}

const WORKLOADS: Rules = Rules { page: "docs/contributing/workload-rules.md", letters: "W", places: &["workload"], least: 80 };
const SERVICES: Rules = Rules {
    page: "docs/contributing/service-rules.md",
    letters: "RS",
    places: &["service", "network/builtin/services", "dns/services", "dns/zone"],
    least: 20,
};

const POLICIES: Rules =
    Rules { page: "docs/contributing/policy-rules.md", letters: "NR", places: &["policy", "network/builtin/policies"], least: 15 };

const ACCESS: Rules = Rules {
    page: "docs/contributing/access-rules.md",
    letters: "Q",
    places: &["api/access", "api/tls", "api/credentials"],
    least: 8,
};

impl Rules {
    /// Ids such as `W14` in a text.
    fn ids(&self, text: &str) -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        words.filter(|word| is_id(word, self.letters)).map(str::to_owned).collect()
    }

    fn assert_written_down(&self) {
        let written = written(self.page, |word| is_id(word, self.letters));
        let (mut missing, mut cited) = (Vec::new(), BTreeSet::new());
        for file in source_files().iter().filter(|file| file.is_below(self.places)) {
            let ids = self.ids(&file.text);
            missing.extend(ids.difference(&written).map(|id| format!("{}: {id} is not in {}", file.path, self.page)));
            cited.extend(ids);
        }
        assert!(missing.is_empty(), "{}", missing.join("\n"));
        assert!(written.len() > self.least, "the page has {} rules", written.len());
        assert!(!cited.is_empty(), "nothing in {:?} cites a rule", self.places);
    }
}

/// Pages whose rules are cited anywhere, as "kubelet rule D9", "rules D6 to D8" or "promise P2".
const CITED_BY_NAME: [(&str, &str, &[&str]); 2] = [
    ("docs/contributing/kubelet-rules.md", "ABCDE", &["rule", "rules"]),
    ("docs/contributing/promises.md", "P", &["promise", "promises"]),
];

/// Ids in the first column of a page's tables.
fn written(page: &str, is_id: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let page = std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")).filter_map(|line| line.split(' ').next());
    rows.filter(|id| is_id(id)).map(str::to_owned).collect()
}

/// True for a letter of `letters` with a number of one or two digits behind it.
fn is_id(word: &str, letters: &str) -> bool {
    let number = word.strip_prefix(|letter| letters.contains(letter));
    number.is_some_and(|number| (1..=2).contains(&number.len()) && number.parse::<u8>().is_ok())
}

/// Ids that follow one of `names` in a text: `rule D9`, `rules D8 and D12`.
fn cited_after(text: &str, names: &[&str], letters: &str) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    let mut follows = false;
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    for word in words {
        if follows && is_id(word, letters) {
            ids.insert(word.to_owned());
        } else {
            let joins = matches!(word, "and" | "or" | "to");
            follows = names.contains(&word.to_ascii_lowercase().as_str()) || (follows && joins);
        }
    }
    ids
}

#[test]
fn rules_cited_by_name_are_written_down() {
    let files = source_files();
    for (page, letters, names) in CITED_BY_NAME {
        let written = written(page, |word| is_id(word, letters));
        let mut missing = Vec::new();
        let mut count = 0;
        for file in &files {
            let ids = cited_after(&file.text, names, letters);
            count += ids.len();
            missing.extend(ids.difference(&written).map(|id| format!("{}: {id} is not in {page}", file.path)));
        }
        assert!(missing.is_empty(), "{}", missing.join("\n"));
        assert!(count > 5, "only {count} citations of {page}");
    }
}

#[test]
fn citations_are_read_in_lists() {
    let ids = cited_after("as D1; rules D6 to D8, D12 and E3. See (Rule A1) of B2", &["rule", "rules"], "ABDE");
    assert_eq!(ids.into_iter().collect::<Vec<_>>(), ["A1", "D12", "D6", "D8", "E3"]);
}

#[test]
fn cited_rules_of_workloads_are_written_down() {
    WORKLOADS.assert_written_down();
}

#[test]
fn cited_rules_of_services_are_written_down() {
    SERVICES.assert_written_down();
}

#[test]
fn cited_rules_of_access_are_written_down() {
    ACCESS.assert_written_down();
}

#[test]
fn cited_rules_of_policies_are_written_down() {
    POLICIES.assert_written_down();
}

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

impl Rules {
    fn is_id(&self, word: &str) -> bool {
        let number = word.strip_prefix(|letter| self.letters.contains(letter));
        number.is_some_and(|number| (1..=2).contains(&number.len()) && number.parse::<u8>().is_ok())
    }

    /// Ids such as `W14` in a text.
    fn ids(&self, text: &str) -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        words.filter(|word| self.is_id(word)).map(str::to_owned).collect()
    }

    fn assert_written_down(&self) {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read_to_string(root.join(self.page)).unwrap();
        let rows = page.lines().filter_map(|line| line.strip_prefix("| ")).filter_map(|line| line.split(' ').next());
        let written: BTreeSet<String> = rows.filter(|id| self.is_id(id)).map(str::to_owned).collect();
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

#[test]
fn cited_rules_of_workloads_are_written_down() {
    WORKLOADS.assert_written_down();
}

#[test]
fn cited_rules_of_services_are_written_down() {
    SERVICES.assert_written_down();
}

#[test]
fn cited_rules_of_policies_are_written_down() {
    POLICIES.assert_written_down();
}

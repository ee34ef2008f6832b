//! Host ids for the user namespaces of pods (`hostUsers: false`). **Pure**.

use super::ConfigError;
use super::check::Check;
use podstead_sys::user_namespace::IDS;
use serde::{Deserialize, Serialize};

/// Above those that distributions and systemd give to users and containers.
const DEFAULT_FIRST: u32 = 1_879_048_192;
const DEFAULT_PODS: u32 = 4000;
/// The owner of the line that keeps other programs away from the range.
const OWN_NAME: &str = "podstead";

/// `userNamespaces`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenUserNamespaces {
    /// First host id that pods get, a multiple of 65536. Default: 1879048192.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_id: Option<u32>,
    /// Most pods with a user namespace at the same time; each takes 65536 ids. Default: 4000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_pods: Option<u32>,
}

/// Ids of the host that pods' users are: for each pod [`IDS`] of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdRange {
    /// The first one.
    pub first: u32,
    /// Pods that have room in it.
    pub pods: u32,
}

impl Default for IdRange {
    fn default() -> Self {
        Self { first: DEFAULT_FIRST, pods: DEFAULT_PODS }
    }
}

impl WrittenUserNamespaces {
    /// As it is written.
    pub fn of(range: IdRange) -> Self {
        Self { first_id: Some(range.first), max_pods: Some(range.pods) }
    }

    /// Checks what is written and fills in the defaults.
    pub fn resolve(&self, check: &Check<'_>) -> Result<IdRange, ConfigError> {
        let first = self.first_id.unwrap_or(DEFAULT_FIRST);
        let pods = check.range("userNamespaces.maxPods", self.max_pods.unwrap_or(DEFAULT_PODS), 1, u32::MAX / IDS)?;
        // The first ones are the host's own users.
        let first = check.range("userNamespaces.firstId", first, IDS, u32::MAX - IDS)?;
        if !first.is_multiple_of(IDS) {
            return Err(check.invalid("userNamespaces.firstId", format!("is {first}, must be a multiple of {IDS}")));
        }
        let range = IdRange { first, pods };
        // The last id of all means "none".
        if range.end() > u64::from(u32::MAX) {
            let room = (u32::MAX - first) / IDS;
            let message = format!("is {pods}, must be at most {room} with firstId {first}");
            return Err(check.invalid("userNamespaces.maxPods", message));
        }
        Ok(range)
    }
}

/// A line of `/etc/subuid` or `/etc/subgid` that gives ids of the range to another user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    /// Its number, from 1.
    pub line: usize,
    /// Owner of the ids.
    pub owner: String,
    /// The first of these ids.
    pub first: u64,
    /// The last one.
    pub last: u64,
}

impl IdRange {
    /// The first id behind it.
    pub const fn end(&self) -> u64 {
        self.first as u64 + self.pods as u64 * IDS as u64
    }

    /// Lines of a file such as `/etc/subuid` (`owner:first:count`) that give ids of this range to others. One of `podstead` is the range's own.
    pub fn clashes(&self, text: &str) -> Vec<Clash> {
        let clash = |(index, line): (usize, &str)| {
            let mut fields = line.trim().split(':');
            let owner = fields.next().filter(|owner| !owner.starts_with('#') && *owner != OWN_NAME)?;
            let (first, count): (u64, u64) = (fields.next()?.trim().parse().ok()?, fields.next()?.trim().parse().ok()?);
            let end = first.saturating_add(count);
            (count > 0 && first < self.end() && u64::from(self.first) < end).then(|| Clash {
                line: index + 1,
                owner: owner.to_owned(),
                first,
                last: end - 1,
            })
        };
        text.lines().enumerate().filter_map(clash).collect()
    }
}

impl std::fmt::Display for IdRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} to {}", self.first, self.end() - 1)
    }
}

/// Files that assign IDs to users; `useradd` and other container engines respect them.
pub const ID_FILES: [&str; 2] = ["/etc/subuid", "/etc/subgid"];

/// The observation, as a sentence.
pub fn sentence(range: IdRange, file: &str, clash: &Clash) -> String {
    let Clash { line, owner, first, last } = clash;
    format!("{file}:{line} assigns IDs {first} to {last} to {owner}, but userNamespaces assigns {range} to pods")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_clashes_when_both_have_an_id() {
        let range = IdRange { first: 131_072, pods: 2 };
        assert_eq!(range.to_string(), "131072 to 262143");
        let text = "# ids\nann:100000:31072\nbob:100000:31073\npodstead:131072:131072\ncy:262143:1\ndi:262144:65536\n\
                    ed:1:x\n\nfay:200000:0\ngus:18446744073709551615:9\n";
        let found: Vec<(usize, String)> = range.clashes(text).into_iter().map(|clash| (clash.line, clash.owner)).collect();
        assert_eq!(found, [(3, "bob".to_owned()), (5, "cy".to_owned())]);
        assert_eq!(range.clashes("bob:100000:31073")[0].last, 131_072);
    }

    #[test]
    fn the_default_stays_positive_for_who_takes_ids_as_signed() {
        assert!(IdRange::default().end() < 1 << 31 && IdRange::default().first.is_multiple_of(IDS));
    }
}

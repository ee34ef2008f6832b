//! Names of users and groups of this host. The files are read at each question: they are small, and a change counts at once. A static binary
//! cannot load the modules that `getgrnam` wants; who is known to a name service only is configured by number.

use podstead_settings::Account;
use std::path::{Path, PathBuf};

/// The files.
#[derive(Debug)]
pub(super) struct Accounts {
    users: PathBuf,
    groups: PathBuf,
}

impl Accounts {
    pub(super) fn of_this_host() -> Self {
        Self { users: "/etc/passwd".into(), groups: "/etc/group".into() }
    }

    /// The id of a user; `None` for an unknown name.
    pub(super) fn user_id(&self, user: &Account) -> Option<u32> {
        id(&self.users, user)
    }

    /// The id of a group; `None` for an unknown name.
    pub(super) fn group_id(&self, group: &Account) -> Option<u32> {
        id(&self.groups, group)
    }

    pub(super) fn user_name(&self, uid: u32) -> Option<String> {
        name(&self.users, uid)
    }

    pub(super) fn group_name(&self, gid: u32) -> Option<String> {
        name(&self.groups, gid)
    }
}

fn id(file: &Path, account: &Account) -> Option<u32> {
    match account {
        Account::Id(id) => Some(*id),
        Account::Name(name) => id_of_name(&read(file), name),
    }
}

fn name(file: &Path, id: u32) -> Option<String> {
    name_of_id(&read(file), id)
}

/// An unreadable file names nobody.
fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}

/// Both files begin with name, password and id.
fn id_of_name(content: &str, name: &str) -> Option<u32> {
    content.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    })
}

fn name_of_id(content: &str, id: u32) -> Option<String> {
    content.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1)?.parse() == Ok(id)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_whole() {
        let content = "root:x:0:0::/root:/bin/sh\nann:x:1001:1001::/:\nanna:x:1000:1000::/:\nbroken\n:x:7:\n";
        assert_eq!(id_of_name(content, "anna"), Some(1000));
        assert_eq!(id_of_name(content, "an"), None);
        assert_eq!(id_of_name(content, "broken"), None);
        assert_eq!(name_of_id(content, 1001).as_deref(), Some("ann"));
        assert_eq!(name_of_id(content, 7), None);
    }

    #[test]
    fn number_needs_no_entry() {
        let nobody = Accounts { users: "/nonexistent".into(), groups: "/nonexistent".into() };
        assert_eq!(nobody.user_id(&Account::Id(42)), Some(42));
        assert_eq!(nobody.group_id(&Account::Name("ops".into())), None);
        assert_eq!(nobody.user_name(42), None);
    }
}

//! Users and groups of an image, by its own `/etc/passwd` and `/etc/group`.
//!
//! `user` is `name`, `uid`, `name:group` or `uid:gid`. As runc and docker have it: a number need not be in the files; a user that is in
//! them has the primary group written there and, unless a group is given, all groups that list him.

use super::stack::LayerStack;
use podstead_container::{ProcessUser, ResolvedImage};
use podstead_runtime::ImageError;
use std::path::Path;

/// Larger files than any sane image has.
const FILE_MAX: u64 = 8 << 20;
/// As docker: ids above are refused.
const ID_MAX: u32 = i32::MAX as u32;

/// Looks `user` up in `image`; blocks.
pub(super) fn resolve(image: &ResolvedImage, user: &str) -> Result<ProcessUser, ImageError> {
    let read = |path: &str| {
        let content = LayerStack::new(&image.layers).read(Path::new(path), FILE_MAX);
        let content = content
            .map_err(|error| ImageError::Inspect { reference: image.digest.clone(), reason: format!("read {path}: {error}") })?;
        Ok(String::from_utf8_lossy(&content.unwrap_or_default()).into_owned())
    };
    let missing = |user: &str| ImageError::NoUser { reference: image.digest.clone(), user: user.to_owned() };
    lookup(user, &read("/etc/passwd")?, &read("/etc/group")?).map_err(|name| missing(&name))
}

/// The error is the name that could not be found, or the number that is none.
fn lookup(user: &str, passwd: &str, group: &str) -> Result<ProcessUser, String> {
    let (user, group_name) = match user.split_once(':') {
        Some((user, group)) => (user, Some(group).filter(|group| !group.is_empty())),
        None => (user, None),
    };
    let user = if user.is_empty() { "0" } else { user };
    let number = id(user);
    let known = accounts(passwd).find(|account| account.name == user || (number == Some(account.uid)));
    let (uid, primary) = match (&known, number) {
        (Some(account), _) => (account.uid, account.gid),
        (None, Some(uid)) => (uid, 0),
        (None, None) => return Err(user.to_owned()),
    };
    let Some(group_name) = group_name else {
        let member = |group: &Group<'_>| {
            known.as_ref().is_some_and(|account| group.members.split(',').any(|member| member.trim() == account.name))
        };
        let mut additional_gids: Vec<u32> =
            groups(group).filter(member).map(|group| group.gid).filter(|gid| *gid != primary).collect();
        additional_gids.sort_unstable();
        additional_gids.dedup();
        return Ok(ProcessUser { uid, gid: primary, additional_gids });
    };
    let number = id(group_name);
    let gid = groups(group).find(|group| group.name == group_name).map(|group| group.gid).or(number);
    Ok(ProcessUser { uid, gid: gid.ok_or_else(|| group_name.to_owned())?, additional_gids: Vec::new() })
}

fn id(text: &str) -> Option<u32> {
    text.parse().ok().filter(|id| *id <= ID_MAX && text.bytes().all(|byte| byte.is_ascii_digit()))
}

struct Account<'a> {
    name: &'a str,
    uid: u32,
    gid: u32,
}

struct Group<'a> {
    name: &'a str,
    gid: u32,
    members: &'a str,
}

/// `name:password:uid:gid:...`; lines that are not so are passed over.
fn accounts(passwd: &str) -> impl Iterator<Item = Account<'_>> {
    passwd.lines().filter_map(|line| {
        let mut fields = line.trim().split(':');
        let (name, uid, gid) = (fields.next()?, fields.nth(1)?, fields.next()?);
        Some(Account { name, uid: id(uid)?, gid: id(gid)? })
            .filter(|account| !account.name.is_empty() && !account.name.starts_with('#'))
    })
}

/// `name:password:gid:member,member`
fn groups(group: &str) -> impl Iterator<Item = Group<'_>> {
    group.lines().filter_map(|line| {
        let mut fields = line.trim().split(':');
        let (name, gid) = (fields.next()?, fields.nth(1)?);
        Some(Group { name, gid: id(gid)?, members: fields.next().unwrap_or_default() })
            .filter(|group| !group.name.is_empty() && !group.name.starts_with('#'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "# comment\nroot:x:0:0:root:/root:/bin/sh\nbroken\nwww:x:33:33::/var/www:/bin/false\n4242:x:7:8::/:\nbig:x:4294967295:0::/:\n";
    const GROUP: &str = "root:x:0:root\nadm:x:4:root,www\nwww:x:33:\nstaff:x:50: www ,other\nprimary:x:33:www\n+:::\n";

    fn user(uid: u32, gid: u32, additional_gids: &[u32]) -> Result<ProcessUser, String> {
        Ok(ProcessUser { uid, gid, additional_gids: additional_gids.to_vec() })
    }

    #[test]
    fn users_and_groups_are_found_by_name_and_by_number() {
        for (text, wanted) in [
            ("", user(0, 0, &[4])),
            ("root", user(0, 0, &[4])),
            ("0", user(0, 0, &[4])),
            ("www", user(33, 33, &[4, 50])),
            ("33", user(33, 33, &[4, 50])),
            ("www:", user(33, 33, &[4, 50])),
            ("www:staff", user(33, 50, &[])),
            ("www:12", user(33, 12, &[])),
            ("33:adm", user(33, 4, &[])),
            ("1000", user(1000, 0, &[])),
            ("1000:1000", user(1000, 1000, &[])),
            (":staff", user(0, 50, &[])),
            // A name of digits is a name first.
            ("4242", user(7, 8, &[])),
            ("nobody", Err("nobody".to_owned())),
            ("www:nogroup", Err("nogroup".to_owned())),
            ("-1", Err("-1".to_owned())),
            ("+1", Err("+1".to_owned())),
            ("2147483648", Err("2147483648".to_owned())),
            ("big", Err("big".to_owned())),
        ] {
            assert_eq!(lookup(text, PASSWD, GROUP), wanted, "{text:?}");
        }
    }

    #[test]
    fn an_image_without_the_files_has_numbers_only() {
        assert_eq!(lookup("5:6", "", ""), user(5, 6, &[]));
        assert_eq!(lookup("", "", ""), user(0, 0, &[]));
        assert_eq!(lookup("root", "", ""), Err("root".to_owned()));
    }
}

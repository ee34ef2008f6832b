//! Rules in somebody else's chain that accept what comes from and goes to some interfaces. **Pure**.
//!
//! They are as iptables would write them (`-i ps-+ -j ACCEPT`), so that iptables lists them and can remove them.

use super::expressions::{Meta, Rule, Verdict};
use super::message::{ACK, APPEND, Answer, Body, CREATE, DUMP, Request, text_of};
use super::nftables::{BATCH_BEGIN, BATCH_END, BaseChain, DELETE_RULE, GET_RULE, NEW_RULE, SUBSYSTEM, attribute, generic_header};

/// `NFTNL_UDATA_RULE_COMMENT`.
const COMMENT: u8 = 0;

/// Asks for the rules of a chain.
pub fn list_rules(request: &mut Request, chain: &BaseChain) {
    request.message(format!("list rules of chain {}", chain.name), SUBSYSTEM | GET_RULE, DUMP, |body| {
        body.raw(&generic_header(chain.family, 0));
        body.text(1, &chain.table);
        body.text(2, &chain.name);
    });
}

/// The handle of a rule of this chain that has this comment; `None` for any other message.
pub fn handle_of(answer: &Answer<'_>, chain: &BaseChain, comment: &str) -> Option<u64> {
    let is_name = |wanted, name: &str| attribute(answer, wanted).is_some_and(|value| text_of(value) == name);
    if answer.kind != SUBSYSTEM | NEW_RULE || !is_name(1, &chain.table) || !is_name(2, &chain.name) {
        return None;
    }
    let handle = <[u8; 8]>::try_from(attribute(answer, 3)?).ok().map(u64::from_be_bytes)?;
    (comment_in(attribute(answer, 7)?)? == comment).then_some(handle)
}

/// The comment in a rule's user data: type, length and value of each entry, a byte each for the first two.
fn comment_in(mut bytes: &[u8]) -> Option<String> {
    loop {
        let (&kind, rest) = bytes.split_first()?;
        let (&length, rest) = rest.split_first()?;
        let (value, rest) = rest.split_at_checked(usize::from(length))?;
        if kind == COMMENT {
            return Some(text_of(value));
        }
        bytes = rest;
    }
}

/// A transaction that removes these rules from a chain and appends two that accept what comes by, and what goes by, interfaces whose names
/// begin with `prefix`.
pub fn accept(chain: &BaseChain, removed: &[u64], prefix: &str, comment: &str) -> Request {
    let mut request = Request::new();
    request.message("begin a transaction", BATCH_BEGIN, 0, |body| body.raw(&generic_header(0, 10)));
    let place = |body: &mut Body<'_>| {
        body.raw(&generic_header(chain.family, 0));
        body.text(1, &chain.table);
        body.text(2, &chain.name);
    };
    for handle in removed {
        request.message(format!("remove a rule of chain {}", chain.name), SUBSYSTEM | DELETE_RULE, ACK, |body| {
            place(body);
            body.bytes(3, &handle.to_be_bytes());
        });
    }
    for interface in [Meta::InputName, Meta::OutputName] {
        let label = format!("add a rule to chain {} of table {}", chain.name, chain.table);
        request.message(label, SUBSYSTEM | NEW_RULE, ACK | CREATE | APPEND, |body| {
            place(body);
            body.nest(4, |expressions| {
                let mut rule = Rule::new(expressions);
                rule.begins_with(interface, prefix.as_bytes());
                rule.count();
                rule.verdict(Verdict::Accept);
            });
            let mut value = vec![COMMENT, u8::try_from(comment.len() + 1).unwrap_or(0)];
            value.extend(comment.bytes());
            value.push(0);
            body.bytes(7, &value);
        });
    }
    request.message("commit packet rules", BATCH_END, 0, |body| body.raw(&generic_header(0, 10)));
    request
}

/// Whether a notification tells of a rule that was removed from a chain that packets which are passed on may come to, or of such a chain.
pub fn concerns_passing(answer: &Answer<'_>) -> bool {
    const FORWARD: u32 = 2;
    let is_forward = || attribute(answer, 2).is_some_and(|name| text_of(name) == "FORWARD");
    match answer.kind.checked_sub(SUBSYSTEM) {
        Some(DELETE_RULE) => is_forward(),
        Some(_) => super::nftables::base_chain(answer).is_some_and(|chain| chain.hook == FORWARD && chain.drops),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::netlink::answers;

    fn forward() -> BaseChain {
        BaseChain { family: 2, table: "filter".into(), name: "FORWARD".into(), hook: 2, drops: true }
    }

    #[test]
    fn own_rules_are_known_by_their_comment() {
        let request = accept(&forward(), &[], "ps-", "podstead");
        let rules: Vec<Answer<'_>> = answers(request.bytes()).filter(|answer| answer.kind == SUBSYSTEM | NEW_RULE).collect();
        assert_eq!(rules.len(), 2);
        let mut with_handle = rules[0].body.to_vec();
        with_handle.extend([12, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
        let rule = Answer { body: &with_handle, ..rules[0] };
        assert_eq!(handle_of(&rule, &forward(), "podstead"), Some(9));
        assert_eq!(handle_of(&rule, &forward(), "podstead_1"), None);
        assert_eq!(handle_of(&rule, &BaseChain { name: "INPUT".into(), ..forward() }, "podstead"), None);
        assert_eq!(comment_in(&[1, 2, 0, 0, COMMENT, 3, b'a', b'b', 0]), Some("ab".into()));
        for torso in [&[][..], &[0], &[0, 9, 1], &[1, 1, 1]] {
            assert_eq!(comment_in(torso), None);
        }
    }
}

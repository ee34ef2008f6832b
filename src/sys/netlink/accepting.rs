//! Rules in somebody else's chain that accept what comes from and goes to some interfaces, or what comes from them to one port of the host.
//! **Pure**.
//!
//! They are as iptables would write them (`-i ps-+ -j ACCEPT`), so that iptables lists them and can remove them.

use super::expressions::{DESTINATION_PORT, Meta, Rule, Verdict};
use super::message::{ACK, APPEND, Answer, Body, CREATE, DUMP, Request, text_of};
use super::nftables::{BATCH_BEGIN, BATCH_END, BaseChain, DELETE_RULE, GET_RULE, NEW_RULE, SUBSYSTEM, attribute, generic_header};

/// Accepted packets. Each takes two rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Packets forwarded from and to the interfaces.
    Passing,
    /// Packets from the interfaces to a port of UDP and TCP.
    Port(u16),
}

impl Accepted {
    /// The comment that identifies these rules; it begins with their owner.
    pub fn comment(self, owner: &str) -> String {
        match self {
            Self::Passing => owner.to_owned(),
            Self::Port(port) => format!("{owner} {port}"),
        }
    }
}

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

/// Handle and comment of a rule of this chain that is of this owner; `None` for any other message.
pub fn rule_of(answer: &Answer<'_>, chain: &BaseChain, owner: &str) -> Option<(u64, String)> {
    let is_name = |wanted, name: &str| attribute(answer, wanted).is_some_and(|value| text_of(value) == name);
    if answer.kind != SUBSYSTEM | NEW_RULE || !is_name(1, &chain.table) || !is_name(2, &chain.name) {
        return None;
    }
    let handle = <[u8; 8]>::try_from(attribute(answer, 3)?).ok().map(u64::from_be_bytes)?;
    let comment = comment_in(attribute(answer, 7)?)?;
    let is_own = comment.strip_prefix(owner).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    is_own.then_some((handle, comment))
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

/// A transaction that removes these rules from a chain and appends two that accept something of interfaces whose names begin with `prefix`.
pub fn accept(chain: &BaseChain, removed: &[u64], prefix: &str, owner: &str, accepted: Accepted) -> Request {
    const UDP: u8 = 17;
    const TCP: u8 = 6;
    let comment = accepted.comment(owner);
    let mut request = begin(chain, removed);
    let conditions: [(Meta, Option<(u8, u16)>); 2] = match accepted {
        Accepted::Passing => [(Meta::InputName, None), (Meta::OutputName, None)],
        Accepted::Port(port) => [(Meta::InputName, Some((UDP, port))), (Meta::InputName, Some((TCP, port)))],
    };
    for (interface, service) in conditions {
        let label = format!("add a rule to chain {} of table {}", chain.name, chain.table);
        request.message(label, SUBSYSTEM | NEW_RULE, ACK | CREATE | APPEND, |body| {
            place(body, chain);
            body.nest(4, |expressions| {
                let mut rule = Rule::new(expressions);
                rule.begins_with(interface, prefix.as_bytes());
                if let Some((protocol, port)) = service {
                    rule.is(Meta::Protocol, &[protocol]);
                    rule.field_is(DESTINATION_PORT, &port.to_be_bytes());
                }
                rule.count();
                rule.verdict(Verdict::Accept);
            });
            let mut value = vec![COMMENT, u8::try_from(comment.len() + 1).unwrap_or(0)];
            value.extend(comment.bytes());
            value.push(0);
            body.bytes(7, &value);
        });
    }
    end(request)
}

/// A transaction that removes these rules from a chain.
pub fn remove(chain: &BaseChain, removed: &[u64]) -> Request {
    end(begin(chain, removed))
}

fn begin(chain: &BaseChain, removed: &[u64]) -> Request {
    let mut request = Request::new();
    request.message("start a transaction", BATCH_BEGIN, 0, |body| body.raw(&generic_header(0, 10)));
    for handle in removed {
        request.message(format!("remove a rule of chain {}", chain.name), SUBSYSTEM | DELETE_RULE, ACK, |body| {
            place(body, chain);
            body.bytes(3, &handle.to_be_bytes());
        });
    }
    request
}

fn end(mut request: Request) -> Request {
    request.message("commit packet rules", BATCH_END, 0, |body| body.raw(&generic_header(0, 10)));
    request
}

/// Writes the chain and table of a rule.
fn place(body: &mut Body<'_>, chain: &BaseChain) {
    body.raw(&generic_header(chain.family, 0));
    body.text(1, &chain.table);
    body.text(2, &chain.name);
}

/// Returns true if a notification reports the removal of a rule from a chain that pods' packets, to the host or through it, may pass, or of
/// such a chain.
pub fn concerns_pods(answer: &Answer<'_>) -> bool {
    const INPUT: u32 = 1;
    const FORWARD: u32 = 2;
    let is_of_iptables = || attribute(answer, 2).is_some_and(|name| matches!(text_of(name).as_str(), "INPUT" | "FORWARD"));
    match answer.kind.checked_sub(SUBSYSTEM) {
        Some(DELETE_RULE) => is_of_iptables(),
        Some(_) => super::nftables::base_chain(answer).is_some_and(|chain| matches!(chain.hook, INPUT | FORWARD) && chain.drops),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::answers;

    fn forward() -> BaseChain {
        BaseChain { family: 2, table: "filter".into(), name: "FORWARD".into(), hook: 2, drops: true }
    }

    #[test]
    fn own_rules_are_known_by_their_comment() {
        let request = accept(&forward(), &[], "ps-", "podstead", Accepted::Passing);
        let rules: Vec<Answer<'_>> = answers(request.bytes()).filter(|answer| answer.kind == SUBSYSTEM | NEW_RULE).collect();
        assert_eq!(rules.len(), 2);
        let mut with_handle = rules[0].body.to_vec();
        with_handle.extend([12, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
        let rule = Answer { body: &with_handle, ..rules[0] };
        assert_eq!(rule_of(&rule, &forward(), "podstead"), Some((9, "podstead".into())));
        assert_eq!(rule_of(&rule, &forward(), "podstead_1"), None);
        assert_eq!(rule_of(&rule, &forward(), "pod"), None);
        assert_eq!(rule_of(&rule, &BaseChain { name: "INPUT".into(), ..forward() }, "podstead"), None);
        assert_eq!(Accepted::Port(53).comment("podstead"), "podstead 53");
        assert_eq!(comment_in(&[1, 2, 0, 0, COMMENT, 3, b'a', b'b', 0]), Some("ab".into()));
        for torso in [&[][..], &[0], &[0, 9, 1], &[1, 1, 1]] {
            assert_eq!(comment_in(torso), None);
        }
    }
}

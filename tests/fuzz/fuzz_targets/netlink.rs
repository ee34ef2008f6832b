//! Whatever bytes come instead of the kernel's answers, they are read without a panic, and nothing is read twice.
#![no_main]
#![allow(dead_code, unused_imports, unreachable_pub, missing_docs, reason = "only a part of the crate is compiled")]

use libfuzzer_sys::fuzz_target;
use podstead_sys::netlink::{accepting, answers, attributes, conntrack, listening, maps, nftables, rtnetlink, sources};

fuzz_target!(|bytes: &[u8]| {
    let forward = nftables::BaseChain { family: 2, table: "filter".into(), name: "FORWARD".into(), hook: 2, drops: true };
    let mut read = 0;
    for answer in answers(bytes) {
        read += 16 + answer.body.len();
        let (_, explanation) = (answer.error(), answer.explanation());
        assert!(explanation.is_none_or(|text| text.len() <= 3 * answer.body.len()));
        rtnetlink::link(&answer);
        rtnetlink::address(&answer);
        rtnetlink::route(&answer);
        rtnetlink::default_route(&answer);
        nftables::base_chain(&answer);
        listening::waiting(&answer);
        sources::source_rule(&answer, "firewalld");
        nftables::is_removal(&answer, "podstead");
        accepting::rule_of(&answer, &forward, "podstead");
        accepting::concerns_pods(&answer);
        let elements = maps::elements(&answer);
        assert!(elements.iter().map(|element| element.key.len()).sum::<usize>() <= answer.body.len());
        if let Some(connection) = conntrack::connection(&answer) {
            conntrack::forget(&mut podstead_sys::netlink::Request::new(), &connection);
        }
        let within: usize = attributes(answer.body).map(|(_, value)| 4 + value.len()).sum();
        assert!(within <= answer.body.len());
    }
    assert!(read <= bytes.len());
});

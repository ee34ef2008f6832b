//! Whatever a pod or a name server sends is answered, passed on or dropped without a panic, and an answer is one.
#![no_main]
#![allow(dead_code, unused_imports, unreachable_pub, reason = "only a part of the crate is compiled")]

#[path = "../../../src/dns"]
mod dns {
    mod alias;
    mod exchange;
    mod message;
    mod services;
    mod zone;

    use exchange::Verdict;
    use hickory_proto::op::Message;
    use message::{Decision, Transport};
    use zone::{ZoneBuilder, ZonePod};

    /// `query` comes from a pod; `answer` from a name server that it was passed on to.
    pub(super) fn exchange(query: &[u8], answer: &[u8], turn: usize) {
        let source = podstead_pod::SourceId::new("a");
        let pod = ZonePod {
            source: source.clone(),
            seen: None,
            namespace: "shop".into(),
            names: vec!["web".into()],
            hostname: "web".into(),
            subdomain: Some("s".into()),
            addresses: vec!["10.201.0.7".parse().unwrap(), "fd00::7".parse().unwrap()],
            is_ready: true,
            owns_addresses: true,
        };
        let names = |name: &str, target: &str| {
            let text = format!(r#"{{"metadata":{{"name":"{name}","namespace":"shop"}},"spec":{{"type":"ExternalName","externalName":"{target}"}}}}"#);
            let service = podstead_service::definition::Definition::of(&serde_json::from_str(&text).unwrap()).unwrap();
            let nowhere = podstead_service::endpoints::ServiceEndpoints { ports: Vec::new(), addresses: Vec::new() };
            services::ServiceNames::of(&service, &Default::default(), &nowhere).unwrap()
        };
        let mut services = services::NamesOfServices::default();
        services.insert(names("e", "x.y"));
        services.insert(names("l", "l.shop.svc.c.l"));
        let mut builder = ZoneBuilder::new("c.l", &[]);
        builder.set_sharing(&std::sync::Arc::new([source].into()));
        builder.set_pod(&podstead_pod::PodUid::new("a"), Some(pod));
        builder.set_services(services);
        let zone = builder.zone();
        for transport in [Transport::Udp, Transport::Tcp] {
            let reply = match message::decide(query, &zone, transport, turn) {
                Decision::Drop => continue,
                Decision::Reply(reply) => reply,
                Decision::Follow(alias) => alias.reply(query, Some(answer), transport),
                Decision::Forward => {
                    let sent = exchange::renumbered(query, 7);
                    if exchange::judge(&sent, answer) != Verdict::Unrelated {
                        assert_eq!(&answer[..2], &[0, 7]);
                    }
                    assert_ne!(exchange::judge(query, query), Verdict::Answer, "a question is no answer");
                    message::failure(query, transport)
                }
            };
            assert_eq!(&reply[..2], &query[..2]);
            assert!(Message::from_vec(&reply).is_ok());
            assert!(transport == Transport::Tcp || reply.len() <= 1232);
        }
    }
}

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (usize, &[u8], &[u8])| {
    let (turn, query, answer) = input;
    dns::exchange(query, answer, turn);
});

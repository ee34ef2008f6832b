//! Handling of a message: an answer from the zone, a refusal, or forwarding to the host's name servers. **Pure**.

use super::alias::{self, Alias, End};
use super::zone::{Found, Zone};
use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, NS, PTR, SOA, SRV, TXT};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use std::net::IpAddr;

/// Seconds that answers about pods may be remembered: pods come and go. CoreDNS' default for Kubernetes.
pub(super) const TTL: u32 = 5;
/// Length of the header of a message.
const HEADER: usize = 12;
/// The longest query: a name, and options of EDNS.
pub(super) const MAX_QUERY: usize = 4096;
/// The longest answer by UDP: what gets through any network in one piece (DNS flag day 2020).
const MAX_DATAGRAM: u16 = 1232;
/// The longest answer by UDP for who does not say more.
const MIN_DATAGRAM: u16 = 512;

/// Transport of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    /// As a datagram: long answers are cut, and asked for again by TCP.
    Udp,
    /// In a stream.
    Tcp,
}

/// Handling of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It is not a query: no answer is expected.
    Drop,
    /// This is the answer.
    Reply(Vec<u8>),
    /// The host's name servers must be asked.
    Forward,
    /// They must be asked for the name that the one in question stands for.
    Follow(Box<Alias>),
}

/// Decides. `turn` is a random number: the addresses of a name come in another order each time, so that clients, who take the first one, are spread.
pub(super) fn decide(query: &[u8], zone: &Zone, transport: Transport, turn: usize) -> Decision {
    let Some((id, flags, questions)) = header(query) else { return Decision::Drop };
    const IS_RESPONSE: u8 = 0x80;
    const OPCODE: u8 = 0x78;
    if flags & IS_RESPONSE != 0 {
        return Decision::Drop;
    }
    if flags & OPCODE != 0 {
        return Decision::Reply(bare(id, OpCode::from_u8((flags & OPCODE) >> 3), ResponseCode::NotImp));
    }
    // Looked at before the reader is, which would make room for as many as are promised.
    let read = if questions == 1 && query.len() <= MAX_QUERY { Message::from_vec(query).ok() } else { None };
    let Some(question) = read.as_ref().and_then(|message| message.queries.first()).cloned() else {
        return Decision::Reply(bare(id, OpCode::Query, ResponseCode::FormErr));
    };
    let Some(message) = read else { return Decision::Drop };
    let reply = |code| Decision::Reply(encode(&respond(&message, &question, code), &message, transport));
    if message.edns.as_ref().is_some_and(|edns| edns.version() > 0) {
        return reply(ResponseCode::BADVERS);
    }
    let is_transfer = matches!(question.query_type(), RecordType::AXFR | RecordType::IXFR);
    if question.query_class() != DNSClass::IN || is_transfer {
        return reply(ResponseCode::Refused);
    }
    let found = zone.find(&labels(question.name()));
    if found == Found::Foreign {
        return if message.metadata.recursion_desired { Decision::Forward } else { reply(ResponseCode::Refused) };
    }
    let mut response = respond(&message, &question, ResponseCode::NoError);
    response.metadata.authoritative = true;
    match found {
        Found::Alias(target) => return decide_alias(&message, response, target, zone, transport, turn),
        found => answer(&mut response, question.name(), question.query_type(), found, zone, turn),
    }
    Decision::Reply(encode(&response, &message, transport))
}

/// Decides about a name that stands for `target` (S25).
fn decide_alias(
    query: &Message,
    mut response: Message,
    target: String,
    zone: &Zone,
    transport: Transport,
    turn: usize,
) -> Decision {
    let failed = || Decision::Reply(with_code_of(query, transport, ResponseCode::ServFail));
    let Some(question) = query.queries.first() else { return failed() };
    let wanted = question.query_type();
    let (chain, end) = alias::follow(zone, question.name(), target);
    if matches!(wanted, RecordType::CNAME | RecordType::ANY) {
        response.add_answers(chain.into_iter().take(1));
        return Decision::Reply(encode(&response, query, transport));
    }
    match end {
        End::Nowhere => return failed(),
        End::Outside(name) if query.metadata.recursion_desired => {
            return Alias::new(query, name, chain).map_or_else(failed, |alias| Decision::Follow(Box::new(alias)));
        }
        End::Outside(_) => {
            response.add_answers(chain);
        }
        End::InZone(name, found) => {
            response.add_answers(chain);
            answer(&mut response, &name, wanted, found, zone, turn);
        }
    }
    Decision::Reply(encode(&response, query, transport))
}

/// Adds what was found for a name.
fn answer(response: &mut Message, name: &Name, wanted: RecordType, found: Found, zone: &Zone, turn: usize) {
    let before = response.answers.len();
    let is_wanted = |kind: RecordType| wanted == kind || wanted == RecordType::ANY;
    let mut add = |data: RData| {
        if is_wanted(data.record_type()) {
            response.add_answer(Record::from_rdata(name.clone(), TTL, data));
        }
    };
    match found {
        Found::Addresses(mut addresses) => {
            let turn = turn.checked_rem(addresses.len()).unwrap_or(0);
            addresses.rotate_left(turn);
            for address in addresses {
                add(match address {
                    IpAddr::V4(address) => RData::A(A(address)),
                    IpAddr::V6(address) => RData::AAAA(AAAA(address)),
                });
            }
        }
        Found::Pointer(name) => {
            if let Ok(name) = Name::from_ascii(name) {
                add(RData::PTR(PTR(name)));
            }
        }
        Found::Ports(targets) => {
            let weight = 100_u16.checked_div(u16::try_from(targets.len()).unwrap_or(u16::MAX)).unwrap_or(0).max(1);
            for (port, target) in targets {
                if let Ok(target) = Name::from_ascii(target) {
                    add(RData::SRV(SRV::new(0, weight, port, target)));
                }
            }
        }
        Found::Text(text) => add(RData::TXT(TXT::new(vec![text.to_owned()]))),
        Found::Apex => {
            if let Some(soa) = start_of_authority(zone) {
                add(soa.data);
            }
            if let Ok(name) = Name::from_ascii(format!("ns.dns.{}.", zone.domain())) {
                add(RData::NS(NS(name)));
            }
        }
        Found::Missing => {
            response.metadata.response_code = ResponseCode::NXDomain;
        }
        Found::Empty | Found::Foreign | Found::Alias(_) => {}
    }
    // No such name, or nothing of that type: this says for how long that may be believed (RFC 2308).
    if response.answers.len() == before
        && let Some(soa) = start_of_authority(zone)
    {
        response.add_authority(soa);
    }
}

fn start_of_authority(zone: &Zone) -> Option<Record> {
    const REFRESH: i32 = 7200;
    const RETRY: i32 = 1800;
    const EXPIRE: i32 = 86400;
    let name = |prefix: &str| Name::from_ascii(format!("{prefix}{}.", zone.domain())).ok();
    let soa = SOA::new(name("ns.dns.")?, name("hostmaster.")?, zone.serial(), REFRESH, RETRY, EXPIRE, TTL);
    Some(Record::from_rdata(name("")?, TTL, RData::SOA(soa)))
}

/// An answer that says that something failed, for a query that was not dropped.
pub(super) fn failure(query: &[u8], transport: Transport) -> Vec<u8> {
    with_code(query, transport, ResponseCode::ServFail, false)
}

/// A response that requests a retry by TCP.
pub(super) fn truncated(query: &[u8]) -> Vec<u8> {
    with_code(query, Transport::Udp, ResponseCode::NoError, true)
}

fn with_code(query: &[u8], transport: Transport, code: ResponseCode, is_truncated: bool) -> Vec<u8> {
    let id = header(query).map_or(0, |(id, _, _)| id);
    let Ok(message) = Message::from_vec(query) else { return bare(id, OpCode::Query, code) };
    let Some(question) = message.queries.first() else { return bare(id, OpCode::Query, code) };
    let mut response = respond(&message, question, code);
    response.metadata.truncation = is_truncated;
    encode(&response, &message, transport)
}

/// The longest answer that fits a query by UDP.
pub(super) fn datagram_limit(query: &Message) -> usize {
    query.edns.as_ref().map_or(MIN_DATAGRAM, |edns| edns.max_payload().clamp(MIN_DATAGRAM, MAX_DATAGRAM)).into()
}

/// Identifier, third byte and number of questions.
fn header(message: &[u8]) -> Option<(u16, u8, u16)> {
    let header = message.first_chunk::<HEADER>()?;
    Some((u16::from_be_bytes([header[0], header[1]]), header[2], u16::from_be_bytes([header[4], header[5]])))
}

/// The labels of a name in lower case. What is no text matches no name of a pod.
pub(super) fn labels(name: &Name) -> Vec<String> {
    name.iter().map(|label| String::from_utf8_lossy(label).to_ascii_lowercase()).collect()
}

pub(super) fn respond(query: &Message, question: &Query, code: ResponseCode) -> Message {
    let mut response = Message::new(query.metadata.id, MessageType::Response, OpCode::Query);
    response.metadata.recursion_desired = query.metadata.recursion_desired;
    response.metadata.recursion_available = true;
    response.metadata.checking_disabled = query.metadata.checking_disabled;
    response.metadata.response_code = code;
    response.add_query(question.clone());
    if query.edns.is_some() {
        response.set_edns(own_edns());
    }
    response
}

/// Extensions that this resolver has.
pub(super) fn own_edns() -> Edns {
    let mut edns = Edns::new();
    edns.set_max_payload(MAX_DATAGRAM);
    edns
}

fn with_code_of(query: &Message, transport: Transport, code: ResponseCode) -> Vec<u8> {
    let bare = || bare(query.metadata.id, OpCode::Query, code);
    query.queries.first().map_or_else(bare, |question| encode(&respond(query, question, code), query, transport))
}

pub(super) fn encode(response: &Message, query: &Message, transport: Transport) -> Vec<u8> {
    let failed = || bare(response.metadata.id, OpCode::Query, ResponseCode::ServFail);
    let whole = response.to_vec().unwrap_or_else(|_| failed());
    match transport {
        Transport::Udp if whole.len() > datagram_limit(query) => response.truncate().to_vec().unwrap_or_else(|_| failed()),
        Transport::Udp | Transport::Tcp => whole,
    }
}

/// A header and nothing else, for a question that cannot be repeated.
fn bare(id: u16, code: OpCode, response: ResponseCode) -> Vec<u8> {
    const IS_RESPONSE: u8 = 0x80;
    let [high, low] = id.to_be_bytes();
    let flags = IS_RESPONSE | (u8::from(code) << 3);
    vec![high, low, flags, response.low(), 0, 0, 0, 0, 0, 0, 0, 0]
}

#[cfg(test)]
mod tests {
    use super::super::exchange::question;
    use super::super::zone::ZonePod;
    use super::*;
    use crate::services::ServiceNames;
    use podstead_pod::SourceId;
    use podstead_pod::sharing::Sharing;
    use podstead_service::allocate::{Grant, Grants};
    use podstead_service::definition::Definition;
    use podstead_service::endpoints::{Backend, Backends};
    use proptest::prelude::*;

    /// A Service with an address, and a headless one with two endpoints.
    fn services() -> Vec<ServiceNames> {
        let read = |text: &str| Definition::of(&serde_yaml::from_str(text).unwrap()).unwrap();
        let api = read("{metadata: {name: api, namespace: shop}, spec: {ports: [{name: http, port: 80, targetPort: 8080}]}}");
        let db = read(
            "{metadata: {name: db, namespace: shop}, spec: {clusterIP: None, selector: {app: db}, ports: [{name: pg, port: 1, targetPort: 5432}]}}",
        );
        let grant = Grant { cluster_ips: vec!["10.202.0.9".parse().unwrap()], ..Grant::default() };
        let grants = Grants::from([(api.name.clone(), grant)]);
        let pod = |name: &str, ip: &str, more: &str| -> Backend {
            let text = format!(
                "{{metadata: {{name: {name}, namespace: shop, labels: {{app: db}}}}, spec: {{containers: [], {more}}}, status: {{podIP: {ip}, conditions: [{{type: Ready, status: 'True'}}]}}}}"
            );
            Backend::of(&serde_yaml::from_str(&text).unwrap())
        };
        let pods = [pod("a", "10.201.1.1", "hostname: db-0, subdomain: db"), pod("b", "10.201.1.2", "")];
        let backends = Backends::new(&pods, []);
        [api, db].iter().filter_map(|service| ServiceNames::of(service, &grants, &backends.endpoints(service))).collect()
    }

    #[test]
    fn services_have_names_of_all_kinds() {
        for (name, kind, expected) in [
            ("api.shop.svc", RecordType::A, &["10.202.0.9"][..]),
            ("_http._tcp.api.shop.svc", RecordType::SRV, &["0 100 80 api.shop.svc.cluster.local."]),
            ("db.shop.svc", RecordType::A, &["10.201.1.1", "10.201.1.2"]),
            ("db-0.db.shop.svc", RecordType::A, &["10.201.1.1"]),
            ("10-201-1-2.db.shop.svc", RecordType::A, &["10.201.1.2"]),
            (
                "_pg._tcp.db.shop.svc",
                RecordType::SRV,
                &["0 50 5432 10-201-1-2.db.shop.svc.cluster.local.", "0 50 5432 db-0.db.shop.svc.cluster.local."],
            ),
            ("dns-version", RecordType::TXT, &["1.1.0"]),
        ] {
            let reply = asked(&format!("{name}.cluster.local."), kind);
            let answers: Vec<String> = reply.answers.iter().map(|record| record.data.to_string()).collect();
            assert_eq!(answers, expected, "{name}");
        }
        let back = asked("9.0.202.10.in-addr.arpa.", RecordType::PTR);
        assert_eq!(back.answers[0].data.to_string(), "api.shop.svc.cluster.local.");
        for (name, code) in [
            ("_tcp.api.shop.svc", ResponseCode::NoError),
            ("_http._udp.api.shop.svc", ResponseCode::NXDomain),
            ("_x._tcp.api.shop.svc", ResponseCode::NXDomain),
        ] {
            let reply = asked(&format!("{name}.cluster.local."), RecordType::SRV);
            assert_eq!((reply.metadata.response_code, reply.answers.len()), (code, 0), "{name}");
        }
    }

    fn zone() -> Zone {
        let pod = |number: u32| ZonePod {
            source: SourceId::new("a"),
            seen: None,
            namespace: "shop".into(),
            names: vec![format!("web-{number}")],
            hostname: format!("web-{number}"),
            subdomain: Some("web".into()),
            addresses: vec![std::net::Ipv4Addr::from(0x0ac9_0000 + number).into()],
            is_ready: true,
            owns_addresses: true,
        };
        let pods: Vec<ZonePod> = (1..=100).map(pod).collect();
        Zone::of("cluster.local", &[], 3, &Sharing::default(), &pods, services().into_iter().collect())
    }

    fn reply(query: &Message, transport: Transport) -> Message {
        match decide(&query.to_vec().unwrap(), &zone(), transport, 0) {
            Decision::Reply(reply) => Message::from_vec(&reply).unwrap(),
            other @ (Decision::Drop | Decision::Forward | Decision::Follow(_)) => panic!("{other:?}"),
        }
    }

    fn asked(name: &str, kind: RecordType) -> Message {
        reply(&question(name, kind, 7), Transport::Udp)
    }

    #[test]
    fn an_answer_repeats_the_question_as_it_was_written() {
        let reply = asked("wEb-1.ShOp.svc.cluster.LOCAL.", RecordType::A);
        assert_eq!(reply.metadata.id, 7);
        assert!(reply.metadata.authoritative && reply.metadata.recursion_available && reply.metadata.recursion_desired);
        let written = Name::from_ascii("wEb-1.ShOp.svc.cluster.LOCAL.").unwrap();
        assert!(reply.queries[0].name().eq_case(&written) && reply.answers[0].name.eq_case(&written));
        assert_eq!(reply.answers[0].data, RData::A(A::new(10, 201, 0, 1)));
        assert_eq!(reply.answers[0].ttl, 5);
    }

    #[test]
    fn no_such_name_and_nothing_of_that_type_are_told_apart_and_say_for_how_long() {
        for (name, kind, code) in [
            ("web-1.shop.svc.cluster.local.", RecordType::AAAA, ResponseCode::NoError),
            ("web-1.shop.svc.cluster.local.", RecordType::MX, ResponseCode::NoError),
            ("shop.svc.cluster.local.", RecordType::A, ResponseCode::NoError),
            ("nobody.shop.svc.cluster.local.", RecordType::A, ResponseCode::NXDomain),
            ("example.org.cluster.local.", RecordType::AAAA, ResponseCode::NXDomain),
        ] {
            let reply = asked(name, kind);
            assert_eq!((reply.metadata.response_code, reply.answers.len()), (code, 0), "{name} {kind}");
            let RData::SOA(soa) = &reply.authorities[0].data else { panic!("no SOA for {name}") };
            assert_eq!((soa.minimum, soa.serial, reply.authorities[0].ttl), (5, 3, 5));
            assert_eq!(reply.authorities[0].name.to_ascii(), "cluster.local.");
        }
        let apex = asked("cluster.local.", RecordType::ANY);
        assert_eq!((apex.answers.len(), apex.authorities.len()), (2, 0));
        assert_eq!(asked("1.0.201.10.in-addr.arpa.", RecordType::PTR).answers.len(), 1);
    }

    #[test]
    fn a_long_answer_is_cut_to_what_the_client_takes_and_whole_by_tcp() {
        let mut query = question("web.shop.svc.cluster.local.", RecordType::A, 7);
        let short = reply(&query, Transport::Udp);
        assert!(short.metadata.truncation && short.answers.is_empty() && short.edns.is_none());
        assert_eq!(reply(&query, Transport::Tcp).answers.len(), 100);
        let mut edns = Edns::new();
        edns.set_max_payload(4096);
        query.set_edns(edns);
        let medium = reply(&query, Transport::Udp);
        assert!(medium.metadata.truncation, "100 addresses take 1600 bytes, and 1232 get through everywhere");
        assert_eq!(medium.edns.unwrap().max_payload(), MAX_DATAGRAM);
        assert_eq!(truncated(&query.to_vec().unwrap()), medium_bytes(&query));
    }

    fn medium_bytes(query: &Message) -> Vec<u8> {
        let mut expected = respond(query, &query.queries[0], ResponseCode::NoError);
        expected.metadata.truncation = true;
        expected.to_vec().unwrap()
    }

    #[test]
    fn addresses_come_in_another_order_each_time() {
        let query = question("web.shop.svc.cluster.local.", RecordType::A, 7).to_vec().unwrap();
        let first = |turn: usize| {
            let Decision::Reply(reply) = decide(&query, &zone(), Transport::Tcp, turn) else { panic!("no reply") };
            Message::from_vec(&reply).unwrap().answers[0].data.clone()
        };
        assert_eq!(first(0), RData::A(A::new(10, 201, 0, 1)));
        assert_eq!(first(41), RData::A(A::new(10, 201, 0, 42)));
        assert_eq!(first(usize::MAX), first(usize::MAX % 100));
    }

    #[test]
    fn what_is_not_of_the_zone_goes_on_if_that_is_wanted() {
        let mut query = question("example.org.", RecordType::A, 7);
        assert_eq!(decide(&query.to_vec().unwrap(), &zone(), Transport::Udp, 0), Decision::Forward);
        query.metadata.recursion_desired = false;
        assert_eq!(reply(&query, Transport::Udp).metadata.response_code, ResponseCode::Refused);
    }

    #[test]
    fn what_is_no_plain_question_is_refused_or_dropped() {
        let name = "web-1.shop.svc.cluster.local.";
        assert_eq!(asked(name, RecordType::AXFR).metadata.response_code, ResponseCode::Refused);
        let mut chaos = question("version.bind.", RecordType::TXT, 7);
        chaos.queries[0].set_query_class(DNSClass::CH);
        assert_eq!(reply(&chaos, Transport::Udp).metadata.response_code, ResponseCode::Refused);
        let mut newer = question(name, RecordType::A, 7);
        let mut edns = Edns::new();
        edns.set_version(1);
        newer.set_edns(edns);
        // 16 is also BADSIG.
        assert_eq!(u16::from(reply(&newer, Transport::Udp).metadata.response_code), u16::from(ResponseCode::BADVERS));

        let plain = question(name, RecordType::A, 7).to_vec().unwrap();
        let with = |at: usize, byte: u8| {
            let mut bytes = plain.clone();
            bytes[at] = byte;
            decide(&bytes, &zone(), Transport::Udp, 0)
        };
        assert_eq!(with(2, 0x81), Decision::Drop, "an answer");
        assert_eq!(with(2, 0x28), Decision::Reply(vec![0, 7, 0xa8, 4, 0, 0, 0, 0, 0, 0, 0, 0]), "an update");
        for two in [with(5, 2), with(4, 0xff), with(5, 0), with(12, 0xff)] {
            assert_eq!(two, Decision::Reply(vec![0, 7, 0x80, 1, 0, 0, 0, 0, 0, 0, 0, 0]));
        }
        assert_eq!(decide(&plain[..11], &zone(), Transport::Udp, 0), Decision::Drop);
        // A name that leads to itself.
        let looped = [&plain[..12], &[0xc0, 12, 0, 1, 0, 1]].concat();
        assert_eq!(decide(&looped, &zone(), Transport::Udp, 0), Decision::Reply(bare(7, OpCode::Query, ResponseCode::FormErr)));
    }

    #[test]
    fn a_failure_is_told_with_the_question() {
        let query = question("example.org.", RecordType::A, 7).to_vec().unwrap();
        let reply = Message::from_vec(&failure(&query, Transport::Udp)).unwrap();
        assert_eq!((reply.metadata.response_code, reply.queries.len()), (ResponseCode::ServFail, 1));
        assert_eq!(failure(&[0, 7, 0], Transport::Udp).len(), 12);
    }

    proptest! {
        #[test]
        fn no_message_is_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..600), head in any::<bool>()) {
            let plain = question("web.shop.svc.cluster.local.", RecordType::A, 7).to_vec().unwrap();
            let bytes = if head { [&plain[..12], &bytes].concat() } else { bytes };
            if let Decision::Reply(reply) = decide(&bytes, &zone(), Transport::Udp, 1) {
                prop_assert!(reply.len() <= usize::from(MAX_DATAGRAM));
                prop_assert_eq!(&reply[..2], &bytes[..2]);
                prop_assert!(Message::from_vec(&reply).is_ok());
            }
        }
    }
}

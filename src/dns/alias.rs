//! Names that stand for other names: Services of type ExternalName (S25). **Pure**.
//!
//! An answer has the whole chain, since C libraries do not follow it. Steps inside the zone are found at once. Where the chain leaves the zone,
//! the host's name servers are asked for the last name, and their answer comes behind the chain.

use super::message::{self, Transport};
use super::zone::{Found, Zone};
use hickory_proto::op::{Message, MessageType, OpCode, Query};
use hickory_proto::rr::rdata::CNAME;
use hickory_proto::rr::{Name, RData, Record, RecordType};
use std::collections::BTreeSet;

/// Steps from a name to the one that has an answer, in the zone or behind it.
const MOST_STEPS: usize = 8;
/// Length of the header of a message.
const HEADER: usize = 12;
/// The shortest record: the root, type, class, seconds and length.
const SHORTEST_RECORD: usize = 11;

/// The end of a chain of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Content of the zone for the last name.
    InZone(Name, Found),
    /// The last name is not of the zone.
    Outside(Name),
    /// The names lead to each other, or there are too many, or one is no name.
    Nowhere,
}

/// A query that waits for the host's name servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Alias {
    /// The query for them, with the identifier of the client's.
    pub(super) question: Vec<u8>,
    target: Name,
    chain: Vec<Record>,
}

/// Follows a name to the end. The records are those of the names on the way.
pub(super) fn follow(zone: &Zone, first: &Name, target: String) -> (Vec<Record>, End) {
    let (mut chain, mut owner, mut target) = (Vec::new(), first.clone(), target);
    for _ in 0..MOST_STEPS {
        let Ok(next) = Name::from_ascii(target) else { return (chain, End::Nowhere) };
        chain.push(Record::from_rdata(owner, message::TTL, RData::CNAME(CNAME(next.clone()))));
        match zone.find(&message::labels(&next)) {
            Found::Alias(further) => (owner, target) = (next, further),
            Found::Foreign => return (chain, End::Outside(next)),
            found => return (chain, End::InZone(next, found)),
        }
    }
    (chain, End::Nowhere)
}

impl Alias {
    /// The query for the last name of a chain; `None` if it cannot be written.
    pub(super) fn new(query: &Message, target: Name, chain: Vec<Record>) -> Option<Self> {
        let asked = query.queries.first()?;
        let mut message = Message::new(query.metadata.id, MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = true;
        message.metadata.checking_disabled = query.metadata.checking_disabled;
        message.add_query(Query::query(target.clone(), asked.query_type()));
        if query.edns.is_some() {
            message.set_edns(message::own_edns());
        }
        Some(Self { question: message.to_vec().ok()?, target, chain })
    }

    /// The reply to the client's query, with what a name server answered; a failure without an answer, or with one that makes no sense.
    pub(super) fn reply(&self, query: &[u8], answer: Option<&[u8]>, transport: Transport) -> Vec<u8> {
        let failed = || message::failure(query, transport);
        let Some(answer) = answer.and_then(read) else { return failed() };
        let Ok(query) = Message::from_vec(query) else { return failed() };
        let Some(asked) = query.queries.first() else { return failed() };
        let mut response = message::respond(&query, asked, answer.metadata.response_code);
        response.metadata.authoritative = true;
        response.metadata.truncation = answer.metadata.truncation;
        response.add_answers(self.chain.iter().cloned());
        let behind = self.behind(&answer.answers, asked.query_type());
        if behind.is_empty() {
            // For how long it may be believed that there is nothing (RFC 2308).
            let is_soa = |record: &&Record| record.record_type() == RecordType::SOA;
            response.add_authorities(answer.authorities.iter().filter(is_soa).take(1).cloned());
        }
        response.add_answers(behind);
        message::encode(&response, &query, transport)
    }

    /// The records that answer for the last name of the chain, and for those that it stands for. Others are nobody's business.
    fn behind(&self, answers: &[Record], wanted: RecordType) -> Vec<Record> {
        let mut names = BTreeSet::from([self.target.to_lowercase()]);
        let mut steps = self.chain.len();
        let mut behind = Vec::new();
        // Name servers write aliases before what they lead to.
        for record in answers.iter().filter(|record| record.record_type() == wanted || record.record_type() == RecordType::CNAME) {
            if !names.contains(&record.name.to_lowercase()) {
                continue;
            }
            if let RData::CNAME(next) = &record.data {
                steps += 1;
                if steps > MOST_STEPS {
                    break;
                }
                names.insert(next.0.to_lowercase());
            }
            behind.push(record.clone());
        }
        behind
    }
}

/// A message of a name server. It promises no more records than it has room for.
fn read(answer: &[u8]) -> Option<Message> {
    let counts = answer.get(6..HEADER)?.chunks_exact(2).map(|count| usize::from(count[0]) << 8 | usize::from(count[1]));
    let is_possible = counts.sum::<usize>() <= (answer.len() - HEADER) / SHORTEST_RECORD;
    let message = if is_possible { Message::from_vec(answer).ok()? } else { return None };
    // Longer codes are about EDNS between this host and its name server.
    (u16::from(message.metadata.response_code) < 16).then_some(message)
}

#[cfg(test)]
mod tests {
    use super::super::exchange::question;
    use super::super::message::{Decision, decide};
    use super::super::services::{NamesOfServices, ServiceNames};
    use super::*;
    use hickory_proto::op::ResponseCode;
    use podstead_pod::sharing::Sharing;
    use podstead_service::allocate::{Grant, Grants};
    use podstead_service::definition::Definition;
    use podstead_service::endpoints::Backends;
    use proptest::prelude::*;

    /// Services by name and target, beside `web` with an address.
    fn zone(aliases: &[(&str, &str)]) -> Zone {
        let read = |text: &str| Definition::of(&serde_yaml::from_str(text).unwrap()).unwrap();
        let mut services = vec![read("{metadata: {name: web, namespace: shop}, spec: {ports: [{port: 80}]}}")];
        let grant = Grant { cluster_ips: vec!["10.202.0.9".parse().unwrap()], ..Grant::default() };
        let grants = Grants::from([(services[0].name.clone(), grant)]);
        services.extend(aliases.iter().map(|(name, target)| {
            read(&format!("{{metadata: {{name: {name}, namespace: shop}}, spec: {{type: ExternalName, externalName: {target}}}}}"))
        }));
        let backends = Backends::new([], []);
        let names: NamesOfServices =
            services.iter().filter_map(|service| ServiceNames::of(service, &grants, &backends.endpoints(service))).collect();
        Zone::of("cluster.local", &[], 3, &Sharing::default(), &[], names)
    }

    const NAME: &str = "Db.shop.svc.cluster.local.";

    fn decided(zone: &Zone, kind: RecordType) -> Decision {
        decide(&question(NAME, kind, 7).to_vec().unwrap(), zone, Transport::Udp, 0)
    }

    /// The code of a reply, and its answers in words.
    fn told(reply: &[u8]) -> (ResponseCode, Vec<String>) {
        let message = Message::from_vec(reply).unwrap();
        let answers = message.answers.iter().map(|record| format!("{} {} {}", record.name, record.record_type(), record.data));
        (message.metadata.response_code, answers.collect())
    }

    fn reply(zone: &Zone, kind: RecordType) -> (ResponseCode, Vec<String>) {
        let Decision::Reply(reply) = decided(zone, kind) else { panic!("no reply") };
        told(&reply)
    }

    fn alias(zone: &Zone, kind: RecordType) -> Alias {
        let Decision::Follow(alias) = decided(zone, kind) else { panic!("no alias") };
        *alias
    }

    const FIRST: &str = "Db.shop.svc.cluster.local. CNAME";

    #[test]
    fn name_in_zone_is_followed() {
        let zone = zone(&[("db", "second.shop.svc.cluster.local"), ("second", "web.shop.svc.cluster.local")]);
        let expected = [
            format!("{FIRST} second.shop.svc.cluster.local."),
            "second.shop.svc.cluster.local. CNAME web.shop.svc.cluster.local.".to_owned(),
            "web.shop.svc.cluster.local. A 10.202.0.9".to_owned(),
        ];
        assert_eq!(reply(&zone, RecordType::A), (ResponseCode::NoError, expected.to_vec()));
        assert_eq!(reply(&zone, RecordType::AAAA), (ResponseCode::NoError, expected[..2].to_vec()));
        assert_eq!(reply(&zone, RecordType::CNAME), (ResponseCode::NoError, expected[..1].to_vec()));
        let nobody = self::zone(&[("db", "nobody.shop.svc.cluster.local")]);
        assert_eq!(reply(&nobody, RecordType::A).0, ResponseCode::NXDomain);
    }

    #[test]
    fn loops_and_long_chains_fail() {
        let itself = zone(&[("db", "db.shop.svc.cluster.local")]);
        assert_eq!(reply(&itself, RecordType::A), (ResponseCode::ServFail, Vec::new()));
        let names: Vec<(String, String)> =
            (1..8).map(|number| (format!("n{number}"), format!("n{}.shop.svc.cluster.local", number + 1))).collect();
        // From `db` over `n1` to `n8` are 8 steps, and one more to `web`.
        for (first, code, answers) in [("n1", ResponseCode::ServFail, 0), ("n2", ResponseCode::NoError, 9)] {
            let mut all: Vec<(&str, &str)> = names.iter().map(|(name, target)| (name.as_str(), target.as_str())).collect();
            let first = format!("{first}.shop.svc.cluster.local");
            all.extend([("db", first.as_str()), ("n8", "web.shop.svc.cluster.local")]);
            let (found, told) = reply(&zone(&all), RecordType::A);
            assert_eq!((found, told.len()), (code, answers), "{first}");
        }
    }

    #[test]
    fn answer_of_name_server_comes_behind() {
        let zone = zone(&[("db", "db.example.org")]);
        let alias = alias(&zone, RecordType::A);
        let asked = Message::from_vec(&alias.question).unwrap();
        assert_eq!((asked.metadata.id, asked.queries[0].name().to_ascii()), (7, "db.example.org.".to_owned()));
        let name = |text: &str| Name::from_ascii(text).unwrap();
        let mut answer = asked.clone();
        answer.metadata.message_type = MessageType::Response;
        let address = || RData::A(hickory_proto::rr::rdata::A::new(192, 0, 2, 7));
        for (owner, data) in [
            ("DB.example.org.", RData::CNAME(CNAME(name("real.example.org.")))),
            ("real.example.org.", address()),
            ("bank.example.org.", address()),
        ] {
            answer.add_answer(Record::from_rdata(name(owner), 60, data));
        }
        let query = question(NAME, RecordType::A, 7).to_vec().unwrap();
        let reply = |answer: &Message| told(&alias.reply(&query, Some(&answer.to_vec().unwrap()), Transport::Udp));
        let expected = [
            format!("{FIRST} db.example.org."),
            "DB.example.org. CNAME real.example.org.".to_owned(),
            "real.example.org. A 192.0.2.7".to_owned(),
        ];
        assert_eq!(reply(&answer), (ResponseCode::NoError, expected.to_vec()));
        let mut missing = asked;
        missing.metadata.message_type = MessageType::Response;
        missing.metadata.response_code = ResponseCode::NXDomain;
        assert_eq!(reply(&missing), (ResponseCode::NXDomain, expected[..1].to_vec()));
        assert_eq!(told(&alias.reply(&query, None, Transport::Udp)).0, ResponseCode::ServFail);
        // It promises more records than it has.
        let mut promised = answer.to_vec().unwrap();
        promised[6] = 0xff;
        assert_eq!(told(&alias.reply(&query, Some(&promised), Transport::Tcp)).0, ResponseCode::ServFail);
    }

    #[test]
    fn without_recursion_only_alias_is_told() {
        let zone = zone(&[("db", "db.example.org")]);
        let mut query = question(NAME, RecordType::A, 7);
        query.metadata.recursion_desired = false;
        let Decision::Reply(reply) = decide(&query.to_vec().unwrap(), &zone, Transport::Udp, 0) else { panic!("no reply") };
        assert_eq!(told(&reply), (ResponseCode::NoError, vec![format!("{FIRST} db.example.org.")]));
    }

    proptest! {
        #[test]
        fn no_answer_is_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..600), head in any::<bool>()) {
            let zone = zone(&[("db", "db.example.org")]);
            let alias = alias(&zone, RecordType::A);
            let bytes = if head { [&alias.question[..12], &bytes].concat() } else { bytes };
            let query = question(NAME, RecordType::A, 7).to_vec().unwrap();
            let reply = alias.reply(&query, Some(&bytes), Transport::Udp);
            prop_assert!(reply.len() <= 1232 && Message::from_vec(&reply).is_ok());
        }
    }
}

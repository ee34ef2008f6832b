//! The next zone from the one before and a change, which looks only at names and addresses that the change concerns. **Pure**.

use super::super::services::NamesOfServices;
use super::pods::{Claims, NameOfPods, Owned, ZonePod};
use super::{Found, Top, Zone};
use podstead_pod::PodUid;
use podstead_pod::sharing::Sharing;
use podstead_service::name::ObjectName;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// A zone, and the pods that it is made of.
#[derive(Debug)]
pub(in super::super) struct ZoneBuilder {
    zone: Zone,
    sharing: Arc<Sharing>,
    pods: BTreeMap<PodUid, ZonePod>,
    /// The pods that want a name: as theirs, or as their subdomain.
    wanting: BTreeMap<ObjectName, BTreeSet<PodUid>>,
    /// The pods that an address belongs to.
    owning: BTreeMap<IpAddr, BTreeSet<PodUid>>,
}

/// Names and addresses to look at again.
#[derive(Debug, Default, PartialEq, Eq)]
struct Touched {
    names: BTreeSet<ObjectName>,
    addresses: BTreeSet<IpAddr>,
}

impl ZoneBuilder {
    /// The zone of `domain`, which has no final dot, without pods and Services. `servers` are the addresses of the resolver itself.
    pub(in super::super) fn new(domain: &str, servers: &[IpAddr]) -> Self {
        let domain = domain.to_ascii_lowercase();
        let labels = domain.split('.').map(str::to_owned).collect();
        let top = Arc::new(Top { domain, labels, servers: servers.to_vec() });
        Self {
            zone: Zone { top, ..Zone::default() },
            sharing: Arc::default(),
            pods: BTreeMap::new(),
            wanting: BTreeMap::new(),
            owning: BTreeMap::new(),
        }
    }

    /// The present zone.
    pub(in super::super) fn zone(&self) -> Arc<Zone> {
        Arc::new(self.zone.clone())
    }

    /// Sets what names show of a pod, `None` for nothing. Returns true if that is another zone.
    pub(in super::super) fn set_pod(&mut self, uid: &PodUid, pod: Option<ZonePod>) -> bool {
        if self.pods.get(uid) == pod.as_ref() {
            return false;
        }
        let touched = self.register(uid, pod);
        self.renew(touched);
        true
    }

    /// Replaces the names of all Services. Returns true if that is another zone.
    pub(in super::super) fn set_services(&mut self, services: NamesOfServices) -> bool {
        if self.zone.services == services {
            return false;
        }
        let before = std::mem::replace(&mut self.zone.services, services);
        // A name that is a Service's leads back to no pod.
        let wanting = before.changed(&self.zone.services).filter_map(|name| self.wanting.get(name)).flatten();
        let addresses = wanting.filter_map(|uid| self.pods.get(uid)).flat_map(ZonePod::own_addresses).collect();
        self.renew(Touched { names: BTreeSet::new(), addresses });
        true
    }

    /// Sets whose names are whose. Returns true if that is another rule.
    pub(in super::super) fn set_sharing(&mut self, sharing: &Arc<Sharing>) -> bool {
        if self.sharing == *sharing {
            return false;
        }
        self.sharing = Arc::clone(sharing);
        self.renew(Touched { names: self.wanting.keys().cloned().collect(), addresses: self.owning.keys().copied().collect() });
        true
    }

    /// Takes a pod up or out. Returns the names and addresses that it has or had.
    fn register(&mut self, uid: &PodUid, pod: Option<ZonePod>) -> Touched {
        let mut touched = Touched::default();
        if let Some(before) = self.pods.remove(uid) {
            touched.add(&before);
            before.wants().iter().for_each(|name| take(&mut self.wanting, name, uid));
            before.own_addresses().for_each(|address| take(&mut self.owning, &address, uid));
            self.zone.pods.leave(&before.namespace);
        }
        if let Some(pod) = pod {
            touched.add(&pod);
            for name in pod.wants() {
                self.wanting.entry(name).or_default().insert(uid.clone());
            }
            for address in pod.own_addresses() {
                self.owning.entry(address).or_default().insert(uid.clone());
            }
            self.zone.pods.enter(&pod.namespace);
            self.pods.insert(uid.clone(), pod);
        }
        touched
    }

    /// Decides anew whose names and addresses are.
    fn renew(&mut self, touched: Touched) {
        let Touched { names, mut addresses } = touched;
        self.zone.serial = self.zone.serial.wrapping_add(1);
        for name in names {
            let claims = self.claims(&name);
            let found = claims.decide(&name.name, &self.sharing);
            let before = self.zone.pods.at(&name);
            addresses.extend(concerned(&claims, before, found.as_ref()));
            self.zone.pods.set_name(&name, found);
        }
        for address in addresses {
            let owned = self.owned(address);
            self.zone.pods.set_address(address, owned);
        }
    }

    /// The pods that want a name, in the order of their UIDs.
    fn claims(&self, name: &ObjectName) -> Claims<'_> {
        let mut claims = Claims::default();
        for pod in self.wanting.get(name).into_iter().flatten().filter_map(|uid| self.pods.get(uid)) {
            if pod.labels().any(|label| label == name.name) {
                claims.named.push(pod);
            }
            if pod.subdomain.as_deref() == Some(name.name.as_str()) {
                claims.members.push(pod);
            }
        }
        claims
    }

    /// The owners of an address, and the name that it leads back to: of the last pod that has a name.
    fn owned(&self, address: IpAddr) -> Owned {
        let mut owned = Owned::default();
        for pod in self.owning.get(&address).into_iter().flatten().filter_map(|uid| self.pods.get(uid)) {
            owned.namespaces.insert(pod.namespace.clone());
            if let Some(pointer) = self.pointer(pod) {
                owned.pointer = Some(pointer);
            }
        }
        owned
    }

    /// The absolute name that addresses of a pod lead back to. It must not lead to another pod.
    fn pointer(&self, pod: &ZonePod) -> Option<String> {
        let has = |found: Found| match found {
            Found::Addresses(addresses) => pod.addresses.iter().all(|address| addresses.contains(address)),
            _ => false,
        };
        let is_member = |subdomain: &&String| has(self.zone.member(&pod.namespace, subdomain, &pod.hostname));
        let name = match pod.subdomain.as_ref().filter(is_member) {
            Some(subdomain) => format!("{}.{subdomain}", pod.hostname),
            None => pod.labels().find(|name| has(self.zone.service(&pod.namespace, name)))?.to_owned(),
        };
        Some(format!("{name}.{}.svc.{}.", pod.namespace, self.zone.top.domain))
    }
}

impl Touched {
    fn add(&mut self, pod: &ZonePod) {
        self.names.extend(pod.wants());
        self.addresses.extend(pod.own_addresses());
    }
}

/// Addresses of pods that a name leads to otherwise than before: they may lead back to another name.
fn concerned<'a>(
    claims: &Claims<'a>,
    before: Option<&'a NameOfPods>,
    after: Option<&'a NameOfPods>,
) -> impl Iterator<Item = IpAddr> + use<'a> {
    let addresses = |found: Option<&'a NameOfPods>| found.map(|found| &found.addresses);
    let member = |found: Option<&'a NameOfPods>, pod: &ZonePod| found.and_then(|found| found.members.get(&pod.hostname));
    let is_other = addresses(before) != addresses(after);
    let named = claims.named.iter().copied().filter(|_| is_other);
    let members = claims.members.iter().copied().filter(|pod| member(before, pod) != member(after, pod));
    let pods: Vec<&'a ZonePod> = named.chain(members).collect();
    pods.into_iter().flat_map(ZonePod::own_addresses)
}

/// Removes a pod from those of a key.
fn take<K: Ord>(index: &mut BTreeMap<K, BTreeSet<PodUid>>, key: &K, uid: &PodUid) {
    if let Some(uids) = index.get_mut(key) {
        uids.remove(uid);
        if uids.is_empty() {
            index.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::ServiceNames;
    use podstead_pod::SourceId;
    use podstead_pod::testing::sharing;
    use podstead_service::allocate::{Grant, Grants};
    use podstead_service::definition::Definition;
    use podstead_service::endpoints::ServiceEndpoints;
    use proptest::prelude::*;

    /// A change of what the zone is made of.
    #[derive(Clone, Debug)]
    enum Edit {
        Pod(u8, Option<ZonePod>),
        /// The Services by the numbers of their names, each with the last number of its address or another name.
        Services(Vec<(u8, Option<u8>)>),
        Sharing(usize),
    }

    const NAMES: [&str; 4] = ["a", "b", "c", "d"];

    fn pod() -> impl Strategy<Value = ZonePod> {
        let name = || proptest::sample::select(&NAMES[..]);
        let names = (name(), name(), proptest::option::of(name()), proptest::sample::select(&["x", "y"][..]));
        let source = (proptest::sample::select(&["s", "t", "r"][..]), 0..3_i64);
        (names, source, proptest::collection::vec(0..5_u8, 1..3), any::<[bool; 2]>()).prop_map(
            |((name, hostname, subdomain, namespace), (source, seen), addresses, [is_ready, owns_addresses])| ZonePod {
                source: SourceId::new(source),
                seen: jiff::Timestamp::from_second(seen).ok(),
                namespace: namespace.to_owned(),
                names: vec![name.to_owned(), format!("{name}-edge")],
                hostname: hostname.to_owned(),
                subdomain: subdomain.map(str::to_owned),
                addresses: addresses.into_iter().map(|last| [10, 201, 0, last].into()).collect(),
                is_ready,
                owns_addresses,
            },
        )
    }

    fn edit() -> impl Strategy<Value = Edit> {
        prop_oneof![
            8 => (0..8_u8, proptest::option::weighted(0.7, pod())).prop_map(|(uid, pod)| Edit::Pod(uid, pod)),
            2 => proptest::collection::vec((0..4_u8, proptest::option::of(0..5_u8)), 0..3).prop_map(Edit::Services),
            1 => (0..SHARING.len()).prop_map(Edit::Sharing),
        ]
    }

    const SHARING: [&[&str]; 3] = [&["s", "t", "r"], &["s", "t!", "r!"], &["r!", "s"]];

    fn shared(number: usize) -> Arc<Sharing> {
        Arc::new(sharing(SHARING[number], &[("s", "r", "a"), ("s", "t", "b")]))
    }

    fn names_of(services: &[(u8, Option<u8>)]) -> NamesOfServices {
        let names = services.iter().filter_map(|(name, last)| {
            let name = NAMES[usize::from(*name)];
            let spec = if last.is_some() { "{ports: [{port: 80}]}" } else { "{type: ExternalName, externalName: x.y}" };
            let text = format!("{{metadata: {{name: {name}, namespace: x}}, spec: {spec}}}");
            let service = Definition::of(&serde_yaml::from_str(&text).unwrap()).unwrap();
            let cluster_ips = last.iter().map(|last| [10, 201, 0, *last].into()).collect();
            let grants = Grants::from([(service.name.clone(), Grant { cluster_ips, ..Grant::default() })]);
            ServiceNames::of(&service, &grants, &ServiceEndpoints { ports: Vec::new(), addresses: Vec::new() })
        });
        names.collect()
    }

    fn make(builder: &mut ZoneBuilder, edit: &Edit) {
        let before = builder.zone();
        let is_other = match edit {
            Edit::Pod(uid, pod) => builder.set_pod(&PodUid::new(uid.to_string()), pod.clone()),
            Edit::Services(services) => builder.set_services(names_of(services)),
            Edit::Sharing(number) => builder.set_sharing(&shared(*number)),
        };
        assert_eq!(is_other, *builder.zone() != *before);
    }

    /// The same zone, with every name decided anew at the end.
    fn whole(builder: &ZoneBuilder) -> Zone {
        let mut whole = ZoneBuilder::new(&builder.zone.top.domain, &builder.zone.top.servers);
        whole.sharing = Arc::clone(&builder.sharing);
        whole.zone.services = builder.zone.services.clone();
        for (uid, pod) in &builder.pods {
            whole.register(uid, Some(pod.clone()));
        }
        whole.renew(Touched { names: whole.wanting.keys().cloned().collect(), addresses: whole.owning.keys().copied().collect() });
        Zone { serial: builder.zone.serial, ..whole.zone }
    }

    proptest! {
        #[test]
        fn zone_after_changes_is_the_one_that_is_made_at_once(edits in proptest::collection::vec(edit(), 1..40)) {
            let mut builder = ZoneBuilder::new("c.l", &[]);
            edits.iter().for_each(|edit| make(&mut builder, edit));
            prop_assert_eq!(&builder.zone, &whole(&builder));
            for uid in builder.pods.keys().cloned().collect::<Vec<_>>() {
                builder.set_pod(&uid, None);
            }
            builder.set_services(NamesOfServices::default());
            let empty = Zone { serial: builder.zone.serial, ..ZoneBuilder::new("c.l", &[]).zone };
            prop_assert_eq!(&builder.zone, &empty);
            prop_assert!(builder.wanting.is_empty() && builder.owning.is_empty());
        }
    }

    #[test]
    fn change_of_a_pod_looks_at_its_own_names() {
        let mut builder = ZoneBuilder::new("c.l", &[]);
        let pod = |number: u8, is_ready: bool| ZonePod {
            source: SourceId::new("s"),
            seen: None,
            namespace: "x".to_owned(),
            names: vec![format!("web-{number}")],
            hostname: format!("web-{number}"),
            subdomain: Some(format!("of-{}", number % 20)),
            addresses: vec![[10, 201, 0, number].into()],
            is_ready,
            owns_addresses: true,
        };
        for number in 0..200 {
            builder.set_pod(&PodUid::new(number.to_string()), Some(pod(number, false)));
        }
        let touched = builder.register(&PodUid::new("7"), Some(pod(7, true)));
        let names: Vec<&str> = touched.names.iter().map(|name| name.name.as_str()).collect();
        assert_eq!((names, touched.addresses), (vec!["of-7", "web-7"], BTreeSet::from([[10, 201, 0, 7].into()])));
        let name = ObjectName { namespace: "x".into(), name: "of-7".into() };
        let claims = builder.claims(&name);
        let found = claims.decide("of-7", &builder.sharing);
        assert_eq!(claims.members.len(), 10);
        // It is ready: nobody's address leads back to another name than before.
        assert_eq!(concerned(&claims, builder.zone.pods.at(&name), found.as_ref()).count(), 0);
    }
}

//! The state of Services from turn to turn: what sources and pods say, what was decided, and the Services that a change concerns. **Pure**.
//!
//! A turn looks again at the Services that are [`Stale`]: those whose object, slices or grant are others than before, and those that select a pod
//! that has changed. The result is the same as if it looked at all of them.

use super::backends::{Pods, PublishedPod};
use super::index::{ListedAddresses, PodIndex, ServiceIndex, hashed};
use super::plan::{self, Decision, SourcedService};
use podstead_api::services::Shown;
use podstead_dns::{NamesOfServices, ServiceNames};
use podstead_pod::SourceId;
use podstead_pod::objects::{NetworkKind, NetworkObject, Objects, PackedObject};
use podstead_pod::sharing::Sharing;
use podstead_service::allocate::{Grants, Pool};
use podstead_service::endpoints::{ServiceEndpoints, Slice, of_pods, of_sources};
use podstead_service::frontends::{Excess, Frontend, Frontends};
use podstead_service::name::ObjectName;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

/// Services whose endpoints are in memory at one time.
const BATCH: usize = 32;

/// An EndpointSlice of a source.
#[derive(Clone, Debug)]
struct SourcedSlice {
    /// The hash of its Service's name.
    service: u32,
    object: Arc<PackedObject>,
    source: SourceId,
}

/// Services to look at again, by name, each as it was served if its object is another one.
#[derive(Clone, Debug, Default)]
pub(super) struct Stale {
    /// All Services.
    is_all: bool,
    /// All frontends.
    are_all_frontends: bool,
    services: BTreeMap<ObjectName, Option<Arc<SourcedService>>>,
}

impl Stale {
    fn add(&mut self, service: &ObjectName) {
        if !self.services.contains_key(service) {
            self.services.insert(service.clone(), None);
        }
    }

    /// The names; `None` for all.
    #[cfg(test)]
    pub(super) fn names(&self) -> Option<Vec<String>> {
        (!self.is_all).then(|| self.services.keys().map(|service| service.name.to_string()).collect())
    }
}

/// The Services, slices and pods that are known, the last decision about them, and the grants that are served.
#[derive(Debug, Default)]
pub(super) struct State {
    objects: Arc<Objects>,
    services: ServiceIndex,
    /// In the order of the hashes of Services.
    slices: Vec<SourcedSlice>,
    listed: ListedAddresses,
    pods: PodIndex,
    decision: Decision,
    /// The pool that was decided with; `None` to decide again.
    pool: Option<Pool>,
    /// The grants that are served.
    served: Arc<Grants>,
    excess: Excess,
    stale: Stale,
}

impl State {
    /// Takes up what sources and pods say now.
    pub(super) fn see(&mut self, objects: &Arc<Objects>, pods: &Pods) {
        if !Arc::ptr_eq(&self.objects, objects) {
            self.see_objects(objects);
        }
        self.see_pods(pods);
    }

    /// Makes the next turn look at everything: what was served is not known.
    pub(super) fn forget(&mut self) {
        self.stale.is_all = true;
        self.pool = None;
    }

    /// Makes this turn look at all frontends.
    pub(super) fn forget_frontends(&mut self) {
        self.stale.are_all_frontends = true;
    }

    fn see_objects(&mut self, objects: &Arc<Objects>) {
        let before = std::mem::replace(&mut self.objects, Arc::clone(objects));
        if before.sharing() != objects.sharing() {
            self.forget();
        }
        if before.is_complete() != objects.is_complete() {
            self.pool = None;
        }
        let services = plan::services(objects, self.services.all());
        let is_same = |(one, other): (&Arc<SourcedService>, &Arc<SourcedService>)| Arc::ptr_eq(one, other);
        let known = self.services.all();
        if known.len() != services.len() || !known.iter().zip(&services).all(is_same) {
            self.pool = None;
            let there: HashSet<*const SourcedService> = services.iter().map(Arc::as_ptr).collect();
            for gone in known.iter().filter(|service| !there.contains(&Arc::as_ptr(service))) {
                self.stale.services.insert(gone.definition.name.clone(), Some(Arc::clone(gone)));
            }
            let there: HashSet<*const SourcedService> = known.iter().map(Arc::as_ptr).collect();
            for new in services.iter().filter(|service| !there.contains(&Arc::as_ptr(service))) {
                self.stale.add(&new.definition.name);
            }
            self.services = ServiceIndex::new(Arc::new(services));
        }
        self.see_slices(objects);
    }

    fn see_slices(&mut self, objects: &Objects) {
        let there: HashSet<*const PackedObject> = self.slices.iter().map(|slice| Arc::as_ptr(&slice.object)).collect();
        let all = || plan::packed(objects, NetworkKind::EndpointSlice);
        let new: Vec<SourcedSlice> = all()
            .filter(|(object, _)| !there.contains(&Arc::as_ptr(object)))
            .filter_map(|(object, source)| {
                let service = hashed(read(object)?.service);
                Some(SourcedSlice { service, object: Arc::clone(object), source: source.clone() })
            })
            .collect();
        let wanted: HashSet<*const PackedObject> = all().map(|(object, _)| Arc::as_ptr(object)).collect();
        let is_gone = |slice: &&SourcedSlice| !wanted.contains(&Arc::as_ptr(&slice.object));
        let changed: BTreeSet<u32> = new.iter().chain(self.slices.iter().filter(is_gone)).map(|slice| slice.service).collect();
        if changed.is_empty() {
            return;
        }
        self.slices.retain(|slice| !is_gone(&slice));
        self.slices.extend(new);
        self.slices.sort_by_key(|slice| slice.service);
        self.slices.shrink_to_fit();
        for hash in changed {
            let addresses = self.slices_of(hash).flat_map(|(slice, _)| slice.addresses().collect::<Vec<_>>());
            let addresses: BTreeSet<IpAddr> = addresses.collect();
            self.listed.replace(hash, addresses.into_iter());
            self.mark_hash(hash);
        }
        self.listed.sort();
    }

    fn see_pods(&mut self, pods: &Pods) {
        if self.pods.all().is_same(pods) {
            return;
        }
        for (before, after) in self.pods.replace(pods) {
            let is_another = self.objects.sharing().restricts_any() && identity(before.as_deref()) != identity(after.as_deref());
            if is_another {
                // A name of a restricted source's Service may be that of a pod of others.
                self.pool = None;
            }
            for pod in before.iter().chain(&after) {
                for service in self.services.selecting(&pod.backend) {
                    self.stale.add(&service.definition.name);
                }
            }
            let addresses = |pod: &Option<Arc<PublishedPod>>| -> BTreeSet<IpAddr> {
                pod.iter().flat_map(|pod| pod.backend.addresses.iter().copied()).collect()
            };
            // A listed address is elsewhere unless a pod has it that may join the Service.
            let (before, after) = (addresses(&before), addresses(&after));
            for address in if is_another { &before | &after } else { &before ^ &after } {
                for hash in self.listed.with(address).collect::<Vec<_>>() {
                    self.mark_hash(hash);
                }
            }
        }
    }

    /// Marks the Services whose names have a hash.
    fn mark_hash(&mut self, hash: u32) {
        for service in self.services.with_hash(hash) {
            self.stale.add(&service.definition.name);
        }
    }

    /// Returns true if nothing that a decision depends on has changed since the last one. `pool` has no ports that others have.
    pub(super) fn is_decided(&self, pool: &Pool) -> bool {
        self.pool.as_ref() == Some(pool) && !self.decision.refused.iter().any(|refused| refused.is_retried)
    }

    /// Decides who is served with what.
    pub(super) fn decide(&mut self, recorded: &Grants, pool: &Pool) {
        let decision = Decision::new(self.services.all(), &self.objects, self.pods.all(), recorded, pool);
        for name in decision.hidden.symmetric_difference(&self.decision.hidden) {
            self.stale.add(name);
        }
        for (name, _) in decision.grants.iter().filter(|(name, grant)| self.served.get(*name) != Some(grant)) {
            self.stale.add(name);
        }
        for name in self.served.keys().filter(|name| !decision.grants.contains_key(*name)) {
            self.stale.add(name);
        }
        let is_same = decision.grants == self.decision.grants;
        let grants = if is_same { Arc::clone(&self.decision.grants) } else { decision.grants };
        self.decision = Decision { grants, ..decision };
        self.pool = Some(Pool { taken: BTreeMap::new(), ..pool.clone() });
    }

    /// The last decision.
    pub(super) const fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Services of which some endpoints are left out.
    pub(super) const fn excess(&self) -> &Excess {
        &self.excess
    }

    /// Returns true if no source has a Service.
    pub(super) fn is_empty(&self) -> bool {
        self.services.all().is_empty()
    }

    /// The Services that are served, in the order of precedence.
    pub(super) fn served(&self) -> impl Iterator<Item = &Arc<SourcedService>> {
        self.services.all().iter().filter(|service| !self.decision.hidden.contains(&service.definition.name))
    }

    /// The same, to be kept.
    pub(super) fn to_allocate(&self) -> Arc<Vec<Arc<SourcedService>>> {
        if self.decision.hidden.is_empty() {
            return Arc::clone(self.services.all());
        }
        Arc::new(self.served().cloned().collect())
    }

    /// The Services of all sources.
    pub(super) fn names(&self) -> impl Iterator<Item = &ObjectName> {
        self.services.all().iter().map(|service| &service.definition.name)
    }

    /// The served Service of a name.
    fn named(&self, name: &ObjectName) -> Option<&Arc<SourcedService>> {
        self.services.named(name).filter(|_| !self.decision.hidden.contains(name))
    }

    /// The stale Services that are served.
    fn stale(&self) -> Vec<&Arc<SourcedService>> {
        match self.stale.is_all {
            true => self.served().collect(),
            false => self.stale.services.keys().filter_map(|name| self.named(name)).collect(),
        }
    }

    /// Slices for the Services whose names have a hash, with their sources.
    fn slices_of(&self, hash: u32) -> impl Iterator<Item = (Slice, &SourceId)> {
        let from = self.slices.partition_point(|slice| slice.service < hash);
        let found = self.slices[from..].iter().take_while(move |slice| slice.service == hash);
        found.filter_map(|slice| Some((read(&slice.object)?, &slice.source)))
    }

    /// The endpoints of a Service: pods and slices of its own realm.
    pub(super) fn endpoints(&self, service: &SourcedService) -> ServiceEndpoints {
        let sharing: &Sharing = self.objects.sharing();
        let definition = &service.definition;
        if definition.selects_pods() {
            let pods = self.pods.selected(service).into_iter().filter(|pod| plan::may_join(pod, service, sharing));
            return of_pods(definition, pods.map(|pod| &pod.backend));
        }
        let slices = self.slices_of(hashed(&definition.name)).filter(|(_, source)| !sharing.are_apart(source, &service.source));
        let slices: Vec<Slice> = slices.map(|(slice, _)| slice).collect();
        let is_own = |pod: &PublishedPod| {
            let is_near = pod.backend.name.namespace == definition.name.namespace && plan::may_join(pod, service, sharing);
            !sharing.restricts_any() || is_near
        };
        of_sources(definition, &slices, |address| self.pods.at(address).any(is_own))
    }

    /// The frontends that take the place of `before`.
    pub(super) fn frontends(&mut self, before: &Frontends) -> Frontends {
        let is_all = self.stale.is_all || self.stale.are_all_frontends || !self.excess.of_host.is_empty();
        let changed = if is_all { None } else { self.changed_frontends(before) };
        let (frontends, excess) = changed.unwrap_or_else(|| self.all_frontends(before));
        self.excess = excess;
        frontends
    }

    /// All frontends, looked at anew.
    fn all_frontends(&self, before: &Frontends) -> (Frontends, Excess) {
        let all: Vec<_> = self.served().map(|service| (service, self.endpoints(service))).collect();
        before.next(all.iter().map(|(service, endpoints)| (&service.definition, endpoints)), &self.decision.grants)
    }

    /// The frontends of stale Services in the place of those that they had; `None` without room for all endpoints.
    fn changed_frontends(&self, before: &Frontends) -> Option<(Frontends, Excess)> {
        let stale = self.stale();
        let grants = &self.decision.grants;
        let wanted = Frontends::of_services(stale.iter().map(|service| &service.definition), grants);
        let had = self.stale.services.iter().flat_map(|(name, service)| {
            let service = service.as_ref().or_else(|| self.services.named(name));
            service.into_iter().flat_map(move |service| Frontends::of_one(&service.definition, self.served.get(name)))
        });
        let gone: Vec<Frontend> = had.filter(|frontend| !wanted.contains(frontend)).collect();
        let mut excess = self.excess.clone();
        excess.of_service.retain(|service| !self.stale.services.contains_key(service));
        let (mut frontends, _) = before.with(gone, [], grants)?;
        for batch in stale.chunks(BATCH) {
            let batch: Vec<_> = batch.iter().map(|service| (service, self.endpoints(service))).collect();
            let served = batch.iter().map(|(service, endpoints)| (&service.definition, endpoints));
            let (next, more) = frontends.with([], served, grants)?;
            frontends = next;
            excess.of_service.extend(more.of_service);
        }
        Some((frontends, excess))
    }

    /// The frontends that served Services have, whatever is behind them.
    pub(super) fn possible_frontends(&self) -> BTreeSet<Frontend> {
        Frontends::of_services(self.served().map(|service| &service.definition), &self.decision.grants)
    }

    /// The names that take the place of `before`.
    pub(super) fn next_names(&self, before: &NamesOfServices) -> NamesOfServices {
        let names =
            |service: &Arc<SourcedService>| ServiceNames::of(&service.definition, &self.decision.grants, &self.endpoints(service));
        if self.stale.is_all {
            return self.served().filter_map(names).collect();
        }
        let mut next = before.clone();
        for name in self.stale.services.keys() {
            match self.named(name).and_then(names) {
                Some(now) if next.get(name) == Some(&now) => {}
                Some(now) => next.insert(now),
                None => next.remove(name),
            }
        }
        next
    }

    /// The stale Services as the API shows them, and the names of those that it shows no longer; `None` if all are shown anew.
    pub(super) fn shown(&self, node: &str, host: &[IpAddr]) -> (impl Iterator<Item = Shown>, Option<Vec<ObjectName>>) {
        let shown = self.stale().into_iter().map(move |service| {
            let grant = self.decision.grants.get(&service.definition.name);
            plan::shown(service, &self.endpoints(service), grant, node, host)
        });
        let gone = self.stale.services.keys().filter(|name| self.named(name).is_none()).cloned();
        (shown, (!self.stale.is_all).then(|| gone.collect()))
    }

    /// Everything that was decided is served. Returns what was stale.
    pub(super) fn settle(&mut self) -> Stale {
        self.served = Arc::clone(&self.decision.grants);
        std::mem::take(&mut self.stale)
    }
}

fn read(object: &PackedObject) -> Option<Slice> {
    match object.unpack() {
        NetworkObject::EndpointSlice(slice) => Slice::of(&slice),
        NetworkObject::Service(_) | NetworkObject::Namespace(_) | NetworkObject::NetworkPolicy(_) => None,
    }
}

/// The properties of a pod that names of Services depend on.
fn identity(pod: Option<&PublishedPod>) -> Option<(&ObjectName, &SourceId, Option<&str>)> {
    pod.map(|pod| {
        let subdomain = pod.backend.hostname.as_ref().map(|(_, subdomain)| subdomain.as_str());
        (&pod.backend.name, &pod.source, subdomain)
    })
}

//! Services that an earlier daemon left in the packet rules, held until sources and pods are known (R8). **Pure**: the time is an argument.

use super::backends::Pods;
use podstead_service::frontends::{Frontend, Frontends};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;
use tokio::time::Instant;

/// Time that pods have to be published once all sources were read: then those that were not are gone.
const LONGEST: Duration = Duration::from_secs(30);

/// Services of an earlier daemon.
#[derive(Debug, Default)]
pub(super) enum Hold {
    /// The packet rules were not looked at yet. [`Hold::begin`] leaves it.
    #[default]
    New,
    /// Some sources were not read, or some pods not published. [`Hold::apply`] leaves it.
    Lasting {
        /// The frontends of the earlier daemon.
        frontends: Frontends,
        /// The end; `None` before all sources were read.
        until: Option<Instant>,
    },
    /// Nothing is held any more.
    Over,
}

impl Hold {
    /// Returns true before [`Hold::begin`].
    pub(super) const fn is_new(&self) -> bool {
        matches!(self, Self::New)
    }

    /// Returns true while frontends of the earlier daemon may be served.
    pub(super) const fn holds(&self) -> bool {
        matches!(self, Self::Lasting { .. })
    }

    /// Returns true while a later turn may hold less.
    pub(super) const fn lasts(&self) -> bool {
        matches!(self, Self::Lasting { until: Some(_), .. })
    }

    /// Holds what was left.
    pub(super) fn begin(&mut self, frontends: Frontends) {
        *self = Self::Lasting { frontends, until: None };
    }

    /// The frontends that are held.
    pub(super) fn frontends(&self) -> Frontends {
        match self {
            Self::Lasting { frontends, .. } => frontends.clone(),
            Self::New | Self::Over => Frontends::default(),
        }
    }

    /// The frontends to serve: those that are wanted, and behind them the endpoints of pods that were not published yet. `possible` are those that
    /// Services have; before all sources were read, others stay, too.
    pub(super) fn apply(
        &mut self,
        planned: Frontends,
        possible: &BTreeSet<Frontend>,
        pods: &Pods,
        is_complete: bool,
        now: Instant,
    ) -> Frontends {
        let Self::Lasting { frontends: earlier, until } = self else { return planned };
        let published: BTreeSet<IpAddr> = pods.values().flat_map(|pod| pod.backend.addresses.iter().copied()).collect();
        // Before its Service is known, the plan has no frontend that could have the endpoints of published pods.
        let is_kept = |frontend: &Frontend, address: IpAddr| match possible.contains(frontend) {
            true => !published.contains(&address),
            false => !is_complete,
        };
        if is_complete {
            let end = *until.get_or_insert(now + LONGEST);
            let keeps_any =
                earlier.iter().any(|(frontend, backing)| backing.endpoints.iter().any(|endpoint| is_kept(frontend, endpoint.ip())));
            if now >= end || !keeps_any {
                *self = Self::Over;
                return planned;
            }
        }
        planned.keeping(earlier, is_kept)
    }
}

#[cfg(test)]
mod tests {
    use super::super::backends::PublishedPod;
    use super::*;
    use podstead_pod::{PodUid, SourceId};
    use podstead_service::allocate::{Grant, Grants};
    use podstead_service::definition::Definition;
    use podstead_service::endpoints::{Backend, Backends};
    use serde_json::json;
    use std::sync::Arc;

    fn web() -> Definition {
        let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80}]});
        Definition::of(&serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": spec})).unwrap()).unwrap()
    }

    fn grants() -> Grants {
        Grants::from([(web().name, Grant { cluster_ips: vec!["10.202.0.9".parse().unwrap()], ..Grant::default() })])
    }

    /// Pods by the last part of their addresses, and whether they are ready.
    fn pods(all: &[(u8, bool)]) -> Pods {
        let pod = |(last, is_ready): &(u8, bool)| {
            let condition = json!({"type": "Ready", "status": if *is_ready { "True" } else { "False" }});
            let pod = json!({
                "metadata": {"name": format!("p{last}"), "labels": {"app": "web"}},
                "status": {"podIP": format!("10.201.0.{last}"), "conditions": [condition]},
            });
            let backend = Backend::of(&serde_json::from_value(pod).unwrap());
            (PodUid::new(format!("p{last}")), Arc::new(PublishedPod { backend, source: SourceId::new("a") }))
        };
        all.iter().map(pod).collect()
    }

    fn planned(pods: &Pods) -> Frontends {
        let backends = Backends::new(pods.values().map(|pod| &pod.backend), []);
        let (service, endpoints) = (web(), backends.endpoints(&web()));
        Frontends::default().next([(&service, &endpoints)], &grants()).0
    }

    fn endpoints(frontends: &Frontends) -> String {
        let endpoints = frontends.iter().flat_map(|(_, backing)| backing.endpoints.iter());
        let addresses: BTreeSet<String> = endpoints.map(|endpoint| endpoint.ip().to_string()).collect();
        addresses.into_iter().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn endpoints_stay_until_pods_are_published() {
        let now = Instant::now();
        let possible = Frontends::of_services([&web()], &grants());
        let mut hold = Hold::default();
        hold.begin(planned(&pods(&[(1, true), (2, true)])));
        let mut step = |possible: &BTreeSet<Frontend>, known: &[(u8, bool)], is_complete: bool, seconds: u64| {
            let known = pods(known);
            let plan = if possible.is_empty() { Frontends::default() } else { planned(&known) };
            let served = hold.apply(plan, possible, &known, is_complete, now + Duration::from_secs(seconds));
            (endpoints(&served), hold.lasts())
        };
        let both = "10.201.0.1 10.201.0.2".to_owned();
        // No source was read.
        assert_eq!(step(&BTreeSet::new(), &[], false, 100), (both.clone(), false));
        // Pods are published before their Service is read.
        assert_eq!(step(&BTreeSet::new(), &[(1, true), (2, false)], false, 100), (both.clone(), false));
        // One pod is not ready any more, the other one is not known yet.
        assert_eq!(step(&possible, &[(1, false)], true, 101), ("10.201.0.2".to_owned(), true));
        assert_eq!(step(&possible, &[(1, true)], true, 102), (both, true));
        // It does not come back.
        assert_eq!(step(&possible, &[(1, true)], true, 131), ("10.201.0.1".to_owned(), false));
        assert_eq!(step(&possible, &[], true, 132), (String::new(), false));
    }

    #[test]
    fn service_that_is_gone_is_not_held() {
        let mut hold = Hold::default();
        hold.begin(planned(&pods(&[(1, true)])));
        let served = hold.apply(Frontends::default(), &BTreeSet::new(), &Pods::default(), true, Instant::now());
        assert_eq!((endpoints(&served), hold.lasts()), (String::new(), false));
    }
}

//! The number of Services that one host serves (S28).

use crate::allocate::Grants;
use crate::definition::{Definition, Role};
use crate::name::ObjectName;
use std::collections::BTreeSet;

/// Services with addresses.
pub const MOST_SERVICES: usize = 1000;

/// The Services that are too many. Those that have a grant go before those that have none, then the first ones: what runs goes on.
pub fn beyond<'a>(services: impl IntoIterator<Item = &'a Definition>, recorded: &Grants) -> BTreeSet<ObjectName> {
    let has_address = |service: &&Definition| matches!(service.role, Role::Cluster { .. });
    let (old, new): (Vec<&Definition>, Vec<&Definition>) =
        services.into_iter().filter(has_address).partition(|service| recorded.contains_key(&service.name));
    old.into_iter().chain(new).skip(MOST_SERVICES).map(|service| service.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocate::Grant;
    use crate::testing::{definition, named};

    #[test]
    fn services_that_run_go_before_new_ones() {
        let mut services: Vec<Definition> =
            (0..MOST_SERVICES).map(|number| definition(&format!("s{number}"), "ports: [{port: 80}]")).collect();
        services.push(definition("headless", "clusterIP: None"));
        assert_eq!(beyond(&services, &Grants::new()), BTreeSet::new());
        services.push(definition("last", "ports: [{port: 80}]"));
        assert_eq!(beyond(&services, &Grants::new()), [named("last")].into());
        let recorded = Grants::from([(named("last"), Grant::default())]);
        assert_eq!(beyond(&services, &recorded), [named(&format!("s{}", MOST_SERVICES - 1))].into());
    }
}

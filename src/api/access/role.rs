//! Decisions about access: which role a request needs, and whether a client has it (Q3, Q4). **Pure**.

use super::attributes::{Attributes, Verb};
use podstead_settings::Role;
use podstead_settings::api::WrittenRole;

/// Roles of one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grants(Vec<Grant>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Grant {
    role: Role,
    /// Empty for all, and for what belongs to no namespace.
    namespaces: Vec<String>,
}

/// The need of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Any role, in any namespace.
    AnyRole,
    /// A role in the namespace of the request.
    Role(Role),
}

impl Need {
    /// The need of a request. `has_host_access`: it is about a pod with access to the host.
    pub(crate) fn of(attributes: &Attributes<'_>, has_host_access: bool) -> Self {
        let Attributes { verb, group, resource, subresource, .. } = *attributes;
        let is_own = group == crate::kinds::OWN_GROUP;
        match (resource, subresource, verb) {
            // Discovery, reviews of oneself and credentials for oneself tell a client nothing about others.
            ("", _, Verb::Get) => Self::AnyRole,
            (
                "selfsubjectaccessreviews" | "selfsubjectrulesreviews" | "selfsubjectreviews" | "tokenreviews" | "credentials",
                _,
                _,
            ) => Self::AnyRole,
            ("access", _, Verb::Get) if is_own => Self::AnyRole,
            // kubectl asks for the namespace of a pod that it does not find.
            ("namespaces", _, Verb::Get) => Self::AnyRole,
            // Also when they come as GET (Kubernetes does so since 1.35): who may read must not run programs.
            ("pods", "exec" | "attach" | "portforward", _) => Self::Role(if has_host_access { Role::Admin } else { Role::Edit }),
            (_, _, Verb::Get | Verb::List | Verb::Watch) => Self::Role(Role::View),
            ("sources", "sync", Verb::Create)
            | ("cronjobs", "run", Verb::Create)
            | ("pods", "stop" | "start" | "restart", Verb::Create)
                if is_own =>
            {
                Self::Role(Role::Edit)
            }
            // Going back, holding and pruning, and images, which are shared by all namespaces.
            (_, _, _) if is_own => Self::Role(Role::Admin),
            (
                "pods"
                | "configmaps"
                | "secrets"
                | "persistentvolumeclaims"
                | "services"
                | "networkpolicies"
                | "namespaces"
                | "deployments"
                | "replicasets"
                | "statefulsets"
                | "daemonsets"
                | "jobs"
                | "cronjobs"
                | "replicationcontrollers",
                _,
                _,
            ) => Self::Role(Role::Edit),
            (_, _, _) => Self::Role(Role::Admin),
        }
    }
}

impl Grants {
    /// Everything.
    pub(super) fn admin() -> Self {
        Self(vec![Grant { role: Role::Admin, namespaces: Vec::new() }])
    }

    pub(crate) fn of<'a>(roles: impl Iterator<Item = &'a WrittenRole>) -> Self {
        Self(roles.map(|written| Grant { role: written.role, namespaces: written.namespaces.clone() }).collect())
    }

    /// No higher role than `limit`.
    pub(super) fn limited_to(mut self, limit: Option<Role>) -> Self {
        if let Some(limit) = limit {
            self.0.iter_mut().for_each(|grant| grant.role = grant.role.min(limit));
        }
        self
    }

    /// The highest role in a namespace; `None` for the namespace stands for all of them, and for what belongs to none.
    pub(crate) fn role_in(&self, namespace: Option<&str>) -> Option<Role> {
        let applies = |grant: &&Grant| {
            grant.namespaces.is_empty() || namespace.is_some_and(|asked| grant.namespaces.iter().any(|granted| granted == asked))
        };
        self.0.iter().filter(applies).map(|grant| grant.role).max()
    }

    /// The highest role in any namespace.
    pub(crate) fn highest(&self) -> Option<Role> {
        self.0.iter().map(|grant| grant.role).max()
    }

    /// Reports whether a need is met in a namespace.
    pub(crate) fn meet(&self, need: Need, namespace: Option<&str>) -> bool {
        match need {
            Need::AnyRole => !self.0.is_empty(),
            Need::Role(role) => self.role_in(namespace).is_some_and(|has| has >= role),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked<'a>(verb: Verb, group: &'a str, resource: &'a str, subresource: &'a str) -> Attributes<'a> {
        Attributes { verb, group, resource, subresource, namespace: Some("shop"), name: None }
    }

    fn grants(roles: &str) -> Grants {
        let roles: Vec<WrittenRole> = serde_json::from_str(roles).unwrap();
        Grants::of(roles.iter())
    }

    #[test]
    fn needs_follow_from_verb_and_resource() {
        for (attributes, need) in [
            (asked(Verb::Get, "", "pods", "log"), Need::Role(Role::View)),
            (asked(Verb::List, "", "secrets", ""), Need::Role(Role::View)),
            (asked(Verb::Get, "", "pods", "exec"), Need::Role(Role::Edit)),
            (asked(Verb::Create, "", "pods", "portforward"), Need::Role(Role::Edit)),
            (asked(Verb::Delete, "", "pods", ""), Need::Role(Role::Edit)),
            (asked(Verb::Patch, "apps", "deployments", "scale"), Need::Role(Role::Edit)),
            (asked(Verb::Patch, "", "nodes", ""), Need::Role(Role::Admin)),
            (asked(Verb::Create, "podstead.dev", "sources", "sync"), Need::Role(Role::Edit)),
            (asked(Verb::Create, "podstead.dev", "pods", "restart"), Need::Role(Role::Edit)),
            (asked(Verb::Create, "podstead.dev", "sources", "rollback"), Need::Role(Role::Admin)),
            (asked(Verb::Delete, "podstead.dev", "images", ""), Need::Role(Role::Admin)),
            (asked(Verb::Create, "rbac.authorization.k8s.io", "roles", ""), Need::Role(Role::Admin)),
            (asked(Verb::Get, "", "", ""), Need::AnyRole),
        ] {
            assert_eq!(Need::of(&attributes, false), need, "{attributes:?}");
        }
        assert_eq!(Need::of(&asked(Verb::Get, "", "pods", "exec"), true), Need::Role(Role::Admin));
    }

    #[test]
    fn roles_of_namespaces_do_not_reach_others() {
        let both = grants(r#"[{"role": "edit", "users": [1], "namespaces": ["shop"]}, {"role": "view", "users": [1]}]"#);
        assert_eq!(both.role_in(Some("shop")), Some(Role::Edit));
        assert_eq!((both.role_in(Some("other")), both.role_in(None)), (Some(Role::View), Some(Role::View)));
        let one = grants(r#"[{"role": "admin", "users": [1], "namespaces": ["shop"]}]"#);
        assert!(!one.meet(Need::Role(Role::View), None), "a list of all namespaces");
        assert!(one.meet(Need::AnyRole, None));
        assert!(!one.clone().limited_to(Some(Role::View)).meet(Need::Role(Role::Edit), Some("shop")));
        assert!(!grants("[]").meet(Need::AnyRole, None));
    }
}

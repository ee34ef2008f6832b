//! Reviews of oneself: `kubectl auth can-i`, `can-i --list` and `whoami`, answered by the rules that requests are checked by. A review of a token
//! tells who shows it: whoever has it could ask that without a review.

use super::access::{Attributes, Caller, Grants, Need, Verb};
use super::discovery::WRITTEN;
use super::failure::ApiFailure;
use super::kinds::Review;
use super::request::is_protobuf;
use super::respond::{self, Answer};
use super::{Backend, discovery, networking, pods};
use bytes::Bytes;
use podstead_manifest::protobuf;
use podstead_settings::Role;
use serde_json::{Value, json};

/// Answers a review. `content_type` is that of the body.
pub(super) fn review(
    backend: &Backend,
    caller: &Caller,
    review: Review,
    version: &str,
    content_type: &str,
    body: &Bytes,
) -> Answer {
    let unread = |error: &dyn std::fmt::Display| ApiFailure::bad_request(format!("invalid request body: {error}"));
    let asked = if is_protobuf(content_type) {
        let structure = review.structure();
        let structure = structure.ok_or_else(|| ApiFailure::unsupported_media_type(format!("send a {} as JSON", review.kind())))?;
        protobuf::read(body, structure).map_err(|error| unread(&error))?
    } else {
        serde_json::from_slice(body).map_err(|error| unread(&error))?
    };
    let grants = backend.access.grants(caller);
    let spec = &asked["spec"];
    let status = match review {
        Review::Access => access_status(backend, &grants, spec),
        Review::Rules => rules(&grants, spec["namespace"].as_str().unwrap_or("default")),
        Review::Oneself => json!({"userInfo": user_info(backend, caller, &grants)}),
        Review::Token => token_status(backend, spec["token"].as_str().unwrap_or_default()),
    };
    let mut answer = json!({
        "kind": review.kind(),
        "apiVersion": format!("{}/{version}", review.group()),
        "metadata": {},
        "status": status,
    });
    match review {
        Review::Access | Review::Rules => answer["spec"] = spec.clone(),
        Review::Oneself => {}
        // The token is in no answer.
        Review::Token => answer["spec"] = json!({}),
    }
    respond::created(&answer)
}

fn token_status(backend: &Backend, token: &str) -> Value {
    match backend.access.caller_of(token) {
        Ok(owner) => json!({"authenticated": true, "user": user_info(backend, &owner, &backend.access.grants(&owner))}),
        Err(failure) => json!({"authenticated": false, "error": failure.message}),
    }
}

fn access_status(backend: &Backend, grants: &Grants, spec: &Value) -> Value {
    let asked = &spec["resourceAttributes"];
    if !asked.is_object() {
        // Paths that are no resource are open to every role but the pages of all pods.
        let path = spec["nonResourceAttributes"]["path"].as_str().unwrap_or_default();
        let is_page = ["/metrics", "/stats", "/pods"].iter().any(|page| path.starts_with(page));
        let need = if is_page { Need::Role(Role::View) } else { Need::AnyRole };
        return json!({"allowed": grants.meet(need, None)});
    }
    let text = |field: &str| asked[field].as_str().unwrap_or_default();
    // Clients that may list what there is not (k9s: custom resources) try to for as long as they run.
    let is_named = !["", "*"].contains(&text("resource")) && text("group") != "*";
    if is_named && !discovery::is_served(text("group"), text("resource")) {
        return json!({"allowed": false, "reason": "this host has no such resource"});
    }
    let some = |field: &str| asked[field].as_str().filter(|text| !text.is_empty());
    let attributes = |verb| Attributes {
        verb,
        group: text("group"),
        resource: text("resource"),
        subresource: text("subresource"),
        namespace: some("namespace"),
        name: some("name"),
    };
    let need = match Verb::named(text("verb")) {
        Some(verb) => Need::of(&attributes(verb), pods::has_host_access(backend, &attributes(verb))),
        None => Need::Role(Role::Admin),
    };
    match (grants.meet(need, some("namespace")), need) {
        (true, _) => json!({"allowed": true}),
        (false, Need::Role(role)) => json!({"allowed": false, "reason": format!("it needs role {role}")}),
        (false, Need::AnyRole) => json!({"allowed": false, "reason": "it needs a role"}),
    }
}

/// Rules in a namespace, for people: requests are checked one by one.
fn rules(grants: &Grants, namespace: &str) -> Value {
    let rule =
        |verbs: &[&str], groups: &[&str], resources: &[&str]| json!({"verbs": verbs, "apiGroups": groups, "resources": resources});
    let reading = ["get", "list", "watch"];
    // Namespaces need the role in all of them.
    let objects: Vec<&str> = WRITTEN.iter().copied().filter(|plural| *plural != "namespaces").collect();
    let resource_rules = match grants.role_in(Some(namespace)) {
        None => Vec::new(),
        Some(Role::View) => vec![rule(&reading, &["*"], &["*"])],
        Some(Role::Edit) => vec![
            rule(&reading, &["*"], &["*"]),
            rule(&["create", "update", "patch", "delete"], &["", "apps", "batch", networking::GROUP], &objects),
            rule(&["create"], &[""], &["pods/exec", "pods/attach", "pods/portforward"]),
            rule(&["create"], &[crate::kinds::OWN_GROUP], &["sources/sync", "cronjobs/run"]),
        ],
        Some(Role::Admin) => vec![rule(&["*"], &["*"], &["*"])],
    };
    json!({
        "resourceRules": resource_rules,
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/api", "/apis", "/openapi", "/version", "/healthz", "/readyz"]}],
        "incomplete": false,
    })
}

fn user_info(backend: &Backend, caller: &Caller, grants: &Grants) -> Value {
    let access = &backend.access;
    let role = grants.highest().map_or("none", Role::as_str);
    json!({
        "username": format!("user:{}", access.user_name(caller.uid)),
        "uid": caller.uid.to_string(),
        "groups": access.group_names(&caller.gids),
        "extra": {"podstead.dev/role": [role]},
    })
}

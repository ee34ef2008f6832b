//! Admission of objects that say how pods are reached.

use super::workloads::refused;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use podstead_pod::objects::NetworkObject;
use podstead_pod::{FieldProblem, Severity, code};
use podstead_service::validate;
use podstead_workload::problem::Problem;

/// Checks an object; `None` when a problem is an error. What a server writes is left out.
pub(super) fn admit(mut object: NetworkObject) -> (Option<NetworkObject>, Vec<FieldProblem>) {
    let (errors, warnings) = match &object {
        NetworkObject::Service(service) => (validate::service(service), validate::without_effect(service)),
        NetworkObject::EndpointSlice(slice) => (validate::endpoint_slice(slice), Vec::new()),
        NetworkObject::Namespace(namespace) => (validate::namespace(namespace), Vec::new()),
        NetworkObject::NetworkPolicy(policy) => (podstead_policy::validate::network_policy(policy), Vec::new()),
    };
    let is_refused = !errors.is_empty();
    let problems = errors.into_iter().map(refused).chain(warnings.into_iter().map(warned)).collect();
    keep_own(&mut object);
    ((!is_refused).then_some(object), problems)
}

/// Keeps what an author may say about the object.
fn keep_own(object: &mut NetworkObject) {
    match object {
        NetworkObject::Service(service) => service.status = None,
        NetworkObject::Namespace(namespace) => (namespace.spec, namespace.status) = (None, None),
        NetworkObject::EndpointSlice(_) | NetworkObject::NetworkPolicy(_) => {}
    }
    let metadata = object.metadata_mut();
    let ObjectMeta { name, namespace, labels, annotations, .. } = std::mem::take(metadata);
    *metadata = ObjectMeta { name, namespace, labels, annotations, ..ObjectMeta::default() };
}

fn warned(Problem { code: _, field, message, hint }: Problem) -> FieldProblem {
    FieldProblem { severity: Severity::Warning, code: code::IGNORED.to_owned(), field, message, hint }
}

#[cfg(test)]
mod tests {
    use crate::{AcceptedObject, CheckContext, Checked, check};
    use podstead_manifest::PatchesByObject;
    use podstead_pod::{AdmitContext, NodeName};

    fn checked(text: &str) -> Checked {
        let context = CheckContext::new(AdmitContext::new(NodeName::new("edge")));
        check("web.yaml", text.as_bytes(), &context, &PatchesByObject::new())
    }

    #[test]
    fn good_service_keeps_its_spec_without_status() {
        let text = "apiVersion: v1\nkind: Service\nmetadata: {name: web, uid: x}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n\
                    status: {loadBalancer: {}}\n";
        let checked = checked(text);
        let AcceptedObject::Network(object) = &checked.accepted[0].object else { panic!("{checked:?}") };
        let json = object.to_json().unwrap();
        assert_eq!(json["spec"]["ports"][0]["port"], 80);
        assert!(json["status"].is_null() && json["metadata"]["uid"].is_null(), "{json}");
    }

    #[test]
    fn problems_of_a_service_have_positions() {
        let text = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n  ports:\n  - port: 80\n    nodePort: 30080\n  externalTrafficPolicy: Local\n";
        let lines: Vec<String> = checked(text).problems.iter().map(ToString::to_string).collect();
        assert!(
            lines.iter().any(|line| line.starts_with("web.yaml:7:15: error") && line.contains("spec.ports[0].nodePort")),
            "{lines:?}"
        );
        assert!(checked(text).accepted.is_empty());
    }

    #[test]
    fn field_without_effect_is_a_warning() {
        let text = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n  ports: [{port: 80}]\n  trafficDistribution: PreferClose\n";
        let checked = checked(text);
        assert_eq!(checked.accepted.len(), 1);
        let lines: Vec<String> = checked.problems.iter().map(ToString::to_string).collect();
        let expected = "web.yaml:6:24: warning[ignored-field]: spec.trafficDistribution";
        assert!(lines.iter().any(|line| line.starts_with(expected)), "{lines:?}");
    }

    #[test]
    fn problems_of_a_policy_have_positions() {
        let text = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: web}\nspec:\n  podSelector: {}\n  ingress:\n  \
                    - from:\n    - ipBlock: {cidr: 10.0.0.0/8, except: [11.0.0.0/8]}\n";
        let checked = checked(text);
        assert!(checked.accepted.is_empty());
        let line = checked.problems[0].to_string();
        assert!(line.starts_with("web.yaml:8:") && line.contains("spec.ingress[0].from[0].ipBlock.except[0]"), "{line}");
    }

    #[test]
    fn namespace_keeps_its_labels() {
        let text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: prod, labels: {purpose: production}}\nspec: {finalizers: [kubernetes]}\n";
        let checked = checked(text);
        let AcceptedObject::Network(object) = &checked.accepted[0].object else { panic!("{checked:?}") };
        let json = object.to_json().unwrap();
        assert_eq!((&json["metadata"]["labels"]["purpose"], &json["spec"]), (&"production".into(), &serde_json::Value::Null));
        assert!(checked.problems.is_empty(), "{checked:?}");
    }

    #[test]
    fn unknown_field_of_a_slice_is_refused() {
        let text = "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: web}\naddressType: IPv4\nendpoint: []\nendpoints: []\n";
        let checked = checked(text);
        assert!(checked.accepted.is_empty());
        assert!(
            checked.problems[0].to_string().starts_with("web.yaml:5:1: error[unknown-field]: endpoint"),
            "{:?}",
            checked.problems
        );
    }
}

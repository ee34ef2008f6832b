//! Words for requests of kubectl that a single host has no answer to: what to do instead. **Pure**.

use super::failure::ApiFailure;
use hyper::Method;

/// The failure for a path that is not served.
pub(super) fn no_such_path(path: &str) -> ApiFailure {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let failure = ApiFailure::no_such_path(path);
    match instead(&segments) {
        Some(told) => ApiFailure { message: format!("{}: {told}", failure.message), ..failure },
        None => failure,
    }
}

/// The way of a single host to what a client wants of a path.
fn instead(segments: &[&str]) -> Option<&'static str> {
    Some(match segments {
        ["api", "v1", "namespaces", _, "pods", _, "ephemeralcontainers"] => {
            "this host does not add containers to a pod that runs: use kubectl exec, or kubectl debug --copy-to=NAME where a source is writable"
        }
        ["api", "v1", "namespaces", _, "pods", _, "resize"] => "change spec.containers[*].resources of the pod's manifest",
        ["api", "v1", "namespaces", _, "pods" | "services", _, "proxy", ..] => {
            "this API passes no HTTP on to pods: use kubectl port-forward"
        }
        ["api", "v1", "nodes", _, "proxy", ..] => {
            "what a kubelet serves is at the root of this API: /pods, /stats/summary, /metrics, /metrics/resource, /metrics/cadvisor"
        }
        ["api", "v1", "namespaces", _, "serviceaccounts", ..] => {
            "this host has no service accounts: podstead kubeconfig is how clients are let in"
        }
        ["apis", "autoscaling", ..] => "this host does not scale workloads by itself: use kubectl scale",
        ["apis", "networking.k8s.io", _, "namespaces", _, "ingresses", ..] | ["apis", "networking.k8s.io", _, "ingresses", ..] => {
            "this host has no ingress controller: a Service of type NodePort or LoadBalancer, or a hostPort, is reached from outside"
        }
        ["apis", "policy", ..] => "this host has no disruption budgets: nothing evicts its pods",
        ["api", "v1", "namespaces", _, "resourcequotas" | "limitranges", ..] => {
            "this host has no quotas: resources.limits of the containers, and allow of a source, limit what pods use"
        }
        ["api", "v1", "persistentvolumes", ..] | ["apis", "storage.k8s.io", ..] => {
            "this host has no volumes or classes of a cluster: a PersistentVolumeClaim is a directory here, see podstead get pvc"
        }
        ["apis", "apiextensions.k8s.io", ..] => "this host has no custom resources",
        ["apis", "rbac.authorization.k8s.io", ..] => "this host has no RBAC: api.roles in its configuration says who may do what",
        ["apis", "scheduling.k8s.io", ..] => {
            "this host does not schedule: of the priority classes, system-node-critical alone counts, and it need not be created"
        }
        ["apis", "certificates.k8s.io", ..] => "this host signs no certificates: podstead kubeconfig is how clients are let in",
        _ => return None,
    })
}

/// The failure for a method that is not allowed on a path.
pub(super) fn not_allowed(method: &Method, path: &str) -> ApiFailure {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    match segments.as_slice() {
        ["api", "v1", "nodes", ..] => ApiFailure::method_not_allowed(
            "this host cannot be cordoned, drained or labelled: nothing is scheduled to it, and its pods have no other host; podstead stop stops a pod",
        ),
        ["api", "v1", "namespaces", _, "pods", name, "eviction"] => ApiFailure::method_not_allowed(format!(
            "pod {name:?} cannot be evicted: no other host could run it; kubectl delete replaces it, podstead stop stops it"
        ))
        .about("pods", name),
        ["api" | "apis", .., "namespaces", _, plural] if *method == Method::DELETE => ApiFailure::method_not_allowed(format!(
            "{plural} cannot be deleted all at once: list them, and delete each by its name, as kubectl delete does"
        )),
        segments => ApiFailure::method_not_allowed(
            instead(segments).map_or_else(|| format!("method {method} is not allowed on {path}"), str::to_owned),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_say_what_to_do() {
        for (path, expected) in [
            ("/api/v1/namespaces/a/pods/b/ephemeralcontainers", "kubectl exec"),
            ("/api/v1/namespaces/a/services/http:web:80/proxy/index.html", "kubectl port-forward"),
            ("/api/v1/nodes/edge/proxy/stats/summary", "at the root of this API: /pods, /stats/summary"),
            ("/api/v1/namespaces/a/serviceaccounts/default/token", "podstead kubeconfig"),
            ("/apis/autoscaling/v2/namespaces/a/horizontalpodautoscalers", "kubectl scale"),
            ("/apis/rbac.authorization.k8s.io/v1/roles", "api.roles"),
            ("/apis/networking.k8s.io/v1/namespaces/a/ingresses", "NodePort"),
            ("/apis/policy/v1/namespaces/a/poddisruptionbudgets", "nothing evicts"),
            ("/api/v1/namespaces/a/resourcequotas", "resources.limits"),
            ("/api/v1/persistentvolumes", "podstead get pvc"),
            ("/apis/storage.k8s.io/v1/csidrivers", "podstead get pvc"),
            ("/apis/scheduling.k8s.io/v1/priorityclasses", "system-node-critical"),
            ("/apis/certificates.k8s.io/v1/certificatesigningrequests", "podstead kubeconfig"),
        ] {
            let failure = no_such_path(path);
            assert!(failure.code == 404 && failure.message.contains(expected), "{failure:?}");
        }
        assert!(no_such_path("/x").message.ends_with("resource /x"));
        let evicted = not_allowed(&Method::POST, "/api/v1/namespaces/a/pods/b/eviction");
        assert!(evicted.code == 405 && evicted.message.contains("podstead stop"), "{evicted:?}");
        assert!(not_allowed(&Method::PATCH, "/api/v1/nodes/edge").message.contains("cordoned"));
        let ingress = not_allowed(&Method::POST, "/apis/networking.k8s.io/v1/namespaces/a/ingresses");
        assert!(ingress.code == 405 && ingress.message.contains("NodePort"), "{ingress:?}");
        let all = not_allowed(&Method::DELETE, "/apis/apps/v1/namespaces/a/deployments");
        assert!(all.code == 405 && all.message.starts_with("deployments cannot be deleted all at once"), "{all:?}");
        assert_eq!(not_allowed(&Method::PUT, "/healthz").message, "method PUT is not allowed on /healthz");
    }
}

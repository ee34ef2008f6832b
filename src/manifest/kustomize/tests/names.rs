//! Prefixes, suffixes, namespaces and references to names.

use super::*;

#[test]
fn namespace_skips_kinds_without_one() {
    let kustomization = r#"namespace: ns
"#;
    let resources = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c}
---
apiVersion: v1
kind: Node
metadata: {name: n}
---
apiVersion: v1
kind: Namespace
metadata: {name: old}
"#;
    let expected = r#"apiVersion: v1
kind: Namespace
metadata:
  name: ns
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
  namespace: ns
---
apiVersion: v1
kind: Node
metadata:
  name: "n"
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn namespace_reaches_services_of_definitions() {
    let kustomization = r#"namespace: ns
"#;
    let resources = r#"apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.example.com}
spec: {service: {name: s}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos.example.com}
spec: {conversion: {webhook: {clientConfig: {service: {name: s, namespace: x}}}}}
"#;
    let expected = r#"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: foos.example.com
spec:
  conversion:
    webhook:
      clientConfig:
        service:
          name: s
          namespace: ns
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1.example.com
spec:
  service:
    name: s
    namespace: ns
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn subjects_named_default_follow_the_namespace() {
    let kustomization = r#"namespace: ns
"#;
    let resources = r#"apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
subjects:
- {kind: ServiceAccount, name: default}
- {kind: ServiceAccount, name: other, namespace: x}
"#;
    let expected = r#"apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: b
  namespace: ns
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: r
subjects:
- kind: ServiceAccount
  name: default
  namespace: ns
- kind: ServiceAccount
  name: other
  namespace: x
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn affixes_skip_namespaces_and_definitions() {
    let kustomization = r#"namePrefix: a-
nameSuffix: -z
"#;
    let resources = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: c}
---
apiVersion: v1
kind: Namespace
metadata: {name: n}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos.example.com}
"#;
    let expected = r#"apiVersion: v1
kind: Namespace
metadata:
  name: "n"
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: foos.example.com
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: a-c-z
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn references_of_pods_follow_names() {
    let kustomization = r#"namePrefix: a-
"#;
    let resources = r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      serviceAccountName: sa
      containers:
      - name: c
        env: [{name: E, valueFrom: {configMapKeyRef: {name: c, key: k}}}]
        envFrom: [{secretRef: {name: s}}, {configMapRef: {name: unknown}}]
      volumes: [{name: v, configMap: {name: c}}, {name: w, secret: {secretName: s}}, {name: x, persistentVolumeClaim: {claimName: pvc}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
---
apiVersion: v1
kind: Secret
metadata: {name: s}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: sa}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: pvc}
"#;
    let expected = r#"apiVersion: v1
kind: ServiceAccount
metadata:
  name: a-sa
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: a-c
---
apiVersion: v1
kind: Secret
metadata:
  name: a-s
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: a-pvc
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: a-web
spec:
  template:
    spec:
      containers:
      - env:
        - name: E
          valueFrom:
            configMapKeyRef:
              key: k
              name: a-c
        envFrom:
        - secretRef:
            name: a-s
        - configMapRef:
            name: unknown
        name: c
      serviceAccountName: a-sa
      volumes:
      - configMap:
          name: a-c
        name: v
      - name: w
        secret:
          secretName: a-s
      - name: x
        persistentVolumeClaim:
          claimName: a-pvc
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn references_of_other_kinds_follow_names() {
    let kustomization = r#"nameSuffix: -z
namespace: ns
"#;
    let resources = r#"apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: i}
spec:
  ingressClassName: cls
  tls: [{secretName: s}]
  rules: [{http: {paths: [{path: /, backend: {service: {name: svc}}}]}}]
---
apiVersion: v1
kind: Service
metadata: {name: svc}
---
apiVersion: v1
kind: Secret
metadata: {name: s}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: cls}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: h}
spec: {scaleTargetRef: {kind: Deployment, name: web}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: v}
webhooks: [{name: w, clientConfig: {service: {name: svc, namespace: old}}}]
"#;
    let expected = r#"apiVersion: v1
kind: Secret
metadata:
  name: s-z
  namespace: ns
---
apiVersion: v1
kind: Service
metadata:
  name: svc-z
  namespace: ns
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-z
  namespace: ns
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: h-z
  namespace: ns
spec:
  scaleTargetRef:
    kind: Deployment
    name: web-z
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: i-z
  namespace: ns
spec:
  ingressClassName: cls
  rules:
  - http:
      paths:
      - backend:
          service:
            name: svc-z
        path: /
  tls:
  - secretName: s-z
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata:
  name: cls-z
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: v-z
webhooks:
- clientConfig:
    service:
      name: svc
      namespace: old
  name: w
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn roles_and_accounts_follow_names() {
    let kustomization = r#"namePrefix: a-
"#;
    let resources = r#"apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}
subjects: [{kind: ServiceAccount, name: sa, namespace: default}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r}
rules: [{resources: [configmaps], resourceNames: [c, d]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: r}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: sa}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
"#;
    let expected = r#"apiVersion: v1
kind: ServiceAccount
metadata:
  name: a-sa
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: a-r
rules:
- resourceNames:
  - a-c
  - d
  resources:
  - configmaps
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: a-r
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: a-b
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: a-r
subjects:
- kind: ServiceAccount
  name: a-sa
  namespace: default
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: a-c
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

#[test]
fn a_name_that_looks_like_a_number() {
    let kustomization = r#"namePrefix: "1"
"#;
    let resources = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: 2}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "3"}
"#;
    let expected = r#"apiVersion: v1
kind: ConfigMap
metadata:
  name: 12
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: "13"
"#;
    assert_eq!(output_of(kustomization, resources), expected);
}

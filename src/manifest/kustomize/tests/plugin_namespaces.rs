//! `NamespaceTransformer`: which subjects of role bindings follow, and what is set already.

use super::*;

const BINDING: &str = r#"apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: binding
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: role}
subjects:
- {kind: ServiceAccount, name: default}
- {kind: ServiceAccount, name: agent, namespace: theirs}
- {kind: User, name: user}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: conf
  namespace: own
---
apiVersion: example.com/v1
kind: Foo
metadata:
  name: foo
spec:
  place: ""
"#;

#[test]
fn default_subjects_follow_the_namespace() {
    let files = [
        (
            "kustomization.yaml",
            "resources: [r.yaml]
transformers: [t.yaml]
",
        ),
        ("r.yaml", BINDING),
        (
            "t.yaml",
            "apiVersion: builtin
kind: NamespaceTransformer
metadata: {name: n, namespace: new}
",
        ),
    ];
    let expected = r#"apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: binding
  namespace: new
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: role
subjects:
- kind: ServiceAccount
  name: default
  namespace: new
- kind: ServiceAccount
  name: agent
  namespace: theirs
- kind: User
  name: user
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: conf
  namespace: new
---
apiVersion: example.com/v1
kind: Foo
metadata:
  name: foo
  namespace: new
spec:
  place: ""
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn all_service_accounts_follow_the_namespace() {
    let files = [
        (
            "kustomization.yaml",
            "resources: [r.yaml]
transformers: [t.yaml]
",
        ),
        ("r.yaml", BINDING),
        (
            "t.yaml",
            "apiVersion: builtin
kind: NamespaceTransformer
metadata: {name: n, namespace: new}
setRoleBindingSubjects: allServiceAccounts
fieldSpecs: [{path: spec/place, kind: Foo}]
",
        ),
    ];
    let expected = "apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: binding
  namespace: new
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: role
subjects:
- kind: ServiceAccount
  name: default
  namespace: new
- kind: ServiceAccount
  name: agent
  namespace: new
- kind: User
  name: user
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: conf
  namespace: new
---
apiVersion: example.com/v1
kind: Foo
metadata:
  name: foo
  namespace: new
spec:
  place: new
";
    assert_eq!(output("", &files), expected);
}

#[test]
fn a_namespace_that_is_set_stays() {
    let files = [
        (
            "kustomization.yaml",
            "resources: [r.yaml]
transformers: [t.yaml]
",
        ),
        ("r.yaml", BINDING),
        (
            "t.yaml",
            "apiVersion: builtin
kind: NamespaceTransformer
metadata: {name: n, namespace: new}
setRoleBindingSubjects: allServiceAccounts
unsetOnly: true
fieldSpecs: [{path: spec/place, kind: Foo}, {path: spec/made, kind: Foo, create: true}]
",
        ),
    ];
    let expected = "apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: binding
  namespace: new
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: role
subjects:
- kind: ServiceAccount
  name: default
  namespace: new
- kind: ServiceAccount
  name: agent
  namespace: theirs
- kind: User
  name: user
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: conf
  namespace: own
---
apiVersion: example.com/v1
kind: Foo
metadata:
  name: foo
  namespace: new
spec:
  made: new
  place: new
";
    assert_eq!(output("", &files), expected);
}

#[test]
fn subjects_may_keep_their_namespace() {
    let files = [
        (
            "kustomization.yaml",
            "resources: [r.yaml]
transformers: [t.yaml]
",
        ),
        ("r.yaml", BINDING),
        (
            "t.yaml",
            "apiVersion: builtin
kind: NamespaceTransformer
metadata: {name: n, namespace: new}
setRoleBindingSubjects: none
",
        ),
    ];
    let expected = r#"apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: binding
  namespace: new
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: role
subjects:
- kind: ServiceAccount
  name: default
- kind: ServiceAccount
  name: agent
  namespace: theirs
- kind: User
  name: user
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: conf
  namespace: new
---
apiVersion: example.com/v1
kind: Foo
metadata:
  name: foo
  namespace: new
spec:
  place: ""
"#;
    assert_eq!(output("", &files), expected);
}

//! Whole repositories: names in all kinds, and texts and numbers of any form.

use super::*;

#[test]
fn names_inside_of_all_kinds_follow() {
    let files = [
        (
            "kustomization.yaml",
            r#"resources: [r.yaml]
namePrefix: p-
nameSuffix: -s
namespace: ns
commonLabels: {app: x}
images: [{name: busybox, newName: reg:5000/bb, digest: sha256:24a0c4b4a4c0eb97a1aabb8e29f18e917d05abfe1b7a7c07857230879ce7d3d3}, {name: "reg.io/a", newTag: "1", tagSuffix: -x}]
"#,
        ),
        (
            "r.yaml",
            r#"apiVersion: batch/v1
kind: CronJob
metadata: {name: j}
spec:
  schedule: "* * * * *"
  jobTemplate:
    spec:
      template:
        spec:
          serviceAccountName: sa
          priorityClassName: pc
          containers: [{name: a, image: "busybox:1", envFrom: [{configMapRef: {name: cm}}, {secretRef: {name: s}}]}]
          volumes: [{name: v, persistentVolumeClaim: {claimName: pvc}}, {name: w, projected: {sources: [{secret: {name: s}}, {configMap: {name: cm}}]}}]
          imagePullSecrets: [{name: s}]
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: sa}, imagePullSecrets: [{name: s}]}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: cm}}
- {apiVersion: v1, kind: Secret, metadata: {name: s}}
- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: pvc}, spec: {volumeName: pv, storageClassName: sc}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv}, spec: {storageClassName: sc, azureFile: {secretName: s}}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: sc}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: pc}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: crb}
subjects: [{kind: ServiceAccount, name: sa, namespace: other}, {kind: ServiceAccount, name: default, namespace: other}, {kind: User, name: default}, {kind: ServiceAccount, name: sa}]
roleRef: {kind: ClusterRole, name: cr, apiGroup: rbac.authorization.k8s.io}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: cr}
rules: [{apiGroups: [""], resources: [secrets], resourceNames: [s, cm, other], verbs: [get]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: w}
webhooks: [{name: a.b.c, clientConfig: {service: {name: svc, namespace: x}}}, {name: d.b.c, clientConfig: {service: {name: svc}}}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.a.b}
spec: {service: {name: svc}, group: a.b}
---
{apiVersion: v1, kind: Service, metadata: {name: svc}, spec: {selector: {app: y}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: h}
spec: {scaleTargetRef: {kind: Deployment, name: d, apiVersion: apps/v1}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {topologySpreadConstraints: [{topologyKey: z, labelSelector: {matchLabels: {a: b}}}], initContainers: [{name: i, image: reg.io/a}], containers: [{name: c, image: "reg.io/a:2@sha256:abc"}]}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: i, annotations: {nginx.ingress.kubernetes.io/auth-secret: s, nginx.ingress.kubernetes.io/auth-tls-secret: ns/s}}
spec: {ingressClassName: ic, tls: [{secretName: s}], defaultBackend: {service: {name: svc}}, rules: [{http: {paths: [{backend: {service: {name: svc}}}]}}]}
---
{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: ic}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: ns}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: ss}, spec: {serviceName: svc, volumeClaimTemplates: [{metadata: {name: x}, spec: {storageClassName: sc}}]}}
"#,
        ),
    ];
    let expected = r#"apiVersion: v1
kind: Namespace
metadata:
  labels:
    app: x
  name: ns
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  labels:
    app: x
  name: p-sc-s
---
apiVersion: v1
imagePullSecrets:
- name: p-s-s
kind: ServiceAccount
metadata:
  labels:
    app: x
  name: p-sa-s
  namespace: ns
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  labels:
    app: x
  name: p-cr-s
rules:
- apiGroups:
  - ""
  resourceNames:
  - p-s-s
  - p-cm-s
  - other
  resources:
  - secrets
  verbs:
  - get
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  labels:
    app: x
  name: p-crb-s
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: p-cr-s
subjects:
- kind: ServiceAccount
  name: sa
  namespace: other
- kind: ServiceAccount
  name: default
  namespace: ns
- kind: User
  name: default
  namespace: ns
- kind: ServiceAccount
  name: p-sa-s
  namespace: ns
---
apiVersion: v1
kind: ConfigMap
metadata:
  labels:
    app: x
  name: p-cm-s
  namespace: ns
---
apiVersion: v1
kind: Secret
metadata:
  labels:
    app: x
  name: p-s-s
  namespace: ns
---
apiVersion: v1
kind: Service
metadata:
  labels:
    app: x
  name: p-svc-s
  namespace: ns
spec:
  selector:
    app: x
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  labels:
    app: x
  name: p-pc-s
---
apiVersion: v1
kind: PersistentVolume
metadata:
  labels:
    app: x
  name: p-pv-s
spec:
  azureFile:
    secretName: p-s-s
  storageClassName: p-sc-s
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  labels:
    app: x
  name: p-pvc-s
  namespace: ns
spec:
  storageClassName: p-sc-s
  volumeName: p-pv-s
---
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    app: x
  name: p-d-s
  namespace: ns
spec:
  selector:
    matchLabels:
      a: b
      app: x
  template:
    metadata:
      labels:
        a: b
        app: x
    spec:
      containers:
      - image: reg.io/a:1
        name: c
      initContainers:
      - image: reg.io/a:1
        name: i
      topologySpreadConstraints:
      - labelSelector:
          matchLabels:
            a: b
            app: x
        topologyKey: z
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  labels:
    app: x
  name: p-ss-s
  namespace: ns
spec:
  selector:
    matchLabels:
      app: x
  serviceName: p-svc-s
  template:
    metadata:
      labels:
        app: x
  volumeClaimTemplates:
  - metadata:
      labels:
        app: x
      name: x
    spec:
      storageClassName: p-sc-s
---
apiVersion: batch/v1
kind: CronJob
metadata:
  labels:
    app: x
  name: p-j-s
  namespace: ns
spec:
  jobTemplate:
    metadata:
      labels:
        app: x
    spec:
      template:
        metadata:
          labels:
            app: x
        spec:
          containers:
          - envFrom:
            - configMapRef:
                name: p-cm-s
            - secretRef:
                name: p-s-s
            image: reg:5000/bb@sha256:24a0c4b4a4c0eb97a1aabb8e29f18e917d05abfe1b7a7c07857230879ce7d3d3
            name: a
          imagePullSecrets:
          - name: p-s-s
          priorityClassName: p-pc-s
          serviceAccountName: p-sa-s
          volumes:
          - name: v
            persistentVolumeClaim:
              claimName: p-pvc-s
          - name: w
            projected:
              sources:
              - secret:
                  name: p-s-s
              - configMap:
                  name: p-cm-s
  schedule: '* * * * *'
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  labels:
    app: x
  name: v1.a.b
spec:
  group: a.b
  service:
    name: p-svc-s
    namespace: ns
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  labels:
    app: x
  name: p-h-s
  namespace: ns
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: p-d-s
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  annotations:
    nginx.ingress.kubernetes.io/auth-secret: p-s-s
    nginx.ingress.kubernetes.io/auth-tls-secret: ns/s
  labels:
    app: x
  name: p-i-s
  namespace: ns
spec:
  defaultBackend:
    service:
      name: p-svc-s
  ingressClassName: ic
  rules:
  - http:
      paths:
      - backend:
          service:
            name: p-svc-s
  tls:
  - secretName: p-s-s
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata:
  labels:
    app: x
  name: p-ic-s
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  labels:
    app: x
  name: p-w-s
webhooks:
- clientConfig:
    service:
      name: svc
      namespace: x
  name: a.b.c
- clientConfig:
    service:
      name: p-svc-s
      namespace: ns
  name: d.b.c
"#;
    assert_eq!(output("", &files), expected);
}

#[test]
fn texts_and_numbers_keep_their_meaning() {
    let files = [
        (
            "data.bin",
            r#"plain
"#,
        ),
        (
            "env",
            r#"A=1
# comment
B="quoted"
C
 D=x 
"#,
        ),
        (
            "kustomization.yaml",
            r#"resources: [r.yaml]
namespace: "123"
labels: [{pairs: {a: "true", b: "1.0", c: "null", d: "0x10", e: "~", f: "on", g: "1e3", h: "2020-01-01"}, includeSelectors: false}]
commonAnnotations: {note: "a: b # c", multi: "line1\nline2\n", tab: "a\tb", uni: "é✓", quote: "it's \"x\"", lead: " x", long: "aaaaaaaaaa bbbbbbbbbbbbbbbbbb cccccccccccccccccccccc ddddddddddddddddd eeeeeeeeeeeee ffffffffffffff ggggggg"}
configMapGenerator:
- name: lit
  literals: ["a='x y'", 'b="z"', c=, "d=a=b", "e=\\n", "f=1", "g=true", "h= space "]
  files: [data.bin, key=text.txt]
  envs: [env]
  options: {labels: {l: "1"}, immutable: true}
secretGenerator:
- {name: sec, type: kubernetes.io/tls, literals: [tls.crt=abc, tls.key=def]}
- {name: nohash, literals: [a=b], options: {disableNameSuffixHash: true}}
generatorOptions: {labels: {glob: "x", l: "2"}}
"#,
        ),
        (
            "r.yaml",
            r##"# head comment
apiVersion: v1
kind: ConfigMap # inline
metadata:
  name: c
data: # map
  a: 'single ''quoted'''
  b: "double \"q\" \u00e9 \t"
  c: |-
    block
      more
  d: "true"
  e: 'yes'
  f: plain text that is long enough to be folded when it is printed since it has more than eighty columns ok
  g: "multi\n\nline"
  h: ""
  i: "- a"
  j: "a: b"
  k: "#x"
  l: "123456789012345678901234567890"
  m: "1_000"
  n: "0o7"
  o: ".5"
  p: "+1"
  q: "12:30:45"
  r: "=" 
  s: "<<"
  t: "!x"
  u: "?"
  v: "trailing "
  w: "\\"
  x: "null"
  y: |+
    keep

  z: "a\r\nb"
---
apiVersion: example.com/v1
kind: Foo
metadata: {name: n}
spec:
  base: &b {a: 1, c: [1, 2]}
  alias: *b
  merged:
    <<: *b
    d: 2
  ints: [1, 010, 0x1F, 1_000, 0o17, 0b11, -0, +5]
  floats: [1.0, 1e3, .5, 1., 1.10, -1.5e-10, 123456789.123456789]
  bools: [true, False, yes, no, on, Off, y]
  nulls: [null, ~, Null, ]
  dates: [2020-01-01, 2020-01-01T10:00:00Z]
  empty: {}
  emptylist: []
"##,
        ),
        (
            "text.txt",
            r#"line with trailing  
	tab
"#,
        ),
    ];
    let expected = r#"apiVersion: v1
data:
  a: single 'quoted'
  b: "double \"q\" é \t"
  c: |-
    block
      more
  d: "true"
  e: "yes"
  f: plain text that is long enough to be folded when it is printed since it has more
    than eighty columns ok
  g: |-
    multi

    line
  h: ""
  i: '- a'
  j: 'a: b'
  k: '#x'
  l: "123456789012345678901234567890"
  m: "1_000"
  "n": "0o7"
  o: ".5"
  p: "+1"
  q: "12:30:45"
  r: =
  s: <<
  t: '!x'
  u: '?'
  v: 'trailing '
  w: \
  x: "null"
  "y": |+
    keep

  z: "a\r\nb"
kind: ConfigMap
metadata:
  annotations:
    lead: ' x'
    long: aaaaaaaaaa bbbbbbbbbbbbbbbbbb cccccccccccccccccccccc ddddddddddddddddd eeeeeeeeeeeee
      ffffffffffffff ggggggg
    multi: |
      line1
      line2
    note: 'a: b # c'
    quote: it's "x"
    tab: "a\tb"
    uni: é✓
  labels:
    a: "true"
    b: "1.0"
    c: "null"
    d: "0x10"
    e: "~"
    f: "on"
    g: "1e3"
    h: "2020-01-01"
  name: c
  namespace: "123"
---
apiVersion: v1
data:
  A: "1"
  B: '"quoted"'
  C: ""
  D: 'x '
  a: x y
  b: z
  c: ""
  d: a=b
  data.bin: |
    plain
  e: \n
  f: "1"
  g: "true"
  h: ' space '
  key: "line with trailing  \n\ttab\n"
immutable: true
kind: ConfigMap
metadata:
  annotations:
    lead: ' x'
    long: aaaaaaaaaa bbbbbbbbbbbbbbbbbb cccccccccccccccccccccc ddddddddddddddddd eeeeeeeeeeeee
      ffffffffffffff ggggggg
    multi: |
      line1
      line2
    note: 'a: b # c'
    quote: it's "x"
    tab: "a\tb"
    uni: é✓
  labels:
    a: "true"
    b: "1.0"
    c: "null"
    d: "0x10"
    e: "~"
    f: "on"
    g: "1e3"
    glob: x
    h: "2020-01-01"
    l: "1"
  name: lit-b6h6mmb9bt
  namespace: "123"
---
apiVersion: v1
data:
  a: Yg==
kind: Secret
metadata:
  annotations:
    lead: ' x'
    long: aaaaaaaaaa bbbbbbbbbbbbbbbbbb cccccccccccccccccccccc ddddddddddddddddd eeeeeeeeeeeee
      ffffffffffffff ggggggg
    multi: |
      line1
      line2
    note: 'a: b # c'
    quote: it's "x"
    tab: "a\tb"
    uni: é✓
  labels:
    a: "true"
    b: "1.0"
    c: "null"
    d: "0x10"
    e: "~"
    f: "on"
    g: "1e3"
    glob: x
    h: "2020-01-01"
    l: "2"
  name: nohash
  namespace: "123"
type: Opaque
---
apiVersion: v1
data:
  tls.crt: YWJj
  tls.key: ZGVm
kind: Secret
metadata:
  annotations:
    lead: ' x'
    long: aaaaaaaaaa bbbbbbbbbbbbbbbbbb cccccccccccccccccccccc ddddddddddddddddd eeeeeeeeeeeee
      ffffffffffffff ggggggg
    multi: |
      line1
      line2
    note: 'a: b # c'
    quote: it's "x"
    tab: "a\tb"
    uni: é✓
  labels:
    a: "true"
    b: "1.0"
    c: "null"
    d: "0x10"
    e: "~"
    f: "on"
    g: "1e3"
    glob: x
    h: "2020-01-01"
    l: "2"
  name: sec-td2b65gdb7
  namespace: "123"
type: kubernetes.io/tls
---
apiVersion: example.com/v1
kind: Foo
metadata:
  annotations:
    lead: ' x'
    long: aaaaaaaaaa bbbbbbbbbbbbbbbbbb cccccccccccccccccccccc ddddddddddddddddd eeeeeeeeeeeee
      ffffffffffffff ggggggg
    multi: |
      line1
      line2
    note: 'a: b # c'
    quote: it's "x"
    tab: "a\tb"
    uni: é✓
  labels:
    a: "true"
    b: "1.0"
    c: "null"
    d: "0x10"
    e: "~"
    f: "on"
    g: "1e3"
    h: "2020-01-01"
  name: "n"
  namespace: "123"
spec:
  alias:
    a: 1
    c:
    - 1
    - 2
  base:
    a: 1
    c:
    - 1
    - 2
  bools:
  - true
  - false
  - "yes"
  - "no"
  - "on"
  - "Off"
  - "y"
  dates:
  - "2020-01-01T00:00:00Z"
  - "2020-01-01T10:00:00Z"
  empty: {}
  emptylist: []
  floats:
  - 1
  - 1000
  - 0.5
  - 1
  - 1.1
  - -1.5e-10
  - 1.2345678912345679e+08
  ints:
  - 1
  - 8
  - 31
  - 1000
  - 15
  - 3
  - 0
  - 5
  merged:
    a: 1
    c:
    - 1
    - 2
    d: 2
  nulls:
  - null
  - null
  - null
"#;
    assert_eq!(output("", &files), expected);
}

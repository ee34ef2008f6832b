//! Manifests and short ways to decode them.

use k8s_openapi::api::core::v1::Pod;
use podstead::manifest::{self, Decoded, Limits, Object, Position};

/// A pod that uses much of what a manifest can have.
pub(crate) const WEB: &str = "\
# The web server.
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: 'web'}
spec:
  containers:
  - name: server
    image: nginx:1.27
    ports:
    - containerPort: 80
    command: [sleep, \"10\"]
    livenessProbe:
      httpGet: {path: /healthz, port: 80}
    resources:
      limits: {cpu: .5, memory: 64Mi}
  hostNetwork: yes
";

pub(crate) fn decode(file: &str, text: impl AsRef<[u8]>) -> Decoded {
    manifest::decode(file, text.as_ref(), &Limits::default())
}

/// The one pod of a file without problems.
pub(crate) fn pod(text: impl AsRef<[u8]>) -> Pod {
    let decoded = decode("pod.yaml", text);
    assert_eq!(decoded.problems, []);
    match decoded.objects.into_iter().next().unwrap().object {
        Object::Pod(pod) => *pod,
        other => panic!("not a pod: {other:?}"),
    }
}

/// Line and column of the first `needle` in `text`.
pub(crate) fn place(text: &str, needle: &str) -> Position {
    let before = &text[..text.find(needle).unwrap()];
    let line = before.matches('\n').count() as u32 + 1;
    Position { line, column: before.rsplit('\n').next().unwrap().chars().count() as u32 + 1 }
}

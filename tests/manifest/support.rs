//! Manifests and short ways to decode them.

use k8s_openapi::api::core::v1::Pod;
use podstead::{
    manifest::{self, Decoded, Ignored, Limits, Object, ObjectKey, Problem},
    pod::Position,
};

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

/// Line and column of the byte at `offset`.
pub(crate) fn place(text: &str, offset: usize) -> Position {
    let before = &text[..offset];
    let line = before.matches('\n').count() as u32 + 1;
    Position { line, column: before.rsplit('\n').next().unwrap().chars().count() as u32 + 1 }
}

/// Line and column of the first `needle`.
pub(crate) fn place_of(text: &str, needle: &str) -> Position {
    place(text, text.find(needle).unwrap())
}

/// The only problem with that code.
pub(crate) fn problem<'a>(decoded: &'a Decoded, code: &str) -> &'a Problem {
    let found: Vec<&Problem> = decoded.problems.iter().filter(|problem| problem.code == code).collect();
    assert_eq!(found.len(), 1, "{:?}", decoded.problems);
    found[0]
}

/// Names of the good objects.
pub(crate) fn names(decoded: &Decoded) -> Vec<&str> {
    decoded.objects.iter().map(|object| object.key.name.as_str()).collect()
}

/// Names of keys, `?` for what has none.
pub(crate) fn keys(broken: &[Option<ObjectKey>]) -> Vec<&str> {
    broken.iter().map(|key| key.as_ref().map_or("?", |key| key.name.as_str())).collect()
}

/// Checks the properties of the answer to any input.
pub(crate) fn check_invariants(bytes: &[u8], decoded: &Decoded) {
    let Decoded { objects, problems, broken, patches, broken_patches, removed, touched, ignored } = decoded;
    assert!(removed.is_empty() && touched.is_empty(), "without patches");
    assert!(broken.is_empty() || !problems.is_empty(), "what is broken has a problem");
    assert!(broken_patches.is_empty() || !problems.is_empty(), "a patch that is refused has a problem");
    let is_nothing = broken.is_empty() && objects.is_empty() && patches.is_empty() && broken_patches.is_empty();
    let is_foreign = |problem: &Problem| problem.code == "unsupported-kind";
    assert!(problems.iter().all(is_foreign) || !is_nothing, "a problem comes of something in the file");
    assert!(Ignored::warnings(ignored.iter()).iter().all(|warning| !warning.to_string().chars().any(char::is_control)));
    let keys: std::collections::HashSet<&ObjectKey> = objects.iter().map(|object| &object.key).collect();
    assert_eq!(keys.len(), objects.len(), "no key twice");
    assert!(broken.iter().flatten().all(|key| !keys.contains(key)), "no key is good and broken");
    assert!(broken.iter().filter(|key| key.is_none()).count() <= 1);
    let lines = bytes.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() as u32 + 1;
    for position in
        problems.iter().filter_map(|problem| problem.position).chain(objects.iter().map(|object| object.origin.position))
    {
        assert!((1..=lines).contains(&position.line) && position.column >= 1, "{position:?} is not in the file");
    }
    for problem in problems {
        let text = problem.to_string();
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
    for object in objects {
        assert!(object.positions.position("metadata.name").is_some());
    }
}

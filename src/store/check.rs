//! Validation of one file: decoding, admission of its pods, and the position of every problem.
//!
//! The daemon and `podstead validate` both call [`check`], so that they cannot disagree.

use super::{network_objects, policy, workloads};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use podstead_artifact::Layers;
use podstead_manifest::sops::Opening;
use podstead_manifest::{
    self as manifest, DecodedObject, Ignored, Limits, Object, ObjectKey, Patch, PatchesByObject, Problem, Substitution, Target,
    Touch,
};
use podstead_pod::objects::{NetworkObject, Object as ReferredObject, PackedObject, admit_claim, admit_config_map, admit_secret};
use podstead_pod::{AdmitContext, FieldProblem, Origin, Pod, Severity, admit, admit_named, code};
use podstead_settings::{Allow, PolicyRecord, Requirements};
use podstead_workload::host_fit::Host;
use podstead_workload::object::Workload;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Settings of a check.
#[derive(Clone, Debug)]
pub struct CheckContext {
    /// Limits of one file.
    pub limits: Limits,
    /// Settings for pod admission.
    pub admit: AdmitContext,
    /// Permissions of the source; `None` for all.
    pub allow: Option<Arc<Allow>>,
    /// Requirements for the pods of the source.
    pub requirements: Arc<Requirements>,
    /// Variables that are replaced in files before they are decoded; `None` for none.
    pub substitute: Option<Arc<Substitution>>,
    /// Layers of the source.
    pub layers: Arc<Layers>,
    /// Keys for encrypted manifests.
    pub opening: Arc<Opening>,
    /// Pods are called as in their manifests, without the name of the host.
    pub keeps_names: bool,
    /// The host whose labels workloads are held against, to tell of those that make no pods on it; `None` for a daemon, where that is as it
    /// should be.
    pub host: Option<Host>,
}

impl CheckContext {
    /// For a source that may use everything.
    pub fn new(admit: AdmitContext) -> Self {
        Self {
            limits: Limits::default(),
            admit,
            allow: None,
            requirements: Arc::default(),
            substitute: None,
            layers: Arc::default(),
            opening: Arc::default(),
            keeps_names: false,
            host: None,
        }
    }

    /// Record of the configuration that objects are checked with, to be kept beside the accepted ones.
    pub fn policy(&self) -> PolicyRecord {
        PolicyRecord::of(self.allow.as_deref(), &self.requirements)
    }

    /// Reports whether objects are checked with the recorded configuration.
    pub fn has_policy(&self, record: &PolicyRecord) -> bool {
        record.is_of(self.allow.as_deref(), &self.requirements)
    }

    /// Decides if an object that was accepted before has to go because the configuration does not allow it any more. One that was accepted under
    /// the same configuration stays: it is refused by rules that came with a version of podstead, and an upgrade stops no pod. Versions that
    /// kept no record (`None`) did not know the rules of [`policy::channels_of_pod`].
    pub fn revokes(&self, accepted: &Accepted, judged_by: Option<&PolicyRecord>) -> bool {
        match judged_by {
            Some(record) if self.has_policy(record) => false,
            Some(_) => !self.refusals(accepted, Rules::All).is_empty(),
            None => !self.refusals(accepted, Rules::BeforeChannels).is_empty(),
        }
    }

    /// The namespace of objects that are written without one.
    pub fn namespace(&self) -> &str {
        self.allow.as_ref().map_or(podstead_pod::DEFAULT_NAMESPACE, |allow| allow.default_namespace())
    }

    /// Returns the violations of an object that was accepted before; empty if it may stay.
    pub fn violations(&self, accepted: &Accepted) -> Vec<Problem> {
        let Accepted { key, origin, .. } = accepted;
        let found = self.refusals(accepted, Rules::All);
        let placed = |FieldProblem { severity, code, field, message, hint }| Problem {
            severity,
            code,
            file: origin.file.to_string(),
            position: Some(origin.position),
            field,
            message,
            hint,
            object: Some(ObjectKey::clone(key)),
        };
        found.into_iter().map(placed).collect()
    }

    fn refusals(&self, accepted: &Accepted, rules: Rules) -> Vec<FieldProblem> {
        let Accepted { key, origin: _, object, patched_by: _ } = accepted;
        match object {
            AcceptedObject::Pod(pod) => self.refusals_of_pod(key, pod, rules),
            AcceptedObject::ConfigMap(_) | AcceptedObject::Secret(_) => self.refusals_of_data(key),
            AcceptedObject::PersistentVolumeClaim(claim) => self.refusals_of_claim(key, claim),
            AcceptedObject::Workload(workload) => self.refusals_of_workload(key, workload, rules),
            AcceptedObject::Network(object) => self.refusals_of_network_object(key, &object.unpack()),
        }
    }

    /// Returns the violations of an object as written.
    fn judge(&self, key: &ObjectKey, object: &Object) -> Vec<FieldProblem> {
        match object {
            Object::Pod(pod) => self.refusals_of_pod(key, pod, Rules::All),
            Object::ConfigMap(_) | Object::Secret(_) => self.refusals_of_data(key),
            Object::PersistentVolumeClaim(claim) => self.refusals_of_claim(key, claim),
            Object::Workload(workload) => self.refusals_of_workload(key, workload, Rules::All),
            Object::Network(object) => self.refusals_of_network_object(key, object),
        }
    }

    /// A workload is refused where its pods would be.
    fn refusals_of_workload(&self, key: &ObjectKey, workload: &Workload, rules: Rules) -> Vec<FieldProblem> {
        let mut found = match workload.template() {
            Some(template) => {
                let metadata = template.metadata.clone().unwrap_or_default();
                self.refusals_of_pod(key, &Pod { metadata, spec: template.spec.clone(), status: None }, rules)
            }
            None => self.refusals_of_data(key),
        };
        // The namespace is the workload's.
        for problem in found.iter_mut().filter(|problem| problem.field != "metadata.namespace") {
            problem.field = format!("{}.{}", workload.kind().template_path(), problem.field);
        }
        if let Some(allow) = &self.allow {
            found.extend(policy::of_claim_templates(workload.claim_templates(), allow));
        }
        found
    }

    fn refusals_of_pod(&self, key: &ObjectKey, pod: &Pod, rules: Rules) -> Vec<FieldProblem> {
        let mut found = policy::requirements_of_pod(pod, &self.requirements);
        if let Some(allow) = &self.allow {
            found.extend(policy::of_pod(pod, &key.namespace, allow));
            match rules {
                Rules::All => found.extend(policy::channels_of_pod(pod, allow)),
                Rules::BeforeChannels => {}
            }
        }
        found
    }

    fn refusals_of_data(&self, key: &ObjectKey) -> Vec<FieldProblem> {
        self.allow.as_ref().map(|allow| policy::of_namespace(&key.namespace, allow)).unwrap_or_default()
    }

    fn refusals_of_network_object(&self, key: &ObjectKey, object: &NetworkObject) -> Vec<FieldProblem> {
        self.allow.as_ref().map(|allow| policy::of_network_object(object, &key.namespace, allow)).unwrap_or_default()
    }

    fn refusals_of_claim(&self, key: &ObjectKey, claim: &PersistentVolumeClaim) -> Vec<FieldProblem> {
        self.allow.as_ref().map(|allow| policy::of_claim(claim, &key.namespace, allow)).unwrap_or_default()
    }
}

/// Rules to check an object by.
#[derive(Clone, Copy, Debug)]
enum Rules {
    /// Those of this version.
    All,
    /// Those of versions that kept no [`PolicyRecord`].
    BeforeChannels,
}

/// An accepted object.
#[derive(Clone, Serialize, Deserialize)]
pub enum AcceptedObject {
    /// Defaulted, validated and named for this node. Has a UID only where the manifest fixes one.
    Pod(Arc<Pod>),
    /// As written.
    ConfigMap(Arc<ConfigMap>),
    /// As written, with `stringData` merged into `data`.
    Secret(Arc<Secret>),
    /// As written, without status.
    PersistentVolumeClaim(Arc<PersistentVolumeClaim>),
    /// As written and validated, without status. Its template is neither defaulted nor named for this node: pods are made of it later.
    Workload(Arc<Workload>),
    /// As written and validated, without status.
    Network(Arc<PackedObject>),
}

impl PartialEq for AcceptedObject {
    /// Most objects are compared with themselves, since one file of many changes.
    fn eq(&self, other: &Self) -> bool {
        fn same<T: PartialEq>(one: &Arc<T>, other: &Arc<T>) -> bool {
            Arc::ptr_eq(one, other) || one == other
        }
        match (self, other) {
            (Self::Pod(one), Self::Pod(other)) => same(one, other),
            (Self::ConfigMap(one), Self::ConfigMap(other)) => same(one, other),
            (Self::Secret(one), Self::Secret(other)) => same(one, other),
            (Self::PersistentVolumeClaim(one), Self::PersistentVolumeClaim(other)) => same(one, other),
            (Self::Workload(one), Self::Workload(other)) => same(one, other),
            (Self::Network(one), Self::Network(other)) => same(one, other),
            (
                Self::Pod(_)
                | Self::ConfigMap(_)
                | Self::Secret(_)
                | Self::PersistentVolumeClaim(_)
                | Self::Workload(_)
                | Self::Network(_),
                _,
            ) => false,
        }
    }
}

impl AcceptedObject {
    /// Reports whether its data must not change (`immutable: true`).
    pub fn is_immutable(&self) -> bool {
        match self {
            AcceptedObject::Pod(_)
            | AcceptedObject::PersistentVolumeClaim(_)
            | AcceptedObject::Workload(_)
            | AcceptedObject::Network(_) => false,
            AcceptedObject::ConfigMap(config_map) => config_map.immutable == Some(true),
            AcceptedObject::Secret(secret) => secret.immutable == Some(true),
        }
    }

    /// The time at which its source first had it, for kinds whose time of creation nothing else keeps. `None` also for what an earlier version
    /// of podstead accepted.
    pub fn created_at(&self) -> Option<&Time> {
        match self {
            AcceptedObject::ConfigMap(config_map) => config_map.metadata.creation_timestamp.as_ref(),
            AcceptedObject::Secret(secret) => secret.metadata.creation_timestamp.as_ref(),
            AcceptedObject::Network(object) => object.created_at(),
            AcceptedObject::Pod(_) | AcceptedObject::PersistentVolumeClaim(_) | AcceptedObject::Workload(_) => None,
        }
    }

    /// Sets that time, where [`AcceptedObject::created_at`] has it.
    pub(super) fn set_created_at(&mut self, time: Option<Time>) {
        match self {
            AcceptedObject::ConfigMap(config_map) => Arc::make_mut(config_map).metadata.creation_timestamp = time,
            AcceptedObject::Secret(secret) => Arc::make_mut(secret).metadata.creation_timestamp = time,
            AcceptedObject::Network(object) => Arc::make_mut(object).set_created_at(time),
            AcceptedObject::Pod(_) | AcceptedObject::PersistentVolumeClaim(_) | AcceptedObject::Workload(_) => {}
        }
    }

    /// Reports whether everything that `immutable` protects is the same in both.
    pub fn has_data_of(&self, other: &AcceptedObject) -> bool {
        match (self, other) {
            (AcceptedObject::ConfigMap(one), AcceptedObject::ConfigMap(other)) => {
                (&one.data, &one.binary_data, one.immutable) == (&other.data, &other.binary_data, other.immutable)
            }
            (AcceptedObject::Secret(one), AcceptedObject::Secret(other)) => {
                (&one.data, &one.type_, one.immutable) == (&other.data, &other.type_, other.immutable)
            }
            (AcceptedObject::Pod(one), AcceptedObject::Pod(other)) => one == other,
            (AcceptedObject::PersistentVolumeClaim(one), AcceptedObject::PersistentVolumeClaim(other)) => one == other,
            (AcceptedObject::Workload(one), AcceptedObject::Workload(other)) => one == other,
            (AcceptedObject::Network(one), AcceptedObject::Network(other)) => one == other,
            (
                AcceptedObject::Pod(_)
                | AcceptedObject::ConfigMap(_)
                | AcceptedObject::Secret(_)
                | AcceptedObject::PersistentVolumeClaim(_)
                | AcceptedObject::Workload(_)
                | AcceptedObject::Network(_),
                _,
            ) => false,
        }
    }
}

impl fmt::Debug for AcceptedObject {
    /// Without the content of a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AcceptedObject::Pod(pod) => pod.fmt(f),
            AcceptedObject::ConfigMap(config_map) => config_map.fmt(f),
            AcceptedObject::PersistentVolumeClaim(claim) => claim.fmt(f),
            AcceptedObject::Workload(workload) => workload.fmt(f),
            AcceptedObject::Network(object) => object.fmt(f),
            AcceptedObject::Secret(secret) => ReferredObject::Secret(Arc::clone(secret)).fmt(f),
        }
    }
}

/// An accepted object and its position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    /// Its identity in its source.
    pub key: Arc<ObjectKey>,
    /// File and position where it begins.
    pub origin: Origin,
    /// The object.
    pub object: AcceptedObject,
    /// Positions of the patches that were applied to it, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patched_by: Vec<Origin>,
}

/// Result of checking one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checked {
    /// Accepted objects, in file order.
    pub accepted: Vec<Accepted>,
    /// Problems, in file order: an error refuses its object, a warning does not.
    pub problems: Vec<Problem>,
    /// Refused objects; `None` for one without a known identity (see [`manifest::Decoded::broken`]).
    pub broken: Vec<Option<ObjectKey>>,
    /// The patches in it.
    pub patches: Vec<Arc<Patch>>,
    /// Targets of the refused patches in it.
    pub broken_patches: Vec<Target>,
    /// Objects in it that a patch takes away.
    pub removed: Vec<ObjectKey>,
    /// Pairs of patches and objects that they are for.
    pub touched: Vec<Touch>,
    /// Objects of kinds that are not read and do no harm.
    pub ignored: Vec<Ignored>,
}

/// Checks the bytes of one file; `file` is its name in problems and origins, `patches` are for objects in it.
pub fn check(file: &str, bytes: &[u8], context: &CheckContext, patches: &PatchesByObject) -> Checked {
    let bytes = match &context.substitute {
        Some(substitution) => match manifest::substitute(file, bytes, substitution, &context.limits) {
            Ok(bytes) => bytes,
            // What the file would hold cannot be told.
            Err(problems) => return Checked { problems, broken: vec![None], ..Checked::default() },
        },
        None => Cow::Borrowed(bytes),
    };
    let (mut accepted, mut judged_problems, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    let mut take = |decoded: DecodedObject| {
        let Judged { key, origin, patched_by, object, problems } = judged(decoded, context);
        let culprit = match &object {
            None if !patched_by.is_empty() => culprit(file, &bytes, context, &key, patches),
            None | Some(_) => None,
        };
        judged_problems.extend(problems.into_iter().map(|found| blamed(found, culprit.as_ref(), &key, &origin)));
        match object {
            Some(object) => accepted.push(Accepted { key: key.into(), origin, object, patched_by }),
            None => refused.push(Some(key)),
        }
    };
    let manifest::Decoded { objects: _, mut problems, mut broken, patches: found, broken_patches, removed, touched, ignored } =
        manifest::decode_each(context.namespace(), file, &bytes, &context.limits, &context.opening, patches, &mut take);
    problems.append(&mut judged_problems);
    problems.sort_by_key(|problem| problem.position);
    broken.append(&mut refused);
    Checked { accepted, problems, broken, patches: found, broken_patches, removed, touched, ignored }
}

/// Checks objects that no patch of the source is for.
pub(crate) fn check_decoded(decoded: manifest::Decoded, context: &CheckContext) -> Checked {
    let manifest::Decoded { objects, problems, broken, patches, broken_patches, removed, touched, ignored } = decoded;
    let mut checked = Checked { accepted: Vec::new(), problems, broken, patches, broken_patches, removed, touched, ignored };
    for decoded in objects {
        let Judged { key, origin, patched_by, object, problems } = judged(decoded, context);
        checked.problems.extend(problems.into_iter().map(|found| found.problem));
        match object {
            Some(object) => checked.accepted.push(Accepted { key: key.into(), origin, object, patched_by }),
            None => checked.broken.push(Some(key)),
        }
    }
    checked
}

/// An object and its problems.
struct Judged {
    key: ObjectKey,
    origin: Origin,
    patched_by: Vec<Origin>,
    /// `None` when it is refused.
    object: Option<AcceptedObject>,
    problems: Vec<Found>,
}

/// A problem, and whether its place is in a patch.
struct Found {
    problem: Problem,
    is_in_patch: bool,
}

fn judged(decoded: DecodedObject, context: &CheckContext) -> Judged {
    let DecodedObject { key, object, origin, positions, patched_by } = decoded;
    // Judged as written: what is not allowed and what is wrong shall not hide each other.
    let violations = context.judge(&key, &object);
    let (object, mut problems) = match object {
        Object::ConfigMap(config_map) => {
            let (config_map, problems) = admit_config_map(*config_map);
            (config_map.map(|config_map| AcceptedObject::ConfigMap(config_map.into())), problems)
        }
        Object::Secret(secret) => {
            let (secret, problems) = admit_secret(*secret);
            (secret.map(|secret| AcceptedObject::Secret(secret.into())), problems)
        }
        Object::PersistentVolumeClaim(claim) => {
            let (claim, problems) = admit_claim(*claim);
            (claim.map(|claim| AcceptedObject::PersistentVolumeClaim(claim.into())), problems)
        }
        Object::Workload(workload) => {
            let (workload, problems) = workloads::admit(workload, context);
            (workload.map(|workload| AcceptedObject::Workload(workload.into())), problems)
        }
        Object::Network(object) => {
            let (object, problems) = network_objects::admit(object);
            (object.map(|object| AcceptedObject::Network(PackedObject::new(object).into())), problems)
        }
        Object::Pod(pod) => {
            let (pod, problems) = admitted(*pod, context);
            (pod.map(|pod| AcceptedObject::Pod(pod.into())), problems)
        }
    };
    let object = object.filter(|_| violations.is_empty());
    problems.extend(violations);
    let placed = |FieldProblem { severity, code, field, message, hint }| {
        let patch = positions.patch(&field).and_then(|patch| patched_by.get(patch));
        let problem = Problem {
            severity,
            code,
            file: patch.map_or(&origin.file, |patch| &patch.file).to_string(),
            position: Some(positions.position(&field).unwrap_or(origin.position)),
            field: if patch.is_some() { field } else { positions.field_in_file(&field) },
            message,
            hint,
            object: Some(key.clone()),
        };
        Found { problem, is_in_patch: patch.is_some() }
    };
    let problems = problems.into_iter().map(placed).collect();
    Judged { key, origin, patched_by, object, problems }
}

/// Returns the patch that made a valid object invalid; `None` if it is invalid without patches, too.
fn culprit(file: &str, bytes: &[u8], context: &CheckContext, key: &ObjectKey, patches: &PatchesByObject) -> Option<Origin> {
    let all = patches.get(key)?;
    let is_good = |count: &usize| {
        let some = PatchesByObject::from([(key.clone(), all[..*count].to_vec())]);
        let objects = manifest::decode_in(context.namespace(), file, bytes, &context.limits, &context.opening, &some).objects;
        objects.into_iter().find(|object| object.key == *key).is_some_and(|object| judged(object, context).object.is_some())
    };
    (0..all.len()).rev().find(is_good).map(|good| all[good].origin().clone())
}

/// A problem of a patched object at the place of the patch that is to blame, unless it has a place in a patch already.
fn blamed(found: Found, culprit: Option<&Origin>, key: &ObjectKey, origin: &Origin) -> Problem {
    let Found { problem, is_in_patch } = found;
    let Some(patch) = culprit.filter(|_| problem.severity == Severity::Error) else { return problem };
    let ObjectKey { kind, namespace, name } = key;
    let (file, position) =
        if is_in_patch { (problem.file, problem.position) } else { (patch.file.to_string(), Some(patch.position)) };
    Problem { file, position, message: format!("{}, in {kind} {namespace}/{name} of {origin}", problem.message), ..problem }
}

/// Admits a pod and gives it back the UID that its manifest fixes (kubelet rule A18), which admission takes for a server's.
fn admitted(mut pod: Pod, context: &CheckContext) -> (Option<Pod>, Vec<FieldProblem>) {
    let uid = pod.metadata.uid.take().filter(|uid| !uid.is_empty());
    let mut verdict = if context.keeps_names { admit_named(pod, &context.admit) } else { admit(pod, &context.admit) };
    if let Some(uid) = uid {
        if is_uid(&uid) {
            if let Some(pod) = &mut verdict.pod {
                pod.metadata.uid = Some(uid);
            }
        } else {
            verdict.pod = None;
            verdict.problems.push(FieldProblem {
                severity: Severity::Error,
                code: code::INVALID.to_owned(),
                field: "metadata.uid".to_owned(),
                message: format!("invalid value {uid:?}: must be at most 63 lower-case letters, digits or dashes, as in a UUID"),
                hint: Some("leave it out; podstead assigns a UID".to_owned()),
            });
        }
    }
    (verdict.pod, verdict.problems)
}

/// Reports whether a UID is valid in names of directories and cgroups.
fn is_uid(uid: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    uid.len() <= 63 && uid.chars().all(inner) && !uid.starts_with('-') && !uid.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_pod::NodeName;

    fn checked(text: &str) -> Checked {
        let context = CheckContext::new(AdmitContext::new(NodeName::new("edge")));
        check("web.yaml", text.as_bytes(), &context, &PatchesByObject::new())
    }

    fn pod_of(accepted: &Accepted) -> &Pod {
        match &accepted.object {
            AcceptedObject::Pod(pod) => pod,
            AcceptedObject::ConfigMap(_)
            | AcceptedObject::Secret(_)
            | AcceptedObject::PersistentVolumeClaim(_)
            | AcceptedObject::Workload(_)
            | AcceptedObject::Network(_) => panic!("no pod"),
        }
    }

    const GOOD: &str = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers:\n  - name: web\n    image: nginx\n";

    #[test]
    fn a_good_pod_is_defaulted_and_named_for_the_node() {
        let checked = checked(GOOD);
        assert_eq!((checked.problems, checked.broken), (vec![], vec![]));
        let pod = pod_of(&checked.accepted[0]);
        assert_eq!(pod.metadata.name.as_deref(), Some("web-edge"));
        assert_eq!(pod.spec.as_ref().unwrap().restart_policy.as_deref(), Some("Always"));
        assert_eq!(checked.accepted[0].key.name, "web");
        assert_eq!(pod.metadata.uid, None);
    }

    #[test]
    fn a_pod_that_is_not_admitted_is_broken_and_its_problems_have_a_place() {
        let checked = checked(&GOOD.replace("  - name: web", "  - name: Web_"));
        assert_eq!(checked.accepted, []);
        assert_eq!(checked.broken.len(), 1);
        let problem = checked.problems[0].to_string();
        assert!(problem.starts_with("web.yaml:7:11: error[invalid-value]: spec.containers[0].name"), "{problem}");
    }

    #[test]
    fn no_problem_and_no_debug_output_says_what_a_secret_holds() {
        let secret = |data: &str| checked(&format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\n{data}\n"));
        let good = secret("stringData: {password: hunter2}");
        assert!(!format!("{good:?}").contains("hunter2") && !format!("{good:?}").contains("aHVudGVyMg"), "{good:?}");
        for bad in [
            "data: {password: hunter2}",
            "stringData: {password: [hunter2]}",
            "data: {'a/b': aHVudGVyMg==}",
            "stringData: {'a b': hunter2}",
        ] {
            let found = secret(bad);
            assert_eq!(found.accepted, [], "{bad}");
            let told = format!("{:?}", found.problems);
            assert!(!told.contains("hunter2") && !told.contains("aHVudGVyMg"), "{told}");
        }
    }

    #[test]
    fn one_bad_document_leaves_the_others() {
        let text = format!("{GOOD}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata: {{a: b}}\n---\nkind: [\n");
        let checked = checked(&text);
        assert_eq!(checked.accepted.len(), 2);
        assert_eq!(checked.broken, [None]);
        assert_eq!(checked.problems.len(), 1);
    }

    #[test]
    fn a_fixed_uid_is_kept_if_it_can_name_a_directory() {
        let with = |uid: &str| checked(&GOOD.replace("  name: web\nspec", &format!("  name: web\n  uid: {uid}\nspec")));
        let good = with("0f3e-9");
        assert_eq!(good.problems, []);
        assert_eq!(pod_of(&good.accepted[0]).metadata.uid.as_deref(), Some("0f3e-9"));
        for bad in ["../../etc", "a/b", "-a", "A", "\"\\0\"", &"a".repeat(64)] {
            let checked = with(bad);
            assert_eq!(checked.accepted, [], "{bad}");
            assert_eq!(checked.problems[0].field, "metadata.uid");
            assert_eq!(checked.problems[0].position.unwrap().line, 5);
        }
    }

    #[test]
    fn variables_are_replaced_before_anything_is_judged_and_a_missing_one_leaves_the_file_unclear() {
        let judged = |value: Option<&str>| {
            let substitution = Substitution::new([("TAG".to_owned(), value.map(str::to_owned))]);
            let context = CheckContext {
                substitute: Some(Arc::new(substitution)),
                ..CheckContext::new(AdmitContext::new(NodeName::new("edge")))
            };
            check("web.yaml", GOOD.replace("nginx", "nginx:${TAG}").as_bytes(), &context, &PatchesByObject::new())
        };
        let good = judged(Some("1.27"));
        let image = &pod_of(&good.accepted[0]).spec.as_ref().unwrap().containers[0].image;
        assert_eq!(image.as_deref(), Some("nginx:1.27"));
        let missing = judged(None);
        assert_eq!((missing.accepted.len(), missing.broken.clone()), (0, vec![None]));
        assert!(
            missing.problems[0].to_string().starts_with("web.yaml:8:18: error[variable]: the variable TAG"),
            "{}",
            missing.problems[0]
        );
    }
}

//! Fields that labels, names, images and the rest are written to: those that kustomize has built in, and those of `configurations`.

use super::CODE;
use super::id::Gvk;
use super::reader::{Fields, Item};
use crate::fault::Fault;
use crate::node::{Node, Value};

/// A field of some objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldSpec {
    pub(super) gvk: Gvk,
    pub(super) path: String,
    /// Makes the field where it is missing.
    pub(super) create: bool,
}

/// Objects that others refer to by name, and the fields of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NameReference {
    pub(super) gvk: Gvk,
    pub(super) referrers: Vec<FieldSpec>,
}

/// All fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Config {
    pub(super) name_prefix: Vec<FieldSpec>,
    pub(super) name_suffix: Vec<FieldSpec>,
    pub(super) namespace: Vec<FieldSpec>,
    pub(super) common_labels: Vec<FieldSpec>,
    pub(super) labels: Vec<FieldSpec>,
    pub(super) template_labels: Vec<FieldSpec>,
    pub(super) common_annotations: Vec<FieldSpec>,
    pub(super) name_references: Vec<NameReference>,
    pub(super) var_references: Vec<FieldSpec>,
    pub(super) images: Vec<FieldSpec>,
    pub(super) replicas: Vec<FieldSpec>,
}

/// Group, kind, path and whether a missing field is made.
type Row = (&'static str, &'static str, &'static str, bool);

fn specs(rows: &[Row]) -> Vec<FieldSpec> {
    let spec = |(group, kind, path, create): &Row| FieldSpec {
        gvk: Gvk { group: (*group).to_owned(), version: String::new(), kind: (*kind).to_owned() },
        path: (*path).to_owned(),
        create: *create,
    };
    rows.iter().map(spec).collect()
}

/// Fields of one version, besides group and kind.
fn of_v1(mut specs: Vec<FieldSpec>, kinds: &[&str]) -> Vec<FieldSpec> {
    for spec in &mut specs {
        if kinds.contains(&spec.gvk.kind.as_str()) {
            "v1".clone_into(&mut spec.gvk.version);
        }
    }
    specs
}

const METADATA_LABELS: &[Row] = &[
    ("", "", "metadata/labels", true),
    ("", "ReplicationController", "spec/template/metadata/labels", true),
    ("", "Deployment", "spec/template/metadata/labels", true),
    ("", "ReplicaSet", "spec/template/metadata/labels", true),
    ("", "DaemonSet", "spec/template/metadata/labels", true),
    ("apps", "StatefulSet", "spec/template/metadata/labels", true),
    ("apps", "StatefulSet", "spec/volumeClaimTemplates[]/metadata/labels", true),
    ("batch", "Job", "spec/template/metadata/labels", true),
    ("batch", "CronJob", "spec/jobTemplate/metadata/labels", true),
    ("batch", "CronJob", "spec/jobTemplate/spec/template/metadata/labels", true),
];

const SELECTORS: &[Row] = &[
    ("", "Service", "spec/selector", true),
    ("", "ReplicationController", "spec/selector", true),
    ("", "Deployment", "spec/selector/matchLabels", true),
    ("", "ReplicaSet", "spec/selector/matchLabels", true),
    ("", "DaemonSet", "spec/selector/matchLabels", true),
    ("apps", "StatefulSet", "spec/selector/matchLabels", true),
    ("batch", "Job", "spec/selector/matchLabels", false),
    ("batch", "CronJob", "spec/jobTemplate/spec/selector/matchLabels", false),
    ("policy", "PodDisruptionBudget", "spec/selector/matchLabels", false),
    ("networking.k8s.io", "NetworkPolicy", "spec/podSelector/matchLabels", false),
    ("networking.k8s.io", "NetworkPolicy", "spec/ingress/from/podSelector/matchLabels", false),
    ("networking.k8s.io", "NetworkPolicy", "spec/egress/to/podSelector/matchLabels", false),
];

/// Selectors of the pod template of Deployments and StatefulSets.
const TEMPLATE_SELECTORS: &[&str] = &[
    "affinity/podAffinity/preferredDuringSchedulingIgnoredDuringExecution/podAffinityTerm/labelSelector/matchLabels",
    "affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/labelSelector/matchLabels",
    "affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/podAffinityTerm/labelSelector/matchLabels",
    "affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/labelSelector/matchLabels",
    "topologySpreadConstraints/labelSelector/matchLabels",
];

const ANNOTATIONS: &[Row] = &[
    ("", "", "metadata/annotations", true),
    ("", "ReplicationController", "spec/template/metadata/annotations", true),
    ("", "Deployment", "spec/template/metadata/annotations", true),
    ("", "ReplicaSet", "spec/template/metadata/annotations", true),
    ("", "DaemonSet", "spec/template/metadata/annotations", true),
    ("", "StatefulSet", "spec/template/metadata/annotations", true),
    ("batch", "Job", "spec/template/metadata/annotations", true),
    ("batch", "CronJob", "spec/jobTemplate/metadata/annotations", true),
    ("batch", "CronJob", "spec/jobTemplate/spec/template/metadata/annotations", true),
];

const IMAGES: &[Row] = &[
    ("", "", "spec/containers[]/image", true),
    ("", "", "spec/initContainers[]/image", true),
    ("", "", "spec/volumes[]/image/reference", true),
    ("", "", "spec/template/spec/containers[]/image", true),
    ("", "", "spec/template/spec/initContainers[]/image", true),
    ("", "", "spec/template/spec/volumes[]/image/reference", true),
];

const REPLICAS: &[Row] = &[
    ("", "Deployment", "spec/replicas", true),
    ("", "ReplicationController", "spec/replicas", true),
    ("", "ReplicaSet", "spec/replicas", true),
    ("", "StatefulSet", "spec/replicas", true),
];

const NAMESPACE: &[Row] = &[
    ("", "Namespace", "metadata/name", true),
    ("apiregistration.k8s.io", "APIService", "spec/service/namespace", true),
    ("apiextensions.k8s.io", "CustomResourceDefinition", "spec/conversion/webhook/clientConfig/service/namespace", false),
];

fn common_labels() -> Vec<FieldSpec> {
    let mut labels = of_v1(specs(SELECTORS), &["Service", "ReplicationController"]);
    for kind in ["Deployment", "StatefulSet"] {
        let gvk = Gvk { group: "apps".to_owned(), version: String::new(), kind: kind.to_owned() };
        let spec = |path: &&str| FieldSpec { gvk: gvk.clone(), path: format!("spec/template/spec/{path}"), create: false };
        labels.extend(TEMPLATE_SELECTORS.iter().map(spec));
    }
    labels.extend(metadata_labels());
    labels
}

fn metadata_labels() -> Vec<FieldSpec> {
    of_v1(specs(METADATA_LABELS), &["ReplicationController"])
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name_prefix: specs(&[("", "", "metadata/name", false)]),
            name_suffix: specs(&[("", "", "metadata/name", false)]),
            namespace: specs(NAMESPACE),
            common_labels: common_labels(),
            labels: Vec::new(),
            template_labels: metadata_labels(),
            common_annotations: of_v1(specs(ANNOTATIONS), &["ReplicationController"]),
            name_references: super::name_reference_table::name_references(),
            var_references: super::var_reference_table::references(),
            images: specs(IMAGES),
            replicas: specs(REPLICAS),
        }
    }
}

/// Adds fields that are not known yet.
pub(super) fn merge(known: &mut Vec<FieldSpec>, more: &[FieldSpec], at: u32) -> Result<(), Fault> {
    for spec in more {
        match known.iter().find(|known| known.gvk.is_selected(&spec.gvk) && known.path == spec.path) {
            None => known.push(spec.clone()),
            Some(same) if same.create == spec.create => {}
            Some(_) => {
                let message = format!("the field {} is known with another value of create", spec.path);
                return Err(Fault::at(CODE, at, message));
            }
        }
    }
    Ok(())
}

impl Config {
    /// No fields at all.
    pub(super) fn empty() -> Self {
        Self {
            name_prefix: Vec::new(),
            name_suffix: Vec::new(),
            namespace: Vec::new(),
            common_labels: Vec::new(),
            labels: Vec::new(),
            template_labels: Vec::new(),
            common_annotations: Vec::new(),
            name_references: Vec::new(),
            var_references: Vec::new(),
            images: Vec::new(),
            replicas: Vec::new(),
        }
    }

    /// Adds the fields of another configuration.
    pub(super) fn merge(&mut self, other: &Config, at: u32) -> Result<(), Fault> {
        merge(&mut self.name_prefix, &other.name_prefix, at)?;
        merge(&mut self.name_suffix, &other.name_suffix, at)?;
        merge(&mut self.namespace, &other.namespace, at)?;
        merge(&mut self.common_labels, &other.common_labels, at)?;
        merge(&mut self.labels, &other.labels, at)?;
        merge(&mut self.template_labels, &other.template_labels, at)?;
        merge(&mut self.common_annotations, &other.common_annotations, at)?;
        merge(&mut self.var_references, &other.var_references, at)?;
        merge(&mut self.images, &other.images, at)?;
        merge(&mut self.replicas, &other.replicas, at)?;
        for reference in &other.name_references {
            match self.name_references.iter_mut().find(|known| known.gvk == reference.gvk) {
                None => self.name_references.push(reference.clone()),
                Some(known) => merge(&mut known.referrers, &reference.referrers, at)?,
            }
        }
        self.name_references.sort_by_cached_key(|reference| super::sort::order_of(&reference.gvk));
        // The order counts: a field for some kinds, which now comes first, takes the place of one for all kinds in the next merge.
        for specs in [
            &mut self.name_prefix,
            &mut self.name_suffix,
            &mut self.namespace,
            &mut self.common_labels,
            &mut self.labels,
            &mut self.template_labels,
            &mut self.common_annotations,
            &mut self.var_references,
            &mut self.images,
            &mut self.replicas,
        ] {
            specs.sort_by_cached_key(|spec| super::sort::order_of(&spec.gvk));
        }
        Ok(())
    }

    /// Reads a file of `configurations`.
    pub(super) fn read(node: &Node, at: u32) -> Result<Self, Fault> {
        if node.value == Value::Null {
            return Ok(Self::empty());
        }
        let item = Item::root(node, at);
        let fields = item.fields(&[
            "namePrefix",
            "nameSuffix",
            "namespace",
            "commonLabels",
            "labels",
            "templateLabels",
            "commonAnnotations",
            "nameReference",
            "varReference",
            "images",
            "replicas",
        ])?;
        let specs = |name: &str| fields.each(name, field_spec);
        Ok(Self {
            name_prefix: specs("namePrefix")?,
            name_suffix: specs("nameSuffix")?,
            namespace: specs("namespace")?,
            common_labels: specs("commonLabels")?,
            labels: specs("labels")?,
            template_labels: specs("templateLabels")?,
            common_annotations: specs("commonAnnotations")?,
            name_references: fields.each("nameReference", name_reference)?,
            var_references: specs("varReference")?,
            images: specs("images")?,
            replicas: specs("replicas")?,
        })
    }
}

fn gvk(fields: &Fields<'_>) -> Result<Gvk, Fault> {
    let text = |name: &str| Ok(fields.string(name)?.text);
    Ok(Gvk { group: text("group")?, version: text("version")?, kind: text("kind")? })
}

/// Reads a field specification.
pub(super) fn field_spec(item: &Item<'_>) -> Result<FieldSpec, Fault> {
    let fields = item.fields(&["group", "version", "kind", "path", "create"])?;
    Ok(FieldSpec { gvk: gvk(&fields)?, path: fields.string("path")?.text, create: fields.bool("create")? })
}

fn name_reference(item: &Item<'_>) -> Result<NameReference, Fault> {
    let fields = item.fields(&["group", "version", "kind", "fieldSpecs"])?;
    Ok(NameReference { gvk: gvk(&fields)?, referrers: fields.each("fieldSpecs", field_spec)? })
}

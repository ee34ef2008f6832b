//! Configurations of the generators and transformers that are built into kustomize, as `generators` and `transformers` name them. All
//! others are plugins, which are not run.

use super::CODE;
use super::config::{FieldSpec, field_spec};
use super::generate::Kind as Generated;
use super::kustomization::{self, Generator, Image, Patch, ReplacementField, Replica};
use super::patch::to_node;
use super::reader::{Fields, Item, Lenient, Pairs, Text};
use super::resource::Resource;
use super::select::Selector;
use super::transform::Subjects;
use super::tree::Tree;
use crate::fault::{Fault, code, quoted};
use crate::node::{Node, Value};

/// A transformer with its configuration.
#[derive(Debug)]
pub(super) enum Transformer {
    /// Prefix and suffix of names.
    Names {
        prefix: Text,
        suffix: Text,
        fields: Vec<FieldSpec>,
    },
    Namespace {
        name: Text,
        fields: Vec<FieldSpec>,
        subjects: Subjects,
        unset_only: bool,
    },
    /// Labels or annotations.
    Pairs {
        pairs: Pairs,
        fields: Vec<FieldSpec>,
    },
    Image {
        image: Image,
        fields: Vec<FieldSpec>,
    },
    Replicas {
        replica: Replica,
        fields: Vec<FieldSpec>,
    },
    Patch(Patch),
    /// Files with strategic patches, and patches.
    Strategic {
        files: Vec<Text>,
        patches: Text,
    },
    JsonPatch(Patch),
    Replacements(Vec<ReplacementField>),
    Values(Values),
    Hash,
}

/// A generator with its configuration.
#[derive(Debug)]
pub(super) enum Generating {
    /// A ConfigMap or Secret.
    Content(Generated, Generator),
    /// A ServiceAccount that stands for one of Google's cloud.
    Account(CloudAccount),
}

/// Names of a ServiceAccount, here and in the cloud.
#[derive(Debug)]
pub(super) struct CloudAccount {
    pub(super) at: u32,
    name: Text,
    namespace: Text,
    cloud_name: Text,
    project: Text,
}

impl CloudAccount {
    /// The object as a text. As upstream has it, names go into it as they are.
    pub(super) fn text(&self) -> String {
        let (account, project, name) = (&self.cloud_name.text, &self.project.text, &self.name.text);
        let annotation = format!("iam.gke.io/gcp-service-account: {account}@{project}.iam.gserviceaccount.com");
        let mut text =
            format!("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  annotations:\n    {annotation}\n  name: {name}\n");
        if !self.namespace.is_empty() {
            text.push_str(&format!("  namespace: {}\n", self.namespace.text));
        }
        text
    }
}

/// A value, and the fields that it is added to.
#[derive(Debug)]
pub(super) struct Values {
    /// Without it, the name of the directory of the kustomization.
    pub(super) value: Text,
    pub(super) targets: Vec<ValueTarget>,
    /// File with more targets.
    pub(super) file: Text,
}

/// A field of some objects.
#[derive(Debug)]
pub(super) struct ValueTarget {
    pub(super) at: u32,
    pub(super) select: Option<Selector>,
    pub(super) path: Text,
    /// Position in a path at which the value is inserted, counted from 1; 0 when it is the whole.
    pub(super) position: i64,
}

const POLICY_GENERATOR: &str = "IAMPolicyGenerator";

const GENERATORS: &[&str] = &["ConfigMapGenerator", POLICY_GENERATOR, "SecretGenerator"];

const TRANSFORMERS: &[&str] = &[
    "AnnotationsTransformer",
    "HashTransformer",
    "ImageTagTransformer",
    "LabelTransformer",
    "NamespaceTransformer",
    "PatchJson6902Transformer",
    "PatchStrategicMergeTransformer",
    "PatchTransformer",
    "PrefixSuffixTransformer",
    "PrefixTransformer",
    "ReplacementTransformer",
    "ReplicaCountTransformer",
    "SuffixTransformer",
    "ValueAddTransformer",
];

/// The kind of a configuration, which must be one of `known`; `others` belong to the field `other`.
fn kind<'r>(config: &'r Resource, field: &str, known: &[&str], others: &[&str], other: &str) -> Result<&'r str, Fault> {
    let (kind, version) = (config.kind(), config.tree.get("apiVersion").map_or("", Tree::text));
    let fault = |message: String| Fault::at(CODE, config.tree.at, message).field(field);
    if version != "builtin" {
        let message = format!("{} of {} is not built into kustomize, and plugins are not run", quoted(kind), quoted(version));
        return Err(fault(message).hint("add what the plugin makes to the source"));
    }
    match (known.contains(&kind), others.contains(&kind)) {
        (true, _) => Ok(kind),
        (false, true) => Err(fault(format!("{kind} cannot be listed here")).hint(format!("list it under {other}"))),
        (false, false) => {
            Err(fault(format!("the built-in kind {} is not supported", quoted(kind)))
                .hint(format!("it must be {}", known.join(", "))))
        }
    }
}

/// The fields of a configuration besides those that every object has.
fn own_fields(config: &Resource) -> Node {
    let mut node = to_node(&config.tree);
    if let Value::Map(entries) = &mut node.value {
        entries.retain(|entry| !matches!(entry.key.as_str(), "apiVersion" | "kind" | "metadata"));
    }
    node
}

/// The older name of `envs` counts in a kustomization only, as upstream has it.
fn drop_env(node: &mut Node, lenient: &Lenient) {
    let Value::Map(entries) = &mut node.value else { return };
    entries.retain(|entry| {
        let is_env = entry.key.eq_ignore_ascii_case("env");
        if let (true, Some(at)) = (is_env, entry.key_at) {
            let fault = Fault::at(CODE, at, "it counts in the generators of a kustomization only, and is ignored here");
            lenient.warnings.borrow_mut().push(fault.field("env").hint("write envs: [FILE]"));
        }
        !is_env
    });
}

/// A text of the metadata.
fn metadata(config: &Resource, key: &str) -> Text {
    let value = config.tree.get("metadata").and_then(|metadata| metadata.get(key)).filter(|value| !value.is_null());
    value.map_or_else(Text::default, |value| Text { text: value.text().to_owned(), at: value.at })
}

/// Reports whether upstream makes strings of numbers in configurations of this kind. It does not know the types of embedded structs.
pub(super) fn converts(kind: &str) -> bool {
    !matches!(kind, "ReplacementTransformer") && !GENERATORS.contains(&kind)
}

/// Reads the configuration of a generator.
pub(super) fn generator(config: &Resource, lenient: &Lenient) -> Result<Generating, Fault> {
    let kind = match kind(config, "generators", GENERATORS, TRANSFORMERS, "transformers")? {
        POLICY_GENERATOR => return account(config, lenient).map(Generating::Account),
        "SecretGenerator" => Generated::Secret,
        _ => Generated::ConfigMap,
    };
    let mut node = own_fields(config);
    drop_env(&mut node, lenient);
    let item = Item::lenient_root(&node, config.tree.at, lenient);
    let mut generator = kustomization::generator(&item, kind == Generated::Secret)?;
    for (text, key) in [(&mut generator.name, "name"), (&mut generator.namespace, "namespace")] {
        if text.is_empty() {
            *text = metadata(config, key);
        }
    }
    Ok(Generating::Content(kind, generator))
}

fn account(config: &Resource, lenient: &Lenient) -> Result<CloudAccount, Fault> {
    let node = own_fields(config);
    let item = Item::lenient_root(&node, config.tree.at, lenient);
    let fields = item.fields(&["cloud", "kubernetesService", "serviceAccount"])?;
    let cloud = required(&fields, "cloud")?.string()?;
    if cloud.text != "gke" {
        return Err(fields.fault("cloud", format!("the cloud {} is not known", quoted(&cloud.text))).hint("it must be gke"));
    }
    let two = |field: &str, [first, second]: [&'static str; 2]| {
        let inner = required(&fields, field)?.fields(&[first, second])?;
        Ok::<_, Fault>((inner.string(first)?, inner.string(second)?))
    };
    let (name, namespace) = two("kubernetesService", ["name", "namespace"])?;
    let (cloud_name, project) = two("serviceAccount", ["name", "projectId"])?;
    for (text, field) in
        [(&name, "kubernetesService.name"), (&cloud_name, "serviceAccount.name"), (&project, "serviceAccount.projectId")]
    {
        if text.is_empty() {
            return Err(Fault::at(code::MISSING_FIELD, config.tree.at, "is required").field(field));
        }
    }
    Ok(CloudAccount { at: config.tree.at, name, namespace, cloud_name, project })
}

/// Reads the configuration of a transformer.
pub(super) fn transformer(config: &Resource, lenient: &Lenient) -> Result<Transformer, Fault> {
    let kind = kind(config, "transformers", TRANSFORMERS, GENERATORS, "generators")?;
    let node = own_fields(config);
    let item = Item::lenient_root(&node, config.tree.at, lenient);
    Ok(match kind {
        "PrefixTransformer" => names(&item, &["prefix", "fieldSpecs"])?,
        "SuffixTransformer" => names(&item, &["suffix", "fieldSpecs"])?,
        "PrefixSuffixTransformer" => names(&item, &["prefix", "suffix", "fieldSpecs"])?,
        "NamespaceTransformer" => namespace(&item, metadata(config, "namespace"))?,
        "LabelTransformer" => pairs(&item, "labels", &["labels", "fieldSpecs"])?,
        "AnnotationsTransformer" => pairs(&item, "annotations", &["annotations", "fieldSpecs"])?,
        "ImageTagTransformer" => {
            let fields = item.fields(&["imageTag", "fieldSpecs"])?;
            Transformer::Image { image: kustomization::image(&required(&fields, "imageTag")?)?, fields: specs(&fields)? }
        }
        "ReplicaCountTransformer" => {
            let fields = item.fields(&["replica", "fieldSpecs"])?;
            Transformer::Replicas { replica: kustomization::replica(&required(&fields, "replica")?)?, fields: specs(&fields)? }
        }
        "PatchTransformer" => Transformer::Patch(kustomization::patch(&item)?),
        "PatchStrategicMergeTransformer" => {
            let fields = item.fields(&["paths", "patches"])?;
            Transformer::Strategic { files: fields.strings("paths")?, patches: fields.string("patches")? }
        }
        "PatchJson6902Transformer" => json_patch(&item)?,
        "ReplacementTransformer" => {
            let fields = item.fields(&["replacements"])?;
            Transformer::Replacements(fields.each("replacements", kustomization::replacement_field)?)
        }
        "ValueAddTransformer" => {
            let fields = item.fields(&["value", "targets", "targetFilePath"])?;
            let value = fields.string("value")?;
            let value = Text { text: value.text.trim().to_owned(), ..value };
            Transformer::Values(Values { value, targets: value_targets(&fields)?, file: fields.string("targetFilePath")? })
        }
        // Upstream reads nothing of its configuration.
        _ => Transformer::Hash,
    })
}

fn specs(fields: &Fields<'_>) -> Result<Vec<FieldSpec>, Fault> {
    fields.each("fieldSpecs", field_spec)
}

fn required<'n>(fields: &Fields<'n>, name: &str) -> Result<Item<'n>, Fault> {
    fields.get(name).ok_or_else(|| Fault::at(code::MISSING_FIELD, fields.at, "is required").field(name))
}

fn names(item: &Item<'_>, known: &[&'static str]) -> Result<Transformer, Fault> {
    let fields = item.fields(known)?;
    required(&fields, "fieldSpecs").map_err(|fault| fault.hint("write fieldSpecs: [{path: metadata/name}]"))?;
    Ok(Transformer::Names { prefix: fields.string("prefix")?, suffix: fields.string("suffix")?, fields: specs(&fields)? })
}

fn namespace(item: &Item<'_>, name: Text) -> Result<Transformer, Fault> {
    let known = ["fieldSpecs", "unsetOnly", "setRoleBindingSubjects"];
    let fields = item.fields(&known)?;
    let subjects = match fields.string("setRoleBindingSubjects")?.text.as_str() {
        "" | "defaultOnly" => Subjects::Default,
        "allServiceAccounts" => Subjects::ServiceAccounts,
        "none" => Subjects::None,
        word => {
            let message = format!("unknown word {}", quoted(word));
            return Err(fields.fault("setRoleBindingSubjects", message).hint("it must be defaultOnly, allServiceAccounts or none"));
        }
    };
    Ok(Transformer::Namespace { name, fields: specs(&fields)?, subjects, unset_only: fields.bool("unsetOnly")? })
}

fn pairs(item: &Item<'_>, name: &str, known: &[&'static str]) -> Result<Transformer, Fault> {
    let fields = item.fields(known)?;
    Ok(Transformer::Pairs { pairs: fields.pairs(name)?, fields: specs(&fields)? })
}

fn json_patch(item: &Item<'_>) -> Result<Transformer, Fault> {
    let fields = item.fields(&["target", "path", "jsonOp"])?;
    Ok(Transformer::JsonPatch(Patch {
        at: item.at,
        path: fields.string("path")?,
        patch: fields.string("jsonOp")?,
        target: fields.get("target").map(|item| kustomization::selector(&item)).transpose()?,
        allow_name_change: false,
        allow_kind_change: false,
    }))
}

fn value_targets(fields: &Fields<'_>) -> Result<Vec<ValueTarget>, Fault> {
    fields.each("targets", |item| {
        let fields = item.fields(&["selector", "fieldPath", "filePathPosition"])?;
        let path = required(&fields, "fieldPath")?.string()?;
        let position = fields.get("filePathPosition").map_or(Ok(0), |item| item.integer())?;
        if path.is_empty() {
            return Err(fields.fault("fieldPath", "the path is empty"));
        }
        if position < 0 {
            return Err(fields.fault("filePathPosition", "it cannot be negative"));
        }
        let select = fields.get("selector").map(|item| kustomization::selector(&item)).transpose()?;
        Ok(ValueTarget { at: item.at, select, path, position })
    })
}

/// Reads a file with targets.
pub(super) fn targets_of_file(node: &Node, at: u32, lenient: &Lenient) -> Result<Vec<ValueTarget>, Fault> {
    let item = Item::lenient_root(node, node.at.unwrap_or(at), lenient);
    value_targets(&item.fields(&["targets"])?)
}

//! The kustomization file.

use super::CODE;
use super::config::{FieldSpec, field_spec};
use super::id::Gvk;
use super::reader::{Fields, Item, Pairs, Text};
use super::schema::OpenApi;
use super::select::Selector;
use super::sort::SortOptions;
use super::variable::{self, Var};
use crate::fault::{Fault, quoted};
use crate::node::{Node, Value};

/// Names of the file; a directory has one of them.
pub(super) const FILE_NAMES: &[&str] = &["kustomization.yaml", "kustomization.yml", "Kustomization"];

const VERSION: &str = "kustomize.config.k8s.io/v1beta1";
const COMPONENT_VERSION: &str = "kustomize.config.k8s.io/v1alpha1";

/// Kind of a kustomization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Kustomization,
    Component,
}

/// A kustomization as written.
///
/// One type because it mirrors a kustomization file.
#[derive(Debug)]
pub(super) struct Kustomization {
    pub(super) kind: Kind,
    pub(super) name_prefix: Text,
    pub(super) name_suffix: Text,
    pub(super) namespace: Text,
    pub(super) common_labels: Pairs,
    pub(super) labels: Vec<Label>,
    pub(super) common_annotations: Pairs,
    pub(super) strategic_patches: Vec<Text>,
    pub(super) json_patches: Vec<Patch>,
    pub(super) patches: Vec<Patch>,
    pub(super) images: Vec<Image>,
    pub(super) replacements: Vec<ReplacementField>,
    pub(super) replicas: Vec<Replica>,
    pub(super) vars: Vec<Var>,
    pub(super) sort: Option<SortOptions>,
    pub(super) resources: Vec<Text>,
    pub(super) components: Vec<Text>,
    pub(super) config_maps: Vec<Generator>,
    pub(super) secrets: Vec<Generator>,
    pub(super) generator_options: Option<GeneratorOptions>,
    pub(super) configurations: Vec<Text>,
    pub(super) crds: Vec<Text>,
    pub(super) openapi: Option<OpenApi>,
    pub(super) build_metadata: Vec<Text>,
    pub(super) generators: Vec<Text>,
    pub(super) transformers: Vec<Text>,
    /// Fields that upstream calls deprecated: name, place and replacement.
    pub(super) deprecated: Vec<(&'static str, u32, &'static str)>,
}

/// An entry of `labels`.
#[derive(Debug)]
pub(super) struct Label {
    pub(super) pairs: Pairs,
    pub(super) include_selectors: bool,
    pub(super) include_templates: bool,
    pub(super) fields: Vec<FieldSpec>,
}

/// An entry of `patches` or `patchesJson6902`.
#[derive(Debug)]
pub(super) struct Patch {
    pub(super) at: u32,
    pub(super) path: Text,
    pub(super) patch: Text,
    pub(super) target: Option<Selector>,
    pub(super) allow_name_change: bool,
    pub(super) allow_kind_change: bool,
}

/// An entry of `images`.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) at: u32,
    pub(super) name: Text,
    pub(super) new_name: Text,
    pub(super) tag_suffix: Text,
    pub(super) new_tag: Text,
    pub(super) digest: Text,
}

/// An entry of `replicas`.
#[derive(Debug)]
pub(super) struct Replica {
    pub(super) at: u32,
    pub(super) name: String,
    pub(super) count: i64,
}

/// An entry of `configMapGenerator` or `secretGenerator`.
#[derive(Debug)]
pub(super) struct Generator {
    pub(super) at: u32,
    pub(super) name: Text,
    pub(super) namespace: Text,
    pub(super) behavior: Text,
    pub(super) literals: Vec<Text>,
    pub(super) files: Vec<Text>,
    pub(super) envs: Vec<Text>,
    pub(super) options: Option<GeneratorOptions>,
    /// Of a Secret.
    pub(super) secret_type: Text,
}

/// `generatorOptions`, and `options` of a generator.
#[derive(Clone, Debug, Default)]
pub(super) struct GeneratorOptions {
    pub(super) labels: Pairs,
    pub(super) annotations: Pairs,
    pub(super) disable_name_suffix_hash: bool,
    pub(super) immutable: bool,
}

/// An entry of `replacements`.
#[derive(Debug)]
pub(super) enum ReplacementField {
    Path(Text),
    Inline(Replacement),
}

/// A replacement.
#[derive(Debug)]
pub(super) struct Replacement {
    pub(super) at: u32,
    pub(super) source: Source,
    pub(super) targets: Vec<Target>,
}

/// The value that a replacement copies.
#[derive(Debug)]
pub(super) enum Source {
    Value(Text),
    Field(SourceField),
}

/// A field of one object.
#[derive(Debug)]
pub(super) struct SourceField {
    pub(super) at: u32,
    pub(super) gvk: Gvk,
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) field_path: Text,
    pub(super) options: FieldOptions,
}

/// Fields that a replacement writes.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) select: Selector,
    pub(super) reject: Vec<Selector>,
    pub(super) field_paths: Vec<Text>,
    pub(super) options: FieldOptions,
}

/// `options` of a source or a target.
#[derive(Clone, Debug, Default)]
pub(super) struct FieldOptions {
    pub(super) delimiter: String,
    pub(super) index: i64,
    pub(super) create: bool,
}

const KNOWN: &[&str] = &[
    "kind",
    "apiVersion",
    "metadata",
    "openapi",
    "namePrefix",
    "nameSuffix",
    "namespace",
    "commonLabels",
    "labels",
    "commonAnnotations",
    "patchesStrategicMerge",
    "patchesJson6902",
    "patches",
    "images",
    "imageTags",
    "replacements",
    "replicas",
    "vars",
    "sortOptions",
    "resources",
    "components",
    "crds",
    "bases",
    "configMapGenerator",
    "secretGenerator",
    "helmGlobals",
    "helmCharts",
    "helmChartInflationGenerator",
    "generatorOptions",
    "configurations",
    "generators",
    "transformers",
    "validators",
    "buildMetadata",
];

/// Fields of upstream that are refused, with the reason and the remedy.
const REFUSED: &[(&str, &str, &str)] = &[
    ("helmCharts", "charts of Helm are not rendered", "render the chart with `helm template` and add its output to the source"),
    ("helmGlobals", "charts of Helm are not rendered", "render the chart with `helm template` and add its output to the source"),
    (
        "helmChartInflationGenerator",
        "charts of Helm are not rendered",
        "render the chart with `helm template` and add its output to the source",
    ),
    ("validators", "plugins are not run", "remove it; podstead validates what it builds"),
];

const DEPRECATED: &[(&str, &str)] = &[
    ("bases", "resources"),
    ("vars", "replacements"),
    ("imageTags", "images"),
    ("patchesStrategicMerge", "patches"),
    ("patchesJson6902", "patches"),
    ("commonLabels", "labels"),
];

/// Reads a kustomization that begins at `at`.
pub(super) fn read(node: &Node, at: u32) -> Result<Kustomization, Fault> {
    let empty = || Fault::at(CODE, at, "the kustomization is empty").hint("list the files that belong to it under resources");
    if node.value == Value::Null {
        return Err(empty());
    }
    let root = Item::root(node, at);
    let fields = root.fields(KNOWN)?;
    if fields.is_unset_but_for(&["kind", "apiVersion"]) {
        return Err(empty());
    }
    let kind = kind(&fields)?;
    for (name, reason, remedy) in REFUSED {
        if fields.get(name).is_some_and(|item| !is_empty(&item.node.value)) {
            return Err(fields.fault(name, *reason).hint(*remedy));
        }
    }
    let deprecated = DEPRECATED.iter().filter_map(|(name, instead)| Some((*name, fields.get(name)?.at, *instead))).collect();
    let sources = |text: &str, more: &str| Ok([fields.strings(text)?, fields.strings(more)?].concat());
    let mut images = fields.each("images", image)?;
    images.extend(fields.each("imageTags", image)?);
    Ok(Kustomization {
        kind,
        name_prefix: fields.string("namePrefix")?,
        name_suffix: fields.string("nameSuffix")?,
        namespace: fields.string("namespace")?,
        common_labels: fields.pairs("commonLabels")?,
        labels: fields.each("labels", label)?,
        common_annotations: fields.pairs("commonAnnotations")?,
        strategic_patches: fields.strings("patchesStrategicMerge")?,
        json_patches: fields.each("patchesJson6902", patch)?,
        patches: fields.each("patches", patch)?,
        images,
        replacements: fields.each("replacements", replacement_field)?,
        replicas: fields.each("replicas", replica)?,
        vars: fields.each("vars", variable::var)?,
        sort: fields.get("sortOptions").map(|item| sort_options(&item)).transpose()?,
        resources: sources("resources", "bases")?,
        components: fields.strings("components")?,
        config_maps: fields.each("configMapGenerator", |item| generator(item, false))?,
        secrets: fields.each("secretGenerator", |item| generator(item, true))?,
        generator_options: fields.get("generatorOptions").map(|item| generator_options(&item)).transpose()?,
        configurations: fields.strings("configurations")?,
        crds: fields.strings("crds")?,
        openapi: fields.get("openapi").map(|item| openapi(&item)).transpose()?,
        build_metadata: fields.strings("buildMetadata")?,
        generators: fields.strings("generators")?,
        transformers: fields.strings("transformers")?,
        deprecated,
    })
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::List(items) => items.is_empty(),
        Value::Map(entries) => entries.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Unsupported(_) => false,
    }
}

fn kind(fields: &Fields<'_>) -> Result<Kind, Fault> {
    if let Some(metadata) = fields.get("metadata") {
        let metadata = metadata.fields(&["name", "namespace", "labels", "annotations"])?;
        metadata.string("name")?;
        metadata.string("namespace")?;
        metadata.pairs("labels")?;
        metadata.pairs("annotations")?;
    }
    let (kind, version) = (fields.string("kind")?, fields.string("apiVersion")?);
    let (kind, wanted) = match kind.text.as_str() {
        "" | "Kustomization" => (Kind::Kustomization, VERSION),
        "Component" => (Kind::Component, COMPONENT_VERSION),
        _ => return Err(fields.fault("kind", "the kind must be Kustomization or Component")),
    };
    if !version.is_empty() && version.text != wanted {
        return Err(fields
            .fault("apiVersion", format!("unknown version {}", quoted(&version.text)))
            .hint(format!("write {wanted}")));
    }
    Ok(kind)
}

fn label(item: &Item<'_>) -> Result<Label, Fault> {
    let fields = item.fields(&["pairs", "includeSelectors", "includeTemplates", "fields"])?;
    Ok(Label {
        pairs: fields.pairs("pairs")?,
        include_selectors: fields.bool("includeSelectors")?,
        include_templates: fields.bool("includeTemplates")?,
        fields: fields.each("fields", field_spec)?,
    })
}

/// Reads an entry of `patches`.
pub(super) fn patch(item: &Item<'_>) -> Result<Patch, Fault> {
    let fields = item.fields(&["path", "patch", "target", "options"])?;
    let options = fields.get("options").map(|item| item.fields(&["allowNameChange", "allowKindChange"])).transpose()?;
    let option = |name: &str| options.as_ref().map_or(Ok(false), |options| options.bool(name));
    Ok(Patch {
        at: item.at,
        path: fields.string("path")?,
        patch: fields.string("patch")?,
        target: fields.get("target").map(|item| selector(&item)).transpose()?,
        allow_name_change: option("allowNameChange")?,
        allow_kind_change: option("allowKindChange")?,
    })
}

/// Reads what selects objects.
pub(super) fn selector(item: &Item<'_>) -> Result<Selector, Fault> {
    let fields = item.fields(&["group", "version", "kind", "name", "namespace", "annotationSelector", "labelSelector"])?;
    let text = |name: &str| fields.string(name);
    Selector::new(
        item.at,
        [text("group")?, text("version")?, text("kind")?, text("name")?, text("namespace")?],
        &text("labelSelector")?,
        &text("annotationSelector")?,
    )
}

fn openapi(item: &Item<'_>) -> Result<OpenApi, Fault> {
    let pairs = item.pairs()?;
    let text = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, text)| text.clone());
    if let Some((key, value)) = pairs.iter().find(|(key, _)| key != "path" && key != "version") {
        return Err(Fault::at(CODE, value.at, "unknown field").field(format!("openapi.{key}")).hint("it must be path or version"));
    }
    Ok(OpenApi { path: text("path"), version: text("version").filter(|version| !version.is_empty()) })
}

/// Reads an entry of `images`.
pub(super) fn image(item: &Item<'_>) -> Result<Image, Fault> {
    let fields = item.fields(&["name", "newName", "tagSuffix", "newTag", "digest"])?;
    Ok(Image {
        at: item.at,
        name: fields.string("name")?,
        new_name: fields.string("newName")?,
        tag_suffix: fields.string("tagSuffix")?,
        new_tag: fields.string("newTag")?,
        digest: fields.string("digest")?,
    })
}

/// Reads an entry of `replicas`.
pub(super) fn replica(item: &Item<'_>) -> Result<Replica, Fault> {
    let fields = item.fields(&["name", "count"])?;
    let count = fields.get("count").map_or(Ok(0), |item| item.integer())?;
    Ok(Replica { at: item.at, name: fields.string("name")?.text, count })
}

/// Reads an entry of `configMapGenerator` or `secretGenerator`.
pub(super) fn generator(item: &Item<'_>, is_secret: bool) -> Result<Generator, Fault> {
    let known = ["namespace", "name", "behavior", "literals", "files", "envs", "env", "options", "type"];
    let fields = item.fields(if is_secret { &known } else { &known[..known.len() - 1] })?;
    let mut envs = fields.strings("envs")?;
    let env = fields.string("env")?;
    if !env.is_empty() {
        envs.push(env);
    }
    let behavior = fields.string("behavior")?;
    Ok(Generator {
        at: item.at,
        name: fields.string("name")?,
        namespace: fields.string("namespace")?,
        behavior,
        literals: fields.strings("literals")?,
        files: fields.strings("files")?,
        envs,
        options: fields.get("options").map(|item| generator_options(&item)).transpose()?,
        secret_type: if is_secret { fields.string("type")? } else { Text::default() },
    })
}

fn generator_options(item: &Item<'_>) -> Result<GeneratorOptions, Fault> {
    let fields = item.fields(&["labels", "annotations", "disableNameSuffixHash", "immutable"])?;
    Ok(GeneratorOptions {
        labels: fields.pairs("labels")?,
        annotations: fields.pairs("annotations")?,
        disable_name_suffix_hash: fields.bool("disableNameSuffixHash")?,
        immutable: fields.bool("immutable")?,
    })
}

fn sort_options(item: &Item<'_>) -> Result<SortOptions, Fault> {
    let fields = item.fields(&["order", "legacySortOptions"])?;
    let legacy = fields.get("legacySortOptions").map(|item| item.fields(&["orderFirst", "orderLast"])).transpose()?;
    let texts = |texts: Vec<Text>| texts.into_iter().map(|text| text.text).collect();
    let legacy =
        legacy.map(|legacy| Ok((texts(legacy.strings("orderFirst")?), texts(legacy.strings("orderLast")?)))).transpose()?;
    match (fields.string("order")?.text.as_str(), legacy) {
        ("fifo", None) => Ok(SortOptions::Fifo),
        ("fifo", Some(_)) => {
            Err(fields.fault("legacySortOptions", "it has no meaning with the order fifo").hint("write order: legacy"))
        }
        ("legacy", orders) => Ok(SortOptions::Legacy(orders)),
        _ => Err(fields.fault("order", "the order must be fifo or legacy")),
    }
}

const REPLACEMENT: &[&str] = &["source", "targets", "sourceValue", "path"];

/// Reads an entry of `replacements`.
pub(super) fn replacement_field(item: &Item<'_>) -> Result<ReplacementField, Fault> {
    let fields = item.fields(REPLACEMENT)?;
    let path = fields.string("path")?;
    if path.is_empty() {
        return replacement(item).map(ReplacementField::Inline);
    }
    if fields.get("source").is_some() || !fields.list("targets")?.is_empty() {
        return Err(fields.fault("path", "a replacement has a path, or a source and targets, not both"));
    }
    Ok(ReplacementField::Path(path))
}

/// Reads a replacement.
pub(super) fn replacement(item: &Item<'_>) -> Result<Replacement, Fault> {
    let fields = item.fields(&REPLACEMENT[..3])?;
    let source = match (fields.get("source"), fields.get("sourceValue")) {
        (Some(source), None) => Source::Field(source_field(&source)?),
        (None, Some(value)) => Source::Value(value.string()?),
        (Some(_), Some(_)) => return Err(fields.fault("sourceValue", "a replacement has a source or a sourceValue, not both")),
        (None, None) => return Err(item.fault("a replacement must have a source and at least one target")),
    };
    if fields.get("targets").is_none() {
        return Err(item.fault("a replacement must have a source and at least one target"));
    }
    Ok(Replacement { at: item.at, source, targets: fields.each("targets", target)? })
}

fn source_field(item: &Item<'_>) -> Result<SourceField, Fault> {
    let fields = item.fields(&["group", "version", "kind", "name", "namespace", "fieldPath", "options"])?;
    let text = |name: &str| Ok(fields.string(name)?.text);
    Ok(SourceField {
        at: item.at,
        gvk: Gvk { group: text("group")?, version: text("version")?, kind: text("kind")? },
        name: text("name")?,
        namespace: text("namespace")?,
        field_path: fields.string("fieldPath")?,
        options: field_options(&fields)?,
    })
}

fn target(item: &Item<'_>) -> Result<Target, Fault> {
    let fields = item.fields(&["select", "reject", "fieldPaths", "options"])?;
    let Some(select) = fields.get("select") else {
        return Err(item.fault("a target must select objects").hint("add select, e.g. select: {kind: Pod}"));
    };
    Ok(Target {
        select: selector(&select)?,
        reject: fields.each("reject", selector)?,
        field_paths: fields.strings("fieldPaths")?,
        options: field_options(&fields)?,
    })
}

fn field_options(fields: &Fields<'_>) -> Result<FieldOptions, Fault> {
    let Some(item) = fields.get("options") else { return Ok(FieldOptions::default()) };
    let fields = item.fields(&["delimiter", "index", "encoding", "create"])?;
    fields.string("encoding")?;
    Ok(FieldOptions {
        delimiter: fields.string("delimiter")?.text,
        index: fields.get("index").map_or(Ok(0), |item| item.integer())?,
        create: fields.bool("create")?,
    })
}

//! The build of a directory: its resources, then its generators, its components, and its transformers, in upstream's order.

use super::config::Config;
use super::generate::{self, Kind as Generated};
use super::kustomization::{
    self, FILE_NAMES, Generator, GeneratorOptions, Kind, Kustomization, Patch, Replacement, ReplacementField,
};
use super::origin::{self, BuildMetadata, Maker};
use super::patch::{PatchText, Rules};
use super::paths::{self, PathFault};
use super::reader::{Item, Text};
use super::resource::Resource;
use super::resources::{self, resources_of};
use super::schema::Schemas;
use super::texts::{Place, Texts};
use super::transform::{self, Affix, Namespace, Subjects};
use super::tree::Tree;
use super::variable::{self, Var};
use super::{BuildLimits, CODE, crds, name_reference, replacement, sort};
use crate::fault::{Fault, code, quoted, quoted_path};
use crate::node::Value;

/// Objects and the fields that transformers know, on the way up.
#[derive(Debug)]
pub(super) struct Accumulator {
    pub(super) resources: Vec<Resource>,
    config: Config,
    vars: Vec<Var>,
}

impl Accumulator {
    pub(super) fn empty() -> Self {
        Self { resources: Vec::new(), config: Config::empty(), vars: Vec::new() }
    }
}

/// A kustomization and where it is.
pub(super) struct Target {
    pub(super) kustomization: Kustomization,
    /// Its directory.
    pub(super) directory: String,
    /// Path of its file.
    file: String,
    /// Place of its file.
    at: u32,
    /// Path of the directory, seen from the directory that is built.
    origin: String,
}

/// Builds one directory.
pub(super) struct Builder<'t, 'f> {
    pub(super) texts: &'t mut Texts<'f>,
    pub(super) limits: &'f BuildLimits,
    pub(super) warnings: Vec<Fault>,
    schemas: Schemas,
    pub(super) metadata: BuildMetadata,
    /// Directories from the one that is built down to the current one.
    chain: Vec<String>,
    objects: usize,
    /// Objects that transformers looked at, each of them counted.
    visits: usize,
}

impl<'t, 'f> Builder<'t, 'f> {
    pub(super) fn new(texts: &'t mut Texts<'f>, limits: &'f BuildLimits) -> Self {
        Self {
            texts,
            limits,
            warnings: Vec::new(),
            schemas: Schemas::new(),
            metadata: BuildMetadata::default(),
            chain: Vec::new(),
            objects: 0,
            visits: 0,
        }
    }

    /// The objects of a directory, in order.
    pub(super) fn build(&mut self, directory: &str) -> Result<Vec<Resource>, Fault> {
        let target = self.load(directory, String::new(), None)?;
        self.metadata = metadata_of(&target.kustomization, &mut self.warnings);
        self.set_schema(&target)?;
        let mut built = Accumulator::empty();
        self.chain.push(directory.to_owned());
        self.accumulate(&target, &mut built)?;
        add_hashes(&mut built.resources);
        name_reference::fix(&mut built.resources, &built.config)?;
        self.warnings.extend(variable::resolve(&mut built.resources, &built.vars, &built.config)?);
        resources::drop_local(&mut built.resources)?;
        sort::sort(&mut built.resources, target.kustomization.sort.as_ref());
        origin::finish(&mut built.resources, self.metadata);
        Ok(built.resources)
    }

    /// Reads the kustomization of a directory. `named` is the place that names it.
    fn load(&mut self, directory: &str, origin: String, named: Option<u32>) -> Result<Target, Fault> {
        let at = named.unwrap_or_default();
        let mut found = Vec::new();
        for name in FILE_NAMES {
            let path = paths::join(directory, name).unwrap_or_default();
            if let Some(index) = self.texts.read(&path, at)? {
                found.push(index);
            }
        }
        let fault = |message: String| match named {
            Some(at) => Fault::at(CODE, at, message),
            None => Fault::of_file(CODE, message),
        };
        let shown = self.texts.shown(directory);
        let index = match found[..] {
            [one] => one,
            [] => return Err(fault(format!("the directory {} has no kustomization.yaml", quoted_path(&shown)))),
            [..] => {
                let message = format!("the directory {} has several kustomization files", quoted_path(&shown));
                return Err(fault(message).hint(format!("keep one of {}", FILE_NAMES.join(", "))));
            }
        };
        let text = self.texts.text(index);
        let (file, base) = (text.name.clone(), text.base);
        let node = self.texts.plain(&text.bytes, Place::File(base))?;
        super::reader::repeated(&node, "", &mut self.warnings);
        let kustomization = kustomization::read(&node, node.at.unwrap_or(base))?;
        for (name, at, instead) in &kustomization.deprecated {
            self.warnings.push(Fault::at("deprecated", *at, "is deprecated").field(*name).hint(format!("use {instead}")));
        }
        Ok(Target { kustomization, directory: directory.to_owned(), file, at: base, origin })
    }

    /// Adds a kustomization to what was built so far: nothing, or for a component what it is a part of.
    fn accumulate(&mut self, target: &Target, built: &mut Accumulator) -> Result<(), Fault> {
        let Kustomization { resources, components, configurations, crds, .. } = &target.kustomization;
        for resource in resources {
            self.resource(target, resource, built)?;
        }
        self.configure(target, configurations, &mut built.config)?;
        for path in crds {
            let index = self.file(target, path)?;
            let text = self.texts.text(index);
            let base = text.base;
            let node = self.texts.plain(&text.bytes, Place::File(base))?;
            built.config.merge(&crds::read(&node, base)?, base)?;
        }
        for (generators, kind) in
            [(&target.kustomization.config_maps, Generated::ConfigMap), (&target.kustomization.secrets, Generated::Secret)]
        {
            for generator in generators {
                self.generate(target, generator, kind, built)?;
            }
        }
        let generators = self.generators(target)?;
        self.run_generators(target, &generators, built)?;
        for component in components {
            let (directory, origin) = self.directory(target, component)?;
            self.nested(&directory, origin, component.at, Kind::Component, built)?;
        }
        // As upstream has it, all are read before anything is changed.
        let transformers = self.transformers(target)?;
        self.transform(target, built)?;
        self.run_transformers(target, &transformers, &mut built.resources)?;
        let vars = &target.kustomization.vars;
        for var in vars {
            self.visit(&built.resources, var.place())?;
            var.note(&mut built.resources)?;
        }
        variable::add(&mut built.vars, vars.clone())
    }

    /// Adds the fields that upstream knows, and those of `configurations`, in upstream's steps.
    fn configure(&mut self, target: &Target, configurations: &[Text], config: &mut Config) -> Result<(), Fault> {
        let mut known = Config::default();
        if !configurations.is_empty() {
            let mut more = Config::empty();
            for path in configurations {
                let index = self.file(target, path)?;
                let text = self.texts.text(index);
                let base = text.base;
                let node = self.texts.plain(&text.bytes, Place::File(base))?;
                more.merge(&Config::read(&node, base)?, base)?;
            }
            known.merge(&more, target.at)?;
        }
        config.merge(&known, target.at)
    }

    /// Adds the objects of a file or a directory.
    pub(super) fn resource(&mut self, target: &Target, path: &Text, built: &mut Accumulator) -> Result<(), Fault> {
        let joined = self.path(target, path)?;
        if self.texts.is_directory(&joined) {
            let (directory, origin) = self.directory(target, path)?;
            return self.nested(&directory, origin, path.at, Kind::Kustomization, built);
        }
        let index = self.file(target, path)?;
        let trees = self.texts.trees(index)?;
        for mut resource in resources_of(trees, self.limits)? {
            if self.metadata.is_any() {
                let path = clean(&format!("{}/{}", target.origin, path.text));
                origin::note_file(&mut resource, &path);
            }
            self.add(resource, &mut built.resources)?;
        }
        Ok(())
    }

    /// Adds an object that was read.
    pub(super) fn add(&mut self, resource: Resource, resources: &mut Vec<Resource>) -> Result<(), Fault> {
        self.count(resource.tree.at)?;
        let gvk = |key: &str| resource.tree.get(key).map_or("", Tree::text);
        self.schemas.note_kind(gvk("apiVersion"), gvk("kind"));
        resources::append(resources, resource)
    }

    /// Sets the schema of `openapi`, unless there is one already.
    fn set_schema(&mut self, target: &Target) -> Result<(), Fault> {
        let Some(wanted) = &target.kustomization.openapi else { return Ok(()) };
        // As upstream has it, a file must be there even if it is not used.
        let index = wanted.path.as_ref().map(|path| self.file(target, path)).transpose()?;
        if !self.schemas.is_open() {
            return Ok(());
        }
        wanted.check()?;
        match index {
            Some(index) => {
                let text = self.texts.text(index);
                let root = self.texts.plain(&text.bytes, Place::File(text.base))?;
                self.schemas.set(root, text.base)
            }
            None => {
                if wanted.version.is_some() {
                    self.schemas.fix();
                }
                Ok(())
            }
        }
    }

    /// Notes that patches are merged.
    pub(super) fn note_merge(&mut self) {
        self.schemas.note_merge();
    }

    pub(super) fn rules(&self) -> Rules<'_> {
        Rules { limits: self.limits, schemas: &self.schemas }
    }

    /// Counts an object.
    pub(super) fn count(&mut self, at: u32) -> Result<(), Fault> {
        self.objects += 1;
        if self.objects > self.limits.max_objects {
            let message = format!("the build has more than {} objects", self.limits.max_objects);
            return Err(Fault::at(code::TOO_COMPLEX, at, message));
        }
        Ok(())
    }

    /// Counts a transformer that looks at these objects.
    pub(super) fn visit(&mut self, resources: &[Resource], at: u32) -> Result<(), Fault> {
        self.visit_times(resources, 1, at)
    }

    /// Counts a transformer that looks at these objects several times.
    pub(super) fn visit_times(&mut self, resources: &[Resource], times: usize, at: u32) -> Result<(), Fault> {
        self.visits = self.visits.saturating_add(resources.len().saturating_mul(times));
        if self.visits > self.limits.max_visits {
            let fault = Fault::at(code::TOO_COMPLEX, at, "there are too many changes of too many objects");
            return Err(fault.hint("use fewer patches, images, labels, replicas and replacements, or build fewer objects"));
        }
        Ok(())
    }

    /// Builds another directory, and adds its objects.
    fn nested(&mut self, directory: &str, origin: String, at: u32, kind: Kind, built: &mut Accumulator) -> Result<(), Fault> {
        if self.chain.len() >= self.limits.max_depth {
            let message = format!("more than {} kustomizations are nested", self.limits.max_depth);
            return Err(Fault::at(code::TOO_COMPLEX, at, message));
        }
        let target = self.load(directory, origin, Some(at))?;
        self.set_schema(&target)?;
        match (kind, target.kustomization.kind) {
            (Kind::Component, Kind::Kustomization) => {
                let fault = Fault::at(CODE, at, format!("{} is not a component", quoted_path(&self.texts.shown(directory))));
                return Err(fault.hint("list it under resources, or write kind: Component in it"));
            }
            (Kind::Kustomization, Kind::Component) => {
                return Err(Fault::at(CODE, at, format!("{} is a component", quoted_path(&self.texts.shown(directory))))
                    .hint("list it under components"));
            }
            (Kind::Component, Kind::Component) | (Kind::Kustomization, Kind::Kustomization) => {}
        }
        self.chain.push(directory.to_owned());
        if kind == Kind::Component {
            self.accumulate(&target, built)?;
            self.visit(&built.resources, at)?;
            resources::distinct(&built.resources).map_err(|fault| Fault { at: Some(at), ..fault })?;
            // As upstream has it, all fields are merged once more, where their order counts.
            let fields = std::mem::replace(&mut built.config, Config::empty());
            built.config.merge(&fields, at)?;
        } else {
            let mut nested = Accumulator::empty();
            self.accumulate(&target, &mut nested)?;
            for resource in nested.resources {
                resources::append(&mut built.resources, resource).map_err(|fault| Fault { at: Some(at), ..fault })?;
            }
            built.config.merge(&nested.config, at)?;
            variable::add(&mut built.vars, nested.vars)?;
        }
        self.chain.pop();
        Ok(())
    }

    /// A path of a kustomization as a path of the source.
    fn path(&self, target: &Target, path: &Text) -> Result<String, Fault> {
        if path.is_empty() {
            return Err(Fault::at(CODE, path.at, "the path is empty"));
        }
        if paths::is_remote(&path.text) {
            let fault = Fault::at(CODE, path.at, format!("{} is on the network", quoted(&path.text)));
            return Err(fault
                .hint("podstead builds only from the files of its source: vendor it, or make the repository a source of its own"));
        }
        paths::join(&target.directory, &path.text).map_err(|fault| match fault {
            PathFault::Absolute => Fault::at(CODE, path.at, format!("{} is absolute", quoted(&path.text)))
                .hint("write paths from the directory of the kustomization"),
            PathFault::LeavesTheSource => Fault::at(CODE, path.at, format!("{} is outside of the source", quoted(&path.text)))
                .hint("set the source's path to a directory that contains it"),
        })
    }

    /// A file of a kustomization, which must be in its directory or below, as upstream has it.
    pub(super) fn file(&mut self, target: &Target, path: &Text) -> Result<usize, Fault> {
        let joined = self.path(target, path)?;
        if !paths::is_in(&joined, &target.directory) {
            let message = format!("{} is not in the directory of the kustomization or below", quoted(&path.text));
            return Err(
                Fault::at(CODE, path.at, message).hint("move the file, or give its directory a kustomization and list that")
            );
        }
        let shown = self.texts.shown(&joined);
        let missing = || Fault::at(CODE, path.at, format!("there is no file {}", quoted_path(&shown)));
        self.texts.read(&joined, path.at)?.ok_or_else(missing)
    }

    /// A directory that a kustomization names, and its path for origins.
    fn directory(&self, target: &Target, path: &Text) -> Result<(String, String), Fault> {
        let joined = self.path(target, path)?;
        if !self.texts.is_directory(&joined) {
            return Err(Fault::at(CODE, path.at, format!("there is no directory {}", quoted_path(&self.texts.shown(&joined)))));
        }
        if let Some(visited) = self.chain.iter().position(|visited| paths::is_in(visited, &joined)) {
            let shown = |path: &String| self.texts.shown(path);
            let chain: Vec<String> = self.chain[visited..].iter().chain([&joined]).map(shown).collect();
            let message = format!("the kustomizations form a cycle: {}", chain.join(" -> "));
            return Err(Fault::at(CODE, path.at, message).hint("a kustomization cannot include one that it is in"));
        }
        // Above the directory that is built, the path begins with `..`.
        let origin = clean(&format!("{}/{}", target.origin, path.text));
        Ok((joined, origin))
    }

    fn generate(&mut self, target: &Target, generator: &Generator, kind: Generated, built: &mut Accumulator) -> Result<(), Fault> {
        let global = target.kustomization.generator_options.as_ref();
        let file = origin_of_file(target);
        let word = match kind {
            Generated::ConfigMap => "ConfigMapGenerator",
            Generated::Secret => "SecretGenerator",
        };
        let maker = self.metadata.is_any().then(|| Maker::field(&file, word));
        self.generate_one(target, generator, kind, global, maker, built)
    }

    /// Adds what a generator makes; `maker` is noted.
    pub(super) fn generate_one(
        &mut self,
        target: &Target,
        generator: &Generator,
        kind: Generated,
        global: Option<&GeneratorOptions>,
        maker: Option<Maker<'_>>,
        built: &mut Accumulator,
    ) -> Result<(), Fault> {
        let mut read = |path: &Text| {
            let index = self.file(target, path)?;
            let text = self.texts.text(index);
            Ok((text.bytes.clone(), text.base))
        };
        let mut resource = generate::generate(generator, kind, global, &mut read)?;
        self.warnings.extend(generate::unknown_behavior(&generator.behavior));
        if let Some(maker) = maker {
            origin::note_generator(&mut resource, &maker);
        }
        self.count(generator.at)?;
        resources::absorb(&mut built.resources, resource)
    }

    /// The text of a patch; of one that is written inline without the space at its end.
    pub(super) fn patch_text(&mut self, target: &Target, patch: &Patch, cut_end: bool) -> Result<PatchText, Fault> {
        let inline = patch.patch.text.trim();
        match (inline.is_empty(), patch.path.is_empty()) {
            (true, true) => Err(Fault::at(CODE, patch.at, "a patch has a path or a patch")),
            (false, false) => Err(Fault::at(CODE, patch.at, "a patch has a path or a patch, not both")),
            (true, false) => {
                let index = self.file(target, &patch.path)?;
                let text = self.texts.text(index);
                Ok(PatchText { bytes: text.bytes.clone(), place: Place::File(text.base), at: patch.at })
            }
            (false, true) => {
                let text = &patch.patch;
                let place = self.texts.place_of_string(text.at, text.text.len());
                // As upstream has it, the end is cut, also that of a block scalar at the end.
                let bytes = if cut_end { text.text.trim_end() } else { &text.text };
                Ok(PatchText { bytes: bytes.as_bytes().to_vec(), place, at: patch.at })
            }
        }
    }

    fn transform(&mut self, target: &Target, built: &mut Accumulator) -> Result<(), Fault> {
        let file = origin_of_file(target);
        let is_noted = self.metadata.is_any();
        let done = |resources: &mut Vec<Resource>, kind: &'static str| {
            if is_noted {
                origin::note_transformer(resources, &Maker::field(&file, kind));
            }
            resources.retain(|resource| !resource.tree.is_empty());
        };
        let kustomization = &target.kustomization;
        let Accumulator { resources, config, .. } = built;
        if let Some(first) = kustomization.strategic_patches.first() {
            self.strategic_patches(target, &kustomization.strategic_patches, &Text::default(), first.at, resources)?;
            done(resources, "PatchStrategicMergeTransformer");
        }
        for patch in &kustomization.patches {
            self.patch(target, patch, resources)?;
            done(resources, "PatchTransformer");
        }
        if !kustomization.namespace.is_empty() {
            let (name, fields) = (&kustomization.namespace, &config.namespace[..]);
            transform::namespace(resources, Namespace { name, fields, subjects: Subjects::Default, unset_only: false })?;
            done(resources, "NamespaceTransformer");
        }
        if !kustomization.name_prefix.is_empty() {
            transform::affix(resources, &kustomization.name_prefix, Affix::Prefix, &config.name_prefix)?;
            done(resources, "PrefixTransformer");
        }
        if !kustomization.name_suffix.is_empty() {
            transform::affix(resources, &kustomization.name_suffix, Affix::Suffix, &config.name_suffix)?;
            done(resources, "SuffixTransformer");
        }
        self.labels(target, resources, config, &done)?;
        for patch in &kustomization.json_patches {
            self.json_patch(target, patch, "patchesJson6902", resources)?;
            done(resources, "PatchJson6902Transformer");
        }
        for replica in &kustomization.replicas {
            self.visit(resources, replica.at)?;
            transform::replicas(resources, replica, &config.replicas)?;
            done(resources, "ReplicaCountTransformer");
        }
        for image in &kustomization.images {
            self.visit(resources, image.at)?;
            transform::images(resources, image, &config.images)?;
            done(resources, "ImageTagTransformer");
        }
        if !kustomization.replacements.is_empty() {
            for field in &kustomization.replacements {
                self.replace(target, field, resources)?;
            }
            done(resources, "ReplacementTransformer");
        }
        Ok(())
    }

    fn labels(
        &mut self,
        target: &Target,
        resources: &mut Vec<Resource>,
        config: &Config,
        done: &impl Fn(&mut Vec<Resource>, &'static str),
    ) -> Result<(), Fault> {
        let kustomization = &target.kustomization;
        for label in &kustomization.labels {
            self.visit(resources, target.at)?;
            let fields = transform::label_fields(label, config, target.at)?;
            transform::pairs(resources, &label.pairs, &fields)?;
            done(resources, "LabelTransformer");
        }
        if !kustomization.labels.is_empty() || !kustomization.common_labels.is_empty() {
            transform::pairs(resources, &kustomization.common_labels, &config.common_labels)?;
            done(resources, "LabelTransformer");
        }
        if !kustomization.common_annotations.is_empty() {
            transform::pairs(resources, &kustomization.common_annotations, &config.common_annotations)?;
            done(resources, "AnnotationsTransformer");
        }
        Ok(())
    }

    /// Makes the replacements of an entry.
    pub(super) fn replace(&mut self, target: &Target, field: &ReplacementField, resources: &mut [Resource]) -> Result<(), Fault> {
        let max_nodes = self.limits.manifest.max_nodes as usize;
        let path = match field {
            ReplacementField::Inline(replacement) => return self.replace_one(replacement, resources, max_nodes),
            ReplacementField::Path(path) => path,
        };
        let index = self.file(target, path)?;
        let text = self.texts.text(index);
        let base = text.base;
        let node = self.texts.plain(&text.bytes, Place::File(base))?;
        let item = Item::root(&node, node.at.unwrap_or(base));
        let items = match &node.value {
            Value::List(_) => item.list()?,
            Value::Map(_) => vec![item],
            Value::Null => Vec::new(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Unsupported(_) => {
                return Err(item.fault("expected a replacement or a list of them"));
            }
        };
        for item in &items {
            self.replace_one(&kustomization::replacement(item)?, resources, max_nodes)?;
        }
        Ok(())
    }

    fn replace_one(&mut self, replacement: &Replacement, resources: &mut [Resource], max_nodes: usize) -> Result<(), Fault> {
        for _ in 0..=replacement.targets.len() {
            self.visit(resources, replacement.at)?;
        }
        replacement::apply(resources, replacement, max_nodes)
    }
}

/// Adds the hash of its content to the name of each object that wants it.
pub(super) fn add_hashes(resources: &mut [Resource]) {
    for resource in resources {
        if resource.is_enabled(super::resource::NEEDS_HASH) {
            let name = format!("{}-{}", resource.name(), generate::hash(resource));
            resource.store_id();
            resource.set_name(&name);
        }
    }
}

/// Words that are noted; upstream ignores others.
fn metadata_of(kustomization: &Kustomization, warnings: &mut Vec<Fault>) -> BuildMetadata {
    let mut metadata = BuildMetadata::default();
    for word in &kustomization.build_metadata {
        match word.text.as_str() {
            "originAnnotations" => metadata.origins = true,
            "transformerAnnotations" => metadata.transformations = true,
            "managedByLabel" => metadata.managed_by = true,
            _ => {
                let fault = Fault::at(CODE, word.at, format!("unknown option {}", quoted(&word.text))).field("buildMetadata");
                warnings.push(fault.hint("it must be originAnnotations, transformerAnnotations or managedByLabel"));
            }
        }
    }
    metadata
}

/// Path of the kustomization file for origins.
pub(super) fn origin_of_file(target: &Target) -> String {
    clean(&format!("{}/{}", target.origin, paths::file_name(&target.file)))
}

/// A path without `.` and, but for its beginning, `..`.
pub(super) fn clean(path: &str) -> String {
    let mut steps: Vec<&str> = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." if steps.last().is_some_and(|last| *last != "..") => {
                steps.pop();
            }
            step => steps.push(step),
        }
    }
    steps.join("/")
}

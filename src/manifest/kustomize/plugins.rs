//! `generators` and `transformers` of a kustomization: their configurations are read from files, directories or the kustomization itself,
//! and those that are built into kustomize are run.

use super::build::{Accumulator, Builder, Target, origin_of_file};
use super::builtin::{self, CloudAccount, Generating, Transformer, ValueTarget, Values};
use super::config::FieldSpec;
use super::kustomization::Patch;
use super::origin::{self, Maker};
use super::reader::{Lenient, Text};
use super::resource::{PREVIOUS_NAMES, Resource};
use super::resources::resources_of;
use super::texts::Place;
use super::transform::{self, Affix, Namespace};
use super::tree::{Tree, Value};
use super::{CODE, patch, paths, resources, value_add};
use crate::fault::{Fault, code};

/// Bytes of all former names of one object. Each renaming adds one, so that many of them could make it very large.
const MAX_NAMES: usize = 64 << 10;

/// Bytes of a text that count as one change.
const BYTES_OF_A_CHANGE: usize = 256;

/// A configuration and what it means.
pub(super) struct Configured<T> {
    config: Resource,
    what: T,
}

impl Builder<'_, '_> {
    /// Reads what `generators` names.
    pub(super) fn generators(&mut self, target: &Target) -> Result<Vec<Configured<Generating>>, Fault> {
        self.read_all(target, &target.kustomization.generators, builtin::generator)
    }

    /// Reads what `transformers` names.
    pub(super) fn transformers(&mut self, target: &Target) -> Result<Vec<Configured<Transformer>>, Fault> {
        self.read_all(target, &target.kustomization.transformers, builtin::transformer)
    }

    fn read_all<T>(
        &mut self,
        target: &Target,
        entries: &[Text],
        read: fn(&Resource, &Lenient) -> Result<T, Fault>,
    ) -> Result<Vec<Configured<T>>, Fault> {
        let mut all = Vec::new();
        for config in self.configurations(target, entries)? {
            let lenient = Lenient { converts: builtin::converts(config.kind()), ..Lenient::default() };
            let what = read(&config, &lenient);
            self.warnings.extend(lenient.warnings.into_inner());
            all.push(Configured { what: what?, config });
        }
        Ok(all)
    }

    /// The objects that configure plugins. As upstream has it, those that are written inline come first.
    fn configurations(&mut self, target: &Target, entries: &[Text]) -> Result<Vec<Resource>, Fault> {
        let mut built = Accumulator::empty();
        let mut paths = Vec::new();
        for entry in entries {
            let Some(trees) = self.inline(entry)? else {
                paths.push(entry);
                continue;
            };
            for mut resource in resources_of(trees, self.limits)? {
                if self.metadata.is_any() {
                    origin::note_file(&mut resource, &origin_of_file(target));
                }
                self.add(resource, &mut built.resources)?;
            }
        }
        for path in paths {
            self.resource(target, path, &mut built)?;
        }
        Ok(built.resources)
    }

    /// The objects that an entry is; `None` when it is a path.
    fn inline(&self, entry: &Text) -> Result<Option<Vec<Tree>>, Fault> {
        if !entry.text.contains('\n') && !entry.text.starts_with('{') {
            return Ok(patch::is_inline(entry, self.texts));
        }
        let trees = self.texts.documents(entry.text.as_bytes(), self.texts.place_of_string(entry.at, entry.text.len()))?;
        Ok(trees.iter().all(|tree| matches!(tree.value, Value::Map(_))).then_some(trees))
    }

    /// Runs what `generators` names. The options of the kustomization are not theirs.
    pub(super) fn run_generators(
        &mut self,
        target: &Target,
        generators: &[Configured<Generating>],
        built: &mut Accumulator,
    ) -> Result<(), Fault> {
        for Configured { config, what } in generators {
            let maker = Maker::configuration(config, config.kind());
            match what {
                Generating::Content(kind, generator) => self.generate_one(target, generator, *kind, None, maker, built)?,
                Generating::Account(account) => self.generate_account(account, maker, built)?,
            }
        }
        Ok(())
    }

    fn generate_account(&mut self, account: &CloudAccount, maker: Option<Maker<'_>>, built: &mut Accumulator) -> Result<(), Fault> {
        let trees = self.texts.documents(account.text().as_bytes(), Place::String(account.at))?;
        for mut resource in resources_of(trees, self.limits)? {
            if let Some(maker) = &maker {
                origin::note_generator(&mut resource, maker);
            }
            self.count(account.at)?;
            resources::absorb(&mut built.resources, resource)?;
        }
        Ok(())
    }

    /// Runs what `transformers` names.
    pub(super) fn run_transformers(
        &mut self,
        target: &Target,
        transformers: &[Configured<Transformer>],
        resources: &mut Vec<Resource>,
    ) -> Result<(), Fault> {
        for Configured { config, what } in transformers {
            self.run_transformer(target, what, config.tree.at, resources)?;
            if let Some(maker) = Maker::configuration(config, config.kind()) {
                origin::note_transformer(resources, &maker);
            }
            resources.retain(|resource| !resource.tree.is_empty());
            let max_nodes = self.limits.manifest.max_nodes as usize;
            let is_too_large = |resource: &Resource| {
                let names = resource.annotation(PREVIOUS_NAMES).unwrap_or_default();
                names.len() > MAX_NAMES || resource.tree.count(max_nodes) > max_nodes
            };
            if resources.iter().any(is_too_large) {
                return Err(Fault::at(code::TOO_COMPLEX, config.tree.at, "an object becomes too large"));
            }
        }
        Ok(())
    }

    fn run_transformer(
        &mut self,
        target: &Target,
        transformer: &Transformer,
        at: u32,
        resources: &mut Vec<Resource>,
    ) -> Result<(), Fault> {
        match transformer {
            Transformer::Names { prefix, suffix, fields } => {
                self.visit_fields(resources, fields, [prefix, suffix], at)?;
                transform::affix(resources, prefix, Affix::Prefix, fields)?;
                transform::affix(resources, suffix, Affix::Suffix, fields)
            }
            Transformer::Namespace { name, .. } if name.is_empty() => Ok(()),
            Transformer::Namespace { name, fields, subjects, unset_only } => {
                self.visit_fields(resources, fields, [name], at)?;
                let (subjects, unset_only) = (*subjects, *unset_only);
                transform::namespace(resources, Namespace { name, fields, subjects, unset_only })
            }
            Transformer::Pairs { pairs, fields } => {
                self.visit_fields(resources, fields, pairs.iter().map(|(_, text)| text), at)?;
                transform::pairs(resources, pairs, fields)
            }
            Transformer::Image { image, fields } => {
                self.visit_fields(resources, fields, [&image.new_name, &image.new_tag, &image.digest], at)?;
                transform::images(resources, image, fields)
            }
            Transformer::Replicas { replica, fields } => {
                self.visit_fields(resources, fields, [], at)?;
                transform::replicas(resources, replica, fields)
            }
            Transformer::Patch(patch) => self.patch(target, patch, resources),
            Transformer::Strategic { files, patches } if files.is_empty() && patches.is_empty() => {
                Err(Fault::at(CODE, at, "a list of paths, or patches, is required").field("paths"))
            }
            Transformer::Strategic { files, patches } => self.strategic_patches(target, files, patches, at, resources),
            Transformer::JsonPatch(patch) => self.json_patch(target, patch, "target", resources),
            Transformer::Replacements(replacements) => {
                replacements.iter().try_for_each(|replacement| self.replace(target, replacement, resources))
            }
            Transformer::Values(values) => self.add_values(target, values, at, resources),
            Transformer::Hash => {
                self.visit(resources, at)?;
                super::build::add_hashes(resources);
                Ok(())
            }
        }
    }

    /// Counts a transformer that writes these texts to these fields of all objects.
    fn visit_fields<'x>(
        &mut self,
        resources: &[Resource],
        fields: &[FieldSpec],
        texts: impl IntoIterator<Item = &'x Text>,
        at: u32,
    ) -> Result<(), Fault> {
        let changes: usize = texts.into_iter().map(|text| 1 + text.text.len() / BYTES_OF_A_CHANGE).sum();
        self.visit_times(resources, fields.len().max(1).saturating_mul(changes.max(1)), at)
    }

    fn add_values(&mut self, target: &Target, values: &Values, at: u32, resources: &mut [Resource]) -> Result<(), Fault> {
        let mut value = values.value.clone();
        if value.is_empty() {
            paths::file_name(&target.directory).clone_into(&mut value.text);
            value.at = at;
        }
        if value.is_empty() {
            let fault = Fault::at(code::MISSING_FIELD, at, "is required at the root of the source").field("value");
            return Err(fault.hint("without it, the value is the name of the directory of the kustomization"));
        }
        let more: Vec<ValueTarget> = match values.file.is_empty() {
            true => Vec::new(),
            false => {
                let index = self.file(target, &values.file)?;
                let text = self.texts.text(index);
                let node = self.texts.plain(&text.bytes, Place::File(text.base))?;
                let lenient = Lenient { converts: true, ..Lenient::default() };
                let more = builtin::targets_of_file(&node, text.base, &lenient)?;
                self.warnings.extend(lenient.warnings.into_inner());
                more
            }
        };
        if values.targets.is_empty() && more.is_empty() {
            return Err(Fault::at(code::MISSING_FIELD, at, "at least one target is required").field("targets"));
        }
        for target in values.targets.iter().chain(&more) {
            self.visit_times(resources, 1 + value.text.len() / BYTES_OF_A_CHANGE, target.at)?;
            value_add::apply(resources, &value, target)?;
        }
        Ok(())
    }

    /// Applies a patch.
    pub(super) fn patch(&mut self, target: &Target, patch: &Patch, resources: &mut Vec<Resource>) -> Result<(), Fault> {
        self.visit(resources, patch.at)?;
        let text = self.patch_text(target, patch, true)?;
        self.note_merge();
        patch::apply(resources, patch, &text, self.texts, self.rules())
    }

    /// Applies a JSON patch; `field` is that of its target.
    pub(super) fn json_patch(
        &mut self,
        target: &Target,
        patch: &Patch,
        field: &str,
        resources: &mut [Resource],
    ) -> Result<(), Fault> {
        self.visit(resources, patch.at)?;
        let text = self.patch_text(target, patch, false)?;
        let Some(selector) = &patch.target else {
            return Err(Fault::at(CODE, patch.at, "a JSON patch must have a target").field(field));
        };
        patch::apply_legacy_json(resources, selector, &text, self.texts, self.rules())
    }

    /// Applies strategic patches that are written inline, or in files, and those of one more text.
    pub(super) fn strategic_patches(
        &mut self,
        target: &Target,
        entries: &[Text],
        more: &Text,
        at: u32,
        resources: &mut Vec<Resource>,
    ) -> Result<(), Fault> {
        let mut patches = Vec::new();
        for text in entries {
            self.visit(resources, text.at)?;
            let trees = match patch::is_inline(text, self.texts) {
                Some(trees) => trees,
                None => {
                    let index = self.file(target, text)?;
                    self.texts.trees(index)?
                }
            };
            patches.extend(resources_of(trees, self.limits)?);
        }
        if !more.is_empty() {
            self.visit(resources, more.at)?;
            let place = self.texts.place_of_string(more.at, more.text.len());
            patches.extend(resources_of(self.texts.documents(more.text.as_bytes(), place)?, self.limits)?);
        }
        self.note_merge();
        patch::apply_legacy_strategic(resources, &patches, at, self.rules())
    }
}

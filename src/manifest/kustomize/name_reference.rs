//! Names of other objects inside of objects follow these when prefixes, suffixes, hashes and namespaces change them.

use super::CODE;
use super::config::{Config, FieldSpec};
use super::field_path::{Make, visit};
use super::id::{Gvk, Id, NO_NAMESPACE};
use super::resource::{PREFIXES, Resource, SUFFIXES};
use super::tree::{Field, Scalar, Tag, Tree, Value};
use crate::fault::{Fault, quoted};
use std::collections::{BTreeSet, HashMap};

/// An object whose name or namespace has changed.
struct Candidate {
    id: Id,
    previous: Vec<Id>,
    prefixes: Vec<String>,
    suffixes: Vec<String>,
    /// Place of its name.
    at: u32,
}

/// All objects, and those that have changed by the names that they had.
struct Objects {
    candidates: Vec<Candidate>,
    by_name: HashMap<String, Vec<usize>>,
    /// Original and current namespaces of all objects that have one.
    original_namespaces: BTreeSet<String>,
}

/// One object that refers to others, through one field.
struct Referrer<'r> {
    id: &'r Id,
    prefixes: &'r [String],
    suffixes: &'r [String],
    role: Option<&'r Gvk>,
    /// Namespaces of the service accounts of a role binding.
    account_namespaces: &'r BTreeSet<String>,
    is_role: bool,
    target: &'r Gvk,
}

/// Rewrites the names.
pub(super) fn fix(resources: &mut [Resource], config: &Config) -> Result<(), Fault> {
    let objects = Objects::of(resources);
    for resource in resources {
        let original = resource.original_id();
        let refers = |spec: &FieldSpec| original.gvk.is_selected(&spec.gvk);
        let account_namespaces = match resource.kind() {
            "RoleBinding" if config.name_references.iter().flat_map(|reference| &reference.referrers).any(refers) => {
                account_namespaces(resource)?
            }
            _ => BTreeSet::new(),
        };
        if objects.candidates.is_empty() {
            continue;
        }
        let id = resource.id();
        let words = |key: &str| resource.words_of_annotation(key).into_iter().map(str::to_owned).collect::<Vec<_>>();
        let (prefixes, suffixes) = (words(PREFIXES), words(SUFFIXES));
        let role = role_of(&resource.tree);
        for reference in &config.name_references {
            for spec in reference.referrers.iter().filter(|spec| original.gvk.is_selected(&spec.gvk)) {
                let referrer = Referrer {
                    id: &id,
                    prefixes: &prefixes,
                    suffixes: &suffixes,
                    role: role.as_ref(),
                    account_namespaces: &account_namespaces,
                    is_role: spec.path.ends_with("roleRef/name"),
                    target: &reference.gvk,
                };
                let spec = FieldSpec { gvk: Gvk::default(), path: spec.path.clone(), create: false };
                visit(&mut resource.tree, &spec, Make::Nothing, 0, &mut |field| set(field, &referrer, &objects))?;
            }
        }
    }
    Ok(())
}

impl Objects {
    fn of(resources: &[Resource]) -> Self {
        let mut objects = Self { candidates: Vec::new(), by_name: HashMap::new(), original_namespaces: BTreeSet::new() };
        for resource in resources {
            let previous = resource.previous_ids();
            let id = resource.id();
            let original = previous.first().unwrap_or(&id).effective_namespace();
            if original != NO_NAMESPACE {
                objects.original_namespaces.insert(original.to_owned());
            }
            if previous.is_empty() {
                continue;
            }
            let words = |key: &str| resource.words_of_annotation(key).into_iter().map(str::to_owned).collect();
            let names: BTreeSet<String> = previous.iter().map(|id| id.name.clone()).collect();
            for name in names {
                objects.by_name.entry(name).or_default().push(objects.candidates.len());
            }
            let at = resource.tree.get("metadata").and_then(|metadata| metadata.get("name")).map_or(0, |name| name.at);
            let (prefixes, suffixes) = (words(PREFIXES), words(SUFFIXES));
            objects.candidates.push(Candidate { id, previous, prefixes, suffixes, at });
        }
        objects
    }
}

impl Candidate {
    fn original_namespace(&self) -> &str {
        self.previous.first().map_or_else(|| self.id.effective_namespace(), Id::effective_namespace)
    }

    fn same_affixes(&self, referrer: &Referrer<'_>, allow_empty: bool) -> bool {
        let same = |own: &[String], theirs: &[String]| {
            let (short, long) = if own.len() < theirs.len() { (own, theirs) } else { (theirs, own) };
            match short.is_empty() {
                true => allow_empty || long.is_empty(),
                false => long.ends_with(short),
            }
        };
        same(&self.prefixes, referrer.prefixes) && same(&self.suffixes, referrer.suffixes)
    }
}

impl Referrer<'_> {
    /// Reports whether it can refer to an object at all.
    fn reaches(&self, candidate: &Candidate) -> bool {
        self.id.cluster_scoped
            || candidate.id.cluster_scoped
            || candidate.id.same_namespace(self.id)
            || self.account_namespaces.contains(&candidate.id.namespace)
    }

    fn may_mean(&self, candidate: &Candidate) -> bool {
        let was = |gvk: &Gvk| candidate.previous.iter().any(|id| id.gvk.is_selected(gvk));
        let same_namespace = self.id.cluster_scoped
            || candidate.id.cluster_scoped
            || candidate.id.gvk.kind == "ServiceAccount"
            || self.id.same_namespace(&candidate.id);
        was(self.target) && (!self.is_role || self.role.is_none_or(was)) && same_namespace
    }

    /// The object that a name means.
    fn find<'o>(
        &self,
        name: &str,
        objects: &'o Objects,
        in_namespace: impl Fn(&Candidate) -> bool,
        with_namespace: bool,
        at: u32,
    ) -> Result<Option<&'o Candidate>, Fault> {
        let named = objects.by_name.get(name).map_or(&[][..], Vec::as_slice);
        let mut found: Vec<&Candidate> = named.iter().map(|index| &objects.candidates[*index]).collect();
        found.retain(|candidate| self.reaches(candidate) && in_namespace(candidate) && self.may_mean(candidate));
        if let [one] = found[..] {
            return Ok(Some(one));
        }
        found.retain(|candidate| candidate.same_affixes(self, true));
        if found.len() > 1 {
            found.retain(|candidate| candidate.same_affixes(self, false));
        }
        let Some(first) = found.first() else { return Ok(None) };
        let same =
            |other: &&Candidate| other.id.name == first.id.name && (!with_namespace || other.id.namespace == first.id.namespace);
        if found.iter().all(same) {
            return Ok(Some(first));
        }
        let ids: Vec<String> = found.iter().map(|candidate| candidate.id.text()).collect();
        let message = format!("the name {} can mean several objects: {}", quoted(name), ids.join(", "));
        Err(Fault::at(CODE, at, message))
    }
}

fn set(field: &mut Tree, referrer: &Referrer<'_>, objects: &Objects) -> Result<(), Fault> {
    match &mut field.value {
        Value::List(items) => items.iter_mut().try_for_each(|item| match &item.value {
            Value::List(_) => Err(Fault::at(CODE, item.at, "expected a name or a mapping with a name, found a list")),
            Value::Map(_) => set_mapping(item, referrer, objects),
            Value::Scalar(_) => set_scalar(item, referrer, objects),
        }),
        Value::Map(_) => set_mapping(field, referrer, objects),
        Value::Scalar(_) => set_scalar(field, referrer, objects),
    }
}

fn set_scalar(field: &mut Tree, referrer: &Referrer<'_>, objects: &Objects) -> Result<(), Fault> {
    if field.is_null() {
        return Ok(());
    }
    let found = referrer.find(field.text(), objects, |_| true, false, field.at)?;
    if let Some(found) = found.filter(|found| found.id.name != field.text()) {
        field.set_text(found.at, found.id.name.clone());
    }
    Ok(())
}

fn set_mapping(field: &mut Tree, referrer: &Referrer<'_>, objects: &Objects) -> Result<(), Fault> {
    let Some(name) = field.get("name") else {
        return Err(Fault::at(CODE, field.at, "expected a mapping with the field name"));
    };
    let (name, at) = (name.text().to_owned(), name.at);
    let namespace = field.get("namespace").map(|namespace| namespace.text().to_owned());
    let in_namespace = |candidate: &Candidate| match &namespace {
        None => true,
        Some(namespace) if objects.original_namespaces.contains(namespace) => candidate.original_namespace() == namespace,
        Some(namespace) => candidate.id.effective_namespace() == namespace,
    };
    let Some(found) = referrer.find(&name, objects, in_namespace, true, at)? else { return Ok(()) };
    if found.id.name == name && found.id.namespace.is_empty() {
        return Ok(());
    }
    for (key, text) in [("name", &found.id.name), ("namespace", &found.id.namespace)] {
        if text.is_empty() {
            continue;
        }
        match field.get_mut(key) {
            Some(value) if value.text() == text => {}
            Some(value) => value.set_text(found.at, text.clone()),
            None => field.set(key, Tree::scalar(found.at, Scalar::plain(text.clone()))),
        }
    }
    Ok(())
}

fn role_of(tree: &Tree) -> Option<Gvk> {
    let role = tree.get("roleRef")?;
    let text = |key: &str| Some(role.get(key)?.text().to_owned());
    Some(Gvk { group: text("apiGroup")?, version: String::new(), kind: text("kind")? })
}

/// Namespaces of the service accounts of a role binding. One that is written must be a string, as upstream has it.
fn account_namespaces(resource: &Resource) -> Result<BTreeSet<String>, Fault> {
    let subjects = resource.tree.get("subjects").map_or(&[][..], Tree::items);
    let accounts = subjects.iter().filter(|subject| subject.get("kind").is_some_and(|kind| kind.text() == "ServiceAccount"));
    let mut namespaces = BTreeSet::new();
    for account in accounts {
        match account.fields().iter().find(|field| field.key == "namespace") {
            Some(Field { value: Tree { value: Value::Scalar(Scalar { tag: Tag::String, text, .. }), .. }, .. }) => {
                namespaces.insert(text.clone());
            }
            Some(Field { at, .. }) => {
                let fault = Fault::at(CODE, *at, "the namespace of a subject is blank or no string").field("subjects.namespace");
                return Err(fault.hint("write the namespace of the service account, or remove the field"));
            }
            None => {}
        }
    }
    Ok(namespaces)
}

//! Strategic merge as kustomize has it, which differs from that of the API server: what the patch lists comes first, and several of its
//! corner cases (a replaced element of a list stays) come of how kyaml changes shared nodes. So nodes are shared here, too.

use super::CODE;
use super::schema::{Schemas, Shape};
use super::tree::{Field, Scalar, Share, Tag, Tree, Value};
use crate::fault::{Fault, quoted};
use std::collections::{BTreeMap, BTreeSet};

const DIRECTIVE: &str = "$patch";

/// Index of a node.
type Id = usize;

#[derive(Clone, Debug)]
struct Node {
    at: u32,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Scalar(Scalar),
    List(Vec<Id>),
    Map(Vec<(String, u32, Id)>),
}

/// Kind of the nodes that are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Scalar,
    List,
    Map,
}

/// Result of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Merged {
    Gone,
    Node(Id),
    /// A null that stays.
    Null(Id),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Directive {
    Merge,
    Replace,
    Delete,
}

/// Two lists of keys and values that find an element.
#[derive(Clone, Debug)]
struct Lookup<'s> {
    keys: Vec<&'s str>,
    values: Vec<String>,
}

struct Arena<'s> {
    schemas: &'s Schemas,
    nodes: Vec<Node>,
    /// Nodes of tied fields.
    shared: BTreeMap<u32, Id>,
    /// Values that may still be made.
    left: usize,
}

/// Merges a patch into an object. `None` when the patch removes it.
pub(super) fn merge(object: Tree, patch: &Tree, schemas: &Schemas, max_nodes: usize) -> Result<Option<Tree>, Fault> {
    let mut arena = Arena { schemas, nodes: Vec::new(), shared: BTreeMap::new(), left: max_nodes };
    let (object, patch) = (arena.import(&object), arena.import(patch));
    match arena.walk([Some(object), Some(patch)], None)? {
        Merged::Gone => Ok(None),
        // As upstream has it, a patch that replaces the whole object changes nothing: what it says is lost.
        Merged::Node(_) | Merged::Null(_) => arena.export(object, &mut (2 * max_nodes)).map(Some),
    }
}

impl<'s> Arena<'s> {
    fn add(&mut self, at: u32, content: Content) -> Id {
        self.nodes.push(Node { at, content });
        self.nodes.len() - 1
    }

    fn import(&mut self, tree: &Tree) -> Id {
        let content = match &tree.value {
            Value::Scalar(scalar) => match scalar.share {
                Share::None => Content::Scalar(scalar.clone()),
                Share::With(number) | Share::Written(number) => {
                    if let Some(known) = self.shared.get(&number) {
                        return *known;
                    }
                    self.shared.insert(number, self.nodes.len());
                    Content::Scalar(scalar.clone())
                }
            },
            Value::List(items) => Content::List(items.iter().map(|item| self.import(item)).collect()),
            Value::Map(fields) => {
                Content::Map(fields.iter().map(|field| (field.key.clone(), field.at, self.import(&field.value))).collect())
            }
        };
        self.add(tree.at, content)
    }

    fn export(&self, id: Id, left: &mut usize) -> Result<Tree, Fault> {
        let node = &self.nodes[id];
        let too_large = || Fault::at(crate::fault::code::TOO_COMPLEX, node.at, "the patched object is too large");
        *left = left.checked_sub(1).ok_or_else(too_large)?;
        let value = match &node.content {
            Content::Scalar(scalar) => Value::Scalar(scalar.clone()),
            Content::List(items) => Value::List(items.iter().map(|item| self.export(*item, left)).collect::<Result<_, _>>()?),
            Content::Map(fields) => {
                let field =
                    |(key, at, id): &(String, u32, Id)| Ok(Field { key: key.clone(), at: *at, value: self.export(*id, left)? });
                Value::Map(fields.iter().map(field).collect::<Result<_, _>>()?)
            }
        };
        Ok(Tree { at: node.at, value })
    }

    fn kind(&self, id: Id) -> Kind {
        match &self.nodes[id].content {
            Content::Scalar(_) => Kind::Scalar,
            Content::List(_) => Kind::List,
            Content::Map(_) => Kind::Map,
        }
    }

    fn is_null(&self, id: Id) -> bool {
        matches!(&self.nodes[id].content, Content::Scalar(Scalar { tag: Tag::Null, .. }))
    }

    fn is_missing(&self, id: Option<Id>) -> bool {
        id.is_none_or(|id| self.is_null(id))
    }

    fn text(&self, id: Id) -> &str {
        match &self.nodes[id].content {
            Content::Scalar(scalar) => &scalar.text,
            Content::List(_) | Content::Map(_) => "",
        }
    }

    fn items(&self, id: Id) -> &[Id] {
        match &self.nodes[id].content {
            Content::List(items) => items,
            Content::Scalar(_) | Content::Map(_) => &[],
        }
    }

    fn fields(&self, id: Id) -> &[(String, u32, Id)] {
        match &self.nodes[id].content {
            Content::Map(fields) => fields,
            Content::Scalar(_) | Content::List(_) => &[],
        }
    }

    fn field(&self, id: Id, key: &str) -> Option<Id> {
        self.fields(id).iter().find(|(known, ..)| known == key).map(|(.., value)| *value)
    }

    fn clear_field(&mut self, id: Id, key: &str) {
        if let Content::Map(fields) = &mut self.nodes[id].content {
            fields.retain(|(known, ..)| known != key);
        }
    }

    /// Sets a field. What stands there becomes a copy of the value, which keeps the style of what it replaces.
    fn set_field(&mut self, id: Id, key: &str, key_at: u32, value: Id) {
        match self.field(id, key) {
            Some(field) if field == value => {}
            Some(field) => {
                let styled = matches!(&self.nodes[field].content, Content::Scalar(Scalar { styled: true, .. }));
                if let Content::Scalar(scalar) = &mut self.nodes[value].content {
                    scalar.styled = styled;
                    if styled && scalar.tag != Tag::Null {
                        scalar.tag = Tag::String;
                    }
                }
                // What is written again has the place where it was written first.
                let contents = (&self.nodes[field].content, &self.nodes[value].content);
                let share = match contents {
                    (Content::Scalar(old), Content::Scalar(new)) if (&old.text, old.tag) == (&new.text, new.tag) => return,
                    (Content::Scalar(old), _) => old.share,
                    (Content::List(_) | Content::Map(_), _) => Share::None,
                };
                self.nodes[field] = self.nodes[value].clone();
                if let Content::Scalar(scalar) = &mut self.nodes[field].content {
                    scalar.share = share;
                }
            }
            None => {
                if let Content::Map(fields) = &mut self.nodes[id].content {
                    fields.push((key.to_owned(), key_at, value));
                }
            }
        }
    }

    fn walk(&mut self, sources: [Option<Id>; 2], shape: Option<Shape<'s>>) -> Result<Merged, Fault> {
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            let at = sources[1].or(sources[0]).map_or(0, |id| self.nodes[id].at);
            Fault::at(crate::fault::code::TOO_COMPLEX, at, "the patched object is too large")
        })?;
        let shape = shape.or_else(|| sources.iter().flatten().find_map(|id| self.shape_of(*id)));
        let [dest, patch] = sources;
        let present = |id: &Option<Id>| id.filter(|id| !self.is_null(*id));
        let Some(kind) = present(&dest).or(present(&patch)).map(|id| self.kind(id)) else {
            return self.walk_map(dest, patch, shape);
        };
        if let Some(other) = [dest, patch].iter().filter_map(present).find(|id| self.kind(*id) != kind) {
            let name = |kind| match kind {
                Kind::Scalar => "a single value",
                Kind::List => "a list",
                Kind::Map => "a mapping",
            };
            let message = format!("expected {}, as the object has it, found {}", name(kind), name(self.kind(other)));
            return Err(Fault::at(CODE, self.nodes[other].at, message));
        }
        match kind {
            Kind::Map => self.walk_map(dest, patch, shape),
            Kind::List => match shape.and_then(|shape| shape.merge_keys()) {
                Some(keys) => self.walk_list(dest, patch, &keys, shape),
                None => Ok(patch.or(dest).map_or(Merged::Gone, Merged::Node)),
            },
            Kind::Scalar => Ok(patch.or(dest).map_or(Merged::Gone, Merged::Node)),
        }
    }

    /// The shape of an object that says its kind.
    fn shape_of(&self, id: Id) -> Option<Shape<'s>> {
        let text = |key: &str| self.field(id, key).map(|field| self.text(field));
        self.schemas.shape_of(text("apiVersion")?, text("kind")?)
    }

    fn walk_map(&mut self, dest: Option<Id>, patch: Option<Id>, shape: Option<Shape<'s>>) -> Result<Merged, Fault> {
        let merged = if self.is_missing(dest) {
            let directive = patch.map_or(Ok(Directive::Merge), |patch| self.directive(patch));
            match (directive, patch, dest) {
                (Ok(Directive::Delete), ..) => return Ok(Merged::Gone),
                (_, None, Some(null)) if !self.text(null).is_empty() => return Ok(Merged::Null(null)),
                (_, None, _) => return Ok(Merged::Gone),
                (_, Some(patch), _) => patch,
            }
        } else if let (Some(dest), Some(patch)) = (dest, patch) {
            if self.is_null(patch) {
                return Ok(Merged::Gone);
            }
            match self.directive(patch)? {
                Directive::Delete => return Ok(Merged::Gone),
                Directive::Replace => patch,
                Directive::Merge => dest,
            }
        } else {
            match dest {
                Some(dest) => dest,
                None => return Ok(Merged::Gone),
            }
        };
        let sources = [Some(merged), patch];
        let names: BTreeSet<String> =
            sources.iter().flatten().flat_map(|id| self.fields(*id)).map(|(key, ..)| key.clone()).collect();
        for name in names {
            let values = sources.map(|source| source.and_then(|source| self.field(source, &name)));
            let link = shape.and_then(|shape| shape.field(&name));
            let key_at =
                patch.and_then(|patch| self.fields(patch).iter().find(|(key, ..)| *key == name)).map_or(0, |(_, at, _)| *at);
            match self.walk(values, link).map_err(|fault| within(fault, &name))? {
                Merged::Null(value) => self.set_field(merged, &name, key_at, value),
                Merged::Node(value) if !self.is_null(value) => self.set_field(merged, &name, key_at, value),
                Merged::Gone | Merged::Node(_) => self.clear_field(merged, &name),
            }
        }
        Ok(Merged::Node(merged))
    }

    fn walk_list(
        &mut self,
        dest: Option<Id>,
        patch: Option<Id>,
        keys: &[&'s str],
        shape: Option<Shape<'s>>,
    ) -> Result<Merged, Fault> {
        let merged = match (dest.filter(|dest| !self.is_null(*dest)), patch) {
            (None, None) => return Ok(Merged::Gone),
            (None, Some(patch)) => patch,
            (Some(dest), None) => dest,
            (Some(_), Some(patch)) if self.is_null(patch) => return Ok(Merged::Gone),
            (Some(dest), Some(patch)) => match self.directive(patch)? {
                Directive::Delete => return Ok(Merged::Gone),
                Directive::Replace => patch,
                Directive::Merge => dest,
            },
        };
        if self.is_null(merged) {
            return Ok(Merged::Gone);
        }
        // Those of the patch come first.
        let sources = [patch, Some(merged)];
        let mut lookups: Vec<Vec<String>> = Vec::new();
        for source in sources.into_iter().flatten() {
            for item in self.items(source) {
                let values: Vec<String> = match keys.is_empty() {
                    true => vec![self.text(*item).to_owned()],
                    false => {
                        keys.iter().map(|key| self.field(*item, key).map_or("", |value| self.text_of(value)).to_owned()).collect()
                    }
                };
                if !lookups.contains(&values) {
                    lookups.push(values);
                }
            }
        }
        let keys = if keys.is_empty() { &[""][..] } else { keys };
        self.set_elements(lookups, keys, [Some(merged), patch], merged, shape.and_then(|shape| shape.element()))
    }

    /// Text of a value for the comparison of keys: nothing for what is empty.
    fn text_of(&self, id: Id) -> &str {
        if self.is_null(id) { "" } else { self.text(id) }
    }

    fn set_elements(
        &mut self,
        mut lookups: Vec<Vec<String>>,
        keys: &[&'s str],
        sources: [Option<Id>; 2],
        dest: Id,
        shape: Option<Shape<'s>>,
    ) -> Result<Merged, Fault> {
        let added = self.add(self.nodes[dest].at, Content::List(Vec::new()));
        if keys.len() > 1 {
            merge_values(&mut lookups);
        }
        let mut last = Lookup { keys: Vec::new(), values: Vec::new() };
        for values in &lookups {
            let lookup = valid(&lookups, values, keys);
            let own = valid(std::slice::from_ref(&lookup.values), &lookup.values, &lookup.keys);
            let elements = sources.map(|source| source.and_then(|source| self.find_element(source, &own)));
            let merged = self.walk(elements, shape)?;
            last = lookup.clone();
            let element = match merged {
                Merged::Node(id)
                    if !self.is_null(id) && !matches!(&self.nodes[id].content, Content::Map(fields) if fields.is_empty()) =>
                {
                    id
                }
                Merged::Gone | Merged::Node(_) | Merged::Null(_) => {
                    self.set_element(dest, None, &lookup);
                    continue;
                }
            };
            for (key, value) in lookup.keys.iter().zip(&lookup.values) {
                if !key.is_empty() && self.field(element, key).is_none() && !value.is_empty() {
                    let scalar = self.add(self.nodes[element].at, Content::Scalar(Scalar::plain(value.clone())));
                    self.set_field(element, key, self.nodes[element].at, scalar);
                }
            }
            self.set_element(added, Some(element), &lookup);
        }
        if lookups.is_empty() {
            return Ok(Merged::Node(dest));
        }
        self.append_elements(added, dest, &last.keys);
        Ok(Merged::Node(added))
    }

    /// The first element that has these values.
    fn find_element(&self, list: Id, lookup: &Lookup<'_>) -> Option<Id> {
        let Some(first) = lookup.keys.first().filter(|key| !key.is_empty()) else {
            let value = lookup.values.first().map_or("", String::as_str);
            return self.items(list).iter().copied().find(|item| self.text(*item) == value);
        };
        debug_assert!(!first.is_empty(), "elements of scalars are found by themselves");
        let matches = |item: Id| {
            self.kind(item) == Kind::Map
                && lookup.keys.len() == lookup.values.len()
                && lookup.keys.iter().zip(&lookup.values).all(|(key, value)| {
                    self.field(item, key).is_some_and(|field| !self.is_null(field) && self.text(field) == value)
                })
        };
        self.items(list).iter().copied().find(|item| matches(*item))
    }

    /// Replaces or removes the elements that have these values; adds the element when there is none.
    fn set_element(&mut self, list: Id, element: Option<Id>, lookup: &Lookup<'_>) {
        let is_mapping =
            lookup.keys.first().is_some_and(|key| !key.is_empty()) && lookup.values.first().is_some_and(|value| !value.is_empty());
        let mut content = Vec::new();
        let mut found = false;
        for item in self.items(list).to_vec() {
            let is_empty_map = matches!(&self.nodes[item].content, Content::Map(fields) if fields.is_empty());
            if self.is_null(item) || is_empty_map {
                continue;
            }
            if self.kind(item) != Kind::Map && is_mapping {
                content.push(item);
                continue;
            }
            let mut matches = true;
            let mut value: Option<Id> = None;
            for (index, key) in lookup.keys.iter().enumerate() {
                if let Some(wanted) = lookup.values.get(index) {
                    value = match key.is_empty() {
                        true => (self.text(item) == wanted).then_some(item),
                        false => self.field(item, key).filter(|field| wanted.is_empty() || self.text(*field) == wanted),
                    };
                }
                matches &= value.is_some();
            }
            if !matches {
                if !lookup.values.is_empty() {
                    content.push(item);
                }
                continue;
            }
            found = true;
            content.extend(element);
        }
        if !found {
            content.extend(element);
        }
        self.nodes[list].content = Content::List(content);
    }

    fn append_elements(&mut self, to: Id, from: Id, keys: &[&'s str]) {
        for item in self.items(from).to_vec() {
            if keys.first().is_none_or(|key| key.is_empty()) {
                let values = vec![self.text(item).to_owned()];
                self.set_element(to, Some(item), &Lookup { keys: vec![""], values });
                continue;
            }
            let mut values = Vec::new();
            for key in keys {
                match self.field(item, key).filter(|field| !self.is_null(*field)) {
                    Some(field) => values.push(self.text(field).to_owned()),
                    None => {
                        if let Content::List(items) = &mut self.nodes[to].content {
                            items.push(item);
                        }
                    }
                }
            }
            let lookup = Lookup { keys: keys.to_vec(), values };
            if keys.len() > 1 {
                self.set_element(to, None, &lookup);
            }
            self.set_element(to, Some(item), &lookup);
        }
    }

    /// The directive of a patch, which is removed from it.
    fn directive(&mut self, patch: Id) -> Result<Directive, Fault> {
        let holder = match self.kind(patch) {
            Kind::Map => patch,
            Kind::List => {
                let with = |item: &&Id| self.field(**item, DIRECTIVE).is_some_and(|field| !self.is_null(field));
                match self.items(patch).iter().find(with) {
                    Some(item) if self.fields(*item).len() == 1 => *item,
                    Some(_) | None => return Ok(Directive::Merge),
                }
            }
            Kind::Scalar => return Err(Fault::at(CODE, self.nodes[patch].at, "a patch cannot be a single value")),
        };
        let Some(value) = self.field(holder, DIRECTIVE) else { return Ok(Directive::Merge) };
        let word = self.text(value).to_owned();
        let directive = match word.as_str() {
            "merge" => Directive::Merge,
            "replace" => Directive::Replace,
            "delete" => Directive::Delete,
            _ => {
                let fault = Fault::at(CODE, self.nodes[value].at, format!("unknown patch strategy {}", quoted(&word)));
                return Err(fault.field(DIRECTIVE).hint("it must be merge, replace or delete"));
            }
        };
        match self.kind(patch) {
            Kind::Map => self.clear_field(patch, DIRECTIVE),
            Kind::List | Kind::Scalar => self.set_element(patch, None, &Lookup { keys: vec![DIRECTIVE], values: vec![word] }),
        }
        Ok(directive)
    }
}

fn within(fault: Fault, name: &str) -> Fault {
    let field = match fault.field.is_empty() {
        true => name.to_owned(),
        false => format!("{name}.{}", fault.field),
    };
    fault.field(field)
}

/// The keys that have a value in any of the lists, with the values of one.
fn valid<'s>(lists: &[Vec<String>], values: &[String], keys: &[&'s str]) -> Lookup<'s> {
    let has_value = |index: usize| lists.iter().any(|values| values.get(index).is_some_and(|value| !value.is_empty()));
    if !(0..keys.len()).any(has_value) {
        return Lookup { keys: keys.to_vec(), values: values.to_vec() };
    }
    let kept = |index: &usize| has_value(*index);
    Lookup {
        keys: (0..keys.len()).filter(kept).map(|index| keys[index]).collect(),
        values: (0..values.len()).filter(kept).map(|index| values[index].clone()).collect(),
    }
}

/// Completes values that some elements leave out by those of elements that agree in the rest.
fn merge_values(lists: &mut [Vec<String>]) {
    for one in 0..lists.len() {
        for other in 0..lists.len() {
            if let Some(values) = completed(&lists[one], &lists[other]) {
                lists[one].clone_from(&values);
                lists[other] = values;
            }
        }
    }
}

fn completed(one: &[String], other: &[String]) -> Option<Vec<String>> {
    let mut agree = false;
    let mut values = Vec::with_capacity(one.len());
    for (one, other) in one.iter().zip(other) {
        match (one == other, one.is_empty(), other.is_empty()) {
            (true, ..) => {
                agree = true;
                values.push(one.clone());
            }
            (false, false, false) => return None,
            (false, false, true) => values.push(one.clone()),
            (false, true, _) => values.push(other.clone()),
        }
    }
    agree.then_some(values)
}

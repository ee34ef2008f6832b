//! `vars`: values of fields that stand as `$(NAME)` in fields of other objects. Upstream has deprecated them for replacements.

use super::CODE;
use super::config::{Config, FieldSpec};
use super::field_path::{DEFAULT_PATH, Make, look_up, split_brackets, visit};
use super::id::{Gvk, Id};
use super::reader::Item;
use super::resource::Resource;
use super::tree::{Scalar, Tag, Tree, Value};
use crate::fault::{Fault, code, quoted};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that all replaced texts may have together: a text may name a long value many times.
const MAX_TEXT: usize = 16 << 20;

/// An entry of `vars`.
#[derive(Clone, Debug)]
pub(super) struct Var {
    at: u32,
    name: String,
    target: Id,
    field_path: String,
}

/// Value of a var in texts.
struct Known {
    scalar: Scalar,
    /// Its text in the middle of another one.
    text: String,
    at: u32,
}

/// Reads an entry of `vars`.
pub(super) fn var(item: &Item<'_>) -> Result<Var, Fault> {
    let fields = item.fields(&["name", "objref", "fieldref"])?;
    let mut var =
        Var { at: item.at, name: fields.string("name")?.text, target: Id::default(), field_path: DEFAULT_PATH.to_owned() };
    if let Some(target) = fields.get("objref") {
        let target = target.fields(&["apiVersion", "group", "version", "kind", "name", "namespace"])?;
        let text = |name: &str| Ok(target.string(name)?.text);
        let mut gvk = Gvk { group: text("group")?, version: text("version")?, kind: text("kind")? };
        match text("apiVersion")?.split('/').collect::<Vec<_>>()[..] {
            [""] => {}
            [version] => version.clone_into(&mut gvk.version),
            [group, version] => {
                group.clone_into(&mut gvk.group);
                version.clone_into(&mut gvk.version);
            }
            _ => {}
        }
        var.target = Id { gvk, name: text("name")?, namespace: text("namespace")?, cluster_scoped: false };
    }
    if let Some(field) = fields.get("fieldref") {
        let path = field.fields(&["fieldPath"])?.string("fieldPath")?.text;
        if !path.is_empty() {
            var.field_path = path;
        }
    }
    Ok(var)
}

impl Var {
    pub(super) fn place(&self) -> u32 {
        self.at
    }

    fn fault(&self, message: impl Into<String>) -> Fault {
        Fault::at(CODE, self.at, message).field("vars")
    }

    /// Notes at the object that it has the value. There may be none yet in a component or a base that others complete.
    pub(super) fn note(&self, resources: &mut [Resource]) -> Result<(), Fault> {
        let target = &self.target;
        let same = |id: &Id| match target.namespace.is_empty() {
            // Without a namespace, that of the object does not matter.
            true => id.gvk == target.gvk && id.name == target.name,
            false => id.same(target),
        };
        let mut found = resources.iter_mut().filter(|resource| resource.previous_ids().iter().chain([&resource.id()]).any(same));
        match (found.next(), found.next()) {
            (Some(one), None) => one.vars.push(self.name.clone()),
            (None, _) => {}
            (Some(_), Some(_)) => {
                let message = format!("several objects {} have the value of {}", target.text(), quoted(&self.name));
                return Err(self.fault(message).hint("add objref.namespace, or use replacements"));
            }
        }
        Ok(())
    }

    /// Its value at the end of the build.
    fn value(&self, resources: &[Resource]) -> Result<Option<Known>, Fault> {
        let Some(resource) = resources.iter().find(|resource| resource.vars.contains(&self.name)) else {
            let message = format!("no object {} has the value of {}", self.target.text(), quoted(&self.name));
            return Err(self.fault(message).hint("objref names an object of this kustomization or of its bases"));
        };
        let steps = with_indices(split_brackets(&self.field_path, '.'));
        let missing = || self.fault(format!("{} has no field {}", resource.id().text(), quoted(&self.field_path)));
        let Some(found) = look_up(&resource.tree, &steps).map_err(|message| self.fault(message))? else {
            return Err(missing());
        };
        let Value::Scalar(scalar) = &found.value else { return Ok(None) };
        let (plain, text) = match scalar.tag {
            Tag::Int => {
                let number: i64 = scalar.text.parse().map_err(|_| missing())?;
                (number.to_string(), number.to_string())
            }
            Tag::Float => {
                let number: f64 = scalar.text.parse().map_err(|_| missing())?;
                (number.to_string(), float_text(number))
            }
            Tag::Bool => {
                let text = if scalar.text.starts_with(['t', 'T']) { "true" } else { "false" };
                (text.to_owned(), text.to_owned())
            }
            Tag::String | Tag::Time | Tag::Null => (scalar.text.clone(), scalar.text.clone()),
        };
        let tag = if matches!(scalar.tag, Tag::Int | Tag::Float | Tag::Bool) { scalar.tag } else { Tag::String };
        Ok(Some(Known { scalar: Scalar::tagged(plain, tag), text, at: found.at }))
    }
}

/// Adds vars, whose names must be new.
pub(super) fn add(known: &mut Vec<Var>, more: Vec<Var>) -> Result<(), Fault> {
    for var in more {
        if known.iter().any(|other| other.name == var.name) {
            return Err(var.fault(format!("the name {} is taken by another entry", quoted(&var.name))).hint("rename one of them"));
        }
        known.push(var);
    }
    Ok(())
}

/// `ports[0]` as two steps.
fn with_indices(steps: Vec<String>) -> Vec<String> {
    let mut all = Vec::with_capacity(steps.len());
    for step in steps {
        let index = step.strip_suffix(']').and_then(|step| step.rsplit_once('['));
        match index.filter(|(_, index)| !index.is_empty() && index.bytes().all(|digit| digit.is_ascii_digit())) {
            Some((name, index)) => {
                all.extend([name, index].into_iter().filter(|step| !step.is_empty()).map(str::to_owned));
            }
            None => all.push(step),
        }
    }
    all
}

/// A number as Go's `%v` prints it: with an exponent below 10^-4 and from 10^21 on.
fn float_text(number: f64) -> String {
    let magnitude = number.abs();
    if magnitude == 0.0 || (1e-4..1e21).contains(&magnitude) {
        return number.to_string();
    }
    let text = format!("{number:e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let (sign, digits) = exponent.strip_prefix('-').map_or(("+", exponent), |digits| ("-", digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// Replaces the vars in all fields that may have them. The warnings are about those that no field has.
pub(super) fn resolve(resources: &mut [Resource], vars: &[Var], config: &Config) -> Result<Vec<Fault>, Fault> {
    if vars.is_empty() {
        return Ok(Vec::new());
    }
    let mut sorted: Vec<&Var> = vars.iter().collect();
    sorted.sort_by(|one, other| one.name.cmp(&other.name));
    let mut values = BTreeMap::new();
    for var in sorted {
        values.insert(var.name.as_str(), var.value(resources)?);
    }
    let mut replacer = Replacer { values: &values, used: BTreeSet::new(), left: MAX_TEXT };
    for resource in resources {
        let gvk = resource.gvk();
        for spec in config.var_references.iter().filter(|spec| gvk.is_selected(&spec.gvk)) {
            let spec = FieldSpec { gvk: Gvk::default(), path: spec.path.clone(), create: false };
            visit(&mut resource.tree, &spec, Make::Nothing, 0, &mut |field| replacer.field(field))?;
            resource.tree.settle();
        }
    }
    let unused = |var: &&Var| !replacer.used.contains(&var.name);
    let warning = |var: &Var| var.fault(format!("no field has $({}), so it changes nothing", var.name)).hint("remove it");
    Ok(vars.iter().filter(unused).map(warning).collect())
}

struct Replacer<'v> {
    values: &'v BTreeMap<&'v str, Option<Known>>,
    used: BTreeSet<String>,
    left: usize,
}

impl Replacer<'_> {
    fn field(&mut self, field: &mut Tree) -> Result<(), Fault> {
        let wrong = |at: u32, what: &str| Err(Fault::at(CODE, at, format!("expected a list of strings for vars, found {what}")));
        match &mut field.value {
            Value::Scalar(_) => self.text(field),
            Value::List(items) => items.iter_mut().try_for_each(|item| match &item.value {
                Value::Scalar(scalar) if scalar.tag == Tag::String => self.text(item),
                Value::Scalar(scalar) => wrong(item.at, &scalar.text),
                Value::List(_) | Value::Map(_) => wrong(item.at, item.kind_of_value()),
            }),
            Value::Map(fields) => fields.iter_mut().try_for_each(|field| self.text(&mut field.value)),
        }
    }

    /// Replaces what a string has; anything else stays.
    fn text(&mut self, tree: &mut Tree) -> Result<(), Fault> {
        let Value::Scalar(scalar) = &mut tree.value else { return Ok(()) };
        if scalar.tag != Tag::String || !scalar.text.contains('$') {
            return Ok(());
        }
        let too_long = || Fault::at(code::TOO_COMPLEX, tree.at, "the texts with vars become too long");
        let input = std::mem::take(&mut scalar.text);
        let mut written = String::new();
        let mut rest = input.as_str();
        while let Some(at) = rest.find('$') {
            written.push_str(&rest[..at]);
            let behind = &rest[at + 1..];
            if let Some(name) = behind.strip_prefix('(').and_then(|name| name.split_once(')')).map(|(name, _)| name) {
                rest = &behind[name.len() + 2..];
                let known = self.values.get(name).and_then(Option::as_ref);
                if known.is_some() {
                    self.used.insert(name.to_owned());
                }
                match known {
                    Some(known) if name.len() + 3 == input.len() => {
                        scalar.write(known.scalar.clone());
                        self.left = self.left.checked_sub(scalar.text.len()).ok_or_else(too_long)?;
                        tree.at = known.at;
                        return Ok(());
                    }
                    Some(known) => written.push_str(&known.text),
                    None => written.extend(["$(", name, ")"]),
                }
                // Before the next one: a text may name a long value many times.
                if written.len() > self.left {
                    return Err(too_long());
                }
            } else if let Some(behind) = behind.strip_prefix('$') {
                written.push('$');
                rest = behind;
            } else {
                written.push('$');
                rest = behind;
                // What follows is no further sign.
                if let Some(next) = behind.chars().next() {
                    written.push(next);
                    rest = &behind[next.len_utf8()..];
                }
            }
        }
        written.push_str(rest);
        self.left = self.left.checked_sub(written.len()).ok_or_else(too_long)?;
        scalar.write(Scalar { styled: scalar.styled, ..Scalar::tagged(written, Tag::String) });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_printed_as_go_prints_them() {
        for (number, text) in
            [(1.5, "1.5"), (0.0001, "0.0001"), (0.00001, "1e-05"), (1e21, "1e+21"), (-2.5e30, "-2.5e+30"), (0.0, "0")]
        {
            assert_eq!(float_text(number), text);
        }
    }

    #[test]
    fn indices_are_steps() {
        let steps = |text: &str| with_indices(split_brackets(text, '.'));
        assert_eq!(steps("spec.ports[0].port"), ["spec", "ports", "0", "port"]);
        assert_eq!(steps("spec.[a=b].x[y]"), ["spec", "[a=b]", "x[y]"]);
        assert_eq!(steps("metadata.annotations.[a.b/c]"), ["metadata", "annotations", "a.b/c"]);
    }
}

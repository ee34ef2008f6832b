//! Suggestions for unknown fields.

use super::{Struct, Type};

/// A structure on the way from the object to the unknown field.
#[derive(Clone, Debug)]
pub(super) struct Ancestor {
    pub(super) structure: &'static Struct,
    /// Number of path segments that lead to it.
    pub(super) depth: usize,
}

/// A suggestion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Suggestion {
    /// The hint; `{ancestor}` paths are already in it.
    pub(super) hint: String,
    /// The field of the same structure that was meant.
    pub(super) field: Option<&'static str>,
}

/// Words of other tools for fields of Kubernetes: structure, word, hint.
const FOREIGN_WORDS: &[(&str, &str, &str)] = &[
    ("Container", "cmd", "`command` replaces the image's entrypoint, `args` its arguments"),
    ("Container", "cpu", "write it under resources.limits or resources.requests"),
    ("Container", "entrypoint", "Kubernetes calls it `command`"),
    ("Container", "environment", "Kubernetes calls it `env`, a list of name and value"),
    ("Container", "healthcheck", "Kubernetes calls it `livenessProbe` and `readinessProbe`"),
    ("Container", "limits", "write it under resources"),
    ("Container", "memory", "write it under resources.limits or resources.requests"),
    ("Container", "mounts", "Kubernetes calls it `volumeMounts`"),
    ("Container", "privileged", "write it under securityContext"),
    ("Container", "requests", "write it under resources"),
    ("Container", "restart", "write `restartPolicy` under spec"),
    ("Container", "user", "write `runAsUser` under securityContext"),
    ("Container", "volumes", "list volumes under spec.volumes and mount them with `volumeMounts`"),
    ("ContainerPort", "port", "Kubernetes calls it `containerPort`"),
    ("ContainerPort", "targetPort", "Kubernetes calls it `containerPort`"),
    ("Pod", "template", "a Pod has no template; move its content to the top, or write a Deployment"),
    ("PodSpec", "image", "write it under containers[]"),
    ("PodSpec", "replicas", "a Pod has no replicas; write a Deployment"),
    ("PodSpec", "selector", "a Pod has no selector"),
    ("PodSpec", "template", "a Pod has no template; move the content of template.spec to spec, or write a Deployment"),
    ("ResourceRequirements", "cpu", "write it under limits or requests"),
    ("ResourceRequirements", "memory", "write it under limits or requests"),
    ("VolumeMount", "path", "Kubernetes calls it `mountPath`"),
];

/// A hint for `name`, which the last of `ancestors` does not have. `path` is the path of an ancestor.
pub(super) fn suggest(name: &str, ancestors: &[Ancestor], path: impl Fn(&Ancestor) -> String) -> Option<Suggestion> {
    let (here, above) = ancestors.split_last()?;
    let elsewhere = |hint: String| Some(Suggestion { hint, field: None });
    // In the template of a workload, such a word has slipped too deep.
    let is_of_workload = here.structure.name == "PodSpec" && above.iter().any(|ancestor| ancestor.structure.field(name).is_some());
    let is_word = |(structure, word, _): &&(&str, &str, &str)| *structure == here.structure.name && *word == name;
    let word = FOREIGN_WORDS.iter().find(is_word).filter(|_| !is_of_workload);
    if let Some((_, _, hint)) = word {
        return elsewhere((*hint).to_owned());
    }
    let names = here.structure.fields.iter().map(|field| field.name);
    if let Some(field) = same_letters(name, here.structure) {
        return Some(Suggestion { hint: format!("did you mean \"{field}\"?"), field: Some(field) });
    }
    if let Some(ancestor) = above.iter().rev().find(|ancestor| ancestor.structure.field(name).is_some()) {
        return elsewhere(match path(ancestor).as_str() {
            "" => format!("\"{name}\" belongs at the top of the object"),
            path => format!("\"{name}\" belongs to {path}; check the indentation"),
        });
    }
    let below = children_with(name, here.structure);
    if let [child] | [child, _] = below.as_slice() {
        let other = below.get(1).map(|other| format!(" or {other}")).unwrap_or_default();
        return elsewhere(format!("\"{name}\" belongs under {child}{other}"));
    }
    let field = close_to(name, names)?;
    Some(Suggestion { hint: format!("did you mean \"{field}\"?"), field: Some(field) })
}

/// The nearest of `names`, if one is near enough for a typing error.
pub(crate) fn close_to(name: &str, names: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let letters = letters(name);
    // Nobody mistypes a name of this length, and the comparison is quadratic.
    if letters.len() > 60 {
        return None;
    }
    let nearest = names
        .map(|candidate| (strsim::damerau_levenshtein(&letters, &candidate.to_ascii_lowercase()), candidate))
        .min_by_key(|(distance, _)| *distance)?;
    let (distance, candidate) = nearest;
    (distance <= 1.max(candidate.len().min(name.len()) / 3)).then_some(candidate)
}

/// `host_network`, `hostnetwork` and `HostNetwork` are `hostNetwork`.
fn same_letters(name: &str, structure: &'static Struct) -> Option<&'static str> {
    let letters = letters(name);
    structure.fields.iter().map(|field| field.name).find(|field| field.to_ascii_lowercase() == letters)
}

fn letters(name: &str) -> String {
    name.chars().filter(|character| !matches!(character, '_' | '-' | ' ')).map(|character| character.to_ascii_lowercase()).collect()
}

/// The fields of `structure`, and the fields of those, below which there is a field `name`.
fn children_with(name: &str, structure: &'static Struct) -> Vec<String> {
    let mut found = Vec::new();
    for field in structure.fields {
        let Some(child) = field.ty.structure() else { continue };
        let path = format!("{}{}", field.name, brackets(&field.ty));
        if child.field(name).is_some() {
            found.push(path);
            continue;
        }
        for below in child.fields {
            if below.ty.structure().is_some_and(|structure| structure.field(name).is_some()) {
                found.push(format!("{path}.{}{}", below.name, brackets(&below.ty)));
            }
        }
    }
    // The nearest come first.
    found.sort_by_key(|path| path.matches('.').count());
    let direct = found.iter().filter(|path| !path.contains('.')).count();
    if direct > 0 {
        found.truncate(direct);
    }
    found
}

fn brackets(ty: &Type) -> &'static str {
    if ty.of_items().is_some() { "[]" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::*;

    fn hint(name: &str, ancestors: &[&'static Struct]) -> Option<String> {
        let ancestors: Vec<Ancestor> =
            ancestors.iter().enumerate().map(|(depth, structure)| Ancestor { structure, depth }).collect();
        let path = |ancestor: &Ancestor| if ancestor.depth == 0 { String::new() } else { ancestor.structure.name.to_owned() };
        suggest(name, &ancestors, path).map(|suggestion| suggestion.hint)
    }

    #[test]
    fn a_mistyped_field_is_found_among_those_of_its_place() {
        let spec = [&table::POD, &table::POD_SPEC];
        assert_eq!(hint("hostNetwrok", &spec).unwrap(), "did you mean \"hostNetwork\"?");
        assert_eq!(hint("host_network", &spec).unwrap(), "did you mean \"hostNetwork\"?");
        assert_eq!(hint("Containers", &spec).unwrap(), "did you mean \"containers\"?");
        assert_eq!(hint("frobnicate", &spec), None);
    }

    #[test]
    fn a_field_of_another_level_is_told_its_level() {
        let container = [&table::POD, &table::POD_SPEC, &table::CONTAINER];
        assert_eq!(hint("hostNetwork", &container).unwrap(), "\"hostNetwork\" belongs to PodSpec; check the indentation");
        assert_eq!(hint("runAsUser", &container).unwrap(), "\"runAsUser\" belongs under securityContext");
        assert_eq!(hint("metadata", &container).unwrap(), "\"metadata\" belongs at the top of the object");
        assert_eq!(hint("containerPort", &container).unwrap(), "\"containerPort\" belongs under ports[]");
        assert_eq!(hint("secretKeyRef", &container).unwrap(), "\"secretKeyRef\" belongs under env[].valueFrom");
    }

    #[test]
    fn words_of_other_tools_are_translated() {
        for (structure, word, _) in FOREIGN_WORDS {
            let structure: &'static Struct = match *structure {
                "Container" => &table::CONTAINER,
                "ContainerPort" => &table::CONTAINER_PORT,
                "Pod" => &table::POD,
                "PodSpec" => &table::POD_SPEC,
                "ResourceRequirements" => &table::RESOURCE_REQUIREMENTS,
                "VolumeMount" => &table::VOLUME_MOUNT,
                other => panic!("unknown structure {other}"),
            };
            assert!(structure.field(word).is_none(), "{word} is a field of {}", structure.name);
        }
        assert!(hint("environment", &[&table::CONTAINER]).unwrap().contains("`env`"));
    }
}

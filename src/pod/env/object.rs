//! `envFrom`, `configMapKeyRef` and `secretKeyRef`: variables from objects.

use crate::containers::{list, text};
use crate::objects::{
    Fingerprint, FingerprintKey, Fingerprinting, NotText, ObjectError, ObjectKind, ObjectName, SourceView, namespace_of,
};
use crate::{Pod, validate};
use k8s_openapi::api::core::v1::{Container, EnvFromSource, EnvVarSource};

/// Keys of an object that an `envFrom` leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedKeys {
    /// The object.
    pub object: ObjectName,
    /// The keys, without prefix.
    pub keys: Vec<String>,
}

/// Variables of one `envFrom`.
#[derive(Debug, Default)]
pub(super) struct Whole<'a> {
    /// Names with the prefix, and their values, in the order of the keys.
    pub(super) variables: Vec<(String, &'a str)>,
    pub(super) skipped: Option<SkippedKeys>,
}

/// All of an object. Keys that cannot be names of variables, and values that cannot be theirs, are left out. An object that is not
/// there and need not be gives nothing.
pub(super) fn whole<'a>(pod: &Pod, source: &EnvFromSource, objects: SourceView<'a>) -> Result<Whole<'a>, ObjectError> {
    let Some((name, is_optional)) = whole_reference(pod, source) else { return Ok(Whole::default()) };
    let held = match objects.find(&name) {
        Err(_) if is_optional => return Ok(Whole::default()),
        found => found?,
    };
    let prefix = text(&source.prefix);
    let mut given = Whole::default();
    let mut keys = Vec::new();
    for (key, value) in held.object.texts() {
        let variable = format!("{prefix}{key}");
        match value {
            Ok(value) if validate::is_environment_name(&variable) => given.variables.push((variable, value)),
            Ok(_) | Err(NotText) => keys.push(key.to_owned()),
        }
    }
    given.skipped = (!keys.is_empty()).then_some(SkippedKeys { object: name, keys });
    Ok(given)
}

/// One key of an object; `None` when it is not there and need not be, or when the variable refers to no object.
pub(super) fn single<'a>(pod: &Pod, reference: &EnvVarSource, objects: SourceView<'a>) -> Result<Option<&'a str>, ObjectError> {
    let Some((name, key, is_optional)) = single_reference(pod, reference) else { return Ok(None) };
    let held = match objects.find(&name) {
        Err(_) if is_optional => return Ok(None),
        found => found?,
    };
    match held.object.text(key) {
        Some(Ok(value)) => Ok(Some(value)),
        Some(Err(NotText)) => Err(ObjectError::NotText { name, key: key.to_owned(), from: held.source.clone() }),
        None if is_optional => Ok(None),
        None => Err(ObjectError::NoKey { name, key: key.to_owned(), from: held.source.clone() }),
    }
}

fn whole_reference(pod: &Pod, source: &EnvFromSource) -> Option<(ObjectName, bool)> {
    let (kind, name, optional) = match (&source.config_map_ref, &source.secret_ref) {
        (Some(reference), _) => (ObjectKind::ConfigMap, &reference.name, reference.optional),
        (None, Some(reference)) => (ObjectKind::Secret, &reference.name, reference.optional),
        (None, None) => return None,
    };
    Some((ObjectName { kind, namespace: namespace_of(pod).into(), name: name.into() }, optional == Some(true)))
}

fn single_reference<'a>(pod: &Pod, reference: &'a EnvVarSource) -> Option<(ObjectName, &'a str, bool)> {
    let (kind, name, key, optional) = match (&reference.config_map_key_ref, &reference.secret_key_ref) {
        (Some(selector), _) => (ObjectKind::ConfigMap, &selector.name, &selector.key, selector.optional),
        (None, Some(selector)) => (ObjectKind::Secret, &selector.name, &selector.key, selector.optional),
        (None, None) => return None,
    };
    Some((ObjectName { kind, namespace: namespace_of(pod).into(), name: name.into() }, key, optional == Some(true)))
}

/// Effect of objects on a container's environment, without the values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectEnvironment {
    /// Stands for the values; `None` when the container takes nothing from objects.
    pub fingerprint: Option<Fingerprint>,
    /// The missing object, if a required one is missing.
    pub missing: Option<ObjectError>,
}

/// Fingerprint of the objects in the environment: only the keys that reach it count.
pub fn object_environment(pod: &Pod, container: &Container, objects: SourceView<'_>, key: &FingerprintKey) -> ObjectEnvironment {
    let mut fingerprinting = Fingerprinting::new(key);
    let (mut refers, mut is_settled) = (false, true);
    let mut missing = None;
    for source in list(&container.env_from) {
        let Some((name, _)) = whole_reference(pod, source) else { continue };
        refers = true;
        is_settled &= objects.is_settled(&name);
        match whole(pod, source, objects) {
            Ok(given) => {
                fingerprinting.count(given.variables.len());
                for (variable, value) in given.variables {
                    fingerprinting.add(&variable);
                    fingerprinting.add(value);
                }
            }
            Err(error) => missing = missing.or(Some(error)),
        }
    }
    for variable in list(&container.env) {
        let Some(reference) = variable.value_from.as_ref().filter(|_| text(&variable.value).is_empty()) else { continue };
        let Some((name, ..)) = single_reference(pod, reference) else { continue };
        refers = true;
        is_settled &= objects.is_settled(&name);
        match single(pod, reference, objects) {
            Ok(value) => {
                fingerprinting.count(usize::from(value.is_some()));
                fingerprinting.add(value.unwrap_or_default());
            }
            Err(error) => missing = missing.or(Some(error)),
        }
    }
    let is_sure = is_settled && missing.is_none();
    ObjectEnvironment { fingerprint: refers.then(|| fingerprinting.finish(is_sure)), missing }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Objects;
    use crate::testing::{seen, view};

    const OBJECTS: &str = "{kind: ConfigMap, metadata: {name: m}, data: {a: one, b: two}}
---
{kind: Secret, metadata: {name: s}, data: {p: c2VjcmV0, raw: /w==}}";

    fn pod(container: &str) -> Pod {
        serde_yaml::from_str(&format!("{{metadata: {{name: web}}, spec: {{containers: [{{name: c, {container}}}]}}}}")).unwrap()
    }

    fn of(container: &str, objects: &Objects) -> ObjectEnvironment {
        let pod = pod(container);
        object_environment(&pod, &pod.spec.as_ref().unwrap().containers[0], seen(objects), &FingerprintKey::new([7; 32]))
    }

    const ONE_KEY: &str = "env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: a}}}]";
    const OPTIONAL: &str = "env: [{name: A, valueFrom: {configMapKeyRef: {name: other, key: a, optional: true}}}]";
    const ALL_KEYS: &str = "envFrom: [{configMapRef: {name: m}}]";

    #[test]
    fn only_keys_that_are_used_count() {
        let before = view(&[("a", Some(OBJECTS))]);
        let after = view(&[("a", Some(&OBJECTS.replace("b: two", "b: three")))]);
        assert_eq!(of(ONE_KEY, &before), of(ONE_KEY, &after));
        assert_ne!(of(ALL_KEYS, &before), of(ALL_KEYS, &after));
        let changed = view(&[("a", Some(&OBJECTS.replace("a: one", "a: uno")))]);
        assert_ne!(of(ONE_KEY, &before), of(ONE_KEY, &changed));
    }

    #[test]
    fn a_container_without_references_has_no_fingerprint() {
        let objects = view(&[("a", Some(OBJECTS))]);
        assert_eq!(of("env: [{name: A, value: a}]", &objects), ObjectEnvironment::default());
    }

    #[test]
    fn what_is_missing_makes_it_unsure_and_is_named() {
        let objects = view(&[("a", Some(OBJECTS))]);
        for (container, expected) in [
            ("envFrom: [{secretRef: {name: none}}]", "secret \"none\" not found in namespace \"default\" (looked in source a)"),
            (
                "env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: z}}}]",
                "couldn't find key z in ConfigMap default/m of source a",
            ),
            (
                "env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: raw}}}]",
                "key raw of Secret default/s of source a is not text",
            ),
        ] {
            let found = of(container, &objects);
            assert_eq!(found.missing.unwrap().to_string(), expected);
            assert!(!found.fingerprint.unwrap().is_sure);
        }
    }

    #[test]
    fn an_optional_object_that_is_absent_is_sure_once_every_source_was_heard() {
        let heard = of(OPTIONAL, &view(&[("a", Some(OBJECTS)), ("b", Some(""))]));
        assert_eq!((heard.missing, heard.fingerprint.unwrap().is_sure), (None, true));
        let waiting = of(OPTIONAL, &view(&[("a", Some(OBJECTS)), ("b", None)]));
        assert_eq!((waiting.missing, waiting.fingerprint.unwrap().is_sure), (None, false));
        let before = of(OPTIONAL, &view(&[("a", Some(OBJECTS))]));
        let after = of(OPTIONAL, &view(&[("a", Some("{kind: ConfigMap, metadata: {name: other}, data: {a: ''}}"))]));
        assert_ne!(before, after, "absent is not empty");
    }

    #[test]
    fn an_env_from_leaves_out_what_cannot_be_a_variable_and_says_so() {
        let objects = view(&[("a", Some(OBJECTS))]);
        let pod = pod("envFrom: [{prefix: S_, secretRef: {name: s}}]");
        let source = &pod.spec.as_ref().unwrap().containers[0].env_from.as_ref().unwrap()[0];
        let given = whole(&pod, source, seen(&objects)).unwrap();
        assert_eq!(given.variables, [("S_p".to_owned(), "secret")]);
        assert_eq!(given.skipped.unwrap().keys, ["raw"]);
    }
}

//! From a manifest's ConfigMap or Secret to one that pods may refer to.

use crate::field::{FieldProblem, Problems};
use crate::validate;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret};

/// Judges a ConfigMap; `None` when a problem is an error.
pub fn admit_config_map(config_map: ConfigMap) -> (Option<ConfigMap>, Vec<FieldProblem>) {
    let mut problems = Problems::default();
    validate::objects::config_map(&config_map, &mut problems);
    let accepted = !problems.refuse();
    (accepted.then_some(config_map), problems.into_vec())
}

/// Judges a PersistentVolumeClaim; `None` when a problem is an error. What a server writes is left out.
pub fn admit_claim(mut claim: PersistentVolumeClaim) -> (Option<PersistentVolumeClaim>, Vec<FieldProblem>) {
    let mut problems = Problems::default();
    validate::claims::check(&claim, &mut problems);
    claim.status = None;
    let accepted = !problems.refuse();
    (accepted.then_some(claim), problems.into_vec())
}

/// Merges `stringData` into `data`, over what stands there, as the API server does, and judges the result; `None` when a problem is an error.
pub fn admit_secret(mut secret: Secret) -> (Option<Secret>, Vec<FieldProblem>) {
    if let Some(texts) = secret.string_data.take() {
        let texts = texts.into_iter().map(|(key, value)| (key, ByteString(value.into_bytes())));
        secret.data.get_or_insert_default().extend(texts);
    }
    let mut problems = Problems::default();
    validate::objects::secret(&secret, &mut problems);
    let accepted = !problems.refuse();
    (accepted.then_some(secret), problems.into_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(problems: &[FieldProblem]) -> Vec<String> {
        problems.iter().map(|problem| format!("{}: {}", problem.field, problem.message)).collect()
    }

    fn secret(fields: &str) -> (Option<Secret>, Vec<String>) {
        let (secret, problems) = admit_secret(serde_yaml::from_str(&format!("{{metadata: {{name: s}}, {fields}}}")).unwrap());
        (secret, told(&problems))
    }

    fn config_map(fields: &str) -> Vec<String> {
        told(&admit_config_map(serde_yaml::from_str(&format!("{{metadata: {{name: m}}, {fields}}}")).unwrap()).1)
    }

    #[test]
    fn string_data_goes_over_data() {
        let (accepted, problems) = secret("data: {a: b25l, b: dHdv}, stringData: {b: zwei, c: drei}");
        assert_eq!(problems, Vec::<String>::new());
        let accepted = accepted.unwrap();
        let data: Vec<_> =
            accepted.data.unwrap().into_iter().map(|(key, value)| (key, String::from_utf8(value.0).unwrap())).collect();
        assert_eq!(data, [("a", "one"), ("b", "zwei"), ("c", "drei")].map(|(key, value)| (key.to_owned(), value.to_owned())));
        assert_eq!(accepted.string_data, None);
    }

    #[test]
    fn keys_are_file_names_and_unique() {
        assert_eq!(config_map("data: {a: x, B.c-d_e: y}, binaryData: {f: ''}"), Vec::<String>::new());
        assert_eq!(config_map("data: {a: x}, binaryData: {a: ''}"), ["binaryData[a]: duplicate value \"a\""]);
        let problems = config_map("data: {a/b: x}");
        assert!(problems[0].starts_with("data[a/b]: invalid value \"a/b\": must be 1 to 253"), "{problems:?}");
        assert!(secret("stringData: {..a: x}").1[0].starts_with("data[..a]: invalid value"));
    }

    #[test]
    fn an_object_is_at_most_one_mebibyte() {
        let text = |bytes: usize| format!("data: {{a: '{}'}}", "x".repeat(bytes));
        assert_eq!(config_map(&text(1 << 20)), Vec::<String>::new());
        assert_eq!(config_map(&text((1 << 20) + 1)), ["data: too long: must be at most 1048576 bytes"]);
    }

    #[test]
    fn a_secret_has_what_its_type_demands() {
        assert_eq!(secret("type: kubernetes.io/tls, stringData: {tls.crt: a, tls.key: b}").1, Vec::<String>::new());
        let (accepted, problems) = secret("type: kubernetes.io/tls, stringData: {tls.crt: a}");
        assert_eq!(accepted, None);
        assert_eq!(problems, ["data[tls.key]: is required: every Secret of type kubernetes.io/tls must have it"]);
    }
}

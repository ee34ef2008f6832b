//! Encrypted documents through the whole decoder.

use crate::sops::{Opening, Unopened};
use crate::{Decoded, Limits, Object, decode_sealed};
use podstead_pod::Severity;

fn closed(text: &str, unopened: Unopened) -> Decoded {
    decode_sealed("s.yaml", text.as_bytes(), &Limits::default(), &Opening { unopened, ..Opening::default() })
}

const CLOSED: &str = "apiVersion: v1
kind: Secret
metadata: {name: s}
data: {password: 'ENC[AES256_GCM,data:AA==,iv:AA==,tag:AA==,type:str]'}
sops: {age: [{recipient: age1other, enc: x}], mac: m, lastmodified: z}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
";

#[test]
fn a_document_that_cannot_be_opened_is_told_once_with_its_object_and_the_others_are_read() {
    let decoded = closed(CLOSED, Unopened::Refused);
    let [problem] = decoded.problems.try_into().unwrap();
    let told = problem.to_string();
    assert!(told.starts_with("s.yaml:5:1: error[sops]: sops: is encrypted with SOPS for age1other, but this "), "{told}");
    assert_eq!(problem.object.as_ref().unwrap().name, "s");
    assert_eq!(decoded.broken, [problem.object]);
    assert!(matches!(&decoded.objects[..], [only] if matches!(&only.object, Object::ConfigMap(_))));
}

#[test]
fn without_a_key_the_rest_is_checked_where_that_is_wished() {
    let decoded = closed(CLOSED, Unopened::Noted);
    assert_eq!((decoded.objects.len(), decoded.broken.len()), (2, 0));
    let [note] = decoded.problems.try_into().unwrap();
    assert_eq!(note.severity, Severity::Warning);
    assert!(
        note.message.ends_with("only its unencrypted values were checked") && note.object.unwrap().name == "s",
        "{}",
        note.message
    );
    let misspelt = closed(&CLOSED.replace("\ndata: {", "\nimutable: true\ndata: {"), Unopened::Noted);
    assert!(misspelt.problems.iter().any(|problem| problem.field == "imutable"), "{:?}", misspelt.problems);
    let all = closed(&CLOSED.replace("name: s", "name: 'ENC[AES256_GCM,x]'"), Unopened::Noted);
    assert_eq!((all.objects.len(), all.broken.len()), (1, 0), "{:?}", all.problems);
    assert!(all.problems[0].message.ends_with("it was not checked"));
}

#[test]
fn a_document_whose_name_is_encrypted_leaves_the_file_unclear() {
    let decoded = closed(&CLOSED.replace("name: s", "name: 'ENC[AES256_GCM,x]'"), Unopened::Refused);
    assert_eq!(decoded.broken, [None]);
}

#[test]
fn what_no_key_can_open_is_refused_everywhere_and_says_what_to_do() {
    for (metadata, expected) in [
        ("sops: {pgp: [{fp: x}], kms: [{arn: x}], mac: m, lastmodified: z}", "only for PGP, AWS KMS; only age is supported"),
        ("sops: {key_groups: [{age: []}, {pgp: []}], mac: m, lastmodified: z}", "several key groups"),
        ("sops: {mac: m, lastmodified: z}", "it has no recipients"),
        ("sops: {age: [{enc: x}], mac: m, lastmodified: z}", "an age recipient has no encrypted data key"),
        ("sops: {age: [{recipient: r, enc: x}], lastmodified: z}", "it has no MAC"),
        ("sops: {age: [{recipient: r, enc: x}], mac: m}", "it has no lastmodified"),
        ("sops: {age: [], mac: m, lastmodified: z, encrypted_suffix: a, encrypted_regex: b}", "more than one encryption rule"),
        ("sops: yes", "it has no MAC"),
        ("sops:", "it has no MAC"),
    ] {
        let text = CLOSED.replace("sops: {age: [{recipient: age1other, enc: x}], mac: m, lastmodified: z}", metadata);
        assert_ne!(text, CLOSED);
        for unopened in [Unopened::Refused, Unopened::Noted] {
            let decoded = closed(&text, unopened);
            assert_eq!(decoded.broken.len(), 1, "{metadata}");
            let told = decoded.problems[0].to_string();
            assert!(told.contains(expected) && told.contains(" ("), "{told}");
        }
    }
}

#[cfg(feature = "sops")]
mod opened {
    use super::*;
    use crate::sops::testing::{DATA_KEY, IDENTITY, seal, wrapped};
    use crate::sops::{Identities, Mac};

    const TIME: &str = "2025-01-01T00:00:00Z";

    fn metadata(mac: &str, more: &str) -> String {
        let enc = wrapped(IDENTITY, &DATA_KEY).trim_end().replace('\n', "\n        ");
        format!(
            "sops:\n  age:\n    - recipient: age1x\n      enc: |\n        {enc}\n  lastmodified: \"{TIME}\"\n  mac: {mac}\n  {more}\n"
        )
    }

    /// A document as SOPS writes it, with these sealed values and this MAC.
    fn document(password: &str, mac: &str, more: &str) -> String {
        let head = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  labels: {n: \"1\"}\nimmutable: true\nstringData:\n";
        format!("{head}  empty: \"\"\n  password: {password}\n{}", metadata(mac, more))
    }

    fn mac_of(values: &[&str], is_of_sealed_only: bool) -> String {
        let mut mac = Mac::new(is_of_sealed_only);
        values.iter().for_each(|value| mac.add(value));
        seal(&mac.finish(), "str", TIME)
    }

    const REGEX: &str = "encrypted_regex: ^(data|stringData)$";

    fn good() -> String {
        let password = seal("hunter2", "str", "stringData:password:");
        document(&password, &mac_of(&["v1", "Secret", "s", "1", "True", "", "hunter2"], false), REGEX)
    }

    fn opening() -> Opening {
        Opening { identities: Identities::parse(IDENTITY).unwrap(), ..Opening::default() }
    }

    fn decoded(text: &str) -> Decoded {
        decode_sealed("s.yaml", text.as_bytes(), &Limits::default(), &opening())
    }

    fn password(text: &str) -> Result<String, String> {
        let decoded = decoded(text);
        match decoded.objects.first().map(|object| &object.object) {
            Some(Object::Secret(secret)) => Ok(secret.string_data.as_ref().unwrap()["password"].clone()),
            Some(_) | None => Err(decoded.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
        }
    }

    #[test]
    fn a_secret_is_opened_and_keeps_its_places() {
        assert_eq!(password(&good()), Ok("hunter2".to_owned()));
        let wrong = good().replace("immutable: true", "immutable: True\nstringDate: {}");
        assert!(
            password(&wrong).unwrap_err().starts_with("s.yaml:7:1: error[unknown-field]: stringDate"),
            "{:?}",
            password(&wrong)
        );
    }

    #[test]
    fn what_was_changed_moved_or_added_is_refused() {
        let good = good();
        for (changed, expected) in [
            (good.replace("name: s\n", "name: other\n"), "sops.mac: the MAC does not match"),
            (good.replace("n: \"1\"", "n: \"2\""), "the MAC does not match"),
            (good.replace("immutable: true\n", ""), "the MAC does not match"),
            (
                good.replace("  password: ", "  pass: "),
                "s.yaml:9:9: error[sops]: stringData.pass: the value was changed or moved after",
            ),
            (
                good.replace("  empty: \"\"", "  empty: plain"),
                "s.yaml:8:10: error[sops]: stringData.empty: the value is not encrypted",
            ),
            (good.replace("lastmodified: \"2025", "lastmodified: \"2026"), "the MAC does not match"),
            (good.replace("mac: ENC", "mac: EMC"), "the MAC does not match"),
        ] {
            assert_ne!(changed, good);
            let told = password(&changed).unwrap_err();
            assert!(told.contains(expected) && !told.contains("hunter2"), "{told}");
        }
    }

    #[test]
    fn the_mac_may_be_over_what_is_sealed_only_and_then_nothing_can_be_added_in_clear() {
        let more = format!("mac_only_encrypted: true\n  {REGEX}");
        let text = document(&seal("hunter2", "str", "stringData:password:"), &mac_of(&["", "hunter2"], true), &more);
        assert_eq!(password(&text), Ok("hunter2".to_owned()));
        assert_eq!(password(&text.replace("n: \"1\"", "n: \"2\"")), Ok("hunter2".to_owned()));
        assert!(password(&text.replace("mac_only_encrypted: true", "version: 3.10.2")).is_err());
        let added = text.replace("  empty: \"\"", "  empty: \"\"\n  user: root");
        assert!(password(&added).unwrap_err().contains("stringData.user: the value is not encrypted"));
    }

    #[test]
    fn one_mac_is_over_all_documents_that_were_encrypted_together() {
        let config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n";
        let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n";
        let mac = mac_of(&["v1", "ConfigMap", "c", "v1", "Secret", "s", "hunter2"], false);
        let tail = metadata(&mac, REGEX);
        let text = format!(
            "{config_map}{tail}---\n{secret}stringData: {{password: '{}'}}\n{tail}",
            seal("hunter2", "str", "stringData:password:")
        );
        let all = decoded(&text);
        assert_eq!((all.objects.len(), all.problems), (2, vec![]));
        let (first, second) = text.split_once("\n---\n").unwrap();
        for part in [first, second, &format!("{second}---\n{first}")] {
            assert!(
                decoded(part).problems.iter().all(|problem| problem.message.contains("MAC")) && decoded(part).objects.is_empty()
            );
        }
        // Another one, encrypted apart, may follow.
        let apart = good().replace("name: s\n", "name: t\n");
        let mac_of_s = mac_of(&["v1", "Secret", "s", "1", "True", "", "hunter2"], false);
        let apart = apart.replace(&mac_of_s, &mac_of(&["v1", "Secret", "t", "1", "True", "", "hunter2"], false));
        assert_eq!(decoded(&format!("{text}---\n{apart}")).objects.len(), 3);
    }

    #[test]
    fn all_of_a_pod_may_be_encrypted_and_numbers_are_what_they_were() {
        let text = |plain: &str, kind: &str, place: &str| seal(plain, kind, place);
        let mac = mac_of(&["v1", "Pod", "p", "a", "b", "8080", "7", "True"], false);
        let pod = format!(
            "{{\"apiVersion\": \"{}\", \"kind\": \"{}\", \"metadata\": {{\"name\": \"{}\"}},
             \"spec\": {{\"containers\": [{{\"name\": \"{}\", \"image\": \"{}\", \"ports\": [{{\"containerPort\": \"{}\"}}]}}],
             \"terminationGracePeriodSeconds\": \"{}\", \"hostNetwork\": \"{}\"}}, \"sops\": {{\"age\": [{{\"recipient\": \"r\", \"enc\": {}}}],
             \"lastmodified\": \"{TIME}\", \"mac\": \"{mac}\"}}}}",
            text("v1", "str", "apiVersion:"),
            text("Pod", "str", "kind:"),
            text("p", "str", "metadata:name:"),
            text("a", "str", "spec:containers:name:"),
            text("b", "str", "spec:containers:image:"),
            text("8080", "float", "spec:containers:ports:containerPort:"),
            text("7", "int", "spec:terminationGracePeriodSeconds:"),
            text("True", "bool", "spec:hostNetwork:"),
            serde_json::to_string(&wrapped(IDENTITY, &DATA_KEY)).unwrap(),
        );
        let decoded = decoded(&pod);
        let [object] = decoded.objects.try_into().unwrap_or_else(|_| panic!("{:?}", decoded.problems));
        let Object::Pod(pod) = object.object else { panic!("no pod") };
        let spec = pod.spec.unwrap();
        assert_eq!(spec.containers[0].ports.as_ref().unwrap()[0].container_port, 8080);
        assert_eq!((spec.termination_grace_period_seconds, spec.host_network), (Some(7), Some(true)));
        let [note] = decoded.problems.try_into().unwrap();
        assert!(note.severity == Severity::Warning && note.message.contains("unencrypted on this host's disk"), "{note}");
    }

    #[test]
    fn a_wrong_key_is_told_with_the_names_of_the_recipients() {
        let other = "AGE-SECRET-KEY-184JMZMVQH3E6U0PSL869004Y3U2NYV7R30EU99CSEDNPH02YUVFSZW44VU";
        let opening = Opening { identities: Identities::parse(other).unwrap(), ..Opening::default() };
        let told = decode_sealed("s.yaml", good().as_bytes(), &Limits::default(), &opening).problems[0].to_string();
        assert!(told.contains("for age1x, but this host is age1") && told.contains("sops updatekeys"), "{told}");
    }

    #[test]
    fn many_wrapped_keys_are_not_tried_without_end() {
        let one = good().replace("metadata:\n", "metadata:\n  # x\n");
        let many: Vec<String> =
            (0..2100).map(|n| format!("sops: {{age: [{{recipient: a, enc: b}}], mac: m{n}, lastmodified: z}}\na: b")).collect();
        let decoded = decoded(&format!("{}\n---\n{one}", many.join("\n---\n")));
        assert!(decoded.problems.iter().any(|problem| problem.message.contains("too many encrypted data keys")));
    }
}

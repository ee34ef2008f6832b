//! Secrets as they lie on disk: encrypted with this host's key, since what is accepted has to be durable and a disk may be lost.
//!
//! A sealed Secret keeps its name and has one entry, [`MARK`], which no manifest can have: nonce and ChaCha20-Poly1305 ciphertext of the
//! whole object. Source and name are authenticated with it, so that one cannot be put in another's place. One that cannot be opened (the
//! key was lost, or replaced) is left out and reported: its pods wait or keep running until its source delivers it again.

use super::check::{Accepted, AcceptedObject};
use super::undelta::{KeptFile, KeptFiles};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use podstead_manifest::ObjectKey;
use podstead_pod::SourceId;
use podstead_sys::machine_key::MachineKey;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;

/// The only entry of a sealed Secret.
const MARK: &str = "podstead.dev/sealed";
const PURPOSE: &str = "podstead secrets at rest 1";

/// Seals the Secrets of one source.
pub(super) struct Sealer {
    source: SourceId,
    key: LessSafeKey,
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("source", &self.source).finish_non_exhaustive()
    }
}

impl Sealer {
    /// For the Secrets of `source` on this host.
    pub(super) fn new(key: &MachineKey, source: SourceId) -> io::Result<Self> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, &key.derive(PURPOSE)).map_err(|_| io::Error::other("set up the cipher"))?;
        Ok(Self { source, key: LessSafeKey::new(key) })
    }

    /// The files with their Secrets sealed.
    pub(super) fn seal(&self, files: &KeptFiles) -> io::Result<KeptFiles> {
        let mut sealed = KeptFiles::new();
        for (name, KeptFile { objects, unclear, layer, changes }) in files {
            let objects = objects.iter().map(|accepted| match &accepted.object {
                AcceptedObject::Secret(secret) => {
                    let object = AcceptedObject::Secret(Arc::new(self.sealed(&accepted.key, secret)?));
                    Ok(Accepted { object, ..accepted.clone() })
                }
                AcceptedObject::Pod(_)
                | AcceptedObject::ConfigMap(_)
                | AcceptedObject::PersistentVolumeClaim(_)
                | AcceptedObject::Workload(_)
                | AcceptedObject::Network(_) => Ok(accepted.clone()),
            });
            let objects = objects.collect::<io::Result<Vec<_>>>()?;
            sealed.insert(name.clone(), KeptFile { objects, unclear: *unclear, layer: *layer, changes: changes.clone() });
        }
        Ok(sealed)
    }

    /// The files as they were before [`Sealer::seal`], and the Secrets that cannot be opened.
    pub(super) fn open(&self, mut files: KeptFiles) -> (KeptFiles, Vec<ObjectKey>) {
        let mut lost = Vec::new();
        for file in files.values_mut() {
            file.objects.retain_mut(|accepted| {
                let AcceptedObject::Secret(secret) = &accepted.object else { return true };
                let Some(sealed) = sealed_bytes(secret) else { return true };
                match self.opened(&accepted.key, sealed) {
                    Some(secret) => {
                        accepted.object = AcceptedObject::Secret(Arc::new(secret));
                        true
                    }
                    None => {
                        lost.push(ObjectKey::clone(&accepted.key));
                        false
                    }
                }
            });
        }
        (files, lost)
    }

    fn place(&self, key: &ObjectKey) -> Aad<String> {
        Aad::from(format!("{}\n{}\n{}", self.source, key.namespace, key.name))
    }

    fn sealed(&self, key: &ObjectKey, secret: &Secret) -> io::Result<Secret> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| io::Error::other("get random bytes"))?;
        let mut text = serde_json::to_vec(secret)?;
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), self.place(key), &mut text)
            .map_err(|_| io::Error::other("encrypt a Secret"))?;
        let mut bytes = nonce.to_vec();
        bytes.extend(text);
        Ok(Secret { data: Some(BTreeMap::from([(MARK.to_owned(), ByteString(bytes))])), ..Secret::default() })
    }

    fn opened(&self, key: &ObjectKey, sealed: &[u8]) -> Option<Secret> {
        let (nonce, text) = sealed.split_at_checked(NONCE_LEN)?;
        let mut text = text.to_vec();
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let text = self.key.open_in_place(nonce, self.place(key), &mut text).ok()?;
        serde_json::from_slice(text).ok()
    }
}

/// Reports whether there are Secrets.
pub(super) fn has_secrets(files: &KeptFiles) -> bool {
    let is_secret = |accepted: &Accepted| matches!(accepted.object, AcceptedObject::Secret(_));
    files.values().flat_map(|file| &file.objects).any(is_secret)
}

fn sealed_bytes(secret: &Secret) -> Option<&[u8]> {
    secret.data.as_ref()?.get(MARK).map(|bytes| bytes.0.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CheckContext, check};
    use podstead_pod::{AdmitContext, NodeName};

    const TEXT: &str = "apiVersion: v1
kind: Secret
metadata: {name: s, labels: {a: b}}
type: example.org/x
immutable: true
stringData: {password: hunter2}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {a: b}
";

    fn files() -> KeptFiles {
        let context = CheckContext::new(AdmitContext::new(NodeName::new("edge")));
        let checked = check("s.yaml", TEXT.as_bytes(), &context, &podstead_manifest::PatchesByObject::new());
        assert_eq!(checked.problems, []);
        KeptFiles::from([("s.yaml".into(), KeptFile { objects: checked.accepted, unclear: true, ..KeptFile::default() })])
    }

    fn sealer(key: u8, source: &str) -> Sealer {
        Sealer::new(&MachineKey::new([key; 32]), SourceId::new(source)).unwrap()
    }

    #[test]
    fn what_is_sealed_is_opened_to_the_last_field() {
        let sealed = sealer(1, "a").seal(&files()).unwrap();
        let text = serde_json::to_string(&sealed).unwrap();
        for hidden in ["hunter2", "aHVudGVyMg", "password", "example.org"] {
            assert!(!text.contains(hidden), "{text}");
        }
        assert!(text.contains("\"c\""), "a ConfigMap is not sealed");
        assert_eq!(sealer(1, "a").open(sealed), (files(), Vec::new()));
    }

    #[test]
    fn another_key_source_name_or_byte_opens_nothing_and_costs_no_other_object() {
        let sealed = sealer(1, "a").seal(&files()).unwrap();
        let lost = |sealer: Sealer, sealed: KeptFiles| {
            let (opened, lost) = sealer.open(sealed);
            assert_eq!(opened["s.yaml"].objects.len(), 2 - lost.len());
            lost.iter().map(|key| key.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(lost(sealer(2, "a"), sealed.clone()), ["s"]);
        assert_eq!(lost(sealer(1, "b"), sealed.clone()), ["s"]);
        let mut renamed = sealed.clone();
        Arc::make_mut(&mut renamed.get_mut("s.yaml").unwrap().objects[0].key).name = "other".into();
        assert_eq!(lost(sealer(1, "a"), renamed), ["other"]);
        let text = serde_json::to_value(&sealed).unwrap();
        let mut flipped: KeptFiles = serde_json::from_value(text).unwrap();
        if let AcceptedObject::Secret(secret) = &mut flipped.get_mut("s.yaml").unwrap().objects[0].object {
            Arc::make_mut(secret).data.as_mut().unwrap().get_mut(MARK).unwrap().0[20] ^= 1;
        }
        assert_eq!(lost(sealer(1, "a"), flipped), ["s"]);
    }

    #[test]
    fn what_was_written_before_there_was_a_key_is_read_as_it_is() {
        assert_eq!(sealer(1, "a").open(files()), (files(), Vec::new()));
    }

    #[test]
    fn no_manifest_can_look_sealed() {
        let context = CheckContext::new(AdmitContext::new(NodeName::new("edge")));
        let text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {podstead.dev/sealed: AAAA}\n";
        assert_eq!(check("s.yaml", text.as_bytes(), &context, &podstead_manifest::PatchesByObject::new()).accepted, []);
    }
}

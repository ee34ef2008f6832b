//! A key with its owner's statements: names, subkeys, expiry, revocations (RFC 9580, 10.1). Statements of others are not kept.

use super::key::PublicKey;
use super::signature::{
    CERTIFICATION_REVOCATION, CERTIFICATIONS, DIRECT, KEY_REVOCATION, SUBKEY_BINDING, SUBKEY_REVOCATION, Signature, later,
};
use crate::{Signer, TrustError};
use jiff::Timestamp;

/// Characters of a name that are shown.
const MAX_NAME: usize = 200;
const NO_STATEMENT: &str = "has no valid self-signature";
const WEAK_STATEMENT: &str =
    "has no self-signature with SHA-256 or better: its owner can renew it, for example with gpg --quick-set-expire";

/// A primary key and what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Certificate {
    primary: PublicKey,
    /// Over the primary key alone.
    direct: Vec<Signature>,
    users: Vec<User>,
    subkeys: Vec<Subkey>,
    /// Fingerprints of other keys that revoke it.
    revoked_by: Vec<[u8; 20]>,
    /// There is a revocation in a form that cannot be verified.
    has_obscure_revocation: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct User {
    /// The packet, as it is hashed for signatures over it.
    framed: Vec<u8>,
    /// `None` for a picture.
    name: Option<String>,
    signatures: Vec<Signature>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Subkey {
    key: PublicKey,
    signatures: Vec<Signature>,
    has_obscure_revocation: bool,
}

/// Subject of a signature packet: the packet that it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    Key,
    /// The user that was added last.
    User,
    /// The subkey that was added last.
    Subkey,
    /// Something that is not kept.
    Nothing,
}

/// Statements of the owner about the key as a whole.
struct Standing {
    principal: String,
    may_sign: Option<bool>,
    ends: Option<Timestamp>,
    revokers: Vec<[u8; 20]>,
}

impl Certificate {
    pub(super) fn new(primary: PublicKey) -> Self {
        let (direct, users, subkeys, revoked_by) = Default::default();
        Self { primary, direct, users, subkeys, revoked_by, has_obscure_revocation: false }
    }

    pub(super) fn primary(&self) -> &PublicKey {
        &self.primary
    }

    /// Adds a user; `prefix` is that of the packet's kind where it is hashed.
    pub(super) fn add_user(&mut self, prefix: u8, body: &[u8], name: Option<String>) {
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        self.users.push(User { framed: [&[prefix][..], &length.to_be_bytes(), body].concat(), name, signatures: Vec::new() });
    }

    pub(super) fn add_subkey(&mut self, key: PublicKey) {
        self.subkeys.push(Subkey { key, signatures: Vec::new(), has_obscure_revocation: false });
    }

    /// Adds a signature about what was added last, as far as it is one by the owner, or revokes the key.
    pub(super) fn add_signature(&mut self, about: About, body: &[u8]) {
        let Ok(signature) = Signature::parse(body) else {
            // Version 3 has its kind in the third byte, version 6 in the second.
            let kind = if body.first() == Some(&3) { body.get(2) } else { body.get(1) };
            match (kind, self.subkeys.last_mut()) {
                (Some(&KEY_REVOCATION), _) => self.has_obscure_revocation = true,
                (Some(&SUBKEY_REVOCATION), Some(subkey)) => subkey.has_obscure_revocation = true,
                _ => {}
            }
            return;
        };
        match signature.is_by(&self.primary) {
            false if signature.kind == KEY_REVOCATION => self.revoked_by.extend(signature.issuer_fingerprint()),
            false => {}
            // Also where it stands at another place than where it belongs.
            true if matches!(signature.kind, DIRECT | KEY_REVOCATION) => self.direct.push(signature),
            true => match about {
                About::User => self.users.last_mut().into_iter().for_each(|user| user.signatures.push(signature.clone())),
                About::Subkey => self.subkeys.last_mut().into_iter().for_each(|subkey| subkey.signatures.push(signature.clone())),
                About::Key | About::Nothing => {}
            },
        }
    }

    /// Returns the signer of `signature`, if it names a key of this certificate that may sign at `at`; `None` if it names another key.
    pub(super) fn signer(&self, signature: &Signature, at: Timestamp) -> Option<Result<(Signer, &PublicKey), TrustError>> {
        if signature.is_by(&self.primary) {
            return Some(self.may_sign(None, at).map(|signer| (signer, &self.primary)));
        }
        let subkey = self.subkeys.iter().find(|subkey| signature.is_by(&subkey.key))?;
        Some(self.may_sign(Some(subkey), at).map(|signer| (signer, &subkey.key)))
    }

    fn may_sign(&self, subkey: Option<&Subkey>, at: Timestamp) -> Result<Signer, TrustError> {
        let Standing { principal, may_sign, ends, revokers } = self.standing()?;
        let signer = Signer { principal, key: self.primary.fingerprint() };
        let is_revoked = self.has_obscure_revocation
            || self.revoked_by.iter().any(|other| revokers.contains(other))
            || self.direct.iter().any(|made| made.kind == KEY_REVOCATION && holds(made, &self.primary, &[self.primary.framed()]));
        if is_revoked {
            return Err(TrustError::Revoked { key: self.primary.fingerprint(), principal: signer.principal });
        }
        check_end(&self.primary, ends, &signer, at)?;
        match subkey {
            Some(subkey) => self.check_subkey(subkey, &signer, at)?,
            None if may_sign == Some(false) => return Err(unusable(&self.primary, "is not for signing")),
            None => {}
        }
        Ok(signer)
    }

    fn check_subkey(&self, subkey: &Subkey, signer: &Signer, at: Timestamp) -> Result<(), TrustError> {
        let signed = [self.primary.framed(), subkey.key.framed()];
        let is_revocation = |made: &&Signature| made.kind == SUBKEY_REVOCATION;
        if subkey.has_obscure_revocation
            || subkey.signatures.iter().filter(is_revocation).any(|made| holds(made, &self.primary, &signed))
        {
            return Err(TrustError::Revoked { key: subkey.key.fingerprint(), principal: signer.principal.clone() });
        }
        let bindings = subkey.signatures.iter().filter(|made| made.kind == SUBKEY_BINDING);
        let newest = newest(bindings, &self.primary, &signed).map_err(|reason| unusable(&subkey.key, reason))?;
        if newest.may_sign() != Some(true) {
            return Err(unusable(&subkey.key, "is a subkey that is not for signing"));
        }
        if !newest.has_back_signature(&self.primary, &subkey.key) {
            return Err(unusable(&subkey.key, "is a subkey without a signature that binds it to its primary key"));
        }
        check_end(&subkey.key, end(&subkey.key, newest), signer, at)
    }

    /// The newest valid statement of the owner counts. One that is made only to name who may revoke the key says nothing about its end.
    fn standing(&self) -> Result<Standing, TrustError> {
        let framed = self.primary.framed();
        let mut why = NO_STATEMENT;
        let mut named: Vec<(&Signature, Option<&str>)> = Vec::new();
        for user in &self.users {
            let signed = [framed, user.framed.as_slice()];
            let certifications = user.signatures.iter().filter(|made| CERTIFICATIONS.contains(&made.kind));
            let certification = match newest(certifications, &self.primary, &signed) {
                Ok(certification) => certification,
                Err(reason) => {
                    why = if why == NO_STATEMENT { reason } else { why };
                    continue;
                }
            };
            let is_withdrawn = user.signatures.iter().any(|made| {
                made.kind == CERTIFICATION_REVOCATION
                    && made.says.created >= certification.says.created
                    && holds(made, &self.primary, &signed)
            });
            if !is_withdrawn {
                named.push((certification, user.name.as_deref()));
            }
        }
        let direct: Vec<&Signature> =
            self.direct.iter().filter(|made| made.kind == DIRECT && made.stated_by(&self.primary, &[framed]).is_ok()).collect();
        let speaks = |made: &&&Signature| named.is_empty() || made.may_sign().is_some() || made.says.key_lasts.is_some();
        let statements = named.iter().map(|(made, _)| *made).chain(direct.iter().filter(speaks).copied());
        let statement = statements.max_by_key(|made| made.says.created).ok_or_else(|| unusable(&self.primary, why))?;
        let name = named.iter().filter_map(|(made, name)| Some((made.says.is_primary_user, made.says.created, (*name)?))).max();
        Ok(Standing {
            principal: name.map_or_else(|| "a key without a name".to_owned(), |(_, _, name)| shown(name)),
            may_sign: statement.may_sign(),
            ends: end(&self.primary, statement),
            revokers: named.iter().map(|(made, _)| *made).chain(direct).flat_map(|made| made.says.revokers.clone()).collect(),
        })
    }
}

/// The newest of these that holds, or why there is none.
fn newest<'a>(
    signatures: impl Iterator<Item = &'a Signature>,
    primary: &PublicKey,
    signed: &[&[u8]],
) -> Result<&'a Signature, &'static str> {
    let mut why = NO_STATEMENT;
    let mut newest: Option<&Signature> = None;
    for signature in signatures.filter(|signature| signature.is_by(primary)) {
        match signature.stated_by(primary, signed) {
            Ok(created) if newest.is_none_or(|newest| newest.says.created < Some(created)) => newest = Some(signature),
            Ok(_) => {}
            Err(TrustError::Algorithm { what: "hash", .. }) => why = WEAK_STATEMENT,
            Err(TrustError::KeyUnusable { reason, .. }) => why = reason,
            Err(_) => {}
        }
    }
    newest.ok_or(why)
}

/// Reports whether a revocation counts: the owner made it, or it cannot be verified, which is treated as revoked to be safe.
fn holds(revocation: &Signature, primary: &PublicKey, signed: &[&[u8]]) -> bool {
    !matches!(revocation.verify(primary, signed), Err(TrustError::Mismatch { .. }))
}

fn end(key: &PublicKey, statement: &Signature) -> Option<Timestamp> {
    let of_key = statement.says.key_lasts.map(|lasts| later(key.created, lasts));
    [of_key, statement.lasts_until()].into_iter().flatten().min()
}

fn check_end(key: &PublicKey, end: Option<Timestamp>, signer: &Signer, at: Timestamp) -> Result<(), TrustError> {
    match end {
        Some(until) if at >= until => {
            Err(TrustError::Expired { key: key.fingerprint(), principal: signer.principal.clone(), until, at })
        }
        Some(_) | None => Ok(()),
    }
}

pub(super) fn unusable(key: &PublicKey, reason: &'static str) -> TrustError {
    TrustError::KeyUnusable { key: key.fingerprint(), reason }
}

fn shown(name: &str) -> String {
    name.chars().take(MAX_NAME).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

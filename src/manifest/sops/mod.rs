//! Opening what SOPS has encrypted for age recipients: identities, the data key of a document, its values, its MAC. **Pure**.
//!
//! In: the text of an identity file (as `age-keygen` writes it), wrapped data keys and sealed values as they stand in a document. Out:
//! plain values. The walk over the document is [`crate`]'s, so that every value keeps its place. Formats: SOPS 3
//! (`ENC[AES256_GCM,...]`), and age v1 by the crate `age`. Only with the cargo feature `sops` can anything be opened; without it, that is said.

mod error;
mod key;
mod mac;
mod rule;
mod value;

pub use error::SopsError;
pub use key::{DataKey, Identities, Wrapped};
pub use mac::Mac;
pub use rule::{Rule, RuleKind};
pub use value::{Plain, is_sealed};

/// Keys for encrypted manifests, and the treatment of those that cannot be decrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// The age identities of this host.
    pub identities: Identities,
    /// Treatment of a document that none of them decrypts.
    pub unopened: Unopened,
}

/// Treatment of a document for which there is no key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unopened {
    /// It is refused: its objects keep their last good version.
    #[default]
    Refused,
    /// It gets a warning, and its unencrypted values are checked: for machines that check manifests for others.
    Noted,
}

#[cfg(test)]
#[cfg(feature = "sops")]
pub(crate) mod testing {
    //! Sealing, for tests of what opens.
    pub(crate) use super::key::tests::{DATA_KEY, IDENTITY, seal, wrapped};
}

//! Errors of decryption.

/// Reason why a document cannot be decrypted. Never contains its content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SopsError {
    /// Built without the feature.
    #[error("is encrypted with SOPS for {wanted}, but this podstead is built without the feature sops")]
    NotBuiltIn {
        /// The recipients of the document.
        wanted: String,
    },
    /// There is no identity to try.
    #[error("is encrypted with SOPS for {wanted}, but this host has no age identity")]
    NoIdentity {
        /// The recipients of the document.
        wanted: String,
    },
    /// None of the identities is a recipient.
    #[error("is encrypted with SOPS for {wanted}, but this host is {present}")]
    NotForThisHost {
        /// The recipients of the document.
        wanted: String,
        /// The recipients that this host can open for.
        present: String,
    },
    /// Nothing was encrypted for age.
    #[error("is encrypted with SOPS only for {services}; only age is supported")]
    OtherService {
        /// The services that hold its key.
        services: String,
    },
    /// The data key is split.
    #[error("is encrypted with SOPS for several key groups, which are not supported")]
    KeyGroups,
    /// The metadata of SOPS are not as it writes them.
    #[error("malformed SOPS metadata: {0}")]
    Metadata(&'static str),
    /// The file has too many encrypted data keys.
    #[error("the file has too many encrypted data keys")]
    TooManyKeys,
    /// A line of the identity file is not an identity.
    #[error("line {0} of the age key file is not an X25519 identity (AGE-SECRET-KEY-1...)")]
    Identity(usize),
    /// A value was sealed in another way, or garbled.
    #[error("the value is not in the format of SOPS")]
    Malformed,
    /// A value in clear where it would not be if SOPS had written it.
    #[error("the value is not encrypted, but should be according to the SOPS metadata")]
    InClear,
    /// A value cannot be opened: it was changed, moved, or sealed with another key.
    #[error("the value was changed or moved after it was encrypted")]
    Forged,
    /// The values are not the ones that were there.
    #[error("the MAC does not match: values were changed, added or removed after the file was encrypted")]
    MacMismatch,
}

impl SopsError {
    /// Reports whether a host with another key might decrypt it.
    pub fn lacks_a_key(&self) -> bool {
        match self {
            Self::NotBuiltIn { .. } | Self::NoIdentity { .. } | Self::NotForThisHost { .. } => true,
            Self::OtherService { .. }
            | Self::KeyGroups
            | Self::Metadata(_)
            | Self::TooManyKeys
            | Self::Identity(_)
            | Self::Malformed
            | Self::InClear
            | Self::Forged
            | Self::MacMismatch => false,
        }
    }

    /// Returns the remedy.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotBuiltIn { .. } => "use a build with the feature sops, or decrypt the file before it is delivered",
            Self::NoIdentity { .. } => "set ageKeyFile in the configuration, or provide the systemd credential podstead.age-key",
            Self::NotForThisHost { .. } => "add this host to the recipients: sops updatekeys, or sops rotate -i --add-age",
            Self::OtherService { .. } => "add an age recipient: sops rotate -i --add-age",
            Self::KeyGroups => "encrypt it without key groups: sops encrypt --age",
            Self::TooManyKeys => "split it into several files",
            Self::Identity(_) => "create one with age-keygen",
            Self::Metadata(_) | Self::Malformed | Self::InClear | Self::Forged => "encrypt it again with sops",
            Self::MacMismatch => {
                "edit encrypted files with sops; if podstead substitutes variables in them, encrypt with --mac-only-encrypted"
            }
        }
    }
}

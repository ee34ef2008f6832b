//! Bytes of a file, compressed.

use podstead_pod::PackedText;
use std::sync::Arc;

/// The bytes of a file of a source. They are compressed, since they are kept for as long as the source has the file, and read only when they
/// have changed. Clones are cheap: source and store share one copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileBytes(Arc<PackedText>);

impl FileBytes {
    /// The bytes, made anew at each call.
    pub fn read(&self) -> Vec<u8> {
        self.0.read()
    }

    /// Number of bytes of the file.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Reports whether the file is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reports whether both are one copy in memory, and so the same without a look at them.
    pub fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl From<&[u8]> for FileBytes {
    fn from(bytes: &[u8]) -> Self {
        Self(Arc::new(PackedText::new(bytes)))
    }
}

impl From<Vec<u8>> for FileBytes {
    fn from(bytes: Vec<u8>) -> Self {
        bytes.as_slice().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_they_were() {
        for bytes in [&b""[..], b"kind: Pod\n", b"\xff\0\xfe"] {
            let file = FileBytes::from(bytes);
            assert_eq!((file.read(), file.len(), file.is_empty()), (bytes.to_vec(), bytes.len(), bytes.is_empty()));
            assert_eq!(file, FileBytes::from(bytes.to_vec()));
            assert!(file.is_shared_with(&file.clone()) && !file.is_shared_with(&FileBytes::from(bytes)));
        }
    }
}

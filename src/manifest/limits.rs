//! Limits of decoding. **Pure**.

/// Limits for one file. The defaults fit any file that a person or a template engine writes for one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a file (kubelet rule A4).
    pub max_bytes: usize,
    /// Values and keys of one document after its aliases are expanded. A document may also not expand to many times its own size.
    pub max_nodes: u32,
    /// Mappings and lists inside each other; at most 120, where the parsers themselves stop.
    pub max_depth: u32,
    /// Documents of a file.
    pub max_documents: usize,
    /// Limit for the reported problems of one file; the rest is only counted.
    pub max_problems: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: 10 << 20, max_nodes: 500_000, max_depth: 64, max_documents: 20_000, max_problems: 1000 }
    }
}

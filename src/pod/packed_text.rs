//! Text of an object or a file, compressed.

use lz4_flex::block::{compress_with_dict, decompress_with_dict};

/// Words that objects are full of: what is written here takes a few bytes of a text. The most frequent ones are last.
const WORDS: &[u8] = concat!(
    r#""publishNotReadyAddresses":true,"externalTrafficPolicy":"Cluster","internalTrafficPolicy":"Cluster","ipFamilyPolicy":"SingleStack""#,
    r#""loadBalancer":{"ingress":[{"ip":""}]}},"nodePort":3,"protocol":"UDP","port":53"type":"LoadBalancer""type":"NodePort""None""#,
    r#"{"apiVersion":"v1","kind":"Service","metadata":{"labels":{"app":"","app.kubernetes.io/name":"","name":""},"name":""},"spec":{"#,
    r#""ports":[{"name":"http","port":80,"protocol":"TCP","targetPort":8080}],"selector":{"app":""}}}"#,
    r#"{"addressType":"IPv4","apiVersion":"discovery.k8s.io/v1","endpoints":[{"addresses":["10.201.0."]}],"kind":"EndpointSlice","metadata":{"#,
    r#""labels":{"kubernetes.io/service-name":""},"name":""},"ports":[{"port":8080}]}"#,
    r#"{"apiVersion":"v1","kind":"Service","metadata":{"annotations":{"podstead.dev/source":"manifests"},"creationTimestamp":"20"#,
    r#"","name":"","namespace":"default","resourceVersion":"17"},"spec":{"clusterIP":"10.202.","clusterIPs":["10.202."],"#,
    r#""ipFamilies":["IPv4"],"ports":[{"port":80,"protocol":"TCP","targetPort":80}],"selector":{"app":""},"sessionAffinity":"None","type":"ClusterIP"}}"#,
    r#"{"addressType":"IPv4","apiVersion":"discovery.k8s.io/v1","endpoints":[{"addresses":["10.201.0."],"conditions":{"ready":true,"#,
    r#""serving":true,"terminating":false},"nodeName":"","targetRef":{"kind":"Pod","name":"","namespace":"default","uid":""}},"#,
    r#"{"addresses":["10.201.0."],"conditions":{"ready":true,"serving":true,"terminating":false}}],"kind":"EndpointSlice","metadata":{"#,
    r#""creationTimestamp":"20","labels":{"endpointslice.kubernetes.io/managed-by":"podstead.dev","kubernetes.io/service-name":""},"#,
    r#""name":"","namespace":"default","resourceVersion":"17"},"ports":[{"name":"","port":8080,"protocol":"TCP"}]}"#,
)
.as_bytes();

/// A text that is kept for long and read seldom. The texts of most objects are a fifth of their length so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedText {
    /// LZ4, with [`WORDS`] before it.
    bytes: Box<[u8]>,
    length: usize,
}

impl PackedText {
    /// Compresses a text. The same text gives the same bytes.
    pub fn new(text: &[u8]) -> Self {
        Self { bytes: compress_with_dict(text, WORDS).into_boxed_slice(), length: text.len() }
    }

    /// The text.
    pub fn read(&self) -> Vec<u8> {
        // The bytes are of this process: they can be read.
        decompress_with_dict(&self.bytes, self.length, WORDS).unwrap_or_default()
    }

    /// Number of bytes of the text.
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Reports whether the text is empty.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Bytes that it takes.
    pub const fn size(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_of_a_slice_takes_few_bytes() {
        let endpoint = |last: u8| {
            format!(r#"{{"addresses":["198.18.7.{last}"],"conditions":{{"ready":true,"serving":true,"terminating":false}}}}"#)
        };
        let endpoints: Vec<String> = (1..6).map(endpoint).collect();
        let text = format!(r#"{{"addressType":"IPv4","apiVersion":"discovery.k8s.io/v1","endpoints":[{}]}}"#, endpoints.join(","));
        let packed = PackedText::new(text.as_bytes());
        assert_eq!(packed.read(), text.as_bytes());
        assert!(packed.size() * 4 < text.len(), "{} of {}", packed.size(), text.len());
    }

    /// Matches reach back 64 KiB, and the words are before the first of them.
    #[test]
    fn long_text_is_read_as_it_was() {
        let lines: String =
            (0..20_000_u32).map(|number| format!("{{\"name\":\"{}\"}}", number.wrapping_mul(2_654_435_761))).collect();
        let packed = PackedText::new(lines.as_bytes());
        assert_eq!((packed.read().as_slice(), packed.len()), (lines.as_bytes(), lines.len()));
    }

    proptest! {
        #[test]
        fn text_is_read_as_it_was(text in proptest::collection::vec(any::<u8>(), 0..2000), repeat in 1..4_usize) {
            let text = text.repeat(repeat);
            let packed = PackedText::new(&text);
            prop_assert_eq!(&packed, &PackedText::new(&text));
            prop_assert_eq!(packed.read(), text);
        }
    }
}

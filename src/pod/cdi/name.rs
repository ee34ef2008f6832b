//! `vendor.com/class=name`.

use std::collections::BTreeMap;
use std::fmt;

/// Annotations that name devices begin so.
const PREFIX: &str = "cdi.k8s.io/";

/// A device, fully qualified.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceName {
    /// `vendor.com/class`.
    pub kind: String,
    /// Name in its class.
    pub name: String,
}

/// A text that names no device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a CDI device name: must be vendor.com/class=name")]
pub struct NameError {
    /// The annotation.
    pub annotation: String,
    /// The part of its value.
    pub text: String,
}

impl DeviceName {
    /// Reads one name.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once('=')?;
        let is_name = is_word(name, "_-.:", |first| first.is_ascii_alphanumeric());
        (is_kind(kind) && is_name).then(|| Self { kind: kind.to_owned(), name: name.to_owned() })
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.kind, self.name)
    }
}

/// `vendor.com/class`.
pub(super) fn is_kind(kind: &str) -> bool {
    let is_letter = |first: u8| first.is_ascii_alphabetic();
    kind.split_once('/').is_some_and(|(vendor, class)| is_word(vendor, "_-.", is_letter) && is_word(class, "_-", is_letter))
}

/// Letters, digits and `more` inside; a letter or digit at the end.
fn is_word(word: &str, more: &str, may_begin: impl Fn(u8) -> bool) -> bool {
    let bytes = word.as_bytes();
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || more.as_bytes().contains(byte);
    word.len() <= 253
        && bytes.first().is_some_and(|first| may_begin(*first))
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(inside)
}

/// The devices that the annotations of a pod name, sorted, without duplicates.
pub fn annotated(annotations: Option<&BTreeMap<String, String>>) -> Result<Vec<DeviceName>, NameError> {
    let mut devices = Vec::new();
    for (key, value) in annotations.into_iter().flatten().filter(|(key, _)| key.starts_with(PREFIX)) {
        for text in value.split(',').map(str::trim) {
            let device = DeviceName::parse(text);
            devices.push(device.ok_or_else(|| NameError { annotation: key.clone(), text: text.to_owned() })?);
        }
    }
    devices.sort();
    devices.dedup();
    Ok(devices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pod;

    #[test]
    fn names_have_a_vendor_a_class_and_a_device() {
        for good in ["vendor.com/class=0", "a/b=c", "nvidia.com/gpu=GPU-1:2.3", "Vendor-1.org/net_dev=eth0"] {
            assert_eq!(DeviceName::parse(good).unwrap().to_string(), good);
        }
        for bad in [
            "",
            "vendor.com/class",
            "vendor.com=x",
            "/class=x",
            "vendor.com/=x",
            "1vendor/c=x",
            "v/c.d=x",
            "v/c=",
            "v/c=-x",
            "v/c=x/y",
            "v/c=x=y",
        ] {
            assert_eq!(DeviceName::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn annotations_with_the_prefix_name_devices() {
        let pod: Pod = serde_yaml::from_str(
            "{metadata: {annotations: {cdi.k8s.io/radio: 'v.org/radio=1, v.org/radio=0', cdi.k8s.io/b: 'v.org/radio=1', other: x}}}",
        )
        .unwrap();
        let names: Vec<String> = annotated(pod.metadata.annotations.as_ref()).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["v.org/radio=0", "v.org/radio=1"]);
        let bad: Pod = serde_yaml::from_str("{metadata: {annotations: {cdi.k8s.io/a: 'v.org/radio=1,'}}}").unwrap();
        assert_eq!(
            annotated(bad.metadata.annotations.as_ref()).unwrap_err().to_string(),
            "\"\" is not a CDI device name: must be vendor.com/class=name"
        );
    }
}

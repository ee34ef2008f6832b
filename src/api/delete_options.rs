//! The body of a deletion. **Pure**.

use super::failure::{ApiFailure, Cause};
use super::request::is_protobuf;
use podstead_manifest::protobuf;
use podstead_manifest::schema::table;
use serde_json::Value;
use std::time::Duration;

/// Conditions of a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DeleteOptions {
    pub(super) uid: Option<String>,
    pub(super) resource_version: Option<String>,
    pub(super) dry_run: Vec<String>,
    /// The object stays until its pods are gone.
    pub(super) is_foreground: bool,
    /// `gracePeriodSeconds`; at most a day.
    pub(super) grace: Option<Duration>,
}

/// Longest grace period.
const MAX_GRACE: u64 = 86_400;

impl DeleteOptions {
    /// Reads a body of this content type; an empty one sets nothing.
    pub(super) fn read(content_type: &str, body: &[u8]) -> Result<Self, ApiFailure> {
        let unread = |error: &dyn std::fmt::Display| ApiFailure::bad_request(format!("invalid request body: {error}"));
        let options = if body.is_empty() {
            Value::Null
        } else if is_protobuf(content_type) {
            protobuf::read(body, &table::DELETE_OPTIONS).map_err(|error| unread(&error))?
        } else {
            serde_json::from_slice(body).map_err(|error| unread(&error))?
        };
        if options["propagationPolicy"] == "Orphan" || options["orphanDependents"] == true {
            return Err(ApiFailure::invalid(
                "DeleteOptions",
                "",
                vec![Cause {
                    reason: "FieldValueNotSupported",
                    message: "pods go with the object that wants them: use Background or Foreground".to_owned(),
                    field: "propagationPolicy".to_owned(),
                }],
            ));
        }
        let text = |name: &str| options["preconditions"][name].as_str().map(str::to_owned);
        let dry_run = options["dryRun"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        // A negative one means one second, as in Kubernetes.
        let grace = options["gracePeriodSeconds"].as_i64().map(|seconds| u64::try_from(seconds).unwrap_or(1).min(MAX_GRACE));
        Ok(Self {
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            dry_run: dry_run.collect(),
            is_foreground: options["propagationPolicy"] == "Foreground",
            grace: grace.map(Duration::from_secs),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_protobuf_mean_the_same() {
        let json = br#"{"gracePeriodSeconds":0,"preconditions":{"uid":"u"},"propagationPolicy":"Background","dryRun":["All"]}"#;
        let protobuf = b"k8s\0\x12\x18\x08\x00\x12\x03\x0a\x01u\x22\x0aBackground\x2a\x03All";
        let expected = DeleteOptions {
            uid: Some("u".to_owned()),
            resource_version: None,
            dry_run: vec!["All".to_owned()],
            is_foreground: false,
            grace: Some(Duration::ZERO),
        };
        assert_eq!(DeleteOptions::read("application/json", json).ok(), Some(expected.clone()));
        assert_eq!(DeleteOptions::read("application/vnd.kubernetes.protobuf", protobuf).ok(), Some(expected));
        let negative = DeleteOptions::read("", br#"{"gracePeriodSeconds":-5}"#).unwrap();
        assert_eq!(negative.grace, Some(Duration::from_secs(1)));
        assert!(DeleteOptions::read("application/json", br#"{"propagationPolicy":"Orphan"}"#).is_err());
        assert!(DeleteOptions::read("application/json", br#"{"propagationPolicy":"Foreground"}"#).unwrap().is_foreground);
    }
}

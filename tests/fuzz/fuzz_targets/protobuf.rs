//! `podstead_manifest::protobuf`: any bytes are an object of any kind, or refused, without a panic and without growing beyond what came; what was read is
//! read again in the same way.
#![no_main]

use libfuzzer_sys::fuzz_target;
use podstead_manifest::protobuf::read;
use podstead_manifest::schema::table;

/// Length of all strings in it.
fn weight(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::String(text) => text.len(),
        serde_json::Value::Array(items) => items.iter().map(weight).sum(),
        serde_json::Value::Object(members) => members.iter().map(|(name, value)| name.len() + weight(value)).sum(),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => 8,
    }
}

fuzz_target!(|bytes: &[u8]| {
    let body = [b"k8s\0", bytes].concat();
    for structure in [&table::POD, &table::CRON_JOB, &table::SECRET, &table::SERVICE, &table::NETWORK_POLICY, &table::DELETE_OPTIONS] {
        if let Ok(value) = read(&body, structure) {
            // Two bytes make a field, whose name and value have less than 64 bytes beside what came.
            assert!(weight(&value) <= 64 * (bytes.len() + 1));
            assert_eq!(read(&body, structure).as_ref(), Ok(&value));
        }
    }
});

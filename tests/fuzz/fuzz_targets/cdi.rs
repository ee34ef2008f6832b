//! `pod::cdi::CdiSpec::parse` answers any bytes without a panic and names what is wrong in one printable line; what it accepts can be resolved.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

use podstead_pod::cdi::{self, CdiSpec, DeviceName, SpecFile};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match CdiSpec::parse(bytes) {
        Ok(spec) => {
            let names: Vec<DeviceName> =
                spec.devices.iter().map(|device| DeviceName { kind: spec.kind.clone(), name: device.name.clone() }).collect();
            let file = SpecFile { path: "/etc/cdi/x.yaml".into(), directory: 0, spec: Ok(spec) };
            cdi::resolve(&names, &[file]).unwrap();
        }
        Err(error) => assert!(!error.to_string().contains(char::is_control)),
    }
});

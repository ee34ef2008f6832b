//! `network::cni::spec` and `pod::networks` answer any bytes without a panic, as a configuration, as a plugin's answer and as an annotation;
//! what they accept is the same after it was written and read again, and errors fit a line.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

#[path = "../../../src/network/cni/spec/mod.rs"]
mod spec;

use libfuzzer_sys::fuzz_target;
use podstead_pod::networks::{self, is_interface_name};
use spec::conflist::{Conflist, Form};
use spec::result::{self, CniResult};
use spec::version::CniVersion;
use spec::{fault, invocation};

fn fits_a_line(error: &impl std::fmt::Display) {
    assert!(!error.to_string().contains(char::is_control));
}

fuzz_target!(|bytes: &[u8]| {
    for form in [Form::List, Form::Single] {
        match Conflist::parse(bytes, form) {
            Ok(network) => {
                assert_eq!(Conflist::from_value(network.to_value(), Form::List).as_ref(), Ok(&network));
                for index in 0..network.plugins.len() {
                    invocation::input(&network, network.latest(), index, None, None);
                }
            }
            Err(error) => fits_a_line(&error),
        }
    }
    for version in CniVersion::ALL {
        match result::read(bytes, version) {
            Ok((result, _)) => {
                let again = CniResult::from_value(&result.to_value(version)).unwrap();
                assert_eq!((&again.ips, &again.dns), (&result.ips, &result.dns));
            }
            Err(error) => fits_a_line(&error),
        }
    }
    if let Some(fault) = fault::Fault::parse(bytes) {
        fits_a_line(&fault);
    }
    invocation::spoken(bytes);
    let text = String::from_utf8_lossy(bytes);
    match networks::additional(&text) {
        Ok(selections) => assert!(selections.iter().all(|selection| is_interface_name(&selection.interface))),
        Err(error) => fits_a_line(&error),
    }
    if let Err(error) = networks::default_network(&text) {
        fits_a_line(&error);
    }
});

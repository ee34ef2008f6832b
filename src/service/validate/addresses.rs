//! Rules for the addresses of a Service and their families.

use super::check_address;
use super::service_type::{is_headless, type_of};
use crate::range::Family;
use k8s_openapi::api::core::v1::ServiceSpec;
use podstead_workload::problem::Problems;

/// Families, and thus addresses, of a Service.
const MOST: usize = 2;

/// Checks `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy`.
pub(super) fn check(spec: &ServiceSpec, found: &mut Problems) {
    if type_of(spec) == "ExternalName" {
        return check_absent(spec, found);
    }
    if is_headless(spec) && ["LoadBalancer", "NodePort"].contains(&type_of(spec)) {
        found.invalid("spec.clusterIPs[0]", "None", format_args!("may not be set to 'None' for {} services", type_of(spec)));
        found.hint("a Service without address has no ports of the host");
    }
    let addresses = check_addresses(spec, found);
    let families = check_families(spec, found);
    for (index, (address, family)) in addresses.iter().zip(&families).enumerate() {
        if address.is_some_and(|address| Some(address) != *family) && family.is_some() {
            let field = format!("spec.clusterIPs[{index}]");
            found.add(field, format!("is not of the family in spec.ipFamilies[{index}]"));
        }
    }
    if spec.ip_family_policy.as_deref() == Some("SingleStack") {
        for (field, count) in [("spec.clusterIPs", addresses.len()), ("spec.ipFamilies", families.len())] {
            if count > 1 {
                found.add(field, "may only hold up to 1 value when ipFamilyPolicy is SingleStack");
                found.hint("write spec.ipFamilyPolicy: PreferDualStack");
            }
        }
    }
}

fn check_absent(spec: &ServiceSpec, found: &mut Problems) {
    let has_address = spec.cluster_ip.as_deref().is_some_and(|address| !address.is_empty());
    let lists = [
        ("spec.clusterIP", has_address),
        ("spec.clusterIPs", spec.cluster_ips.iter().flatten().next().is_some()),
        ("spec.ipFamilies", spec.ip_families.iter().flatten().next().is_some()),
        ("spec.ipFamilyPolicy", spec.ip_family_policy.is_some()),
    ];
    for (field, _) in lists.iter().filter(|(_, is_written)| *is_written) {
        found.forbidden(*field, "may not be set when `type` is 'ExternalName'");
    }
}

/// The family of each address.
fn check_addresses(spec: &ServiceSpec, found: &mut Problems) -> Vec<Option<Family>> {
    let one = spec.cluster_ip.as_deref().filter(|address| !address.is_empty());
    let several: Vec<&str> = spec.cluster_ips.iter().flatten().map(String::as_str).collect();
    found.at_most("spec.clusterIPs", several.len(), MOST);
    if let (Some(one), Some(first)) = (one, several.first())
        && one != *first
    {
        found.invalid("spec.clusterIPs[0]", first, "must have the same value as spec.clusterIP");
    }
    let (field, written) =
        if several.is_empty() { ("spec.clusterIP", one.into_iter().collect()) } else { ("spec.clusterIPs", several) };
    let mut families = Vec::new();
    for (index, address) in written.iter().enumerate() {
        let field = if field == "spec.clusterIP" { field.to_owned() } else { format!("{field}[{index}]") };
        if *address == "None" {
            if written.len() > 1 {
                found.invalid(field, "None", "must be the only value");
            }
            continue;
        }
        let family = check_address(&field, address, found).map(Family::of);
        if family.is_some() && families.contains(&family) {
            found.invalid(field, address, "must be of another family than the first address");
        }
        families.push(family);
    }
    families
}

fn check_families(spec: &ServiceSpec, found: &mut Problems) -> Vec<Option<Family>> {
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    super::check_one_of("spec.ipFamilyPolicy", spec.ip_family_policy.as_deref(), &policies, found);
    let written = spec.ip_families.as_deref().unwrap_or_default();
    found.at_most("spec.ipFamilies", written.len(), MOST);
    let mut families = Vec::new();
    for (index, text) in written.iter().take(MOST).enumerate() {
        let field = format!("spec.ipFamilies[{index}]");
        let family = text.parse().ok();
        match family {
            None => found.not_one_of(field, text, &["IPv4", "IPv6"]),
            Some(_) if families.contains(&family) => found.add(field, format!("duplicate value {text:?}")),
            Some(_) => {}
        }
        families.push(family);
    }
    families
}

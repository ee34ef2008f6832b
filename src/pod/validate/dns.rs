//! DNS settings and host aliases.

use super::names::{dns_subdomain, ip, search_domain};
use crate::containers::{list, text};
use crate::field::{FieldPath, Problems};
use k8s_openapi::api::core::v1::{HostAlias, PodSpec};

const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCHES: usize = 32;
const MAX_SEARCH_CHARS: usize = 2048;

/// `dnsPolicy`, `dnsConfig` and `hostAliases`.
pub(super) fn check(spec: &PodSpec, path: &FieldPath, problems: &mut Problems) {
    let policy = text(&spec.dns_policy);
    problems.one_of(&path.child("dnsPolicy"), policy, &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]);
    let config = spec.dns_config.clone().unwrap_or_default();
    let path_of_config = path.child("dnsConfig");
    let nameservers = list(&config.nameservers);
    if policy == "None" && nameservers.is_empty() {
        problems.required(&path_of_config.child("nameservers"), "at least one, since dnsPolicy is None");
    }
    if nameservers.len() > MAX_NAMESERVERS {
        problems.too_long(&path_of_config.child("nameservers"), MAX_NAMESERVERS, "name servers");
    }
    for (index, server) in nameservers.iter().enumerate() {
        problems.rule(&path_of_config.child("nameservers").index(index), server, ip(server));
    }
    let searches = list(&config.searches);
    if searches.len() > MAX_SEARCHES {
        problems.too_long(&path_of_config.child("searches"), MAX_SEARCHES, "domains");
    }
    if searches.join(" ").len() > MAX_SEARCH_CHARS {
        problems.too_long(&path_of_config.child("searches"), MAX_SEARCH_CHARS, "characters, including blanks between domains");
    }
    for (index, domain) in searches.iter().enumerate() {
        problems.rule(&path_of_config.child("searches").index(index), domain, search_domain(domain));
    }
    for (index, option) in list(&config.options).iter().enumerate() {
        if text(&option.name).is_empty() {
            problems.required(&path_of_config.child("options").index(index).child("name"), "");
        }
    }
    check_host_aliases(list(&spec.host_aliases), &path.child("hostAliases"), problems);
}

fn check_host_aliases(aliases: &[HostAlias], path: &FieldPath, problems: &mut Problems) {
    for (index, alias) in aliases.iter().enumerate() {
        let path = path.index(index);
        problems.required_text(&path.child("ip"), &alias.ip, ip);
        for (index, name) in list(&alias.hostnames).iter().enumerate() {
            problems.rule(&path.child("hostnames").index(index), name, dns_subdomain(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::testing::check_spec;

    #[track_caller]
    fn check(fields: &str, expected: &[&str]) {
        check_spec(&format!("containers: [{{name: a, image: x}}], {fields}"), expected);
    }

    #[test]
    fn a_policy_of_none_needs_a_name_server() {
        check("dnsPolicy: None, dnsConfig: {nameservers: [192.0.2.1]}", &[]);
        check("dnsPolicy: None", &["spec.dnsConfig.nameservers: is required: at least one, since dnsPolicy is None"]);
        check(
            "dnsPolicy: Cluster",
            &[
                "spec.dnsPolicy: invalid value \"Cluster\": must be one of \"ClusterFirst\", \"ClusterFirstWithHostNet\", \"Default\", \"None\"",
            ],
        );
    }

    #[test]
    fn settings_fit_the_resolver() {
        check("dnsConfig: {nameservers: ['2001:db8::1'], searches: [a.b, _x.c., .], options: [{name: ndots, value: '2'}]}", &[]);
        check(
            "dnsConfig: {nameservers: [1.1.1.1, 1.1.1.2, 1.1.1.3, one], searches: [A], options: [{value: '2'}]}",
            &[
                "spec.dnsConfig.nameservers: too long: must be at most 3 name servers",
                "spec.dnsConfig.nameservers[3]: invalid value \"one\": must be an IP address such as 10.9.8.7 or 2001:db8::ffff",
                "spec.dnsConfig.searches[0]: invalid value \"A\": must be a domain of lower-case letters, digits, '-', '_' and '.', at most 253 long",
                "spec.dnsConfig.options[0].name: is required",
            ],
        );
        let domains = |count, domain: &str| format!("dnsConfig: {{searches: [{}]}}", vec![domain; count].join(","));
        check(&domains(33, "a"), &["spec.dnsConfig.searches: too long: must be at most 32 domains"]);
        // 32 * 63 + 31 blanks.
        check(&domains(32, &"a".repeat(63)), &[]);
        check(
            &domains(32, &format!("{}.b", "a".repeat(62))),
            &["spec.dnsConfig.searches: too long: must be at most 2048 characters, including blanks between domains"],
        );
    }

    #[test]
    fn host_aliases_have_an_address_and_names() {
        check("hostAliases: [{ip: 192.0.2.1, hostnames: [a, b.c]}]", &[]);
        check(
            "hostAliases: [{hostnames: [a]}, {ip: a, hostnames: [A]}]",
            &[
                "spec.hostAliases[0].ip: is required",
                "spec.hostAliases[1].ip: invalid value \"a\": must be an IP address such as 10.9.8.7 or 2001:db8::ffff",
                "spec.hostAliases[1].hostnames[0]: invalid value \"A\": must be 1 to 253 lower-case letters, digits, '-' or '.', each part between dots starting and ending with a letter or digit",
            ],
        );
    }
}

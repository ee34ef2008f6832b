//! Profiles from files (`type: Localhost`), in the format of the OCI or in Docker's, which adds conditions to rules.

use super::{BuildExt, Machine};
use crate::oci::OciError;
use oci_spec::runtime::{
    Arch, Capabilities, LinuxSeccomp, LinuxSeccompAction, LinuxSeccompArg, LinuxSeccompBuilder, LinuxSeccompFilterFlag,
    LinuxSyscall, LinuxSyscallBuilder,
};
use serde::Deserialize;

/// Bytes of a profile file; Docker's own has 17 KiB.
const MAX_BYTES: usize = 1 << 20;
/// Names in all rules together; there are about 500 system calls.
const MAX_NAMES: usize = 20_000;
/// System calls have six arguments.
const MAX_ARGUMENTS: usize = 6;

/// Reason why a profile file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// Not a file of this format, or with a field that is not known.
    #[error("parse seccomp profile")]
    Parse(#[source] serde_json::Error),
    /// Beyond a limit.
    #[error("seccomp profile has {what} {found}, the limit is {limit}")]
    TooBig {
        /// The counted thing.
        what: &'static str,
        /// The number found.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// Something that podstead has no counterpart for.
    #[error("seccomp profile uses {0}, which is not supported")]
    Unsupported(&'static str),
    /// A rule names no system call.
    #[error("rule {0} of the seccomp profile has no system call names")]
    NoNames(usize),
}

/// A parsed profile; `resolve` makes the filter of one container from it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProfileFile {
    default_action: LinuxSeccompAction,
    #[serde(default)]
    default_errno_ret: Option<u32>,
    #[serde(default)]
    architectures: Option<Vec<Arch>>,
    #[serde(default)]
    arch_map: Option<Vec<ArchMapping>>,
    #[serde(default)]
    flags: Option<Vec<LinuxSeccompFilterFlag>>,
    #[serde(default)]
    syscalls: Option<Vec<Rule>>,
    #[serde(default)]
    listener_path: Option<String>,
    #[serde(default, rename = "listenerMetadata")]
    _listener_metadata: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ArchMapping {
    architecture: Arch,
    #[serde(default)]
    sub_architectures: Option<Vec<Arch>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rule {
    #[serde(default)]
    names: Option<Vec<String>>,
    /// Docker's older spelling, for one call.
    #[serde(default)]
    name: Option<String>,
    action: LinuxSeccompAction,
    #[serde(default)]
    errno_ret: Option<u32>,
    #[serde(default)]
    args: Option<Vec<LinuxSeccompArg>>,
    #[serde(default)]
    includes: Condition,
    #[serde(default)]
    excludes: Condition,
    #[serde(default, rename = "comment")]
    _comment: Option<String>,
}

/// A condition of a rule, as Docker writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Condition {
    caps: Option<Vec<String>>,
    arches: Option<Vec<String>>,
    min_kernel: Option<String>,
}

/// Parses and checks the content of a profile file.
pub fn parse_profile(content: &[u8]) -> Result<ProfileFile, ProfileError> {
    limit("bytes", content.len(), MAX_BYTES)?;
    let profile: ProfileFile = serde_json::from_slice(content).map_err(ProfileError::Parse)?;
    if profile.listener_path.is_some() {
        return Err(ProfileError::Unsupported("listenerPath"));
    }
    let rules = profile.syscalls.as_deref().unwrap_or_default();
    if rules
        .iter()
        .map(|rule| rule.action)
        .chain([profile.default_action])
        .any(|action| action == LinuxSeccompAction::ScmpActNotify)
    {
        return Err(ProfileError::Unsupported("SCMP_ACT_NOTIFY"));
    }
    for (index, rule) in rules.iter().enumerate() {
        if rule.all_names().next().is_none() {
            return Err(ProfileError::NoNames(index));
        }
        for argument in rule.args.iter().flatten() {
            limit("an argument number", argument.index(), MAX_ARGUMENTS - 1)?;
        }
    }
    limit("names", rules.iter().map(|rule| rule.all_names().count()).sum(), MAX_NAMES)?;
    Ok(profile)
}

fn limit(what: &'static str, found: usize, limit: usize) -> Result<(), ProfileError> {
    if found > limit { Err(ProfileError::TooBig { what, found, limit }) } else { Ok(()) }
}

impl ProfileFile {
    /// The filter for a container with these capabilities, on this machine and kernel (major, minor).
    pub(in crate::oci) fn resolve(
        &self,
        granted: &Capabilities,
        machine: Machine,
        kernel: (u32, u32),
    ) -> Result<LinuxSeccomp, OciError> {
        let rules = self.syscalls.iter().flatten().filter(|rule| rule.counts(granted, machine, kernel));
        let mut builder = LinuxSeccompBuilder::default()
            .default_action(self.default_action)
            .syscalls(rules.map(Rule::resolve).collect::<Result<Vec<_>, _>>()?);
        if let Some(errno) = self.default_errno_ret {
            builder = builder.default_errno_ret(errno);
        }
        if let Some(architectures) = self.architectures(machine) {
            builder = builder.architectures(architectures);
        }
        if let Some(flags) = &self.flags {
            builder = builder.flags(flags.clone());
        }
        builder.build().part("seccomp profile")
    }

    /// As listed, or as mapped from the native one; with neither the native one alone counts.
    fn architectures(&self, machine: Machine) -> Option<Vec<Arch>> {
        if let Some(listed) = &self.architectures {
            return Some(listed.clone());
        }
        let native = match machine {
            Machine::X86_64 => Arch::ScmpArchX86_64,
            Machine::Aarch64 => Arch::ScmpArchAarch64,
            Machine::Other => return None,
        };
        let mapping = self.arch_map.iter().flatten().find(|mapping| mapping.architecture == native)?;
        Some(std::iter::once(native).chain(mapping.sub_architectures.iter().flatten().copied()).collect())
    }
}

impl Rule {
    fn all_names(&self) -> impl Iterator<Item = &String> {
        self.names.iter().flatten().chain(self.name.iter())
    }

    fn counts(&self, granted: &Capabilities, machine: Machine, kernel: (u32, u32)) -> bool {
        let has = |name: &String| granted.iter().any(|capability| format!("CAP_{capability}") == *name);
        let is = |name: &String| match machine {
            Machine::X86_64 => name == "amd64",
            Machine::Aarch64 => name == "arm64",
            Machine::Other => false,
        };
        let new_enough = |minimum: &Option<String>| minimum.as_deref().and_then(release).is_none_or(|minimum| kernel >= minimum);
        self.includes.caps.iter().flatten().all(has)
            && self.includes.arches.as_ref().is_none_or(|arches| arches.iter().any(is))
            && new_enough(&self.includes.min_kernel)
            && !self.excludes.caps.iter().flatten().any(has)
            && !self.excludes.arches.iter().flatten().any(is)
            && (self.excludes.min_kernel.is_none() || !new_enough(&self.excludes.min_kernel))
    }

    fn resolve(&self) -> Result<LinuxSyscall, OciError> {
        let names: Vec<String> = self.all_names().cloned().collect();
        let mut builder = LinuxSyscallBuilder::default().names(names).action(self.action);
        if let Some(errno) = self.errno_ret {
            builder = builder.errno_ret(errno);
        }
        if let Some(args) = self.args.clone().filter(|args| !args.is_empty()) {
            builder = builder.args(args);
        }
        builder.build().part("seccomp rule")
    }
}

/// Major and minor of `4.8` or `6.1.0-9-amd64`.
pub(super) fn release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(['.', '-']).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

//! A host for one test, and how to look at it.

#![allow(unused_imports, reason = "the benchmarks use a part of it")]

#[allow(dead_code, reason = "the benchmarks use a part of it")]
pub(crate) mod cgroup;
#[allow(dead_code, reason = "the benchmarks use a part of it")]
mod debian;
#[allow(dead_code, reason = "the benchmarks use a part of it")]
mod disk;
mod host;
mod image;
mod kernel;
#[allow(dead_code, reason = "the benchmarks use a part of it")]
pub(crate) mod kubectl;
mod pod;
#[allow(dead_code, reason = "the benchmarks use a part of it")]
pub(crate) mod registry;
#[allow(dead_code, reason = "the benchmarks use a part of it")]
pub(crate) mod servers;
mod strace;
mod wait;

pub(crate) use debian::DebianImage;
pub(crate) use disk::Disk;
pub(crate) use host::{TestHost, binary};
pub(crate) use image::{image_archive, make_image};
pub(crate) use kernel::{cgroups, kernel_lacks, leftovers, mounts, process_exists};
pub(crate) use pod::PodView;
pub(crate) use strace::Strace;
pub(crate) use wait::{eventually, eventually_within};

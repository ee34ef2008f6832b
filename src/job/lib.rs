//! Jobs: short-lived processes without rights that read what others wrote.
//!
//! A job is this program, executed again under another name, with one task; it ends with its task. It gives its rights up before it reads the first
//! byte that is not the daemon's. [`launch`] is the daemon's side: start, limits, end; [`events`] tell of those that failed. [`child`], [`confine`] and [`filter`] are the job's side: its
//! beginning, and what it gives up, in which order. [`frame`] is what both speak. [`program`] executes a program of the host in the place of a job. [`mounts`]
//! makes what jobs enter in the place of the files of the host.
//!
//! The daemon believes nothing that it does not check. A job trusts the daemon.

pub mod channel;
pub mod child;
pub mod confine;
pub mod conversation;
pub mod events;
pub mod filter;
pub mod frame;
pub mod launch;
pub mod mounts;
pub mod program;
pub mod told;
pub mod tree;
pub mod user;

use std::ffi::OsString;

/// Name under which this program runs as a job: the first word of its command line. The second one is the task.
pub const PROGRAM_NAME: &str = "podstead-job";

/// The task that a command line asks for; `None` where it is none of a job.
pub fn requested(arguments: &[OsString]) -> Option<&str> {
    match arguments {
        [program, task] if program == PROGRAM_NAME => task.to_str(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_is_known_by_its_command_line() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(requested(&words(&[PROGRAM_NAME, "unpack"])), Some("unpack"));
        // `podstead job` starts CronJobs.
        assert_eq!(requested(&words(&["podstead", "job"])), None);
        assert_eq!(requested(&words(&[PROGRAM_NAME])), None);
        assert_eq!(requested(&words(&[PROGRAM_NAME, "unpack", "more"])), None);
    }
}

//! The process `podstead-shim`: one per pod, the parent of the pod's containers.
//!
//! ```text
//! podstead-shim pod CONFIG        the shim: makes the sandbox, leaves its parent, serves the socket (event_loop)
//! podstead-shim helper start ...  creates one container with libcontainer, as the shim's child, and ends (helper)
//! podstead-shim helper exec ...   starts one process in a container, as the shim's child, and ends (helper)
//! podstead-shim compress FILE...  compresses rotated log files ([`log`])
//! podstead-shim ask CONFIG ID     makes the request of a preStop hook while the host shuts down, and ends (asker)
//! podstead-shim mounts            has an empty mount namespace until its input ends
//! podstead-shim init              process 1 of a PID namespace that a pod's containers share (init)
//! ```
//!
//! The shim is one loop, without tokio and without libcontainer: it is there once per pod, so its memory counts, and it must live as long
//! as the pod. Only records are written beside it (recorder), by threads that start nothing and end with their write. It owns the containers' stdio ([`log`]), waits for them (reaper), and records every exit durably before it
//! tells anyone. In: requests of [`podstead_container::protocol`] from any number of clients, one after the other or at once. Out: answers,
//! events, streams, records, logs. Without clients it goes on. Only SIGTERM (the host shuts down), a shutdown request or SIGKILL ends
//! it; its containers never outlive it for longer than it takes the daemon to notice.
//!
//! The work that needs much code or memory is done by helpers: short-lived processes of the same binary.

mod asker;
mod client;
mod clients;
mod container;
mod containers;
mod event_loop;
mod exec_process;
mod explain;
mod groups;
mod helper;
mod helper_job;
mod helper_jobs;
mod host_shutdown;
mod init;
mod launch;
mod log;
mod log_compressor;
mod output;
mod poller;
mod reaper;
mod recorder;
mod requests;
mod shared_pid;
mod starting;
mod streams;

use explain::explain;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// The `podstead-shim` command. `arguments` are those of the process, its name first.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let words: Vec<&str> = arguments.iter().skip(1).map(|word| word.to_str().unwrap_or_default()).collect();
    let result = match words.as_slice() {
        ["pod", config, _name] => launch::run(Path::new(config)).map_err(|error| explain(&error)),
        ["helper", job @ ..] => return helper::run(job),
        ["compress", ..] => log::compress(&arguments[2..]).map_err(|error| explain(&error)),
        ["ask", config, container] => asker::run(Path::new(config), container).map_err(|error| explain(&error)),
        ["mounts"] => launch::hold_empty_mounts().map_err(|error| explain(&error)),
        ["init"] => init::run().map_err(|error| explain(&error)).map(|never| match never {}),
        ["--version"] => {
            let _closed = writeln!(std::io::stdout(), "podstead-shim {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        _ => Err("podstead-shim is started by podstead, not by hand".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            let _closed = writeln!(std::io::stderr(), "{text}");
            ExitCode::FAILURE
        }
    }
}

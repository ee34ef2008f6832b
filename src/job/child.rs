//! The beginning that all jobs share, on the job's side.

use crate::channel::Channel;
use podstead_sys::{own_memory, process};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::os::fd::OwnedFd;

/// A job that has its request, and all its rights still.
#[derive(Debug)]
pub struct Begun<T> {
    /// Its way to the daemon.
    pub channel: Channel,
    /// Its task.
    pub request: T,
    /// Descriptors that came with the request.
    pub descriptors: Vec<OwnedFd>,
}

/// Takes the request that the daemon sends to standard input; `None` without one: the daemon is gone, and misses no answer.
pub fn begin<T: DeserializeOwned>() -> Option<Begun<T>> {
    process::close_others();
    own_memory::share_between_threads();
    // Shown in lists of processes; without it there would be `exe`.
    let _unnamed = rustix::thread::set_name(c"podstead-job");
    let (channel, request, descriptors) = Channel::open().ok()?;
    Some(Begun { channel, request, descriptors })
}

/// Has a panic tell the daemon a message, made of its text, before it ends the job: it is an error of podstead.
pub fn tell_panics<M: Serialize + 'static>(channel: &Channel, message: fn(String) -> M) {
    let Ok(channel) = channel.try_clone() else { return };
    std::panic::set_hook(Box::new(move |panic| {
        let _daemon_gone = channel.send(&message(panic.to_string()));
        process::exit_at_once(1);
    }));
}

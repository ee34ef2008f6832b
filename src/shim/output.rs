//! From pipes and terminals to logs and sessions, and back to stdin.

use super::client::ReadEnd;
use super::event_loop::PodShim;
use super::log::StreamName;
use super::poller::{ClientKey, ContainerKey, ExecKey, StreamOwner};
use super::streams::Reading;
use jiff::Timestamp;
use podstead_container::protocol::frame::FrameKind;
use podstead_container::protocol::{ShimStep, StepTime};
use podstead_sys::tick::Tick;

/// The most that is read of a stream after its process has ended: what a pipe holds, many times over. More means that another process
/// still writes to it.
const MAX_DRAINED: usize = 1 << 20;

impl PodShim {
    /// Reads one stream once; others get their turn.
    pub(super) fn read_output(&mut self, owner: StreamOwner, stream: StreamName) {
        self.read_once(owner, stream);
    }

    /// Reads what is there of both streams.
    pub(super) fn drain_output(&mut self, owner: StreamOwner) {
        for stream in [StreamName::Stdout, StreamName::Stderr] {
            let mut drained = 0;
            while drained < MAX_DRAINED
                && let Reading::Bytes(count) = self.read_once(owner, stream)
            {
                drained += count;
            }
        }
    }

    fn read_once(&mut self, owner: StreamOwner, stream: StreamName) -> Reading {
        match owner {
            StreamOwner::Container(key) => self.read_container(key, stream),
            StreamOwner::Exec(key) => self.read_exec(key, stream),
        }
    }

    fn read_container(&mut self, key: ContainerKey, stream: StreamName) -> Reading {
        let Some(container) = self.containers.get_mut(key) else { return Reading::Nothing };
        let reading = container.streams.read(stream, &mut self.scratch, &mut self.poller);
        match reading {
            Reading::Bytes(count) => {
                let is_first = container.first_output.is_none();
                if is_first {
                    container.first_output = Some(Tick::now());
                }
                container.log_output(stream, &self.scratch[..count], Timestamp::now(), &mut self.batch);
                self.compressor.add(container.log.take_uncompressed());
                let gone = self.clients.show(&container.attached, frame_kind(stream), &self.scratch[..count], &self.poller);
                gone.into_iter().for_each(|client| self.drop_client(client));
                if is_first {
                    self.tell_first_output(key);
                }
            }
            Reading::Ended => container.end_output(stream, Timestamp::now()),
            Reading::Nothing => {}
        }
        reading
    }

    /// Tells when the first output came, as soon as it is known when the program was executed.
    pub(super) fn tell_first_output(&mut self, key: ContainerKey) {
        let Some(container) = self.containers.get(key) else { return };
        if let (Some(executed), Some(first)) = (container.executed, container.first_output) {
            // It may have been read before the helper told of the execution.
            self.tell_times(key, vec![StepTime::new(ShimStep::FirstOutput, executed.min(first), first)]);
        }
    }

    fn read_exec(&mut self, key: ExecKey, stream: StreamName) -> Reading {
        let Some(exec) = self.execs.get_mut(&key) else { return Reading::Nothing };
        let reading = exec.streams.read(stream, &mut self.scratch, &mut self.poller);
        if let (Reading::Bytes(count), Some(client_key)) = (&reading, exec.client)
            && let Some(client) = self.clients.get_mut(client_key)
        {
            if client.send_frame(frame_kind(stream), &self.scratch[..*count], &self.poller) == ReadEnd::Closed {
                self.drop_client(client_key);
            } else if client.is_congested() {
                exec.streams.pause(true, &self.poller);
            }
        }
        reading
    }

    /// A client has read what was waiting for it: its exec may write again.
    pub(super) fn resume_output_for(&mut self, key: ClientKey) {
        if self.clients.get(key).is_some_and(|client| !client.is_congested()) {
            for exec in self.execs.values_mut().filter(|exec| exec.client == Some(key)) {
                exec.streams.pause(false, &self.poller);
            }
        }
    }

    /// A process has room in its stdin, or has closed it.
    pub(super) fn feed_input(&mut self, owner: StreamOwner, broken: bool) {
        let streams = match owner {
            StreamOwner::Container(key) => self.containers.get_mut(key).map(|container| &mut container.streams),
            StreamOwner::Exec(key) => self.execs.get_mut(&key).map(|exec| &mut exec.streams),
        };
        if streams.is_some_and(|streams| streams.feed_stdin(broken, &mut self.poller)) {
            self.resume_senders(owner);
        }
    }

    /// Nothing waits for a stdin any more: reads again from the clients that send to it.
    pub(super) fn resume_senders(&mut self, owner: StreamOwner) {
        let senders = match owner {
            StreamOwner::Container(key) => self.containers.get(key).map(|container| container.attached.as_slice()),
            StreamOwner::Exec(key) => self.execs.get(&key).map(|exec| exec.client.as_slice()),
        };
        for key in senders.unwrap_or_default() {
            if let Some(client) = self.clients.get_mut(*key) {
                client.listen(true, &self.poller);
            }
        }
    }
}

fn frame_kind(stream: StreamName) -> FrameKind {
    match stream {
        StreamName::Stdout => FrameKind::Stdout,
        StreamName::Stderr => FrameKind::Stderr,
    }
}

//! Input that was read ahead of the process.
//!
//! A process that does not read its input holds the client up, but must not hide that the client has left. What a client that was
//! killed had written is in the kernel's buffer before its end: so some input is read ahead. While no more is read, the client is asked
//! whether it is there ([`PROBE`]).

use podstead_runtime::ExecInput;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::mpsc;

/// Bytes of input read ahead of the process.
const MAX_AHEAD: usize = 1 << 20;
/// Time between two questions to a client of which nothing is read: sending to one that has left fails.
pub(super) const PROBE: Duration = Duration::from_secs(5);
/// Overhead of a message besides its bytes.
const SMALL_INPUT: usize = 64;

/// Input in its order.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    queue: VecDeque<ExecInput>,
    bytes: usize,
}

impl Ahead {
    /// Appends an input.
    pub(super) fn push(&mut self, input: ExecInput) {
        self.bytes += size_of_input(&input);
        self.queue.push_back(input);
    }

    /// True if more may be read.
    pub(super) fn has_room(&self) -> bool {
        self.bytes < MAX_AHEAD
    }

    /// Gives the next input to the process; waits for ever if there is none. Cancel-safe: a permit that is not used is given back.
    pub(super) async fn forward(&mut self, input: &mpsc::Sender<ExecInput>) {
        if self.queue.is_empty() {
            return std::future::pending().await;
        }
        let permit = input.reserve().await;
        if let Some(next) = self.queue.pop_front() {
            self.bytes -= size_of_input(&next);
            // A process that takes no more input may still have output: the client learns of its end there.
            if let Ok(permit) = permit {
                permit.send(next);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn take_all(&mut self) -> Vec<ExecInput> {
        self.bytes = 0;
        self.queue.drain(..).collect()
    }
}

/// Bytes that an input counts as; more than none, so that a flood of resizes is bounded too.
fn size_of_input(input: &ExecInput) -> usize {
    match input {
        ExecInput::Stdin(bytes) => bytes.len() + SMALL_INPUT,
        ExecInput::CloseStdin | ExecInput::Resize(..) => SMALL_INPUT,
    }
}

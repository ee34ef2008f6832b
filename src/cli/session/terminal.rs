//! This terminal: its size, and single keys instead of lines.

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, IsTerminal};
use std::sync::{Mutex, PoisonError};

/// Original settings of the terminal while it is raw. The panic hook reads them, because with `panic = "abort"` nothing is dropped.
static ORIGINAL: Mutex<Option<Termios>> = Mutex::new(None);

/// Columns and rows of the terminal; `None` when there is none.
pub(super) fn size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(io::stdout()).or_else(|_| tcgetwinsize(io::stdin())).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}

/// The terminal in raw mode; restored when dropped, and when the process panics.
#[derive(Debug)]
pub(super) struct RawTerminal(());

impl RawTerminal {
    /// Switches over; `None` when stdin is no terminal.
    pub(super) fn enter() -> io::Result<Option<Self>> {
        let stdin = io::stdin();
        if !stdin.is_terminal() {
            return Ok(None);
        }
        let original = tcgetattr(&stdin)?;
        let mut raw = original.clone();
        raw.make_raw();
        *ORIGINAL.lock().unwrap_or_else(PoisonError::into_inner) = Some(original);
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
        tcsetattr(&stdin, OptionalActions::Now, &raw)?;
        Ok(Some(Self(())))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    let original = ORIGINAL.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(original) = original {
        // What was typed but not sent stays for the shell. A terminal that went away needs no restoring.
        tcsetattr(io::stdin(), OptionalActions::Now, &original).ok();
    }
}

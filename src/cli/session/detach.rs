//! Recognising ctrl-p ctrl-q, which leaves an attached container alone. **Pure**.

use bytes::Bytes;

const CTRL_P: u8 = 0x10;
const CTRL_Q: u8 = 0x11;

/// Detects the detach keys in the input.
#[derive(Debug, Default)]
pub(super) struct DetachKeys {
    /// A ctrl-p was typed and is held back until the next key.
    pressed: bool,
}

impl DetachKeys {
    /// Returns the bytes to send; `None` if the detach keys were typed.
    pub(super) fn filter(&mut self, bytes: &Bytes) -> Option<Bytes> {
        if !self.pressed && !bytes.contains(&CTRL_P) {
            return Some(bytes.clone());
        }
        let mut passed = Vec::with_capacity(bytes.len() + 1);
        for byte in bytes {
            match (*byte, self.pressed) {
                (CTRL_Q, true) => return None,
                (CTRL_P, false) => self.pressed = true,
                (CTRL_P, true) => passed.push(CTRL_P),
                (byte, pressed) => {
                    if pressed {
                        passed.push(CTRL_P);
                    }
                    passed.push(byte);
                    self.pressed = false;
                }
            }
        }
        Some(Bytes::from(passed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(pieces: &[&'static [u8]]) -> Vec<Option<Bytes>> {
        let mut keys = DetachKeys::default();
        pieces.iter().map(|piece| keys.filter(&Bytes::from_static(piece))).collect()
    }

    #[test]
    fn the_keys_are_seen_together_and_apart() {
        assert_eq!(typed(&[b"\x10\x11"]), [None]);
        assert_eq!(typed(&[b"a\x10", b"\x11"]), [Some(Bytes::from_static(b"a")), None]);
        assert_eq!(typed(&[b"\x10\x10", b"\x11"]), [Some(Bytes::from_static(b"\x10")), None]);
    }

    #[test]
    fn other_keys_pass() {
        assert_eq!(typed(&[b"ls\n"]), [Some(Bytes::from_static(b"ls\n"))]);
        assert_eq!(typed(&[b"\x10", b"x\x11"]), [Some(Bytes::new()), Some(Bytes::from_static(b"\x10x\x11"))]);
    }
}

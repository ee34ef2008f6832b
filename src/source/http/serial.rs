//! Serials: how a body says that it is newer than another one. **Pure**.
//!
//! A signature says who made a body, not when: whoever can answer in the server's place can answer with an older signed one. `Date` and
//! `Last-Modified` are the server's words and prove nothing. So the order is in the signed bytes themselves: a number under the name
//! [`NAME`], as a comment (`# podstead.dev/serial: 42`) or as an annotation of an object, the same wherever it stands.
//!
//! * A body with a higher serial than the last accepted one is newer.
//! * A lower one is older, and the same one with other bytes is not comparable: both are refused.
//! * A body without a serial is refused after one with a serial, and where signatures are required.
//!
//! Unsigned bodies may have serials, too: that holds against a cache or a backup server that answers with something old.

pub(super) use podstead_pod::annotations::SERIAL as NAME;

/// Reason why the order of two bodies is unknown, or the wrong one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SerialError {
    /// Something else than a number.
    #[error("{NAME} at byte {0} is not followed by a colon and a whole number")]
    Malformed(usize),
    /// The body has two different serials.
    #[error("{NAME} has two values, {0} and {1}")]
    Ambiguous(u64, u64),
    /// None where one is needed.
    #[error("{}", missing(*.0))]
    Missing(Option<u64>),
    /// Older.
    #[error("{NAME} is {found}, lower than the accepted {accepted} (to accept it, set allowRollback: true)")]
    Older {
        /// Of this body.
        found: u64,
        /// Of the last accepted one.
        accepted: u64,
    },
    /// As old, and another one.
    #[error("{NAME} is {0}, as in the accepted body, but the content differs; raise it with each change")]
    Same(u64),
}

fn missing(accepted: Option<u64>) -> String {
    match accepted {
        Some(accepted) => {
            format!("{NAME} is missing, and the accepted body has {accepted} (to accept it, set allowRollback: true)")
        }
        None => format!("{NAME} is missing; a signed body needs it against replay of an older one (or set allowRollback: true)"),
    }
}

/// The serial in a body.
pub(super) fn find(body: &[u8]) -> Result<Option<u64>, SerialError> {
    let mut found = None;
    for at in memchr::memmem::find_iter(body, NAME) {
        let number = number(&body[at + NAME.len()..]).ok_or(SerialError::Malformed(at))?;
        match found {
            Some(other) if other != number => return Err(SerialError::Ambiguous(other, number)),
            Some(_) | None => found = Some(number),
        }
    }
    Ok(found)
}

/// Parses the number after the name, such as `": "42"`.
fn number(rest: &[u8]) -> Option<u64> {
    let after = |text: &'_ [u8], optional: &[u8]| text.iter().position(|byte| !optional.contains(byte)).unwrap_or(text.len());
    let rest = &rest[after(rest, b"\"' \t")..];
    let rest = rest.strip_prefix(b":")?;
    let rest = &rest[after(rest, b"\"' \t")..];
    let digits = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    let ends = rest.get(digits).is_none_or(|byte| b"\"' \t\r\n,}".contains(byte));
    if digits == 0 || !ends {
        return None;
    }
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

/// The last accepted body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Accepted {
    /// Its serial.
    pub(super) serial: Option<u64>,
    /// True if it has the same bytes.
    pub(super) same_body: bool,
}

/// Checks that a body with serial `found` may follow the accepted one. `needed`: it must have a serial even if nothing was accepted.
pub(super) fn may_follow(found: Option<u64>, accepted: Option<Accepted>, needed: bool) -> Result<(), SerialError> {
    let last = accepted.and_then(|accepted| accepted.serial);
    match (found, last) {
        _ if accepted.is_some_and(|accepted| accepted.same_body) => Ok(()),
        (None, last) if needed || last.is_some() => Err(SerialError::Missing(last)),
        (Some(found), Some(accepted)) if found < accepted => Err(SerialError::Older { found, accepted }),
        (Some(found), Some(accepted)) if found == accepted => Err(SerialError::Same(found)),
        (Some(_) | None, _) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_serial_is_found_in_comments_annotations_and_json() {
        for (body, serial) in [
            ("# podstead.dev/serial: 42\nkind: Pod\n", Ok(Some(42))),
            ("metadata: {annotations: {podstead.dev/serial: \"7\"}}", Ok(Some(7))),
            ("    podstead.dev/serial: '7'\n---\n    podstead.dev/serial: 7\r\n", Ok(Some(7))),
            (r#"{"podstead.dev/serial":"18446744073709551615"}"#, Ok(Some(u64::MAX))),
            ("kind: Pod", Ok(None)),
            ("a: podstead.dev/serial", Err(SerialError::Malformed(3))),
            ("podstead.dev/serial: -1", Err(SerialError::Malformed(0))),
            ("podstead.dev/serial: 1.5", Err(SerialError::Malformed(0))),
            ("podstead.dev/serial: 18446744073709551616", Err(SerialError::Malformed(0))),
            ("podstead.dev/serial: 1\npodstead.dev/serial: 2", Err(SerialError::Ambiguous(1, 2))),
        ] {
            assert_eq!(find(body.as_bytes()), serial, "{body}");
        }
    }

    #[test]
    fn only_higher_serials_follow() {
        let accepted = |serial| Some(Accepted { serial, same_body: false });
        assert_eq!(may_follow(Some(2), accepted(Some(1)), true), Ok(()));
        assert_eq!(may_follow(Some(2), accepted(None), true), Ok(()));
        assert_eq!(may_follow(Some(2), None, true), Ok(()));
        assert_eq!(may_follow(None, None, false), Ok(()));
        assert_eq!(may_follow(None, accepted(None), false), Ok(()));
        assert_eq!(may_follow(None, None, true), Err(SerialError::Missing(None)));
        assert_eq!(may_follow(None, accepted(Some(1)), false), Err(SerialError::Missing(Some(1))));
        assert_eq!(may_follow(Some(1), accepted(Some(2)), false), Err(SerialError::Older { found: 1, accepted: 2 }));
        assert_eq!(may_follow(Some(2), accepted(Some(2)), false), Err(SerialError::Same(2)));
        assert_eq!(may_follow(Some(2), Some(Accepted { serial: Some(2), same_body: true }), true), Ok(()));
    }

    proptest! {
        #[test]
        fn a_written_serial_is_found_whatever_is_around_it(number: u64, before in "[a-z: \n]{0,20}", after in "[a-z: \n]{0,20}") {
            let body = format!("{before}\n# {NAME}: {number}\n{after}");
            prop_assert_eq!(find(body.as_bytes()), Ok(Some(number)));
        }

        #[test]
        fn accepted_serials_only_rise(bodies in proptest::collection::vec(proptest::option::of(0_u64..5), 0..20)) {
            let mut accepted: Option<Option<u64>> = None;
            for serial in bodies {
                let last = accepted.map(|serial| Accepted { serial, same_body: false });
                if may_follow(serial, last, false).is_ok() {
                    prop_assert!(accepted.flatten().is_none_or(|last| serial.is_some_and(|serial| serial > last)));
                    accepted = Some(serial);
                }
            }
        }
    }
}

//! Variables in manifests: `${NAME}` and `${NAME:-default}`, before anything is decoded. **Pure**.
//!
//! Only names that are listed are replaced, so that scripts in manifests keep their own variables. Text is replaced by text: whether it
//! has to stand in quotation marks is for the manifest's author to say.

use super::fault::{Fault, quoted};
use super::lines::Lines;
use super::{Limits, Problem};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The class of all problems here.
const CODE: &str = "variable";

/// The names that are replaced, and what by; `None` for one that has no value on this host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Substitution {
    values: BTreeMap<String, Option<String>>,
}

/// A reference as it is written.
struct Reference<'a> {
    name: &'a str,
    default: Option<&'a str>,
    /// Bytes of the whole.
    length: usize,
}

/// Text at a dollar sign.
enum Found<'a> {
    /// Nothing that is replaced.
    Text,
    Reference(Reference<'a>),
    /// A listed name in a form that is not known.
    Malformed(&'a str),
}

impl Substitution {
    /// Replaces these names.
    pub fn new(values: impl IntoIterator<Item = (String, Option<String>)>) -> Self {
        Self { values: values.into_iter().collect() }
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// Replaces in one line of text that is no manifest, such as a path; says what is wrong.
    pub fn in_line(&self, text: &str) -> Result<String, String> {
        match self.replace(text.as_bytes(), usize::MAX) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(mut faults) => Err(faults.swap_remove(0).message),
        }
    }

    fn replace<'a>(&self, bytes: &'a [u8], limit: usize) -> Result<Cow<'a, [u8]>, Vec<Fault>> {
        let (mut out, mut faults) = (Vec::new(), Vec::new());
        // Up to `copied`, the bytes are in `out`; up to `at`, they were looked at.
        let (mut copied, mut at) = (0, 0);
        while let Some(dollar) = bytes[at..].iter().position(|byte| *byte == b'$').map(|offset| at + offset) {
            at = dollar + 1;
            let is_escaped = bytes.get(at) == Some(&b'$');
            let fault = |message| Fault::at(CODE, u32::try_from(dollar).unwrap_or(u32::MAX), message);
            let reference = match self.find(&bytes[dollar + usize::from(is_escaped)..]) {
                Found::Text => continue,
                Found::Malformed(_) if is_escaped => {
                    at += 1;
                    continue;
                }
                Found::Malformed(name) => {
                    let message = format!("the reference to variable {name} is neither ${{{name}}} nor ${{{name}:-default}}");
                    faults.push(fault(message).hint(format!("write $${{{name} to keep the text")));
                    continue;
                }
                Found::Reference(reference) => reference,
            };
            out.extend_from_slice(&bytes[copied..dollar]);
            if is_escaped {
                // One dollar sign goes, the rest stays as it is.
                copied = dollar + 1;
                at = copied + reference.length;
            } else {
                copied = dollar + reference.length;
                at = copied;
                let name = reference.name;
                match self.value(&reference) {
                    Some(value) => out.extend_from_slice(value.as_bytes()),
                    None => {
                        let hint = format!("write ${{{name}:-default}}, or set it in variables of the configuration");
                        faults.push(fault(format!("the variable {name} has no value on this host")).hint(hint));
                    }
                }
            }
            if out.len() > limit {
                faults.push(fault(format!("after variable substitution, the file is larger than {limit} bytes")));
                break;
            }
        }
        match (faults.is_empty(), copied) {
            (false, _) => Err(faults),
            (true, 0) => Ok(Cow::Borrowed(bytes)),
            (true, _) => {
                out.extend_from_slice(&bytes[copied..]);
                Ok(Cow::Owned(out))
            }
        }
    }

    /// Parses the text at the dollar sign that `bytes` begin with.
    fn find<'a>(&self, bytes: &'a [u8]) -> Found<'a> {
        let Some(inner) = bytes.strip_prefix(b"${") else { return Found::Text };
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let name = &inner[..inner.iter().position(|byte| !is_name(byte)).unwrap_or(inner.len())];
        let Some(name) = std::str::from_utf8(name).ok().filter(|name| self.values.contains_key(*name)) else { return Found::Text };
        let rest = &inner[name.len()..];
        let whole = |default, after: usize| Found::Reference(Reference { name, default, length: 2 + name.len() + after });
        if rest.first() == Some(&b'}') {
            return whole(None, 1);
        }
        let default = rest.strip_prefix(b":-").and_then(|rest| {
            let end = rest.iter().position(|byte| matches!(byte, b'}' | b'\n'))?;
            if rest[end] == b'}' { std::str::from_utf8(&rest[..end]).ok() } else { None }
        });
        match default {
            Some(default) => whole(Some(default), 3 + default.len()),
            None => Found::Malformed(name),
        }
    }

    /// As in a shell, a value that is empty counts as none where there is a default.
    fn value<'a>(&'a self, reference: &Reference<'a>) -> Option<&'a str> {
        let value = self.values.get(reference.name).and_then(|value| value.as_deref());
        match reference.default {
            Some(default) => Some(value.filter(|value| !value.is_empty()).unwrap_or(default)),
            None => value,
        }
    }
}

/// The bytes of `file` with its variables replaced; else what is wrong, with its place.
pub fn substitute<'a>(
    file: &str,
    bytes: &'a [u8],
    substitution: &Substitution,
    limits: &Limits,
) -> Result<Cow<'a, [u8]>, Vec<Problem>> {
    substitution.replace(bytes, limits.max_bytes).map_err(|faults| {
        let lines = Lines::new(bytes);
        faults.into_iter().map(|fault| fault.into_problem(file, &lines, None)).collect()
    })
}

/// Reports whether a name is valid for a variable: letters, digits and `_`, not beginning with a digit.
pub fn is_variable_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.len() <= 63 && name.bytes().all(inner) && !name.as_bytes()[0].is_ascii_digit()
}

/// Message for a name that is not valid for a variable.
pub fn variable_name_problem(name: &str) -> String {
    format!("{} is not a variable name: must be at most 63 letters, digits and _, and not start with a digit", quoted(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn substitution() -> Substitution {
        let some = |text: &str| Some(text.to_owned());
        Substitution::new([("NODE_NAME".into(), some("edge-1")), ("EMPTY".into(), some("")), ("UNSET".into(), None)])
    }

    fn replaced(text: &str) -> Result<String, String> {
        let limits = Limits { max_bytes: 100, ..Limits::default() };
        let result = substitute("p.yaml", text.as_bytes(), &substitution(), &limits);
        result
            .map(|bytes| String::from_utf8(bytes.into_owned()).unwrap())
            .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn listed_names_are_replaced_and_everything_else_stays() {
        for (text, expected) in [
            ("a: ${NODE_NAME}", "a: edge-1"),
            ("${NODE_NAME}${NODE_NAME}x", "edge-1edge-1x"),
            ("${NODE_NAME:-b}", "edge-1"),
            ("${UNSET:-a b}${UNSET:-}${EMPTY:-c}[${EMPTY}]", "a bc[]"),
            ("$${NODE_NAME} $${UNSET:-x}", "${NODE_NAME} ${UNSET:-x}"),
            (
                "${HOME} $NODE_NAME $(NODE_NAME) $ ${ ${} $$ $${HOME} ${node_name}",
                "${HOME} $NODE_NAME $(NODE_NAME) $ ${ ${} $$ $${HOME} ${node_name}",
            ),
            ("ü ${NODE_NAME} ü", "ü edge-1 ü"),
            ("$$${NODE_NAME}", "$${NODE_NAME}"),
            ("", ""),
        ] {
            assert_eq!(replaced(text).as_deref(), Ok(expected), "{text}");
        }
        let untouched = b"no variables ${HOME}";
        assert!(matches!(substitute("p", untouched, &substitution(), &Limits::default()), Ok(Cow::Borrowed(_))));
    }

    #[test]
    fn what_has_no_value_or_no_end_is_told_with_its_place() {
        let error = replaced("a: b\nc: ${UNSET} ${NODE_NAME:=x}\nd: ${NODE_NAME\ne: ${UNSET:-x\n").unwrap_err();
        let lines: Vec<&str> = error.lines().collect();
        assert_eq!(lines.len(), 4, "{error}");
        assert!(lines[0].starts_with("p.yaml:2:4: error[variable]: the variable UNSET has no value on this host"), "{error}");
        assert!(lines[1].starts_with("p.yaml:2:13: error[variable]: the reference to variable NODE_NAME is neither"), "{error}");
        assert!(lines[2].starts_with("p.yaml:3:4") && lines[3].starts_with("p.yaml:4:4"), "{error}");
    }

    #[test]
    fn replacing_does_not_grow_without_bound() {
        assert!(replaced(&"${NODE_NAME}".repeat(1000)).unwrap_err().contains("larger than 100 bytes"));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_answered_and_text_without_listed_names_stays(text in "[${}A-Z:\\-\n ]{0,40}") {
            let nothing = Substitution::new([]);
            proptest::prop_assert_eq!(nothing.in_line(&text), Ok(text.clone()));
            substitution().in_line(&text).ok();
        }
    }
}

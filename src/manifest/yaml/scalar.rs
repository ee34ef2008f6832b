//! Unquoted scalars as sigs.k8s.io/yaml reads them: by the rules of YAML 1.1 as go-yaml 2 has them.

use crate::node::Value;
use serde_json::Number;

/// Returns the value of an unquoted scalar.
pub(crate) fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => return Value::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => return Value::Bool(false),
        _ => {}
    }
    let number = match text.as_bytes() {
        [b'.', ..] if underscores_part_digits(text) => special_float(text).or_else(|| float(&text.replace('_', ""))),
        [b'+' | b'-' | b'0'..=b'9', ..] => {
            let digits = text.replace('_', "");
            special_float(text).or_else(|| integer(&digits)).or_else(|| float(&digits))
        }
        _ => None,
    };
    number.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// A float as a value. Whole ones are integers (Go writes 1e3 as 1000, which an integer field accepts); JSON has no infinity.
pub(super) fn from_float(float: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if float.fract() == 0.0 && float.abs() <= EXACT {
        return Value::Number(Number::from(float as i64));
    }
    match Number::from_f64(float) {
        Some(number) => Value::Number(number),
        None => Value::Unsupported("a number that JSON cannot express (infinity or not-a-number)".to_owned()),
    }
}

/// Go's `ParseFloat`, unlike go-yaml elsewhere, wants a digit on both sides of an underscore.
fn underscores_part_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    text.match_indices('_').all(|(at, _)| digit(at.checked_sub(1)) && digit(Some(at + 1)))
}

fn special_float(text: &str) -> Option<Value> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    match unsigned {
        ".inf" | ".Inf" | ".INF" => Some(from_float(f64::INFINITY)),
        ".nan" | ".NaN" | ".NAN" if unsigned.len() == text.len() => Some(from_float(f64::NAN)),
        _ => None,
    }
}

/// Go's `ParseInt` and `ParseUint` with base 0: `0x`, `0o`, `0b` or a plain `0` name the base.
fn integer(text: &str) -> Option<Value> {
    let (negative, unsigned) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &unsigned[2..]),
        [b'0', b'o' | b'O', ..] => (8, &unsigned[2..]),
        [b'0', b'b' | b'B', ..] => (2, &unsigned[2..]),
        [b'0', _, ..] => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        let value = i64::try_from(-i128::from(magnitude)).ok()?;
        return Some(Value::Number(Number::from(value)));
    }
    // Go takes an explicit `+` only where the number fits 64 bits with a sign.
    if text.starts_with('+') && i64::try_from(magnitude).is_err() {
        return None;
    }
    Some(Value::Number(Number::from(magnitude)))
}

/// `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`
fn float(text: &str) -> Option<Value> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let allowed = |byte: u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
    if !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') || !unsigned.bytes().all(allowed) {
        return None;
    }
    let value = text.parse::<f64>().ok()?;
    value.is_finite().then(|| from_float(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> String {
        match plain(text) {
            Value::Null => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Number(number) => number.to_string(),
            Value::String(text) => format!("{text:?}"),
            Value::Unsupported(_) => "error".to_owned(),
            Value::List(_) | Value::Map(_) => unreachable!(),
        }
    }

    /// Input and what sigs.k8s.io/yaml makes of it.
    const CASES: &[(&str, &str)] = &[
        ("", "null"),
        ("~", "null"),
        ("null", "null"),
        ("Null", "null"),
        ("NULL", "null"),
        ("nULL", "\"nULL\""),
        ("y", "true"),
        ("Y", "true"),
        ("yes", "true"),
        ("YES", "true"),
        ("yEs", "\"yEs\""),
        ("on", "true"),
        ("On", "true"),
        ("true", "true"),
        ("True", "true"),
        ("tRUE", "\"tRUE\""),
        ("n", "false"),
        ("N", "false"),
        ("no", "false"),
        ("NO", "false"),
        ("off", "false"),
        ("OFF", "false"),
        ("false", "false"),
        ("nope", "\"nope\""),
        ("0", "0"),
        ("-0", "0"),
        ("7", "7"),
        ("+7", "7"),
        ("-7", "-7"),
        ("--7", "\"--7\""),
        ("+-7", "\"+-7\""),
        ("0644", "420"),
        ("-0644", "-420"),
        ("00", "0"),
        ("08", "8"),
        ("0_644", "420"),
        ("0o644", "420"),
        ("0O17", "15"),
        ("0x1F", "31"),
        ("0X1f", "31"),
        ("-0x1F", "-31"),
        ("0x", "\"0x\""),
        ("0xZZ", "\"0xZZ\""),
        ("0x_1F", "31"),
        ("0b101", "5"),
        ("-0b11", "-3"),
        ("0b2", "\"0b2\""),
        ("1_000", "1000"),
        ("1__0", "10"),
        ("_1", "\"_1\""),
        ("9223372036854775807", "9223372036854775807"),
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", "1.8446744073709552e+19"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("-9223372036854775809", "-9.223372036854776e+18"),
        ("1.5", "1.5"),
        ("1.0", "1"),
        ("1.", "1"),
        (".5", "0.5"),
        ("-.5", "-0.5"),
        ("+.5", "0.5"),
        (".", "\".\""),
        ("._5", "\"._5\""),
        (".5_44", "0.544"),
        (".5__4", "\".5__4\""),
        (".5_", "\".5_\""),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("1e+3", "1000"),
        ("1.5e-2", "0.015"),
        ("e3", "\"e3\""),
        ("1e400", "\"1e400\""),
        ("12e03", "12000"),
        ("685_230.15", "685230.15"),
        (".inf", "error"),
        ("-.Inf", "error"),
        (".nan", "error"),
        ("-.nan", "\"-.nan\""),
        ("inf", "\"inf\""),
        ("nan", "\"nan\""),
        ("+inf", "\"+inf\""),
        ("Infinity", "\"Infinity\""),
        ("0x1p-2", "\"0x1p-2\""),
        ("1:30", "\"1:30\""),
        ("2001-01-01", "\"2001-01-01\""),
        ("2024-01-01T00:00:00Z", "\"2024-01-01T00:00:00Z\""),
        ("1.2.3", "\"1.2.3\""),
        ("1.2.3.4", "\"1.2.3.4\""),
        ("100m", "\"100m\""),
        ("64Mi", "\"64Mi\""),
        ("-", "\"-\""),
        ("+", "\"+\""),
        ("1 2", "\"1 2\""),
        ("<<", "\"<<\""),
        ("=", "\"=\""),
    ];

    #[test]
    fn unquoted_scalars_mean_what_kubernetes_reads() {
        for (text, expected) in CASES {
            assert_eq!(&json(text), expected, "{text:?}");
        }
        assert!(CASES.len() >= 60);
    }
}

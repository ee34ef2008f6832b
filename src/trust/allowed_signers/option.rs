//! The options of a line: `namespaces="git,file",valid-after="20250101Z"`.

use crate::key::shown;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Restrictions of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// A list of patterns; `None`: all namespaces.
    pub(super) namespaces: Option<String>,
    /// First moment of validity.
    pub(super) valid_after: Option<Timestamp>,
    /// Last moment of validity.
    pub(super) valid_before: Option<Timestamp>,
}

/// The options that `text` begins with, and what comes after them.
pub(super) fn parse(text: &str) -> Result<(Options, &str), String> {
    let mut options = Options::default();
    let mut rest = text;
    loop {
        let end = rest.find(['=', ',', ' ', '\t']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let name = name.to_ascii_lowercase();
        if name == "cert-authority" {
            return Err("certificate authorities are not supported; list the keys themselves".to_owned());
        }
        if !["namespaces", "valid-after", "valid-before"].contains(&name.as_str()) {
            if after.is_empty() {
                return Err("the line has no key (expected principals, options, key type and key, in this order)".to_owned());
            }
            return Err(format!(
                "unknown option {:?}; supported are namespaces, valid-after and valid-before",
                shown(name.as_bytes())
            ));
        }
        let (value, after) = quoted(&name, after)?;
        let twice = || format!("duplicate option {name}");
        match name.as_str() {
            "namespaces" if value.split(',').any(|pattern| pattern.trim_start_matches('!').is_empty()) => {
                return Err("namespaces has an empty pattern".to_owned());
            }
            "namespaces" => options.namespaces.replace(value).map_or(Ok(()), |_| Err(twice()))?,
            "valid-after" => options.valid_after.replace(time(&value)?).map_or(Ok(()), |_| Err(twice()))?,
            _ => options.valid_before.replace(time(&value)?).map_or(Ok(()), |_| Err(twice()))?,
        }
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() || after.starts_with([' ', '\t']) => {
                if let (Some(from), Some(until)) = (options.valid_after, options.valid_before)
                    && until <= from
                {
                    return Err("valid-before is not later than valid-after".to_owned());
                }
                return Ok((options, after));
            }
            None => return Err(format!("a comma or a space must follow the value of {name}")),
        }
    }
}

/// The value after `=`, in quotation marks, in which `\"` is a quotation mark.
fn quoted<'a>(name: &str, text: &'a str) -> Result<(String, &'a str), String> {
    let inner = text.strip_prefix("=\"").ok_or_else(|| format!("the value of {name} must be in quotation marks"))?;
    let mut value = String::new();
    let mut chars = inner.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((value, &inner[at + 1..])),
            '\\' if chars.next_if(|(_, next)| *next == '"').is_some() => value.push('"'),
            c => value.push(c),
        }
    }
    Err(format!("the value of {name} has no closing quotation mark"))
}

/// `YYYYMMDD`, `YYYYMMDDHHMM` or `YYYYMMDDHHMMSS`, with or without a final `Z`. OpenSSH takes a time without it for local; here it is
/// UTC, so that one file means the same on every host.
fn time(text: &str) -> Result<Timestamp, String> {
    let bad = || {
        let text = shown(text.as_bytes());
        format!("{text:?} is not a time of the form YYYYMMDD, YYYYMMDDHHMM or YYYYMMDDHHMMSS, with Z for UTC")
    };
    let digits = text.strip_suffix(['Z', 'z']).unwrap_or(text);
    if ![8, 12, 14].contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad());
    }
    let year = digits[..4].parse::<i16>().map_err(|_| bad())?;
    let part = |from: usize| digits.get(from..from + 2).map_or(Ok(0), |two| two.parse::<i8>().map_err(|_| bad()));
    let civil = DateTime::new(year, part(4)?, part(6)?, part(8)?, part(10)?, part(12)?, 0).map_err(|_| bad())?;
    TimeZone::UTC.to_timestamp(civil).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_all_three_lengths_are_read_as_utc() {
        let read = |text: &str| time(text).map(|time| time.to_string());
        assert_eq!(read("20250203").unwrap(), "2025-02-03T00:00:00Z");
        assert_eq!(read("202502031405Z").unwrap(), "2025-02-03T14:05:00Z");
        assert_eq!(read("20250203140506z").unwrap(), "2025-02-03T14:05:06Z");
        for bad in ["", "2025", "20250230", "20250203T1405", "202502032405", "2025020314", "2025-02-03", "20250203ZZ"] {
            assert!(read(bad).unwrap_err().contains("YYYYMMDD"), "{bad}");
        }
    }
}

//! The zone of a schedule, found by its name (W70).

use jiff::tz::{TimeZone, TimeZoneDatabase};

/// A name that is no zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    /// The field is written and empty.
    #[error("timeZone must be nil or non-empty string")]
    Empty,
    /// The zone of the host, which differs from host to host.
    #[error("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")]
    Local,
    /// No zone of the database.
    #[error("unknown time zone {name}")]
    Unknown {
        /// The name as written.
        name: String,
        /// The zone that differs in upper and lower case alone.
        similar: Option<String>,
    },
}

impl ZoneError {
    /// The fix.
    pub fn hint(&self) -> String {
        match self {
            ZoneError::Empty => "remove the field for UTC, or name a zone such as Europe/Berlin".to_owned(),
            ZoneError::Local => "name a zone such as Europe/Berlin; without the field the schedule is in UTC".to_owned(),
            ZoneError::Unknown { similar: Some(similar), .. } => format!("write {similar}"),
            ZoneError::Unknown { similar: None, .. } => "name a zone of the IANA database, such as Europe/Berlin".to_owned(),
        }
    }
}

/// Finds a zone. Without a name it is UTC: the zone of the host would make one manifest mean different times in a fleet (W70).
pub fn zone(name: Option<&str>, zones: &TimeZoneDatabase) -> Result<TimeZone, ZoneError> {
    let name = match name {
        None | Some("UTC") => return Ok(TimeZone::UTC),
        Some("") => return Err(ZoneError::Empty),
        Some(name) if name.eq_ignore_ascii_case("local") => return Err(ZoneError::Local),
        Some(name) => name,
    };
    let unknown = |similar| ZoneError::Unknown { name: name.to_owned(), similar };
    if !name.split('/').all(is_component) {
        return Err(unknown(None));
    }
    let zone = zones.get(name).map_err(|_| unknown(None))?;
    // The database ignores case; upstream reads files, whose names do not.
    match zone.iana_name() {
        _ if zone.is_unknown() => Err(unknown(None)),
        Some(exact) if exact != name => Err(unknown(Some(exact.to_owned()))),
        Some(_) | None => Ok(zone),
    }
}

fn is_component(component: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
    (1..=14).contains(&component.len())
        && component.chars().all(allowed)
        && !component.starts_with('-')
        && !matches!(component, "." | "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str) -> Result<String, String> {
        let zone = zone(Some(name), &TimeZoneDatabase::bundled());
        zone.map(|zone| zone.iana_name().unwrap_or("none").to_owned()).map_err(|error| format!("{error}; {}", error.hint()))
    }

    #[test]
    fn zone_is_utc_without_name() {
        assert_eq!(zone(None, &TimeZoneDatabase::bundled()), Ok(TimeZone::UTC));
    }

    #[test]
    fn zone_is_found_by_exact_name() {
        for name in ["Europe/Berlin", "US/Eastern", "UTC", "Etc/GMT+5", "America/Argentina/Buenos_Aires", "GMT", "Etc/UTC"] {
            assert_eq!(found(name).as_deref(), Ok(name));
        }
    }

    #[test]
    fn wrong_zones_are_refused_with_fix() {
        assert_eq!(found("europe/berlin").unwrap_err(), "unknown time zone europe/berlin; write Europe/Berlin");
        assert!(found("Europe/Pariss").unwrap_err().starts_with("unknown time zone Europe/Pariss; name a zone"));
        assert!(found("").unwrap_err().starts_with("timeZone must be nil or non-empty string"));
        assert!(found("LOCAL").unwrap_err().starts_with("timeZone must be an explicit time zone"));
        for name in ["../Berlin", "Europe//Berlin", "Etc/Unknown", "CET-1CEST", "/Europe/Berlin"] {
            assert!(found(name).is_err(), "{name}");
        }
    }
}

//! Selection of a revision.

use crate::history::RevisionError;
use crate::last_good::Stamp;
use podstead_pod::SourceId;

/// Digits that name a revision without doubt, at least.
const SHORTEST: usize = 4;

/// Finds the stamp that `wanted` means among `stamps` (newest first, `in_force` not among them): a number, a revision, or the beginning of
/// one, with or without what stands before its colon. `None` is the newest one without refused objects before what is in force, or before
/// what was restored: who goes back again goes further back.
pub(crate) fn select<'a>(
    id: &SourceId,
    in_force: &'a Stamp,
    stamps: &'a [Stamp],
    wanted: Option<&str>,
) -> Result<&'a Stamp, RevisionError> {
    let Some(wanted) = wanted else {
        let origin = in_force.restored_from.unwrap_or(in_force.number);
        let mut earlier = stamps.iter().filter(|stamp| stamp.number < origin && stamp.revision != in_force.revision).peekable();
        let nothing = if earlier.peek().is_none() { RevisionError::NothingEarlier } else { RevisionError::NothingClean };
        return earlier.find(|stamp| stamp.refused.is_empty()).ok_or_else(|| nothing(id.clone()));
    };
    let all = || std::iter::once(in_force).chain(stamps);
    let number = wanted.strip_prefix('#').unwrap_or(wanted).parse::<u64>().ok();
    if let Some(stamp) = all().find(|stamp| Some(stamp.number) == number) {
        return Ok(stamp);
    }
    let begins = |stamp: &&Stamp| {
        let revision = stamp.revision.0.as_str();
        let digits = revision.split_once(':').map_or(revision, |(_, digits)| digits);
        revision == wanted || (wanted.len() >= SHORTEST && (revision.starts_with(wanted) || digits.starts_with(wanted)))
    };
    let mut found = all().filter(begins);
    let first = found.next().ok_or_else(|| RevisionError::NoSuchRevision { id: id.clone(), wanted: wanted.to_owned() })?;
    // The same revision may have been in force several times: the newest counts.
    if found.any(|other| other.revision != first.revision) {
        return Err(RevisionError::Ambiguous { id: id.clone(), wanted: wanted.to_owned() });
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{RefusedObject, RevisionState};
    use podstead_pod::Revision;

    fn stamp(number: u64, revision: &str) -> Stamp {
        Stamp {
            number,
            revision: Revision(revision.into()),
            place: None,
            accepted_at: jiff::Timestamp::UNIX_EPOCH,
            restored_from: None,
            newest: None,
            policy: None,
            state: RevisionState::Accepted,
            refused: Vec::new(),
            commit: None,
        }
    }

    fn selected(in_force: &Stamp, stamps: &[Stamp], wanted: Option<&str>) -> Result<u64, String> {
        select(&SourceId::new("fleet"), in_force, stamps, wanted).map(|stamp| stamp.number).map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_and_beginnings_of_revisions_name_one() {
        let (in_force, stamps) =
            (stamp(9, "sha256:abcd99"), [stamp(8, "abcd88"), stamp(7, "beef77"), stamp(3, "beef77"), stamp(2, "x")]);
        let selected = |wanted| selected(&in_force, &stamps, Some(wanted));
        assert_eq!(selected("7"), Ok(7));
        assert_eq!(selected("#8"), Ok(8));
        assert_eq!(selected("beef"), Ok(7), "the newest of the same revision");
        assert_eq!(selected("abcd9"), Ok(9), "what is in force can be named as well");
        assert_eq!(selected("sha256:abcd99"), Ok(9));
        assert_eq!(selected("x"), Ok(2), "a whole revision may be short");
        assert!(selected("abcd").unwrap_err().contains("several revisions of source"));
        for unknown in ["bee", "5", "", "beef78"] {
            assert!(selected(unknown).unwrap_err().contains("has no revision"), "{unknown}");
        }
    }

    #[test]
    fn going_back_passes_over_refused_revisions() {
        let broken = |number| {
            let refused = RefusedObject { object: None, place: "web.yaml:3:1".into(), message: "unknown field".into() };
            Stamp { refused: vec![refused], state: RevisionState::PartlyRefused, ..stamp(number, "broken") }
        };
        assert_eq!(selected(&stamp(3, "revert"), &[broken(2), stamp(1, "good")], None), Ok(1));
        assert_eq!(selected(&stamp(3, "revert"), &[broken(2), stamp(1, "good")], Some("2")), Ok(2), "one that is named is meant");
        let nothing = selected(&stamp(3, "revert"), &[broken(2), broken(1)], None).unwrap_err();
        assert!(nothing.contains("has refused objects; name one"), "{nothing}");
    }

    #[test]
    fn going_back_again_goes_further_back() {
        let stamps = [stamp(4, "d"), stamp(3, "d"), stamp(2, "b"), stamp(1, "a")];
        assert_eq!(selected(&stamp(5, "d"), &stamps, None), Ok(2), "the same revision is not an earlier one");
        let restored = Stamp { restored_from: Some(2), ..stamp(6, "b") };
        assert_eq!(selected(&restored, &stamps, None), Ok(1));
        let first = Stamp { restored_from: Some(1), ..stamp(7, "a") };
        assert!(selected(&first, &stamps, None).unwrap_err().contains("has no revision before"));
    }
}

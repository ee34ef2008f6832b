//! Positions of the fields of one object, in about 12 bytes per field.

use super::places::Place;
use podstead_pod::Position;

/// Field paths to positions. A path that was not written has the place of its nearest written parent, in the end that of the
/// object. Paths are spelled as Kubernetes spells them; `labels[app]` and `labels.app` are the same.
///
/// Paths are kept as hashes: a wrong answer for a path that is not in the file is possible, with a chance of 1 in 10 million.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PositionMap {
    /// Sorted by hash.
    entries: Box<[Entry]>,
    object: Option<Place>,
    prefix: Box<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    hash: u32,
    line: u32,
    /// Capped: a column that far out is of no use.
    column: u16,
    file: u16,
}

impl PositionMap {
    /// The place of a field, e.g. `spec.containers[0].image`, or of its nearest parent that is written.
    /// `None` only for the empty map.
    pub fn position(&self, field: &str) -> Option<Position> {
        self.place(field).map(|place| place.position)
    }

    /// Returns the patch that wrote a field, or its nearest written parent: its index among those of the object. `None` for a field that
    /// the object's own document wrote.
    pub fn patch(&self, field: &str) -> Option<usize> {
        usize::from(self.place(field)?.file).checked_sub(1)
    }

    fn place(&self, field: &str) -> Option<Place> {
        let mut hash = PathHash::ROOT;
        let mut best = self.object;
        for segment in segments(field) {
            hash = hash.child(segment);
            // A key with dots (an annotation) is one step when written and several here, so a miss says nothing about the rest.
            best = self.exact(hash).or(best);
        }
        best
    }

    /// The field's path from the root of its document: with `items[3].` before it when the object is part of a list.
    pub fn field_in_file(&self, field: &str) -> String {
        match (self.prefix.is_empty(), field.is_empty()) {
            (true, _) => field.to_owned(),
            (false, true) => self.prefix.to_string(),
            (false, false) => format!("{}.{field}", self.prefix),
        }
    }

    fn exact(&self, hash: PathHash) -> Option<Place> {
        let at = self.entries.binary_search_by_key(&hash.0, |entry| entry.hash).ok()?;
        let Entry { hash: _, line, column, file } = self.entries[at];
        Some(Place { file, position: Position { line, column: u32::from(column) } })
    }
}

fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split(['.', '[', ']']).filter(|segment| !segment.is_empty())
}

/// A field path while walking down, four bytes long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathHash(u32);

impl PathHash {
    /// The object itself.
    pub(super) const ROOT: Self = Self(0x811c_9dc5);

    /// The path of a field or map key below.
    pub(super) fn child(self, name: &str) -> Self {
        segments(name).fold(self, |path, segment| segment.bytes().fold(path.byte(b'.'), Self::byte))
    }

    /// The path of a list element below.
    pub(super) fn index(self, index: usize) -> Self {
        let mut digits = [0_u8; 20];
        let mut begin = digits.len();
        let mut rest = index;
        loop {
            begin -= 1;
            digits[begin] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        digits[begin..].iter().fold(self.byte(b'.'), |path, digit| path.byte(*digit))
    }

    /// FNV-1a.
    fn byte(self, byte: u8) -> Self {
        Self((self.0 ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }
}

/// Collects positions during the walk over one object.
#[derive(Debug, Default)]
pub(super) struct PositionMapBuilder {
    entries: Vec<Entry>,
}

impl PositionMapBuilder {
    /// Notes the place of a path.
    pub(super) fn record(&mut self, path: PathHash, place: Place) {
        let Place { file, position: Position { line, column } } = place;
        let column = u16::try_from(column).unwrap_or(u16::MAX);
        self.entries.push(Entry { hash: path.0, line, column, file });
    }

    /// The finished map of an object that begins at `object`; `prefix` is the object's own path in its document.
    pub(super) fn build(mut self, object: Position, prefix: &str) -> PositionMap {
        self.entries.sort_unstable();
        self.entries.dedup_by_key(|entry| entry.hash);
        PositionMap {
            entries: self.entries.into_boxed_slice(),
            object: Some(Place { file: 0, position: object }),
            prefix: prefix.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32) -> Position {
        Position { line, column: 3 }
    }

    fn of(file: u16, line: u32) -> Place {
        Place { file, position: at(line) }
    }

    fn map() -> PositionMap {
        let mut builder = PositionMapBuilder::default();
        let containers = PathHash::ROOT.child("spec").child("containers");
        builder.record(PathHash::ROOT.child("spec"), of(0, 2));
        builder.record(containers, of(0, 3));
        builder.record(containers.index(0), of(0, 4));
        builder.record(containers.index(12), of(0, 5));
        builder.record(containers.index(12).child("image"), of(1, 6));
        builder.record(PathHash::ROOT.child("metadata").child("annotations").child("prometheus.io/port"), of(0, 7));
        builder.build(at(1), "items[3]")
    }

    #[test]
    fn a_path_has_its_own_place_or_that_of_its_nearest_parent() {
        let map = map();
        assert_eq!(map.position("spec.containers[12].image"), Some(at(6)));
        assert_eq!(map.position("spec.containers[12].ports[0].name"), Some(at(5)));
        assert_eq!(map.position("spec.containers[0].image"), Some(at(4)));
        assert_eq!(map.position("spec.containers[7]"), Some(at(3)));
        assert_eq!(map.position("spec.restartPolicy"), Some(at(2)));
        assert_eq!(map.position("status"), Some(at(1)));
        assert_eq!(map.position(""), Some(at(1)));
        assert_eq!(PositionMap::default().position("spec"), None);
    }

    #[test]
    fn what_a_patch_wrote_is_told_from_what_the_object_has() {
        let map = map();
        assert_eq!(map.patch("spec.containers[12].image"), Some(0));
        assert_eq!(map.patch("spec.containers[12].name"), None);
    }

    #[test]
    fn map_keys_are_found_in_both_spellings() {
        let map = map();
        assert_eq!(map.position("metadata.annotations[prometheus.io/port]"), Some(at(7)));
        assert_eq!(map.position("metadata.annotations.prometheus.io/port"), Some(at(7)));
    }

    #[test]
    fn a_field_of_a_list_item_is_told_with_its_way_through_the_list() {
        assert_eq!(map().field_in_file("spec.containers"), "items[3].spec.containers");
        assert_eq!(map().field_in_file(""), "items[3]");
        assert_eq!(PositionMap::default().field_in_file("spec"), "spec");
    }
}

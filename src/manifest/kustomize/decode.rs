//! A built object as a typed one, with its positions.

use super::built::BuiltObject;
use super::patch::to_node;
use crate::fault::{Fault, code};
use crate::foreign::{Foreign, Ignored};
use crate::kind::Kind;
use crate::lines::Lines;
use crate::node::Node;
use crate::object::{self, Told};
use crate::places::{Place, Places};
use crate::schema::{self, Extent};
use crate::{Decoded, DecodedObject, Limits, ObjectKey};
use podstead_pod::{Origin, Position};

impl BuiltObject {
    /// Makes of the object what [`crate::decode_in`] makes of one in a file: an object that is good, or the problems that it has, at the
    /// places that wrote what is wrong. Files that changed it are those of its [`DecodedObject::patched_by`].
    pub fn decode(&self, namespace: &str, limits: &Limits) -> Decoded {
        let table: Vec<Place> = self.places.iter().map(|(file, position)| Place { file: *file, position: *position }).collect();
        let node = Node { at: Some(self.tree.at), ..to_node(&self.tree) };
        let mut reader = Reader { object: self, table: &table, limits, namespace, decoded: Decoded::default() };
        reader.read(node);
        reader.decoded
    }
}

struct Reader<'a> {
    object: &'a BuiltObject,
    table: &'a [Place],
    limits: &'a Limits,
    namespace: &'a str,
    decoded: Decoded,
}

impl Reader<'_> {
    fn read(&mut self, node: Node) {
        let at = self.object.tree.at;
        let (told, faults) = object::tell(&node, at, None);
        match told {
            Some(Told::Object(kind)) => self.typed(node, kind, faults),
            Some(Told::Patch) => {
                let fault = Fault::at(code::UNSUPPORTED_KIND, at, "a Patch cannot be a resource of a kustomization");
                self.refuse(vec![fault.hint("write it as an entry of patches")], None);
            }
            Some(Told::Foreign(foreign)) => self.foreign(foreign, &node),
            Some(Told::List { .. }) => {
                self.refuse(vec![Fault::at(code::UNSUPPORTED_KIND, at, "a list without items is no object")], None);
            }
            None => self.refuse(faults, None),
        }
    }

    /// Counts or refuses an object that is not read.
    fn foreign(&mut self, foreign: Foreign, node: &Node) {
        let at = node.entry("kind").and_then(|entry| entry.value.at.or(entry.key_at)).unwrap_or(self.object.tree.at);
        match foreign.refusal() {
            Some((message, hint)) => {
                let fault = Fault::at(code::UNSUPPORTED_KIND, at, message).field("kind").hint(hint);
                self.report(vec![fault], None);
            }
            None => self.decoded.ignored.extend(Ignored::of(foreign, self.object.origin())),
        }
    }

    fn typed(&mut self, node: Node, kind: Kind, mut faults: Vec<Fault>) {
        let at = self.object.tree.at;
        let key = object::key_of(&node, kind, self.namespace);
        if let Some(sealed) = node.entry("sops") {
            // What the build has changed does not fit its checksum any more, so it cannot be opened here.
            let at = sealed.key_at.unwrap_or(at);
            let fault = Fault::at(code::SOPS, at, "a document that SOPS has encrypted cannot be a resource of a kustomization");
            let hint =
                "keep the file beside the kustomization and remove it from resources: it is decrypted as a manifest of its own";
            return self.refuse(vec![fault.hint(hint)], key);
        }
        let places = Places::Table(self.table);
        let checked = schema::check(&node, kind.structure, Extent::Whole, "", at, places, self.limits.max_problems);
        faults.retain(|fault| fault.code != code::WRONG_TYPE);
        faults.extend(object::required_faults(&node, kind, "", at));
        faults.extend(checked.faults);
        let Some(known) = key.clone().filter(|_| faults.is_empty()) else { return self.refuse(faults, key) };
        let Ok(mut object) = kind.typed(node) else {
            let fault = Fault::at(code::INVALID_VALUE, at, format!("cannot decode this {}", kind.name));
            return self.refuse(vec![fault], key);
        };
        object.place_in(self.namespace);
        let origin = self.object.origin();
        let positions = checked.positions.build(origin.position, "");
        let start = Position { line: 1, column: 1 };
        let patched_by = self.object.files.iter().skip(1).map(|file| Origin { file: file.into(), position: start }).collect();
        self.decoded.objects.push(DecodedObject { key: known, object, origin, positions, patched_by });
    }

    fn refuse(&mut self, faults: Vec<Fault>, key: Option<ObjectKey>) {
        self.report(faults, key.as_ref());
        self.decoded.broken.push(key);
    }

    fn report(&mut self, mut faults: Vec<Fault>, key: Option<&ObjectKey>) {
        faults.sort_by_key(|fault| fault.at);
        for fault in faults.into_iter().take(self.limits.max_problems) {
            let place = fault.at.and_then(|at| self.table.get(at as usize)).or(self.table.first()).copied();
            let file = place.and_then(|place| self.object.files.get(usize::from(place.file))).map_or("", String::as_str);
            let problem = fault.into_problem(file, &Lines::new(&[]), key);
            self.decoded.problems.push(crate::Problem { position: place.map(|place| place.position), ..problem });
        }
    }
}

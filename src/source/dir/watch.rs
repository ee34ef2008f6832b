//! The inotify watch: from events to hints.

use super::hints::{Hint, Hints};
use super::names::{is_hidden, is_manifest};
use super::place::Identity;
use super::scope::{Scope, Spot};
use notify::event::{AccessKind, AccessMode, CreateKind, Event, EventKind, ModifyKind, RemoveKind, RenameMode};
use notify::{ErrorKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Watch of paths and of their parent directories, which report when the paths themselves are created or removed.
#[derive(Debug)]
pub(super) struct Watch {
    /// The paths when the watch was set; the first one is the source's own.
    pub(super) spots: Vec<Spot>,
    /// Reason why inotify does not report changes inside the paths.
    pub(super) blind: Option<String>,
    pub(super) set_at: Instant,
    /// Held for its `Drop`, which ends the watch.
    _watcher: Option<RecommendedWatcher>,
}

impl Watch {
    /// Watches these paths as they are now, and no longer what they were.
    pub(super) fn reset(&mut self, scope: &Scope, spots: &[Spot], hints: &Arc<Hints>) {
        // First, because the kernel may have no instance left for a second one.
        self._watcher = None;
        *self = Self::set(scope, spots, hints);
    }

    /// Watches these paths as they are now. Never fails: what cannot be watched is looked at.
    pub(super) fn set(scope: &Scope, spots: &[Spot], hints: &Arc<Hints>) -> Self {
        let (mut spots, set_at) = (spots.to_vec(), Instant::now());
        let (targets, sink, deep) = (spots.clone(), hints.clone(), !scope.layers.is_empty() || spots.iter().any(|spot| spot.whole));
        let created = notify::recommended_watcher(move |event: notify::Result<Event>| {
            for hint in hints_of(&targets, deep, event) {
                sink.add(hint, Instant::now());
            }
        });
        let mut watcher = match created {
            Ok(watcher) => watcher,
            Err(error) => return Self { spots, blind: Some(error.to_string()), set_at, _watcher: None },
        };
        let mut blind = None;
        for Spot { path, .. } in &spots {
            let parent = path.parent().map_or(Ok(()), |parent| watcher.watch(parent, RecursiveMode::NonRecursive));
            let itself = if path.is_dir() { watcher.watch(path, RecursiveMode::NonRecursive) } else { parent };
            match itself.map_err(|error| (error.to_string(), error.kind)) {
                // What is not there cannot be watched; the pass that follows tells.
                Ok(()) | Err((_, ErrorKind::PathNotFound)) => {}
                Err((text, _)) => blind = Some(text),
            }
        }
        // What changed meanwhile is not what is watched: nothing equals `None`, so the next look sets the watch again.
        for spot in &mut spots {
            spot.identity = spot.identity.filter(|identity| Identity::at(&spot.path) == Some(*identity));
        }
        Self { spots, blind, set_at, _watcher: Some(watcher) }
    }

    /// Reports whether all files below the path are read, for kustomizations.
    pub(super) fn whole(&self) -> bool {
        self.spots.first().is_some_and(|spot| spot.whole)
    }

    /// Identity of the source's own path.
    pub(super) fn root(&self) -> Option<Identity> {
        self.spots.first().and_then(|spot| spot.identity)
    }
}

/// Converts an event about `targets` to hints. With `deep`, directories in them may be targets as well.
fn hints_of(targets: &[Spot], deep: bool, event: notify::Result<Event>) -> Vec<Hint> {
    match event {
        Ok(event) if !event.need_rescan() => {
            let each = targets.iter().flat_map(|target| event.paths.iter().map(move |path| (target, path)));
            each.filter_map(|(target, path)| {
                let folder = matches!(event.kind, EventKind::Create(CreateKind::Folder) | EventKind::Remove(RemoveKind::Folder));
                if deep && folder && path.parent() == Some(&target.path) {
                    return Some(Hint::Moved);
                }
                hint_of(target, event.kind, path).map(|hint| named(hint, &target.prefix))
            })
            .collect()
        }
        Ok(_) | Err(_) => vec![Hint::Lost],
    }
}

/// A hint whose name is that of the source's files.
fn named(hint: Hint, prefix: &Path) -> Hint {
    let join = |name: OsString| if prefix.as_os_str().is_empty() { name } else { prefix.join(name).into_os_string() };
    match hint {
        Hint::Written(name) => Hint::Written(join(name)),
        Hint::Placed { name } => Hint::Placed { name: join(name) },
        Hint::Changed { name } => Hint::Changed { name: name.map(join) },
        Hint::Created | Hint::Lost | Hint::Moved => hint,
    }
}

fn hint_of(spot: &Spot, kind: EventKind, path: &Path) -> Option<Hint> {
    let target = spot.path.as_path();
    if path == target {
        return of_target(target, kind);
    }
    if Some(path) == target.parent() {
        return matches!(kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))).then_some(Hint::Moved);
    }
    let name = path.file_name()?;
    if path.parent() == Some(target) { of_child(name, kind, spot.whole) } else { of_sibling(name, kind) }
}

/// An event of the path itself, from its parent or from itself.
fn of_target(target: &Path, kind: EventKind) -> Option<Hint> {
    let name = target.file_name().map(OsStr::to_owned);
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => Some(Hint::Changed { name }),
        // Reading raises these, and they must not lead to reading.
        EventKind::Access(_) => None,
        EventKind::Modify(ModifyKind::Data(_)) => name.map(Hint::Written),
        EventKind::Modify(ModifyKind::Metadata(_)) => Some(Hint::Changed { name: None }),
        EventKind::Create(CreateKind::File) => Some(Hint::Created),
        EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(_) => Some(Hint::Moved),
        EventKind::Any | EventKind::Other => Some(Hint::Lost),
    }
}

/// An event of something in the directory, of which all files are read if `whole`.
fn of_child(name: &OsStr, kind: EventKind, whole: bool) -> Option<Hint> {
    let manifest = if whole { !is_hidden(name) } else { is_manifest(name) };
    // What manifests lead through in directories that are swapped as a whole: `web.yaml -> ..data/web.yaml`.
    let swapped = name.as_bytes().starts_with(b"..");
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => manifest.then(|| Hint::Placed { name: name.to_owned() }),
        EventKind::Access(_) => None,
        EventKind::Modify(ModifyKind::Data(_)) => manifest.then(|| Hint::Written(name.to_owned())),
        EventKind::Modify(ModifyKind::Metadata(_)) => manifest.then_some(Hint::Changed { name: None }),
        // Any name may be what a symlink leads through. What goes may come back under another name, but for the hidden file that becomes the new one.
        EventKind::Modify(ModifyKind::Name(RenameMode::To | RenameMode::Both)) => Some(Hint::Placed { name: name.to_owned() }),
        EventKind::Modify(ModifyKind::Name(RenameMode::From)) if is_hidden(name) => Some(Hint::Placed { name: name.to_owned() }),
        EventKind::Modify(ModifyKind::Name(_)) => Some(Hint::Changed { name: Some(name.to_owned()) }),
        EventKind::Create(_) => (manifest || swapped).then_some(Hint::Created),
        EventKind::Remove(_) => (manifest || swapped).then(|| Hint::Changed { name: Some(name.to_owned()) }),
        EventKind::Any | EventKind::Other | EventKind::Modify(ModifyKind::Any | ModifyKind::Other) => Some(Hint::Lost),
    }
}

/// An event of something beside the path: a single file may be a symlink that leads through it.
fn of_sibling(name: &OsStr, kind: EventKind) -> Option<Hint> {
    let swapped = name.as_bytes().starts_with(b"..");
    match kind {
        EventKind::Modify(ModifyKind::Name(_)) | EventKind::Create(_) | EventKind::Remove(_) => {
            swapped.then_some(Hint::Changed { name: None })
        }
        EventKind::Any | EventKind::Other => Some(Hint::Lost),
        EventKind::Access(_) | EventKind::Modify(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use notify::event::{DataChange, Flag, MetadataKind};

    const CLOSED: EventKind = EventKind::Access(AccessKind::Close(AccessMode::Write));
    const WRITTEN: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));
    const RENAMED: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::To));

    fn hints(kind: EventKind, path: &str) -> Vec<Hint> {
        hints_of(&[target("")], false, Ok(Event::new(kind).add_path(path.into())))
    }

    fn target(prefix: &str) -> Spot {
        Spot { path: "/etc/m".into(), prefix: prefix.into(), identity: None, whole: false }
    }

    #[test]
    fn below_layers_names_have_their_way_and_directories_come_and_go() {
        let told = |kind, path: &str| hints_of(&[target("base")], true, Ok(Event::new(kind).add_path(path.into())));
        assert_eq!(told(CLOSED, "/etc/m/p.yaml"), placed("base/p.yaml"));
        assert_eq!(told(EventKind::Create(CreateKind::Folder), "/etc/m/new"), [Hint::Moved]);
        assert_eq!(hints(EventKind::Create(CreateKind::Folder), "/etc/m/new"), []);
    }

    #[test]
    fn beside_kustomizations_files_of_any_name_count() {
        let whole = Spot { whole: true, ..target("base") };
        let told = |kind, path: &str| hints_of(std::slice::from_ref(&whole), true, Ok(Event::new(kind).add_path(path.into())));
        assert_eq!(told(CLOSED, "/etc/m/app.conf"), placed("base/app.conf"));
        assert_eq!(told(CLOSED, "/etc/m/.app.conf.swp"), []);
        assert_eq!(hints(CLOSED, "/etc/m/app.conf"), []);
        assert_eq!(hints(CLOSED, "/etc/m/Kustomization"), placed("Kustomization"));
    }

    fn placed(name: &str) -> Vec<Hint> {
        vec![Hint::Placed { name: name.into() }]
    }

    fn changed(name: &str) -> Vec<Hint> {
        vec![Hint::Changed { name: Some(name.into()) }]
    }

    #[test]
    fn reading_leads_to_no_hint() {
        for kind in [AccessKind::Open(AccessMode::Any), AccessKind::Close(AccessMode::Read), AccessKind::Read] {
            assert_eq!(hints(EventKind::Access(kind), "/etc/m/p.yaml"), []);
            assert_eq!(hints(EventKind::Access(kind), "/etc/m"), []);
        }
    }

    #[test]
    fn a_file_that_is_written_is_awaited_until_it_is_closed_or_renamed() {
        assert_eq!(hints(EventKind::Create(CreateKind::File), "/etc/m/p.yaml"), [Hint::Created]);
        assert_eq!(hints(WRITTEN, "/etc/m/p.yaml"), [Hint::Written("p.yaml".into())]);
        assert_eq!(hints(CLOSED, "/etc/m/p.yaml"), placed("p.yaml"));
        assert_eq!(hints(RENAMED, "/etc/m/p.yaml"), placed("p.yaml"));
        assert_eq!(hints(EventKind::Remove(RemoveKind::File), "/etc/m/p.yaml"), changed("p.yaml"));
    }

    #[test]
    fn file_that_is_renamed_away_is_no_whole_file_unless_it_was_hidden() {
        let away = EventKind::Modify(ModifyKind::Name(RenameMode::From));
        for name in ["p.yaml", "p.yaml.new", "current"] {
            assert_eq!(hints(away, &format!("/etc/m/{name}")), changed(name));
        }
        assert_eq!(hints(away, "/etc/m/.p.yaml.new"), placed(".p.yaml.new"));
    }

    #[test]
    fn what_editors_do_to_their_own_files_is_no_hint() {
        for kind in [EventKind::Create(CreateKind::File), WRITTEN, CLOSED, EventKind::Remove(RemoveKind::File)] {
            assert_eq!(hints(kind, "/etc/m/.p.yaml.swp"), []);
            assert_eq!(hints(kind, "/etc/m/p.yaml~"), []);
        }
    }

    #[test]
    fn a_swap_of_a_directory_that_symlinks_lead_through_is_a_hint() {
        assert_eq!(hints(RENAMED, "/etc/m/..data"), placed("..data"));
        assert_eq!(hints(RENAMED, "/etc/m/current"), placed("current"));
        assert_eq!(hints(RENAMED, "/etc/..data"), [Hint::Changed { name: None }]);
    }

    #[test]
    fn the_coming_and_going_of_the_path_or_its_parent_sets_the_watch_anew() {
        for kind in [RENAMED, EventKind::Create(CreateKind::Folder), EventKind::Remove(RemoveKind::Folder)] {
            assert_eq!(hints(kind, "/etc/m"), [Hint::Moved]);
        }
        assert_eq!(hints(EventKind::Remove(RemoveKind::Folder), "/etc"), [Hint::Moved]);
        assert_eq!(hints(RENAMED, "/etc/other"), []);
        assert_eq!(hints(EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any)), "/etc/m"), [Hint::Changed { name: None }]);
    }

    #[test]
    fn lost_events_are_a_hint() {
        let overflow = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        assert_eq!(hints_of(&[target("")], false, Ok(overflow)), [Hint::Lost]);
        assert_eq!(hints_of(&[target("")], false, Err(notify::Error::generic("x"))), [Hint::Lost]);
    }
}

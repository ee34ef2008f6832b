//! List, get and watch, the same for every kind of object that a journal holds.

use super::failure::ApiFailure;
use super::request::Query;
use super::respond::{self, Answer};
use super::selector::FieldSelector;
use super::table::{self, Column, IncludeObject};
use bytes::Bytes;
use jiff::Timestamp;
use podstead_manifest::LabelSelector;
use podstead_pod::objects::Objects;
use podstead_telemetry::journal::{Change, ChangeKind, Journal};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Default duration of a watch.
const DEFAULT_WATCH: Duration = Duration::from_secs(3600);
/// Maximum duration of a watch.
const MAX_WATCH: Duration = Duration::from_secs(24 * 3600);
/// Time between bookmarks; only for clients that ask for them.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// A kind of object with its journal.
pub(super) trait Collection: Send + Sync + 'static {
    /// Key of an object.
    type Key: Ord + Send + 'static;
    /// An object.
    type Item: Send + Sync + 'static;

    /// The API version, e.g. `v1`.
    fn api_version(&self) -> &'static str;
    /// The kind, e.g. `Pod`.
    fn kind(&self) -> &'static str;
    /// Fields that may be selected by.
    fn fields(&self) -> &'static [&'static str];
    /// Columns of a table.
    fn columns(&self) -> &'static [Column];
    /// Journal with the objects.
    fn journal(&self) -> &Journal<Self::Key, Self::Item>;
    /// The namespace.
    fn namespace<'a>(&self, item: &'a Self::Item) -> &'a str;
    /// The labels.
    fn labels<'a>(&self, item: &'a Self::Item) -> Option<Cow<'a, BTreeMap<String, String>>>;
    /// The value of one of [`Collection::fields`].
    fn field(&self, item: &Self::Item, name: &str) -> String;
    /// The metadata as JSON.
    fn metadata(&self, item: &Self::Item) -> Value;
    /// The object as JSON text.
    fn json(&self, item: &Self::Item) -> Bytes;
    /// One cell for each of [`Collection::columns`].
    fn cells(&self, item: &Self::Item, now: Timestamp) -> Vec<Value>;
    /// Rows of a table, of such cells: one, but for objects with several names.
    fn rows(&self, item: &Self::Item, now: Timestamp) -> Vec<Vec<Value>> {
        vec![self.cells(item, now)]
    }

    /// Brings the journal up to date, for a kind that is looked up; nothing for one that is published.
    fn refresh(&self) -> impl Future<Output = Result<(), ApiFailure>> + Send {
        std::future::ready(Ok(()))
    }

    /// Signs that the journal may be out of date; never for a kind that is published.
    fn lag(&self) -> Lag {
        Lag::default()
    }
}

/// Signs that a journal may be out of date: a new view of the objects of sources, or time that has passed.
#[derive(Debug, Default)]
pub(super) struct Lag {
    announced: Option<watch::Receiver<Arc<Objects>>>,
    interval: Option<Duration>,
    due_at: Option<Instant>,
}

impl Lag {
    pub(super) fn new(announced: Option<watch::Receiver<Arc<Objects>>>, interval: Option<Duration>) -> Self {
        Self { announced, interval, due_at: interval.map(|interval| Instant::now() + interval) }
    }

    /// Waits for the next sign. Cancel-safe: a view that is new stays new until this returns.
    async fn sign(&mut self) {
        let Self { announced, interval, due_at } = self;
        let announced = async {
            match announced {
                Some(views) => {
                    if views.changed().await.is_err() {
                        // The end of the daemon: nothing changes any more.
                        std::future::pending().await
                    }
                }
                None => std::future::pending().await,
            }
        };
        let due = async {
            match due_at {
                Some(at) => tokio::time::sleep_until(*at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = announced => {}
            () = due => {}
        }
        *due_at = interval.map(|interval| Instant::now() + interval);
    }
}

/// Selected objects of a collection, and their format.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    namespace: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
    form: Option<IncludeObject>,
}

impl Selection {
    /// From a query. `form` is `None` for plain JSON.
    pub(super) fn parse<C: Collection>(
        collection: &C,
        namespace: Option<String>,
        query: &Query,
        form: Option<IncludeObject>,
    ) -> Result<Self, ApiFailure> {
        Ok(Self {
            namespace,
            labels: LabelSelector::parse(query.get("labelSelector").unwrap_or_default())
                .map_err(|error| ApiFailure::bad_request(error.to_string()))?,
            fields: FieldSelector::parse(query.get("fieldSelector").unwrap_or_default(), collection.fields())
                .map_err(|error| ApiFailure::bad_request(error.to_string()))?,
            form,
        })
    }

    fn has<C: Collection>(&self, collection: &C, item: &C::Item) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| namespace == collection.namespace(item))
            && (self.labels.is_empty() || self.labels.matches(collection.labels(item).as_deref()))
            && self.fields.matches(|name| collection.field(item, name))
    }
}

fn rows<C: Collection>(collection: &C, item: &C::Item, include: IncludeObject, now: Timestamp) -> Vec<Value> {
    let object = || serde_json::from_slice(&collection.json(item)).unwrap_or_default();
    let row = |cells| table::row(cells, include, || collection.metadata(item), object);
    collection.rows(item, now).into_iter().map(row).collect()
}

/// Refuses a list at a version that this host cannot give. `limit` is not needed: a list is whole, so no token to continue is ever given out.
fn check_version(query: &Query, latest: u64) -> Result<(), ApiFailure> {
    if query.get("continue").is_some_and(|token| !token.is_empty()) {
        let text = "The provided continue parameter is too old or unknown to this server: list again without it";
        return Err(ApiFailure::expired(text));
    }
    let asked = query.number::<u64>("resourceVersion", "a resource version")?;
    let matching = query.get("resourceVersionMatch").filter(|matching| !matching.is_empty());
    match (matching, asked) {
        (Some("Exact"), Some(asked)) if asked != 0 && asked < latest => {
            Err(ApiFailure::expired(format!("The provided resource version is too old: {asked}, current: {latest}")))
        }
        (None | Some("NotOlderThan" | "Exact"), Some(asked)) if asked > latest => Err(ApiFailure::version_too_large(asked, latest)),
        (Some("NotOlderThan"), Some(_)) | (None, _) => Ok(()),
        (Some("Exact"), Some(asked)) if asked != 0 => Ok(()),
        (Some("Exact"), Some(_)) => Err(ApiFailure::bad_request("resourceVersionMatch Exact is forbidden for resourceVersion 0")),
        (Some("NotOlderThan" | "Exact"), None) => {
            Err(ApiFailure::bad_request("resourceVersionMatch is forbidden unless resourceVersion is provided"))
        }
        (Some(other), _) => Err(ApiFailure::bad_request(format!(
            "invalid value {other:?} for resourceVersionMatch: expected Exact or NotOlderThan"
        ))),
    }
}

/// All selected objects.
pub(super) async fn list<C: Collection>(collection: &Arc<C>, selection: &Selection, query: &Query, now: Timestamp) -> Answer {
    collection.refresh().await?;
    let (version, items) = collection.journal().list();
    check_version(query, version)?;
    let selected = items.iter().filter(|item| selection.has(&**collection, item));
    if let Some(include) = selection.form {
        let rows = selected.flat_map(|item| rows(&**collection, item, include, now)).collect();
        return respond::json(&table::table(collection.columns(), rows, version));
    }
    let (kind, api_version) = (collection.kind(), collection.api_version());
    let head =
        format!(r#"{{"kind":"{kind}List","apiVersion":"{api_version}","metadata":{{"resourceVersion":"{version}"}},"items":["#);
    let mut pieces = vec![Bytes::from(head)];
    for (index, item) in selected.enumerate() {
        if index > 0 {
            pieces.push(Bytes::from_static(b","));
        }
        pieces.push(collection.json(item));
    }
    pieces.push(Bytes::from_static(b"]}\n"));
    respond::json_stream(futures_util::stream::iter(pieces))
}

/// One object.
pub(super) fn get<C: Collection>(collection: &C, item: &C::Item, form: Option<IncludeObject>, now: Timestamp) -> Answer {
    match form {
        Some(include) => {
            let version = collection.journal().version();
            respond::json(&table::table(collection.columns(), rows(collection, item, include, now), version))
        }
        None => respond::json_bytes(collection.json(item)),
    }
}

/// Start and end of a watch.
#[derive(Clone, Copy, Debug)]
struct WatchOptions {
    /// Version to continue from; `None` starts with the current content.
    after: Option<u64>,
    /// Begin with the present content, even when `after` is given, and mark its end.
    mark_initial: bool,
    bookmarks: bool,
    lasts: Duration,
}

impl WatchOptions {
    fn parse(query: &Query) -> Result<Self, ApiFailure> {
        let mark_initial = query.flag("sendInitialEvents")?;
        let is_said = query.get("sendInitialEvents").is_some();
        match query.get("resourceVersionMatch") {
            None | Some("") if !mark_initial => {}
            Some("NotOlderThan") if is_said => {}
            None | Some(_) => {
                let text = "sendInitialEvents and resourceVersionMatch=NotOlderThan belong together in a watch";
                return Err(ApiFailure::bad_request(text));
            }
        }
        let after = query.number::<u64>("resourceVersion", "a resource version")?.filter(|version| *version != 0);
        let seconds = query.number::<u64>("timeoutSeconds", "a number of seconds")?.filter(|seconds| *seconds > 0);
        Ok(Self {
            after,
            mark_initial,
            bookmarks: query.flag("allowWatchBookmarks")?,
            lasts: seconds.map_or(DEFAULT_WATCH, Duration::from_secs).min(MAX_WATCH),
        })
    }
}

/// Changes of the selected objects, as they happen.
pub(super) async fn watch<C: Collection>(
    collection: Arc<C>,
    selection: Selection,
    query: &Query,
    now: fn() -> Timestamp,
) -> Answer {
    let options = WatchOptions::parse(query)?;
    // Before the journal is brought up to date, so that no sign is missed.
    let lag = collection.lag();
    collection.refresh().await?;
    let watcher = Watcher::start(collection, selection, options, lag, now);
    respond::json_stream(futures_util::stream::unfold(watcher, |mut watcher| async move {
        let piece = watcher.next_piece().await?;
        Some((piece, watcher))
    }))
}

/// One client's watch. It holds a version and the pieces of events not written yet, no buffer that grows while the client sleeps:
/// hyper asks for the next piece only when the socket takes it.
struct Watcher<C: Collection> {
    collection: Arc<C>,
    selection: Selection,
    options: WatchOptions,
    now: fn() -> Timestamp,
    lag: Lag,
    latest: watch::Receiver<u64>,
    version: u64,
    pieces: VecDeque<Bytes>,
    ends_at: Instant,
    bookmark_at: Instant,
    ended: bool,
}

impl<C: Collection> Watcher<C> {
    fn start(collection: Arc<C>, selection: Selection, options: WatchOptions, lag: Lag, now: fn() -> Timestamp) -> Self {
        let started = Instant::now();
        let mut watcher = Self {
            latest: collection.journal().subscribe(),
            collection,
            selection,
            options,
            now,
            lag,
            version: 0,
            pieces: VecDeque::new(),
            ends_at: started + options.lasts,
            bookmark_at: started + BOOKMARK_INTERVAL,
            ended: false,
        };
        match options.after {
            Some(version) if !options.mark_initial => watcher.version = version,
            Some(_) | None => watcher.push_present(),
        }
        watcher
    }

    fn push_present(&mut self) {
        let (version, items) = self.collection.journal().list();
        self.version = version;
        for item in &items {
            if self.selection.has(&*self.collection, item) {
                self.push_event("ADDED", item, version);
            }
        }
        if self.options.mark_initial {
            self.push_bookmark(true);
        }
    }

    /// The next piece of the body; `None` ends it. Cancel-safe: what was taken from the journal is in `pieces` before any await.
    async fn next_piece(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                return Some(piece);
            }
            if self.ended {
                return None;
            }
            self.latest.mark_unchanged();
            self.push_changes();
            if !self.pieces.is_empty() {
                continue;
            }
            tokio::select! {
                changed = self.latest.changed() => self.ended = changed.is_err(),
                () = self.lag.sign() => {
                    // A failed look is tried again at the next sign; what was seen before is still true.
                    if let Err(failure) = self.collection.refresh().await {
                        tracing::debug!(kind = self.collection.kind(), error = failure.message, "cannot look up objects for a watch");
                    }
                }
                () = tokio::time::sleep_until(self.ends_at) => self.ended = true,
                () = tokio::time::sleep_until(self.bookmark_at), if self.options.bookmarks => {
                    self.bookmark_at = Instant::now() + BOOKMARK_INTERVAL;
                    self.push_bookmark(false);
                }
            }
        }
    }

    fn push_changes(&mut self) {
        match self.collection.journal().since(self.version) {
            Ok(changes) => {
                for change in &changes {
                    self.version = change.version;
                    if let Some(kind) = self.seen_as(change) {
                        self.push_event(kind, &change.value, change.version);
                    }
                }
            }
            Err(expired) => {
                let failure = ApiFailure::expired(format!("too old resource version: {} ({})", expired.asked, expired.latest));
                self.push_line("ERROR", &failure.status_object());
                self.ended = true;
            }
        }
    }

    /// Type of a change for this selection: a change may move an object into or out of it.
    fn seen_as(&self, change: &Change<C::Item>) -> Option<&'static str> {
        let had = change.before.as_ref().is_some_and(|before| self.selection.has(&*self.collection, before));
        let has = change.kind != ChangeKind::Deleted && self.selection.has(&*self.collection, &change.value);
        match (had, has) {
            (false, true) => Some("ADDED"),
            (true, true) => Some("MODIFIED"),
            (true, false) => Some("DELETED"),
            (false, false) => None,
        }
    }

    fn push_event(&mut self, kind: &str, item: &C::Item, version: u64) {
        if let Some(include) = self.selection.form {
            let rows = rows(&*self.collection, item, include, (self.now)());
            self.push_line(kind, &table::table(self.collection.columns(), rows, version));
        } else {
            self.pieces.push_back(Bytes::from(format!(r#"{{"type":"{kind}","object":"#)));
            self.pieces.push_back(self.collection.json(item));
            self.pieces.push_back(Bytes::from_static(b"}\n"));
        }
    }

    fn push_bookmark(&mut self, end_of_initial: bool) {
        let mut metadata = json!({"resourceVersion": self.version.to_string(), "creationTimestamp": null});
        if end_of_initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = if self.selection.form.is_some() {
            let rows = vec![json!({"cells": [], "object": table::partial(&metadata)})];
            table::table(&[], rows, self.version)
        } else {
            json!({"kind": self.collection.kind(), "apiVersion": self.collection.api_version(), "metadata": metadata})
        };
        self.push_line("BOOKMARK", &object);
    }

    fn push_line(&mut self, kind: &str, object: &Value) {
        self.pieces.push_back(Bytes::from(format!("{}\n", json!({"type": kind, "object": object}))));
    }
}

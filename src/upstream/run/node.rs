//! The Node and its Lease: registered, renewed, and left alone while another agent speaks for them.

use super::pace::Pace;
use super::{Links, Standing, request};
use crate::cluster::{ApiError, ApiRequest, Verb};
use crate::plan::lease::{self, Holder};
use crate::plan::{NodeRef, labels, node};
use jiff::{SignedDuration, Timestamp};
use podstead_status::NodeStanding;
use podstead_telemetry::events::{EventRecorder, EventType, Subject};
use serde_json::Value;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Time between renewals, as the kubelet's: a quarter of what a Lease counts.
const RENEW: Duration = Duration::from_secs(10);
/// Longest pause after failures: less than what a Lease counts.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Labels that were refused are sent again after this.
const LABELS_AGAIN: Duration = Duration::from_secs(300);
/// Longest accepted UID: each mirror names it.
const MAX_UID: usize = 253;
/// Times of renewal that are remembered: the last one that was answered and those that were not.
const MAX_WRITTEN: usize = 8;

struct Keeper<'a> {
    links: &'a Links,
    standing: watch::Sender<Standing>,
    /// The Lease as it was last written, if nothing says that it is otherwise.
    held: Option<Value>,
    /// Times of renewal that this agent wrote.
    written: Vec<String>,
    /// Last renew time of another agent, and when it was seen.
    other: Option<(String, Instant)>,
    /// At most two: the free labels and the restricted ones.
    refused: Vec<RefusedLabels>,
}

/// A patch of labels that the server does not take.
struct RefusedLabels {
    patch: Value,
    note: String,
    at: Instant,
}

/// Owner of the Node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Own,
    /// There is no right to a Lease: the status is the heartbeat.
    WithoutLease,
    Other,
}

/// Keeps the Node for ever.
pub(super) async fn run(links: &Links, standing: watch::Sender<Standing>) -> Infallible {
    let mut keeper = Keeper { links, standing, held: None, written: Vec::new(), other: None, refused: Vec::new() };
    let mut pace = Pace::up_to(LONGEST_PAUSE);
    loop {
        let pause = match keeper.turn().await {
            Ok(note) => {
                links.board.update(|status| status.node_error = note);
                pace.succeeded();
                RENEW
            }
            Err(error) => {
                tracing::debug!(%error, "cannot update the Node");
                links.board.update(|status| status.node_error = Some(error.to_string()));
                pace.failed(error.retry_after(), (links.random)())
            }
        };
        tokio::time::sleep(pause).await;
    }
}

impl Keeper<'_> {
    /// One look at the Node, its Lease and its status. Gives what the server does not let this host do.
    async fn turn(&mut self) -> Result<Option<String>, ApiError> {
        let facts = (self.links.facts)();
        let address = self.links.cluster.address().await;
        self.links.board.update(|status| status.server = address.unwrap_or_else(|| std::mem::take(&mut status.server)));
        let settings = &self.links.settings_now();
        let path = format!("{}/{}", request::NODES, settings.name);
        let found = match self.send(ApiRequest::new(Verb::Get, path.as_str())).await {
            Ok(found) => found,
            Err(error) if error.is_not_found() => {
                self.fall_silent();
                self.register(&facts).await?
            }
            Err(error) => return Err(error),
        };
        let Some(uid) = found["metadata"]["uid"].as_str().filter(|uid| uid.len() <= MAX_UID) else {
            return Err(ApiError::Unreachable("the Node has no UID".to_owned()));
        };
        let node = NodeRef { name: settings.name.clone(), uid: uid.to_owned() };
        if !found["metadata"]["deletionTimestamp"].is_null() {
            self.fall_silent();
            return Ok(Some("the Node is being deleted".to_owned()));
        }
        let (held, mut note) = self.renew(&node).await?;
        if held == Held::Other {
            self.stand_by();
            return Ok(Some(format!(
                "another agent renews the Lease of node {}; this host reports nothing to the cluster",
                node.name
            )));
        }
        let labels::LabelPatches { free, restricted } = labels::patches(settings, &facts, &found);
        for patch in [free, restricted].into_iter().flatten() {
            note = self.label(&path, patch).await?.or(note);
        }
        let period = if held == Held::WithoutLease { SignedDuration::ZERO } else { node::STATUS_PERIOD };
        if let Some(patch) = node::status_patch(settings, &facts, &found, (self.links.now)(), period) {
            match self.send(ApiRequest::new(Verb::Patch, format!("{path}/status")).with_body(patch)).await {
                Ok(_) => {}
                Err(error) if error.is_about_the_server() => return Err(error),
                Err(error) => note = Some(format!("cannot update status of the Node: {error}")),
            }
        }
        self.speak(node);
        Ok(note)
    }

    /// Sends a patch of labels, unless it was refused a moment ago. Gives why it is refused.
    async fn label(&mut self, path: &str, patch: Value) -> Result<Option<String>, ApiError> {
        let known = self.refused.iter().find(|refused| refused.patch == patch);
        if let Some(refused) = known.filter(|refused| refused.at.elapsed() < LABELS_AGAIN) {
            return Ok(Some(refused.note.clone()));
        }
        self.refused.retain(|refused| refused.patch != patch && refused.at.elapsed() < LABELS_AGAIN);
        match self.send(ApiRequest::new(Verb::Patch, path).with_body(patch.clone())).await {
            Ok(_) => Ok(None),
            Err(error) if error.is_about_the_server() => Err(error),
            Err(error) => {
                let note = format!("cannot update labels of the Node: {error}");
                self.refused.push(RefusedLabels { patch, note: note.clone(), at: Instant::now() });
                Ok(Some(note))
            }
        }
    }

    async fn register(&mut self, facts: &node::HostFacts) -> Result<Value, ApiError> {
        let name = &self.links.settings.name;
        if !self.links.register {
            return Err(ApiError::Unreachable(format!(
                "Node {name} does not exist and registerNode is false; waiting for it to be created"
            )));
        }
        let object = node::node_object(&self.links.settings_now(), facts, (self.links.now)());
        let created = self.send(ApiRequest::new(Verb::Create, request::NODES).with_body(object)).await?;
        tracing::info!(node = %name, "registered the Node");
        Ok(created)
    }

    /// Renews the Lease, unless another agent does.
    async fn renew(&mut self, node: &NodeRef) -> Result<(Held, Option<String>), ApiError> {
        let path = format!("{}/{}", request::LEASES, node.name);
        let before = match self.held.take() {
            Some(held) => Some(held),
            None => match self.send(ApiRequest::new(Verb::Get, path.as_str())).await {
                Ok(found) => {
                    if self.is_anothers(&found) {
                        return Ok((Held::Other, None));
                    }
                    Some(found)
                }
                Err(error) if error.is_not_found() => None,
                Err(error) if error.is_forbidden() => {
                    return Ok((Held::WithoutLease, Some(format!("cannot renew the Lease of the Node: {error}"))));
                }
                Err(error) => return Err(error),
            },
        };
        let renewed = lease::renewed(before.as_ref(), node, &self.links.agent, (self.links.now)());
        let time = lease::renew_time(&renewed).unwrap_or_default().to_owned();
        // Before it is sent: its answer may be lost.
        self.written.push(time.clone());
        if self.written.len() > MAX_WRITTEN {
            self.written.remove(0);
        }
        let request = match &before {
            Some(_) => ApiRequest::new(Verb::Replace, path),
            None => ApiRequest::new(Verb::Create, request::LEASES),
        };
        match self.send(request.with_body(renewed)).await {
            Ok(stored) => {
                self.held = Some(stored);
                self.written = vec![time];
                self.other = None;
                Ok((Held::Own, None))
            }
            // Somebody wrote it: who, the next look says.
            Err(error) if error.is_conflict() || error.is_not_found() && before.is_some() => {
                Err(ApiError::Unreachable("the Lease of the Node was changed by another client".to_owned()))
            }
            Err(error) if !error.is_about_the_server() => {
                Ok((Held::WithoutLease, Some(format!("cannot renew the Lease of the Node: {error}"))))
            }
            Err(error) => Err(error),
        }
    }

    /// Reports whether another agent renews the Lease. One that no longer renews it has given it up; that time is measured by
    /// this host's own steady clock, whatever both wall clocks say.
    fn is_anothers(&mut self, found: &Value) -> bool {
        let holder = match self.written.is_empty() {
            true => lease::holder_at_start(found, &self.links.agent),
            false => lease::holder(found, &self.links.agent, &self.written),
        };
        let Holder::Other(at) = holder else { return false };
        let counts = Duration::from_secs(lease::DURATION_SECONDS.into());
        match &self.other {
            Some((before, seen)) if *before == at => seen.elapsed() < counts,
            Some(_) => {
                self.other = Some((at, Instant::now()));
                true
            }
            None => {
                // Long over, if both clocks are right; and if one is not, the other agent's next renewal is noticed. Whoever wrote it since
                // this host did is there, whatever its clock says.
                let is_old = self.written.is_empty()
                    && at.parse::<Timestamp>().is_ok_and(|at| {
                        (self.links.now)().duration_since(at) > SignedDuration::from_secs(2 * counts.as_secs() as i64)
                    });
                self.other = Some((at, Instant::now()));
                !is_old
            }
        }
    }

    fn speak(&self, node: NodeRef) {
        self.links.board.update(|status| status.node = NodeStanding::Registered);
        self.set(Standing::Speaking(node));
    }

    fn stand_by(&self) {
        if self.links.board.subscribe().borrow().node != NodeStanding::StandBy {
            let message =
                "another agent renews the Lease of the Node of this name; this host reports nothing to the cluster until it stops";
            tracing::warn!(node = %self.links.settings.name, "{message}");
            self.links.events.record(&Subject::Node, EventType::Warning, "NodeNameTaken", message);
        }
        self.links.board.update(|status| status.node = NodeStanding::StandBy);
        self.set(Standing::Silent);
    }

    fn fall_silent(&mut self) {
        self.held = None;
        self.links.board.update(|status| status.node = NodeStanding::Unknown);
        self.set(Standing::Silent);
    }

    fn set(&self, standing: Standing) {
        self.standing.send_if_modified(|before| {
            let differs = *before != standing;
            *before = standing;
            differs
        });
    }

    async fn send(&self, request: ApiRequest) -> Result<Value, ApiError> {
        self.links.cluster.send(request).await
    }
}

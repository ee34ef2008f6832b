//! Polls and pulls: those for whom requests are sent.

use crate::engine::Engine;
use crate::error::JobError;
use crate::incoming::{Fault, Incoming};
use crate::jobs::Jobs;
use crate::request::Request;
use crate::response::{Body, Response};
use crate::running::Running;
use crate::setup::Setup;
use podstead_job::launch::Launcher;
use podstead_outbound::Failure;
use podstead_telemetry::events::EventRecorder;
use reqwest::Method;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Servers of a session whose processes and connections are kept: a hostile server can lead to any number of others.
const SERVERS_MAX: usize = 8;

/// The process in which requests are sent.
#[derive(Clone, Debug)]
pub struct Requester(Way);

#[derive(Clone, Debug)]
enum Way {
    Here,
    Jobs(Arc<Jobs>),
}

impl Requester {
    /// This process, for a command of a user, and for servers that get told and are not read.
    pub fn here() -> Self {
        Self(Way::Here)
    }

    /// Jobs that `launcher` starts.
    pub fn jobs(launcher: Arc<Launcher>, events: Arc<dyn EventRecorder>) -> Self {
        Self(Way::Jobs(Arc::new(Jobs { launcher, events })))
    }

    /// A new session. Nothing is started before its first request.
    pub fn session(&self) -> Session {
        let inner = match &self.0 {
            Way::Here => Inner::Here(Mutex::default()),
            Way::Jobs(jobs) => Inner::Jobs(Arc::clone(jobs), Mutex::default()),
        };
        Session(Arc::new(inner))
    }
}

/// Each with its setup, the one that was used last at the end.
type Made<T> = Mutex<Vec<(Setup, T)>>;

#[derive(Debug)]
enum Inner {
    Here(Made<Engine>),
    Jobs(Arc<Jobs>, Made<Arc<Running>>),
}

/// One poll of a source, or one pull with one of its credentials. Clones are of the same one. Its jobs end when it is dropped, and all of its
/// responses. Beyond eight servers, the job of the one that was asked the longest ago ends with its responses.
#[derive(Clone, Debug)]
pub struct Session(Arc<Inner>);

impl Session {
    /// Sends a request, and waits for the answer up to its body.
    pub async fn send(&self, setup: &Setup, request: Request) -> Result<Response, Failure> {
        match &*self.0 {
            Inner::Here(engines) => {
                let engine = of(engines, setup).await?;
                let (head, coming) = engine.send(request).await?;
                Response::new(&head, Body::Here(Box::new(coming))).ok_or_else(no_head)
            }
            Inner::Jobs(jobs, running) => {
                let first = ask(jobs, running, setup, &request).await;
                // A job that was ended from outside has no part in it.
                match first {
                    Err(Fault::Job(error)) if error.is_crash() && may_repeat(&request.method) => {
                        tracing::warn!(%error, "asking once more");
                        ask(jobs, running, setup, &request).await
                    }
                    first => first,
                }
                .map_err(|fault| match fault {
                    Fault::Failed(failure) => failure,
                    Fault::Job(error) => error.failure(),
                })
            }
        }
    }
}

fn no_head() -> Failure {
    Failure::Broken("it is no response".to_owned())
}

fn may_repeat(method: &Method) -> bool {
    *method == Method::GET || *method == Method::HEAD
}

async fn of(engines: &Made<Engine>, setup: &Setup) -> Result<Engine, Failure> {
    let mut engines = engines.lock().await;
    if let Some(engine) = known(&mut engines, setup) {
        return Ok(engine);
    }
    let engine = Engine::new(setup)?;
    keep(&mut engines, setup, engine.clone());
    Ok(engine)
}

fn known<T: Clone>(made: &mut [(Setup, T)], setup: &Setup) -> Option<T> {
    let place = made.iter().position(|(made_with, _)| made_with == setup)?;
    made[place..].rotate_left(1);
    made.last().map(|(_, one)| one.clone())
}

fn keep<T>(made: &mut Vec<(Setup, T)>, setup: &Setup, one: T) {
    if made.len() >= SERVERS_MAX {
        made.remove(0);
    }
    made.push((setup.clone(), one));
}

async fn ask(jobs: &Arc<Jobs>, running: &Made<Arc<Running>>, setup: &Setup, request: &Request) -> Result<Response, Fault> {
    let job = job_of(jobs, running, setup).await?;
    let answer = Incoming::begin(Arc::clone(&job), request).await;
    let answer = match answer {
        Ok((head, incoming)) => match Response::new(&head, Body::Job(Box::new(incoming))) {
            Some(response) => Ok(response),
            None => Err(job.end_as(JobError::BadAnswer("an invalid status or header")).await.into()),
        },
        Err(fault) => Err(fault),
    };
    match &answer {
        // The host may have another name server by now, which only a new job finds; and a job that is silent may hang.
        Err(Fault::Failed(Failure::Resolve(_) | Failure::Connect(_) | Failure::Stalled)) => forget(running, &job).await,
        Err(Fault::Job(error)) => {
            job.tell(error);
            forget(running, &job).await;
        }
        Err(Fault::Failed(_)) | Ok(_) => {}
    }
    answer
}

/// The job for this setup. Others of the session wait meanwhile, so that there is one.
async fn job_of(jobs: &Arc<Jobs>, running: &Made<Arc<Running>>, setup: &Setup) -> Result<Arc<Running>, JobError> {
    let mut running = running.lock().await;
    running.retain(|(_, job)| !job.is_over());
    if let Some(job) = known(&mut running, setup) {
        return Ok(job);
    }
    let (jobs, made_with) = (Arc::clone(jobs), setup.clone());
    let started = tokio::task::spawn_blocking(move || Running::start(&jobs, &made_with)).await;
    let job = Arc::new(started.map_err(|error| JobError::prepare(std::io::Error::other(error)))??);
    keep(&mut running, setup, Arc::clone(&job));
    Ok(job)
}

/// No further request goes to this job. What it is sending goes on.
async fn forget(running: &Made<Arc<Running>>, job: &Arc<Running>) {
    running.lock().await.retain(|(_, known)| !Arc::ptr_eq(known, job));
}

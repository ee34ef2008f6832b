//! The JSON messages inside of frames.

use crate::{ContainerSpec, ContainerStatus, ExecSpec, SandboxSpec};
use jiff::Timestamp;
use podstead_pod::ContainerId;
use serde::{Deserialize, Serialize};

/// The first message of a shim on every connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShimHello {
    /// [`PROTOCOL_VERSION`](super::PROTOCOL_VERSION) of the shim's build.
    pub protocol: u32,
    /// Version of the shim's build, for messages.
    pub version: String,
    /// The shim's process id.
    pub pid: u32,
    /// The time at which the sandbox was made.
    pub created_at: Timestamp,
    /// The spec that it was created from.
    pub spec: SandboxSpec,
}

/// The first message of a client on every connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientHello {
    /// [`PROTOCOL_VERSION`](super::PROTOCOL_VERSION) of the client's build.
    pub protocol: u32,
    /// Version of the client's build, for messages.
    pub version: String,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Chosen by the client; repeated in the answer.
    pub id: u64,
    /// The operation.
    pub operation: Operation,
}

/// The part of a request that can be understood when its operation cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct RequestHeader {
    /// As in [`Request`].
    pub id: u64,
}

/// Operation that a client requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Create and start a container; answered when its program was executed. A container of that id that is already running is
    /// answered as if it had been started now.
    Start(Box<ContainerSpec>),
    /// Signal the first process. An exited container is success.
    Signal {
        /// The container.
        container: ContainerId,
        /// Signal number.
        signal: i32,
    },
    /// Kill every process of a container. An exited container is success.
    Kill {
        /// The container.
        container: ContainerId,
    },
    /// Run a process in a running container and turn this connection into its streams.
    Exec {
        /// The container.
        container: ContainerId,
        /// The process.
        spec: ExecSpec,
    },
    /// Turn this connection into the streams of a running container.
    Attach {
        /// The container.
        container: ContainerId,
    },
    /// Set the size of a container's terminal.
    Resize {
        /// The container.
        container: ContainerId,
        /// Columns.
        columns: u16,
        /// Rows.
        rows: u16,
    },
    /// Say how all containers are.
    Status,
    /// As [`Operation::Status`]; from now on this connection also gets events. No event is lost or told twice in between.
    Subscribe,
    /// Forget a dead container and its bundle. An unknown container is success.
    Remove {
        /// The container.
        container: ContainerId,
    },
    /// Kill all containers, record their exits, then end. Answered just before the end.
    Shutdown,
}

/// A message of the shim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToClient {
    /// The first one.
    Hello(Box<ShimHello>),
    /// The answer to a request.
    Response {
        /// The request's id.
        id: u64,
        /// The result.
        result: Result<Answer, Refusal>,
    },
    /// Something happened; only to subscribers.
    Event(Box<ShimEvent>),
}

/// Response to a request that succeeded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Nothing to say.
    Done,
    /// The container's state after its start.
    Container(Box<ContainerStatus>),
    /// The state of all.
    Status(ShimStatus),
    /// From the next frame on, this connection is a stream.
    SessionOpen,
}

/// All containers that a shim knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShimStatus {
    /// Oldest first.
    pub containers: Vec<ContainerStatus>,
}

/// Reason why a request was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The shim is older than the operation.
    #[error("the shim does not support this operation: {0}")]
    UnknownOperation(String),
    /// No such container.
    #[error("container {0} does not exist")]
    NotFound(ContainerId),
    /// The container could not be created: nothing of it is left.
    #[error("{0}")]
    Create(String),
    /// The program could not be executed: a run that failed.
    #[error("{0}")]
    Execute(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// Something happened to a container. Its record is on disk before this is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShimEvent {
    /// Kind of event.
    pub kind: ShimEventKind,
    /// The container afterwards.
    pub container: ContainerStatus,
}

/// Event of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShimEventKind {
    /// Its program was executed.
    Started,
    /// Its first process ended, or its start failed.
    Died,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_operation_still_has_an_id() {
        let text = r#"{"id":7,"operation":{"freeze":{"container":"c"}},"hint":"later"}"#;
        assert!(serde_json::from_str::<Request>(text).unwrap_err().to_string().contains("freeze"));
        assert_eq!(serde_json::from_str::<RequestHeader>(text).unwrap(), RequestHeader { id: 7 });
    }

    #[test]
    fn fields_of_a_later_version_are_ignored() {
        let text = r#"{"id":1,"operation":{"kill":{"container":"c","reason":"later"}},"deadline":3}"#;
        let request: Request = serde_json::from_str(text).unwrap();
        assert_eq!(request.operation, Operation::Kill { container: ContainerId::new("c") });
        let hello: ClientHello = serde_json::from_str(r#"{"protocol":9,"version":"9.0.0","features":["x"]}"#).unwrap();
        assert_eq!(hello.protocol, 9);
    }

    #[test]
    fn answers_and_refusals_are_read_back() {
        for message in [
            ToClient::Response { id: 1, result: Ok(Answer::Done) },
            ToClient::Response { id: 2, result: Err(Refusal::NotFound(ContainerId::new("c"))) },
            ToClient::Response { id: 3, result: Ok(Answer::Status(ShimStatus { containers: Vec::new() })) },
        ] {
            let text = serde_json::to_string(&message).unwrap();
            assert_eq!(serde_json::from_str::<ToClient>(&text).unwrap(), message);
        }
    }
}

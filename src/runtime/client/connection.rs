//! One connection to a shim, used by any number of callers at once.

use super::misunderstood;
use crate::RuntimeError;
use podstead_container::protocol::frame::{self, FrameDecoder, FrameKind};
use podstead_container::protocol::{
    Answer, ClientHello, Operation, PROTOCOL_VERSION, Refusal, Request, ShimEvent, ShimHello, ShimStatus, StepTimes, ToClient,
};
use podstead_pod::PodUid;
use podstead_sys::layout::Paths;
use podstead_telemetry::error_chain;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// A shim that lives says hello at once.
const HELLO: Duration = Duration::from_secs(5);

/// Requests that wait to be written: a shim always reads, so few do.
const REQUESTS: usize = 16;

/// A socket on which both sides have said hello.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) stream: UnixStream,
    pub(super) decoder: FrameDecoder,
}

/// To a living shim. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    /// Tells connections to the same pod apart.
    pub(super) number: u64,
    /// In boxes: the channel keeps room for 32 values.
    requests: mpsc::Sender<Box<Pending>>,
    uid: PodUid,
}

#[derive(Debug)]
struct Pending {
    operation: Operation,
    answer: oneshot::Sender<Result<Answer, Refusal>>,
}

/// A connection that does not listen yet. What the shim said of its containers has to be in the view before what it tells of them afterwards,
/// and a connection has to be there before its end is told: else an exit is overwritten, and the end of a shim concerns nobody.
#[derive(Debug)]
pub(super) struct HeldConnection {
    connection: Connection,
    release: oneshot::Sender<()>,
}

/// Message on a connection, in the shim's order. [`Heard::Answered`] comes before the caller gets the answer.
#[derive(Debug)]
pub(super) enum Heard<'a> {
    /// The answer to a request that was successful.
    Answered(&'a Answer),
    /// An event.
    Event(Box<ShimEvent>),
    /// Times of steps.
    Times(StepTimes),
}

impl Line {
    /// Connects and exchanges hellos.
    pub(super) async fn open(paths: &Paths, uid: &PodUid) -> Result<(Self, ShimHello), RuntimeError> {
        let socket = paths.shim_socket(uid);
        let greeted = timeout(HELLO, async {
            let stream = connect(&socket).await?;
            let mut line = Self { stream, decoder: FrameDecoder::default() };
            let hello = ClientHello { protocol: PROTOCOL_VERSION, version: env!("CARGO_PKG_VERSION").to_owned() };
            line.write(&serde_json::to_vec(&hello)?).await?;
            loop {
                if let ToClient::Hello(hello) = line.read_message().await? {
                    return Ok::<_, io::Error>((line, *hello));
                }
            }
        });
        match greeted.await {
            Ok(result) => result.map_err(|error| RuntimeError::shim_gone(uid, error)),
            Err(late) => Err(RuntimeError::shim_gone(uid, late)),
        }
    }

    /// Asks one thing and waits for the answer; for the time before the line is handed to its task.
    pub(super) async fn ask(&mut self, id: u64, operation: Operation) -> io::Result<Result<Answer, Refusal>> {
        self.write(&serde_json::to_vec(&Request { id, operation })?).await?;
        loop {
            match self.read_message().await? {
                ToClient::Response { id: answered, result } if answered == id => return Ok(result),
                ToClient::Response { .. } | ToClient::Hello(_) | ToClient::Event(_) => {}
            }
        }
    }

    async fn write(&mut self, payload: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::new();
        frame::encode(FrameKind::Message, payload, &mut bytes).map_err(io::Error::other)?;
        self.stream.write_all(&bytes).await
    }

    async fn read_message(&mut self) -> io::Result<ToClient> {
        loop {
            while let Some((kind, payload)) = self.decoder.next_frame().map_err(io::Error::other)? {
                if kind == FrameKind::Message {
                    return serde_json::from_slice(payload).map_err(io::Error::other);
                }
            }
            self.read_more().await?;
        }
    }

    /// Cancel safe: what was read is in the decoder.
    pub(super) async fn read_more(&mut self) -> io::Result<()> {
        while !self.take_present()? {
            self.stream.readable().await?;
        }
        Ok(())
    }

    /// Reads what is there; false if there is nothing. No buffer is kept by those that wait, of which there is one for each pod.
    fn take_present(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 8192];
        match self.stream.try_read(&mut buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.decoder.push(&buffer[..count]);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl HeldConnection {
    /// Starts receiving events. The caller holds the lock of the view until all is in there.
    pub(super) fn release(self) -> Connection {
        // Only a runtime that ends has dropped the task.
        let _ended = self.release.send(());
        self.connection
    }
}

impl Connection {
    /// Connects, subscribes, and serves requests in a task of its own, from the release of what it returns until the shim is gone. `hear` is
    /// called for all that comes; `gone` once, in the end.
    pub(super) async fn open<H, G, F>(
        paths: &Paths,
        uid: &PodUid,
        hear: H,
        gone: G,
    ) -> Result<(HeldConnection, ShimHello, ShimStatus), RuntimeError>
    where
        H: FnMut(Heard<'_>) + Send + 'static,
        G: FnOnce(u64) -> F + Send + 'static,
        F: Future<Output = ()> + Send,
    {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let (mut line, hello) = Line::open(paths, uid).await?;
        let subscribed = timeout(HELLO, line.ask(0, Operation::Subscribe)).await;
        let status = match subscribed.map_err(io::Error::from).and_then(|answer| answer) {
            Ok(Ok(Answer::Status(status))) => status,
            Ok(Ok(Answer::Done | Answer::Container(_) | Answer::SessionOpen)) => return Err(misunderstood("subscribe")),
            Ok(Err(refusal)) => return Err(super::refused("subscribe", refusal)),
            Err(error) => return Err(RuntimeError::shim_gone(uid, error)),
        };
        let (requests, receiver) = mpsc::channel(REQUESTS);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let (release, released) = oneshot::channel();
        tokio::spawn(async move {
            if released.await.is_err() {
                // The connection was dropped.
                return;
            }
            let error = serve(line, receiver, hear).await;
            tracing::debug!(error = %error_chain(&error), "connection to the shim closed");
            gone(number).await;
        });
        let connection = Self { number, requests, uid: uid.clone() };
        Ok((HeldConnection { connection, release }, hello, status))
    }

    /// Asks the shim. The outer error means that it did not answer.
    pub(super) async fn request(&self, operation: Operation, patience: Duration) -> Result<Result<Answer, Refusal>, RuntimeError> {
        let gone = |reason: &str| RuntimeError::shim_gone(&self.uid, reason);
        let (answer, answered) = oneshot::channel();
        let exchange = async {
            self.requests.send(Box::new(Pending { operation, answer })).await.map_err(|_| gone("the connection is closed"))?;
            answered.await.map_err(|_| gone("the connection was closed before a response arrived"))
        };
        timeout(patience, exchange).await.unwrap_or_else(|late| Err(RuntimeError::failed("wait for the shim's response", late)))
    }
}

/// Serves until the shim is gone or the last [`Connection`] is dropped. Dropping what is pending tells the callers.
async fn serve(mut line: Line, mut requests: mpsc::Receiver<Box<Pending>>, mut hear: impl FnMut(Heard<'_>)) -> io::Error {
    let mut pending: BTreeMap<u64, oneshot::Sender<Result<Answer, Refusal>>> = BTreeMap::new();
    let mut next_id = 1;
    loop {
        // All that has come is heard before anything is waited for.
        loop {
            match line.decoder.next_frame() {
                Ok(Some((FrameKind::Message, payload))) => match serde_json::from_slice(payload) {
                    Ok(ToClient::Response { id, result }) => {
                        if let Ok(answer) = &result {
                            hear(Heard::Answered(answer));
                        }
                        if let Some(caller) = pending.remove(&id) {
                            // A caller that gave up does not want it.
                            let _gave_up = caller.send(result);
                        }
                    }
                    Ok(ToClient::Event(event)) => hear(Heard::Event(event)),
                    Ok(ToClient::Hello(_)) => {}
                    // Of a later version; what matters has a form that is kept.
                    Err(error) => tracing::warn!(%error, "cannot decode a message from the shim"),
                },
                Ok(Some((FrameKind::Times, payload))) => match serde_json::from_slice(payload) {
                    Ok(times) => hear(Heard::Times(times)),
                    Err(error) => tracing::debug!(%error, "cannot decode times from the shim"),
                },
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => return io::Error::other(error),
            }
        }
        tokio::select! {
            // Cancel safe: a request stays in the channel until it is taken.
            request = requests.recv() => {
                let Some(request) = request else { return io::ErrorKind::NotConnected.into() };
                let Pending { operation, answer } = *request;
                let id = next_id;
                next_id += 1;
                pending.insert(id, answer);
                let written = match serde_json::to_vec(&Request { id, operation }) {
                    Ok(payload) => line.write(&payload).await,
                    Err(error) => Err(error.into()),
                };
                if let Err(error) = written {
                    return error;
                }
            }
            // Cancel safe, see there.
            read = line.read_more() => if let Err(error) = read { return error },
        }
    }
}

/// Socket addresses are short, paths may be long: a longer one is reached through a descriptor of its directory.
async fn connect(socket: &Path) -> io::Result<UnixStream> {
    const ADDRESS: usize = 107;
    if socket.as_os_str().len() <= ADDRESS {
        return UnixStream::connect(socket).await;
    }
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let directory = std::fs::File::open(socket.parent().ok_or_else(invalid)?)?;
    let name = socket.file_name().ok_or_else(invalid)?;
    let short = Path::new("/proc/self/fd").join(std::os::fd::AsRawFd::as_raw_fd(&directory).to_string()).join(name);
    UnixStream::connect(short).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use podstead_container::protocol::ShimEventKind;
    use podstead_container::{CgroupResources, ContainerKind, ContainerState, ContainerStatus, PodNamespaces, SandboxSpec};
    use podstead_pod::resources::QosClass;
    use podstead_pod::{ContainerId, ContainerName, PodFullName};
    use std::sync::{Arc, Mutex};
    use tokio::net::UnixListener;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn hello(uid: &PodUid) -> ShimHello {
        let spec = SandboxSpec {
            uid: uid.clone(),
            full_name: PodFullName { name: "web".to_owned(), namespace: "default".to_owned() },
            attempt: 0,
            hostname: "web".to_owned(),
            namespaces: PodNamespaces::default(),
            qos: QosClass::BestEffort,
            resources: CgroupResources::default(),
            sysctls: Vec::new(),
            own_users: false,
            first_host_id: None,
        };
        ShimHello { protocol: PROTOCOL_VERSION, version: String::new(), pid: 1, created_at: Timestamp::UNIX_EPOCH, spec }
    }

    fn container(state: ContainerState) -> ContainerStatus {
        ContainerStatus {
            id: ContainerId::new("c1"),
            name: ContainerName::new("web"),
            kind: ContainerKind::Main,
            attempt: 0,
            sandbox_attempt: 0,
            hash: String::new(),
            image_ref: String::new(),
            image_id: String::new(),
            user: None,
            stop_signal: 15,
            created_at: Timestamp::UNIX_EPOCH,
            log_path: "/logs/0.log".into(),
            state,
        }
    }

    /// A shim whose container ends at the moment when it has said that it runs, and that ends then, too.
    async fn short_lived(listener: UnixListener, uid: PodUid) {
        let (stream, _) = listener.accept().await.unwrap();
        let mut line = Line { stream, decoder: FrameDecoder::default() };
        // Its hello; then, after the shim's, what it asks for. What is not read would cut the client off.
        let hear = async |line: &mut Line| {
            while line.decoder.next_frame().unwrap().is_none() {
                line.read_more().await.unwrap();
            }
        };
        hear(&mut line).await;
        line.write(&serde_json::to_vec(&ToClient::Hello(Box::new(hello(&uid)))).unwrap()).await.unwrap();
        hear(&mut line).await;
        let running = container(ContainerState::Running { pid: 2, started_at: Timestamp::UNIX_EPOCH });
        let ended = container(ContainerState::Exited {
            started_at: None,
            finished_at: Timestamp::UNIX_EPOCH,
            exit_code: 0,
            signal: None,
            oom_killed: false,
            error: None,
            message: None,
        });
        for message in [
            ToClient::Response { id: 0, result: Ok(Answer::Status(ShimStatus { containers: vec![running] })) },
            ToClient::Event(Box::new(ShimEvent { kind: ShimEventKind::Died, container: ended })),
        ] {
            line.write(&serde_json::to_vec(&message).unwrap()).await.unwrap();
        }
    }

    #[tokio::test]
    async fn what_a_shim_tells_after_its_list_is_heard_when_the_list_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let below = |name: &str| directory.path().join(name);
        let (paths, uid) = (Paths { state: below("state"), run: below("run"), logs: below("logs") }, PodUid::new("u1"));
        std::fs::create_dir_all(paths.pod_run(&uid)).unwrap();
        let shim = tokio::spawn(short_lived(UnixListener::bind(paths.shim_socket(&uid)).unwrap(), uid.clone()));
        let told = Arc::new(Mutex::new(Vec::new()));
        let (events, end) = (Arc::clone(&told), Arc::clone(&told));
        let (ended, is_over) = oneshot::channel();
        let hear = move |heard: Heard<'_>| match heard {
            Heard::Event(event) => events.lock().unwrap().push(format!("{:?} {}", event.kind, event.container.id)),
            Heard::Answered(answer) => panic!("{answer:?}"),
            Heard::Times(times) => panic!("{times:?}"),
        };
        let gone = move |number| async move {
            end.lock().unwrap().push("gone".to_owned());
            ended.send(number).unwrap();
        };
        let (held, _, status) = Connection::open(&paths, &uid, hear, gone).await.unwrap();
        assert!(matches!(status.containers[0].state, ContainerState::Running { .. }));
        timeout(PATIENCE, shim).await.unwrap().unwrap();
        // The task had time, and must not have done anything.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        told.lock().unwrap().push("the list".to_owned());
        let connection = held.release();
        assert_eq!(timeout(PATIENCE, is_over).await.unwrap().unwrap(), connection.number);
        assert_eq!(*told.lock().unwrap(), ["the list", "Died c1", "gone"]);
    }
}

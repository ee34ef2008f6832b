//! Steps of a start or a change of a pod. **Pure**.

use serde::{Deserialize, Serialize};

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Step {
    /// From the first sign of a change until the source is read: a directory waits until events pause.
    Notice,
    /// The source is read.
    Read,
    /// The revision waits for earlier ones.
    AwaitIntake,
    /// Its files are decoded and checked.
    Check,
    /// The accepted set is made durable.
    Accept,
    /// The set is expanded and merged with those of other sources.
    Merge,
    /// The pod waits for an earlier turn, or for an earlier pod of its name.
    AwaitTurn,
    /// The daemon looks and plans.
    Plan,
    /// The pod's record is made durable.
    Record,
    /// Volumes are made.
    Volumes,
    /// The image is looked up on this host.
    ImageCheck,
    /// The image is pulled.
    ImagePull,
    /// The sandbox is made.
    Sandbox,
    /// Directories, cgroups and the shim's configuration are made.
    SandboxPrepare,
    /// The sandbox's record is written.
    SandboxRecord,
    /// The shim is started and makes the namespaces.
    ShimStart,
    /// The daemon connects to the shim.
    ShimConnect,
    /// The pod is connected to the network.
    Network,
    /// The container is started.
    Container,
    /// Assembles variables, user and mounts of the container.
    Assemble,
    /// The record of the pod's addresses is awaited.
    NetworkRecord,
    /// The helper process is started.
    HelperStart,
    /// The record of the container's start is made durable.
    StartRecord,
    /// The helper makes root file system, mounts and the OCI specification.
    ContainerPrepare,
    /// libcontainer creates the container.
    ContainerCreate,
    /// The helper waits until the record of the start is durable.
    AwaitStartRecord,
    /// libcontainer starts the container, until its program is executed.
    ContainerExecute,
    /// The program runs until its first output.
    FirstOutput,
    /// The status is saved and published.
    Publish,
    /// Nothing can be done until something happens: a container stops, a back-off ends, an object appears.
    Wait,
    /// Something of the pod is stopped or removed.
    Stop,
    /// Running containers get other resources or devices.
    Resize,
}

impl Step {
    /// The step that this one is a part of.
    pub const fn part_of(self) -> Option<Self> {
        match self {
            Self::SandboxPrepare | Self::SandboxRecord | Self::ShimStart | Self::ShimConnect => Some(Self::Sandbox),
            Self::Assemble
            | Self::NetworkRecord
            | Self::HelperStart
            | Self::StartRecord
            | Self::ContainerPrepare
            | Self::ContainerCreate
            | Self::AwaitStartRecord
            | Self::ContainerExecute => Some(Self::Container),
            Self::Notice
            | Self::Read
            | Self::AwaitIntake
            | Self::Check
            | Self::Accept
            | Self::Merge
            | Self::AwaitTurn
            | Self::Plan
            | Self::Record
            | Self::Volumes
            | Self::ImageCheck
            | Self::ImagePull
            | Self::Sandbox
            | Self::Network
            | Self::Container
            | Self::FirstOutput
            | Self::Publish
            | Self::Wait
            | Self::Stop
            | Self::Resize => None,
        }
    }

    /// Returns true if podstead itself does nothing meanwhile.
    pub const fn is_wait(self) -> bool {
        match self {
            Self::Notice
            | Self::AwaitIntake
            | Self::AwaitTurn
            | Self::ImagePull
            | Self::NetworkRecord
            | Self::AwaitStartRecord
            | Self::FirstOutput
            | Self::Wait => true,
            Self::Read
            | Self::Check
            | Self::Accept
            | Self::Merge
            | Self::Plan
            | Self::Record
            | Self::Volumes
            | Self::ImageCheck
            | Self::Sandbox
            | Self::SandboxPrepare
            | Self::SandboxRecord
            | Self::ShimStart
            | Self::ShimConnect
            | Self::Network
            | Self::Container
            | Self::Assemble
            | Self::HelperStart
            | Self::StartRecord
            | Self::ContainerPrepare
            | Self::ContainerCreate
            | Self::ContainerExecute
            | Self::Publish
            | Self::Stop
            | Self::Resize => false,
        }
    }

    /// A description of the step, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Notice => "notice the change",
            Self::Read => "read the source",
            Self::AwaitIntake => "wait for earlier revisions",
            Self::Check => "decode and check the files",
            Self::Accept => "write the accepted set to disk",
            Self::Merge => "expand and merge the sets",
            Self::AwaitTurn => "wait for an earlier turn of the pod",
            Self::Plan => "look and plan",
            Self::Record => "write the pod record to disk",
            Self::Volumes => "make volumes",
            Self::ImageCheck => "look up the image",
            Self::ImagePull => "pull the image",
            Self::Sandbox => "make the sandbox",
            Self::SandboxPrepare => "make directories and cgroups",
            Self::SandboxRecord => "write the sandbox record",
            Self::ShimStart => "start the shim, make namespaces",
            Self::ShimConnect => "connect to the shim",
            Self::Network => "connect to the network",
            Self::Container => "start the container",
            Self::Assemble => "resolve variables, user and mounts",
            Self::NetworkRecord => "wait for the record of the addresses",
            Self::HelperStart => "start the helper",
            Self::StartRecord => "write the container record to disk",
            Self::ContainerPrepare => "mount the root file system and volumes",
            Self::ContainerCreate => "create the container (libcontainer)",
            Self::AwaitStartRecord => "wait for the container record",
            Self::ContainerExecute => "execute the program (libcontainer)",
            Self::FirstOutput => "wait for the first output",
            Self::Publish => "publish the status",
            Self::Wait => "wait",
            Self::Stop => "stop",
            Self::Resize => "resize",
        }
    }
}

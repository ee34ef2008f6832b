//! The image store and its sources: preloaded archives and registries.
//!
//! A listed image is a whole image: layers are unpacked into a staging directory, verified, synced and renamed before a reference
//! names them, so that a power cut leaves either all of an image or none of it.

mod access;
pub mod answers;
mod ask;
mod check;
mod collect;
mod commit;
pub mod compression;
mod digesting;
mod disk;
pub mod document;
mod doubt;
mod explain;
mod fetch;
mod figures;
mod import;
mod in_use;
mod index;
mod interest;
pub mod layer;
mod layer_error;
mod layout;
mod lease;
pub mod limits;
mod link;
mod mirror_config;
mod names;
pub mod platform;
pub mod policy;
mod preload;
mod pull;
mod pulls;
mod rate;
mod registry;
pub mod registry_config;
mod repository;
mod room;
mod slots;
pub mod space;
pub mod stack;
pub mod staging;
pub mod store;
pub mod tar;
mod transfer;
pub mod unpack;
pub mod unpack_job;
mod user;
mod windows;

pub use collect::{CollectionConfig, ImageRoots, Root, RootTarget};
pub use disk::StoreError;
pub use import::BundledImages;
pub use limits::Limits;
pub use mirror_config::MirrorConfig;
pub use podstead_job::launch::JobSettings;
pub use podstead_pod::containers::PullPolicy;
pub use registry::login::default_auth_files;
pub use registry_config::RegistryConfig;
pub use repository::{CopyError, ImageCopy, LayerContent, Repositories, RepositoryError, Signed, measure};
pub use space::Reserve;
pub use store::{ImageStore, ImageStoreConfig, RegistryDirectories, RegistrySettings};
pub use transfer::Bandwidth;
pub use windows::{Day, PullWindow, TimeOfDay, WindowError};

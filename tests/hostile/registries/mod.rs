//! Registries that stall, redirect, or ask for credentials that are not theirs.

mod answers;
mod image;
mod jobs;
mod logins;
mod redirects;
mod server;
mod slots;
mod sources;
mod store;
mod upstream;

//! Damage of stored layers: found by lists of their files, and mended from archives and registries.
//!
//! A layer gets its list ([`list`]) when it is published. [`verify`] holds files on disk against it; [`mend`] makes a damaged layer anew and exchanges it,
//! so that new containers have the new tree, and those that run keep the old one.
//!
//! Layers of an earlier boot are verified once, for a disk may have lied about what it wrote before the power went.

pub(super) mod list;
pub(super) mod mend;
pub(super) mod sum;
pub(super) mod verify;
mod walk;

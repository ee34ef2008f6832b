//! View of the objects of all sources.

use podstead_pod::objects::Objects;
use std::sync::{Arc, Mutex, PoisonError};

/// The present view of all ConfigMaps and Secrets. Written by the mux before it hands on the operations of a SET, so that a pod finds the
/// objects that came with it; read by everybody else.
#[derive(Debug, Default)]
pub struct ObjectView {
    present: Mutex<Arc<Objects>>,
}

impl ObjectView {
    /// The objects as they are now.
    pub fn get(&self) -> Arc<Objects> {
        // An Arc is whole between statements: a panic elsewhere does not spoil it.
        Arc::clone(&self.present.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces them.
    pub fn replace(&self, objects: Arc<Objects>) {
        *self.present.lock().unwrap_or_else(PoisonError::into_inner) = objects;
    }
}

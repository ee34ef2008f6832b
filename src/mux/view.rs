//! View of the objects of all sources.

use podstead_pod::objects::Objects;
use std::sync::Arc;
use tokio::sync::watch;

/// The present view of all ConfigMaps and Secrets. Written by the mux before it hands on the operations of a SET, so that a pod finds the
/// objects that came with it; read by everybody else.
#[derive(Debug, Default)]
pub struct ObjectView {
    present: watch::Sender<Arc<Objects>>,
}

impl ObjectView {
    /// The objects as they are now.
    pub fn get(&self) -> Arc<Objects> {
        Arc::clone(&self.present.borrow())
    }

    /// Replaces them.
    pub fn replace(&self, objects: Arc<Objects>) {
        self.present.send_replace(objects);
    }

    /// The objects of every moment.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Objects>> {
        self.present.subscribe()
    }
}

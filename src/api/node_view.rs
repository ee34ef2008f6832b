//! The Node as it is shown.

use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// Makes the object of this host's Node, given the one before.
#[derive(Clone)]
pub struct NodeView(pub Arc<dyn Fn(&Value) -> Value + Send + Sync>);

impl fmt::Debug for NodeView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeView")
    }
}

//! A setting that may change while the store is used. Whoever goes by it asks for it each time.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// One setting, which all its copies share.
pub(super) struct Live<T>(Arc<RwLock<T>>);

impl<T> Live<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Arc::new(RwLock::new(value)))
    }

    /// From now on it is this.
    pub(super) fn set(&self, value: T) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = value;
    }
}

impl<T: Clone> Live<T> {
    /// The setting as it is now.
    pub(super) fn get(&self) -> T {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<T> Clone for Live<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: fmt::Debug> fmt::Debug for Live<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.read().unwrap_or_else(PoisonError::into_inner).fmt(f)
    }
}

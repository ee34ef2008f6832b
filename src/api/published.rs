//! What the daemon publishes for readers: pods with status, and sources. One writer (the sync loop), many readers.

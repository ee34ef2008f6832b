//! Sources with `allow` that reach for objects, claims and names of other sources.

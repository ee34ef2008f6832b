//! Registries that stall, redirect, or ask for credentials that are not theirs.

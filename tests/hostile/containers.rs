//! Running containers that try to leave their bounds: the classes of known container escapes.

//! Manifests that use more of the host than `allow`, `podSecurity` and `require` of their source grant.

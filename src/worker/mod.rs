//! One worker per pod: latest wins, never two syncs of a pod at once (kubelet rules C5 to C10).
//!
//! The plan (`compute_pod_actions`) is a pure function of desired state, observed state and `now`; executing it decides nothing.

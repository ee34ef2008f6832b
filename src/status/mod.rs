//! From what was observed to what the API shows: phase, conditions, container statuses (kubelet rules D14, D16). **Pure**.

//! Documents as sigs.k8s.io/yaml reads them.

//! Annotations in podstead's domain. The only list of them: one that is not here is taken for a misspelt one.

/// The domain of podstead's annotations.
pub const DOMAIN: &str = "podstead.dev";

macro_rules! annotations {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = concat!("podstead.dev/", $text);)*

        /// All of them, those with a name of the author's behind the domain left out.
        pub const ALL: &[&str] = &[$($name),*];
    };
}

annotations! {
    /// On the Lease of a host: which agent wrote it last.
    AGENT = "agent";
    /// On a claim with `volumeMode: Block`: path of the block device on the host.
    BLOCK_DEVICE = "block-device";
    /// On a pod: keeps other pods away from it, and it from them, when it is `"true"`.
    ISOLATED = "isolated";
    /// On a pod of a writable source: its name is the one in its manifest, without the name of the host.
    KEEPS_NAME = "keeps-name";
    /// On a Secret that is shown: its keys, because its data are left out.
    KEYS = "keys";
    /// On a CronJob that is shown: the reason for which its last due run did not start.
    MISSED_RUN = "missed-run";
    /// On a CronJob that is shown: the time of its next run.
    NEXT_RUN = "next-run";
    /// On a mirror: paths in the manifest that it does not show, separated by commas.
    OMITTED = "omitted";
    /// On a policy that is shown: the name of the only source whose pods it selects.
    ONLY_PODS_OF = "only-pods-of";
    /// On an object that is shown: file and position of its manifest.
    ORIGIN = "origin";
    /// On a claim: the reclaim policy of its data. `podstead-workload`, which needs no other crate, has it for claims of StatefulSets.
    RECLAIM_POLICY = "reclaim-policy";
    /// On the Lease of a host: its renew time as its agent wrote it. A Lease of an older podstead has none.
    RENEWED = "renewed";
    /// On an object that is shown: the revision that its content was read from.
    REVISION = "revision";
    /// On a Job that is not edited otherwise: runs it again. `podstead-workload` has it.
    RUN = "run";
    /// On an object of an HTTP source: the serial of the body.
    SERIAL = "serial";
    /// On an object that is shown: the name of the source that it comes from.
    SOURCE = "source";
    /// On a claim that is shown: the names of the pods that use it.
    USED_BY = "used-by";
    /// On a claim that is shown: the bytes on disk of its data; only with `?measure=true`, and only where they could be counted.
    USED_BYTES = "used-bytes";
    /// On a pod that a workload made: its kind and name, in the pod's namespace. Owner references name the ReplicaSet of a Deployment, which
    /// is no object of its own here.
    WORKLOAD = "workload";
}

//! Rules for a workload of any kind.

use super::{daemon_set, deployment, replica_set, stateful_set};
use crate::object::{Workload, replica_set_of};
use crate::problem::Problem;
use crate::{cron, job};
use jiff::tz::TimeZoneDatabase;

/// Lists all problems of a workload's own fields. Its pod template is validated as a Pod elsewhere (W3).
pub fn workload(object: &Workload, zones: &TimeZoneDatabase) -> Vec<Problem> {
    match object {
        Workload::Deployment(object) => deployment(object),
        Workload::ReplicaSet(object) => replica_set(object),
        Workload::ReplicationController(object) => replica_set(&replica_set_of(object)),
        Workload::StatefulSet(object) => stateful_set(object),
        Workload::DaemonSet(object) => daemon_set(object),
        Workload::Job(object) => job::validate::problems(object),
        Workload::CronJob(object) => cron::validate(object, zones),
    }
}

//! Termination messages: a pod's share a budget (kubelet rule D19).

use k8s_openapi::api::core::v1::ContainerStatus;

/// Bytes of all termination messages of a pod together; each container has the same part.
const BUDGET: usize = 12 * 1024;

/// Cuts the messages of a container in a pod with so many containers, init containers included.
pub(super) fn cut_messages(status: &mut ContainerStatus, containers: usize) {
    let part = BUDGET / containers.max(1);
    for state in [&mut status.state, &mut status.last_state].into_iter().flatten() {
        let Some(message) = state.terminated.as_mut().and_then(|terminated| terminated.message.as_mut()) else { continue };
        if message.len() > part {
            let end = (0..=part).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
            message.truncate(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated};

    #[test]
    fn d19_each_container_has_its_part_of_twelve_kibibytes() {
        let cut = |message: &str, containers: usize| {
            let terminated = ContainerStateTerminated { message: Some(message.to_owned()), ..ContainerStateTerminated::default() };
            let state = Some(ContainerState { terminated: Some(terminated), ..ContainerState::default() });
            let mut status = ContainerStatus { state: state.clone(), last_state: state, ..ContainerStatus::default() };
            cut_messages(&mut status, containers);
            [status.state, status.last_state].map(|state| state.unwrap().terminated.unwrap().message.unwrap().len())
        };
        assert_eq!(cut(&"x".repeat(4096), 3), [4096, 4096]);
        assert_eq!(cut(&"x".repeat(4096), 4), [3072, 3072]);
        assert_eq!(cut(&"ü".repeat(2048), 5), [2456, 2456], "no half characters");
        assert_eq!(cut("short", 100), [5, 5]);
    }
}

//! Programs that are run while a container is made, for devices that need them.

use super::{BuildExt, OciError};
use crate::{ContainerSpec, GivenHook, HookTime};
use oci_spec::runtime::{Hook, HookBuilder, Hooks, HooksBuilder};

/// The hooks of the container's devices; `None` without any, since each time costs a round between processes.
pub(super) fn hooks(spec: &ContainerSpec) -> Result<Option<Hooks>, OciError> {
    if spec.devices.hooks.is_empty() {
        return Ok(None);
    }
    let at = |time: HookTime| -> Result<Vec<Hook>, OciError> {
        spec.devices.hooks.iter().filter(|hook| hook.time == time).map(hook).collect()
    };
    let mut built = HooksBuilder::default()
        .create_runtime(at(HookTime::CreateRuntime)?)
        .create_container(at(HookTime::CreateContainer)?)
        .start_container(at(HookTime::StartContainer)?)
        .build()
        .part("hooks")?;
    built.set_prestart(Some(at(HookTime::Prestart)?));
    Ok(Some(built))
}

fn hook(given: &GivenHook) -> Result<Hook, OciError> {
    let GivenHook { time: _, path, args, env, timeout_secs } = given;
    let hook = HookBuilder::default().path(path.clone()).env(env.clone()).timeout(i64::from(*timeout_secs));
    let hook = if args.is_empty() { hook } else { hook.args(args.clone()) };
    hook.build().part("hook")
}

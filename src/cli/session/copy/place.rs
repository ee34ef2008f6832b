//! The two places of a copy: `POD:PATH`, `NAMESPACE/POD:PATH`, `deploy/web:PATH`, or a path here. **Pure**.

use crate::object_type::ObjectType;
use std::path::PathBuf;

/// In a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Remote {
    /// The namespace, if it is named.
    pub(super) namespace: Option<String>,
    /// Name of the pod, or a workload such as `deploy/web`.
    pub(super) pod: String,
    /// The path.
    pub(super) path: String,
}

/// Here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Local {
    /// The path.
    pub(super) path: PathBuf,
}

/// Direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Into a container.
    Into(Local, Remote),
    /// From a container.
    From(Remote, Local),
}

#[derive(Debug)]
enum Place {
    Here(Local),
    There(Remote),
}

/// Reads both places. The error is a sentence.
pub(super) fn way(source: &str, target: &str) -> Result<Way, String> {
    match (place(source)?, place(target)?) {
        (Place::Here(local), Place::There(remote)) => Ok(Way::Into(local, remote)),
        (Place::There(remote), Place::Here(local)) => Ok(Way::From(remote, local)),
        (Place::Here(_), Place::Here(_)) => Err("one of the two has to be POD:PATH".to_owned()),
        (Place::There(_), Place::There(_)) => Err("one of the two has to be a local path".to_owned()),
    }
}

fn place(text: &str) -> Result<Place, String> {
    let is_path = text.starts_with(['/', '.', '~']);
    let Some((pod, path)) = text.split_once(':').filter(|_| !is_path) else {
        if text.is_empty() {
            return Err("a path is empty".to_owned());
        }
        return Ok(Place::Here(Local { path: PathBuf::from(text) }));
    };
    if path.is_empty() {
        return Err(format!("{text:?} has no path behind the colon"));
    }
    let path = path.to_owned();
    match pod.split('/').collect::<Vec<_>>()[..] {
        [name] if !name.is_empty() => Ok(Place::There(Remote { namespace: None, pod: name.to_owned(), path })),
        [word, name] if !name.is_empty() && ObjectType::named(word).is_some() => {
            Ok(Place::There(Remote { namespace: None, pod: pod.to_owned(), path }))
        }
        [namespace, name] if !namespace.is_empty() && !name.is_empty() => {
            Ok(Place::There(Remote { namespace: Some(namespace.to_owned()), pod: name.to_owned(), path }))
        }
        _ => Err(format!("expected POD:PATH, not {text:?}; a local path with a colon begins with ./")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(namespace: Option<&str>, pod: &str) -> Remote {
        Remote { namespace: namespace.map(str::to_owned), pod: pod.to_owned(), path: "/a:b".to_owned() }
    }

    fn local(path: &str) -> Local {
        Local { path: path.into() }
    }

    #[test]
    fn places_are_pods_and_local_paths() {
        assert_eq!(way("web:/a:b", "x"), Ok(Way::From(remote(None, "web"), local("x"))));
        assert_eq!(way("./c:d", "shop/web:/a:b"), Ok(Way::Into(local("./c:d"), remote(Some("shop"), "web"))));
        assert_eq!(way("/x", "deploy/web:/a:b"), Ok(Way::Into(local("/x"), remote(None, "deploy/web"))));
        for (source, target) in
            [("a", "b"), ("a:/b", "c:/d"), ("a:", "b"), (":/a", "b"), ("a/b/c:/d", "e"), ("", "a:/b"), ("/:/x", "b")]
        {
            assert!(way(source, target).is_err(), "{source} {target}");
        }
    }
}

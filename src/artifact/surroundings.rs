//! Files around the root of a source, which kustomizations below it may refer to. **Pure**.

use super::FileContent;
use std::collections::BTreeMap;

/// Files of the same tree as a source's (the commit, the artifact) that are outside of the path that the source reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Path of the source's root in the tree, with `/` between components and none at the ends; empty where the root is the whole tree.
    pub path: String,
    /// The files that kustomizations of the source may need, by path from the root of the tree. None is below `path`.
    pub files: BTreeMap<String, FileContent>,
}

impl Surroundings {
    /// The path from the root of the tree of a file that has this name in the source; `..` at its beginning leads out of the source.
    pub fn path_of(&self, name: &str) -> String {
        let mut steps: Vec<&str> = self.path.split('/').filter(|step| !step.is_empty()).collect();
        let mut rest = name;
        while let Some(below) = rest.strip_prefix("../") {
            steps.pop();
            rest = below;
        }
        if !rest.is_empty() {
            steps.push(rest);
        }
        steps.join("/")
    }

    /// The name in the source of the file at a path from the root of the tree; `None` when it is outside of the source.
    pub fn name_below<'p>(&self, path: &'p str) -> Option<&'p str> {
        match path.strip_prefix(self.path.as_str())? {
            rest if self.path.is_empty() || rest.is_empty() => Some(rest),
            rest => rest.strip_prefix('/'),
        }
    }

    /// The name that people see of the file at a path from the root of the tree: as seen from the source's root.
    pub fn name_of(&self, path: &str) -> String {
        if let Some(name) = self.name_below(path) {
            return name.to_owned();
        }
        let steps = |path: &str| path.split('/').filter(|step| !step.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        let (root, steps) = (steps(&self.path), steps(path));
        let common = root.iter().zip(&steps).take_while(|(one, other)| one == other).count();
        let up = std::iter::repeat_n("..", root.len() - common);
        up.chain(steps[common..].iter().map(String::as_str)).collect::<Vec<_>>().join("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_paths_and_back() {
        let around = Surroundings { path: "deploy/overlays/dev".to_owned(), files: BTreeMap::new() };
        for (path, name) in [
            ("deploy/overlays/dev/web.yaml", "web.yaml"),
            ("deploy/overlays/dev", ""),
            ("deploy/overlays/dev2/web.yaml", "../dev2/web.yaml"),
            ("deploy/bases/web.yaml", "../../bases/web.yaml"),
            ("web.yaml", "../../../web.yaml"),
        ] {
            assert_eq!(around.name_of(path), name);
            assert_eq!(around.path_of(name), path);
        }
        let whole = Surroundings::default();
        assert_eq!((whole.name_of("a/b"), whole.path_of("a/b")), ("a/b".to_owned(), "a/b".to_owned()));
        assert_eq!(around.name_below("deploy/overlays/dev2"), None);
    }
}

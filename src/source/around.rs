//! Directories outside of a source's path that its kustomizations refer to, e.g. `../../base` of an overlay. **Pure**: the tree is read by
//! the caller.

use podstead_artifact::{FileContent, Surroundings, is_kustomization};
use podstead_manifest::Limits;
use podstead_manifest::kustomize::references;
use std::collections::{BTreeMap, BTreeSet};

/// Gathers the files around a source at `path` of a tree, whose own files are `files`. `read` returns all files in a directory of the tree
/// and below, by path from the root of the tree; none when there is no such directory.
pub(crate) fn gather<E>(
    path: &str,
    files: &BTreeMap<String, FileContent>,
    mut read: impl FnMut(&str) -> Result<BTreeMap<String, FileContent>, E>,
) -> Result<Surroundings, E> {
    let mut around = Surroundings { path: path.to_owned(), files: BTreeMap::new() };
    let mut seen = BTreeSet::new();
    let of_source = files.iter().map(|(name, content)| (around.path_of(name), content));
    let mut open: BTreeSet<String> = of_source.flat_map(|(path, content)| referred(&path, content)).collect();
    while let Some(directory) = open.pop_first() {
        if path.is_empty() || is_in(&directory, path) || above(&directory).any(|above| seen.contains(above)) {
            continue;
        }
        let mut found = read(&directory)?;
        found.retain(|file, _| !is_in(file, path));
        open.extend(found.iter().flat_map(|(file, content)| referred(file, content)));
        around.files.append(&mut found);
        seen.insert(directory);
    }
    Ok(around)
}

/// The path itself and the directories that it is in, up to the root of the tree.
fn above(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| (!path.is_empty()).then(|| path.rsplit_once('/').map_or("", |(above, _)| above)))
}

/// The paths that a file refers to if it is a kustomization: directories, or files.
fn referred(path: &str, content: &FileContent) -> Vec<String> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let Ok(bytes) = content else { return Vec::new() };
    if !is_kustomization(name) {
        return Vec::new();
    }
    let found = references(directory, &bytes.read(), &Limits::default()).unwrap_or_default();
    found.paths.iter().map(|path| without_variables(path).to_owned()).collect()
}

/// The part of a path that is the same on all hosts.
fn without_variables(path: &str) -> &str {
    match path.find("${") {
        Some(at) => path[..at].rsplit_once('/').map_or("", |(before, _)| before),
        None => path,
    }
}

fn is_in(path: &str, directory: &str) -> bool {
    directory.is_empty() || path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn gathered(path: &str, tree: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let all: BTreeMap<String, FileContent> =
            tree.iter().map(|(name, text)| ((*name).to_owned(), Ok(text.as_bytes().into()))).collect();
        let place = Surroundings { path: path.to_owned(), files: BTreeMap::new() };
        let own = all.iter().filter_map(|(name, content)| Some((place.name_below(name)?.to_owned(), content.clone()))).collect();
        let mut asked = Vec::new();
        let around = gather::<Infallible>(path, &own, |directory| {
            asked.push(directory.to_owned());
            Ok(all
                .iter()
                .filter(|(name, _)| is_in(name, directory))
                .map(|(name, content)| (name.clone(), content.clone()))
                .collect())
        });
        (around.unwrap().files.into_keys().collect(), asked)
    }

    #[test]
    fn bases_are_found_through_others() {
        let tree = [
            ("apps/overlays/dev/kustomization.yaml", "resources: [../../base, web.yaml]\ncomponents: [../../../parts/tls]\n"),
            ("apps/overlays/dev/web.yaml", "kind: Pod\n"),
            ("apps/overlays/prod/kustomization.yaml", "resources: [../../base]\n"),
            ("apps/base/kustomization.yaml", "resources: [app.yaml, ../more]\n"),
            ("apps/base/app.conf", "a"),
            ("apps/more/kustomization.yaml", "resources: [../overlays/dev/x, ../base]\n"),
            ("parts/tls/kustomization.yaml", "kind: Component\n"),
            ("parts/other/kustomization.yaml", ""),
        ];
        let (files, _) = gathered("apps/overlays/dev", &tree);
        let expected =
            ["apps/base/app.conf", "apps/base/kustomization.yaml", "apps/more/kustomization.yaml", "parts/tls/kustomization.yaml"];
        assert_eq!(files, expected);
    }

    #[test]
    fn nothing_is_read_for_what_stays_inside() {
        let tree = [("a/kustomization.yaml", "resources: [b, c.yaml]\n"), ("a/b/kustomization.yaml", ""), ("d/x.yaml", "")];
        assert_eq!(gathered("a", &tree), (vec![], vec![]));
        assert_eq!(gathered("", &tree), (vec![], vec![]), "all of the tree is in the source");
    }

    #[test]
    fn directory_is_read_once() {
        let tree =
            [("a/kustomization.yaml", "resources: [../b, ../b/c, ../b/]\n"), ("b/c/kustomization.yaml", "resources: [../../b]\n")];
        assert_eq!(gathered("a", &tree).1, ["b"]);
    }

    #[test]
    fn directories_above_are_those_that_were_read() {
        assert_eq!(above("a/b/c").collect::<Vec<_>>(), ["a/b/c", "a/b", "a", ""]);
        let tree = [("s/kustomization.yaml", "resources: [../b, ../b2, ../b/c]\n"), ("b/c/x.yaml", ""), ("b2/x.yaml", "")];
        assert_eq!(gathered("s", &tree).1, ["b", "b2"]);
    }

    #[test]
    fn variable_stands_for_any_directory() {
        let tree =
            [("a/kustomization.yaml", "resources: ['../hosts/${NODE_NAME}/x']\n"), ("hosts/edge-1/x/kustomization.yaml", "")];
        assert_eq!(gathered("a", &tree), (vec!["hosts/edge-1/x/kustomization.yaml".to_owned()], vec!["hosts".to_owned()]));
    }

    #[test]
    fn source_itself_is_not_around() {
        let tree = [("a/b/kustomization.yaml", "resources: ['..']\n"), ("a/x.yaml", "")];
        assert_eq!(gathered("a/b", &tree), (vec!["a/x.yaml".to_owned()], vec!["a".to_owned()]));
    }
}

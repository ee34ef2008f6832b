//! Layers of a source: the files for this host, and their precedence. **Pure**.

use super::Artifact;
use std::collections::BTreeSet;

/// Directories or files in order: base first, then what is more special.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layers(Vec<Layer>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Layer {
    /// Relative to the source's root, without slashes at the ends; empty for the root.
    path: String,
    reach: Reach,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// The file of that path, or the files that are directly in the directory.
    Here,
    /// Those below as well: `path/**`.
    Below,
}

/// A layer that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LayersError {
    /// Its index, from 0.
    pub index: usize,
    /// The reason.
    pub message: String,
}

/// None of this host's layers has files: either its pods were removed, or its layers were renamed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no manifests in any layer: {}", .0.join(", "))]
pub struct NoLayer(Vec<String>);

impl Layers {
    /// Reads `base`, `hosts/edge-7`, `hosts/edge-7.yaml`, `apps/**` and `.` (the root).
    pub fn parse(written: &[String]) -> Result<Self, LayersError> {
        let mut seen = BTreeSet::new();
        let parse = |(index, text): (usize, &String)| {
            let bad = |message: String| LayersError { index, message };
            let layer = Layer::parse(text).ok_or_else(|| {
                bad(format!("{text:?} is not a path below the source's root: it must not have .. or empty components, and * only as a final /**"))
            })?;
            if !seen.insert(layer.path.clone()) {
                return Err(bad(format!("duplicate layer {text:?}")));
            }
            Ok(layer)
        };
        Ok(Self(written.iter().enumerate().map(parse).collect::<Result<_, _>>()?))
    }

    /// Reports whether there are no layers: then all files are used, with equal precedence.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The path of each layer, empty for the root, and whether what is below it counts too.
    pub fn paths(&self) -> impl Iterator<Item = (&str, bool)> {
        self.0.iter().map(|layer| {
            let below = match layer.reach {
                Reach::Here => false,
                Reach::Below => true,
            };
            (layer.path.as_str(), below)
        })
    }

    /// The last layer that `file` belongs to, from 0. `None` for a file of no layer.
    pub fn rank(&self, file: &str) -> Option<usize> {
        self.0.iter().rposition(|layer| layer.has(file))
    }

    /// The files of `artifact` that belong to a layer; all of them where there are no layers.
    pub fn select(&self, artifact: &Artifact) -> Result<Artifact, NoLayer> {
        let mut selected = artifact.clone();
        if !self.is_empty() {
            selected.files.retain(|file, _| self.rank(file).is_some());
            if selected.files.is_empty() {
                return Err(NoLayer(self.written()));
            }
        }
        Ok(selected)
    }

    /// As [`Layers::parse`] reads them.
    pub fn written(&self) -> Vec<String> {
        let write = |layer: &Layer| match (layer.reach, layer.path.as_str()) {
            (Reach::Here, "") => ".".to_owned(),
            (Reach::Here, path) => path.to_owned(),
            (Reach::Below, "") => "**".to_owned(),
            (Reach::Below, path) => format!("{path}/**"),
        };
        self.0.iter().map(write).collect()
    }
}

impl Layer {
    fn parse(text: &str) -> Option<Self> {
        let (path, reach) = match text.strip_suffix("**") {
            Some("") => ("", Reach::Below),
            Some(path) => (path.strip_suffix('/')?, Reach::Below),
            None => (text.strip_suffix('/').unwrap_or(text), Reach::Here),
        };
        let path = path.strip_prefix("./").unwrap_or(path);
        if path.is_empty() || path == "." {
            // An empty text is more likely a variable that came out empty than a wish for the root.
            return (!text.is_empty() && !text.starts_with('/')).then(|| Self { path: String::new(), reach });
        }
        let is_part = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(|c: char| c.is_control() || c == '*');
        path.split('/').all(is_part).then(|| Self { path: path.to_owned(), reach })
    }

    fn has(&self, file: &str) -> bool {
        let below =
            if self.path.is_empty() { Some(file) } else { file.strip_prefix(&self.path).and_then(|rest| rest.strip_prefix('/')) };
        match (below, self.reach) {
            (Some(below), Reach::Here) => !below.contains('/'),
            (Some(_), Reach::Below) => true,
            (None, Reach::Here) => file == self.path,
            (None, Reach::Below) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_pod::Revision;

    fn layers(written: &[&str]) -> Result<Layers, LayersError> {
        Layers::parse(&written.iter().map(|layer| (*layer).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_file_belongs_to_the_last_layer_that_has_it() {
        let layers = layers(&["base", "apps/**", "hosts/edge-7", "hosts/edge-7.yaml", "apps/special/"]).unwrap();
        let cases = [
            ("base/web.yaml", Some(0)),
            ("base/deeper/web.yaml", None),
            ("baseline/web.yaml", None),
            ("apps/web/pod.yaml", Some(1)),
            ("hosts/edge-7/web.yaml", Some(2)),
            ("hosts/edge-7/more/web.yaml", None),
            ("hosts/edge-8/web.yaml", None),
            ("hosts/edge-7.yaml", Some(3)),
            ("apps/special/web.yaml", Some(4)),
            ("web.yaml", None),
        ];
        for (file, rank) in cases {
            assert_eq!(layers.rank(file), rank, "{file}");
        }
        assert_eq!(layers.written(), ["base", "apps/**", "hosts/edge-7", "hosts/edge-7.yaml", "apps/special"]);
    }

    #[test]
    fn the_root_is_a_layer_as_any_other() {
        for text in [".", "./"] {
            let root = layers(&[text]).unwrap();
            assert_eq!((root.rank("web.yaml"), root.rank("a/web.yaml")), (Some(0), None), "{text}");
        }
        for text in ["**", "./**"] {
            assert_eq!(layers(&[text]).unwrap().rank("a/web.yaml"), Some(0), "{text}");
        }
        assert_eq!(layers(&[]).unwrap().rank("a"), None);
    }

    #[test]
    fn what_leads_elsewhere_or_comes_twice_is_refused() {
        for text in ["", "/", "/a", "../a", "a//b", "a/./b", "a/../b", "a*", "a/*/b", "a**", "/**", "a\n"] {
            assert!(layers(&[text]).is_err(), "{text:?}");
        }
        let error = layers(&["a", "b", "./a/"]).unwrap_err();
        assert_eq!((error.index, error.to_string().as_str()), (2, r#"duplicate layer "./a/""#));
    }
    fn artifact(files: &[&str]) -> Artifact {
        let files = files.iter().map(|file| ((*file).to_owned(), Ok(b"x".as_slice().into()))).collect();
        Artifact {
            revision: Revision("r".into()),
            place: None,
            commit: None,
            files,
            beside: std::collections::BTreeMap::new(),
            around: crate::Surroundings::default(),
        }
    }

    #[test]
    fn files_of_other_hosts_are_left_out() {
        let all = artifact(&["base/web.yaml", "hosts/a/web.yaml", "hosts/b/web.yaml", "README.yaml"]);
        let selected = layers(&["base", "hosts/a"]).unwrap().select(&all).unwrap();
        assert_eq!(selected, artifact(&["base/web.yaml", "hosts/a/web.yaml"]));
        assert_eq!(Layers::default().select(&all).unwrap(), all);
    }

    #[test]
    fn a_missing_layer_is_none_and_no_layer_at_all_is_a_failure() {
        let all = artifact(&["base/web.yaml"]);
        assert_eq!(layers(&["base", "hosts/a"]).unwrap().select(&all).unwrap(), all);
        let error = layers(&["hosts/a", "hosts/b/**"]).unwrap().select(&all).unwrap_err().to_string();
        assert_eq!(error, "no manifests in any layer: hosts/a, hosts/b/**");
        assert!(layers(&["base"]).unwrap().select(&artifact(&[])).is_err());
    }
}

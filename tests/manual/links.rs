//! The book as a whole: its contents list every page, and no link leads nowhere.

use crate::repository;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The pages in a folder and in those below it.
pub(crate) fn markdown_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(markdown_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found
}

/// Targets of the links of a page, without code.
fn links(page: &str) -> Vec<String> {
    let mut in_code = false;
    let prose = page.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    });
    let prose = prose.collect::<Vec<_>>().join("\n");
    prose.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

/// `a/../b` as `b`.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, component| {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
        plain
    })
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    kept.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter)).collect::<String>().replace(' ', "-")
}

#[test]
fn every_link_leads_somewhere() {
    let mut pages = markdown_below(&repository().join("docs"));
    pages.extend(["README.md", "CHANGELOG.md"].map(|page| repository().join(page)));
    let mut broken = Vec::new();
    for page in pages {
        for link in links(&fs::read_to_string(&page).unwrap()) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (target, place) = link.split_once('#').unwrap_or((&link, ""));
            let target = if target.is_empty() { page.clone() } else { plain(&page.parent().unwrap().join(target)) };
            // The book has no other files.
            let leaves_the_book = page.starts_with(repository().join("docs")) && !target.starts_with(repository().join("docs"));
            let leads = match fs::metadata(&target) {
                Err(_) => false,
                Ok(_) if leaves_the_book => false,
                Ok(found) if place.is_empty() || found.is_dir() => true,
                Ok(_) => fs::read_to_string(&target).unwrap().lines().any(|line| line.starts_with('#') && anchor(line) == place),
            };
            if !leads {
                broken.push(format!("{}: {link}", page.strip_prefix(repository()).unwrap().display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn the_contents_of_the_book_list_every_page() {
    let docs = repository().join("docs");
    let summary = docs.join("SUMMARY.md");
    let listed: BTreeSet<PathBuf> = links(&fs::read_to_string(&summary).unwrap()).iter().map(|link| docs.join(link)).collect();
    let there: BTreeSet<PathBuf> = markdown_below(&docs).into_iter().filter(|page| *page != summary).collect();
    assert_eq!(listed, there);
}

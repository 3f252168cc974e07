//! Links from page to page: each leads to a file, and to a heading that is there.

use std::fs;
use std::path::Path;

use crate::sources::{paths, root};

/// Links of the repository's pages that lead nowhere, as `page: target`.
pub(crate) fn dead_links() -> Vec<String> {
    let pages = paths(".md");
    assert!(!pages.is_empty(), "the repository has no pages");
    pages.iter().flat_map(|page| dead_links_of(page)).collect()
}

/// Pages in `folder` that no other page links to.
pub(crate) fn unlinked(folder: &str) -> Vec<String> {
    let all = paths(".md");
    let links: Vec<String> = all.iter().flat_map(|page| linked_from(page)).collect();
    let pages = all.iter().filter(|page| page.starts_with(folder));
    pages
        .filter(|page| !links.contains(page))
        .cloned()
        .collect()
}

fn dead_links_of(page: &str) -> Vec<String> {
    let is_dead = |target: &&String| {
        let (file, heading) = target.split_once('#').unwrap_or((target, ""));
        let path = beside(page, file);
        let content = fs::read_to_string(root().join(&path));
        let has_heading = || headings(&content.unwrap_or_default()).any(|it| it == heading);
        !root().join(&path).exists() || !(heading.is_empty() || has_heading())
    };
    let targets = targets(page);
    let dead = targets.iter().filter(is_dead);
    dead.map(|target| format!("{page}: {target}")).collect()
}

fn linked_from(page: &str) -> Vec<String> {
    let files = targets(page).into_iter();
    files
        .map(|target| beside(page, target.split('#').next().unwrap_or_default()))
        .collect()
}

/// Where the README's links lead in the checkout: `PyPI` shows only absolute ones.
const OURS: [&str; 2] = [
    "https://github.com/jupyter-gpumem/gpumem/blob/main/",
    "https://raw.githubusercontent.com/jupyter-gpumem/gpumem/main/",
];

/// Where the links and pictures of a page lead, those to other sites apart.
fn targets(page: &str) -> Vec<String> {
    let to_root = "../".repeat(page.matches('/').count());
    targets_as_written(page)
        .into_iter()
        .map(
            |target| match OURS.iter().find_map(|it| target.strip_prefix(it)) {
                Some(path) => format!("{to_root}{path}"),
                None => target,
            },
        )
        .filter(|target| !target.contains("://"))
        .collect()
}

/// Links that `PyPI` cannot follow.
pub(crate) fn relative_links(page: &str) -> Vec<String> {
    let mut targets = targets_as_written(page);
    targets.retain(|target| !target.contains("://") && !target.starts_with('#'));
    targets
}

fn targets_as_written(page: &str) -> Vec<String> {
    let content = fs::read_to_string(root().join(page)).unwrap_or_default();
    let links = content.split("](").skip(1);
    links
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.to_owned())
        .collect()
}

/// The path of what a page calls `target`.
fn beside(page: &str, target: &str) -> String {
    if target.is_empty() {
        return page.to_owned();
    }
    let mut folders: Vec<&str> = page.split('/').collect();
    folders.pop();
    for step in Path::new(target).iter().filter_map(|it| it.to_str()) {
        match step {
            ".." => drop(folders.pop()),
            step => folders.push(step),
        }
    }
    folders.join("/")
}

/// Headings as their anchors: `## Trace a run` is `trace-a-run`.
fn headings(content: &str) -> impl Iterator<Item = String> {
    let lines = content.lines().filter(|line| line.starts_with('#'));
    lines.map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
        title
            .chars()
            .filter(kept)
            .collect::<String>()
            .replace(' ', "-")
    })
}

//! Data that claims of the docs rest on: a sample stands in `tests/data`, more may stand elsewhere.

use std::path::{Path, PathBuf};

/// The files with this suffix: the sample's, then those of the folder that the variable names. A
/// folder without any is an error: nothing would be tested.
pub(crate) fn files(sample: &str, variable: &str, suffix: &str) -> Vec<PathBuf> {
    let sample = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data")).join(sample);
    let more = std::env::var_os(variable).map(PathBuf::from);
    let folders = std::iter::once(sample).chain(more);
    folders
        .flat_map(|folder| files_in(&folder, suffix))
        .collect()
}

fn files_in(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("reading {}: {error}", folder.display()));
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|it| it == suffix))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no *.{suffix} in {}", folder.display());
    files
}

//! Steps of a build: each is done only if it has to be, and says how long it took.

use std::fs;
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use xxhash_rust::xxh3::Xxh3;

use crate::project::Project;

/// Folders and files that a build or a tool leaves behind: no step reads them.
const LEFT_BEHIND: [&str; 4] = ["target", "node_modules", "__pycache__", ".ruff_cache"];

/// Steps and suites that were run, with the time that each took.
static TIMES: Mutex<Vec<(String, Duration)>> = Mutex::new(Vec::new());

/// Does a step and notes how long it took.
pub(crate) fn timed<T>(name: &str, run: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let outcome = run();
    let times = &mut TIMES.lock().unwrap_or_else(PoisonError::into_inner);
    times.push((name.to_owned(), begun.elapsed()));
    outcome
}

/// How long each step took, one a line.
pub(crate) fn times() -> Vec<String> {
    let times = TIMES.lock().unwrap_or_else(PoisonError::into_inner);
    let line =
        |(name, took): &(String, Duration)| format!("{:>6.0} s   {name}", took.as_secs_f64());
    times.iter().map(line).collect()
}

/// Does a step unless its product is there and all that it is made of is as it was then.
///
/// `inputs` are files and folders, relative to the project. What changes while the step is done
/// makes its product old.
pub(crate) fn unless_current(
    project: &Project,
    name: &str,
    product: &Path,
    inputs: &[&str],
    make: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let note = project.target("steps").join(name);
    let found = state(inputs.iter().map(|it| project.path(it)));
    if product.exists() && fs::read_to_string(&note).is_ok_and(|made_of| made_of == found) {
        return Ok(());
    }
    eprintln!("{name}");
    timed(name, make)?;
    fs::create_dir_all(project.target("steps"))?;
    fs::write(&note, found).with_context(|| format!("writing {}", note.display()))
}

/// Which files there are, and when each last changed, as one number.
///
/// A folder's own time says nothing: it changes when a tool leaves something behind in it.
fn state(inputs: impl Iterator<Item = PathBuf>) -> String {
    let mut hash = Xxh3::new();
    let mut left: Vec<PathBuf> = inputs.collect();
    while let Some(path) = left.pop() {
        if let Ok(inside) = entries(&path) {
            left.extend(inside.into_iter().filter(|it| !is_left_behind(it)));
        } else {
            let changed = fs::metadata(&path).and_then(|it| it.modified()).ok();
            (path, changed).hash(&mut hash);
        }
    }
    hash.digest().to_string()
}

fn is_left_behind(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    LEFT_BEHIND.contains(&name.as_ref())
}

/// What a folder holds, by name.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let list = || fs::read_dir(folder)?.map(|it| Ok(it?.path())).collect();
    let listed: std::io::Result<Vec<PathBuf>> = list();
    let mut entries = listed.with_context(|| format!("listing {}", folder.display()))?;
    entries.sort();
    Ok(entries)
}

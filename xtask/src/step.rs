//! Steps of a build: each is done only if it has to be, and says how long it took.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};

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

/// Does a step unless its product is there and newer than all that it is made of.
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
    let begun = SystemTime::now();
    let note = project.target("steps").join(name);
    let made = fs::metadata(&note).and_then(|it| it.modified()).ok();
    let changed = inputs.iter().map(|it| changed(&project.path(it))).max();
    if product.exists() && made >= Some(changed.unwrap_or(begun)) {
        return Ok(());
    }
    eprintln!("{name}");
    timed(name, make)?;
    fs::create_dir_all(project.target("steps"))?;
    let note = File::create(&note).with_context(|| format!("writing {}", note.display()))?;
    Ok(note.set_modified(begun)?)
}

/// When a file, or anything in a folder, last changed; now if that is unknown.
fn changed(path: &Path) -> SystemTime {
    let own = fs::metadata(path).and_then(|it| it.modified());
    let inside = entries(path).unwrap_or_default();
    let inside = inside.iter().filter(|it| !is_left_behind(it));
    let newest = inside.map(|it| changed(it)).max();
    own.map_or_else(
        |_| SystemTime::now(),
        |own| newest.map_or(own, |it| it.max(own)),
    )
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

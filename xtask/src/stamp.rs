//! Knowing that a step is up to date, by the content of what it reads.
//!
//! Times of files are of no use for that: a fresh clone has new ones, a
//! restored cache old ones.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xxhash_rust::xxh3::Xxh3;

use crate::project::Project;

/// Folders that hold what a build or a tool left behind, never a step's input.
const LEFT_BEHIND: [&str; 6] = [
    "target",
    "node_modules",
    "__pycache__",
    ".ruff_cache",
    ".mypy_cache",
    ".pytest_cache",
];

/// What a step read when it was last done, kept in `target/stamps`.
pub(crate) struct Stamp {
    file: PathBuf,
    inputs: String,
}

impl Stamp {
    /// A stamp over files and folders, given relative to the project, and words such as a version.
    pub(crate) fn of(
        project: &Project,
        step: &str,
        paths: &[&str],
        words: &[&str],
    ) -> Result<Self> {
        let mut hasher = Xxh3::new();
        for word in words {
            hasher.update(word.as_bytes());
            hasher.update(b"\0");
        }
        for path in paths {
            absorb(&mut hasher, project.root(), &project.path(path))?;
        }
        let inputs = format!("{:032x}", hasher.digest128());
        Ok(Self {
            file: project.target("stamps").join(step),
            inputs,
        })
    }

    /// Whether the step was done with exactly these inputs.
    pub(crate) fn is_current(&self) -> bool {
        fs::read_to_string(&self.file).is_ok_and(|done| done == self.inputs)
    }

    /// Notes that the step is done.
    pub(crate) fn set(&self) -> Result<()> {
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&self.file, &self.inputs)
            .with_context(|| format!("writing {}", self.file.display()))
    }
}

fn absorb(hasher: &mut Xxh3, root: &Path, path: &Path) -> Result<()> {
    if path.is_dir() {
        for entry in entries(path)? {
            if !is_left_behind(&entry) {
                absorb(hasher, root, &entry)?;
            }
        }
    } else if path.exists() {
        let name = path.strip_prefix(root).unwrap_or(path);
        let content = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        hasher.update(name.to_string_lossy().as_bytes());
        hasher.update(&content.len().to_le_bytes());
        hasher.update(&content);
    }
    Ok(())
}

/// What a folder holds, in an order that does not depend on the file system.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut entries = fs::read_dir(folder)
        .and_then(|found| {
            found
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<Result<Vec<_>, _>>()
        })
        .with_context(|| format!("listing {}", folder.display()))?;
    entries.sort();
    Ok(entries)
}

fn is_left_behind(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_built = path
        .extension()
        .is_some_and(|end| end == "so" || end == "pyd");
    is_built || LEFT_BEHIND.contains(&name.as_ref())
}

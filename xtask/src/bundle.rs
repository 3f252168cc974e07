//! The files of the page, as the Python package carries them.

use std::fs;
use std::path::Path;

use anyhow::Result;

/// Writes the page's files into the Python package.
pub(crate) fn bundle(root: &Path, glue_js: &str, wasm: &[u8]) -> Result<()> {
    let folder = root.join("pybind/python/gpumem/static");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("glue.js"), glue_js)?;
    fs::write(folder.join("module.wasm"), wasm)?;
    Ok(())
}

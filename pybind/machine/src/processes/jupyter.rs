//! The files that Jupyter keeps while kernels and servers run. Python reads their JSON;
//! tokens and keys in them are not taken out.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use gpumem_jobs::gpu_processes::{ProcessLookup, Server, connection_file, kernel_id};
use pyo3::prelude::*;

use super::ScannedProcess;
use gpumem_base::text::Text;

/// A larger file is none of Jupyter's.
const LARGEST: u64 = 1 << 16;
/// The most Jupyter servers that are examined.
const N_SERVERS: usize = 64;

/// The notebook of each kernel among these processes, by the kernel's id. Of the user's own only:
/// another may have named any file.
pub(super) fn notebooks<'a>(
    py: Python<'_>,
    seen: impl Iterator<Item = &'a ScannedProcess>,
) -> PyResult<BTreeMap<String, String>> {
    let commands = seen.filter_map(|it| match &it.sight {
        ProcessLookup::Found(facts) => Some(&facts.command),
        ProcessLookup::Hidden | ProcessLookup::Gone => None,
    });
    let mut notebooks = BTreeMap::new();
    for command in commands {
        let (Some(file), Some(id)) = (connection_file(command), kernel_id(command)) else {
            continue;
        };
        // One that is not absolute is in that folder.
        let path = runtime_dir().map_or_else(|| PathBuf::from(file), |dir| dir.join(file));
        let Some(content) = content(py, &path)? else {
            continue;
        };
        if let Some(notebook) = text(&content, "jupyter_session") {
            notebooks.insert(id.to_owned(), notebook);
        }
    }
    Ok(notebooks)
}

/// The servers that left word of themselves.
pub(super) fn servers(py: Python<'_>) -> PyResult<Vec<Server>> {
    let Some(dir) = runtime_dir() else {
        return Ok(Vec::new());
    };
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    let names = files.filter(|file| {
        let name = file.file_name().to_string_lossy().into_owned();
        let is_servers = name.starts_with("jpserver-") || name.starts_with("nbserver-");
        is_servers && file.path().extension() == Some("json".as_ref())
    });
    let mut servers = Vec::new();
    for file in names.take(N_SERVERS) {
        let Some(content) = content(py, &file.path())? else {
            continue;
        };
        let pid = content.get_item("pid").and_then(|pid| pid.extract());
        if let (Ok(pid), Some(url)) = (pid, text(&content, "url")) {
            let root = text(&content, "root_dir").or_else(|| text(&content, "notebook_dir"));
            let root = root.unwrap_or_default();
            servers.push(Server { pid, url, root });
        }
    }
    Ok(servers)
}

/// A file's JSON; nothing where it is no file, is too large, or is no JSON.
fn content<'py>(py: Python<'py>, path: &Path) -> PyResult<Option<Bound<'py, PyAny>>> {
    let is_small = fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() <= LARGEST);
    if !is_small {
        return Ok(None);
    }
    let Ok(bytes) = fs::read(path) else {
        return Ok(None);
    };
    let read = py.import("json")?.call_method1("loads", (bytes,));
    Ok(read.ok())
}

fn text(content: &Bound<'_, PyAny>, key: &str) -> Option<String> {
    content
        .get_item(key)
        .ok()?
        .extract()
        .ok()
        .map(|Text(text)| text)
}

/// Where Jupyter keeps them: what the environment says, else the system's own place.
fn runtime_dir() -> Option<PathBuf> {
    folder("JUPYTER_RUNTIME_DIR").or_else(|| Some(data_dir()?.join("runtime")))
}

/// Jupyter's data folder: what the environment says, else the system's own place.
pub fn data_dir() -> Option<PathBuf> {
    folder("JUPYTER_DATA_DIR").or_else(usual_data_dir)
}

/// The folder that a variable of the environment names.
fn folder(name: &str) -> Option<PathBuf> {
    env::var_os(name)
        .filter(|it| !it.is_empty())
        .map(PathBuf::from)
}

#[cfg(windows)]
fn usual_data_dir() -> Option<PathBuf> {
    env::var_os("APPDATA").map(|it| PathBuf::from(it).join("jupyter"))
}

#[cfg(target_os = "macos")]
fn usual_data_dir() -> Option<PathBuf> {
    env::home_dir().map(|home| home.join("Library/Jupyter"))
}

#[cfg(not(any(windows, target_os = "macos")))]
fn usual_data_dir() -> Option<PathBuf> {
    let data = folder("XDG_DATA_HOME");
    let data = data.or_else(|| env::home_dir().map(|home| home.join(".local/share")));
    data.map(|it| it.join("jupyter"))
}

//! A process's kernel, notebook and server.

use super::command::base_name;
use super::{ProcessFacts, ProcessTable, Server};

/// The connection file of the kernel that this command line starts, if it starts one.
///
/// Kernels of other languages take the file without `-f`, so its usual name counts too.
pub fn connection_file(command: &[String]) -> Option<&str> {
    // A client of a kernel names the same file.
    if command.iter().any(|it| it.starts_with("--existing")) {
        return None;
    }
    let mut words = command.iter();
    let is_ipykernel = words.any(|it| base_name(it).starts_with("ipykernel"));
    let arguments = command.iter().skip(1);
    let values = arguments.map(|argument| match argument.split_once('=') {
        Some((_, value)) => value,
        None => argument.as_str(),
    });
    let mut files = values.filter(|value| {
        let name = base_name(value);
        name.strip_suffix(".json").is_some() && (is_ipykernel || name.starts_with("kernel-"))
    });
    files.next_back()
}

/// The id of the kernel that this command line starts, from the name of its connection file.
pub fn kernel_id(command: &[String]) -> Option<&str> {
    let stem = base_name(connection_file(command)?).strip_suffix(".json")?;
    Some(stem.strip_prefix("kernel-").unwrap_or(stem))
}

/// The notebook that this process's kernel was started for, from its connection file or else from its
/// environment.
pub(super) fn notebook(facts: &ProcessFacts, table: &ProcessTable) -> Option<String> {
    let name = kernel_id(&facts.command).and_then(|id| table.notebooks.get(id));
    let name = name.or(facts.session_name.as_ref());
    name.filter(|name| !name.is_empty()).cloned()
}

/// The server that started this process's kernel, if it is known.
pub(super) fn server<'a>(facts: &ProcessFacts, table: &'a ProcessTable) -> Option<&'a Server> {
    let pid = facts.server_pid?;
    table.servers.iter().find(|server| server.pid == pid)
}

/// A path as people write it: relative to the server's folder, or to their home.
pub(super) fn shown_path(path: &str, server: Option<&Server>, home: Option<&str>) -> String {
    let below = |folder: &str| {
        let inside = path.strip_prefix(folder.trim_end_matches('/'))?;
        inside.strip_prefix('/')
    };
    if let Some(inside) = server.and_then(|server| below(&server.root)) {
        return inside.to_owned();
    }
    match home.and_then(below) {
        Some(inside) => format!("~/{inside}"),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_id(line: &str, expected: Option<&str>) {
        let command: Vec<String> = line.split(' ').map(ToOwned::to_owned).collect();
        assert_eq!(kernel_id(&command), expected, "{line}");
    }

    #[test]
    fn a_kernel_is_known_by_its_connection_file() {
        check_id(
            "python -m ipykernel_launcher -f /run/kernel-ab-1.json",
            Some("ab-1"),
        );
        check_id(
            "python -m ipykernel_launcher --f=/run/kernel-v3ab.json",
            Some("v3ab"),
        );
        check_id(
            "python -m ipykernel_launcher -f /tmp/tmpx1.json",
            Some("tmpx1"),
        );
        check_id("julia kernel.jl /run/kernel-cd.json", Some("cd"));
        check_id("python train.py config.json", None);
        check_id("jupyter console --existing kernel-ab.json", None);
        check_id("jupyter console --existing=kernel-ab.json", None);
        check_id("python", None);
    }

    #[track_caller]
    fn check_path(path: &str, expected: &str) {
        let server = Server {
            pid: 1,
            url: String::new(),
            root: "/data/books/".to_owned(),
        };
        assert_eq!(shown_path(path, Some(&server), Some("/data")), expected);
    }

    #[test]
    fn a_path_is_relative_to_the_server_s_folder_or_to_home() {
        check_path("/data/books/a/train.ipynb", "a/train.ipynb");
        check_path("/data/workshop/train.ipynb", "~/workshop/train.ipynb");
        check_path("/srv/train.ipynb", "/srv/train.ipynb");
        check_path("Console 1", "Console 1");
    }
}

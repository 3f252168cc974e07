//! Where things are in the checkout.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run;

/// The checkout that this `xtask` was built from.
pub(crate) struct Project {
    root: PathBuf,
}

impl Project {
    pub(crate) fn here() -> Self {
        let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self {
            root: xtask.parent().unwrap_or(xtask).to_path_buf(),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Everything that is made and not committed, but for the page's module.
    pub(crate) fn target(&self, relative: &str) -> PathBuf {
        self.root.join("target").join(relative)
    }

    /// Where cargo builds, which people may have set.
    pub(crate) fn cargo_target(&self) -> PathBuf {
        std::env::var_os("CARGO_TARGET_DIR")
            .and_then(|chosen| std::path::absolute(chosen).ok())
            .unwrap_or_else(|| self.target(""))
    }

    /// The page's module, which the wheel carries.
    pub(crate) fn static_folder(&self) -> PathBuf {
        self.path("pybind/python/gpumem/static")
    }

    /// Keeps this machine's folders out of what is shipped, where panics name their source.
    pub(crate) fn without_local_paths<'a>(&self, build: &'a mut Command) -> &'a mut Command {
        if ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"]
            .iter()
            .any(|set| std::env::var_os(set).is_some())
        {
            return build;
        }
        let home = |variable, usual| match std::env::var_os(variable) {
            Some(named) => Some(PathBuf::from(named)),
            None => Some(std::env::home_dir()?.join(usual)),
        };
        // With the component `rust-src`, the standard library is named by where it lies, too.
        let folders = [
            (home("CARGO_HOME", ".cargo"), "cargo"),
            (home("RUSTUP_HOME", ".rustup"), "rust"),
            (Some(self.root.clone()), "gpumem"),
        ];
        let flags = folders
            .into_iter()
            .filter_map(|(folder, name)| Some((folder?, name)))
            .map(|(folder, name)| format!("--remap-path-prefix={}={name}", folder.display()));
        build.env(
            "CARGO_ENCODED_RUSTFLAGS",
            flags.collect::<Vec<_>>().join("\x1f"),
        )
    }

    /// Cargo in this workspace, with one build folder for every step.
    pub(crate) fn cargo(&self, subcommand: &str) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = run::command(cargo);
        command.arg(subcommand).current_dir(&self.root);
        if subcommand != "fmt" {
            command.arg("--target-dir").arg(self.cargo_target());
        }
        command
    }
}

//! Programs that the system provides.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};

use crate::run;

const CHROMIUM_NAMES: [&str; 5] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
];

/// Installs a package of the system if no password is needed, else says how.
pub(crate) fn install(package: &str) -> Result<()> {
    let sudo: &[&str] = if is_root() { &[] } else { &["sudo"] };
    let by_hand = [sudo, &["apt-get", "install", "-y", package]]
        .concat()
        .join(" ");
    if find("apt-get").is_none() {
        bail!("{package} is missing\ninstall it with your system's package manager");
    }
    if !may_install() {
        bail!("{package} is missing\n{by_hand}");
    }
    eprintln!("{by_hand}");
    let apt_get = |arguments: &[&str]| {
        let words = [sudo, &["apt-get", "--quiet=2"], arguments].concat();
        run::run(
            run::command(words[0])
                .args(&words[1..])
                .env("DEBIAN_FRONTEND", "noninteractive"),
        )
    };
    if apt_get(&["install", "-y", package]).is_err() {
        apt_get(&["update"])?;
        apt_get(&["install", "-y", package])?;
    }
    Ok(())
}

/// A Chromium for the tests in the page, installed where that is allowed.
pub(crate) fn chromium() -> Result<PathBuf> {
    if let Some(chosen) = std::env::var_os("GPUMEM_CHROMIUM") {
        return Ok(chosen.into());
    }
    let search = || CHROMIUM_NAMES.iter().find_map(|name| find(name));
    if let Some(found) = search() {
        return Ok(found);
    }
    install("chromium")?;
    search()
        .context("Chromium was installed but is not on the path\nname it: GPUMEM_CHROMIUM=/path")
}

/// Looks a program up on the path.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| {
            folder
                .join(program)
                .with_extension(std::env::consts::EXE_EXTENSION)
        })
        .find(|path| path.is_file())
}

/// Whether no password is needed: we are root, or the machine is made for one run.
pub(crate) fn may_install() -> bool {
    is_root() || std::env::var_os("CI").is_some()
}

pub(crate) fn is_root() -> bool {
    cfg!(unix) && run::output(run::command("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Whether a browser would have a screen to open on.
pub(crate) fn has_display() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    cfg!(any(windows, target_os = "macos")) || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

/// Makes sure that the compiler has the standard library for a target.
pub(crate) fn add_target(triple: &str) -> Result<()> {
    // Threads of `test` need some at the same time, and two rustups would overwrite each other's download.
    static ADDING: Mutex<()> = Mutex::new(());
    let _adding = ADDING.lock().unwrap_or_else(PoisonError::into_inner);
    if has_target(triple)? {
        return Ok(());
    }
    eprintln!("adding the compiler's target {triple}");
    run::run(run::command("rustup").args(["target", "add", triple]))
        .with_context(|| format!("the standard library for {triple}"))
}

/// Asks the compiler itself, which may have come without rustup.
fn has_target(triple: &str) -> Result<bool> {
    let arguments = ["--print", "target-libdir", "--target", triple];
    let libraries = run::output(run::command("rustc").args(arguments))?;
    Ok(Path::new(libraries.trim()).is_dir())
}

//! Crates as modules for pages: compile, bind, bundle.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::Bindgen;

use crate::bundle::bundle;
use crate::project::Project;
use crate::wheel::remove_folder;
use crate::{run, step, system};

/// What the page runs.
const TARGET: &str = "wasm32-unknown-unknown";
const INPUTS: [&str; 7] = [
    "Cargo.toml",
    "Cargo.lock",
    "core",
    "widget",
    "js",
    "xtask/src/wasm.rs",
    "xtask/src/bundle.rs",
];

/// Makes sure that the compiler can build for the page.
pub(crate) fn add_target() -> Result<()> {
    system::add_target(TARGET).with_context(|| {
        format!(
            "the widget is compiled for {TARGET}, which this compiler does not have\n\
             with rustup: rustup target add {TARGET}\n\
             otherwise install your distribution's package of Rust's standard library for it"
        )
    })
}

/// Builds the page's files into the Python package, where they are not current.
pub(crate) fn build(project: &Project) -> Result<()> {
    let folder = project.static_folder();
    step::unless_current(project, "building the page", &folder, &INPUTS, || {
        add_target()?;
        // A file that the bundle no longer writes would stay in every wheel.
        remove_folder(&folder)?;
        let [report, files] = modules(project)?;
        bundle(project, &report, &files)
    })
}

/// What a page loads: the script that talks to a module, and the module.
pub(crate) struct Module {
    pub(crate) glue_js: String,
    pub(crate) wasm: Vec<u8>,
}

/// Compiles both side by side, as one of cargo's builds.
fn modules(project: &Project) -> Result<[Module; 2]> {
    let mut build = project.cargo("build");
    build.args(["--quiet", "--locked", "--lib"]);
    build.args(["--profile", "wasm", "--target", TARGET]);
    build.args(["--package", "gpumem-widget"]);
    build.args(["--package", "gpumem-files-page"]);
    run::run(project.without_local_paths(&mut build))?;
    let built = project.cargo_target().join(TARGET).join("wasm");
    let bind = |name| bind(&built.join(name), &project.target("bindgen"));
    Ok([bind("gpumem_widget.wasm")?, bind("gpumem_files_page.wasm")?])
}

/// The JavaScript that talks to the module, and the module that it talks to.
///
/// The page imports the glue from a `blob:` address, where a path relative to
/// the module means nothing: so no default path.
fn bind(module: &Path, folder: &Path) -> Result<Module> {
    let name = module.file_stem().unwrap_or_default().to_string_lossy();
    Bindgen::new()
        .input_path(module)
        .web(true)?
        .omit_default_module_path(true)
        .typescript(false)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate(folder)
        .with_context(|| format!("binding {}", module.display()))?;
    let read = |name: &str| {
        let file = folder.join(name);
        fs::read(&file).with_context(|| format!("reading {}", file.display()))
    };
    Ok(Module {
        glue_js: String::from_utf8(read(&format!("{name}.js"))?)?,
        wasm: read(&format!("{name}_bg.wasm"))?,
    })
}

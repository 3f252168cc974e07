//! The files of the page, as the Python package carries them.
//!
//! The modules of `js/` are joined into one each by taking their `import` lines
//! and the word `export` away: they name one another only in whole lines, and no
//! two of them use one name for two things.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use xxhash_rust::xxh3::Xxh3;

use crate::wasm::Module;

/// Writes the report's files into the Python package.
pub(crate) fn bundle(root: &Path, module: &Module) -> Result<()> {
    let js = |name| source(root, name);
    let report = [
        glue(&module.glue_js)?,
        joined(&js("theme.js")?),
        joined(&js("unpack.js")?),
        joined(&js("size.js")?),
        joined(&js("picture.js")?),
        joined(&js("export.js")?),
        joined(&js("blocks.js")?),
        joined(&js("cells.js")?),
        joined(&js("input.js")?),
        joined(&js("drop.js")?),
        joined(&js("dropped.js")?),
        joined(&js("report.js")?),
    ]
    .concat();
    let report = report
        .replace("\"__GPUMEM_STYLE__\"", &quoted(&js("style.css")?)?)
        .replace("\"__GPUMEM_PAGE__\"", &kept(&js("standalone.html")?)?)
        .replace(
            "\"__GPUMEM_STANDALONE__\"",
            &kept(&joined(&js("standalone.js")?))?,
        )
        .replace(
            "__GPUMEM_MODULE__",
            &STANDARD.encode(gzipped(&module.wasm)?),
        );
    let (provider, thin) = (js("provider.js")?, js("thin.js")?);
    let build_id = hash(&[report.as_bytes(), provider.as_bytes(), thin.as_bytes()]);
    let named = |text: &str| text.replace("__GPUMEM_BUILD_ID__", &build_id);
    let standalone_script = [report.as_str(), &joined(&js("standalone.js")?)].concat();
    let files = [
        (
            "provider.js",
            named(&[report.as_str(), &without_imports(&provider)].concat()),
        ),
        ("thin.js", named(&trimmed(&thin))),
        (
            "standalone.html",
            js("standalone.html")?.replace("__GPUMEM_SCRIPT__", standalone_script.trim_end()),
        ),
    ];
    let folder = root.join("pybind/python/gpumem/static");
    fs::create_dir_all(&folder)?;
    for (name, text) in files {
        fs::write(folder.join(name), text)?;
    }
    Ok(())
}

fn source(root: &Path, name: &str) -> Result<String> {
    let file = root.join("js").join(name);
    fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))
}

/// Writes the page of the files that other programs wrote into the Python package.
pub(crate) fn bundle_files(root: &Path, module: &Module) -> Result<()> {
    let js = |name| source(root, name);
    let parts = [
        "theme.js",
        "unpack.js",
        "size.js",
        "blocks.js",
        "drop.js",
        "input.js",
        "files.js",
    ];
    let mut script = glue(&module.glue_js)?;
    for part in parts {
        script += &joined(&js(part)?);
    }
    let style = [js("style.css")?, js("files.css")?].concat();
    let script = script
        .replace("\"__GPUMEM_STYLE__\"", &quoted(&style)?)
        .replace(
            "__GPUMEM_MODULE__",
            &STANDARD.encode(gzipped(&module.wasm)?),
        );
    let page = js("files.html")?.replace("__GPUMEM_SCRIPT__", script.trim_end());
    Ok(fs::write(
        root.join("pybind/python/gpumem/static/files.html"),
        page,
    )?)
}

/// What wasm-bindgen writes, closed in a scope of its own.
fn glue(glue_js: &str) -> Result<String> {
    let body = glue_js
        .replace("export class View", "class View")
        .replace("export { initSync, __wbg_init as default };", "");
    ensure!(
        !body.lines().any(|line| line.starts_with("export ")),
        "wasm-bindgen exports more than the bundle knows of"
    );
    Ok(format!(
        "const {{ View, init }} = (() => {{\n{}return {{ View, init: __wbg_init }};\n}})();\n",
        trimmed(&body)
    ))
}

fn joined(module: &str) -> String {
    without_imports(module)
        .lines()
        .map(|line| line.strip_prefix("export ").unwrap_or(line))
        .fold(String::new(), |text, line| text + line + "\n")
}

fn without_imports(module: &str) -> String {
    let lines = module.lines().filter(|line| !line.starts_with("import "));
    trimmed(&lines.collect::<Vec<_>>().join("\n"))
}

/// Without indentation, blank lines and lines that are nothing but comment.
fn trimmed(module: &str) -> String {
    let is_comment = |line: &&str| ["//", "/*", "* ", "*/"].iter().any(|c| line.starts_with(c));
    module
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && *line != "*" && !is_comment(line))
        .fold(String::new(), |text, line| text + line + "\n")
}

/// A string literal that may stand inside an inline script.
fn quoted(text: &str) -> Result<String> {
    let literal = serde_json::to_string(&trimmed(text))?;
    Ok(literal.replace('<', "\\u003c"))
}

/// A string literal in which nobody but the page's script finds what is to be filled in.
fn kept(text: &str) -> Result<String> {
    Ok(quoted(text)?.replace("__GPUMEM_", "__G\\u0050UMEM_"))
}

/// The same bytes for the same input: neither the time nor a name is in the header.
fn gzipped(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

fn hash(parts: &[&[u8]]) -> String {
    let mut hasher = Xxh3::new();
    for part in parts {
        hasher.update(part);
    }
    format!("{:016x}", hasher.digest())
}

//! The files of the page, as the Python package carries them.
//!
//! The modules of `js/` are joined into one each by taking their `import` lines
//! and the word `export` away: they name one another only in whole lines, and no
//! two of them use one name for two things.

use std::fs;
use std::io::Write;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use xxhash_rust::xxh3::Xxh3;

use crate::project::Project;
use crate::wasm::Module;

const REPORT: &str = "theme unpack size picture export blocks cells input keys drop dropped report";
const FILES: &str = "theme unpack size blocks drop input files";

/// Writes the page's files into the Python package: the report's, and the page of the files that
/// other programs wrote.
pub(crate) fn bundle(project: &Project, report: &Module, files: &Module) -> Result<()> {
    let js = |name: &str| source(project, name);
    let (provider, thin) = (js("provider.js")?, js("thin.js")?);
    let (page, starts) = (js("standalone.html")?, joined(&js("standalone.js")?));
    let report = script(project, report, REPORT, &js("style.css")?)?
        .replace("\"__GPUMEM_PAGE__\"", &kept(&page)?)
        .replace("\"__GPUMEM_STANDALONE__\"", &kept(&starts)?);
    let build_id = hash(&[report.as_bytes(), provider.as_bytes(), thin.as_bytes()]);
    let named = |text: &str| text.replace("__GPUMEM_BUILD_ID__", &build_id);
    let filled = |page: &str, script: &str| page.replace("__GPUMEM_SCRIPT__", script.trim_end());
    let style = [js("style.css")?, js("files.css")?].concat();
    let files = script(project, files, FILES, &style)?;
    let written = [
        (
            "provider.js",
            named(&[report.as_str(), &without_imports(&provider)].concat()),
        ),
        ("thin.js", named(&trimmed(&thin))),
        (
            "standalone.html",
            filled(&page, &[report.as_str(), &starts].concat()),
        ),
        ("files.html", filled(&js("files.html")?, &files)),
    ];
    let folder = project.static_folder();
    fs::create_dir_all(&folder)?;
    for (name, text) in written {
        fs::write(folder.join(name), text)?;
    }
    Ok(())
}

/// A module, with all that it is called by.
fn script(project: &Project, module: &Module, parts: &str, style: &str) -> Result<String> {
    let mut script = glue(&module.glue_js)?;
    for part in parts.split(' ') {
        script += &joined(&source(project, &format!("{part}.js"))?);
    }
    let module = STANDARD.encode(gzipped(&module.wasm)?);
    let script = script.replace("\"__GPUMEM_STYLE__\"", &quoted(style)?);
    Ok(script.replace("__GPUMEM_MODULE__", &module))
}

fn source(project: &Project, name: &str) -> Result<String> {
    let file = project.path("js").join(name);
    fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))
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

/// A string literal whose placeholders only the page's script finds.
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

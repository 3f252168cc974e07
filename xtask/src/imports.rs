//! Short names for what the module takes from JavaScript.
//!
//! wasm-bindgen ends each name in a hash of 16 digits, which no encoder packs. Without them the report's module
//! packs one kilobyte smaller, and what carries it, script and module, is four smaller.

use std::convert::Infallible;

use anyhow::{Context, Result, ensure};
use wasm_encoder::reencode::{self, Reencode, utils};
use wasm_encoder::{ImportSection, Module};
use wasmparser::{ImportSectionReader, Parser, Payload};

/// How many digits the hash at a name's end has.
const N_DIGITS: usize = 16;

/// The script and the module, with the same short names in both.
pub(crate) fn shortened(glue_js: &str, wasm: &[u8]) -> Result<(String, Vec<u8>)> {
    let long_names = long_names(wasm)?;
    let mut glue_js = glue_js.to_owned();
    for (idx, long) in long_names.iter().enumerate() {
        ensure!(
            glue_js.matches(long).count() == 1,
            "the script of the page's module does not give `{long}` once"
        );
        glue_js = glue_js.replace(long, &short(idx));
    }
    let mut module = Module::new();
    let mut shorten = Shorten { long_names };
    utils::parse_core_module(&mut shorten, &mut module, Parser::new(0), wasm)
        .context("shortening the imports of the page's module")?;
    Ok((glue_js, module.finish()))
}

/// The names of imports that end in a hash.
fn long_names(wasm: &[u8]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for payload in Parser::new(0).parse_all(wasm) {
        let Payload::ImportSection(section) = payload? else {
            continue;
        };
        for import in section.into_imports() {
            let name = import?.name;
            let hash = name.rsplit_once('_').map_or("", |(_, hash)| hash);
            if hash.len() == N_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                names.push(name.to_owned());
            }
        }
    }
    Ok(names)
}

fn short(idx: usize) -> String {
    format!("i{idx}")
}

/// Writes a module anew with short names in its imports.
struct Shorten {
    long_names: Vec<String>,
}

impl Reencode for Shorten {
    type Error = Infallible;

    fn parse_import_section(
        &mut self,
        imports: &mut ImportSection,
        section: ImportSectionReader<'_>,
    ) -> Result<(), reencode::Error> {
        for import in section.into_imports() {
            let import = import?;
            let idx = self.long_names.iter().position(|long| long == import.name);
            let name = idx.map_or_else(|| import.name.to_owned(), short);
            imports.import(import.module, &name, self.entity_type(import.ty)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wasm_encoder::{EntityType, TypeSection};

    use super::*;

    const LONG: &str = "__wbg_fillText_89d353a9ad9f4a1a";
    const PLAIN: &str = "__wbindgen_init_externref_table";

    fn module(names: &[&str]) -> Vec<u8> {
        let (mut types, mut imports) = (TypeSection::new(), ImportSection::new());
        types.ty().function([], []);
        for name in names {
            imports.import("page", name, EntityType::Function(0));
        }
        let mut module = Module::new();
        module.section(&types).section(&imports);
        module.finish()
    }

    #[test]
    fn script_and_module_agree_on_the_short_name() {
        let script = format!("{PLAIN}: a, {LONG}: b");
        let (script, short) = shortened(&script, &module(&[PLAIN, LONG])).expect("a module");
        assert_eq!(script, format!("{PLAIN}: a, i0: b"));
        assert_eq!(short, module(&[PLAIN, "i0"]));
    }

    #[test]
    fn a_script_that_does_not_give_a_name_is_refused() {
        let refused = shortened("{}", &module(&[LONG])).expect_err("no name");
        assert!(refused.to_string().contains(LONG), "{refused}");
    }
}

//! Functions that are the same to the last byte: one of them is enough.
//!
//! The compiler makes one generic function for each type, and several of them often come out the same.
//! Merging these changes which of the functions they call are the same, so it is done until none is left.

use std::collections::HashMap;
use std::convert::Infallible;

use anyhow::{Context, Result};
use wasm_encoder::reencode::{self, Reencode, utils};
use wasm_encoder::{CodeSection, FunctionSection, Module};
use wasmparser::{CodeSectionReader, FunctionSectionReader, Parser, Payload, TypeRef};

/// The same module with each function once.
pub(crate) fn merged(wasm: &[u8]) -> Result<Vec<u8>> {
    let mut merged = wasm.to_vec();
    loop {
        let mut merge = Merge::of(&merged)?;
        if merge.kept.iter().all(|kept| *kept) {
            return Ok(merged);
        }
        let mut module = Module::new();
        utils::parse_core_module(&mut merge, &mut module, Parser::new(0), &merged)
            .context("merging the functions of the page's module")?;
        merged = module.finish();
    }
}

/// Writes a module anew without the functions that repeat another one.
struct Merge {
    n_imported: u32,
    /// By a function's old place: whether it is the first of its like.
    kept: Vec<bool>,
    /// By a function's old place: the new place of the first of its like.
    places: Vec<u32>,
}

impl Merge {
    fn of(wasm: &[u8]) -> Result<Self> {
        let (mut n_imported, mut types, mut bodies) = (0, Vec::new(), Vec::new());
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        n_imported += u32::from(matches!(import?.ty, TypeRef::Func(_)));
                    }
                }
                Payload::FunctionSection(section) => {
                    types = section.into_iter().collect::<Result<_, _>>()?;
                }
                Payload::CodeSectionEntry(body) => bodies.push(&wasm[body.range()]),
                _ => {}
            }
        }
        let (mut known, mut n_kept) = (HashMap::<(u32, &[u8]), u32>::new(), 0);
        let (mut kept, mut places) = (Vec::new(), Vec::new());
        for function in types.into_iter().zip(bodies) {
            let place = *known.entry(function).or_insert(n_kept);
            kept.push(place == n_kept);
            places.push(place);
            n_kept += u32::from(place == n_kept);
        }
        Ok(Self {
            n_imported,
            kept,
            places,
        })
    }
}

impl Reencode for Merge {
    type Error = Infallible;

    fn function_index(&mut self, idx: u32) -> Result<u32, reencode::Error> {
        let own = idx.checked_sub(self.n_imported);
        Ok(own.map_or(idx, |own| self.n_imported + self.places[own as usize]))
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: FunctionSectionReader<'_>,
    ) -> Result<(), reencode::Error> {
        for (ty, kept) in section.into_iter().zip(&self.kept) {
            let ty = ty?;
            if *kept {
                functions.function(ty);
            }
        }
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: CodeSectionReader<'_>,
    ) -> Result<(), reencode::Error> {
        let bodies = section.into_iter().collect::<Result<Vec<_>, _>>()?;
        for (function, body) in bodies.into_iter().enumerate() {
            if self.kept[function] {
                self.parse_function_body(code, body)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wasm_encoder::{ExportKind, ExportSection, Function, Instruction, TypeSection};

    use super::*;

    /// A module that exports functions with these single instructions.
    fn module(bodies: &[Instruction<'_>]) -> Vec<u8> {
        let (mut types, mut functions) = (TypeSection::new(), FunctionSection::new());
        types.ty().function([], []);
        let (mut exports, mut code) = (ExportSection::new(), CodeSection::new());
        for (idx, body) in (0..).zip(bodies) {
            functions.function(0);
            exports.export(&idx.to_string(), ExportKind::Func, idx);
            let mut function = Function::new([]);
            function.instruction(body).instruction(&Instruction::End);
            code.function(&function);
        }
        let mut module = Module::new();
        module.section(&types).section(&functions);
        module.section(&exports).section(&code);
        module.finish()
    }

    /// The functions that are exported, and how many there are.
    fn exported(bodies: &[Instruction<'_>]) -> (Vec<u32>, u32) {
        let (mut exported, mut n_functions) = (Vec::new(), 0);
        let merged = merged(&module(bodies)).expect("a module");
        for payload in Parser::new(0).parse_all(&merged) {
            match payload.expect("a section") {
                Payload::ExportSection(exports) => {
                    exported.extend(exports.into_iter().map(|it| it.expect("an export").index));
                }
                Payload::CodeSectionStart { count, .. } => n_functions = count,
                _ => {}
            }
        }
        (exported, n_functions)
    }

    #[test]
    fn like_functions_are_one() {
        let bodies = [Instruction::Nop, Instruction::Unreachable, Instruction::Nop];
        assert_eq!(exported(&bodies), (vec![0, 1, 0], 2));
    }

    #[test]
    fn functions_that_call_like_ones_are_one_too() {
        let bodies = [
            Instruction::Nop,
            Instruction::Nop,
            Instruction::Call(0),
            Instruction::Call(1),
        ];
        assert_eq!(exported(&bodies), (vec![0, 0, 1, 1], 2));
    }
}

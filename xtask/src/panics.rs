//! What a panic does before it ends the module: not done by what is shipped.
//!
//! Nobody hears a panic there, since the module has no hook and the page sees no more than that it ended.
//! The compiler still makes each panic's words and place ready. The module ends at once instead, and what
//! only a panic needs is in it no more. Nor is what would call closures for the page, which is given none.

use std::collections::BTreeSet;
use std::convert::Infallible;

use anyhow::{Context, Result};
use wasm_encoder::reencode::{self, Reencode, utils};
use wasm_encoder::{CodeSection, Function, MemArg, Module};
use wasmparser::{
    FunctionBody, KnownCustom, Name, NameSectionReader, Naming, Operator, Parser, Payload, TypeRef,
};

/// The same module, which ends where it panicked.
pub(crate) fn silenced(wasm: &[u8]) -> Result<Vec<u8>> {
    let mut module = Module::new();
    utils::parse_core_module(&mut Silence::of(wasm)?, &mut module, Parser::new(0), wasm)
        .context("taking the panics out of the page's module")?;
    Ok(module.finish())
}

/// Writes a module anew without what it does before it ends.
struct Silence {
    /// The functions through which the page may be told something.
    telling: BTreeSet<u32>,
    /// What would call closures, of which the page is given none; the bindings of unused functions of
    /// JavaScript bring them along.
    uncalled: BTreeSet<u32>,
    /// The index of the function that is written next.
    next: u32,
}

impl Silence {
    fn of(wasm: &[u8]) -> Result<Self> {
        let (mut n_imported, mut calls, mut uncalled) = (0, Vec::new(), BTreeSet::new());
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::CustomSection(section) => {
                    if let KnownCustom::Name(names) = section.as_known() {
                        uncalled = callers_of_closures(names)?;
                    }
                }
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        n_imported += u32::from(matches!(import?.ty, TypeRef::Func(_)));
                    }
                }
                Payload::CodeSectionEntry(body) => calls.push(called(&body)?),
                _ => {}
            }
        }
        let mut telling: BTreeSet<u32> = (0..n_imported).collect();
        loop {
            let known = telling.len();
            for (function, called) in (n_imported..).zip(&calls) {
                if !called.is_disjoint(&telling) {
                    telling.insert(function);
                }
            }
            if telling.len() == known {
                return Ok(Self {
                    telling,
                    uncalled,
                    next: n_imported,
                });
            }
        }
    }

    /// These instructions with nothing in front of where the module ends.
    fn cut<'a>(&self, body: &FunctionBody<'a>) -> Result<Vec<Operator<'a>>, reencode::Error> {
        let mut kept = Vec::new();
        for operator in body.get_operators_reader()? {
            let operator = operator?;
            if matches!(operator, Operator::Unreachable) {
                while kept.last().is_some_and(|last| self.is_idle(last)) {
                    kept.pop();
                }
            }
            kept.push(operator);
        }
        Ok(kept)
    }

    /// Whether nobody notices that it was not done before the module ended.
    fn is_idle(&self, operator: &Operator<'_>) -> bool {
        match operator {
            Operator::Call { function_index } => !self.telling.contains(function_index),
            Operator::I32Const { .. }
            | Operator::I64Const { .. }
            | Operator::F64Const { .. }
            | Operator::LocalGet { .. }
            | Operator::LocalSet { .. }
            | Operator::LocalTee { .. }
            | Operator::GlobalSet { .. }
            | Operator::I32Add
            | Operator::I32Load { .. }
            | Operator::I64Load { .. }
            | Operator::I32Store { .. }
            | Operator::I64Store { .. }
            | Operator::Unreachable => true,
            _ => false,
        }
    }
}

/// The functions by which JavaScript would call a closure.
fn callers_of_closures(names: NameSectionReader<'_>) -> Result<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    for part in names {
        let Name::Function(functions) = part? else {
            continue;
        };
        for function in functions {
            let Naming { index, name } = function?;
            if name.contains("wasm_bindgen7convert8closures") && name.contains("6invoke") {
                found.insert(index);
            }
        }
    }
    Ok(found)
}

/// The functions that a function calls by name.
fn called(body: &FunctionBody<'_>) -> Result<BTreeSet<u32>> {
    let mut called = BTreeSet::new();
    for operator in body.get_operators_reader()? {
        if let Operator::Call { function_index } = operator? {
            called.insert(function_index);
        }
    }
    Ok(called)
}

impl Reencode for Silence {
    type Error = Infallible;

    /// Nothing but a hint, which no browser takes; where it is always the same it packs to nothing,
    /// and more functions are the same.
    fn mem_arg(&mut self, arg: wasmparser::MemArg) -> Result<MemArg, reencode::Error> {
        let arg = utils::mem_arg(self, arg)?;
        Ok(MemArg { align: 0, ..arg })
    }

    fn parse_function_body(
        &mut self,
        code: &mut CodeSection,
        body: FunctionBody<'_>,
    ) -> Result<(), reencode::Error> {
        let is_uncalled = self.uncalled.contains(&self.next);
        self.next += 1;
        if is_uncalled {
            let mut function = Function::new([]);
            function.instructions().unreachable().end();
            code.function(&function);
            return Ok(());
        }
        let mut function = self.new_function_with_parsed_locals(&body)?;
        for operator in self.cut(&body)? {
            function.instruction(&self.instruction(operator)?);
        }
        code.function(&function);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wasm_encoder::{EntityType, FunctionSection, ImportSection, Instruction, TypeSection};

    use super::*;

    const IMPORTED: u32 = 0;
    const SILENT: u32 = 1;
    const TELLING: u32 = 2;

    /// A module that calls a function and ends, after a silent one and one that tells the page something.
    fn module(before: &[Instruction<'_>], called: u32) -> Vec<u8> {
        let (mut types, mut imports) = (TypeSection::new(), ImportSection::new());
        types.ty().function([], []);
        imports.import("page", "throw", EntityType::Function(0));
        let bodies = [
            vec![],
            vec![Instruction::Call(IMPORTED)],
            [
                before,
                &[Instruction::Call(called), Instruction::Unreachable],
            ]
            .concat(),
        ];
        let (mut functions, mut code) = (FunctionSection::new(), CodeSection::new());
        for body in bodies {
            functions.function(0);
            let mut function = Function::new([]);
            for instruction in &body {
                function.instruction(instruction);
            }
            function.instruction(&Instruction::End);
            code.function(&function);
        }
        let mut module = Module::new();
        module.section(&types).section(&imports);
        module.section(&functions).section(&code);
        module.finish()
    }

    #[track_caller]
    fn check_cut(before: &[Instruction<'_>], called: u32, cut: bool) {
        let module = module(before, called);
        let silenced = silenced(&module).expect("a module");
        let ends_at_once = silenced.ends_with(&[3, 0, 0x00, 0x0b]);
        assert_eq!(ends_at_once, cut);
        assert_eq!(silenced == module, !cut);
    }

    #[test]
    fn what_only_a_panic_does_is_not_done() {
        check_cut(&[], SILENT, true);
        check_cut(&[Instruction::I32Const(7)], SILENT, true);
    }

    #[test]
    fn what_the_page_is_told_is_still_told() {
        check_cut(&[], IMPORTED, false);
        check_cut(&[], TELLING, false);
    }
}

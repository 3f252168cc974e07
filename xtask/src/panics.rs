//! What a panic does before it ends the module: not done by what is shipped.
//!
//! Nobody hears a panic there, since the module has no hook and the page sees no more than that it ended.
//! The compiler still makes each panic's words and place ready. The module ends at once instead, and what
//! only a panic needs is in it no more.

use std::collections::BTreeSet;
use std::convert::Infallible;

use anyhow::{Context, Result};
use wasm_encoder::reencode::{self, Reencode, utils};
use wasm_encoder::{CodeSection, Module};
use wasmparser::{FunctionBody, Operator, Parser, Payload, TypeRef};

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
}

impl Silence {
    fn of(wasm: &[u8]) -> Result<Self> {
        let (mut n_imported, mut calls) = (0, Vec::new());
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
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
                return Ok(Self { telling });
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

    fn parse_function_body(
        &mut self,
        code: &mut CodeSection,
        body: FunctionBody<'_>,
    ) -> Result<(), reencode::Error> {
        let mut function = self.new_function_with_parsed_locals(&body)?;
        for operator in self.cut(&body)? {
            function.instruction(&self.instruction(operator)?);
        }
        code.function(&function);
        Ok(())
    }
}

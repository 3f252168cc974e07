//! The order of the module's functions: like next to like.
//!
//! gzip finds again what it saw at most 32 KiB before. wasm-bindgen writes the functions by
//! size, and what the compiler made of one generic function for several types differs in size.
//! This order packs 4 % smaller. The functions that are called most may stand first: a call of an index below 128
//! is a byte shorter. How small an order packs is known only when it is packed: of several, the smallest is taken.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::num::NonZeroU64;
use std::thread;

use anyhow::{Context, Result};
use wasm_encoder::reencode::{self, Reencode, utils};
use wasm_encoder::{CodeSection, FunctionSection, Module};
use wasmparser::{
    CodeSectionReader, CustomSectionReader, FunctionSectionReader, Operator, Parser, Payload,
    TypeRef,
};

use crate::bundle::gzipped;

/// How often an order is packed to see how small it gets.
const N_ROUNDS: NonZeroU64 = NonZeroU64::MIN;
/// Functions are compared by the pieces of this many bytes that they share.
const PIECE: usize = 6;
/// A piece within more functions says nothing about any of them.
const MOST_OWNERS: usize = 1000;
/// Indices below this are written in one byte.
const N_SHORT: u32 = 128;
/// How far back a function looks for its like: about gzip's reach.
const REACH: usize = 32_700;
/// Counts with each function's length: a short one is alike by chance. One order for each.
const ALLOWANCES: [usize; 4] = [2, 4, 8, 15];
/// How many of those that are called most stand first in some orders.
const N_FEW: usize = 16;

/// The same module with its functions in an order that packs well.
pub(crate) fn ordered(wasm: &[u8]) -> Result<Vec<u8>> {
    let functions = Functions::of(wasm)?;
    let called = functions.most_called();
    let tried = |allowance, first: &[usize]| -> Result<_> {
        let order = by_likeness(&functions.bodies, first.to_vec(), allowance);
        let module = Order::new(functions.n_imported, order).of(wasm)?;
        Ok((gzipped(&module, N_ROUNDS)?.len(), module))
    };
    let orders: Vec<_> = thread::scope(|scope| {
        let started = ALLOWANCES.map(|allowance| {
            let few = &called[..called.len().min(N_FEW)];
            let firsts = [&[], few, &called];
            scope.spawn(move || firsts.map(|first| tried(allowance, first)))
        });
        let joined = started.into_iter().map(thread::ScopedJoinHandle::join);
        joined
            .flat_map(|it| it.expect("an order is made"))
            .collect()
    });
    let orders = orders.into_iter().collect::<Result<Vec<_>>>()?;
    let smallest = orders.into_iter().min_by_key(|(n_bytes, _)| *n_bytes);
    Ok(smallest.context("there is no order")?.1)
}

/// The functions of a module, and how often its code calls each.
#[derive(Default)]
struct Functions<'a> {
    n_imported: u32,
    bodies: Vec<&'a [u8]>,
    n_calls: BTreeMap<u32, usize>,
}

impl<'a> Functions<'a> {
    fn of(wasm: &'a [u8]) -> Result<Self> {
        let mut functions = Self::default();
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        functions.n_imported += u32::from(matches!(import?.ty, TypeRef::Func(_)));
                    }
                }
                Payload::CodeSectionEntry(body) => {
                    functions.bodies.push(&wasm[body.range()]);
                    for operator in body.get_operators_reader()? {
                        if let Operator::Call { function_index } = operator? {
                            *functions.n_calls.entry(function_index).or_default() += 1;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(functions)
    }

    /// Those in the module itself for which a short index saves most.
    fn most_called(&self) -> Vec<usize> {
        let own = |(idx, n): (&u32, &usize)| Some((*n, idx.checked_sub(self.n_imported)? as usize));
        let mut own: Vec<_> = self.n_calls.iter().filter_map(own).collect();
        own.sort_unstable_by(|a, b| b.cmp(a));
        own.truncate(N_SHORT.saturating_sub(self.n_imported) as usize);
        own.into_iter().map(|(_, function)| function).collect()
    }
}

/// Writes a module anew with its own functions in another order.
struct Order {
    n_imported: u32,
    /// The functions by their old places.
    functions: Vec<usize>,
    /// Their new places, by the old ones.
    places: Vec<u32>,
}

impl Order {
    fn new(n_imported: u32, functions: Vec<usize>) -> Self {
        let mut places = vec![0; functions.len()];
        for (place, &function) in (0..).zip(&functions) {
            places[function] = place;
        }
        Self {
            n_imported,
            functions,
            places,
        }
    }

    /// The module in this order.
    fn of(mut self, wasm: &[u8]) -> Result<Vec<u8>> {
        let mut module = Module::new();
        utils::parse_core_module(&mut self, &mut module, Parser::new(0), wasm)
            .context("ordering the functions of the page's module")?;
        Ok(module.finish())
    }
}

type Reencoded = Result<(), reencode::Error<Infallible>>;

impl Reencode for Order {
    type Error = Infallible;

    fn function_index(&mut self, idx: u32) -> Result<u32, reencode::Error<Infallible>> {
        let own = idx.checked_sub(self.n_imported);
        Ok(own.map_or(idx, |own| self.n_imported + self.places[own as usize]))
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: FunctionSectionReader<'_>,
    ) -> Reencoded {
        let types = section.into_iter().collect::<Result<Vec<_>, _>>()?;
        for &function in &self.functions {
            functions.function(types[function]);
        }
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: CodeSectionReader<'_>,
    ) -> Reencoded {
        let bodies = section.into_iter().collect::<Result<Vec<_>, _>>()?;
        for place in 0..bodies.len() {
            self.parse_function_body(code, bodies[self.functions[place]].clone())?;
        }
        Ok(())
    }

    /// Left out: only tools read it.
    fn parse_custom_section(
        &mut self,
        _: &mut Module,
        _: CustomSectionReader<'_>,
    ) -> Result<(), reencode::Error<Infallible>> {
        Ok(())
    }
}

/// The indices of the functions, first those that are given: each time the one that shares most with the last ones.
fn by_likeness(bodies: &[&[u8]], mut first: Vec<usize>, allowance: usize) -> Vec<usize> {
    let mut recent = Recent::new(bodies, allowance);
    let mut others: Vec<usize> = (0..bodies.len()).filter(|it| !first.contains(it)).collect();
    let mut order = Vec::with_capacity(bodies.len());
    for left in [&mut first, &mut others] {
        while let Some(place) = recent.most_alike(left) {
            let function = left.remove(place);
            recent.push(function);
            order.push(function);
        }
    }
    order
}

/// The functions within gzip's reach, and what each function shares with them.
struct Recent {
    allowance: usize,
    sizes: Vec<usize>,
    pieces: Vec<Piece>,
    /// The pieces of each function.
    within: Vec<Vec<usize>>,
    shared: Vec<u64>,
    functions: VecDeque<usize>,
    n_bytes: usize,
}

/// Bytes that several functions have.
struct Piece {
    owners: Vec<usize>,
    n_recent: usize,
}

impl Piece {
    /// A rare piece says more.
    fn weight(&self) -> u64 {
        1000 / self.owners.len().isqrt() as u64
    }
}

impl Recent {
    fn new(bodies: &[&[u8]], allowance: usize) -> Self {
        let pieces = pieces(bodies);
        let mut within = vec![Vec::new(); bodies.len()];
        for (idx, piece) in pieces.iter().enumerate() {
            for &owner in &piece.owners {
                within[owner].push(idx);
            }
        }
        Self {
            allowance,
            sizes: bodies.iter().map(|body| body.len()).collect(),
            pieces,
            within,
            shared: vec![0; bodies.len()],
            functions: VecDeque::new(),
            n_bytes: 0,
        }
    }

    /// The place in a list of functions of the one that shares most per byte.
    fn most_alike(&self, functions: &[usize]) -> Option<usize> {
        let share = |&place: &usize| {
            let function = functions[place];
            self.shared[function] * 10_000 / (self.sizes[function] + self.allowance) as u64
        };
        (0..functions.len()).rev().max_by_key(share)
    }

    fn push(&mut self, function: usize) {
        for &idx in &self.within[function] {
            let piece = &mut self.pieces[idx];
            piece.n_recent += 1;
            if piece.n_recent == 1 {
                let weight = piece.weight();
                piece
                    .owners
                    .iter()
                    .for_each(|&it| self.shared[it] += weight);
            }
        }
        self.functions.push_back(function);
        self.n_bytes += self.sizes[function];
        while self.n_bytes > REACH && self.functions.len() > 1 {
            self.pop();
        }
    }

    fn pop(&mut self) {
        let Some(function) = self.functions.pop_front() else {
            return;
        };
        for &idx in &self.within[function] {
            let piece = &mut self.pieces[idx];
            piece.n_recent -= 1;
            if piece.n_recent == 0 {
                let weight = piece.weight();
                piece
                    .owners
                    .iter()
                    .for_each(|&it| self.shared[it] -= weight);
            }
        }
        self.n_bytes -= self.sizes[function];
    }
}

fn pieces(bodies: &[&[u8]]) -> Vec<Piece> {
    let mut owners = BTreeMap::<&[u8], Vec<usize>>::new();
    for (function, body) in bodies.iter().enumerate() {
        for piece in body.windows(PIECE) {
            let owners = owners.entry(piece).or_default();
            if owners.last() != Some(&function) {
                owners.push(function);
            }
        }
    }
    owners
        .into_values()
        .filter(|owners| (2..=MOST_OWNERS).contains(&owners.len()))
        .map(|owners| Piece {
            owners,
            n_recent: 0,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use wasm_encoder::{
        EntityType, ExportKind, ExportSection, Function, ImportSection, TypeSection,
    };

    use super::*;

    #[test]
    fn like_stands_next_to_like() {
        let bodies: [&[u8]; 4] = [b"once upon a time", b"in a hole", b"upon a time", b"a hole"];
        assert_eq!(by_likeness(&bodies, vec![], 20), [0, 2, 1, 3]);
        assert_eq!(by_likeness(&bodies, vec![3], 20), [3, 1, 0, 2]);
    }

    #[test]
    fn the_most_called_have_short_indices() {
        let most_called = |n_imported| {
            let n_calls = BTreeMap::from([(0, 100), (125, 2), (126, 9), (127, 1), (200, 5)]);
            let functions = Functions {
                n_imported,
                n_calls,
                ..Functions::default()
            };
            functions.most_called()
        };
        assert_eq!(most_called(125), [1, 75, 0]);
        assert!(most_called(130).is_empty());
    }

    #[test]
    fn calls_are_counted() {
        let wasm = module(&[7, 8]);
        assert_eq!(
            Functions::of(&wasm).unwrap().n_calls,
            BTreeMap::from([(1, 2)])
        );
    }

    #[test]
    fn what_only_tools_read_is_left_out() {
        let mut wasm = module(&[1, 2]);
        let n_bytes = wasm.len();
        wasm.extend(b"\0\x06\x05names");
        assert_eq!(ordered(&wasm).unwrap().len(), n_bytes);
    }

    #[test]
    fn an_export_finds_its_function_at_the_new_place() {
        let constants = [1_000_000, 7, 1_000_000, 7];
        let ordered = ordered(&module(&constants)).unwrap();
        assert_eq!(
            exported(&ordered),
            [(1, 1_000_000), (3, 7), (2, 1_000_000), (4, 7)]
        );
    }

    /// Functions that each have one constant and call the first, exported in this order, after an imported one.
    fn module(constants: &[i32]) -> Vec<u8> {
        let (mut types, mut imports) = (TypeSection::new(), ImportSection::new());
        types.ty().function([], []);
        imports.import("page", "imported", EntityType::Function(0));
        let (mut functions, mut exports) = (FunctionSection::new(), ExportSection::new());
        let mut code = CodeSection::new();
        for (idx, &constant) in (1..).zip(constants) {
            functions.function(0);
            exports.export(&idx.to_string(), ExportKind::Func, idx);
            let mut function = Function::new([]);
            function
                .instructions()
                .i32_const(constant)
                .drop()
                .call(1)
                .end();
            code.function(&function);
        }
        let mut module = Module::new();
        module.section(&types).section(&imports).section(&functions);
        module.section(&exports).section(&code);
        module.finish()
    }

    /// The place of each exported function, with its constant.
    fn exported(wasm: &[u8]) -> Vec<(u32, i32)> {
        let (mut places, mut constants) = (Vec::new(), Vec::new());
        for payload in Parser::new(0).parse_all(wasm) {
            match payload.unwrap() {
                Payload::ExportSection(exports) => {
                    places.extend(exports.into_iter().map(|export| export.unwrap().index));
                }
                Payload::CodeSectionEntry(body) => {
                    let mut operators = body.get_operators_reader().unwrap();
                    if let Operator::I32Const { value } = operators.read().unwrap() {
                        constants.push(value);
                    }
                }
                _ => {}
            }
        }
        let constant = |&place: &u32| (place, constants[place as usize - 1]);
        places.iter().map(constant).collect()
    }
}

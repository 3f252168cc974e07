//! Functions that a library compiles, as the texts of cells define them.

use gpumem_model::source_text::{has_word, is_name_letter};

use super::{CATALOGUE, LeakPattern};

/// The functions that cells compile, by what compiles them.
pub struct CompiledFunctions<'a>(Vec<(&'static str, Vec<&'a str>)>);

impl<'a> CompiledFunctions<'a> {
    /// Those that these texts of cells define.
    pub fn new(texts: &[&'a str]) -> Self {
        let compilers = CATALOGUE.iter().filter_map(|entry| match entry.pattern {
            LeakPattern::Compiled { by } => Some(by),
            _ => None,
        });
        let defined = |by| texts.iter().flat_map(|text| functions(text, by)).collect();
        Self(compilers.map(|by| (by, defined(by))).collect())
    }

    /// A growing cell calls one that this compiles, or compiles one itself.
    pub(super) fn is_called(&self, growing: &[&str], by: &str) -> bool {
        let compiles = |text: &&str| text.lines().any(|line| names(line, by));
        let functions = self.0.iter().find(|(it, _)| *it == by);
        let calls = |text: &&str| {
            functions.is_some_and(|(_, all)| all.iter().any(|name| has_word(text, name)))
        };
        growing.iter().any(|text| compiles(text) || calls(text))
    }
}

/// `step` of `@jax.jit` above `def step(x):`, and of `step = jax.jit(f)`.
fn functions<'a>(text: &'a str, by: &str) -> Vec<&'a str> {
    let (mut found, mut is_decorated) = (Vec::new(), false);
    for line in text.lines().map(str::trim_start) {
        if line.starts_with('@') {
            is_decorated |= names(line, by);
        } else if let Some(rest) = line.strip_prefix("def ") {
            let name = rest.split(|letter| !is_name_letter(letter)).next();
            found.extend(name.filter(|_| is_decorated));
            is_decorated = false;
        } else if let Some((name, made)) = line.split_once('=')
            && names(made, by)
        {
            found.push(name.trim_end());
        }
    }
    found
}

/// The line names it, and not another that ends or begins like it.
fn names(line: &str, by: &str) -> bool {
    let is_part = |letter: char| is_name_letter(letter) || letter == '.';
    line.match_indices(by).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + by.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_is_compiled_is_known_by_its_name() {
        let decorated =
            "import jax\n\n@partial(jax.jit, static_argnums=0)\ndef step(x):\n    return x";
        let check = |growing: &str, other: &str, expected: bool| {
            let functions = CompiledFunctions::new(&[other, growing]);
            let found = functions.is_called(&[growing], "jax.jit");
            assert_eq!(found, expected, "{growing}");
        };
        check("step(x)", decorated, true);
        check("stepwise(x)", decorated, false);
        check("fast(x)", "fast = jax.jit(slow)", true);
        check("f = jax.jit(lambda x: x)", "", true);
        check("step(x)", "@my.jax.jit\ndef step(x): ...", false);
        check("step(x)", "@jax.jitted\ndef step(x): ...", false);
        check(
            "step(x)",
            "@jax.jit\ndef other(): ...\ndef step(x): ...",
            false,
        );
    }
}

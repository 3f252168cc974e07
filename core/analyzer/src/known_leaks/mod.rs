//! Leaks of libraries that are known: what of a library keeps memory, and what lets go of it.
//!
//! One constant an entry. An entry adds no finding: it says what is known of one that stands.
//! `tests/museum` has a session for each, with the real library.

mod catalogue;
mod compiled;

pub use catalogue::CATALOGUE;
pub use compiled::CompiledFunctions;

use gpumem_model::holders::{LibraryObject, path_steps, variable_of};

/// One leak of a library.
#[derive(Debug, PartialEq)]
pub struct CatalogueEntry {
    /// Its name, which stays the same: `accelerate-prepared-models`.
    pub id: &'static str,
    /// The library, as it is installed: `accelerate`.
    pub library: &'static str,
    /// The versions that have it.
    pub versions: Versions,
    /// What tells it from other leaks.
    pub pattern: LeakPattern,
    /// What happens, in a few words: `accelerate keeps prepared models`.
    pub title: &'static str,
    /// Why, in one sentence without its full stop; code is between backticks.
    pub cause: &'static str,
    /// What to do.
    pub cure: KnownCure,
    /// Where people report it.
    pub link: &'static str,
}

/// From the first version on, and until one that is healed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// The first version that has it; empty if all have.
    pub since: &'static str,
    /// The first version without it.
    pub healed: Option<&'static str>,
}

/// What keeps the memory, by the way that leads to it.
///
/// A path is written as its steps; `.*` is any attribute, `[*]` any element, and a path that begins with `**` may
/// follow after other steps: `**.lora_A.*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeakPattern {
    /// One object of these classes keeps more and more, or what is deleted, below one of these paths.
    Within {
        /// With their modules: `accelerate.accelerator.Accelerator`.
        classes: &'static [&'static str],
        /// From the object on: `._models[*]`.
        paths: &'static [&'static str],
    },
    /// Each object of these classes that you keep has more than you want, below one of these paths.
    Each {
        /// With their modules.
        classes: &'static [&'static str],
        /// From the object on.
        paths: &'static [&'static str],
    },
    /// A global of the library keeps it.
    Global {
        /// Its expression: `ipywidgets.widgets.widget._instances`.
        path: &'static str,
    },
    /// No name keeps it: the cell calls a function that this compiles, as a decorator or around it.
    Compiled {
        /// As it is written: `jax.jit`.
        by: &'static str,
    },
    /// Outside the allocator: a cell calls what begins so.
    Outside {
        /// As it is written: `torch.fft.`.
        calls: &'static str,
    },
}

/// What lets go of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownCure {
    /// Code for the cell that grew, or for the one after: `{object}` is the object of the library, `{name}` the
    /// variable that leads to it.
    Call(&'static str),
    /// What to write differently, in one sentence without its full stop; code is between backticks.
    Change(&'static str),
    /// The change of the user's own line that gpumem finds.
    Found,
}

/// A finding is one of the known leaks: [`Finding::known_leak`](crate::Finding::known_leak).
#[derive(Debug, Clone, PartialEq)]
pub struct KnownLeak {
    /// Which one.
    pub entry: &'static CatalogueEntry,
    /// The version of the library in this session, if that is known.
    pub version: Option<String>,
}

/// The classes that the catalogue's patterns name, each with its module.
pub fn classes() -> impl Iterator<Item = &'static str> {
    let of_entry = |entry: &&CatalogueEntry| match entry.pattern {
        LeakPattern::Within { classes, .. } | LeakPattern::Each { classes, .. } => classes,
        _ => &[],
    };
    CATALOGUE.iter().flat_map(of_entry).copied()
}

/// Which one keeps what no name does, by the texts of the cells that grow and what all cells compile; and the code
/// that lets go of it. Of memory inside the allocator, or outside of it.
pub fn unheld_leak(
    growing: &[&str],
    functions: &CompiledFunctions<'_>,
    is_outside: bool,
) -> Option<(&'static CatalogueEntry, Option<String>)> {
    let is_of = |entry: &&&CatalogueEntry| match entry.pattern {
        LeakPattern::Compiled { by } => functions.is_called(growing, by),
        LeakPattern::Outside { calls } => is_outside && growing.iter().any(|it| it.contains(calls)),
        _ => false,
    };
    let entry = CATALOGUE.iter().find(is_of)?;
    Some((entry, entry.cure.code("")))
}

/// Which one leads through these objects, or begins this path; and the code that lets go of it, if there is some. The
/// objects are given from the memory outwards. Of growth, or of what should be gone.
pub fn known_leak(
    library_objects: &[LibraryObject],
    path: &str,
    is_growth: bool,
) -> Option<(KnownLeak, Option<String>)> {
    let of_object = |owner: &LibraryObject| {
        let mut entries = CATALOGUE.iter();
        let entry = entries.find(|entry| entry.is_of(owner, is_growth))?;
        let version = Some(owner.version.clone()).filter(|it| !it.is_empty());
        Some((KnownLeak { entry, version }, entry.cure.code(&owner.object)))
    };
    let of_global = || {
        let is_of = |entry: &&&CatalogueEntry| match entry.pattern {
            LeakPattern::Global { path: global } => path.starts_with(global),
            _ => false,
        };
        let entry = CATALOGUE.iter().find(is_of)?;
        let version = None;
        Some((KnownLeak { entry, version }, entry.cure.code(path)))
    };
    // What the outermost lets go of, those inside it do not keep.
    library_objects
        .iter()
        .rev()
        .find_map(of_object)
        .or_else(of_global)
}

impl CatalogueEntry {
    fn is_of(&self, owner: &LibraryObject, is_growth: bool) -> bool {
        // Of several objects it may be their number that grows.
        let may_grow = !is_growth || !owner.object.contains('[');
        let (classes, paths) = match self.pattern {
            LeakPattern::Within { classes, paths } if may_grow => (classes, paths),
            LeakPattern::Each { classes, paths } if is_growth => (classes, paths),
            _ => return false,
        };
        let leads_there = || paths.iter().any(|path| is_below(&owner.rest, path));
        classes.contains(&&*owner.class) && self.versions.include(&owner.version) && leads_there()
    }
}

impl Versions {
    /// Wherever the pattern fits.
    pub const ALL: Self = Self::since("");

    /// From this version on.
    pub const fn since(version: &'static str) -> Self {
        Self {
            since: version,
            healed: None,
        }
    }

    /// An unknown version may have it.
    fn include(self, version: &str) -> bool {
        let numbers = |text: &str| -> Vec<u32> {
            let parts = text.split('.');
            parts.map_while(|it| it.parse().ok()).collect()
        };
        let version = numbers(version);
        let is_before = |other: &str| version < numbers(other);
        version.is_empty() || !is_before(self.since) && self.healed.is_none_or(is_before)
    }
}

impl KnownCure {
    /// The code, if there is some, and the object can be written as code.
    fn code(self, object: &str) -> Option<String> {
        let Self::Call(code) = self else {
            return None;
        };
        let is_code = !object.contains(['<', '(', '…', ' ']);
        let is_fitted = code.contains('{');
        (is_code || !is_fitted).then(|| {
            let code = code.replace("{object}", object);
            code.replace("{name}", variable_of(object))
        })
    }
}

/// The rest of a path begins as the pattern says.
fn is_below(rest: &str, pattern: &str) -> bool {
    let steps = path_steps(rest);
    let is_same = |(step, wanted): (&&str, &&str)| match *wanted {
        ".*" => step.starts_with('.'),
        "[*]" => step.starts_with('['),
        wanted => *step == wanted,
    };
    let begins = |steps: &[&str], wanted: &[&str]| {
        steps.len() >= wanted.len() && steps.iter().zip(wanted).all(is_same)
    };
    match pattern.strip_prefix("**") {
        Some(wanted) => {
            let wanted = path_steps(wanted);
            (0..steps.len()).any(|at| begins(&steps[at..], &wanted))
        }
        None => begins(&steps, &path_steps(pattern)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_path_is_matched_step_by_step() {
        let check = |rest: &str, pattern: &str, expected: bool| {
            assert_eq!(is_below(rest, pattern), expected, "{rest} {pattern}");
        };
        check("._models[0]", "._models[*]", true);
        check("._models[0].fc.weight", "._models[*]", true);
        check("._models", "._models[*]", false);
        check("._models2[0]", "._models[*]", false);
        check(".preds[3]", ".*[*]", true);
        check(".confmat", ".*[*]", false);
        check(".model.q['x'].lora_A.x.weight", "**.lora_A.*", true);
        check("", "**.lora_A.*", false);
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let versions = Versions {
            since: "0.9",
            healed: Some("1.2"),
        };
        for version in ["0.9", "0.10.1", "1.1.9", "1.1.0rc1", "", "unknown"] {
            assert!(versions.include(version), "{version}");
        }
        for version in ["0.8.9", "1.2", "1.2.0+cpu", "2.0"] {
            assert!(!versions.include(version), "{version}");
        }
    }

    #[test]
    fn an_object_s_memory_differs_from_the_number_of_objects() {
        let owner = |object: &str| LibraryObject {
            class: "accelerate.accelerator.Accelerator".to_owned(),
            version: "1.15.0".to_owned(),
            object: object.to_owned(),
            rest: "._models[0]".to_owned(),
        };
        let models = &catalogue::ACCELERATE_PREPARED_MODELS;
        assert!(models.is_of(&owner("accelerator"), true));
        assert!(models.is_of(&owner("trainer.accelerator"), true));
        assert!(!models.is_of(&owner("accelerators[3]"), true));
        assert!(models.is_of(&owner("accelerators[3]"), false));
        let of_another = LibraryObject {
            class: "__main__.Accelerator".to_owned(),
            ..owner("accelerator")
        };
        assert!(!models.is_of(&of_another, true));
    }

    #[test]
    fn a_cure_is_fitted_to_the_users_names() {
        let check = |cure: &'static str, object: &str, expected: Option<&str>| {
            assert_eq!(KnownCure::Call(cure).code(object).as_deref(), expected);
        };
        let call = "{object}.free_memory()";
        check(
            call,
            "run.accelerator",
            Some("run.accelerator.free_memory()"),
        );
        check(call, "<Accelerator>", None);
        check("del {name}", "run.accelerator", Some("del run"));
        check("gc.collect()", "<Accelerator>", Some("gc.collect()"));
    }

    #[test]
    fn every_entry_has_a_name_of_its_own_and_says_what_it_must() {
        let mut ids = HashSet::new();
        for entry in CATALOGUE {
            assert!(ids.insert(entry.id), "{} stands twice", entry.id);
            assert!(entry.link.starts_with("https://"), "{}", entry.id);
            let sentences = [entry.title, entry.cause];
            assert!(
                sentences.iter().all(|it| !it.ends_with('.')),
                "{}",
                entry.id
            );
        }
    }
}

//! When a name was read last, as far as the texts of the cells tell.
//!
//! Where they leave it open, it was read: by code that stands elsewhere, by a function that may run at any time.

use std::collections::{BTreeSet, HashMap, HashSet};

use gpumem_heap::{CellText, NameUses};
use gpumem_model::recording::{CellIdx, Recording, RunIdx, RunKind};
use gpumem_model::source_text;

/// What the cells of a recording do with names.
pub struct NameReads<'a> {
    /// The runs of cells, in their order.
    runs: Vec<CellRun>,
    texts: Vec<CellText<'a>>,
    /// Those that run when they are called, by their names: which text, and which of its functions.
    functions: HashMap<&'a str, Vec<(usize, usize)>>,
    /// Names that may be read at any time.
    at_any_time: HashSet<&'a str>,
}

struct CellRun {
    run: RunIdx,
    cell: CellIdx,
    /// The position of its text.
    text: usize,
}

/// The last run that used a name, from [`NameReads::last_use`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastUse {
    /// Which run.
    pub run: RunIdx,
    /// It read the name; if not, it only bound it.
    pub is_read: bool,
    /// The statement that reads it, if it is the cell's own.
    pub statement: Option<String>,
    /// How many runs of cells began after it.
    pub n_runs_since: usize,
    /// Of how many cells those are.
    pub n_cells_since: usize,
}

/// What a text does with a name.
#[derive(Clone, Copy)]
enum Use<'a> {
    Nothing,
    Read(Option<&'a str>),
    Bound,
    Deleted,
}

impl<'a> NameReads<'a> {
    /// Reads the texts of a recording. `None` if code ran of which nobody knows what it reads and defines: in
    /// cells that are not recorded, from files, or by a function that may read everything.
    pub fn new(recording: &'a Recording) -> Option<Self> {
        let mut reads = Self {
            runs: Vec::new(),
            texts: Vec::new(),
            functions: HashMap::new(),
            at_any_time: HashSet::new(),
        };
        let mut known = HashMap::new();
        let runs = recording.runs().iter();
        for run in runs.filter(|run| run.parent.is_none() && run.kind == RunKind::Cell) {
            if run.beside_unrecorded {
                return None;
            }
            let text = if let Some(text) = known.get(&run.revision) {
                *text
            } else {
                let text = CellText::read(recording.text(run)?);
                if text.runs_other_code {
                    return None;
                }
                reads.texts.push(text);
                reads.texts.len() - 1
            };
            known.insert(run.revision, text);
            reads.runs.push(CellRun {
                run: run.idx,
                cell: run.cell,
                text,
            });
        }
        for (text, cell) in reads.texts.iter().enumerate() {
            for (function, it) in cell.functions.iter().enumerate() {
                let of_name = reads.functions.entry(it.name).or_default();
                of_name.push((text, function));
            }
        }
        reads.at_any_time = reads.find_any_time()?;
        Some(reads)
    }

    /// `None` if every name may be read at any time.
    fn find_any_time(&self) -> Option<HashSet<&'a str>> {
        let mut names: HashSet<&'a str> = HashSet::new();
        let mut open: Vec<&NameUses<'a>> = Vec::new();
        for text in &self.texts {
            let functions = || text.functions.iter();
            open.extend(
                functions()
                    .filter(|it| it.runs_at_any_time)
                    .map(|it| &it.uses),
            );
            let uses = std::iter::once(&text.own).chain(functions().map(|it| &it.uses));
            for (name, it) in uses.flat_map(NameUses::iter) {
                // A function that is handed on may be called by anybody.
                let is_handed_on = it.is_handed_on && self.functions.contains_key(name);
                if it.is_read_later || is_handed_on {
                    names.insert(name);
                }
            }
        }
        let mut left: Vec<&str> = names.iter().copied().collect();
        loop {
            while let Some(name) = left.pop() {
                open.extend(self.functions_of(name));
            }
            let Some(uses) = open.pop() else {
                return Some(names);
            };
            if uses.reads_all {
                return None;
            }
            let read = uses
                .iter()
                .filter(|(_, it)| it.is_read)
                .map(|(name, _)| name);
            left.extend(read.filter(|name| names.insert(name)));
        }
    }

    /// What the functions of that name do.
    fn functions_of(&self, name: &str) -> impl Iterator<Item = &NameUses<'a>> {
        let places = self.functions.get(name).into_iter().flatten();
        places.map(|(text, function)| &self.texts[*text].functions[*function].uses)
    }

    /// The last of the runs up to `until` that used a name, or that may have; `None` if none did, or if the name
    /// is deleted.
    pub fn last_use(&self, name: &str, until: RunIdx) -> Option<LastUse> {
        let (name, _) = name.split_once(['.', '[']).unwrap_or((name, ""));
        let runs = &self.runs[..self.runs.partition_point(|it| it.run <= until)];
        let is_always_read = self.at_any_time.contains(name);
        let mut known: HashMap<usize, Use<'_>> = HashMap::new();
        let mut cells: BTreeSet<CellIdx> = BTreeSet::new();
        for (n_runs_since, it) in runs.iter().rev().enumerate() {
            let found = known.entry(it.text);
            let found = *found.or_insert_with(|| self.use_in(it.text, name));
            let (is_read, statement) = match found {
                Use::Read(statement) => (true, statement),
                _ if is_always_read => (true, None),
                Use::Bound => (false, None),
                Use::Deleted => return None,
                Use::Nothing => {
                    cells.insert(it.cell);
                    continue;
                }
            };
            return Some(LastUse {
                run: it.run,
                is_read,
                statement: statement.map(str::to_owned),
                n_runs_since,
                n_cells_since: cells.len(),
            });
        }
        None
    }

    fn use_in(&self, text: usize, name: &str) -> Use<'a> {
        let own = &self.texts[text].own;
        let of_name = own.get(name);
        if let Some(it) = of_name.filter(|it| it.is_read) {
            return Use::Read(Some(it.reader));
        }
        if own.reads_all {
            return Use::Read(None);
        }
        let mut is_bound = of_name.is_some_and(|it| it.is_bound);
        let mut met: HashSet<&str> = HashSet::new();
        let mut open = vec![own];
        while let Some(uses) = open.pop() {
            let in_function = uses.get(name).filter(|_| !std::ptr::eq(uses, own));
            if uses.reads_all || in_function.is_some_and(|it| it.is_read) {
                return Use::Read(None);
            }
            is_bound |= in_function.is_some_and(|it| it.is_bound);
            for (callee, _) in uses.iter().filter(|(_, it)| it.is_read) {
                if met.insert(callee) {
                    open.extend(self.functions_of(callee));
                }
            }
        }
        match of_name {
            _ if is_bound => Use::Bound,
            Some(it) if it.is_deleted => Use::Deleted,
            _ => Use::Nothing,
        }
    }
}

/// None of the latest runs of cells has the name in its text: only then it is worth to ask [`NameReads`].
pub(super) fn may_be_unread(recording: &Recording, name: &str, n_runs: usize) -> bool {
    let runs = recording.runs().iter().rev();
    let of_cells = runs.filter(|run| run.parent.is_none() && run.kind == RunKind::Cell);
    let texts = of_cells.take(n_runs).map(|run| recording.text(run));
    let lacks_name =
        |text: Option<&str>| text.is_some_and(|text| !source_text::has_word(text, name));
    texts.into_iter().all(lacks_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, session};

    /// The last use of `x` in cells that ran once each: `2 read`, `1 bound`, `-`.
    #[track_caller]
    fn check(cells: &[&str], expected: &str) {
        let plays = [run(0)];
        let cells: Vec<_> = cells.iter().map(|it| (*it, plays.as_slice())).collect();
        let (recording, _) = session(&cells);
        let until = RunIdx(recording.runs().len() as u32 - 1);
        let found = NameReads::new(&recording).map(|it| it.last_use("x", until));
        let words = match found {
            None => "unknown".to_owned(),
            Some(None) => "-".to_owned(),
            Some(Some(it)) => {
                let what = if it.is_read { "read" } else { "bound" };
                format!("{} {what}", it.run.0)
            }
        };
        assert_eq!(words, expected, "{cells:?}");
    }

    #[test]
    fn a_cell_reads_a_name_itself_or_by_a_function() {
        check(&["x = f()", "y = 1"], "0 bound");
        check(&["x = f()", "g(x)", "y = 1"], "1 read");
        check(&["x = f()", "del x", "y = 1"], "-");
        check(&["y = 1"], "-");
        let calls = "def f():\n    return x";
        check(&["x = 1", calls, "y = 1", "f()", "z = 1"], "3 read");
        check(
            &["x = 1", calls, "def g():\n    f()", "g()", "z = 1"],
            "3 read",
        );
        check(&["x = 1", calls, "y = 1"], "0 bound");
        check(&["x = 1", "def f(x):\n    return x", "f(2)"], "0 bound");
        check(
            &["def f():\n    global x\n    x = 1", "f()", "y = 1"],
            "1 bound",
        );
    }

    #[test]
    fn what_may_run_at_any_time_reads_its_names() {
        for cell in [
            "def f():\n    return x\nregister(f)",
            "def f():\n    return x\ng = f",
            "class A:\n    def forward(self):\n        return x",
            "f = lambda: x",
            "def f():\n    return x\ndef g():\n    yield f()",
            "@hook\ndef f():\n    return x",
        ] {
            check(&["x = 1", cell, "y = 1"], "2 read");
        }
    }

    #[test]
    fn of_code_that_nobody_saw_nothing_is_known() {
        check(&["x = 1", "exec(code)", "y = 1"], "unknown");
        check(&["x = 1", "%run train.py", "y = 1"], "unknown");
        check(
            &[
                "x = 1",
                "class A:\n    def f(self):\n        return eval(self.code)",
            ],
            "unknown",
        );
        check(&["x = 1", "print(globals())", "y = 1"], "1 read");
    }
}

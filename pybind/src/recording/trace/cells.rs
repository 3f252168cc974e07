//! Which cell a frame's code stands in, and at which line of its text as typed.

use std::collections::HashMap;

use gpumem_model::recording::FrameOrigin;
use gpumem_model::trace::StackFrame;
use pyo3::prelude::*;

use gpumem_base::text::Text;

/// Where the code of a file stands, and by how many lines the text as typed is longer above it.
type CodeOrigin = (FrameOrigin, u32);

/// The cells that the shell has compiled, by the names of their files.
pub(crate) struct CompiledCells<'py> {
    /// `None` if the shell's compiler does not report it, as in IPython 7.
    format_code_name: Option<Bound<'py, PyAny>>,
    /// The file of this cell's code, computed by the rule of a compiler that does not report it.
    own_file: Option<String>,
    lines: Option<Bound<'py, PyAny>>,
    own_number: u32,
    n_lines: usize,
    known: HashMap<String, CodeOrigin>,
}

impl<'py> CompiledCells<'py> {
    /// The cells of `shell` at the end of a run of `source` under Jupyter's number, where it has one.
    pub(crate) fn new(
        shell: &Bound<'py, PyAny>,
        number: Option<u32>,
        source: &str,
    ) -> PyResult<Self> {
        let compiler = shell.getattr("compile")?;
        let cache = shell.py().import("linecache")?.getattr("cache");
        let own_number = match number {
            Some(number) => number,
            None => shell.getattr("execution_count")?.extract()?,
        };
        let format_code_name = compiler.getattr("format_code_name").ok();
        // It would hash the source in Python.
        let own_file = if format_code_name.is_none() {
            let name = compiler.call_method1("get_code_name", (source, source, own_number));
            name.and_then(|name| name.extract()).ok()
        } else {
            None
        };
        Ok(Self {
            format_code_name,
            own_file,
            lines: cache.ok(),
            own_number,
            n_lines: n_lines(source.lines()),
            known: HashMap::new(),
        })
    }

    /// Says of each frame in which cell it stands.
    pub(crate) fn place(&mut self, frames: &mut [StackFrame]) -> PyResult<()> {
        for frame in frames {
            let known = self.known.get(&frame.file).copied();
            let place = known.map_or_else(|| self.find(&frame.file), Ok)?;
            if known.is_none() {
                self.known.insert(frame.file.clone(), place);
            }
            frame.origin = place.0;
            frame.line = frame.line.saturating_add(place.1);
        }
        Ok(())
    }

    fn find(&self, file: &str) -> PyResult<CodeOrigin> {
        let elsewhere = (FrameOrigin::File, 0);
        let number = if let Some(format_code_name) = &self.format_code_name {
            // ("Cell", "In[12]"), or nothing.
            let named: Option<(Text, Text)> = format_code_name.call1((file,))?.extract()?;
            named.and_then(|(_, Text(name))| {
                let digits: String = name.chars().filter(char::is_ascii_digit).collect();
                digits.parse::<u32>().ok()
            })
        } else if self.own_file.as_deref() == Some(file) {
            Some(self.own_number)
        } else {
            number_in(file)
        };
        Ok(match number {
            None => elsewhere,
            // What a magic of this cell runs is numbered like it, or as the next one.
            Some(number) if number >= self.own_number => {
                (FrameOrigin::Own, self.n_missing(file).unwrap_or(0))
            }
            Some(number) => (FrameOrigin::Cell(number), 0),
        })
    }

    /// How many of the cell's first lines the code of `file` lacks: IPython takes empty lines and
    /// magics away.
    fn n_missing(&self, file: &str) -> Option<u32> {
        let entry = self.lines.as_ref()?.get_item(file).ok()?;
        let compiled: Vec<Text> = entry.get_item(2).ok()?.extract().ok()?;
        let n_compiled = n_lines(compiled.iter().map(|line| line.0.as_str()));
        u32::try_from(self.n_lines.saturating_sub(n_compiled)).ok()
    }
}

/// The 12 of `<ipython-input-12-a597a77f291b>`: the file of a cell in IPython 7.
fn number_in(file: &str) -> Option<u32> {
    let rest = file.strip_prefix("<ipython-input-")?;
    rest.split('-').next()?.parse().ok()
}

/// Up to the last one that says something.
fn n_lines<'a>(lines: impl Iterator<Item = &'a str>) -> usize {
    let said = lines
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    said.last().map_or(0, |(idx, _)| idx + 1)
}

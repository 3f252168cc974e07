//! The columns of the table: what stands in them, and by what rows are sorted.

use crate::process_page::{PageRow, ProcessPage};
use gpumem_model::named;
use gpumem_model::units::{Bytes, Units};

named! {
    /// A column of the table.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum PageColumn {
        /// What the process is called.
        Name = "name",
        /// Its machine.
        Machine = "machine",
        /// Its device.
        Device = "device",
        /// Its number.
        Pid = "pid",
        /// Its latest level.
        Memory = "memory",
        /// By how much that rose.
        Grew = "grew",
        /// Its highest level.
        Highest = "highest",
        /// What it uses beside what its frameworks reserved.
        Outside = "outside",
        /// What it used of GPUs when this was last listed.
        Gpu = "gpu",
        /// How many steps it ended.
        Steps = "steps",
        /// What each step keeps.
        PerStep = "per-step",
        /// How it ended.
        Ended = "ended",
    }
}

impl PageColumn {
    /// What it means, for who points at its head.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Name => "what the process is called",
            Self::Machine => "the machine that it runs on",
            Self::Device => "the device that it uses most",
            Self::Pid => "the number of the process",
            Self::Memory => "the latest level that is known",
            Self::Grew => "the latest level less the first",
            Self::Highest => "the highest level",
            Self::Outside => "what the process uses beside what its frameworks reserved",
            Self::Gpu => {
                "GPU memory at the latest end of a run of the session that it lived to see"
            }
            Self::Steps => "how many it ended",
            Self::PerStep => "what each one keeps",
            Self::Ended => "how it ended, and when",
        }
    }

    /// It holds words, not figures.
    pub const fn is_words(self) -> bool {
        matches!(
            self,
            Self::Name | Self::Machine | Self::Device | Self::Ended
        )
    }

    fn is_known(self, row: &PageRow) -> bool {
        match self {
            Self::Name | Self::Memory | Self::Highest | Self::Ended => true,
            Self::Machine => !row.machine.is_empty(),
            Self::Device => !row.device.is_empty(),
            Self::Pid => row.pid.is_some(),
            Self::Grew => row.grew.is_some(),
            Self::Outside => row.outside.is_some_and(|it| it > Bytes::ZERO),
            Self::Gpu => row.gpu_used.is_some(),
            Self::Steps => row.n_steps.is_some(),
            Self::PerStep => !row.growth.is_empty(),
        }
    }

    /// What stands there for a process.
    pub fn cell(self, row: &PageRow, units: Units) -> String {
        let size = |level: Option<Bytes>| level.map_or_else(|| "?".to_owned(), |it| units.size(it));
        let dash = || "–".to_owned();
        match self {
            Self::Name => row.name.clone(),
            Self::Machine => row.machine.clone(),
            Self::Device => row.device.clone(),
            Self::Pid => row.pid.map_or_else(dash, |pid| pid.to_string()),
            Self::Memory => size(row.latest),
            Self::Grew => row
                .grew
                .map_or_else(|| "?".to_owned(), |it| units.change(it)),
            Self::Highest => size(row.peak),
            Self::Outside => row.outside.map_or_else(dash, |it| units.size(it)),
            Self::Gpu => row.gpu_used.map_or_else(dash, |it| units.size(it)),
            Self::Steps => row.n_steps.map_or_else(dash, |n| n.to_string()),
            Self::PerStep if row.growth.is_empty() => dash(),
            Self::PerStep => row.growth.clone(),
            Self::Ended => row.ending.clone(),
        }
    }
}

/// Which rows the table shows, and in which order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowOrder {
    /// Rows with these letters in their words; empty for all.
    pub search: String,
    /// `None` for what matters first.
    pub column: Option<PageColumn>,
    /// The largest first.
    pub is_descending: bool,
}

impl ProcessPage {
    /// The columns of which something is known in any row.
    pub fn columns(&self) -> Vec<PageColumn> {
        let is_known = |column: &PageColumn| self.rows.iter().any(|row| column.is_known(row));
        PageColumn::ALL.into_iter().filter(is_known).collect()
    }

    /// The head of a column.
    pub fn head(&self, column: PageColumn) -> String {
        match column {
            PageColumn::Name => gpumem_wording::capitalised(&self.noun),
            PageColumn::Machine => "Machine".to_owned(),
            PageColumn::Device => "Device".to_owned(),
            PageColumn::Pid => "Pid".to_owned(),
            PageColumn::Memory => "Memory".to_owned(),
            PageColumn::Grew => "Grew".to_owned(),
            PageColumn::Highest => "Highest".to_owned(),
            PageColumn::Outside => "Outside".to_owned(),
            PageColumn::Gpu => "GPU".to_owned(),
            PageColumn::Steps => format!("{}s", gpumem_wording::capitalised(&self.step)),
            PageColumn::PerStep => "Growth".to_owned(),
            PageColumn::Ended => "Ended".to_owned(),
        }
    }

    /// The rows that are shown, in their order.
    pub fn order(&self, order: &RowOrder) -> Vec<usize> {
        let search = order.search.to_lowercase();
        let is_found = |row: &PageRow| {
            let pid = row.pid.map_or_else(String::new, |pid| pid.to_string());
            [&row.name, &row.machine, &row.device, &row.ending, &pid]
                .iter()
                .any(|words| words.to_lowercase().contains(&search))
        };
        let mut rows: Vec<usize> = (0..self.rows.len())
            .filter(|idx| search.is_empty() || is_found(&self.rows[*idx]))
            .collect();
        if let Some(column) = order.column {
            rows.sort_by(|a, b| {
                let (a, b) = (&self.rows[*a], &self.rows[*b]);
                let ordering = compared(column, a, b);
                if order.is_descending {
                    ordering.reverse()
                } else {
                    ordering
                }
            });
        }
        rows
    }
}

fn compared(column: PageColumn, a: &PageRow, b: &PageRow) -> std::cmp::Ordering {
    match column {
        PageColumn::Name => by_number(&a.name).cmp(&by_number(&b.name)),
        PageColumn::Machine => by_number(&a.machine).cmp(&by_number(&b.machine)),
        PageColumn::Device => by_number(&a.device).cmp(&by_number(&b.device)),
        PageColumn::Pid => a.pid.cmp(&b.pid),
        PageColumn::Memory => a.latest.cmp(&b.latest),
        PageColumn::Grew => a.grew.cmp(&b.grew),
        PageColumn::Highest => a.peak.cmp(&b.peak),
        PageColumn::Outside => a.outside.cmp(&b.outside),
        PageColumn::Gpu => a.gpu_used.cmp(&b.gpu_used),
        PageColumn::Steps => a.n_steps.cmp(&b.n_steps),
        PageColumn::PerStep => a.per_step.cmp(&b.per_step),
        PageColumn::Ended => (a.end.is_some(), a.until).cmp(&(b.end.is_some(), b.until)),
    }
}

/// `rank 9` comes before `rank 10`.
fn by_number(name: &str) -> (&str, Option<u64>) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem, name[stem.len()..].parse().ok())
}

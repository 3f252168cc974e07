//! Out-of-memory errors.

use super::{
    CureRow, EXPANDABLE, N_NAMES, Presentation, Prose, Span, Teller, code, figure, idle, place,
    prose, times, withdrawn,
};
use gpumem_analyzer::{
    Cure, Finding, HeldByError, OomBreakdown, OomCause, OomPart, OomShare, Sufficiency,
};
use gpumem_model::recording::OomHolder;
use gpumem_model::source_text;
use gpumem_model::units::{Bytes, Units, count};

pub(super) fn present(teller: &Teller<'_>, breakdown: &OomBreakdown) -> Presentation {
    let oom = Oom { teller, breakdown };
    let causes: Vec<Prose> = match teller.finding.withdrawn {
        Some(reason) => vec![withdrawn(reason).into()],
        None => oom.lines(),
    };
    let outlook = causes.first().cloned().unwrap_or_default();
    let mut own = Presentation::new(oom.title(), outlook);
    own.cures = breakdown.cures.iter().map(|it| oom.cure(it)).collect();
    let causes_of_advice = breakdown.causes.iter();
    own.advice = causes_of_advice.filter_map(|it| oom.advice(it)).collect();
    own.facts = oom.composition();
    own.line.truncate(1);
    if let Some(n) = breakdown.n_times.filter(|n| *n > 1) {
        let n_times = Prose::from(format!("{} in this run", times(n)));
        own.line.push(n_times.clone());
        own.facts.push(n_times);
    }
    own.line.extend(causes);
    own
}

/// Runs that ran out for one cause: `10 runs of 7 cells ran out of memory, first In [30]`.
pub(super) fn of_several(teller: &Teller<'_>, findings: &[&Finding]) -> Presentation {
    let n_runs: usize = findings.iter().map(|finding| finding.runs.len()).sum();
    let n_cells = count(findings.len(), "cell");
    let runs = findings.iter().flat_map(|finding| &finding.runs);
    let first = runs.min().map(|run| teller.recording.run(*run));
    let first = place(", first ", first.and_then(|run| run.execution_count));
    let runs = count(n_runs, "run");
    let title = format!(
        "{runs} of {n_cells} ran out of memory{}{first}",
        teller.on_device()
    );
    let of_first = super::present(teller.recording, teller.finding, teller.units);
    let mut own = Presentation::new(title, of_first.outlook);
    own.facts = of_first.facts;
    own.cures = of_first.cures;
    own.advice = of_first.advice;
    own
}

/// Over the table of [`Presentation::cures`].
pub const CURES: &str = "What would have been enough";

/// A holder's name, or its kind if names are not kept.
pub fn oom_holder(holder: &OomHolder) -> String {
    match (holder.name.as_str(), holder.kind.description()) {
        ("", Some(words)) => words.to_owned(),
        ("", None) => "a variable".to_owned(),
        (name, _) => name.to_owned(),
    }
}

struct Oom<'a> {
    teller: &'a Teller<'a>,
    breakdown: &'a OomBreakdown,
}

impl Oom<'_> {
    fn units(&self) -> Units {
        self.teller.units
    }

    fn title(&self) -> Prose {
        let and_then = if self.breakdown.survived {
            " and went on"
        } else {
            ""
        };
        let size = |bytes: Bytes| self.units().size(bytes);
        let by = match (self.missing(), self.breakdown.wanted) {
            (Some(missing), _) => format!(", {} short", size(missing)),
            (None, Some(wanted)) => format!(": it wanted {}", size(wanted)),
            (None, None) => String::new(),
        };
        let (cell, on) = (self.teller.cell(), self.teller.on_device());
        prose![cell, " ran out of memory", on, and_then, by]
    }

    fn missing(&self) -> Option<Bytes> {
        let missing = self.breakdown.missing;
        missing.filter(|missing| *missing > Bytes::ZERO)
    }

    /// What was wanted, what there was, and who held it.
    fn composition(&self) -> Vec<Prose> {
        let size = |bytes: Bytes| self.units().size(bytes);
        let (wanted, free) = (
            self.breakdown.wanted.map(size),
            self.breakdown.free.map(size),
        );
        let wanted = match (wanted, free) {
            (Some(wanted), Some(free)) => Some(format!("wanted {wanted}, {free} was free")),
            (Some(wanted), None) => Some(format!("wanted {wanted}")),
            (None, free) => free.map(|free| format!("{free} was free")),
        };
        let mut facts: Vec<Prose> = Vec::new();
        let parts = [wanted, self.parts()].into_iter().flatten();
        facts.extend(parts.map(Prose::from));
        if self.teller.finding.withdrawn.is_none() {
            facts.extend(self.held_by());
        }
        facts
    }

    /// `of 8 GiB: 5.1 GiB in tensors, 1.2 GiB cache, 7 MiB free`.
    fn parts(&self) -> Option<String> {
        let others = || match self.breakdown.others.as_slice() {
            [] => "other processes".to_owned(),
            [pid] => format!("process {pid}"),
            pids => format!("{} other processes", pids.len()),
        };
        let parts = self.breakdown.parts.iter();
        let parts = parts.filter_map(|OomShare { part, size }| {
            let words = match part {
                OomPart::Free => return None,
                OomPart::Others => others(),
                part => super::oom_part(*part).to_owned(),
            };
            Some(format!("{} {words}", self.units().size(*size)))
        });
        let parts: Vec<String> = parts.collect();
        match (self.breakdown.total, parts.as_slice()) {
            (_, []) => None,
            (Some(total), parts) => Some(format!(
                "of {}: {}",
                self.units().size(total),
                parts.join(", ")
            )),
            (None, parts) => Some(parts.join(", ")),
        }
    }

    /// `held by weights 1.5 GiB, last exception 2 GiB`.
    fn held_by(&self) -> Option<Prose> {
        let holders = &self.breakdown.holders;
        let name = |holder: &OomHolder| match holder.name.as_str() {
            "" => oom_holder(holder).into(),
            name => Prose::from(code(name)),
        };
        let shown = holders.iter().take(N_NAMES);
        let mut shown: Vec<Prose> = shown
            .map(|holder| prose![name(holder), " ", self.units().size(holder.used)])
            .collect();
        let rest: Bytes = holders.iter().skip(N_NAMES).map(|it| it.used).sum();
        if rest > Bytes::ZERO {
            shown.push(format!("others {}", self.units().size(rest)).into());
        }
        (!shown.is_empty()).then(|| prose!["held by ", Prose::joined(&shown, ", ")])
    }

    /// For the line after the cell: all that is enough only together is one.
    fn lines(&self) -> Vec<Prose> {
        let cures = &self.breakdown.cures;
        let together: Vec<&Cure> = cures.iter().filter(|it| !it.is_alone()).collect();
        let is_one = |cause: &&OomCause| !together.iter().any(|it| it.cause == **cause);
        let causes = self.breakdown.causes.iter().filter(is_one);
        let mut lines: Vec<Prose> = causes.filter_map(|cause| self.line(cause)).collect();
        if let Some(last) = together.last() {
            let actions: Vec<Prose> = together.iter().map(|it| self.action(it).0).collect();
            let actions = Prose::joined(&actions, ", ");
            let sum = last.above + last.frees.unwrap_or_default();
            let frees = prose![" together free ", figure(self.units().size(sum))];
            lines.push(prose![actions, frees]);
        }
        lines
    }

    fn line(&self, cause: &OomCause) -> Option<Prose> {
        let size = |bytes: Bytes| self.units().size(bytes);
        let command = || code(&cause.command().unwrap_or_default());
        let line = match cause {
            OomCause::Growth {
                kept,
                name,
                cell,
                is_leak,
            } => {
                let (held, name) = (figure(size(*kept)), grown(name.as_ref(), cell));
                if *is_leak {
                    prose!["the ", name, " leak held ", held]
                } else {
                    prose![name, ", which grows, held ", held]
                }
            }
            OomCause::Collected { kept, name } => {
                let kept = figure(size(*kept));
                prose![code(name), " collected ", kept, " in this run"]
            }
            OomCause::TooLarge { room } => {
                let wanted = size(self.breakdown.wanted.unwrap_or_default());
                format!("{wanted} is more than the whole {}", size(*room)).into()
            }
            OomCause::Limited { limit } => format!("limited to {}", size(*limit)).into(),
            OomCause::Fragmented {
                unallocated,
                largest,
                ..
            } => {
                let largest = largest.map_or_else(String::new, |largest| {
                    format!(", the largest piece {}", size(largest))
                });
                let free = size(*unallocated);
                format!("{free} was free in the cache, but in pieces{largest}").into()
            }
            OomCause::CachedElsewhere { source, cached } => {
                let (name, cached) = (source.name(), size(*cached));
                let keeps = format!("{name} keeps {cached} that it does not use: ");
                prose![keeps, command()]
            }
            OomCause::OtherProcesses { used, .. } => {
                prose![format!("other processes hold {}: ", size(*used)), who()]
            }
            OomCause::OldCopy { kept, .. } => prose![
                format!("the {} of an earlier run was still held: ", size(*kept)),
                command(),
                " first"
            ],
            OomCause::EarlierError {
                execution_count,
                kept,
            } => {
                let (which, kept) = (error(*execution_count), size(*kept));
                prose![format!("{which} still held up to {kept}: "), command()]
            }
            OomCause::Outputs { held } => prose![
                format!("displayed results hold {}: ", size(*held)),
                command()
            ],
            OomCause::OptimizerState { kept, name } => prose![
                "the first step of ",
                code(name),
                " made ",
                figure(size(*kept)),
                " of state"
            ],
            OomCause::NoBackward { kept, framework } => prose![
                "a graph kept ",
                figure(size(*kept)),
                ", and no backward pass follows: ",
                code(&no_grad(framework))
            ],
            OomCause::Unused {
                kept,
                name,
                execution_count,
                ..
            } => prose![
                "no cell has used ",
                code(name),
                place(" since ", *execution_count),
                ": ",
                command(),
                " frees ",
                figure(size(*kept))
            ],
            OomCause::Traceback { kept } => {
                prose![
                    format!("the traceback keeps {}: ", self.kept(*kept)?),
                    command()
                ]
            }
            OomCause::SmallerStep | OomCause::Unread => return None,
        };
        Some(line)
    }

    fn cure(&self, cure: &Cure) -> CureRow {
        let (action, remark) = self.action(cure);
        let frees = cure.frees.map(|frees| self.units().size(frees));
        let frees = frees.map(|frees| match cure.cause {
            OomCause::Collected { .. }
            | OomCause::EarlierError { .. }
            | OomCause::OptimizerState { .. }
            | OomCause::OtherProcesses { .. } => format!("frees up to {frees}"),
            OomCause::Fragmented { .. } => format!("joins {frees}"),
            _ => format!("frees {frees}"),
        });
        CureRow {
            action,
            remark,
            frees: frees.unwrap_or_default(),
            is_enough: cure.suffices != Sufficiency::No,
            fit: match cure.suffices {
                Sufficiency::Alone => "enough".to_owned(),
                Sufficiency::Together => "enough together".to_owned(),
                Sufficiency::No => format!("leaves {} missing", self.units().size(cure.leaves)),
            },
        }
    }

    /// What to do, and what else is to be said of it.
    fn action(&self, cure: &Cure) -> (Prose, Prose) {
        let command = || Prose::from(code(cure.command.as_deref().unwrap_or_default()));
        match &cure.cause {
            OomCause::Growth {
                name,
                cell,
                is_leak,
                ..
            } => {
                let what = if *is_leak { "leak" } else { "growth" };
                let name = grown(name.as_ref(), cell);
                let action = prose![format!("fix the {what} of "), name];
                (action, "for good: it no longer grows".into())
            }
            OomCause::Collected { name, .. } => (
                prose!["let ", code(name), " collect less"],
                "it has this much more since the run began".into(),
            ),
            OomCause::Limited { limit } => {
                let limit = self.units().size(*limit);
                let action =
                    format!("raise the framework's limit of {limit} (its memory fraction)");
                (action.into(), "only if nobody else needs the rest".into())
            }
            OomCause::Fragmented { can_expand, .. } => {
                let order = prose![
                    "allocate long-lived tensors first, or after ",
                    code("empty_cache()"),
                    ", and use few different sizes"
                ];
                if *can_expand {
                    let set = prose!["set ", code(EXPANDABLE), " before the kernel starts"];
                    (set, prose!["free pieces then join; or ", order])
                } else {
                    (order, "free pieces then fit again".into())
                }
            }
            OomCause::CachedElsewhere { source, .. } => {
                let remark = format!("{} keeps it in its cache", source.name());
                (command(), remark.into())
            }
            OomCause::OtherProcesses { pids, .. } => {
                let pids: Vec<String> = pids.iter().map(u64::to_string).collect();
                let which = match pids.as_slice() {
                    [] => String::new(),
                    [pid] => format!(" (process {pid})"),
                    pids => format!(" (processes {})", pids.join(", ")),
                };
                let action = format!("end other processes that nobody needs{which}");
                (action.into(), prose![who(), " shows them"])
            }
            OomCause::OldCopy { .. } => (
                prose![command(), " at the top of the cell"],
                "the name holds the old copy until the new one is ready".into(),
            ),
            OomCause::EarlierError {
                execution_count, ..
            } => {
                let which = error(*execution_count);
                let remark = format!("{which} kept it alive through its frames");
                (command(), remark.into())
            }
            OomCause::Outputs { .. } => (
                command(),
                prose![
                    code("Out"),
                    " and ",
                    code("_"),
                    " hold it; a ",
                    code(";"),
                    " at the end of a cell's last line keeps a result out of them"
                ],
            ),
            OomCause::OptimizerState { name, .. } => (
                prose!["choose an optimizer that keeps less than ", code(name)],
                prose![
                    code("SGD"),
                    " without momentum keeps no state, 8-bit Adam a quarter"
                ],
            ),
            OomCause::NoBackward { framework, .. } => (
                prose!["run it in a ", code(&no_grad(framework)), " block"],
                "the graph is for a backward pass that does not follow".into(),
            ),
            OomCause::Unused {
                execution_count,
                twin,
                ..
            } => {
                let unused = format!("no cell has used it{}", place(" since ", *execution_count));
                let twin = twin.as_ref().map(idle::of_twin).unwrap_or_default();
                (command(), Prose::joined([&unused.into(), &twin], "; "))
            }
            OomCause::TooLarge { .. }
            | OomCause::SmallerStep
            | OomCause::Traceback { .. }
            | OomCause::Unread => Default::default(),
        }
    }

    /// What to do of what is no cure: where freeing does not help, and what is good to know.
    fn advice(&self, cause: &OomCause) -> Option<Prose> {
        let size = |bytes: Bytes| self.units().size(bytes);
        let advice = match cause {
            OomCause::TooLarge { room } => {
                let wanted = size(self.breakdown.wanted.unwrap_or_default());
                let room = size(*room);
                format!(
                    "{wanted} in one piece never fits into {room}: compute in smaller pieces, or check the shape"
                )
                .into()
            }
            OomCause::SmallerStep => {
                "make the step smaller: a smaller batch (with gradient accumulation if its size matters), shorter sequences, lower precision, or no graph if no backward pass follows"
                    .into()
            }
            OomCause::Traceback { kept } => {
                let kept = self.kept(*kept);
                let kept = kept.as_deref().unwrap_or("the tensors of its frames");
                let words = format!(
                    ": the error keeps {kept} alive through its frames, until another error takes its place"
                );
                prose![code(&cause.command()?), words]
            }
            OomCause::Unread => prose![
                code("%gpumem status"),
                " says which devices are read, and why not the others"
            ],
            _ => return None,
        };
        Some(advice)
    }

    fn kept(&self, kept: HeldByError) -> Option<String> {
        match kept {
            HeldByError::Exactly(kept) => Some(self.units().size(kept)),
            HeldByError::UpTo(kept) => Some(format!("up to {}", self.units().size(kept))),
            HeldByError::Unknown => None,
        }
    }
}

/// The name that grows, or else its cell.
fn grown(name: Option<&String>, cell: &str) -> Span {
    let cell = source_text::abridged(cell);
    code(name.unwrap_or(&cell))
}

fn error(execution_count: Option<u32>) -> String {
    match execution_count {
        Some(n) => format!("the error of In [{n}]"),
        None => "the error before it".to_owned(),
    }
}

fn no_grad(framework: &str) -> String {
    format!("{framework}.no_grad()")
}

fn who() -> Span {
    code("%gpumem who")
}

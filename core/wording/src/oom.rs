//! Out-of-memory errors.

use super::{
    EXPANDABLE, N_NAMES, Presentation, Prose, Teller, code, figure, prose, times, withdrawn,
};
use gpumem_analyzer::{Cause, Finding, HeldByError, OomBreakdown, OomPart, OomShare};
use gpumem_model::recording::OomHolder;
use gpumem_model::source_text;
use gpumem_model::units::count;
use gpumem_model::units::{Bytes, Units};

pub(super) fn present(teller: &Teller<'_>, breakdown: &OomBreakdown) -> Presentation {
    let oom = Oom { teller, breakdown };
    let causes = breakdown.causes.iter().map(|cause| oom.cause(cause));
    let (lines, advice): (Vec<_>, Vec<_>) = causes.unzip();
    let causes: Vec<Prose> = match teller.finding.withdrawn {
        Some(reason) => vec![withdrawn(reason).into()],
        None => lines.into_iter().flatten().collect(),
    };
    let outlook = causes.first().cloned().unwrap_or_default();
    let mut own = Presentation::new(oom.title(), outlook);
    own.advice = advice;
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
    let first = first.and_then(|run| run.execution_count);
    let first = first.map_or_else(String::new, |n| format!(", first In [{n}]"));
    let runs = count(n_runs, "run");
    let title = format!(
        "{runs} of {n_cells} ran out of memory{}{first}",
        teller.on_device()
    );
    let of_first = super::present(teller.recording, teller.finding, teller.units);
    let mut own = Presentation::new(title, of_first.outlook);
    own.facts = of_first.facts;
    own.advice = of_first.advice;
    own
}

/// A holder's name, or its kind if names are not kept.
pub fn oom_holder(holder: &OomHolder) -> String {
    match (holder.name.as_str(), holder.kind.words()) {
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

    /// For the line after the cell, and what to do.
    #[expect(clippy::too_many_lines, reason = "one arm for each cause")]
    fn cause(&self, cause: &Cause) -> (Option<Prose>, Prose) {
        let size = |bytes: Bytes| self.units().size(bytes);
        let (cache, who, outputs, traceback) = (
            || code("%gpumem release cache"),
            || code("%gpumem who"),
            || code("%gpumem release outputs"),
            || code("%gpumem release traceback"),
        );
        match cause {
            Cause::Growth {
                kept,
                name,
                cell,
                is_leak,
            } => {
                let (kept, cell) = (size(*kept), source_text::abridged(cell));
                let name = code(name.as_ref().unwrap_or(&cell));
                let what = if *is_leak { "leak" } else { "growth" };
                let held = figure(&*kept);
                let line = if *is_leak {
                    prose!["the ", name.clone(), " leak held ", held]
                } else {
                    prose![name.clone(), ", which grows, held ", held]
                };
                let advice = prose![
                    format!("fix the {what} of "),
                    name,
                    format!(": it held {kept}, more than was short")
                ];
                (Some(line), advice)
            }
            Cause::Collected { kept, name } => {
                let (kept, name) = (size(*kept), code(name));
                let advice = prose![
                    "let ",
                    name.clone(),
                    format!(
                        " collect less: it has {kept} more since the run began, more than was short"
                    )
                ];
                let line = prose![name, " collected ", figure(kept), " in this run"];
                (Some(line), advice)
            }
            Cause::TooLarge { room } => {
                let (room, wanted) = (size(*room), self.breakdown.wanted.unwrap_or_default());
                let wanted = size(wanted);
                let advice = format!(
                    "{wanted} in one piece never fits into {room}: compute in smaller pieces, or check the shape"
                );
                let line = format!("{wanted} is more than the whole {room}");
                (Some(line.into()), advice.into())
            }
            Cause::Limited { limit } => {
                let limit = size(*limit);
                let advice = format!(
                    "the framework may use only {limit} (its memory fraction or limit): raise it if nobody else needs the rest"
                );
                (Some(format!("limited to {limit}").into()), advice.into())
            }
            Cause::Fragmented {
                unallocated,
                largest,
                can_expand,
            } => {
                let largest = largest.map_or_else(String::new, |largest| {
                    format!(", the largest piece {}", size(largest))
                });
                let order = prose![
                    "allocate long-lived tensors first, or after ",
                    code("empty_cache()"),
                    ", and use few different sizes, so that free pieces fit again"
                ];
                let advice = if *can_expand {
                    prose![
                        "before the kernel starts, set ",
                        code(EXPANDABLE),
                        ": free pieces then join; or ",
                        order
                    ]
                } else {
                    order
                };
                let line = format!(
                    "{} was free in the cache, but in pieces{largest}",
                    size(*unallocated)
                );
                (Some(line.into()), advice)
            }
            Cause::CachedElsewhere { source, cached } => {
                let (name, cached) = (source.name(), size(*cached));
                let line = prose![
                    format!("{name} keeps {cached} that it does not use: "),
                    cache()
                ];
                let advice = prose![
                    cache(),
                    format!(" gives back the {cached} that {name} keeps in its cache")
                ];
                (Some(line), advice)
            }
            Cause::OtherProcesses { used, pids } => {
                let used = size(*used);
                let which = if pids.is_empty() {
                    String::new()
                } else {
                    let pids: Vec<String> = pids.iter().map(u64::to_string).collect();
                    format!(" (process {})", pids.join(", "))
                };
                let line = prose![format!("other processes hold {used}: "), who()];
                let advice = prose![
                    format!("other processes hold {used}{which}: "),
                    who(),
                    " shows them; end the ones that nobody needs"
                ];
                (Some(line), advice)
            }
            Cause::OldCopy { kept, name } => {
                let free = code(&format!("del {name}"));
                let line = prose![
                    format!("the {} of an earlier run was still held: ", size(*kept)),
                    free.clone(),
                    " first"
                ];
                let advice = prose![
                    "free the old copy first: ",
                    free,
                    " at the top of the cell; the name holds the old copy until the new one is ready"
                ];
                (Some(line), advice)
            }
            Cause::EarlierError {
                execution_count,
                kept,
            } => {
                let kept = size(*kept);
                let which = match execution_count {
                    Some(n) => format!("the error of In [{n}]"),
                    None => "the error before it".to_owned(),
                };
                let line = prose![format!("{which} still held up to {kept}: "), traceback()];
                let advice = prose![
                    traceback(),
                    format!(": {which} kept up to {kept} alive through its frames")
                ];
                (Some(line), advice)
            }
            Cause::Outputs { held } => {
                let held = size(*held);
                let line = prose![format!("displayed results hold {held}: "), outputs()];
                let advice = prose![
                    outputs(),
                    format!(" frees the {held} that "),
                    code("Out"),
                    " and ",
                    code("_"),
                    " hold; a ",
                    code(";"),
                    " at the end of a cell's last line keeps a result out of them"
                ];
                (Some(line), advice)
            }
            Cause::OptimizerState { kept, name } => {
                let (kept, name) = (size(*kept), code(name));
                let line = prose![
                    "the first step of ",
                    name.clone(),
                    " made ",
                    figure(&*kept),
                    " of state"
                ];
                let advice = prose![
                    "choose an optimizer that keeps less than ",
                    name,
                    format!(", whose state takes {kept} from its first step on: "),
                    code("SGD"),
                    " without momentum keeps none, 8-bit Adam a quarter"
                ];
                (Some(line), advice)
            }
            Cause::NoBackward { kept, framework } => {
                let (kept, no_grad) = (size(*kept), format!("{framework}.no_grad()"));
                let line = prose![
                    "a graph kept ",
                    figure(&*kept),
                    ", and no backward pass follows: ",
                    code(&no_grad)
                ];
                let advice = prose![
                    "run it in a ",
                    code(&no_grad),
                    format!(" block: the graph keeps {kept} for a backward pass that does not follow")
                ];
                (Some(line), advice)
            }
            Cause::Unused {
                kept,
                name,
                execution_count,
            } => {
                let (kept, free) = (size(*kept), code(&format!("del {name}")));
                let since = execution_count.map_or_else(String::new, |n| format!(" since In [{n}]"));
                let line = prose![
                    "no cell has used ",
                    code(name),
                    since.clone(),
                    ": ",
                    free.clone(),
                    " frees ",
                    figure(&*kept)
                ];
                let advice = prose![
                    free,
                    format!(
                        " frees {kept}, more than was short, if you do not need it any more: no cell has \
                         used it{since}"
                    )
                ];
                (Some(line), advice)
            }
            Cause::SmallerStep => (
                None,
                "make the step smaller: a smaller batch (with gradient accumulation if its size matters), shorter sequences, lower precision, or no graph if no backward pass follows"
                    .into(),
            ),
            Cause::Traceback { kept } => {
                let kept = match kept {
                    HeldByError::Exactly(kept) => Some(size(*kept)),
                    HeldByError::UpTo(kept) => Some(format!("up to {}", size(*kept))),
                    HeldByError::Unknown => None,
                };
                let line = kept
                    .as_ref()
                    .map(|kept| prose![format!("the traceback keeps {kept}: "), traceback()]);
                let kept = kept.as_deref().unwrap_or("the tensors of its frames");
                let advice = prose![
                    traceback(),
                    format!(
                        ": the error keeps {kept} alive through its frames, until another error takes its place"
                    )
                ];
                (line, advice)
            }
            Cause::Unread => (
                None,
                prose![
                    code("%gpumem status"),
                    " says which devices are read, and why not the others"
                ],
            ),
        }
    }
}

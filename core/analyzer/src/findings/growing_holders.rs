//! Which names hold what a series kept.

mod branches;
mod from_looks;

use super::decision::NameCourse;
use super::suggest;
use super::{Finding, FindingDetails, FindingKind};
use crate::context::Context;
use crate::evidence::{Evidence, Statistic};
use crate::loop_place::{LoopPlace, LoopUnit};
use crate::names::{self, GrowingNames, NameHistory, NameKey};
use crate::reason::Reason;
use gpumem_heap::Trim;
use gpumem_model::holders::{Bound, Holder, Keeper, RootKind, variable_of};
use gpumem_model::recording::{DeviceIdx, Recording, RunIdx};
use gpumem_model::source_text;
use gpumem_model::units::Bytes;

pub(super) use from_looks::from_looks;

/// Growth with a name that holds it is a leak from this many runs on.
pub(super) const ENOUGH_RUNS: usize = 5;

/// A name that grows in each of this many runs collects, and the finding asks whether that is intended.
pub(super) const EARLY_RUNS: usize = 4;

/// A collection of fewer entries does not tell what each of them takes.
pub(super) const MIN_ENTRIES: u64 = 6;

/// A limit of the user's own that is so many times what is there may be meant for something else.
const FURTHEST_LIMIT: u64 = 64;

/// A graph is a name's own if the name retains this share of it.
const MIN_OWN: f64 = 0.8;

/// The function of a loop that is in none.
const MODULE: &str = "<module>";

/// What `lru_cache` holds at most if nobody says how many.
const DEFAULT_BOUND: u64 = 128;

/// The names that hold what runs kept: first those that collect it, then the most.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct GrowingHolders {
    /// Each with what it has more over all of the runs, and as the latest look found it.
    pub(super) holders: Vec<Holder>,
    /// What each of them does.
    courses: Vec<Course>,
    /// After how many of the runs there was a look.
    n_looks: usize,
    /// Names gained part of it, and too little to be called its holders.
    pub(super) has_part: bool,
    /// A cell reads what the first name collects, and then empties it: its graphs are there for a purpose.
    is_emptied: bool,
    /// A cell adds to it only what it does not have yet: it may be full soon.
    is_cache: bool,
    /// A cell makes the first anew of what it was and more.
    is_extended: bool,
    /// The first is a tensor with a graph of its own, which is made anew each time without what it was.
    is_replaced: bool,
    /// The cell makes the first anew in each run, as an empty collection or of what its loop collected.
    is_made_anew: bool,
    /// A cell takes older items out of the first again, at a size that is not known.
    pub(super) is_trimmed: bool,
}

/// What a name does from look to look.
#[derive(Debug, Clone, Copy, Default)]
struct Course {
    /// At how many looks it had more than at the one before, and it never had less.
    n_grown: usize,
    only_grows: bool,
    /// In each of them it had one tensor and nothing else.
    is_one_tensor: bool,
}

/// Which looks tell who holds what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Looks {
    /// Those after the runs.
    #[default]
    AfterRuns,
    /// The latest inside of each: it goes on, or what it kept is gone with it.
    InsideRuns,
}

impl GrowingHolders {
    /// Those of names that were followed: that they collect is known.
    pub(super) fn of_names(context: Context<'_>, growing: &GrowingNames) -> Self {
        let holders = from_looks::holders_of_names(context, growing);
        let n_looks = growing.runs.len();
        let course = Course {
            n_grown: n_looks,
            only_grows: true,
            is_one_tensor: false,
        };
        let courses = vec![course; holders.len()];
        Self::new(context.recording, holders, courses, n_looks)
    }

    fn new(
        recording: &Recording,
        mut holders: Vec<Holder>,
        courses: Vec<Course>,
        n_looks: usize,
    ) -> Self {
        let trim = holders.first().and_then(|it| suggest::trim(recording, it));
        if let (Some(Trim { most: Some(most) }), Some(first)) = (trim, holders.first_mut())
            && first.traits.bound.is_none()
        {
            let n = first.entries().0.max(1);
            first.traits.bound = Some(Bound { n, most }).filter(|_| n >= most / FURTHEST_LIMIT);
        }
        let first = holders.first();
        Self {
            is_trimmed: trim.is_some_and(|it| it.most.is_none()),
            is_emptied: first.is_some_and(|it| suggest::is_emptied(recording, it)),
            is_cache: first.is_some_and(|it| {
                it.what.starts_with("cache of ") || suggest::is_cache(recording, it)
            }),
            is_extended: courses.first().is_some_and(|it| it.is_one_tensor)
                && first.is_some_and(|it| suggest::is_extended(recording, it)),
            is_replaced: first
                .is_some_and(|it| has_own_graph(it) && suggest::is_replaced(recording, it)),
            holders,
            courses,
            n_looks,
            has_part: false,
            is_made_anew: false,
        }
    }

    /// A function that an iteration of a cell's loop calls begins anew in the next: one tensor that it has, and the
    /// graph of that, are the iteration's own.
    pub(super) fn take_loop(&mut self, recording: &Recording, place: &LoopPlace) {
        let is_cells = place.unit == LoopUnit::Iteration && place.file.is_empty();
        let is_called = |function: &str| {
            let definition = format!("def {function}(");
            place.function == MODULE || !recording.latest_texts().any(|it| it.contains(&definition))
        };
        let first = self.holders.first();
        let first = first.filter(|it| is_cells && it.is_local() && has_own_graph(it));
        let of_call = first.and_then(|it| it.name.rsplit_once(" in ")?.1.strip_suffix("()"));
        self.is_replaced |= of_call.is_some_and(is_called);
    }

    /// What its cell makes below a loop, of few storages for so many iterations, was made of what the loop collected:
    /// `df = pd.concat(chunks)`.
    pub(super) fn take_join(&mut self, recording: &Recording, below: &str, n_iterations: u64) {
        let first = self.holders.first();
        let first =
            first.filter(|it| it.kind == RootKind::Variable && it.traits.graph == Bytes::ZERO);
        self.is_made_anew = first.is_some_and(|it| {
            2 * it.traits.n_tensors <= n_iterations
                && source_text::binds(below, &it.name)
                && !suggest::is_extended(recording, it)
        });
    }

    /// A cell that begins with an empty collection collects nothing from run to run.
    pub(super) fn take_cell(&mut self, text: &str) {
        let first = self.holders.first();
        let first = first.filter(|it| it.kind == RootKind::Variable);
        self.is_made_anew = first.is_some_and(|it| source_text::begins_empty(text, &it.name));
    }

    fn first_course(&self) -> Course {
        self.courses.first().copied().unwrap_or_default()
    }

    /// With the attributes that grew in the place of their objects.
    pub(super) fn with_branches(
        self,
        context: Context<'_>,
        series: (&[RunIdx], DeviceIdx, Option<usize>),
        looks: Looks,
    ) -> Self {
        let mut found: Vec<(Holder, Course)> = Vec::new();
        for (holder, course) in self.holders.into_iter().zip(self.courses) {
            let branches = branches::branches_that_grew(context, series, looks, &holder, course);
            if branches.is_empty() {
                found.push((holder, course));
            }
            found.extend(branches);
        }
        let (holders, courses) = found.into_iter().unzip();
        Self {
            has_part: self.has_part,
            ..Self::new(context.recording, holders, courses, self.n_looks)
        }
    }

    /// One for each name, if several collect; other names are left out. For a loop, one look is enough: a collecting
    /// name has an entry from at least every second step.
    pub(super) fn each(
        &self,
        recording: &Recording,
        n_steps: Option<usize>,
        looks: Looks,
    ) -> Vec<Self> {
        let all = self.holders.iter().zip(&self.courses);
        let collecting = all.filter(|(holder, course)| match n_steps {
            Some(n_steps) => holder.traits.n_tensors >= branches::enough_entries(n_steps, looks),
            None => course.only_grows && course.n_grown > 1 && 2 * course.n_grown >= self.n_looks,
        });
        let each = collecting.map(|(holder, course)| {
            let (holders, courses) = (vec![holder.clone()], vec![*course]);
            Self::new(recording, holders, courses, self.n_looks)
        });
        let each: Vec<Self> = each.collect();
        if each.len() > 1 { each } else { Vec::new() }
    }

    /// What they say of growth: that a name of the user's, or IPython, collects most of what was
    /// kept, more after each run; or that the name does not collect, whatever grows.
    pub(super) fn course(&self, kept: Bytes) -> Option<(NameCourse, Evidence)> {
        let first = self.holders.first()?;
        let grown = first.grown.unwrap_or_default();
        let is_most = grown.as_f64() >= 0.5 * kept.as_f64();
        let is_named = first.kind.is_named() || first.kind.is_ipython();
        let of_first = self.first_course();
        let grows = is_named && is_most && of_first.n_grown == self.n_looks;
        let bound = first.bound().filter(|bound| bound.n <= bound.most);
        // The cache of a method keeps the objects, too: nobody chose that for so many.
        let is_chosen = |bound: &Bound| {
            first.traits.keeper != Some(Keeper::Class) || bound.most != DEFAULT_BOUND
        };
        let bound = bound.filter(is_chosen);
        let course = match bound {
            Some(bound) if is_most => NameCourse::Ends(fills(first, bound)),
            _ if is_most && (of_first.is_one_tensor && !self.is_extended || self.is_replaced) => {
                NameCourse::Ends(Reason::OneTensor)
            }
            _ if is_most && self.is_made_anew => NameCourse::Ends(Reason::NotCollected),
            _ if grows && self.n_looks > 1 => NameCourse::Collects,
            _ => NameCourse::Unclear,
        };
        let figure = Evidence {
            holds: course == NameCourse::Collects,
            ..Evidence::met(Statistic::Held, grown.as_f64(), 0.5 * kept.as_f64())
        };
        Some((course, figure))
    }

    /// They have more after each of these runs, which are enough of them: no need to wait for more.
    pub(super) fn prove(&self, n_runs: usize, course: NameCourse) -> bool {
        n_runs >= ENOUGH_RUNS && course == NameCourse::Collects && self.may_prove(n_runs)
    }

    /// So far there was a look after each of them, and what holds it is an accident.
    pub(super) fn may_prove(&self, n_runs: usize) -> bool {
        let is_each = self.n_looks + 1 >= n_runs && self.first_course().n_grown == self.n_looks;
        let is_accident = self.are_accident() && !self.is_cache && !self.is_registry();
        is_each && is_accident && !self.is_trimmed
    }

    /// The first is a dict of a class: a name that comes again takes the place of its entry.
    fn is_registry(&self) -> bool {
        let first = self.holders.first();
        first.is_some_and(|it| {
            it.traits.keeper == Some(Keeper::Class) && it.what.starts_with("dict")
        })
    }

    /// There is a name, and what it holds is an accident.
    pub(super) fn are_accident(&self) -> bool {
        !self.holders.is_empty() && self.is_accident(true)
    }

    /// Nobody meant to keep it: what has no name, either, where that is no allocator's doing.
    pub(super) fn is_accident(&self, on_accelerator: bool) -> bool {
        let first = self.holders.first();
        first.map_or(on_accelerator, |it| is_accident(it, self.is_emptied))
    }

    /// The first of them are objects that only refer to each other.
    pub(super) fn wait_for_collector(&self) -> bool {
        let first = self.holders.first();
        first.is_some_and(|it| it.kind == RootKind::CyclicGarbage)
    }

    /// The same, and the collector is off.
    pub(super) fn are_left_by_collector(&self) -> bool {
        let first = self.holders.first();
        first.is_some_and(|it| it.kind == RootKind::UncollectedGarbage)
    }

    /// There was a look after one of the runs.
    pub(super) fn is_looked_at(&self) -> bool {
        self.n_looks > 0
    }
}

/// One of these findings tells of growth on that device which that name holds.
pub(super) fn is_reported(
    names: &NameHistory,
    findings: &[Finding],
    device: DeviceIdx,
    name: &NameKey,
) -> bool {
    let is_it = |holder: &Holder| {
        let key = names.key(device, holder);
        let is_part = names::is_branch(&key) && variable_of(&key.1) == name.1;
        let rest = holder.path.strip_prefix(&*name.1);
        let is_main = names::is_branch(name)
            && rest.is_some_and(|rest| !rest.starts_with(source_text::is_name_letter));
        key == *name || (is_part || is_main) && key.0 == name.0
    };
    findings.iter().any(|finding| {
        let is_growth = matches!(finding.details, FindingDetails::Growth(_));
        let grows = is_growth && finding.device == device && finding.kind != FindingKind::Settled;
        grows && finding.holders.iter().any(is_it)
    })
}

/// Nobody means to keep what is kept there.
fn is_accident(holder: &Holder, is_emptied: bool) -> bool {
    let is_meant =
        matches!(holder.kind, RootKind::Variable | RootKind::ModuleGlobal) || holder.is_local();
    let traits = &holder.traits;
    // Who switched the collector off may collect now and then.
    let may_go = holder.kind == RootKind::UncollectedGarbage;
    let is_kept = (traits.graph > Bytes::ZERO && !is_emptied) || traits.keeper.is_some();
    !may_go && (!is_meant || is_kept)
}

/// One tensor with a graph, which no other name has as well.
fn has_own_graph(holder: &Holder) -> bool {
    let (traits, graph) = (&holder.traits, holder.traits.graph.as_f64());
    let is_variable = holder.kind == RootKind::Variable || holder.is_local();
    is_variable
        && traits.n_tensors == 1
        && graph > 0.0
        && holder.retained.as_f64() >= MIN_OWN * graph
}

/// How far it is filled, and what it has when it is full.
fn fills(holder: &Holder, bound: Bound) -> Reason {
    // Of entries that other names have, too, it retains nothing.
    let within = holder
        .traits
        .grows_in
        .as_ref()
        .filter(|it| it.bound == Some(bound));
    let (n, n_bytes) = match (within, holder.entries()) {
        (Some(within), _) => (bound.n.max(1), within.n_bytes.get()),
        (None, (n, n_bytes)) if n < bound.n && 2 * n >= bound.n => (n, n_bytes as u64),
        _ => (bound.n.max(1), holder.retained.get()),
    };
    let of_rest = (n_bytes % n).saturating_mul(bound.most) / n;
    let when_full = (n_bytes / n).saturating_mul(bound.most);
    Reason::Fills {
        n: bound.n,
        most: bound.most,
        when_full: Bytes::new(when_full.saturating_add(of_rest)),
    }
}

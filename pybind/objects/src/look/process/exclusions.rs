//! Which memory is left out of copies of this process: what looks do not read.
//!
//! Copying costs the user's process time for each page, and a look reads objects, not the contents of
//! arrays. After a slow copy, the copy itself reports which memory its look did not touch, and where
//! arrays lie in the rest. Memory that is new since then is copied, unless it is so much that guessing
//! is better: large mappings hold data as a rule. A copy that reaches for what was left out says so,
//! and the next copy has it.

#![expect(
    unsafe_code,
    reason = "the list of libraries, the place of this thread's stack"
)]

use std::ffi::{CStr, c_int, c_void};
use std::fs;
use std::ops::Range;
use std::sync::{Mutex, TryLockError};

use gpumem_process::addresses::AddressRanges;
use gpumem_process::mappings::Mapping;

use super::gaps;
use super::mappings;
use super::window::without_marks_of_others;
use crate::walk::WalkedMemory;
use gpumem_base::locks::lock;
use gpumem_base::pages::{anonymous, page_bytes};

/// Smaller arrays are not worth two calls.
const SMALLEST_ARRAY: usize = 4 << 20;
/// More ranges are not left out.
const MAX_RANGES: usize = 1 << 9;
/// A mark may split a mapping in three, and a process has at most 65,530.
const MAX_MAPPINGS: usize = 64_000;
/// More mappings take too long to list: marks of others are not checked then.
const MAX_LISTED: usize = 10_000;
/// If there is more new memory than this, guessing begins: a copy of so much takes some 10 ms.
const UNKNOWN: usize = 512 << 20;
/// Mappings of at least this size hold data as a rule: nobody reads them, and nobody will. Python's own
/// heap comes in steps of 1 MiB, arenas of `malloc` in steps of up to 64 MiB.
const LARGE: usize = (64 << 20) + 1;
/// This many adjacent mappings are excluded whatever their size.
const MANY: usize = 1000;

/// A look reads all of a list or a table, and next to nothing of what it does not need. The kernel
/// counts some pages as read that were not.
const UNREAD_PER_READ: usize = 64;
const MAX_NOISE: usize = 64 << 10;
/// The most missed addresses that are remembered.
const MAX_MISSED: usize = 64;

/// Libraries that have devices write to memory of the process, and may mark it for that.
const MARKING: [&str; 4] = ["libcuda.so", "libibverbs", "libhsakmt", "libhsa-runtime"];

static EXCLUSIONS: Mutex<Exclusions> = Mutex::new(Exclusions::new());

struct Exclusions {
    /// What the last look that reported did not read.
    unread: AddressRanges,
    /// Memory that looks have read.
    read: AddressRanges,
    /// Where copies needed what was left out, the latest last. What is around it is read.
    missed: Vec<usize>,
    /// What the latest copy leaves out.
    chosen: AddressRanges,
    /// Resident memory when this was known.
    known_bytes: usize,
    n_mappings: usize,
}

/// What a copy reports of its memory.
#[derive(Debug, Default, PartialEq, Eq)]
struct Survey {
    unread: AddressRanges,
    read: AddressRanges,
    n_mappings: usize,
}

/// What the copy that is made next leaves out. Signals are blocked.
pub(super) fn choose(resident: usize) -> AddressRanges {
    let mut known = match EXCLUSIONS.try_lock() {
        Ok(known) => known,
        Err(TryLockError::Poisoned(known)) => known.into_inner(),
        // In a forked process the lock may never be released.
        Err(TryLockError::WouldBlock) => return AddressRanges::EMPTY,
    };
    known.chosen = known.choice(resident);
    known.chosen.clone()
}

/// The copy needed what was left out at this address: the next one has it.
pub(in crate::look) fn miss(address: usize) {
    lock(&EXCLUSIONS).miss(address);
}

/// Takes in the report of a copy that was made when so much was resident.
pub(in crate::look) fn learn(report: &[u64], resident: usize) {
    if let Some(survey) = Survey::from_numbers(report) {
        lock(&EXCLUSIONS).learn(survey, resident);
    }
}

/// In a copy whose look is over: what it touched. Numbers for [`learn`].
pub(in crate::look) fn survey(touched: &WalkedMemory) -> Option<Vec<u64>> {
    let mappings = mappings::with_references().ok()?;
    let mut survey = Survey {
        n_mappings: mappings.len(),
        ..Survey::default()
    };
    let missed = EXCLUSIONS.try_lock().ok()?.missed.clone();
    let is_read = |mapping: &Mapping| {
        let range = &mapping.range;
        let first = touched
            .objects
            .partition_point(|object| *object < range.start);
        let has_object = touched.objects.get(first).is_some_and(|it| *it < range.end);
        let is_table = mapping.referenced > MAX_NOISE
            && mapping.referenced * UNREAD_PER_READ > mapping.resident;
        has_object || is_table || missed.iter().any(|address| range.contains(address))
    };
    // Neighbours that are left out together, how much of them is in memory, and how many they are.
    let mut together: Vec<(Range<usize>, usize, usize)> = Vec::new();
    for mapping in mappings.into_iter().filter(|it| it.is_private_memory) {
        if is_read(&mapping) {
            survey.read.insert(&mapping.range);
            continue;
        }
        match together.last_mut() {
            Some((range, resident, n)) if range.end == mapping.range.start => {
                range.end = mapping.range.end;
                *resident += mapping.resident;
                *n += 1;
            }
            _ => together.push((mapping.range, mapping.resident, 1)),
        }
    }
    let is_worth = |(_, resident, n): &(_, usize, usize)| *resident >= LARGE || *n >= MANY;
    let unread = together.into_iter().filter(is_worth);
    let left_out = gaps::left_out().iter().cloned();
    for range in unread.map(|(range, ..)| range).chain(left_out) {
        survey.unread.insert(&range);
    }
    for array in touched
        .arrays
        .iter()
        .filter(|it| it.len() >= SMALLEST_ARRAY)
    {
        let pages = whole_pages(array);
        if survey
            .read
            .iter()
            .any(|it| it.start <= pages.start && pages.end <= it.end)
        {
            survey.unread.insert(&pages);
        }
    }
    survey.unread.keep_largest(MAX_RANGES);
    survey.read.keep_largest(MAX_RANGES);
    Some(survey.to_numbers())
}

/// Without the first, in which an object's own head may be, and without what some objects count in
/// that lies elsewhere.
fn whole_pages(array: &Range<usize>) -> Range<usize> {
    const HEAD: usize = 64;
    let page = page_bytes();
    let start = (array.start / page + 1) * page;
    start..((array.end - HEAD) / page * page).max(start)
}

impl Exclusions {
    const fn new() -> Self {
        Self {
            unread: AddressRanges::EMPTY,
            read: AddressRanges::EMPTY,
            missed: Vec::new(),
            chosen: AddressRanges::EMPTY,
            known_bytes: 0,
            n_mappings: 0,
        }
    }

    fn choice(&self, resident: usize) -> AddressRanges {
        let is_guessing = resident.saturating_sub(self.known_bytes) > UNKNOWN;
        if self.unread.is_empty() && !is_guessing {
            return AddressRanges::EMPTY;
        }
        let mut choice = self.unread.clone();
        if self.n_mappings > MAX_LISTED {
            if is_guessing || others_may_mark() {
                return AddressRanges::EMPTY;
            }
        } else {
            if is_guessing {
                for guess in self.guesses() {
                    choice.insert(&guess);
                }
            }
            choice = without_marks_of_others(&choice);
        }
        choice.cut(&own_stack());
        choice.retain(|range| range.len() >= SMALLEST_ARRAY);
        choice.keep_largest(MAX_RANGES);
        if self.n_mappings + 2 * choice.len() > MAX_MAPPINGS {
            return AddressRanges::EMPTY;
        }
        choice
    }

    /// Large mappings of which nothing is known.
    fn guesses(&self) -> Vec<Range<usize>> {
        let mappings = mappings::all().unwrap_or_default().into_iter();
        let is_data = |it: &Mapping| {
            it.is_private_memory && it.is_writable && it.name.is_empty() && it.range.len() >= LARGE
        };
        let unknown = mappings.filter(is_data).flat_map(|it| {
            let not_read = self.read.gaps_in(&it.range).into_iter();
            not_read.flat_map(|gap| self.unread.gaps_in(&gap))
        });
        unknown.filter(|range| range.len() >= LARGE).collect()
    }

    fn miss(&mut self, address: usize) {
        if let Some(range) = self.chosen.remove_at(address) {
            self.unread.remove_overlapping(&range);
            self.read.insert(&range);
            if self.missed.len() == MAX_MISSED {
                self.missed.remove(0);
            }
            self.missed.push(address);
        }
    }

    fn learn(&mut self, survey: Survey, resident: usize) {
        self.unread = survey.unread;
        self.read = survey.read;
        self.known_bytes = resident;
        self.n_mappings = survey.n_mappings;
    }
}

impl Survey {
    fn to_numbers(&self) -> Vec<u64> {
        let mut numbers = vec![self.n_mappings, self.unread.len()];
        for range in self.unread.iter().chain(self.read.iter()) {
            numbers.extend([range.start, range.end]);
        }
        numbers.into_iter().map(|number| number as u64).collect()
    }

    fn from_numbers(numbers: &[u64]) -> Option<Self> {
        let (&[n_mappings, n_unread], bounds) = numbers.split_first_chunk()?;
        let (bounds, []) = bounds.as_chunks() else {
            return None;
        };
        let (unread, read) = bounds.split_at_checked(usize::try_from(n_unread).ok()?)?;
        let ranges = |bounds: &[[u64; 2]]| {
            let ranges = bounds
                .iter()
                .map(|[start, end]| *start as usize..*end as usize);
            ranges.collect()
        };
        Some(Self {
            unread: ranges(unread),
            read: ranges(read),
            n_mappings: usize::try_from(n_mappings).ok()?,
        })
    }
}

/// The stack on which this thread runs, here and in the copy. The thread's own variables lie at its
/// end, except on the main thread, whose stack is never left out.
fn own_stack() -> Range<usize> {
    const BELOW: usize = 1 << 20;
    const LONGEST: usize = 1 << 30;
    let here = 0_u8;
    let here = (&raw const here) as usize;
    // SAFETY: it only returns the address of this thread's error number.
    let variables = unsafe { libc::__errno_location() } as usize;
    let is_above = (here..here + LONGEST).contains(&variables);
    let end = if is_above { variables } else { here };
    here - BELOW..end + BELOW
}

/// Some library is loaded that may have marked memory.
fn others_may_mark() -> bool {
    // SAFETY: the callback is handed this variable, and lives as long as the call.
    unsafe {
        let mut is_loaded = false;
        libc::dl_iterate_phdr(Some(is_marking), (&raw mut is_loaded).cast());
        is_loaded
    }
}

// SAFETY: called by `dl_iterate_phdr`, with the variable of `others_may_mark`.
unsafe extern "C" fn is_marking(
    library: *mut libc::dl_phdr_info,
    _size: usize,
    is_loaded: *mut c_void,
) -> c_int {
    // SAFETY: a name that ends with a zero, or null, of a library that stays loaded meanwhile.
    let name = unsafe {
        let name = (*library).dlpi_name;
        if name.is_null() {
            c""
        } else {
            CStr::from_ptr(name)
        }
    };
    let name = name.to_string_lossy();
    let is_it = MARKING.iter().any(|marking| name.contains(marking));
    if is_it {
        // SAFETY: the variable of `others_may_mark`.
        unsafe { *is_loaded.cast::<bool>() = true };
    }
    c_int::from(is_it)
}

/// What this process has in pages of its own.
pub(super) fn resident_bytes() -> Option<usize> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    usize::try_from(anonymous(&text)?.get()).ok()
}

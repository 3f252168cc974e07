//! A timeline's file → its rows.

use serde::de::{Error, SeqAccess, Visitor};

use super::model::{LevelsByCategory, MemoryTimeline, TimelineTally};
use crate::json_file::{LARGEST_RATIO, Scalar, expecting, own_seed};

/// A row of the raw form: time in nanoseconds, action, bytes, category.
const N_RAW: usize = 4;

/// Reads a timeline: its second item decides which form it has.
pub(super) struct TimelineSeed {
    /// The memory that lists of numbers may take.
    pub(super) n_left: usize,
}

own_seed!(TimelineSeed, deserialize_seq);

impl<'de> Visitor<'de> for TimelineSeed {
    type Value = MemoryTimeline;

    expecting!("a memory timeline of PyTorch, which is a list of lists");

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<MemoryTimeline, A::Error> {
        let mut tally = TimelineTally::default();
        let n_left = self.n_left;
        let Some(first) = items.next_element_seed(NumberList { n_left })? else {
            return Ok(tally.finish());
        };
        let second = items.next_element_seed(SecondItem {
            n_left: n_left.saturating_sub(NUMBER * first.len()),
            first: &first,
            tally: &mut tally,
        })?;
        if second.is_none() {
            raw_row(&first, &mut tally)?;
        }
        drop(first);
        while let Some(row) = items.next_element_seed(NumberList { n_left })? {
            raw_row(&row, &mut tally)?;
        }
        Ok(tally.finish())
    }
}

/// The second item: a row of the raw form, or the sizes at the times that came first.
struct SecondItem<'t> {
    n_left: usize,
    first: &'t [Scalar],
    tally: &'t mut TimelineTally,
}

own_seed!(SecondItem<'_>, deserialize_seq);

impl<'de> Visitor<'de> for SecondItem<'_> {
    type Value = ();

    expecting!("a row, or the list of sizes");

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut numbers = Vec::new();
        let n_left = self.n_left;
        let mut times = self.first.iter();
        // Memory from before the start has the time of the first change.
        let mut is_before = self.first.first() == self.first.get(1);
        while let Some(item) = items.next_element_seed(ItemSeed { n_left })? {
            match item {
                NumberOrList::Number(number) => push(&mut numbers, number, n_left)?,
                NumberOrList::List(sizes) => {
                    let at = times.next().and_then(|time| time.thousandfold());
                    let at = at.filter(|_| !std::mem::take(&mut is_before));
                    self.tally.levels(at, levels(&sizes));
                }
            }
        }
        if numbers.is_empty() {
            return Ok(());
        }
        raw_row(self.first, self.tally)?;
        raw_row(&numbers, self.tally)
    }
}

/// The first size is where the picture's lowest area begins: always 0.
fn levels(sizes: &[Scalar]) -> LevelsByCategory {
    let mut levels = LevelsByCategory::default();
    for (level, size) in levels.iter_mut().zip(sizes.iter().skip(1)) {
        *level = size.int().unwrap_or(0);
    }
    levels
}

fn raw_row<E: Error>(row: &[Scalar], tally: &mut TimelineTally) -> Result<(), E> {
    let numbers = row.iter().filter_map(|number| number.int());
    // No list of them: a row may be as long as the file.
    let n_numbers = numbers.clone().count();
    let first: Vec<i64> = numbers.take(N_RAW).collect();
    let ([at, _, bytes, category], N_RAW) = (&*first, n_numbers) else {
        return Err(E::custom(format_args!(
            "not a memory timeline of PyTorch: a row has {n_numbers} numbers, not {N_RAW}"
        )));
    };
    let (at, bytes, category) = (*at, *bytes, *category);
    tally.change(Some(at).filter(|at| *at >= 0), bytes, category);
    Ok(())
}

/// A number, or a list of numbers.
enum NumberOrList {
    Number(Scalar),
    List(Vec<Scalar>),
}

/// Reads an [`NumberOrList`].
struct ItemSeed {
    n_left: usize,
}

own_seed!(ItemSeed, deserialize_any);

impl<'de> Visitor<'de> for ItemSeed {
    type Value = NumberOrList;

    expecting!("a number, or a list of numbers");

    fn visit_i64<E: Error>(self, number: i64) -> Result<NumberOrList, E> {
        Ok(NumberOrList::Number(Scalar::Int(number)))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<NumberOrList, E> {
        Ok(NumberOrList::Number(Scalar::Int(
            i64::try_from(number).unwrap_or(i64::MAX),
        )))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<NumberOrList, E> {
        Ok(NumberOrList::Number(Scalar::Float(number)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<NumberOrList, A::Error> {
        let n_left = self.n_left;
        NumberList { n_left }
            .visit_seq(items)
            .map(NumberOrList::List)
    }
}

/// Bytes of a number in a list that doubles as it grows.
const NUMBER: usize = 2 * size_of::<Scalar>();

/// Reads a list of numbers.
struct NumberList {
    n_left: usize,
}

own_seed!(NumberList, deserialize_seq);

impl<'de> Visitor<'de> for NumberList {
    type Value = Vec<Scalar>;

    expecting!("a list of numbers");

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<Scalar>, A::Error> {
        let mut numbers = Vec::new();
        while let Some(number) = items.next_element()? {
            push(&mut numbers, number, self.n_left)?;
        }
        Ok(numbers)
    }
}

fn push<E: Error>(numbers: &mut Vec<Scalar>, number: Scalar, n_left: usize) -> Result<(), E> {
    numbers.push(number);
    if NUMBER * numbers.len() <= n_left {
        return Ok(());
    }
    Err(E::custom(format_args!(
        "a list of {} numbers needs more than {LARGEST_RATIO} times the memory of the file",
        numbers.len()
    )))
}

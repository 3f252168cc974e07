//! Profiled calls: one column per figure that a rule uses.

use std::collections::HashMap;
use std::sync::Arc;

/// Larger figures cannot be judged, because the products of their squares overflow.
const LARGEST: f64 = 1e60;

/// One profiled call. Sizes are bytes, times are seconds; all may be any float, because users pass them
/// in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Call {
    /// The function's number, from [`Calls::function`].
    pub function: u32,
    /// How long it took.
    pub seconds: f64,
    /// When it began.
    pub began_at: f64,
    /// When it ended.
    pub ended_at: f64,
    /// Allocated after the call minus allocated before.
    pub diff: f64,
    /// Highest allocated during the call minus allocated before.
    pub rise: f64,
    /// Allocated after the call.
    pub after: f64,
    /// Reserved after the call.
    pub reserved: f64,
    /// What the call allocated; never negative.
    pub allocated: f64,
}

/// Calls in the order made, with the names of their functions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calls {
    functions: Vec<Arc<str>>,
    known: HashMap<Arc<str>, u32>,
    pub(super) function: Vec<u32>,
    pub(super) seconds: Vec<f64>,
    pub(super) began_at: Vec<f64>,
    pub(super) diff: Vec<f64>,
    pub(super) rise: Vec<f64>,
    pub(super) after: Vec<f64>,
    pub(super) reserved: Vec<f64>,
    pub(super) allocated: Vec<f64>,
    pub(super) ended_at: Option<f64>,
}

impl Calls {
    /// No calls yet, with room for `n`.
    pub fn with_capacity(n: usize) -> Self {
        Self {
            function: Vec::with_capacity(n),
            seconds: Vec::with_capacity(n),
            began_at: Vec::with_capacity(n),
            diff: Vec::with_capacity(n),
            rise: Vec::with_capacity(n),
            after: Vec::with_capacity(n),
            reserved: Vec::with_capacity(n),
            allocated: Vec::with_capacity(n),
            ..Self::default()
        }
    }

    /// The number of the function with that name; a new name gets the next number.
    pub fn function(&mut self, name: &str) -> u32 {
        if let Some(idx) = self.known.get(name) {
            return *idx;
        }
        let idx = u32::try_from(self.functions.len()).expect("fewer than 2^32 names");
        let name: Arc<str> = name.into();
        self.functions.push(Arc::clone(&name));
        self.known.insert(name, idx);
        idx
    }

    /// Adds a call.
    pub fn push(&mut self, call: Call) {
        self.function.push(call.function);
        self.seconds.push(call.seconds);
        self.began_at.push(call.began_at);
        self.diff.push(call.diff);
        self.rise.push(call.rise);
        self.after.push(call.after);
        self.reserved.push(call.reserved);
        self.allocated.push(call.allocated);
        self.ended_at = Some(call.ended_at);
    }

    /// How many calls there are.
    pub fn len(&self) -> usize {
        self.function.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.function.is_empty()
    }

    /// One sentence for each figure that is not a usable number in some calls, so that its rules skip them.
    pub fn left_out(&self) -> Vec<String> {
        let figures = [
            ("time taken", &self.seconds),
            ("time of beginning", &self.began_at),
            ("allocated before or after", &self.diff),
            ("allocated at the peak", &self.rise),
            ("reserved", &self.reserved),
            ("size of what was allocated", &self.allocated),
        ];
        let words = |(name, figures): (&str, &Vec<f64>)| {
            let n = figures.iter().filter(|it| !is_usable(**it)).count();
            (n > 0).then(|| {
                format!("{name}: no usable number in {n} calls, which its rules pass over")
            })
        };
        figures.into_iter().filter_map(words).collect()
    }

    /// How many names there are.
    pub(super) fn n_functions(&self) -> usize {
        self.functions.len()
    }

    pub(super) fn name(&self, function: usize) -> String {
        self.functions[function].as_ref().to_owned()
    }

    pub(super) fn names(&self, functions: impl Iterator<Item = usize>) -> Vec<String> {
        functions.map(|function| self.name(function)).collect()
    }

    /// The function of each call beside one of its figures, where that is usable.
    pub(super) fn usable<'a>(
        &'a self,
        figures: &'a [f64],
    ) -> impl Iterator<Item = (usize, f64)> + Clone + 'a {
        self.both(figures, figures)
            .map(|(function, it, _)| (function, it))
    }

    /// The function of each call beside two of its figures, where both are usable.
    pub(super) fn both<'a>(
        &'a self,
        one: &'a [f64],
        other: &'a [f64],
    ) -> impl Iterator<Item = (usize, f64, f64)> + Clone + 'a {
        self.function
            .iter()
            .zip(one.iter().zip(other))
            .filter(|(_, (one, other))| is_usable(**one) && is_usable(**other))
            .map(|(&function, (&one, &other))| (function as usize, one, other))
    }
}

/// A finite number whose powers are finite too.
pub(super) fn is_usable(figure: f64) -> bool {
    figure.abs() <= LARGEST
}

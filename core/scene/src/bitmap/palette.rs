//! A few colours in place of all: small in a saved notebook.

use std::collections::BTreeMap;

use crate::theme::Rgb;

/// Enough for smooth letters.
pub(super) const N_COLOURS: usize = 64;

/// What the indices of a picture stand for.
pub(super) struct Palette(pub(super) Vec<Rgb>);

impl Palette {
    /// Nearer colours than this, in steps of a channel, are indistinguishable: the edge of a
    /// letter of one of our colours keeps three or four shades, at twice the pixels as many
    /// as an eye sees. Every shade more makes the picture larger.
    const STEP: i32 = 48;

    /// The `flat` colours, and the most frequent of those between them.
    pub(super) fn new(pixels: &[Rgb], flat: &[Rgb]) -> Self {
        let mut by_count: Vec<(Rgb, usize)> = counts(pixels).into_iter().collect();
        by_count.sort_by_key(|(colour, n)| (std::cmp::Reverse(*n), *colour));
        let mut chosen = flat.to_vec();
        for (colour, _) in by_count {
            let told_apart = |other: &Rgb| distance(colour, *other) > Self::STEP * Self::STEP;
            if chosen.len() < N_COLOURS && chosen.iter().all(told_apart) {
                chosen.push(colour);
            }
        }
        Self(chosen)
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|c| [c.0, c.1, c.2]).collect()
    }

    pub(super) fn indices(&self, pixels: &[Rgb]) -> Vec<u8> {
        let nearest: BTreeMap<Rgb, u8> = counts(pixels)
            .into_keys()
            .map(|colour| {
                let entries = self.0.iter().zip(0_u8..);
                let best = entries.min_by_key(|(entry, _)| distance(colour, **entry));
                (colour, best.map_or(0, |(_, idx)| idx))
            })
            .collect();
        runs(pixels)
            .flat_map(|run| std::iter::repeat_n(nearest[&run[0]], run.len()))
            .collect()
    }
}

fn counts(pixels: &[Rgb]) -> BTreeMap<Rgb, usize> {
    let mut counts = BTreeMap::new();
    for run in runs(pixels) {
        *counts.entry(run[0]).or_default() += run.len();
    }
    counts
}

/// Neighbours of one colour: most of a chart is flat.
fn runs(pixels: &[Rgb]) -> impl Iterator<Item = &[Rgb]> {
    pixels.chunk_by(|a, b| a == b)
}

fn distance(a: Rgb, b: Rgb) -> i32 {
    let square = |a: u8, b: u8| (i32::from(a) - i32::from(b)).pow(2);
    square(a.0, b.0) + square(a.1, b.1) + square(a.2, b.2)
}

//! The parts of a run that the user's code named.

use super::history::{Annotation, Stage};
use crate::units::Nanos;

/// A named part of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labelled {
    /// Its name.
    pub name: String,
    /// When it began.
    pub started: Nanos,
    /// When it ended.
    pub ended: Nanos,
    /// The part that it is nested in: a position in the list.
    pub parent: Option<usize>,
}

/// The parts between a name's start and its end, in the order in which they began.
///
/// At most `limit` of them, the outer and earlier ones first, and how many more there are. Parts that
/// began before the history or have not ended with it are left out, because their extent is unknown.
pub fn labels(annotations: &[Annotation], limit: usize) -> (Vec<Labelled>, usize) {
    let mut found: Vec<Labelled> = Vec::new();
    // How deep each is nested, and whether it has ended.
    let mut states: Vec<(usize, bool)> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for annotation in annotations {
        match annotation.stage {
            Stage::Start => {
                states.push((open.len(), false));
                found.push(Labelled {
                    name: annotation.name.clone(),
                    started: annotation.at,
                    ended: annotation.at,
                    parent: open.last().copied(),
                });
                open.push(found.len() - 1);
            }
            Stage::End => {
                let of_name = |idx: &usize| found[*idx].name == annotation.name;
                // What is still open inside of it has lost its end.
                if let Some(depth) = open.iter().rposition(of_name) {
                    let idx = open[depth];
                    open.truncate(depth);
                    found[idx].ended = annotation.at;
                    states[idx].1 = true;
                }
            }
        }
    }
    kept(&found, &states, limit)
}

fn kept(found: &[Labelled], states: &[(usize, bool)], limit: usize) -> (Vec<Labelled>, usize) {
    let mut order: Vec<usize> = (0..found.len()).filter(|idx| states[*idx].1).collect();
    order.sort_by_key(|idx| (states[*idx].0, *idx));
    let n_more = order.len().saturating_sub(limit);
    order.truncate(limit);
    order.sort_unstable();
    let position = |idx: usize| order.binary_search(&idx).ok();
    let labelled = order.iter().map(|idx| {
        let mut around = std::iter::successors(found[*idx].parent, |parent| found[*parent].parent);
        Labelled {
            parent: around.find_map(position),
            ..found[*idx].clone()
        }
    });
    (labelled.collect(), n_more)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a(` begins a part, `a)` ends it; each at its place in the line.
    fn annotations(line: &str) -> Vec<Annotation> {
        (0..)
            .zip(line.split_whitespace())
            .map(|(at, word)| Annotation {
                at: Nanos::new(at),
                stage: match &word[1..] {
                    "(" => Stage::Start,
                    _ => Stage::End,
                },
                name: word[..1].to_owned(),
            })
            .collect()
    }

    #[track_caller]
    fn check(line: &str, limit: usize, expected: &str, n_more: usize) {
        let (found, more) = labels(&annotations(line), limit);
        let shown = found.iter().map(|part| {
            let around = part.parent.map_or("", |idx| found[idx].name.as_str());
            let (from, to) = (part.started.get(), part.ended.get());
            format!("{around}/{}:{from}-{to}", part.name)
        });
        assert_eq!(shown.collect::<Vec<_>>().join(" "), expected);
        assert_eq!(more, n_more);
    }

    #[test]
    fn names_nest() {
        check("a( b( b) b( b) a)", 9, "/a:0-5 a/b:1-2 a/b:3-4", 0);
        check("a( a( a) a)", 9, "/a:0-3 a/a:1-2", 0);
    }

    #[test]
    fn what_has_lost_an_end_is_left_out() {
        check("b) a( a) b(", 9, "/a:1-2", 0);
        check("a( b( c( c) a)", 9, "/a:0-4 a/c:2-3", 0);
    }

    #[test]
    fn of_too_many_the_outer_ones_stay() {
        check("a( b( b) b( b) a) c( c)", 2, "/a:0-5 /c:6-7", 2);
    }
}

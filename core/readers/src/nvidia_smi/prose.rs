//! Lines that a script or another monitor wrote for people: `[12:00:00] GPU 0  Memory: 512/8192 MiB`.
//!
//! A level is `used / total` with a unit, or a figure with a unit after a name of memory.

use super::columns::SmiColumn;
use super::names;
use super::row::SmiRow;
use crate::level_log::{Ids, WallTime};
use gpumem_model::units::Bytes;

/// The time that a line begins with, and the rest of the line.
pub(super) fn time_in(text: &str) -> Option<(WallTime, &str)> {
    if let Some((inside, behind)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        let time = WallTime::parse(&inside.replace('@', " "))?;
        return Some((time, behind));
    }
    // The header that `watch` writes.
    let text = match text.strip_prefix("Every ") {
        Some(_) => text.rsplit_once(": ")?.1,
        None => text,
    };
    let is_behind = |c: char| c.is_whitespace() || c == '|' || c == ';';
    let ends = text.match_indices(is_behind).map(|(at, _)| at);
    let ends = ends.take(N_WORDS_OF_TIME).chain([text.len()]);
    ends.into_iter().find_map(|end| {
        let (before, behind) = text.split_at(end);
        let before = before.trim_end_matches([':', ',', '-', ' ']);
        // A number alone is ambiguous.
        let time = before.contains(':').then(|| WallTime::parse(before))??;
        let half = behind.trim_start().get(..2).unwrap_or_default();
        if ["am", "pm"].contains(&half.to_ascii_lowercase().as_str()) {
            let end = text.len() - behind.trim_start().len() + half.len();
            let (before, behind) = text.split_at(end);
            Some((WallTime::parse(before)?, behind))
        } else {
            Some((time, behind))
        }
    })
}

/// A host's name may precede a time of seven words.
const N_WORDS_OF_TIME: usize = 9;

/// A number in a line, with its unit.
struct ProseFigure<'t> {
    /// The text between it and the previous number.
    before: &'t str,
    number: &'t str,
    unit: Option<u64>,
}

impl ProseFigure<'_> {
    fn bytes(&self, unit: u64) -> Option<Bytes> {
        let number: f64 = self.number.parse().ok()?;
        Some(Bytes::new((number * unit as f64).round() as u64))
    }
}

/// A line's reading of a device, if it has a level.
pub(super) fn row(text: &str) -> Option<SmiRow<'_>> {
    let figures = figures(text);
    let mut row = SmiRow::default();
    for (used, total) in figures.iter().zip(figures.iter().skip(1)) {
        let is_pair = matches!(total.before.trim(), "/" | "of");
        let Some(unit) = total.unit.filter(|_| is_pair) else {
            continue;
        };
        let (used, total) = (used.bytes(used.unit.unwrap_or(unit))?, total.bytes(unit)?);
        if used <= total {
            (row.level, row.total) = (Some(Ok(used)), Some(total));
            break;
        }
    }
    if row.level.is_none() {
        labelled(&figures, &mut row);
    }
    let is_known = row.used().is_some();
    row.ids = ids(text);
    is_known.then_some(row)
}

/// Takes the figures after a name of memory.
fn labelled(figures: &[ProseFigure<'_>], row: &mut SmiRow<'_>) {
    let mut is_behind_memory = false;
    for figure in figures {
        let Some(unit) = figure.unit else { continue };
        let is_end = |c: char| ",;|>%()[]".contains(c);
        let label = figure.before.rsplit(is_end).next().unwrap_or_default();
        let Some(bytes) = figure.bytes(unit) else {
            continue;
        };
        let kind = names::level_before_figure(label, is_behind_memory);
        is_behind_memory |= kind.is_level();
        match kind {
            SmiColumn::Used if row.level.is_none() => row.level = Some(Ok(bytes)),
            SmiColumn::Total if row.total.is_none() => row.total = Some(bytes),
            SmiColumn::Free if row.free.is_none() => row.free = Some(bytes),
            _ => (),
        }
    }
}

fn figures(text: &str) -> Vec<ProseFigure<'_>> {
    let mut figures = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, behind) = rest.split_at(at);
        let is_digit = |c: char| c.is_ascii_digit() || c == '.';
        let end = behind.find(|c: char| !is_digit(c)).unwrap_or(behind.len());
        let (number, after) = behind.split_at(end);
        let spaced = after.trim_start_matches(' ');
        let n_letters = spaced
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(spaced.len());
        let (unit, after_unit) = spaced.split_at(n_letters);
        // `MB/s` is a rate.
        let is_rate = after_unit.starts_with("/s");
        let unit = unit_of(unit).filter(|_| !is_rate);
        let is_in_word = before.ends_with(|c: char| c.is_alphanumeric() || c == '.');
        rest = if unit.is_some() { after_unit } else { after };
        if !is_in_word {
            figures.push(ProseFigure {
                before,
                number,
                unit,
            });
        }
    }
    figures
}

fn unit_of(text: &str) -> Option<u64> {
    match text {
        "M" => Some(1 << 20),
        "G" => Some(1 << 30),
        _ => super::quantity::unit(text),
    }
}

/// `[0] NVIDIA …`, `GPU 0: …`, `cuda:0 …`.
fn ids(text: &str) -> Ids<'_> {
    let behind_time = time_in(text).map_or(text, |(_, behind)| behind);
    let in_brackets = || {
        let (inside, _) = behind_time
            .trim_start()
            .strip_prefix('[')?
            .split_once(']')?;
        inside
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then_some(inside)
    };
    let named = || {
        let lower = behind_time.to_ascii_lowercase();
        ["gpu", "cuda", "device"].into_iter().find_map(|name| {
            let at = lower.find(name)? + name.len();
            let behind = behind_time
                .get(at..)?
                .trim_start_matches([' ', ':', '#', '=', '_', '[']);
            let end = behind
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(behind.len());
            let (number, after) = behind.split_at(end);
            // `GPU: 45 %` is a load.
            let is_figure = after.starts_with(|c: char| c == '.' || c.is_alphanumeric())
                || after.trim_start().starts_with(['%', '°']);
            ((1..=3).contains(&end) && !is_figure).then_some(number)
        })
    };
    let number = in_brackets()
        .filter(|it| (1..=3).contains(&it.len()))
        .or_else(named);
    Ids {
        number,
        ..Ids::default()
    }
}

//! Since which run a name holds what it holds, as far as looks tell.

use gpumem_heap::{CellText, Holders};
use gpumem_model::holders::{Holder, variable_of};
use gpumem_model::recording::{DeviceIdx, Recording, RunIdx};
use gpumem_model::source_text::has_word;
use gpumem_model::units::Bytes;

/// A look that finds this share of it new saw it come.
const MOST: f64 = 0.5;

/// The run after which a look first found most of what a name has on a device; of the looks after runs before
/// `before`, if that is given. `None` if it came bit by bit, or was there when recording began.
pub(crate) fn held_since(
    recording: &Recording,
    device: DeviceIdx,
    holder: &Holder,
    n_bytes: Bytes,
    before: Option<RunIdx>,
) -> Option<RunIdx> {
    let looks = recording.looks(device).rev();
    let looks = looks.filter(|(run, _)| before.is_none_or(|before| *run < before));
    let mut looks = looks.peekable();
    while let Some((run, look)) = looks.next() {
        let found = look.roots.iter().chain(&look.sharing);
        let mut found = found.filter(|it| it.kind == holder.kind);
        // Of earlier looks, a recording only keeps what grew.
        let Some(found) = found.find(|it| it.name == holder.variable()) else {
            continue;
        };
        let earlier = looks.peek().map(|(run, _)| *run);
        match found.fresh {
            Some(fresh) if fresh.as_f64() >= MOST * n_bytes.as_f64() => {
                return Some(last_naming(recording, earlier, run, &found.name));
            }
            Some(_) => {}
            // The first look has none before it to be compared with.
            None if found.retained.as_f64() < MOST * n_bytes.as_f64() => return None,
            None => {
                let run = last_naming(recording, earlier, run, &found.name);
                let made = recording.run(run);
                let levels = made.levels_on(device);
                let before = levels.and_then(|it| it.before.total(|levels| &levels.allocated));
                let is_later = before.is_some_and(|it| it.as_f64() < MOST * n_bytes.as_f64());
                let text = CellText::read(recording.text(made).unwrap_or_default());
                let is_bound = text.own.get(&found.name).is_some_and(|it| it.is_bound);
                return (is_later || is_bound).then_some(run);
            }
        }
    }
    None
}

/// If runs between two looks had none of their own: the last of them whose text has the name.
fn last_naming(recording: &Recording, earlier: Option<RunIdx>, run: RunIdx, name: &str) -> RunIdx {
    let run = recording.outermost(run);
    let first = earlier.map_or(0, |it| recording.outermost(it).get() + 1);
    let runs = recording.runs().get(first..=run.get()).unwrap_or_default();
    let names = |text: &str| has_word(text, variable_of(name));
    let mut naming = runs
        .iter()
        .rev()
        .filter(|it| it.parent.is_none() && recording.text(it).is_some_and(names));
    naming.next().map_or(run, |it| it.idx)
}

/// Notes in what a look found now since when each name holds it: [`HolderOrigin::since`](gpumem_model::holders::HolderOrigin::since).
pub fn note_since(recording: &Recording, found: &mut Holders) {
    for shelf in &mut found.devices {
        let mut devices = recording.devices().iter();
        let Some(device) = devices.find(|it| it.key.as_str() == shelf.device) else {
            continue;
        };
        for holder in &mut shelf.roots {
            let run = held_since(recording, device.idx, holder, holder.retained, None);
            holder.origin.since = run.and_then(|run| recording.run(run).execution_count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{look, run, session};
    use gpumem_model::holders::{DeviceHolders, RootKind};

    /// Checks since which run `model` holds the 700 MiB that the first run kept. A look has its run, the size of
    /// `model` and its growth.
    #[track_caller]
    fn check(cells: &[&str], looks: &[(u32, u64, Option<u64>)], expected: Option<u32>) {
        let plays = [run(700), run(0)];
        let plays = |idx: usize| std::slice::from_ref(&plays[idx.min(1)]);
        let cells = cells.iter().enumerate();
        let cells: Vec<_> = cells.map(|(idx, text)| (*text, plays(idx))).collect();
        let (mut recording, _) = session(&cells);
        let model = |mib, fresh_mib: Option<u64>| Holder {
            fresh: fresh_mib.map(Bytes::mib),
            ..Holder::new(RootKind::Variable, "model", Bytes::mib(mib))
        };
        for (run, mib, fresh_mib) in looks {
            let holders = DeviceHolders {
                device: "sim:0".to_owned(),
                roots: vec![model(*mib, *fresh_mib)],
                ..DeviceHolders::default()
            };
            look(&mut recording, RunIdx(*run), None, holders);
        }
        let model = model(700, None);
        let since = held_since(&recording, DeviceIdx(0), &model, model.retained, None);
        assert_eq!(since, expected.map(RunIdx));
    }

    #[test]
    fn a_name_holds_since_the_look_that_found_most_of_it_new() {
        let cells = ["import f", "model = f()", "g()", "g()", "g()", "g()", "g()"];
        let (none, all, rest) = ((0, 1, None), (700, Some(700)), (709, Some(9)));
        check(
            &cells,
            &[none, (1, all.0, all.1), (2, rest.0, rest.1)],
            Some(1),
        );
        let unchanged = (3..7).map(|run| (run, 700, Some(0)));
        let looks: Vec<_> = [none, (1, all.0, all.1)]
            .into_iter()
            .chain(unchanged)
            .collect();
        check(&cells, &looks, Some(1));
        // The run that had no look of its own is known by its text.
        check(
            &cells,
            &[none, (2, all.0, all.1), (3, rest.0, rest.1)],
            Some(1),
        );
        let bit_by_bit = [
            (1, 234, Some(233)),
            (2, 467, Some(233)),
            (3, 700, Some(233)),
        ];
        check(&cells, &[&[none], &bit_by_bit[..]].concat(), None);
        check(&cells, &[], None);
    }

    #[test]
    fn what_the_first_look_finds_came_with_the_run_that_made_it() {
        let seen = (700, None);
        // Its text says so, or the device had nothing before.
        check(&["f()", "model = g()"], &[(1, seen.0, seen.1)], Some(1));
        check(&["setup()", "g()"], &[(0, seen.0, seen.1)], Some(0));
        check(&["f()", "g(model)"], &[(1, seen.0, seen.1)], None);
    }
}

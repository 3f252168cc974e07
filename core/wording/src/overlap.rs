//! What a level moved by while several runs were under way.

use super::code;
use gpumem_model::recording::{Recording, Run};
use gpumem_model::source_text;
use gpumem_model::units::{ByteDelta, Units};

/// The runs beside one: `In [7]`, `In [7] and epoch`, `3 other runs`.
///
/// ```
/// use gpumem_model::recording::RunIdx;
/// use gpumem_wording::others;
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/recordings/leaking.rs")); }
/// # use example::leaking;
///
/// let recording = leaking();
/// let mut run = recording.run(RunIdx(1)).clone();
/// run.overlaps = vec![RunIdx(0), RunIdx(4)];
/// assert_eq!(others(&recording, &run), "In [1] and In [5]");
/// ```
pub fn others(recording: &Recording, run: &Run) -> String {
    let mut names: Vec<String> = Vec::new();
    for idx in &run.overlaps {
        let name = recording.runs().get(idx.get()).map(name);
        let name = name.unwrap_or_else(|| "another run".to_owned());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names.as_slice() {
        [] => String::new(),
        [name] => name.clone(),
        [first, last] => format!("{first} and {last}"),
        _ => format!("{} other runs", run.overlaps.len()),
    }
}

fn name(run: &Run) -> String {
    match (run.execution_count, &run.label) {
        (Some(n), _) => format!("In [{n}]"),
        (None, Some(label)) => code(&source_text::abridged(label)).text().to_owned(),
        (None, None) => "another cell".to_owned(),
    }
}

/// `+7 MiB together with In [4], which ran, too`.
///
/// ```
/// use gpumem_model::units::{ByteDelta, Units};
/// use gpumem_wording::together;
///
/// let freed = Some(ByteDelta::new(-7 << 20));
/// let words = together(freed, "In [4]", Units::Binary);
/// assert_eq!(words, "gave back 7 MiB together with In [4], which ran, too");
/// ```
pub fn together(moved: Option<ByteDelta>, others: &str, units: Units) -> String {
    let moved = match moved {
        None => "kept: not known,".to_owned(),
        Some(ByteDelta::ZERO) => "kept nothing".to_owned(),
        Some(moved) if moved < ByteDelta::ZERO => {
            format!("gave back {}", units.size(moved.magnitude()))
        }
        Some(moved) => units.change(moved),
    };
    format!("{moved} together with {others}, which ran, too")
}

//! Which cards CUDA shows a process, and in which order.

use crate::{Device, State, gpus};

/// The devices that CUDA numbers 0, 1, …: those that `CUDA_VISIBLE_DEVICES` names, or
/// all. `cuda.order = 1,0` is the order from the fastest on.
///
/// As CUDA does, it stops at the first word that names no device, shows nothing if
/// one is named twice, and shows at most one part of a divided card.
pub fn visible(state: &State) -> Vec<Device> {
    let all = in_order(state);
    let Ok(words) = std::env::var("CUDA_VISIBLE_DEVICES") else {
        return with_at_most_one_part(all);
    };
    of_words(state, &all, &words)
}

fn in_order(state: &State) -> Vec<Device> {
    let parts_or_whole = |whole: Device| {
        let parts = whole.parts(state);
        parts.first().copied().unwrap_or(whole)
    };
    let on_the_bus: Vec<Device> = gpus(state).map(parts_or_whole).collect();
    let is_by_bus = std::env::var("CUDA_DEVICE_ORDER").is_ok_and(|it| it == "PCI_BUS_ID");
    match state.text("cuda.order") {
        Some(order) if !is_by_bus => order
            .split(',')
            .filter_map(|word| on_the_bus.get(word.trim().parse::<usize>().ok()?).copied())
            .collect(),
        _ => on_the_bus,
    }
}

fn of_words(state: &State, all: &[Device], words: &str) -> Vec<Device> {
    let mut shown = Vec::new();
    let is_by_uuid = words.trim_start().starts_with(['G', 'M']);
    for word in words.split(',').map(str::trim) {
        let named = if is_by_uuid {
            of_uuid(state, word)
        } else {
            of_number(word).and_then(|idx| all.get(idx).copied())
        };
        let Some(device) = named else { break };
        if shown.contains(&device) {
            return Vec::new();
        }
        shown.push(device);
    }
    with_at_most_one_part(shown)
}

/// The number at the start of a word: CUDA reads it as C's `atoi` does.
fn of_number(word: &str) -> Option<usize> {
    let end = word.find(|it: char| !it.is_ascii_digit());
    word[..end.unwrap_or(word.len())].parse().ok()
}

/// The one device whose UUID starts so.
fn of_uuid(state: &State, word: &str) -> Option<Device> {
    if !["GPU-", "MIG-"].iter().any(|start| word.starts_with(start)) {
        return None;
    }
    let devices = gpus(state).flat_map(|whole| [vec![whole], whole.parts(state)].concat());
    let mut named = devices.filter(|it| it.uuid(state).starts_with(word));
    let first = named.next();
    first.filter(|_| named.next().is_none())
}

fn with_at_most_one_part(mut devices: Vec<Device>) -> Vec<Device> {
    if let Some(part) = devices.iter().find(|it| it.part.is_some()).copied() {
        devices.retain(|it| it.part.is_none() || *it == part);
    }
    devices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_numbers_or_uuids() {
        let state = State::of_text(
            "n_gpus = 3\ngpu1.uuid = GPU-aa11\ngpu2.uuid = GPU-ab22\ngpu2.mig1.uuid = MIG-33",
        );
        let check = |words: &str, expected: &[usize]| {
            let all: Vec<Device> = gpus(&state).collect();
            let shown = of_words(&state, &all, words);
            let numbers: Vec<usize> = shown.iter().map(|it| it.gpu).collect();
            assert_eq!(numbers, expected, "{words}");
        };
        check("2,0", &[2, 0]);
        check("0, 7,1", &[0]);
        check("1gpu", &[1]);
        check("0,0", &[]);
        check("", &[]);
        check("-1", &[]);
        check("NoDevFiles", &[]);
        check("GPU-aa,GPU-ab", &[1, 2]);
        check("GPU-a", &[]);
        check("GPU-aa,0", &[1]);
        check("MIG-33", &[2]);
    }
}

//! The first lines: peaks, growth, and where the time goes.

use crate::formats::torch_trace::{cut, label, level};
use gpumem_analyzer::GrowthVerdict;
use gpumem_model::units::count;
use gpumem_readers::chrome_trace::{FailedAllocation, PeakPlace, TraceDeviceLevels, TraceSummary};
use gpumem_wording::{Prose, code, prose};

/// Devices of which the conclusion tells.
const N_DEVICES: usize = 4;

/// Longer names are cut.
const LONGEST_NAME: usize = 60;

/// Failed requests that are listed, the latest.
const N_FAILED: usize = 5;

/// The conclusion alone: peaks, growth, where the time goes. The first sentence is the most important one.
pub fn torch_trace_conclusion(summary: &TraceSummary) -> Vec<Prose> {
    let mut lines: Vec<Prose> = Vec::new();
    let n_earlier = summary.failed.len().saturating_sub(N_FAILED);
    if n_earlier > 0 {
        let earlier = count(n_earlier, "failed request");
        lines.push(format!("▲ {earlier} before these").into());
    }
    let shown = summary.failed.iter().skip(n_earlier);
    lines.extend(shown.map(|it| failed(it).into()));
    let has_gpu = summary.devices.iter().any(|device| !device.device.is_cpu());
    let devices = summary.devices.iter();
    for device in devices
        .filter(|device| !(has_gpu && device.device.is_cpu()))
        .take(N_DEVICES)
    {
        lines.push(peak(device).into());
        lines.extend(growth(device).map(Prose::from));
    }
    if summary.devices.is_empty() {
        lines.push(if summary.profiled_memory {
            "no memory was allocated or freed while it was profiled".into()
        } else {
            prose![
                "no memory recorded: profile with ",
                code("profile_memory=True")
            ]
        });
    }
    if let Some(first) = summary.operators.first() {
        let calls = count(first.n_calls, "call");
        let words = format!(
            "most CPU time of its own: {} in {calls} of {}",
            first.own,
            short(&first.name)
        );
        lines.push(words.into());
    }
    if let Some(first) = summary.kernels.first() {
        let runs = count(first.n_calls, "run");
        let words = format!(
            "most time on devices: {} in {runs} of {}",
            first.total,
            short(&first.name)
        );
        lines.push(words.into());
    }
    lines
}

/// Names of kernels have all their types.
fn short(name: &str) -> String {
    cut(name, LONGEST_NAME)
}

fn failed(failed: &FailedAllocation) -> String {
    let allocated = failed.allocated.map(|bytes| format!(", {bytes} allocated"));
    let reserved = failed.reserved.map(|bytes| format!(", {bytes} reserved"));
    let after = format!(", {} after the start", failed.after);
    let head = format!(
        "▲ out of memory on {}: {} wanted",
        failed.device, failed.wanted
    );
    let parts = [Some(head), allocated, reserved, Some(after)];
    parts.into_iter().flatten().collect()
}

fn peak(device: &TraceDeviceLevels) -> String {
    let (name, peak) = (label(device), level(device, device.peak));
    let above = if device.is_absolute {
        ""
    } else {
        " from the trace's start"
    };
    let Some(place) = &device.peak_place else {
        return format!("{name} peak: {peak}{above}, at the trace's start");
    };
    let words = format!("{name} peak: {peak}{above}, after {}", place.after);
    format!("{words}{}", within(place))
}

/// `, in aten::mm, in step (train.py:9), in ProfilerStep#3`
fn within(place: &PeakPlace) -> String {
    let module = place
        .module
        .as_ref()
        .map(|module| format!("module {module}"));
    let places = [
        place.operator.clone(),
        module,
        place.function.clone(),
        place.range.clone(),
        place.step.clone(),
    ];
    let places = places.into_iter().flatten();
    let places: Vec<String> = places.map(|place| format!(", in {place}")).collect();
    places.concat()
}

fn growth(device: &TraceDeviceLevels) -> Option<String> {
    let name = label(device);
    let growth = device.growth.as_ref()?;
    let n_steps = count(device.after_steps.len(), "step");
    let rate = growth.bytes_per_run;
    Some(match growth.state {
        GrowthVerdict::Leak => format!(
            "▲ {name} grows: {rate} every step, over {n_steps}{}",
            most(device)
        ),
        GrowthVerdict::Suspected => {
            format!(
                "{name} may grow: {rate} every step, over {n_steps}{}",
                most(device)
            )
        }
        GrowthVerdict::Stable => format!("{name} does not grow from step to step, over {n_steps}"),
        GrowthVerdict::NotEnoughData => {
            let first = device.after_steps.first()?;
            let last = device.after_steps.last()?;
            let change =
                gpumem_model::units::ByteDelta::new(last.get().saturating_sub(first.get()));
            let missing = count(growth.n_missing, "more step");
            format!("{name} changed by {change} over {n_steps}; {missing} would tell if it grows")
        }
    })
}

/// `; at the end most is of aten::add in step (train.py:9), 12 MiB in 12 blocks`
fn most(device: &TraceDeviceLevels) -> String {
    let owners = device.owners_at_end.iter().flatten();
    let largest = owners.map(|owner| {
        let operator = owner.operator.as_deref().unwrap_or("no operator");
        let function = owner.function.as_ref();
        let function = function.map(|it| format!(" in {}", short(it)));
        let blocks = count(owner.n_blocks, "block");
        format!(
            "; at the end most is of {}{}, {} in {blocks}",
            short(operator),
            function.unwrap_or_default(),
            owner.bytes
        )
    });
    largest.take(1).collect()
}

/// `grows +1 MiB every step`
pub(super) fn growth_part(device: &TraceDeviceLevels) -> Option<String> {
    let growth = device.growth.as_ref()?;
    match growth.state {
        GrowthVerdict::Leak => Some(format!("▲ grows {} every step", growth.bytes_per_run)),
        GrowthVerdict::Suspected => Some(format!("may grow {} every step", growth.bytes_per_run)),
        GrowthVerdict::Stable | GrowthVerdict::NotEnoughData => None,
    }
}

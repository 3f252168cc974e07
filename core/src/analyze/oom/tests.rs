//! Out-of-memory errors in sessions, as their cards tell them.

use insta::assert_snapshot;

use crate::analyze::{Details, Finding, FindingKind, OomPart, Rules, Withdrawn, analyze};
use crate::read::oom::{OomMessage, parse};
use crate::recording::{Device, DeviceKind, Frame, OomFigures, OutOfMemory, Recording, Status};
use crate::testing::{Play, run, session};
use crate::units::{Bytes, Nanos};
use crate::wording::Words;

const MAKE: &str = "model = build()";

/// `model = build()`, whose runs end as `plays`; the last one that ran out says `message`.
fn recorded(plays: &[Play], message: &str, change: impl Fn(&mut OutOfMemory)) -> Recording {
    let (mut recording, _) = session(&[("data = load()", &[run(1000)]), (MAKE, plays)]);
    let is_out = |status| status == Status::OutOfMemory;
    let failed = recording.runs().iter().rfind(|run| is_out(run.status));
    let mut failed = failed.expect("one that ran out").clone();
    let told = parse(message);
    let mut oom = OutOfMemory {
        at: Nanos::ZERO,
        device: None,
        names_accelerator: told.as_ref().is_some_and(OomMessage::names_accelerator),
        framework: told.as_ref().and_then(|told| told.framework),
        survived: false,
        figures: told.map_or_else(OomFigures::default, |told| told.figures),
        holders: Vec::new(),
        message: Some(message.to_owned()),
    };
    change(&mut oom);
    if oom.survived {
        failed.status = Status::Ok;
    }
    failed.oom = Some(Box::new(oom));
    recording.apply(Frame::Run(failed)).expect("it is known");
    recording
}

fn finding(recording: &Recording) -> Finding {
    let findings = analyze(recording, &Rules::default()).findings;
    let mut of_memory = findings
        .into_iter()
        .filter(|finding| finding.kind == FindingKind::OutOfMemory);
    let finding = of_memory.next().expect("a finding");
    assert_eq!(of_memory.next(), None);
    finding
}

fn words(recording: &Recording) -> Words {
    crate::testing::words(recording, &finding(recording))
}

fn detail(recording: &Recording) -> String {
    words(recording).detail
}

/// The card: what stands in front, the title, the detail, and each advice on a line of its own.
fn card(recording: &Recording) -> String {
    let severity = finding(recording).severity.name();
    let words = words(recording);
    let mut lines = vec![format!("{severity}: {}", words.title), words.detail];
    let advice = words.suggestions.iter();
    lines.extend(advice.map(|advice| format!("→ {advice}")));
    lines.join("\n")
}

fn out(kept_mib: i64) -> Play {
    run(kept_mib).status(Status::OutOfMemory)
}

const TORCH: &str = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of \
    16.00 GiB of which 512.00 MiB is free. ";

#[test]
fn nothing_helps_but_a_smaller_step() {
    let told = format!(
        "{TORCH}Including non-PyTorch memory, this process has 15.50 GiB memory in use. Of the \
         allocated memory 15.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch \
         but unallocated."
    );
    let recording = recorded(&[out(0)], &told, |_| {});
    assert_snapshot!(card(&recording), @r"
    critical: model = build() ran out of memory on sim:0: it wanted 2 GiB, 512 MiB was free
    of 16 GiB: 15 GiB in tensors, 100 MiB cache, 412 MiB context and libraries, 700 MiB other processes · 1.5 GiB short
    → make the step smaller: a smaller batch (with gradient accumulation if its size matters), shorter sequences, lower precision, or no graph if no backward pass follows
    ");
}

#[test]
fn what_was_there_is_told_in_parts() {
    let told = format!("{TORCH}Of the allocated memory 15.00 GiB is allocated by PyTorch");
    let found = finding(&recorded(&[out(0)], &told, |_| {}));
    let Details::OutOfMemory(breakdown) = found.details else {
        panic!("{found:?}");
    };
    let parts = [OomPart::Tensors, OomPart::Cache, OomPart::Free].map(|it| breakdown.part(it));
    let expected = [Some(Bytes::gib(15)), None, Some(Bytes::mib(512))];
    assert_eq!(parts, expected);
    let sizes = (breakdown.wanted, breakdown.room, breakdown.missing);
    let expected = (Bytes::gib(2), Bytes::gib(16), Bytes::mib(1536));
    assert_eq!(
        sizes,
        (Some(expected.0), Some(expected.1), Some(expected.2))
    );
}

#[test]
fn the_traceback_keeps_what_the_failed_frames_held() {
    let recording = recorded(&[out(600)], TORCH, |_| {});
    let card = card(&recording);
    assert!(
        card.contains("keeps up to 600 MiB: `%gpumem release traceback`"),
        "{card}"
    );
    let replaced = recorded(&[out(600), run(0).status(Status::Error)], TORCH, |_| {});
    let later = detail(&replaced);
    assert!(!later.contains("traceback"), "{later}");
}

#[test]
fn what_an_earlier_error_held_would_have_been_enough() {
    let recording = recorded(&[out(1600), out(0)], TORCH, |_| {});
    let detail = self::detail(&recording);
    let words = "the error of In [2] still held up to 1.56 GiB: `%gpumem release traceback`";
    assert!(detail.ends_with(words), "{detail}");
    let given_back = [out(1600), run(-1600), out(0)];
    let detail = self::detail(&recorded(&given_back, TORCH, |_| {}));
    assert!(!detail.contains("still held"), "{detail}");
}

#[test]
fn pieces_of_the_cache_would_have_been_enough() {
    let told = format!(
        "{TORCH}Of the allocated memory 12.00 GiB is allocated by PyTorch, and 3.00 GiB is \
         reserved by PyTorch but unallocated."
    );
    let recording = recorded(&[out(0)], &told, |oom| {
        oom.figures.largest_free = Some(Bytes::gib(1));
    });
    let detail = self::detail(&recording);
    let words = "3 GiB was free in the cache, but in pieces, the largest piece 1 GiB";
    assert!(detail.ends_with(words), "{detail}");
    let fits = recorded(&[out(0)], &told, |oom| {
        oom.figures.largest_free = Some(Bytes::gib(2));
    });
    assert!(!self::detail(&fits).contains("pieces"));
}

#[test]
fn other_processes_are_told_by_their_numbers() {
    let told = format!(
        "{TORCH}Process 41 has 5.00 GiB memory in use. Process 42 has 10.00 GiB memory in use. Of \
         the allocated memory 8.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by \
         PyTorch but unallocated."
    );
    // The container hides that 42 is this very process.
    let recording = recorded(&[out(0)], &told, |_| {});
    assert_snapshot!(card(&recording), @r"
    critical: model = build() ran out of memory on sim:0: it wanted 2 GiB, 512 MiB was free
    of 16 GiB: 8 GiB in tensors, 1 GiB cache, 5 GiB process 41 · 1.5 GiB short · other processes hold 5 GiB: `%gpumem who`
    → other processes hold 5 GiB (process 41): `%gpumem who` shows them; end the ones that nobody needs
    ");
}

#[test]
fn the_old_copy_was_still_held() {
    let recording = recorded(&[run(1600), out(0)], TORCH, |_| {});
    assert_snapshot!(card(&recording), @r"
    critical: model = build() ran out of memory on sim:0: it wanted 2 GiB, 512 MiB was free
    of 16 GiB: 2.54 GiB in tensors, 700 MiB other processes · 1.5 GiB short · the 1.56 GiB of an earlier run was still held: `del model` first
    → free the old copy first: `del model` at the top of the cell; the name holds the old copy until the new one is ready
    ");
}

#[test]
fn a_request_beyond_the_device_never_fits() {
    let told = "CUDA out of memory. Tried to allocate 64.00 GiB. GPU 0 has a total capacity of \
                16.00 GiB of which 15.00 GiB is free.";
    let recording = recorded(&[out(0)], told, |_| {});
    assert!(detail(&recording).contains("more than the whole 16 GiB"));
}

#[test]
fn a_limit_of_the_users_own_is_told() {
    let told = "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 16.00 GiB total capacity; \
                3.00 GiB already allocated; 12.00 GiB free; 4.00 GiB allowed; 3.00 GiB reserved in \
                total by PyTorch)";
    let recording = recorded(&[out(0)], told, |_| {});
    assert!(detail(&recording).contains("limited to 4 GiB"));
}

#[test]
fn a_cell_that_caught_it_is_only_warned_of() {
    let recording = recorded(&[out(0)], TORCH, |oom| oom.survived = true);
    let card = card(&recording);
    let title = "warning: model = build() ran out of memory on sim:0 and went on: it wanted 2 GiB";
    assert!(card.starts_with(title), "{card}");
}

#[test]
fn it_is_over_when_a_later_run_had_enough() {
    let recording = recorded(&[out(0), run(100)], TORCH, |_| {});
    let found = finding(&recording);
    assert_eq!(found.withdrawn, Some(Withdrawn::HadEnough));
    assert_eq!(words(&recording).suggestions, Vec::<String>::new());
    let still = finding(&recorded(&[run(0), out(0), out(0)], TORCH, |_| {}));
    assert_eq!((still.withdrawn, still.n_runs), (None, 1));
}

#[test]
fn a_message_without_figures_is_filled_from_the_levels() {
    let recording = recorded(&[out(0)], "CUDA error: out of memory", |_| {});
    assert_snapshot!(card(&recording), @r"
    critical: model = build() ran out of memory on sim:0: 13.9 GiB was free
    of 16 GiB: 1000 MiB in tensors, 700 MiB other processes
    → make the step smaller: a smaller batch (with gradient accumulation if its size matters), shorter sequences, lower precision, or no graph if no backward pass follows
    ");
}

/// The same on a machine where nobody reads a GPU, told by an error of these words.
fn on_the_host(message: &str) -> Recording {
    let mut recording = recorded(&[out(600)], message, |_| {});
    let host = Device {
        kind: DeviceKind::Host,
        label: "host".to_owned(),
        ..recording.devices()[0].clone()
    };
    recording.apply(Frame::Device(host)).expect("it is known");
    recording
}

#[test]
fn a_gpu_that_nobody_reads_is_not_the_host() {
    let recording = on_the_host(TORCH);
    assert_snapshot!(card(&recording), @r"
    critical: model = build() ran out of memory on a device that is not read: it wanted 2 GiB, 512 MiB was free
    1.5 GiB short
    → make the step smaller: a smaller batch (with gradient accumulation if its size matters), shorter sequences, lower precision, or no graph if no backward pass follows
    → `%gpumem release traceback`: the error keeps the tensors of its frames alive through its frames, until another error takes its place
    → `%gpumem status` says which devices are read, and why not the others
    ");
    assert_eq!(finding(&recording).known_device(), None);
    for words in [
        "CUDA error: out of memory",
        "RESOURCE_EXHAUSTED: Out of memory allocating 64 bytes on device:GPU:0",
    ] {
        let found = finding(&on_the_host(words));
        assert_eq!(found.known_device(), None, "{words}");
    }
    let of_host = on_the_host("RESOURCE_EXHAUSTED: Out of memory allocating 64 bytes.");
    assert!(finding(&of_host).known_device().is_some());
    let title = words(&of_host).title;
    assert!(title.contains("out of memory on host"), "{title}");
}

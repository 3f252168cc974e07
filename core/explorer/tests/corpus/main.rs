//! The fuzzers' corpus, and what is close to it: no reader panics, hangs, or takes more memory than it may.
//!
//! `tests/fuzz` has the readers and the corpus, and looks for more.

#[path = "../../../../tests/fuzz/src/capture.rs"]
mod capture;
#[path = "../../../../tests/fuzz/src/counted.rs"]
mod counted;
#[path = "../../../../tests/fuzz/src/messagepack.rs"]
mod messagepack;
#[path = "../../../../tests/fuzz/src/readers.rs"]
mod readers;
#[path = "../../../../tests/fuzz/src/sealed.rs"]
mod sealed;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use readers::{READERS, Reader};

/// Number of damaged forms of each seed.
const N_DAMAGED: usize = 200;

/// What is repeated is made as large as this.
const GROWN: usize = 256 << 10;

/// The files of a reader's folder, in the order of their names.
fn seeds(reader: &Reader) -> Vec<Vec<u8>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/corpus");
    let folder = fs::read_dir(corpus.join(reader.name)).expect("each reader has a corpus");
    let mut paths: Vec<_> = folder
        .map(|it| it.expect("it can be listed").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} has no seeds", reader.name);
    let read = |path| fs::read(path).expect("it can be read");
    paths.iter().map(read).collect()
}

/// Calls with each reader and each of its seeds.
fn each_seed(mut call: impl FnMut(&Reader, &[u8])) {
    for reader in &READERS {
        for seed in seeds(reader) {
            call(reader, &seed);
        }
    }
}

#[test]
fn the_corpus_is_read() {
    each_seed(|reader, seed| (reader.read)(seed));
}

#[test]
fn cut_files_are_read_or_refused() {
    each_seed(|reader, seed| {
        for end in (0..seed.len()).step_by(seed.len().div_ceil(N_DAMAGED).max(1)) {
            (reader.read)(&seed[..end]);
        }
    });
}

#[test]
fn changed_bytes_are_read_or_refused() {
    each_seed(|reader, seed| {
        for at in (0..seed.len()).step_by(seed.len().div_ceil(N_DAMAGED).max(1)) {
            let mut changed = seed.to_vec();
            changed[at] ^= 1 << (at % 8);
            (reader.read)(&changed);
        }
    });
}

/// Memory and time that grow faster than the file show here.
#[test]
fn parts_may_be_repeated() {
    each_seed(|reader, seed| {
        for [start, end] in [[0, 1], [1, 2], [3, 4]].map(|it| it.map(|n| seed.len() * n / 4)) {
            let part = &seed[start..end];
            let n_times = GROWN / part.len().max(64);
            let grown = [&seed[..start], &part.repeat(n_times), &seed[end..]].concat();
            (reader.read)(&grown);
            (reader.read)(&packed(&grown));
        }
    });
}

/// Each list of a recording with many of the smallest entries: an entry of one byte may become a hundred in memory.
#[test]
fn lists_of_a_recording_may_be_long() {
    let mut n_lists = 0;
    for reader in READERS.iter().filter(|it| IN_FRAMES.contains(&it.name)) {
        for seed in seeds(reader) {
            each_list(&seed, |seed, list| {
                n_lists += 1;
                for entry in [0x80, 0xa0, 0x00] {
                    (reader.read)(&with_list(seed, list.clone(), entry));
                }
            });
        }
    }
    assert!(n_lists > 50, "{n_lists} lists");
}

/// The readers of recordings.
const IN_FRAMES: [&str; 3] = ["found", "recording", "salvage"];

fn each_list(seed: &[u8], mut call: impl FnMut(&[u8], Range<usize>)) {
    let mut known = BTreeSet::new();
    for frame in sealed::frames(seed) {
        let at = frame.as_ptr().addr() - seed.as_ptr().addr() + 8;
        for list in lists(&frame[8..]) {
            let list = at + list.start..at + list.end;
            // Its name stands before it.
            if known.insert(seed[list.start.saturating_sub(8)..list.start].to_vec()) {
                call(seed, list);
            }
        }
    }
}

/// The lists in a payload, each with its length and entries.
fn lists(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut starts = Vec::new();
    messagepack::walk(bytes, 2, &mut |at| {
        if matches!(bytes[at], 0x90..=0x9f | 0xdc | 0xdd) {
            starts.push(at);
        }
    });
    let range = |at: usize| Some(at..at + messagepack::length(&bytes[at..], 1)?);
    starts.into_iter().filter_map(range).collect()
}

fn with_list(seed: &[u8], list: Range<usize>, entry: u8) -> Vec<u8> {
    let length = u32::try_from(GROWN).expect("it is small").to_be_bytes();
    let entries = [entry].repeat(GROWN);
    let parts = [
        &seed[..list.start],
        &[0xdd],
        &length,
        &entries,
        &seed[list.end..],
    ];
    parts.concat()
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{MemoryTimeline, timeline};
use crate::json_file::JsonFault;
use gpumem_model::units::{ByteDelta, Nanos};

#[track_caller]
fn check(file: &str, expected: (i64, i64, i64)) -> MemoryTimeline {
    let timeline = timeline(file.as_bytes()).expect("it is a timeline");
    let found = (timeline.at_start, timeline.peak, timeline.at_end);
    assert_eq!(
        found,
        (
            ByteDelta::new(expected.0),
            ByteDelta::new(expected.1),
            ByteDelta::new(expected.2)
        )
    );
    timeline
}

#[test]
fn rows_are_summed_up() {
    let rows =
        "[[-1, 1, 10, 0], [-1, 1, 5, 1], [7000, 2, 20, 4], [9000, 4, -20, 4], [9000, 3, 1, 99]]";
    let timeline = check(rows, (15, 35, 16));
    assert_eq!(timeline.peak_after, Some(Nanos::new(0)));
    assert_eq!(timeline.duration, Nanos::new(2000));
    assert_eq!(timeline.categories[7].at_end, ByteDelta::new(1));
    assert_eq!(timeline.categories[4].peak, ByteDelta::new(20));
}

#[test]
fn times_and_sizes_are_the_other_form() {
    let sizes = "[[4, 5, 6], [[0, 3, 0, 0, 0, 0, 0, 0, 0], [0, 3, 0, 0, 0, 9, 0, 0, 0], [0, 3, 1, 0, 0, 0, 0, 0, 0]]]";
    let timeline = check(sizes, (0, 12, 4));
    assert_eq!(timeline.duration, Nanos::new(2000));
    assert_eq!(timeline.categories[4].at_peak, ByteDelta::new(9));
    check("[[4, 4], [[0, 3], [0, 8]]]", (3, 8, 8));
}

#[test]
fn nothing_was_recorded() {
    check("[]", (0, 0, 0));
    check("[[], []]", (0, 0, 0));
    check("[[-1, 1, 7, 7]]", (7, 7, 7));
}

#[test]
fn another_list_is_refused() {
    let error = timeline(b"[[1, 2], [3, 4]]").expect_err("rows have four numbers");
    let JsonFault::Other(words) = error.what else {
        panic!("{error}");
    };
    assert_eq!(
        words,
        "not a memory timeline of PyTorch: a row has 2 numbers, not 4"
    );
}

/// Packed, two bytes of a list may be one bit; in memory they are 16 bytes.
#[test]
fn a_packed_list_takes_no_more_memory_than_its_file_is_worth() {
    let numbers = "1,".repeat(100_000);
    for lists in [
        format!("[[{numbers}1"),
        format!("[[1], [{numbers}1"),
        format!("[[1], [[{numbers}1"),
        format!("[[1, 1, 1, 1], [1, 1, 1, 1], [{numbers}1"),
    ] {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder
            .write_all(lists.as_bytes())
            .expect("it writes to memory");
        let packed = encoder.finish().expect("it writes to memory");
        let error = timeline(&packed).expect_err("it takes too much");
        assert!(error.to_string().contains("20 times the memory"), "{error}");
    }
}

#[test]
fn sizes_of_no_category_are_passed_over() {
    let more = ", 1".repeat(100_000);
    check(&format!("[[4, 4], [[0, 3], [0, 8{more}]]]"), (3, 15, 15));
}

//! Small profiles, damage, and arbitrary bytes.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use gpumem_explorer::formats::Content;
use gpumem_model::units::Bytes;
use gpumem_readers::device_profile::{DeviceProfile, is_profile, read};

const TEXTS: [&str; 12] = [
    "",
    "allocations",
    "count",
    "space",
    "bytes",
    "kind",
    "buffer",
    "device",
    "cuda:0",
    "step",
    "/srv/ada/lm/train.py",
    "/env/lib/python3.12/site-packages/jax/_src/api.py",
];

fn number(field: u8, number: u64) -> Vec<u8> {
    let mut bytes = vec![field << 3];
    varint(number, &mut bytes);
    bytes
}

fn varint(mut number: u64, into: &mut Vec<u8>) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

fn message(field: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![field << 3 | 2];
    varint(content.len() as u64, &mut bytes);
    bytes.extend(content);
    bytes
}

fn packed(field: u8, numbers: &[u64]) -> Vec<u8> {
    let mut content = Vec::new();
    for number in numbers {
        varint(*number, &mut content);
    }
    message(field, &content)
}

fn sample(stack: &[u64], n: u64, bytes: u64) -> Vec<u8> {
    let label = |key, text| message(3, &[number(1, key), number(2, text)].concat());
    let parts = [
        packed(1, stack),
        packed(2, &[n, bytes]),
        label(5, 6),
        label(7, 8),
    ];
    message(2, &parts.concat())
}

/// As JAX writes them: texts at the end.
fn profile(samples: &[Vec<u8>]) -> Vec<u8> {
    let value_type = |a, b| message(1, &[number(1, a), number(2, b)].concat());
    let location = |id, function, line| {
        let line = message(4, &[number(1, function), number(2, line)].concat());
        message(4, &[number(1, id), line].concat())
    };
    let function = |id, file| message(5, &[number(1, id), number(2, 9), number(4, file)].concat());
    let mut bytes = [value_type(1, 2), value_type(3, 4)].concat();
    bytes.extend(samples.concat());
    bytes.extend(
        [
            location(1, 1, 300),
            location(2, 2, 7),
            function(1, 11),
            function(2, 10),
        ]
        .concat(),
    );
    bytes.extend(TEXTS.map(|text| message(6, text.as_bytes())).concat());
    bytes.extend(number(9, 1_700_000_000_000_000_000));
    bytes
}

fn some() -> Vec<u8> {
    profile(&[
        sample(&[1, 2], 2, 3 << 20),
        sample(&[1, 2], 1, 1 << 20),
        sample(&[], 1, 8),
    ])
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn check(found: &DeviceProfile) {
    assert_eq!(
        (found.bytes.get(), found.n_allocations),
        ((4 << 20) + 8, Some(4))
    );
    let part = &found.parts[0];
    assert_eq!(
        (part.device.as_deref(), part.kind.as_deref()),
        (Some("cuda:0"), Some("buffer"))
    );
    let [train, unknown] = &found.owners[..] else {
        panic!("{found:?}");
    };
    let line = train.line.as_ref().unwrap();
    assert_eq!(
        (line.short().as_str(), train.bytes),
        ("lm/train.py:7 in step", Bytes::mib(4))
    );
    assert_eq!((unknown.line.as_ref(), unknown.bytes.get()), (None, 8));
}

#[test]
fn bytes_belong_to_the_innermost_line_of_the_user() {
    assert!(is_profile(&some()));
    check(&read(&some()).unwrap());
    check(&read(&gzip(&some())).unwrap());
    let text = read(&some()).unwrap().text(80);
    assert!(
        text.starts_with("device memory profile · 4 MiB in 4 allocations"),
        "{text}"
    );
}

#[test]
fn sizes_that_jax_does_not_know_are_no_bytes() {
    // JAX writes -1 for each.
    let unknown = |n: i64| sample(&[], n.unsigned_abs(), (-n).cast_unsigned());
    let found = read(&profile(&[sample(&[1, 2], 1, 5), unknown(2)])).unwrap();
    assert_eq!(
        (found.bytes.get(), found.n_allocations, found.n_unknown),
        (5, Some(3), 2)
    );
    let text = found.text(80);
    for line in [
        "device memory profile · 5 B in 3 allocations, 2 of unknown size",
        "    unknown        2  no stack was recorded",
    ] {
        assert!(text.lines().any(|it| it == line), "{text}");
    }
}

#[track_caller]
fn check_error(bytes: &[u8], expected: &str) {
    let error = read(bytes).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn other_files_are_refused() {
    check_error(b"", "byte 0: not a device memory profile of JAX");
    check_error(b"\x1f\x8bnot gzip", "the gzip file is damaged");
    check_error(&some()[..some().len() / 2], "a field runs over the end");
    let packed = gzip(&some());
    check_error(&packed[..packed.len() / 2], "the gzip file is damaged");
    check_error(&gzip(&vec![0; 20 << 20]), "unpacks to more than 16 MiB");
    let times = profile(&[])
        .iter()
        .map(|byte| if *byte == 4 { 2 } else { *byte })
        .collect::<Vec<u8>>();
    check_error(&times, "byte ");
}

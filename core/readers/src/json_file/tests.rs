use std::io::{Read, Write};
use std::marker::PhantomData;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::repaired::RepairedReader;
use super::{JsonFault, head, read};

type Lists = Vec<Vec<serde_json::Value>>;

fn packed(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).expect("it writes to memory");
    encoder.finish().expect("it writes to memory")
}

#[track_caller]
fn check_refused(file: &[u8], offset: usize, words: &str) {
    let error = read(file, || PhantomData::<Lists>).expect_err("it is damaged");
    assert_eq!((error.offset, &*error.what.to_string()), (offset, words));
}

#[track_caller]
fn check_repaired(json: &str, expected: &str) {
    let mut repaired = String::new();
    let read = RepairedReader::new(json.as_bytes()).read_to_string(&mut repaired);
    assert!(read.is_ok());
    assert_eq!(repaired, expected);
}

#[test]
fn a_packed_file_reads_as_its_content() {
    let file = packed(b"[[1], [2, 3]]");
    let lists = read(&file, || PhantomData::<Lists>).expect("it is whole");
    assert_eq!(lists.len(), 2);
    assert_eq!(head(&file), b"[[1], [2, 3]]");
}

#[test]
fn it_tells_where_reading_stopped() {
    check_refused(b"[[1],\n [2, }]]", 11, "damaged JSON: expected value");
    check_refused(
        &packed(b"[[1],\n [2, }]]"),
        11,
        "damaged JSON: expected value",
    );
    check_refused(b"[[1], [2]", 9, &JsonFault::Cut.to_string());
    check_refused(b"\xef\xbb\xbf[[1], [2]", 12, &JsonFault::Cut.to_string());
    check_refused(
        b"[[1], 7]",
        6,
        "invalid type: integer `7`, expected a sequence",
    );
    check_refused(b"[[1]] x", 6, "damaged JSON: trailing characters");
}

#[test]
fn a_cut_gzip_file_is_no_cut_json() {
    let content = [b"[[".to_vec(), b"1, ".repeat(40_000), b"1]]".to_vec()].concat();
    let file = packed(&content);
    let cut = file.get(..file.len() / 2).expect("it is longer");
    let error = read(cut, || PhantomData::<Lists>).expect_err("it is cut");
    assert!(matches!(error.what, JsonFault::Gzip(_)), "{error}");
    assert!(error.offset > 0 && error.offset < content.len());
}

#[test]
fn a_gzip_file_holds_no_endless_list() {
    let file = packed(&[b"[[".to_vec(), b" ".repeat(1 << 23)].concat());
    let error = read(&file, || PhantomData::<Lists>).expect_err("it is too large");
    assert!(error.to_string().contains("200 times"), "{error}");
}

/// The parser holds a text in one piece.
#[test]
fn a_gzip_file_holds_no_endless_text() {
    for part in ["x".repeat(1 << 21), "\\\"".repeat(1 << 20)] {
        let file = packed(format!("[[\"{part}").as_bytes());
        let error = read(&file, || PhantomData::<Lists>).expect_err("it is too large");
        let JsonFault::Gzip(words) = error.what else {
            panic!("{error}");
        };
        assert_eq!(words, "it holds a text of more than 20 times its size");
    }
    let texts = format!("[[{}\"\"]]", "\"\\\\\", ".repeat(1 << 17));
    assert!(read(&packed(texts.as_bytes()), || PhantomData::<Lists>).is_ok());
}

#[test]
fn what_is_not_quite_json_is_repaired() {
    check_repaired(
        r#"{"a": -nan, "b": [inf, null]}"#,
        r#"{"a": 0   , "b": [0  , null]}"#,
    );
    check_repaired(
        r#"{"a": -Infinity, "nan\"": -1}"#,
        r#"{"a": 0        , "nan\"": -1}"#,
    );
    check_repaired(r#""D:\Work\u00e9\u12""#, r#""D:/Work\u00e9/u12""#);
    check_repaired("\"a\tb\u{1}\"\t1", "\"a b \"\t1");
    let long = format!("[{}]", "NaN, ".repeat(50_000));
    check_repaired(&long, &long.replace("NaN", "0  "));
}

#[test]
fn repaired_files_are_read() {
    let lists = read(b"[[\"D:\\Work\", -inf]]", || PhantomData::<Lists>);
    assert_eq!(lists.expect("it is repaired")[0][1], 0);
}

//! Every opcode that is read, refusals with their offsets, and arbitrary bytes.

use super::{PickleKind, PickleView, parse};

/// What Python's `repr` would print.
fn repr(view: PickleView<'_>) -> String {
    let joined = |views: Vec<String>| views.join(", ");
    match view.kind() {
        PickleKind::None => "None".to_owned(),
        PickleKind::Bool => format!("{:?}", view.as_bool().unwrap()),
        PickleKind::Int => view.as_int().unwrap().to_string(),
        PickleKind::Float => format!("{:?}", view.as_float().unwrap()),
        PickleKind::Text => format!("{:?}", view.as_text().unwrap()),
        PickleKind::Bytes => format!("b{:?}", view.as_bytes().unwrap()),
        PickleKind::List => format!("[{}]", joined(view.items().map(repr).collect())),
        PickleKind::Tuple => format!("({})", joined(view.items().map(repr).collect())),
        PickleKind::Dict => {
            let pairs = view.entries();
            let pairs = pairs.map(|(key, value)| format!("{}: {}", repr(key), repr(value)));
            format!("{{{}}}", joined(pairs.collect()))
        }
    }
}

#[track_caller]
fn check(pickle: &[u8], expected: &str) {
    let shown = match parse(pickle) {
        Ok(tree) => repr(tree.root()),
        Err(error) => error.to_string(),
    };
    assert_eq!(shown, expected);
}

#[test]
fn protocol_0_is_read() {
    // pickle.dumps({'a': [1, 2.5, True, None, (3,)], 'ü\n\\': 2**40}, 0)
    let pickle = b"(dp0\nVa\np1\n(lp2\nI1\naF2.5\naI01\naNa(I3\ntp3\nasV\xfc\\u000a\\u005c\np4\nL1099511627776L\ns.";
    check(
        pickle,
        r#"{"a": [1, 2.5, true, None, (3)], "ü\n\\": 1099511627776}"#,
    );
    check(b"S'a\\x41\\n'\n.", r#""aA\n""#);
    check(b"V\\U0001f600\n.", r#""😀""#);
}

#[test]
fn numbers_of_every_size_are_read() {
    check(b"K\xff.", "255");
    check(b"M\xff\xff.", "65535");
    check(b"J\xff\xff\xff\xff.", "-1");
    check(b"\x8a\x00.", "0");
    check(
        b"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00.",
        "18446744073709551615",
    );
    check(b"\x8b\x01\x00\x00\x00\x80.", "-128");
    check(b"G?\xf0\x00\x00\x00\x00\x00\x00.", "1.0");
    check(
        &[&b"\x8a\x11"[..], &[1; 17], b"."].concat(),
        "byte 0: LONG has an argument that is not a number of at most 16 bytes",
    );
}

#[test]
fn texts_and_bytes_are_read() {
    check(b"X\x02\x00\x00\x00hi.", r#""hi""#);
    check(b"\x8c\x02hi.", r#""hi""#);
    check(b"\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi.", r#""hi""#);
    check(b"U\x02hi.", r#""hi""#);
    check(b"C\x01a.", "b[97]");
    check(b"\x8c\x03\xed\xa0\x80.", "\"\u{fffd}\u{fffd}\u{fffd}\"");
}

#[test]
fn shared_and_recursive_values_are_read() {
    check(b"\x80\x02]q\x00(]q\x01h\x01h\x01e.", "[[], [], []]");
    let tree = parse(b"]\x94h\x00a.").unwrap();
    let inner = tree.root().items().next().unwrap();
    assert_eq!(
        inner.identity(),
        tree.root().identity(),
        "it contains itself"
    );
}

#[test]
fn a_key_that_is_set_again_has_its_last_value() {
    let tree = parse(b"}(\x8c\x01aK\x01\x8c\x01aK\x02u.").unwrap();
    assert_eq!(tree.root().get("a").unwrap().as_u64(), Some(2));
}

#[test]
fn what_would_run_something_is_refused_with_its_offset() {
    for (pickle, expected) in [
        (
            &b"N0cos\nsystem\n(S'ls'\ntR."[..],
            "byte 2: GLOBAL would import `os.system`",
        ),
        (
            b"\x8c\x02os\x8c\x06system\x93.",
            "byte 12: STACK_GLOBAL would import an object",
        ),
        (b"NNR.", "byte 2: REDUCE would call an object"),
        (b"NNb.", "byte 2: BUILD would set the state of an object"),
        (
            b"NN\x81.",
            "byte 2: NEWOBJ would make an instance of a class",
        ),
        (b"\x8f.", "byte 0: EMPTY_SET would make a set"),
    ] {
        check(pickle, &format!("{expected}: only plain values are read"));
    }
}

#[test]
fn damage_is_reported_with_its_offset() {
    check(b"", "byte 0: the file ends inside the pickle");
    check(b"N", "byte 1: the file ends inside the pickle");
    check(
        b"\x80\x06.",
        "byte 0: protocol 6: protocols 0 to 5 are known",
    );
    check(b"\xfe.", "byte 0: 0xfe is not an opcode of pickle");
    check(b"h\x05.", "byte 0: memo 5 is not set");
    check(
        b"Nr\xff\xff\xff\xff.",
        "byte 1: memo 4294967295 exceeds the number of values before it",
    );
    check(b"N(e.", "byte 2: APPENDS finds a None");
    check(b"](e0e.", "byte 4: APPENDS finds no MARK");
    check(b"](K\x01s.", "byte 4: SETITEM finds too few values");
    check(b"}(K\x01u.", "byte 4: SETITEMS finds a key without a value");
    check(b"N(.", "byte 2: STOP finds too few values");
}

#[test]
fn deep_nesting_is_read_without_recursion() {
    let n = 20_000;
    let pickle = [vec![b'N'], vec![0x85; n], vec![b'.']].concat();
    let tree = parse(&pickle).unwrap();
    let mut depth = 0;
    let mut view = tree.root();
    while let Some(inner) = view.items().next() {
        view = inner;
        depth += 1;
    }
    assert_eq!(depth, n);
}

#[test]
fn a_tree_that_is_far_larger_than_its_file_is_refused() {
    let error = parse(&vec![b')'; 200_000]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("its values would take more than"),
        "{error}"
    );
}

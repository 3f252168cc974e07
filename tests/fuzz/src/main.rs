//! One reader of gpumem, by the name in `READER`, on damaged and hostile bytes.
//! `core/explorer/tests/corpus` replays the corpus through the same readers.

#![no_main]

mod capture;
mod counted;
mod messagepack;
mod readers;
mod sealed;

use std::sync::LazyLock;

use readers::{READERS, Reader};

static READER: LazyLock<&Reader> = LazyLock::new(|| {
    let name = std::env::var("READER").expect("READER has the name of a reader");
    let mut readers = READERS.iter();
    let reader = readers.find(|reader| reader.name == name);
    reader.unwrap_or_else(|| panic!("{name} is no reader"))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (READER.read)(bytes));

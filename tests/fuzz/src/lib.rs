//! Every reader of gpumem on bytes that nobody wrote in good faith. `core/tests/corpus` replays the corpus
//! through the same readers.

mod capture;
mod counted;
mod messagepack;
mod readers;
mod sealed;

/// Reads with the reader of that name.
///
/// # Panics
///
/// If it fails: that is what the fuzzer looks for.
pub fn read(name: &str, bytes: &[u8]) {
    let mut readers = readers::READERS.iter();
    let reader = readers
        .find(|reader| reader.name == name)
        .expect("a reader has that name");
    (reader.read)(bytes);
}

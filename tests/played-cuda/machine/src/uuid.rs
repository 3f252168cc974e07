//! UUIDs of cards, as text and as bytes.

/// What a card without a UUID in the file is called. The text says "played-cuda", in ASCII.
pub(crate) fn of_gpu(gpu: usize) -> String {
    format!("GPU-706c6179-6564-2d63-7564-61{gpu:010x}")
}

/// The 16 bytes of a `GPU-…` or `MIG-…`.
pub fn bytes(text: &str) -> [u8; 16] {
    let digits: String = text
        .chars()
        .skip(4)
        .filter(char::is_ascii_hexdigit)
        .collect();
    let number = u128::from_str_radix(&digits, 16).unwrap_or(0);
    number.to_be_bytes()
}

//! Where values of `MessagePack` begin and end.

/// The length of `n_values` consecutive values; `None` if they are cut or damaged.
pub(crate) fn length(bytes: &[u8], n_values: usize) -> Option<usize> {
    walk(bytes, n_values, &mut |_| ())
}

/// The same; `each` gets where each value begins.
pub(crate) fn walk(bytes: &[u8], n_values: usize, each: &mut dyn FnMut(usize)) -> Option<usize> {
    let (mut at, mut n_open) = (0, n_values);
    while n_open > 0 {
        let (n_bytes, n_inside) = opening(bytes.get(at..)?)?;
        each(at);
        at += n_bytes;
        n_open = (n_open - 1).checked_add(n_inside)?;
    }
    (at <= bytes.len()).then_some(at)
}

/// How many bytes a value has before the values in it, and how many these are.
fn opening(bytes: &[u8]) -> Option<(usize, usize)> {
    let marker = *bytes.first()?;
    let low = |mask: u8| usize::from(marker & mask);
    let number = |n_bytes: usize| {
        let bytes = bytes.get(1..=n_bytes)?;
        Some(
            bytes
                .iter()
                .fold(0, |sum, byte| sum << 8 | usize::from(*byte)),
        )
    };
    Some(match marker {
        0x80..=0x8f => (1, 2 * low(0x0f)),
        0x90..=0x9f => (1, low(0x0f)),
        0xa0..=0xbf => (1 + low(0x1f), 0),
        0xc4..=0xc6 | 0xd9..=0xdb => {
            let width = 1 << (marker - if marker < 0xd0 { 0xc4 } else { 0xd9 });
            (1 + width + number(width)?, 0)
        }
        0xca | 0xcb => (1 + (4 << (marker - 0xca)), 0),
        0xcc..=0xd3 => (1 + (1 << (marker & 3)), 0),
        0xdc | 0xdd => (1 + (2 << (marker - 0xdc)), number(2 << (marker - 0xdc))?),
        0xde | 0xdf => (
            1 + (2 << (marker - 0xde)),
            2 * number(2 << (marker - 0xde))?,
        ),
        0xc1 | 0xc7..=0xc9 | 0xd4..=0xd8 => return None,
        _ => (1, 0),
    })
}

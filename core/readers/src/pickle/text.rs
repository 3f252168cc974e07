//! Texts of protocol 0: escaped, one a line.

/// The text of `UNICODE`: Latin-1 with `\u` and four digits, or `\U` and eight. `None` if an escape is
/// incomplete.
pub(super) fn raw_unicode(line: &[u8]) -> Option<String> {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let [first, after @ ..] = rest {
        rest = after;
        text.push(char::from(*first));
        if *first != b'\\' {
            continue;
        }
        let Some((&next, after)) = rest.split_first() else {
            continue;
        };
        rest = after;
        let n_digits = match next {
            b'u' => 4,
            b'U' => 8,
            _ => {
                text.push(char::from(next));
                continue;
            }
        };
        text.pop();
        let code = hex(rest.get(..n_digits)?)?;
        text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        rest = rest.get(n_digits..)?;
    }
    Some(text)
}

/// The text of `STRING`: quoted as Python 2 did. `None` if it is not quoted or an escape is incomplete.
pub(super) fn quoted(line: &[u8]) -> Option<String> {
    let line = line.trim_ascii_end();
    let (quote, inner) = line.split_first()?;
    let (last, inner) = inner.split_last()?;
    if quote != last || !matches!(quote, b'\'' | b'"') {
        return None;
    }
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let (&next, after) = rest.split_first()?;
        rest = after;
        bytes.push(match next {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'x' => {
                let code = hex(rest.get(..2)?)?;
                rest = rest.get(2..)?;
                u8::try_from(code).ok()?
            }
            other => other,
        });
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn hex(digits: &[u8]) -> Option<u32> {
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

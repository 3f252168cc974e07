//! Which part of a line a fix changes.

use gpumem_model::source_text::is_name_letter;

/// A piece of a line, and whether the fix changes it.
pub type Piece<'a> = (bool, &'a str);

/// The lines before and after a fix, each in pieces that it changes or leaves as they are.
///
/// Names count as a whole: of `loss` and `losses` nothing is the same.
pub fn changed<'a>(before: &'a str, after: &'a str) -> [Vec<Vec<Piece<'a>>>; 2] {
    let (from, n_after) = same_ends(before, after);
    [before, after].map(|text| {
        let to = (text.len() - n_after).max(from);
        let parts = [
            (false, &text[..from]),
            (true, &text[from..to]),
            (false, &text[to..]),
        ];
        in_lines(&parts)
    })
}

/// What a fix writes that was not there.
pub fn changed_text<'a>(before: &str, after: &'a str) -> &'a str {
    let (from, n_after) = same_ends(before, after);
    after[from..after.len() - n_after].trim()
}

/// How many bytes are the same at the start, and at the end; lines at the end before all else.
fn same_ends(before: &str, after: &str) -> (usize, usize) {
    let n_lines = same_lines(before, after);
    let (old, new) = (
        tokens(&before[..before.len() - n_lines]),
        tokens(&after[..after.len() - n_lines]),
    );
    let n_start = n_same(old.iter().zip(&new));
    let (old, new_rest) = (&old[n_start..], &new[n_start..]);
    let n_end = n_same(old.iter().rev().zip(new_rest.iter().rev()));
    let bytes = |tokens: &[&str]| -> usize { tokens.iter().map(|token| token.len()).sum() };
    let end = bytes(&new_rest[new_rest.len() - n_end..]);
    (bytes(&new[..n_start]), n_lines + end)
}

fn n_same<'a>(pairs: impl Iterator<Item = (&'a &'a str, &'a &'a str)>) -> usize {
    pairs.take_while(|(a, b)| a == b).count()
}

/// The bytes of the lines at the end that are the same.
fn same_lines(before: &str, after: &str) -> usize {
    let lines = before.split_inclusive('\n').rev();
    let same = lines.zip(after.split_inclusive('\n').rev());
    let same = same.take_while(|(a, b)| a == b);
    same.map(|(line, _)| line.len()).sum()
}

/// Names and numbers, and every other letter by itself.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = if is_name_letter(first) {
            rest.find(|letter| !is_name_letter(letter))
        } else {
            Some(first.len_utf8())
        };
        let (token, after) = rest.split_at(end.unwrap_or(rest.len()));
        tokens.push(token);
        rest = after;
    }
    tokens
}

fn in_lines<'a>(parts: &[Piece<'a>]) -> Vec<Vec<Piece<'a>>> {
    let mut lines = vec![Vec::new()];
    for (is_changed, part) in parts {
        for (idx, text) in part.split('\n').enumerate() {
            if idx > 0 {
                lines.push(Vec::new());
            }
            let line = lines.last_mut().expect("it begins with one");
            if !text.is_empty() {
                line.push((*is_changed, text));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(before: &str, after: &str, expected: &str) {
        assert_eq!(changed_text(before, after), expected);
    }

    #[test]
    fn what_a_fix_writes_is_found() {
        check("total += loss", "total += loss.item()", ".item()");
        check("y", "y;", ";");
        check("a(f(x).sum())", "a(f(x).sum().detach())", ".detach()");
        check("x = f()", "x = None\nx = f()", "x = None");
        check("keep(loss)", "keep(losses)", "losses");
        check("same", "same", "");
    }

    proptest! {
        #[test]
        fn the_pieces_are_the_lines(before in "[a-c(). \n]{0,9}", after in "[a-c(). \n]{0,9}") {
            let texts = [&*before, &*after];
            for (lines, text) in changed(&before, &after).iter().zip(texts) {
                let lines = lines.iter().map(|line| line.iter().map(|it| it.1).collect::<String>());
                prop_assert_eq!(lines.collect::<Vec<_>>().join("\n"), text);
            }
        }
    }
}

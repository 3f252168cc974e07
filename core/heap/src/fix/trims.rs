//! Whether cells take older items out again of what collects: a window over the latest, a cache with a limit of its own.

use super::reads::{around, occurrences};
use super::statement::is_of_name;
use gpumem_model::source_text::is_name_letter;

/// How a collection is kept from growing without end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trim {
    /// How many items it keeps at most, if the texts tell.
    pub most: Option<u64>,
}

/// What takes an item out, where nothing takes the value.
const TAKES_OUT: [&str; 5] = [
    ".popitem(",
    ".popleft()",
    ".pop(0)",
    ".pop(next(iter(",
    ".pop(min(",
];

/// How what `word` collects is trimmed.
pub(super) fn trim(word: &str, sources: &[&str]) -> Option<Trim> {
    let mut found: Option<Trim> = None;
    for source in sources.iter().filter(|source| source.contains(word)) {
        let limit = limit_of_length(word, source);
        for line in source.lines().map(str::trim) {
            let trims = occurrences(line, word).filter_map(|(before, after)| {
                if let Some((limit, more)) = latest_of(line, before, after, word) {
                    return Some(number(limit, sources).map(|n| n + more));
                }
                let limit = limit.filter(|_| takes_out(before, after))?;
                Some(number(limit, sources))
            });
            let most = trims.map(|most| Trim { most });
            found = found.into_iter().chain(most).max_by_key(|it| it.most);
        }
    }
    found
}

/// A statement that takes an item out, and leaves its value: `cache.popitem(last=False)`, `del recent[0]`.
fn takes_out(before: &str, after: &str) -> bool {
    let begins = |head: &str| head.is_empty() || head.ends_with(':') || head.ends_with(';');
    let deletes = |head: &str| {
        head.strip_suffix("del")
            .is_some_and(|it| begins(it.trim_end()))
    };
    let head = without_path(before).trim_end();
    begins(head) && TAKES_OUT.iter().any(|it| after.starts_with(it))
        || deletes(head) && after.starts_with('[')
}

/// `N` of `frames = frames[-N:] + [new]` or `del frames[:-N]`, and how many are added to those.
fn latest_of<'a>(
    line: &'a str,
    before: &str,
    after: &'a str,
    word: &str,
) -> Option<(&'a str, u64)> {
    if line.starts_with("del ") {
        let limit = after.strip_prefix("[:-")?.split_once(']')?.0;
        return Some((limit, 0));
    }
    let target = after.strip_prefix("[:]").unwrap_or(after).trim_start();
    let value = target.strip_prefix('=').filter(|it| !it.starts_with('='))?;
    let is_statement = without_path(before).is_empty();
    let (own, slice) = around(value, word).filter(|_| is_statement)?;
    let limit = slice.strip_prefix("[-")?;
    let (limit, rest) = limit.split_once(":]")?;
    let adds = rest.contains('+') || own.contains('+') || own.contains('[');
    Some((limit, u64::from(adds)))
}

/// What stands before the path that ends with it: without `self.`.
fn without_path(before: &str) -> &str {
    before.trim_end_matches(|c: char| is_name_letter(c) || c == '.')
}

/// `N` of `if len(cache) > N:` or `while len(cache) >= N:`.
fn limit_of_length<'a>(word: &str, source: &'a str) -> Option<&'a str> {
    let conditions = source.lines().filter_map(|line| {
        let condition = line.trim().strip_prefix("if ");
        condition.or_else(|| line.trim().strip_prefix("while "))
    });
    let mut limits = conditions.filter_map(|condition| {
        let (before, after) = around(condition, word)?;
        let limit = after.strip_prefix(')')?.trim_start().strip_prefix('>')?;
        let limit = limit.strip_prefix('=').unwrap_or(limit).trim_start();
        let end = limit.find([':', ' ', ')']).unwrap_or(limit.len());
        without_path(before)
            .ends_with("len(")
            .then(|| &limit[..end])
    });
    limits.next()
}

/// A number, or the name of one that a text gives a number: the largest of them.
fn number(text: &str, sources: &[&str]) -> Option<u64> {
    let parsed = |text: &str| {
        let digits: String = text.chars().filter(|c| *c != '_').collect();
        digits.parse::<u64>().ok()
    };
    let text = text.trim();
    if let Some(n) = parsed(text) {
        return Some(n);
    }
    let name = text.rsplit('.').next().filter(|it| !it.is_empty())?;
    if !name.bytes().all(is_of_name) {
        return None;
    }
    let lines = sources.iter().flat_map(|source| source.lines());
    let values = lines.filter_map(|line| {
        let (_, after) = around(line, name)?;
        let value = after.strip_prefix('=')?.trim_start();
        let end = value.find(|c: char| !c.is_ascii_digit() && c != '_');
        parsed(&value[..end.unwrap_or(value.len())])
    });
    values.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME_SIZE: Option<Trim> = Some(Trim { most: None });

    const fn to(most: u64) -> Trim {
        Trim { most: Some(most) }
    }

    #[track_caller]
    fn check(text: &str, expected: impl Into<Option<Trim>>) {
        let found = trim("kept", &[text, "LIMIT = 1_000"]);
        assert_eq!(found, expected.into(), "{text}");
    }

    #[test]
    fn a_collection_is_trimmed_to_its_latest() {
        check("kept = kept[-15:] + [x]", to(16));
        check("self.kept = self.kept[-LIMIT:]", to(1000));
        check("kept = [x] + kept[-3:]", to(4));
        check("kept[:] = kept[-n:]", SOME_SIZE);
        check("del kept[:-100]", to(100));
        check("latest = kept[-5:]", None);
        check("kept.append(f(kept[-3:]))", None);
    }

    #[test]
    fn a_collection_with_a_limit_takes_items_out() {
        let with = |head: &str, body: &str| format!("kept[key] = x\n{head}\n    {body}");
        check(
            &with("if len(kept) > 30:", "kept.popitem(last=False)"),
            to(30),
        );
        check(
            &with("while len(self.kept) >= LIMIT:", "self.kept.pop(0)"),
            to(1000),
        );
        check(
            &with("if len(kept) > self.size:", "del kept[next(iter(kept))]"),
            SOME_SIZE,
        );
        check("if len(kept) > 4: kept.pop(0)", to(4));
        check(&with("if len(kept) > 30:", "x = kept.pop(0)"), None);
        check("while kept:\n    kept.pop(0)", None);
        check("if len(kept) > 30:\n    print('many')", None);
    }
}

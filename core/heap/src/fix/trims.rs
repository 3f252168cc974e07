//! Whether cells take older items out again of what collects: a window over the latest, a cache with a limit of its own.

use super::reads::{around, occurrences};
use super::statement::{ByteSpan, Code, is_of_name};
use gpumem_model::source_text::is_name_letter;

/// How a collection is kept from growing without end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trim {
    /// How many items it keeps at most, if the texts tell.
    pub most: Option<u64>,
}

/// What takes an item out, where nothing takes the value.
const TAKES_OUT: [&str; 7] = [
    ".popitem(",
    ".popleft()",
    ".pop()",
    ".pop(-1)",
    ".pop(0)",
    ".pop(next(iter(",
    ".pop(min(",
];

/// What adds one item.
const ADDS_ONE: [&str; 4] = [".append(", ".appendleft(", ".add(", ".insert("];

/// What adds nobody knows how many.
const ADDS_MANY: [&str; 4] = [".extend(", ".update(", "+=", "|="];

/// How what `word` collects is trimmed, or kept from growing beyond a limit.
pub(super) fn trim(word: &str, sources: &[&str]) -> Option<Trim> {
    let in_turn = || set_in_turn(word, sources);
    let below = || added_below_limit(word, sources);
    taken_out(word, sources).or_else(in_turn).or_else(below)
}

/// Cells set its items in turn, and add no others: `slots[n % 12] = x`.
fn set_in_turn(word: &str, sources: &[&str]) -> Option<Trim> {
    let mut found: Option<Trim> = None;
    let lines = sources.iter().flat_map(|source| source.lines());
    for (before, after) in lines.flat_map(|line| occurrences(line, word)) {
        let index = after.strip_prefix('[').and_then(|it| it.split_once(']'));
        let divisor = index.and_then(|(index, _)| Some(index.split_once('%')?.1));
        match (adds(before, after, word), divisor) {
            (Adds::Nothing, _) => {}
            (Adds::One, Some(most)) => {
                let most = number(most.trim(), sources);
                found = found
                    .into_iter()
                    .chain([Trim { most }])
                    .max_by_key(|it| it.most);
            }
            (Adds::One | Adds::Many, _) => return None,
        }
    }
    found
}

fn taken_out(word: &str, sources: &[&str]) -> Option<Trim> {
    let mut found: Option<Trim> = None;
    for source in sources.iter().filter(|source| source.contains(word)) {
        let limit = limit_of_length(word, source);
        for line in source.lines().map(str::trim) {
            let trims = occurrences(line, word).filter_map(|(before, after)| {
                if let Some((limit, more)) = cut(before, after, word) {
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

/// Cells add items only while there are fewer: `if len(best) < N: best.append(x)`.
fn added_below_limit(word: &str, sources: &[&str]) -> Option<Trim> {
    let mut found: Option<Trim> = None;
    for source in sources.iter().filter(|source| source.contains(word)) {
        let mut guards: Vec<(usize, u64)> = Vec::new();
        // Where the guard above fails: an item that is set there takes the place of one.
        let mut otherwise: Option<usize> = None;
        for line in source.lines().filter(|line| !line.trim().is_empty()) {
            let (indent, line) = (line.len() - line.trim_start().len(), line.trim());
            otherwise = otherwise.filter(|guard| *guard < indent);
            if line.starts_with("else:") && guards.iter().any(|(guard, _)| *guard == indent) {
                otherwise = Some(indent);
            }
            guards.retain(|(guard, _)| *guard < indent);
            let guard = limit_below(word, line).and_then(|(limit, more)| {
                let most = number(limit, sources)?.checked_add(more)?;
                Some((indent, most))
            });
            guards.extend(guard);
            let most = guards.iter().map(|(_, most)| *most).min();
            for (before, after) in occurrences(line, word) {
                match adds(before, after, word) {
                    Adds::Nothing => {}
                    Adds::One if otherwise.is_some() && after.starts_with('[') => {}
                    Adds::One => {
                        let trim = Trim { most: Some(most?) };
                        found = found.into_iter().chain([trim]).max_by_key(|it| it.most);
                    }
                    Adds::Many => return None,
                }
            }
        }
    }
    found
}

/// How many items the code between these adds to the word.
enum Adds {
    Nothing,
    One,
    Many,
}

fn adds(before: &str, after: &str, word: &str) -> Adds {
    let starts = |calls: &[&str]| calls.iter().any(|it| after.starts_with(it));
    let item = after.strip_prefix('[').and_then(|it| it.split_once(']'));
    let sets_item = item.is_some_and(|(_, rest)| is_assignment(rest.trim_start()));
    if starts(&ADDS_ONE) || sets_item || without_path(before).ends_with("heappush(") {
        Adds::One
    } else if starts(&ADDS_MANY) || is_assignment(after) && around(after, word).is_some() {
        Adds::Many
    } else {
        Adds::Nothing
    }
}

fn is_assignment(text: &str) -> bool {
    text.starts_with('=') && !text.starts_with("==")
}

/// `N` of `if len(best) < N:`, and one more of `<=`.
fn limit_below<'a>(word: &str, line: &'a str) -> Option<(&'a str, u64)> {
    let mut openings = ["if ", "elif ", "while "].iter();
    let condition = openings.find_map(|it| line.strip_prefix(it))?;
    let (before, after) = around(condition, word)?;
    let limit = after.strip_prefix(')')?.trim_start().strip_prefix('<')?;
    let (limit, more) = limit.strip_prefix('=').map_or((limit, 0), |it| (it, 1));
    let limit = limit.trim_start();
    let end = limit.find([':', ' ', ')']).unwrap_or(limit.len());
    let is_certain = !condition.contains(" or ") && !before.contains("not ");
    let is_length = without_path(before).ends_with("len(");
    (is_certain && is_length).then(|| (&limit[..end], more))
}

/// A statement begins behind this.
fn begins(head: &str) -> bool {
    let head = head.trim_end();
    head.is_empty() || head.ends_with(':') || head.ends_with(';')
}

fn deletes(before: &str) -> bool {
    let head = without_path(before).trim_end().strip_suffix("del");
    head.is_some_and(begins)
}

/// A statement that takes an item out, and leaves its value: `cache.popitem(last=False)`, `del recent[0]`.
fn takes_out(before: &str, after: &str) -> bool {
    let head = without_path(before);
    let pops = head.strip_suffix("heappop(").map(without_path);
    begins(head) && TAKES_OUT.iter().any(|it| after.starts_with(it))
        || pops.is_some_and(begins)
        || deletes(before) && after.starts_with('[')
}

/// `N` of a statement that leaves the first or last `N`, and how many it adds to those: `frames = frames[-N:] + [new]`,
/// `del frames[:-N]`, `best = sorted(best)[:N]`.
fn cut<'a>(before: &str, after: &'a str, word: &str) -> Option<(&'a str, u64)> {
    if deletes(before) {
        let slice = after.strip_prefix('[')?.split_once(']')?.0;
        let first = || slice.strip_suffix(':').filter(|it| is_count(it));
        return Some((slice.strip_prefix(":-").or_else(first)?, 0));
    }
    let target = after.strip_prefix("[:]").unwrap_or(after).trim_start();
    let value = target.strip_prefix('=').filter(|it| !it.starts_with('='))?;
    let (own, slice) = around(value, word).filter(|_| begins(without_path(before)))?;
    if let Some((limit, rest)) = sliced(slice) {
        let adds = rest.contains('+') || own.contains('+') || own.contains('[');
        let is_call = own.contains('(');
        return Some((limit, u64::from(adds))).filter(|_| !is_call);
    }
    let value = value.split(" #").next().unwrap_or(value).trim();
    Some((limit_of_call(value)?, 0))
}

/// `N` of `[-N:]` or `[:N]`, and what follows.
fn sliced(text: &str) -> Option<(&str, &str)> {
    let (slice, rest) = text.strip_prefix('[')?.split_once(']')?;
    let last = || slice.strip_prefix('-')?.strip_suffix(':');
    let first = || slice.strip_prefix(':').filter(|it| is_count(it));
    Some((last().or_else(first)?, rest))
}

/// `N` of `sorted(best)[:N]` and of `heapq.nlargest(N, best)`.
fn limit_of_call(value: &str) -> Option<&str> {
    let code = Code::new(value);
    let opening = value.find(['(', '['])?;
    let name = &value[..opening];
    let name = Some(name).filter(|it| without_path(it).is_empty())?;
    let end = code.closing(opening)? + 1;
    if let Some((limit, "")) = sliced(&value[end..]) {
        return Some(limit);
    }
    let name = name.rsplit('.').next().unwrap_or_default();
    let is_bounded = ["nlargest", "nsmallest"].contains(&name) && end == value.len();
    let inside = ByteSpan {
        start: opening + 1,
        end: end - 1,
    };
    let first = code.split(inside, b',').first().copied()?;
    let limit = value.get(first.start..first.end)?.trim();
    Some(limit).filter(|it| is_bounded && is_count(it))
}

/// A number, or a name or an attribute that may be one.
fn is_count(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| is_of_name(it) || it == b'.')
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
    fn a_collection_is_trimmed_to_its_best() {
        check("kept = sorted(kept, key=lambda it: -it[0])[:5]", to(5));
        check("kept = kept[:5]", to(5));
        check("kept = [x] + kept[:LIMIT]", to(1001));
        check("self.kept = heapq.nlargest(5, self.kept)", to(5));
        check("del kept[5:]", to(5));
        check("if len(kept) > 5: kept = kept[:5]", to(5));
        check("if len(kept) > 5:\n    heapq.heappop(kept)", to(5));
        check("kept = kept[:-1]", None);
        check("kept = kept[:]", None);
        check("kept = sorted(kept)[:5] + kept", None);
        check("kept = [f(kept[:5]), *kept]", None);
    }

    #[test]
    fn a_ring_is_set_in_turn() {
        check("self.kept[self.i % 12] = x; self.i += 1", to(12));
        check("kept[i % LIMIT] = x", to(1000));
        let unknown = Some(Trim { most: None });
        check("self.kept[self.i % len(self.kept)] = x", unknown);
        check("kept[i] = x % 3", None);
        check("kept[i % 3] = x\nkept[i] = x", None);
        check("y = kept[i % 3] == x", None);
    }

    #[test]
    fn a_collection_is_added_to_below_a_limit() {
        let with = |body: &str| format!("if len(kept) < 10:\n    {body}");
        check(&with("kept.append(f(len(kept)))"), to(10));
        check("if len(kept) < 10: kept.append(x)", to(10));
        check(
            &with("heapq.heappush(kept, x)\nelse:\n    heapq.heappushpop(kept, x)"),
            to(10),
        );
        check(
            &with("kept.append(x)\nelse:\n    self.kept[self.at] = x"),
            to(10),
        );
        check(&with("kept.append(x)\nelse:\n    kept.append(y)"), None);
        check(&with("kept.append(x)\nkept[k] = x"), None);
        check("while len(self.kept) <= 9:\n    self.kept[k] = x", to(10));
        check(&with("pass\nkept.append(x)"), None);
        check(&with("kept.extend(x)"), None);
        check("if len(kept) < 10 or x:\n    kept.append(x)", None);
        check("if len(kept) < n:\n    kept.append(x)", None);
        check("kept.append(x)\nprint(len(kept) < 10)", None);
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

//! Holders of blocks, in snapshots that gpumem has written.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde::Serialize;

use crate::pickle::PickleView;
use gpumem_model::units::Bytes;

use super::model::SnapshotBlock;

/// The file of a frame whose name is a block's holder; a block's `user_metadata` begins with it, too.
pub const HELD_BY: &str = "held by";

/// Bytes of one name, or of several that differ only in indices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotHolder {
    /// `model.weight`, `losses[0 … 95].grad_fn`.
    pub name: String,
    /// The same without indices: `losses[].grad_fn`.
    #[serde(skip)]
    pub pattern: String,
    /// Their bytes.
    pub bytes: Bytes,
    /// Number of blocks.
    pub n_blocks: usize,
}

/// The holder in place of a stack.
pub(super) fn of_frames(frames: PickleView<'_>) -> Option<&str> {
    let mut items = frames.items();
    let frame = items.next().filter(|_| items.next().is_none())?;
    let is_its = frame.get("filename")?.as_text()? == HELD_BY;
    frame.get("name")?.as_text().filter(|_| is_its)
}

/// The holder in `user_metadata`, after the text of the user's program.
pub(super) fn of_metadata(metadata: &str) -> Option<&str> {
    let last = metadata.lines().next_back()?;
    last.strip_prefix(HELD_BY)?.strip_prefix(' ')
}

/// The holders of these blocks, largest first.
pub(super) fn holders<'b>(
    blocks: impl Iterator<Item = &'b SnapshotBlock>,
    names: &[&str],
) -> Vec<SnapshotHolder> {
    let mut groups: HashMap<String, IndexedNames> = HashMap::new();
    for block in blocks {
        let name = block.holder.and_then(|idx| names.get(idx as usize));
        if let Some(name) = name {
            let (pattern, indices) = without_indices(name);
            groups.entry(pattern).or_default().add(&indices, block);
        }
    }
    let holder = |(pattern, group): (String, IndexedNames)| SnapshotHolder {
        name: group.name(&pattern),
        pattern,
        bytes: group.bytes,
        n_blocks: group.n_blocks,
    };
    let mut holders: Vec<_> = groups.into_iter().map(holder).collect();
    holders.sort_by(|a, b| (Reverse(a.bytes), &a.name).cmp(&(Reverse(b.bytes), &b.name)));
    holders
}

/// Names that differ only in their indices.
#[derive(Default)]
struct IndexedNames {
    /// The lowest and the highest of each index.
    ranges: Vec<(u64, u64)>,
    bytes: Bytes,
    n_blocks: usize,
}

impl IndexedNames {
    fn add(&mut self, indices: &[u64], block: &SnapshotBlock) {
        if self.n_blocks == 0 {
            self.ranges = indices.iter().map(|index| (*index, *index)).collect();
        }
        for ((low, high), index) in self.ranges.iter_mut().zip(indices) {
            (*low, *high) = ((*low).min(*index), (*high).max(*index));
        }
        self.bytes += block.size;
        self.n_blocks += 1;
    }

    fn name(&self, pattern: &str) -> String {
        let mut pieces = pattern.split("[]");
        let mut name = pieces.next().unwrap_or_default().to_owned();
        for ((low, high), piece) in self.ranges.iter().zip(pieces) {
            let range = if low == high {
                low.to_string()
            } else {
                format!("{low} … {high}")
            };
            name.extend(["[", &range, "]", piece]);
        }
        name
    }
}

/// `losses[].grad_fn` and 3, of `losses[3].grad_fn`.
pub(super) fn without_indices(name: &str) -> (String, Vec<u64>) {
    let (mut pattern, mut indices) = (String::with_capacity(name.len()), Vec::new());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('[') {
        pattern.push_str(before);
        pattern.push('[');
        rest = after;
        let n_digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, behind) = after.split_at(n_digits);
        if let Ok(index) = digits.parse()
            && behind.starts_with(']')
        {
            indices.push(index);
            rest = behind;
        }
    }
    pattern.push_str(rest);
    (pattern, indices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_model::segments::BlockState;

    #[track_caller]
    fn check(names: &[&str], expected: &[(&str, usize)]) {
        let block = |idx: usize| SnapshotBlock {
            address: None,
            size: Bytes::mib(1),
            requested: Bytes::mib(1),
            state: BlockState::Held,
            stack: None,
            holder: Some(idx as u32),
        };
        let blocks: Vec<SnapshotBlock> = (0..names.len()).map(block).collect();
        let found = holders(blocks.iter(), names);
        let found: Vec<_> = found.iter().map(|it| (&*it.name, it.n_blocks)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn names_that_differ_in_indices_are_one() {
        check(
            &["losses[10]", "losses[9]", "model.weight", "losses[2]"],
            &[("losses[2 … 10]", 3), ("model.weight", 1)],
        );
        check(
            &["a['x'][1]", "a['y'][1]", "a[1"],
            &[("a['x'][1]", 1), ("a['y'][1]", 1), ("a[1", 1)],
        );
        check(&["kept[3]"], &[("kept[3]", 1)]);
        check(
            &["a[0][1].b", "a[0][7].b", "a[0][3].b"],
            &[("a[0][1 … 7].b", 3)],
        );
    }

    #[test]
    fn metadata_of_the_users_stands_before_a_holder() {
        assert_eq!(of_metadata("held by losses[3]"), Some("losses[3]"));
        assert_eq!(of_metadata("step 7\nheld by losses[3]"), Some("losses[3]"));
        assert_eq!(of_metadata("step 7"), None);
        assert_eq!(of_metadata("held bystander"), None);
        assert_eq!(of_metadata(""), None);
    }
}

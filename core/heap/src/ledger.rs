//! What allocators have handed out, compared with what the objects found hold of it.

use gpumem_model::holders::{DeviceHolders, Holder, RootKind, StorageUse};
use gpumem_model::units::{ByteDelta, Bytes};

/// The workspace that torch gives cuBLAS: two times 4 MiB and eight times 16 KiB.
pub(super) const WORKSPACE: Bytes = Bytes::new((2 * 4096 + 8 * 16) << 10);

/// Its name if every object was visited.
const OUTSIDE: &str = "outside Python";

/// Its name if only names were followed.
const NAMELESS: &str = "unnamed";

/// Adds what is allocated but was not found, as a separate holder.
pub(super) fn add_unseen(
    held: &mut DeviceHolders,
    unseen: Bytes,
    is_whole: bool,
    grown: Option<ByteDelta>,
) {
    let n_workspaces = n_workspaces(unseen);
    let (kind, part, name, what) = if n_workspaces > 0 {
        let what = match n_workspaces {
            1 => "a workspace, by its size: torch keeps one for each handle".to_owned(),
            n => format!("{n} workspaces, by their size: torch keeps one for each handle"),
        };
        (RootKind::System, StorageUse::Workspaces, "cuBLAS", what)
    } else {
        let name = if is_whole { OUTSIDE } else { NAMELESS };
        let what = remainder_text(is_whole, held.is_cut).to_owned();
        (RootKind::Unnamed, StorageUse::Unnamed, name, what)
    };
    held.n_bytes += unseen;
    match held.parts.iter_mut().find(|(it, _)| *it == part) {
        Some((_, n_bytes)) => *n_bytes += unseen,
        None => held.parts.push((part, unseen)),
    }
    held.parts.sort_unstable();
    let holder = Holder {
        grown,
        what,
        ..Holder::new(kind, name, unseen)
    };
    let place = held.roots.partition_point(|it| it.retained >= unseen);
    held.roots.insert(place, holder);
}

/// How many of cuBLAS's workspaces this can be, to the byte: torch keeps one for each handle and
/// stream, and no object stands for it. Of other sizes than this one, which is no round number,
/// nobody could tell.
fn n_workspaces(unseen: Bytes) -> u64 {
    const MOST: u64 = 16;
    let n = unseen.get() / WORKSPACE.get();
    let is_exact = Bytes::new(n * WORKSPACE.get()) == unseen;
    if is_exact && n <= MOST { n } else { 0 }
}

fn remainder_text(is_whole: bool, is_cut: bool) -> &'static str {
    match (is_whole, is_cut) {
        (_, true) => "allocated, and not found as far as was looked",
        (true, false) => {
            "allocated, and held by no Python object: libraries' workspaces, a backward pass under \
             way, code in C++"
        }
        (false, false) => {
            "allocated, and no name leads to it: cycles, libraries' workspaces, code in C++"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_model::holders::Allocated;

    #[track_caller]
    fn check(handed_out: u64, is_rounded: bool, seen: (u64, u64), expected: u64) {
        let handed_out = Allocated {
            n_bytes: Bytes::new(handed_out),
            is_rounded,
        };
        let (n_bytes, n_storages) = seen;
        let beyond = handed_out.beyond(Bytes::new(n_bytes), n_storages);
        assert_eq!(beyond, Bytes::new(expected));
    }

    #[test]
    fn what_is_left_is_certain_and_never_less_than_nothing() {
        check(1000, false, (600, 3), 400);
        check(600, false, (600, 3), 0);
        check(500, false, (600, 3), 0);
        // Three storages of 4 bytes take three blocks.
        check(1536, true, (12, 3), 0);
        check(4096, true, (12, 3), 2548);
    }

    #[test]
    fn a_workspace_is_known_by_its_size() {
        let check = |unseen: u64, expected: (RootKind, &str, StorageUse)| {
            let mut holders = DeviceHolders::default();
            add_unseen(&mut holders, Bytes::new(unseen), true, None);
            let [holder] = &holders.roots[..] else {
                panic!("one holder: {holders:?}");
            };
            let [(part, n_bytes)] = holders.parts[..] else {
                panic!("one part: {holders:?}");
            };
            assert_eq!((holder.kind, &*holder.name, part), expected);
            assert_eq!(
                (holder.retained, n_bytes),
                (holders.n_bytes, holders.n_bytes)
            );
        };
        let cublas = (RootKind::System, "cuBLAS", StorageUse::Workspaces);
        check(8_519_680, cublas);
        check(3 * 8_519_680, cublas);
        let other = (RootKind::Unnamed, "outside Python", StorageUse::Unnamed);
        check(8_519_681, other);
        check(33_554_432, other);
        check(17 * 8_519_680, other);
    }
}

//! Which kept sessions to delete.

use gpumem_model::units::Bytes;

/// Maximum number of kept sessions.
pub const MAX_SESSIONS: usize = 50;

/// Maximum bytes of kept sessions.
pub const MAX_SIZE: Bytes = Bytes::mib(500);

/// A file of a session, for [`to_prune`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrunableFile {
    /// The size of the file.
    pub size: Bytes,
    /// Whether it stays, because a process writes it.
    pub is_in_use: bool,
}

/// The indices of the sessions that are too many or too large together; `kept` has the newest first.
/// Sessions in use count, and stay.
pub fn to_prune(kept: &[PrunableFile]) -> Vec<usize> {
    let mut size = Bytes::ZERO;
    let mut n = 0;
    let entries = kept.iter().enumerate();
    let doomed = entries.filter(|(_, kept)| {
        let larger = Bytes::new(size.get().saturating_add(kept.size.get()));
        let fits = n < MAX_SESSIONS && larger <= MAX_SIZE;
        let stays = fits || kept.is_in_use;
        if stays {
            size = larger;
            n += 1;
        }
        !stays
    });
    doomed.map(|(idx, _)| idx).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sizes_mib: &[u64], in_use: &[usize], expected: &[usize]) {
        let kept = sizes_mib.iter().enumerate().map(|(idx, mib)| PrunableFile {
            size: Bytes::mib(*mib),
            is_in_use: in_use.contains(&idx),
        });
        assert_eq!(to_prune(&kept.collect::<Vec<_>>()), expected);
    }

    #[test]
    fn the_oldest_go_first() {
        check(&[1, 1, 1], &[], &[]);
        check(&[300, 300, 100], &[], &[1]);
        check(&[600], &[], &[0]);
        check(&vec![1; 52], &[], &[50, 51]);
    }

    #[test]
    fn what_is_written_stays() {
        check(&[600], &[0], &[]);
        check(&vec![1; 52], &[51], &[50]);
    }
}

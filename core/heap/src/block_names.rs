//! What an allocator's block is called: the path to the storage that lies in it.

use super::ledger::WORKSPACE;
use super::storage_names::StorageName;
use gpumem_model::units::Bytes;

/// How far the search went whose names are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchCoverage {
    /// Every object was visited: what has no name here is held by no Python object.
    Whole,
    /// It stopped before.
    Part,
}

/// Names for the blocks of allocators.
#[derive(Debug, Clone)]
pub struct BlockNames {
    /// By device and address; of one address, the name that people look for first.
    storages: Vec<(usize, StorageName)>,
    extent: SearchCoverage,
}

impl BlockNames {
    /// What a block is called that was freed and that a stream still uses.
    pub const AWAITS_STREAM: &'static str = "a stream that still uses it, though it was freed";

    /// What a block is called that was allocated or freed during the search.
    pub const MOVED: &'static str = "unknown: it changed while its holder was searched";

    /// The names of these storages, the preferred one first.
    pub fn new(storages: Vec<StorageName>, extent: SearchCoverage) -> Self {
        let mut storages: Vec<_> = storages.into_iter().enumerate().collect();
        storages.sort_by(|(_, a), (_, b)| (&a.device, a.address).cmp(&(&b.device, b.address)));
        Self { storages, extent }
    }

    /// Nothing was searched.
    pub fn unknown() -> Self {
        Self::new(Vec::new(), SearchCoverage::Part)
    }

    /// The path to the storage in the block of `size` at `address`; of several, the preferred one's.
    pub fn path(&self, device: &str, address: u64, size: Bytes) -> Option<&str> {
        let end = address.saturating_add(size.get());
        let first = self
            .storages
            .partition_point(|(_, it)| (it.device.as_str(), it.address) < (device, address));
        let within = self.storages[first..]
            .iter()
            .take_while(|(_, it)| it.device == device && it.address < end)
            // What is larger was another block's.
            .filter(|(_, it)| it.address.saturating_add(it.n_bytes.get()) <= end);
        let preferred = within.min_by_key(|(preference, _)| *preference);
        preferred.map(|(_, storage)| storage.path.as_str())
    }

    /// What is known of a block without a path, by its requested bytes.
    pub fn unnamed(&self, requested: Bytes) -> &'static str {
        match self.extent {
            _ if requested == WORKSPACE => "a cuBLAS workspace, by its size",
            SearchCoverage::Whole => {
                "no Python object: a library, a backward pass under way, or C++"
            }
            SearchCoverage::Part => "unknown: the search for holders did not visit everything",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(extent: SearchCoverage) -> BlockNames {
        let storage = |device: &str, address, n, path: &str| StorageName {
            device: device.to_owned(),
            address,
            n_bytes: Bytes::new(n),
            path: path.to_owned(),
        };
        BlockNames::new(
            vec![
                storage("cuda:1", 1024, 512, "other"),
                storage("cuda:0", 2048, 100, "second"),
                storage("cuda:0", 1024, 512, "first"),
                storage("cuda:0", 1024, 512, "alias"),
                storage("cuda:0", 4096, 9999, "too large"),
            ],
            extent,
        )
    }

    #[track_caller]
    fn check(device: &str, address: u64, size: u64, expected: Option<&str>) {
        let names = names(SearchCoverage::Part);
        assert_eq!(names.path(device, address, Bytes::new(size)), expected);
    }

    #[test]
    fn a_block_is_called_as_the_storage_that_lies_in_it() {
        check("cuda:0", 1024, 512, Some("first"));
        check("cuda:1", 1024, 512, Some("other"));
        check("cuda:0", 2048, 512, Some("second"));
        // Where several lie in it, the one whose name is preferred.
        check("cuda:0", 1024, 2048, Some("second"));
        check("cuda:0", 512, 512, None);
        check("cuda:2", 1024, 512, None);
        // What is larger than the block was another one's before.
        check("cuda:0", 4096, 512, None);
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        let part = names(SearchCoverage::Part);
        let unknown = "unknown: the search for holders did not visit everything";
        assert_eq!(part.unnamed(Bytes::new(8)), unknown);
        assert_eq!(
            part.unnamed(Bytes::new(8_519_680)),
            "a cuBLAS workspace, by its size"
        );
        let name = names(SearchCoverage::Whole).unnamed(Bytes::new(8));
        assert!(name.starts_with("no Python object"), "{name}");
    }
}

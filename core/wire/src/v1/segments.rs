//! The frame of a map of segments: columns of small numbers.

use crate::budget::ListBudget;
use crate::record::{encoded_as, wire};
use gpumem_model::recording::{DeviceIdx, Frame, RunIdx, SegmentSnapshot};
use gpumem_model::segments::{Block, BlockState, Pool, Segment, Segments, SmallSegments};
use gpumem_model::units::Bytes;

/// Sizes are counted in `unit`s. A column in which every value is the usual one is absent.
#[derive(Default)]
pub(crate) struct WireSegments {
    run: RunIdx,
    device: DeviceIdx,
    /// Why there is no map.
    reason: Option<String>,
    unit: u64,
    /// Of each segment.
    n_blocks: Vec<u64>,
    /// 0 large, 1 small, 2 private.
    pools: Vec<u64>,
    streams: Vec<u64>,
    /// Of each block: 0 held, 1 awaiting a stream, 2 free.
    states: Vec<u64>,
    sizes: Vec<u64>,
    /// How many are merged.
    counts: Vec<u64>,
    /// What is free in them all the same.
    holes: Vec<u64>,
    /// Segments, size, free beside blocks in use, free in unused ones.
    rest: Vec<u64>,
    total_blocks: u64,
    largest_free: u64,
}

wire! { WireSegments {
    required "run" => run,
    required "device" => device,
    sparse "reason" => reason,
    "unit" => unit,
    "n_blocks" => n_blocks,
    sparse "pools" => pools,
    sparse "streams" => streams,
    "states" => states,
    "sizes" => sizes,
    sparse "counts" => counts,
    sparse "holes" => holes,
    sparse "rest" => rest,
    "total_blocks" => total_blocks,
    "largest_free" => largest_free,
}}

encoded_as! { SegmentSnapshot: snapshot => WireSegments::from(snapshot); }

impl WireSegments {
    /// The frame; in words what does not fit where it is none.
    pub(crate) fn frame(self, budget: &mut ListBudget) -> Result<Frame, String> {
        let n_bytes =
            self.n_blocks.len() * size_of::<Segment>() + self.sizes.len() * size_of::<Block>();
        budget.spend(n_bytes).map_err(|refused| refused.0)?;
        let found = match &self.reason {
            Some(reason) => Err(reason.clone()),
            None => Ok((self.segments())
                .map_err(|words| format!("segments of run {}: {words}", self.run.0))?),
        };
        Ok(Frame::Segments(Box::new(SegmentSnapshot {
            run: self.run,
            device: self.device,
            found,
        })))
    }

    fn segments(&self) -> Result<Segments, String> {
        let (n_segments, n_blocks) = (self.n_blocks.len(), self.sizes.len());
        let columns = [
            ("pools", self.pools.len(), n_segments),
            ("streams", self.streams.len(), n_segments),
            ("states", self.states.len(), n_blocks),
            ("counts", self.counts.len(), n_blocks),
            ("holes", self.holes.len(), n_blocks),
        ];
        let misfit = columns
            .into_iter()
            .find(|&(_, n, wanted)| n != wanted && n != 0);
        if let Some((name, n_rows, wanted)) = misfit {
            return Err(format!("column {name} has {n_rows} rows, not {wanted}"));
        }
        let unit = self.unit.max(1);
        let bytes = |n: u64| Bytes::new(n.saturating_mul(unit));
        let at = |column: &[u64], idx: usize, usual: u64| column.get(idx).copied().unwrap_or(usual);
        let block = |idx: usize| Block {
            state: variant(&BlockState::ALL, at(&self.states, idx, 0)),
            size: bytes(self.sizes[idx]),
            n_blocks: at(&self.counts, idx, 1),
            holes: bytes(at(&self.holes, idx, 0).min(self.sizes[idx])),
        };
        let mut next = 0_usize;
        let mut segments = Vec::with_capacity(n_segments);
        for (idx, n) in self.n_blocks.iter().enumerate() {
            let own = usize::try_from(*n).ok().and_then(|n| next.checked_add(n));
            let Some(end) = own.filter(|end| *end <= n_blocks) else {
                return Err(format!(
                    "segment {idx} has more blocks than there are sizes"
                ));
            };
            segments.push(Segment {
                pool: variant(&Pool::ALL, at(&self.pools, idx, 0)),
                stream: u32::try_from(at(&self.streams, idx, 0)).unwrap_or(u32::MAX),
                blocks: (next..end).map(block).collect(),
            });
            next = end;
        }
        let rest = |idx: usize| at(&self.rest, idx, 0);
        Ok(Segments {
            segments,
            rest: SmallSegments {
                n_segments: rest(0),
                size: bytes(rest(1)),
                split: bytes(rest(2)).min(bytes(rest(1))),
                unused: bytes(rest(3)).min(bytes(rest(1))),
            },
            n_blocks: self.total_blocks,
            largest_free: bytes(self.largest_free),
        })
    }
}

/// The last of them for a number that only a later gpumem knows.
fn variant<T: Copy>(all: &[T; 3], number: u64) -> T {
    let idx = usize::try_from(number).unwrap_or(usize::MAX);
    all[idx.min(2)]
}

impl From<&SegmentSnapshot> for WireSegments {
    fn from(snapshot: &SegmentSnapshot) -> Self {
        let unread = Self {
            run: snapshot.run,
            device: snapshot.device,
            reason: snapshot.found.as_ref().err().cloned(),
            ..Self::default()
        };
        let Ok(found) = &snapshot.found else {
            return unread;
        };
        let segments = &found.segments;
        let blocks = || segments.iter().flat_map(|segment| &segment.blocks);
        let rest = &found.rest;
        let sizes = blocks().flat_map(|block| [block.size, block.holes]);
        let others = [rest.size, rest.split, rest.unused, found.largest_free];
        let bits = sizes.chain(others).fold(0, |bits, size| bits | size.get());
        // The largest power of two of which all are multiples.
        let unit = bits & bits.wrapping_neg();
        let units = |size: Bytes| size.get() / unit.max(1);
        let usual = |mut column: Vec<u64>, usual: u64| {
            if column.iter().all(|it| *it == usual) {
                column.clear();
            }
            column
        };
        let rest = vec![
            rest.n_segments,
            units(rest.size),
            units(rest.split),
            units(rest.unused),
        ];
        Self {
            unit,
            n_blocks: segments.iter().map(|it| it.blocks.len() as u64).collect(),
            pools: usual(segments.iter().map(|it| it.pool as u64).collect(), 0),
            streams: usual(segments.iter().map(|it| it.stream.into()).collect(), 0),
            states: blocks().map(|block| block.state as u64).collect(),
            sizes: blocks().map(|block| units(block.size)).collect(),
            counts: usual(blocks().map(|block| block.n_blocks).collect(), 1),
            holes: usual(blocks().map(|block| units(block.holes)).collect(), 0),
            rest: usual(rest, 0),
            total_blocks: found.n_blocks,
            largest_free: units(found.largest_free),
            ..unread
        }
    }
}

//! Cells, and the texts that each has had.

use super::{CellIdx, Frame};

/// Hash of a cell's normalised source, made by [`source_text::hash`](crate::source_text::hash).
///
/// It is equal for two runs of the same text, even if the text itself is not kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceHash(pub u64);

/// One text that a cell has had. [`Recording::revision`](super::Recording::revision) finds it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revision {
    /// Hash of the normalised text.
    pub hash: SourceHash,
    /// The text; `None` if the user's settings do not let it be kept.
    pub text: Option<String>,
    /// The name of the file whose text it is; `None` of a notebook's cell.
    pub file: Option<String>,
}

/// A cell of the notebook. It persists while its text is edited, so its runs form one series.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    /// Its position in the recording.
    pub idx: CellIdx,
    /// The frontend's id, or the hash of the source if the frontend sends none.
    pub id: String,
    /// The texts it has had, oldest first.
    pub revisions: Vec<Revision>,
}

impl Cell {
    /// The frames that tell of it: one for each revision, so that none is longer for those before it.
    pub(super) fn frames(&self) -> Vec<Frame> {
        self.frames_of(self.revisions.iter().collect())
    }

    /// The frames that tell of it and of some of its revisions.
    pub(super) fn frames_of(&self, revisions: Vec<&Revision>) -> Vec<Frame> {
        let frame = |revisions| {
            Frame::Cell(Self {
                idx: self.idx,
                id: self.id.clone(),
                revisions,
            })
        };
        if revisions.is_empty() {
            return vec![frame(Vec::new())];
        }
        let each = revisions.into_iter();
        each.map(|revision| frame(vec![revision.clone()])).collect()
    }
}

//! What a shell of `IPython` sees: events around each cell, the line below it, what is shown later.

pub(crate) mod extension;
pub(crate) mod late_line;
pub(crate) mod trainers;

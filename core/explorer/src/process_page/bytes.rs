//! The form in which a page goes to where it is shown: JSON behind a line that names it.

use crate::process_page::{MAX_ROWS, ProcessPage};
use gpumem_model::downsample::MAX_LEVELS;

/// The bytes of a page begin with these.
pub(crate) const BEGINS: &[u8] = b"\x93gpumem processes 1\n";

/// Why bytes are no page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// They begin otherwise.
    #[error("not a page of processes")]
    NoPage,
    /// They cannot be read.
    #[error("damaged: {0}")]
    Damaged(String),
    /// More than there can be.
    #[error("damaged: {0} cannot be")]
    Invalid(&'static str),
}

impl ProcessPage {
    /// The page as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = BEGINS.to_vec();
        serde_json::to_writer(&mut bytes, self).expect("a page holds strings and numbers only");
        bytes
    }

    /// The page that bytes hold.
    ///
    /// # Errors
    ///
    /// The bytes are none of a page.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PageError> {
        let json = bytes.strip_prefix(BEGINS).ok_or(PageError::NoPage)?;
        let page: Self =
            serde_json::from_slice(json).map_err(|error| PageError::Damaged(error.to_string()))?;
        let n_rows = page.rows.len();
        if n_rows > MAX_ROWS {
            return Err(PageError::Invalid("the number of rows"));
        }
        let is_row = |row: &usize| *row < n_rows;
        if !page.causes.iter().all(|it| it.rows.iter().all(is_row)) {
            return Err(PageError::Invalid("the row of a cause"));
        }
        let mut levels = page.rows.iter().map(|row| &row.levels);
        if !levels.all(|it| it.len() <= MAX_LEVELS && it.is_sorted_by_key(|point| point.at)) {
            return Err(PageError::Invalid("the levels of a row"));
        }
        Ok(page)
    }
}

//! What files of other programs say and how many processes compare: as text, JSON and pictures.
//!
//! The page's second module (`widget/files`) and the command line show these; the report of a session needs none of
//! them.
//!
//! ```
//! use gpumem_explorer::process_page::ProcessPage;
//! use gpumem_jobs::ranks::ranks;
//!
//! let page = ProcessPage::of_ranks(&[], &ranks(&[]));
//! assert_eq!(page.title, "0 ranks");
//! ```
#![forbid(unsafe_code)]

pub mod chart;
pub mod formats;
pub mod multiples;
pub mod process_page;

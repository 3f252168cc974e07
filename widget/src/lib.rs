//! The report in the page.
#![forbid(unsafe_code)]

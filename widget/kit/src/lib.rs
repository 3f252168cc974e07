//! What the pages of gpumem are made of: [`dom`] makes elements, [`canvas`] is a plotters backend,
//! [`paint`] puts a scene of the core on it, [`bars`] and [`segments`] draw sizes with elements.
//!
//! Functions are marked to be inlined, so that each page compiles its own: without that the report's module
//! packs 1.2 kB larger.
#![forbid(unsafe_code)]

pub mod bars;
pub mod canvas;
pub mod dom;
pub mod paint;
pub mod segments;

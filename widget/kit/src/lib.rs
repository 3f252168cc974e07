//! What the pages of gpumem are made of: [`dom`] makes elements, [`canvas`] is a plotters backend,
//! [`paint`] puts a scene of the core on it, [`bars`] and [`segments`] draw sizes with elements.
#![forbid(unsafe_code)]

pub mod bars;
pub mod canvas;
pub mod dom;
pub mod paint;
pub mod segments;

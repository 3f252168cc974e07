//! Axes.

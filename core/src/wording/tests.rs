//! Words of every kind.

//! What `cargo xtask` does.

fn main() {}

//! What is found in a recording, and how it is said.

mod loops;

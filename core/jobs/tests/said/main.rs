//! What is found in many processes, and how it is said.

mod processes;
mod ranks;

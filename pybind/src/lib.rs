//! What touches the machine; translates, decides nothing.
mod sources;

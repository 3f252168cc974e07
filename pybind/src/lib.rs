//! What touches the machine; translates, decides nothing.
mod clock;
mod sampler;
mod sim;
mod sources;

//! Where the process of a look can fail.

/// The points in the order in which the process reaches them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "no child is made")
)]
pub enum FaultPoint {
    Begun,
    Isolated,
    MallocProbed,
    ReadySent,
    RootsFound,
    HeapWalked,
    AdaptersQueried,
    AnswerFound,
    HalfSent,
    AnswerSent,
}

//! What limits a device's memory: the card, the container, a service, an allocator.

use gpumem_model::recording::{Level, Reading, Source};
use gpumem_model::units::Bytes;

/// Who sets a limit: [`Limit::by`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitedBy {
    /// The device's size.
    Device,
    /// The container that this process is in.
    Container,
    /// CUDA's multi-process service.
    Service,
    /// The host, whose memory the device shares.
    Host,
    /// The device's only allocator: a fraction set by the user, or a preallocation.
    Allocator(Source),
}

impl LimitedBy {
    /// The name in JSON and in Python.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Container => "container",
            Self::Service => "mps",
            Self::Host => "host",
            Self::Allocator(source) => source.name(),
        }
    }
}

/// A limit of a device's memory, and what is used of it: an entry of
/// [`DeviceSummary::limits`](super::DeviceSummary::limits).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Who sets it.
    pub by: LimitedBy,
    /// The most that can be used.
    pub bytes: Bytes,
    /// What counts against it, if known.
    pub used: Option<Bytes>,
}

impl Limit {
    /// What it leaves.
    pub fn free(&self) -> Option<Bytes> {
        Some(self.bytes.saturating_sub(self.used?))
    }
}

/// Every limit that is known and applies, from the smallest to the largest.
pub(super) fn limits(reading: &Reading) -> Vec<Limit> {
    let driver = &reading.driver;
    let held = reading.held();
    let process = driver.process_used.known().or(held);
    let everyone = driver.device_used.known().or(process);
    let of_machine = [
        (LimitedBy::Device, &driver.capacity, everyone),
        (LimitedBy::Container, &driver.container_limit, everyone),
        (LimitedBy::Service, &driver.service_limit, process),
        // What the host has left, the host's own levels tell.
        (LimitedBy::Host, &driver.host_limit, None),
    ];
    let limit = |(by, level, used): (LimitedBy, &Level, Option<Bytes>)| {
        let bytes = level.known()?;
        Some(Limit { by, bytes, used })
    };
    let mut limits: Vec<Limit> = of_machine.into_iter().filter_map(limit).collect();
    // What one of several allocators may hold does not limit the others.
    if let [only] = reading.allocators.as_slice() {
        let by = LimitedBy::Allocator(only.source);
        limits.extend(limit((by, &only.limit, held)));
    }
    limits.sort_by_key(|limit| limit.bytes);
    limits
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_model::recording::{AllocatorLevels, DriverLevels};

    fn mib(n: u64) -> Level {
        Bytes::mib(n).into()
    }

    /// A card of 100 MiB with 60 in use, 40 of them by torch, which may hold 50.
    fn reading() -> Reading {
        Reading {
            driver: DriverLevels {
                device_used: mib(60),
                capacity: mib(100),
                ..DriverLevels::default()
            },
            allocators: vec![AllocatorLevels {
                reserved: mib(40),
                limit: mib(50),
                ..AllocatorLevels::unread(Source::Torch)
            }],
        }
    }

    #[track_caller]
    fn check(reading: &Reading, expected: &[(&str, u64, Option<u64>)]) {
        let found: Vec<_> = limits(reading)
            .iter()
            .map(|limit| (limit.by.name(), limit.bytes, limit.free()))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(by, bytes, free)| (*by, Bytes::mib(*bytes), free.map(Bytes::mib)))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn each_limit_leaves_what_nobody_under_it_uses() {
        check(
            &reading(),
            &[("torch", 50, Some(10)), ("device", 100, Some(40))],
        );
    }

    #[test]
    fn one_of_several_allocators_limits_itself_only() {
        let mut reading = reading();
        let other = AllocatorLevels::unread(Source::Cupy);
        reading.allocators.push(other);
        check(&reading, &[("device", 100, Some(40))]);
    }

    #[test]
    fn a_service_limits_this_process_and_a_container_all_of_it() {
        let mut reading = reading();
        reading.allocators.clear();
        reading.driver.process_used = mib(20);
        reading.driver.service_limit = mib(30);
        reading.driver.container_limit = mib(80);
        check(
            &reading,
            &[
                ("mps", 30, Some(10)),
                ("container", 80, Some(20)),
                ("device", 100, Some(40)),
            ],
        );
    }

    #[test]
    fn memory_that_is_shared_with_the_host_is_counted_there() {
        let mut reading = reading();
        reading.allocators.clear();
        reading.driver = DriverLevels {
            host_limit: mib(64),
            ..DriverLevels::default()
        };
        check(&reading, &[("host", 64, None)]);
    }
}

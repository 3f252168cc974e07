//! Rows of Nsight Systems from any bytes.

use gpumem_model::units::{Bytes, Nanos};
use gpumem_readers::nsight::{Capture, FailedCall, MemoryEvent, NvtxRange};

/// Bytes of a row.
const ROW: usize = 24;

/// A capture of rows that the bytes spell, 24 bytes each. A row of 24 bytes is less than one of the database.
pub(crate) fn capture(bytes: &[u8]) -> Capture {
    let mut capture = Capture {
        has_memory: bytes.len() % ROW != 1,
        ..Capture::default()
    };
    let (rows, _) = bytes.as_chunks::<ROW>();
    for row in rows {
        add(&mut capture, row);
    }
    capture
}

fn add(capture: &mut Capture, row: &[u8; ROW]) {
    let number = |at: usize| {
        row[at..]
            .first_chunk::<4>()
            .map_or(0, |it| u32::from_le_bytes(*it))
    };
    let [what, few, thread, ..] = *row;
    // The highest byte scales: small numbers meet each other, large ones overflow.
    let large = |at: usize| u64::from(number(at)).rotate_left(u32::from(row[at + 3] & 7) * 8);
    let (first, second, third) = (large(4), large(8), large(12));
    let pid = u64::from(thread & 3) << 24 | u64::from(thread >> 4);
    let name = || format!("range {}", few & 15);
    match what % 8 {
        0..=3 => capture.events.push(MemoryEvent {
            at_nanos: first.cast_signed(),
            global_pid: pid & !0xff_ffff,
            device: u64::from(few & 3),
            address: second,
            bytes: third,
            kind: few >> 4,
            is_free: what & 8 != 0,
        }),
        4 | 5 => capture.ranges.push(NvtxRange {
            start_nanos: first.cast_signed(),
            end_nanos: (what & 8 == 0).then_some(second.cast_signed()),
            global_tid: pid,
            name: name().into(),
        }),
        6 => capture.failed.push(FailedCall {
            at_nanos: first.cast_signed(),
            global_tid: pid,
            function: "cudaMalloc_v3020".to_owned(),
            code: i64::from(few),
        }),
        _ => {
            let named = (few & 16 != 0).then(name);
            let capacity = (few & 32 != 0).then_some(Bytes::new(third));
            capture
                .devices
                .insert(u64::from(few & 3), (named, capacity));
            capture.processes.insert(u64::from(thread & 3), name());
            capture.epoch_nanos = Some(first.cast_signed());
            capture.duration = Some(Nanos::new(second));
        }
    }
}

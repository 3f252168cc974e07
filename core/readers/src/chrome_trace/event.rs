//! One event of a trace.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::device::TraceDevice;
use super::kind::{MODULE, SpanKind};
use super::model::{ChromeTrace, TraceChange, TraceSpan};
use crate::json_file::{Scalar, TextInto, expecting, next_key, own_seed};

/// Longer names of operators and kernels are cut.
const LONGEST_NAME: usize = 4096;

/// Longer lists of shapes are cut.
const LONGEST_SHAPES: usize = 512;

/// The fields of an event that count. One is used again and again.
#[derive(Debug, Default)]
pub(super) struct EventFields {
    /// The name of the field that is being read.
    key: String,
    phase: String,
    category: String,
    name: String,
    process: String,
    thread: String,
    at: Option<i64>,
    duration: Option<i64>,
    args: EventArgs,
}

#[derive(Debug, Default)]
struct EventArgs {
    shapes: String,
    device_type: Option<i64>,
    device: Option<i64>,
    bytes: Option<i64>,
    address: Option<i64>,
    allocated: Option<i64>,
    reserved: Option<i64>,
    link: Option<i64>,
}

impl EventFields {
    fn clear(&mut self) {
        let Self {
            key: _,
            phase,
            category,
            name,
            process,
            thread,
            at,
            duration,
            args,
        } = self;
        for text in [phase, category, name, process, thread, &mut args.shapes] {
            text.clear();
        }
        (*at, *duration) = (None, None);
        *args = EventArgs {
            shapes: std::mem::take(&mut args.shapes),
            ..EventArgs::default()
        };
    }

    /// Adds the event to the trace if it counts.
    fn store(&self, trace: &mut ChromeTrace) {
        trace.n_events += 1;
        match &*self.phase {
            "X" => self.store_span(trace),
            "i" | "I" if self.name == "[memory]" => {
                let change = self.change(trace);
                trace.changes.extend(change);
            }
            "i" | "I" if self.name == "[OutOfMemory]" => {
                let failed = self.change(trace);
                trace.failed.extend(failed);
            }
            _ => (),
        }
    }

    fn store_span(&self, trace: &mut ChromeTrace) {
        let kind = SpanKind::classify(&self.category, &self.name, &self.process);
        let (Some(kind), Some(start), Some(duration)) = (kind, self.at, self.duration) else {
            return;
        };
        let span = TraceSpan {
            start,
            duration: duration.max(0),
            thread: trace.thread(&self.process, &self.thread),
            label: trace.label(
                kind,
                self.name.trim_start_matches(MODULE),
                &self.args.shapes,
            ),
        };
        if let Some(link) = self.args.link
            && matches!(kind, SpanKind::Runtime | SpanKind::Kernel)
        {
            let number = u32::try_from(trace.spans.len()).unwrap_or(u32::MAX);
            trace.links.push((link, number));
        }
        trace.spans.push(span);
    }

    fn change(&self, trace: &mut ChromeTrace) -> Option<TraceChange> {
        let level = |level: Option<i64>| level.and_then(|level| u64::try_from(level).ok());
        Some(TraceChange {
            at: self.at?,
            bytes: self.args.bytes?,
            address: self.args.address,
            allocated: level(self.args.allocated),
            reserved: level(self.args.reserved),
            device: TraceDevice {
                kind: self.args.device_type?,
                number: self.args.device.unwrap_or(-1),
            },
            thread: trace.thread(&self.process, &self.thread),
        })
    }
}

/// Reads one event into the trace.
pub(super) struct EventSeed<'t> {
    pub(super) trace: &'t mut ChromeTrace,
    pub(super) fields: &'t mut EventFields,
}

own_seed!(EventSeed<'_>, deserialize_any);

impl<'de> Visitor<'de> for EventSeed<'_> {
    type Value = ();

    expecting!("an event, which is an object");

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.fields.clear();
        let fields = &mut *self.fields;
        while next_key(&mut map, &mut fields.key)? {
            match &*fields.key {
                "ph" => map.next_value_seed(TextInto(&mut fields.phase, 8))?,
                "cat" => map.next_value_seed(TextInto(&mut fields.category, 64))?,
                "name" => map.next_value_seed(NameInto(&mut fields.name))?,
                "pid" => map.next_value_seed(TextInto(&mut fields.process, 256))?,
                "tid" => map.next_value_seed(TextInto(&mut fields.thread, 256))?,
                "ts" => fields.at = map.next_value::<Scalar>()?.thousandfold(),
                "dur" => fields.duration = map.next_value::<Scalar>()?.thousandfold(),
                "args" => map.next_value_seed(ArgsSeed(&mut fields.args, &mut fields.key))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        self.fields.store(self.trace);
        Ok(())
    }
}

/// A name, which need not be UTF-8: profilers copy names of kernels as they are.
struct NameInto<'t>(&'t mut String);

impl<'de> DeserializeSeed<'de> for NameInto<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_bytes(TextInto(self.0, LONGEST_NAME))
    }
}

/// Reads the arguments of an event; the text is for the names of their fields.
struct ArgsSeed<'t>(&'t mut EventArgs, &'t mut String);

own_seed!(ArgsSeed<'_>, deserialize_any);

impl<'de> Visitor<'de> for ArgsSeed<'_> {
    type Value = ();

    expecting!("an event's `args`, which are an object");

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<(), A::Error> {
        IgnoredAny.visit_seq(items).map(|_| ())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(args, key) = self;
        while next_key(&mut map, key)? {
            let number = match &**key {
                "Input Dims" | "Input dims" => {
                    args.shapes.clear();
                    map.next_value_seed(TextInto(&mut args.shapes, LONGEST_SHAPES))?;
                    continue;
                }
                "Device Type" => &mut args.device_type,
                "Device Id" => &mut args.device,
                "Bytes" => &mut args.bytes,
                "Addr" => &mut args.address,
                "Total Allocated" => &mut args.allocated,
                "Total Reserved" => &mut args.reserved,
                "correlation" => &mut args.link,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *number = map.next_value::<Scalar>()?.int();
        }
        Ok(())
    }
}

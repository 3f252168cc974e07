//! A trace's file → its events.

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::event::{EventFields, EventSeed};
use super::model::{ChromeTrace, Properties, Worker};
use crate::json_file::{
    LARGEST_RATIO, Scalar, TextInto, expecting, max_memory, next_key, own_seed,
};
use gpumem_model::units::count;

/// Names of other fields that an error shows.
const N_SHOWN: usize = 4;

/// Fields that PyTorch's profiler writes beside the events.
const HEADER: [&str; 4] = ["schemaVersion", "trace_id", "with_stack", "record_shapes"];

/// Devices of which model and size are kept.
const N_PROPERTIES: usize = 64;

/// Reads a trace: an object with `traceEvents`, or the list of events alone.
pub(super) struct TraceSeed {
    pub(super) file_size: usize,
}

own_seed!(TraceSeed, deserialize_any);

impl<'de> Visitor<'de> for TraceSeed {
    type Value = ChromeTrace;

    expecting!("a trace of PyTorch's profiler, which is an object or a list of events");

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<ChromeTrace, A::Error> {
        let mut trace = ChromeTrace::new();
        EventsSeed {
            trace: &mut trace,
            file_size: self.file_size,
        }
        .visit_seq(items)?;
        known(trace)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ChromeTrace, A::Error> {
        let mut trace = ChromeTrace::new();
        let mut has_events = false;
        let mut others = Vec::new();
        let mut key = String::new();
        while next_key(&mut map, &mut key)? {
            match &*key {
                "traceEvents" => {
                    has_events = true;
                    map.next_value_seed(EventsSeed {
                        trace: &mut trace,
                        file_size: self.file_size,
                    })?;
                }
                "distributedInfo" => map.next_value_seed(WorkerSeed(&mut trace.worker))?,
                "deviceProperties" => map.next_value_seed(AllProperties(&mut trace.properties))?,
                "profile_memory" => {
                    trace.has_header = true;
                    trace.profiled_memory = map.next_value::<Scalar>()?.int() == Some(1);
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    trace.has_header |= HEADER.contains(&&*key);
                    if others.len() < N_SHOWN {
                        others.push(key.clone());
                    }
                }
            }
        }
        if has_events {
            return known(trace);
        }
        let fields = match &*others.join(", ") {
            "" => "nothing".to_owned(),
            fields => fields.to_owned(),
        };
        Err(A::Error::custom(format_args!(
            "not a trace of PyTorch's profiler: a JSON object with {fields}, without `traceEvents`"
        )))
    }
}

/// The trace, if it is one of PyTorch's profiler.
fn known<E: Error>(trace: ChromeTrace) -> Result<ChromeTrace, E> {
    if !trace.is_foreign() {
        return Ok(trace);
    }
    let events = count(trace.n_events, "event");
    Err(E::custom(format_args!(
        "a trace of another program: it has {events}, but no operator, kernel, range or allocation of PyTorch's \
         profiler\nhint: https://ui.perfetto.dev shows it"
    )))
}

struct EventsSeed<'t> {
    trace: &'t mut ChromeTrace,
    file_size: usize,
}

own_seed!(EventsSeed<'_>, deserialize_seq);

impl<'de> Visitor<'de> for EventsSeed<'_> {
    type Value = ();

    expecting!("a list of events");

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { trace, file_size } = self;
        let budget = max_memory(file_size);
        let mut fields = EventFields::default();
        loop {
            let seed = EventSeed {
                trace,
                fields: &mut fields,
            };
            if items.next_element_seed(seed)?.is_none() {
                return Ok(());
            }
            if trace.n_bytes() > budget {
                return Err(A::Error::custom(format_args!(
                    "its events need more than {LARGEST_RATIO} times the memory of the file"
                )));
            }
        }
    }
}

struct WorkerSeed<'t>(&'t mut Worker);

own_seed!(WorkerSeed<'_>, deserialize_map);

impl<'de> Visitor<'de> for WorkerSeed<'_> {
    type Value = ();

    expecting!("`distributedInfo`, which is an object");

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let number = |scalar: Scalar| scalar.int().and_then(|number| u64::try_from(number).ok());
        let mut key = String::new();
        while next_key(&mut map, &mut key)? {
            match &*key {
                "rank" => self.0.rank = number(map.next_value()?),
                "world_size" => self.0.world_size = number(map.next_value()?),
                "backend" => {
                    let mut backend = String::new();
                    map.next_value_seed(TextInto(&mut backend, 64))?;
                    self.0.backend = Some(backend);
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct AllProperties<'t>(&'t mut Vec<Properties>);

own_seed!(AllProperties<'_>, deserialize_seq);

impl<'de> Visitor<'de> for AllProperties<'_> {
    type Value = ();

    expecting!("`deviceProperties`, which are a list");

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        loop {
            let mut properties = Properties::default();
            if items
                .next_element_seed(PropertiesSeed(&mut properties))?
                .is_none()
            {
                return Ok(());
            }
            if self.0.len() < N_PROPERTIES {
                self.0.push(properties);
            }
        }
    }
}

struct PropertiesSeed<'t>(&'t mut Properties);

own_seed!(PropertiesSeed<'_>, deserialize_map);

impl<'de> Visitor<'de> for PropertiesSeed<'_> {
    type Value = ();

    expecting!("a device's properties, which are an object");

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut key = String::new();
        while next_key(&mut map, &mut key)? {
            match &*key {
                "id" => self.0.number = map.next_value::<Scalar>()?.int(),
                "name" => map.next_value_seed(TextInto(&mut self.0.name, 256))?,
                "totalGlobalMem" => {
                    let total = map.next_value::<Scalar>()?.int();
                    self.0.total = total.and_then(|total| u64::try_from(total).ok());
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

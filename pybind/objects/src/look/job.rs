//! The work of a look: walk, work out, answer.

use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::time::Instant;

use gpumem_heap::{HeapAnalysis as Analysis, HeapSearchResult, ObjectGraph, OutlivedQuery};
use gpumem_wire as wire;
use pyo3::prelude::*;

use super::message::{self, Questions, Tag};
use super::process::{self, Link};
use super::serve::ANSWER_WITHIN;
use super::{FaultPoint, Question, Reach, faults};
use crate::adapters::registered::Registered;
use crate::walk::{
    self, Answers, Places, QueryBackend, Search, WalkExtent, WalkLimits, WalkedMemory,
};
use gpumem_base::cpu_time;

/// The most objects, parts and storages that a search visits.
const MAX_NODES: usize = 50_000_000;

/// Takes the look in a copy of the process, and ends the copy.
pub(super) fn run_in_child(
    py: Python<'_>,
    places: &Places<'_>,
    question: &Question,
    registered: &[Registered<'_>],
    link: &Link,
) -> ! {
    process::probe_malloc();
    faults::at(FaultPoint::MallocProbed);
    message::send(link, Tag::Ready, &[]);
    faults::at(FaultPoint::ReadySent);
    let mut backend = RemoteBackend { link };
    // A panic prints nothing in the copy.
    panic::set_hook(Box::new(|_| {}));
    let looked = panic::catch_unwind(AssertUnwindSafe(|| {
        let search = Search {
            is_copy: true,
            ..search_of(question)
        };
        answer(py, places, question, search, registered, &mut backend)
    }));
    match looked {
        Ok(Ok((found, touched))) => {
            faults::at(FaultPoint::AnswerFound);
            let bytes = wire::encode_found(&found);
            message::send_by_halves(link, Tag::Found, &bytes, || {
                faults::at(FaultPoint::HalfSent);
            });
            faults::at(FaultPoint::AnswerSent);
            report(link, &touched);
        }
        Ok(Err(error)) => {
            message::send(link, Tag::Failed, error.to_string().as_bytes());
        }
        Err(_) => {
            message::send(link, Tag::Failed, b"it panicked");
        }
    }
    process::leave()
}

/// What the next copy can do without, if the original wants to know.
fn report(link: &Link, touched: &WalkedMemory) {
    let until = Instant::now() + ANSWER_WITHIN;
    let wanted = message::receive(link, &mut || link.wait_until(until));
    if let Ok((Tag::Survey, _)) = wanted
        && let Some(survey) = process::survey(touched)
    {
        message::send(link, Tag::Survey, &message::numbers_to_bytes(&survey));
    }
}

pub(super) fn search_of(question: &Question) -> Search {
    Search {
        extent: if question.reach == Reach::All {
            WalkExtent::Everything
        } else {
            WalkExtent::Names
        },
        limits: WalkLimits {
            until: Instant::now() + question.longest(question.walk_time),
            cpu_until: Some(cpu_time::spent() + question.walk_time),
            n_nodes: MAX_NODES,
        },
        is_copy: false,
        reads_graph: question.reads_graph,
    }
}

/// The answer, from the objects of this process.
fn answer(
    py: Python<'_>,
    places: &Places<'_>,
    question: &Question,
    search: Search,
    registered: &[Registered<'_>],
    backend: &mut dyn QueryBackend,
) -> PyResult<(HeapSearchResult, WalkedMemory)> {
    let mut walked = walk::find(py, places, search, registered)?.complete(py, backend);
    faults::at(FaultPoint::AdaptersQueried);
    let mut touched = mem::take(&mut walked.touched);
    let held_by = walked.graph.by_preferred_name();
    let (mut found, hides) = work_out(walked, question);
    if hides && question.reach == Reach::NamesOrAll {
        let further = Search {
            extent: WalkExtent::Everything,
            ..search
        };
        let mut walked = walk::find(py, places, further, registered)?.complete(py, backend);
        touched = mem::take(&mut walked.touched);
        // A search that was cut short knows less than the first one.
        if !walked.graph.is_cut() {
            found = work_out(walked, question).0;
        }
    }
    found.held_by = held_by;
    Ok((found, touched))
}

/// Who holds what, and whether names leave growth unexplained.
pub(super) fn work_out(walked: walk::WalkResult, question: &Question) -> (HeapSearchResult, bool) {
    let walk::WalkResult {
        mut graph,
        n_objects,
        notes,
        ..
    } = walked;
    account(&mut graph, question);
    let analysis = Analysis::at(&graph);
    let mut inventory = analysis.inventory();
    let before = question.before.as_deref();
    let since = before.map(|before| inventory.since(before));
    let mut holders = analysis.holders(&question.limits, since);
    analysis.twins(&mut holders);
    let mut hides = !graph.is_cut() && inventory.hides_growth_since(before);
    if let Some(before) = before {
        let grown = question.grown.as_ref();
        hides |= !graph.is_cut()
            && grown.is_some_and(|(device, by)| inventory.hides_on(device, *by, before));
        let earlier = OutlivedQuery {
            gone: &question.gone,
            is_collected: question.is_collected,
            is_kept: question.is_kept,
        };
        hides |= analysis.outlived(&mut inventory, &mut holders, before, &earlier);
    }
    let found = HeapSearchResult {
        holders,
        inventory,
        held_by: Vec::new(),
        storages: analysis.storage_names(question.limits.n_storages),
        n_objects: n_objects as u64,
        notes,
    };
    (found, hides)
}

fn account(graph: &mut ObjectGraph, question: &Question) {
    for (device, allocated) in &question.allocated {
        graph.account(device, *allocated);
    }
    if !question.is_collected {
        graph.leave_garbage();
    }
    graph.find_graph_cycles();
}

/// Sends queries that the copy cannot answer to the original process.
struct RemoteBackend<'l> {
    link: &'l Link,
}

impl QueryBackend for RemoteBackend<'_> {
    fn ask(
        &mut self,
        _py: Python<'_>,
        objects: &[(Bound<'_, PyAny>, u8)],
        pools: &[walk::PoolId],
    ) -> Answers {
        let object =
            |(object, adapter): &(Bound<'_, PyAny>, u8)| (object.as_ptr() as usize, *adapter);
        let questions = Questions {
            objects: objects.iter().map(object).collect(),
            pools: pools.to_vec(),
        };
        message::send(self.link, Tag::Questions, &questions.to_bytes());
        let until = Instant::now() + ANSWER_WITHIN;
        let reply = message::receive(self.link, &mut || self.link.wait_until(until));
        let answers = reply.ok().and_then(|(tag, payload)| {
            let answers = message::answers_from_bytes(&payload, &questions)?;
            (tag == Tag::Answers).then_some(answers)
        });
        answers.unwrap_or_default()
    }
}

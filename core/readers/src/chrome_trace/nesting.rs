//! Which span holds which, in each thread.

use std::cmp::Reverse;

use super::kind::Kind;
use super::model::Trace;

/// Stands for no span.
pub(super) const NONE: u32 = u32::MAX;

/// Where each span and each change of memory stands.
#[derive(Debug)]
pub(super) struct Nesting {
    /// By span.
    pub(super) spans: Vec<Place>,
    /// By change: the innermost operator or call, module and function.
    pub(super) changes: Vec<Place>,
    /// Numbers of the spans that may hold others, each before what is inside of it.
    pub(super) order: Vec<u32>,
}

/// The spans around something; numbers of spans, or [`NONE`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The innermost operator or call of the runtime; of such a span, the one around it.
    pub(super) operator: u32,
    /// The outermost operator.
    pub(super) outermost: u32,
    /// The innermost module.
    pub(super) module: u32,
    /// The innermost Python function.
    pub(super) function: u32,
    /// The innermost range; of a range, the one around it.
    pub(super) range: u32,
    /// Of an operator: nanoseconds in operators directly inside. Of a range: how many are around it.
    pub(super) inside: u64,
}

const NOWHERE: Place = Place {
    operator: NONE,
    outermost: NONE,
    module: NONE,
    function: NONE,
    range: NONE,
    inside: 0,
};

/// A span that is open.
struct Open {
    end: i64,
    /// What is innermost inside of it.
    place: Place,
}

/// What happens in a thread, in order.
#[derive(Clone, Copy)]
enum Item {
    Span(u32),
    Change(u32),
}

impl Nesting {
    pub(super) fn of(trace: &Trace) -> Self {
        let mut nesting = Self {
            spans: vec![NOWHERE; trace.spans.len()],
            changes: vec![NOWHERE; trace.changes.len()],
            order: Vec::new(),
        };
        let mut open: Vec<Open> = Vec::new();
        let mut thread = NONE;
        for item in in_order(trace) {
            let (at, of_thread) = match item {
                Item::Span(number) => {
                    let span = &trace.spans[number as usize];
                    (span.start, span.thread)
                }
                Item::Change(number) => {
                    let change = &trace.changes[number as usize];
                    (change.at, change.thread)
                }
            };
            if thread != of_thread {
                open.clear();
                thread = of_thread;
            }
            // A change at a span's last instant is still inside of it.
            let is_span = matches!(item, Item::Span(_));
            while open
                .last()
                .is_some_and(|open| open.end < at || is_span && open.end == at)
            {
                open.pop();
            }
            let place = open.last().map_or(NOWHERE, |open| open.place);
            match item {
                Item::Change(number) => nesting.changes[number as usize] = place,
                Item::Span(number) => {
                    nesting.order.push(number);
                    open.extend(nesting.enter(trace, number, place));
                }
            }
        }
        nesting
    }

    fn enter(&mut self, trace: &Trace, number: u32, around: Place) -> Option<Open> {
        let span = &trace.spans[number as usize];
        let own = &mut self.spans[number as usize];
        *own = Place {
            inside: 0,
            ..around
        };
        let mut place = around;
        match trace.label_of(span).kind {
            Kind::Kernel => return None,
            Kind::Module => place.module = number,
            Kind::Function => place.function = number,
            Kind::Range => {
                own.inside = around.inside;
                place.inside = around.inside + 1;
                place.range = number;
            }
            Kind::Operator | Kind::Runtime => {
                place.operator = number;
                if around.outermost == NONE {
                    place.outermost = number;
                }
                if let Some(outer) = self.spans.get_mut(around.operator as usize) {
                    outer.inside = outer.inside.saturating_add(span.duration.unsigned_abs());
                }
            }
        }
        let end = span.end();
        Some(Open { end, place })
    }
}

impl Nesting {
    /// The operators and calls around a span, the innermost first.
    pub(super) fn around(&self, span: u32) -> impl Iterator<Item = u32> {
        let outer = |span: &u32| Some(self.spans.get(*span as usize)?.operator);
        std::iter::successors(outer(&span), outer).take_while(|span| *span != NONE)
    }
}

fn in_order(trace: &Trace) -> Vec<Item> {
    let spans = trace.spans.iter().enumerate();
    let spans = spans.filter(|(_, span)| trace.label_of(span).kind != Kind::Kernel);
    let mut items: Vec<Item> = spans.map(|(number, _)| Item::Span(number as u32)).collect();
    items.extend((0..trace.changes.len()).map(|number| Item::Change(number as u32)));
    items.sort_unstable_by_key(|item| match *item {
        Item::Span(number) => {
            let span = &trace.spans[number as usize];
            (
                span.thread,
                span.start,
                false,
                Reverse(span.duration),
                number,
            )
        }
        Item::Change(number) => {
            let change = &trace.changes[number as usize];
            (change.thread, change.at, true, Reverse(0), number)
        }
    });
    items
}

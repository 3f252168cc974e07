//! Which span contains which, in each thread.

use std::cmp::Reverse;

use super::kind::SpanKind;
use super::model::ChromeTrace;

/// Stands for no span.
pub(super) const NONE: u32 = u32::MAX;

/// The spans around each span and each change of memory.
#[derive(Debug)]
pub(super) struct Nesting {
    /// By span.
    pub(super) spans: Vec<EnclosingSpans>,
    /// By change: the innermost operator or call, module and function.
    pub(super) changes: Vec<EnclosingSpans>,
    /// Numbers of the spans that may contain others, outer before inner.
    pub(super) order: Vec<u32>,
}

/// The spans around something; numbers of spans, or [`NONE`].
#[derive(Debug, Clone, Copy)]
pub(super) struct EnclosingSpans {
    /// The innermost operator or call of the runtime; for such a span, the one around it.
    pub(super) operator: u32,
    /// The outermost operator.
    pub(super) outermost: u32,
    /// The innermost module.
    pub(super) module: u32,
    /// The innermost Python function.
    pub(super) function: u32,
    /// The innermost range; for a range, the one around it.
    pub(super) range: u32,
    /// For an operator: nanoseconds in operators directly inside. For a range: how many are around it.
    pub(super) inside: u64,
}

const NOWHERE: EnclosingSpans = EnclosingSpans {
    operator: NONE,
    outermost: NONE,
    module: NONE,
    function: NONE,
    range: NONE,
    inside: 0,
};

/// A span that is open.
struct OpenSpan {
    end: i64,
    /// The innermost spans inside it.
    place: EnclosingSpans,
}

/// What happens in a thread, in order.
#[derive(Clone, Copy)]
enum ThreadItem {
    Span(u32),
    Change(u32),
}

impl Nesting {
    pub(super) fn new(trace: &ChromeTrace) -> Self {
        let mut nesting = Self {
            spans: vec![NOWHERE; trace.spans.len()],
            changes: vec![NOWHERE; trace.changes.len()],
            order: Vec::new(),
        };
        let mut open: Vec<OpenSpan> = Vec::new();
        let mut thread = NONE;
        for item in in_order(trace) {
            let (at, of_thread) = match item {
                ThreadItem::Span(number) => {
                    let span = &trace.spans[number as usize];
                    (span.start, span.thread)
                }
                ThreadItem::Change(number) => {
                    let change = &trace.changes[number as usize];
                    (change.at, change.thread)
                }
            };
            if thread != of_thread {
                open.clear();
                thread = of_thread;
            }
            // A change at a span's last instant is still inside it.
            let is_span = matches!(item, ThreadItem::Span(_));
            while open
                .last()
                .is_some_and(|open| open.end < at || is_span && open.end == at)
            {
                open.pop();
            }
            let place = open.last().map_or(NOWHERE, |open| open.place);
            match item {
                ThreadItem::Change(number) => nesting.changes[number as usize] = place,
                ThreadItem::Span(number) => {
                    nesting.order.push(number);
                    open.extend(nesting.enter(trace, number, place));
                }
            }
        }
        nesting
    }

    fn enter(
        &mut self,
        trace: &ChromeTrace,
        number: u32,
        around: EnclosingSpans,
    ) -> Option<OpenSpan> {
        let span = &trace.spans[number as usize];
        let own = &mut self.spans[number as usize];
        *own = EnclosingSpans {
            inside: 0,
            ..around
        };
        let mut place = around;
        match trace.label_of(span).kind {
            SpanKind::Kernel => return None,
            SpanKind::Module => place.module = number,
            SpanKind::Function => place.function = number,
            SpanKind::Range => {
                own.inside = around.inside;
                place.inside = around.inside + 1;
                place.range = number;
            }
            SpanKind::Operator | SpanKind::Runtime => {
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
        Some(OpenSpan { end, place })
    }
}

impl Nesting {
    /// The operators and calls around a span, the innermost first.
    pub(super) fn around(&self, span: u32) -> impl Iterator<Item = u32> {
        let outer = |span: &u32| Some(self.spans.get(*span as usize)?.operator);
        std::iter::successors(outer(&span), outer).take_while(|span| *span != NONE)
    }
}

fn in_order(trace: &ChromeTrace) -> Vec<ThreadItem> {
    let spans = trace.spans.iter().enumerate();
    let spans = spans.filter(|(_, span)| trace.label_of(span).kind != SpanKind::Kernel);
    let mut items: Vec<ThreadItem> = spans
        .map(|(number, _)| ThreadItem::Span(number as u32))
        .collect();
    items.extend((0..trace.changes.len()).map(|number| ThreadItem::Change(number as u32)));
    items.sort_unstable_by_key(|item| match *item {
        ThreadItem::Span(number) => {
            let span = &trace.spans[number as usize];
            (
                span.thread,
                span.start,
                false,
                Reverse(span.duration),
                number,
            )
        }
        ThreadItem::Change(number) => {
            let change = &trace.changes[number as usize];
            (change.thread, change.at, true, Reverse(0), number)
        }
    });
    items
}

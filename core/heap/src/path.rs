//! Paths as Python writes them.

use super::csr_graph::CsrGraph;
use super::node::{CACHE, NodeIdx};
use super::reach::Reachability;
use super::step::Step;

/// A longer path is shown by its first and its last steps.
const N_FIRST: usize = 6;
const N_LAST: usize = 4;

/// The expression that leads from `above`, which lies on the way, to `vertex`:
/// from a root a whole one, `losses[3].grad_fn`, else its end, `.grad_fn`.
pub(super) fn text(web: &CsrGraph<'_>, reach: &Reachability, above: u32, vertex: u32) -> String {
    let mut links = reach.path(above, vertex);
    links.retain(|(_, _, link)| !is_within(web, *link));
    let n_left_out = links.len().saturating_sub(N_FIRST + N_LAST);
    let mut text = String::new();
    for (place, (from, to, link)) in links.into_iter().enumerate() {
        if n_left_out > 0 && place == N_FIRST {
            text.push('…');
        }
        if !(N_FIRST..N_FIRST + n_left_out).contains(&place) {
            text.push_str(&step_text(web, from, to, link));
        }
    }
    text
}

/// The same object for a reader.
pub(super) fn is_within(web: &CsrGraph<'_>, link: u32) -> bool {
    let edge = web.edge(link);
    edge.is_some_and(|edge| edge.step == Step::Within)
}

/// What an object holds internally, named by the object's type: the results of a cache.
fn inside(web: &CsrGraph<'_>, from: NodeIdx, step: &Step) -> String {
    let is_cache = &*web.graph.node(from).type_name == CACHE;
    match step {
        Step::Opaque if is_cache => ".<cache>".to_owned(),
        step => step.to_string(),
    }
}

fn step_text(web: &CsrGraph<'_>, from: u32, to: u32, link: u32) -> String {
    if let Some(root) = web.entry(link) {
        return root.path.to_string();
    }
    let nodes = web.node_of(from).zip(web.node_of(to));
    match (web.edge(link), nodes) {
        (Some(edge), Some((from, _))) => inside(web, from, &edge.step),
        (Some(edge), _) => edge.step.to_string(),
        // Nothing names it: its type has to do.
        (None, _) => match web.object(to) {
            Some(to) => format!("<{}>", to.type_name),
            None => String::new(),
        },
    }
}

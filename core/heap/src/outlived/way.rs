//! How what lives on is reached: the path to it, and the code that lets go of it.

use std::collections::HashMap;

use super::super::csr_graph::SESSION;
use super::super::heap_analysis::HeapAnalysis;
use super::super::holders::{is_of_hooks, keeper_of_step};
use super::super::holding::{Holding, PARAMETERS};
use super::super::node::{CACHE, Node};
use super::super::path;
use super::super::retained_size::SizedStorage;
use super::super::step::Step;
use gpumem_model::holders::{Keeper, LibraryObject, RootKind, WayOut};
use gpumem_model::source_text::is_name_letter;
use gpumem_model::units::Bytes;

/// The object that has this share of the bytes is called the one that keeps them.
const NEARLY_ALL: f64 = 0.9;

/// Containers that several names may fill.
const CONTAINERS: [&str; 4] = ["list", "dict", "tuple", "set"];

/// The way from a name to the object that keeps what lives on.
pub(super) struct Way<'l, 'a> {
    look: &'l HeapAnalysis<'a>,
    root: u32,
    /// The vertices, from the named object on.
    chain: Vec<u32>,
    /// The steps to each of them; none to the named object.
    steps: Vec<Option<&'l Step>>,
    /// Which of them is the object.
    pub(super) object: usize,
}

impl<'l, 'a> Way<'l, 'a> {
    /// To the object that has nearly all of these storages: the one that was deleted, if it is on the way.
    pub(super) fn to(
        look: &'l HeapAnalysis<'a>,
        root: u32,
        held: &[&SizedStorage],
        promise: &Holding,
    ) -> Self {
        let largest = held.iter().max_by_key(|it| it.n_bytes);
        let largest = largest.map_or(root, |it| look.vertex(it.number));
        let links = look.reach.path(root, largest);
        let chain: Vec<u32> = links.iter().map(|(_, to, _)| *to).collect();
        let steps = links
            .iter()
            .map(|(.., link)| look.web.edge(*link).map(|it| &it.step));
        let mut way = Self {
            look,
            root,
            steps: steps.collect(),
            object: 0,
            chain,
        };
        // Its state, too, is by its parameters.
        let step = way.steps.get(1).copied().flatten();
        if way.is_of_optimizer() && !step.is_some_and(|it| it.is_attribute(PARAMETERS)) {
            return way;
        }
        let depth = way.depth_of_most(held);
        let is_type = |at: &usize| *way.node(*at).type_name == *promise.type_name;
        let deleted = (0..=depth).rev().find(is_type);
        way.object = deleted.unwrap_or(depth);
        way
    }

    /// The deepest vertex below which nearly all of these are; never a storage.
    fn depth_of_most(&self, held: &[&SizedStorage]) -> usize {
        let places: HashMap<u32, usize> = self.chain.iter().copied().zip(0..).collect();
        let mut sums = vec![0_u64; self.chain.len().max(1)];
        for stored in held {
            let mut at = self.look.vertex(stored.number);
            while at != SESSION && at != self.root && !places.contains_key(&at) {
                at = self.look.reach.above(at);
            }
            sums[places.get(&at).copied().unwrap_or_default()] += stored.n_bytes;
        }
        let all: u64 = sums.iter().sum();
        let mut below = 0;
        let mut depth = sums.len() - 1;
        for (at, sum) in sums.iter().enumerate().rev() {
            below += sum;
            depth = at;
            if below as f64 >= NEARLY_ALL * all as f64 {
                break;
            }
        }
        while depth > 0 && self.node(depth).storage.is_some() {
            depth -= 1;
        }
        depth
    }

    pub(super) fn node(&self, at: usize) -> &'l Node {
        let first = self.look.web.first_node();
        let vertex = self.chain.get(at).copied().unwrap_or(first);
        let idx = vertex.saturating_sub(first) as usize;
        &self.look.web.graph.nodes[idx]
    }

    /// The first step of a kind on the way.
    fn first(&self, is_it: impl Fn(&Step) -> bool) -> Option<usize> {
        let mut steps = self.steps[..=self.object].iter();
        steps.position(|step| step.is_some_and(&is_it))
    }

    pub(super) fn keeper(&self) -> Option<Keeper> {
        let is_traceback = |step: &Step| keeper_of_step(step) == Some(Keeper::Traceback);
        if self.first(is_traceback).is_some() {
            return Some(Keeper::Traceback);
        }
        let mut keepers = self.steps[..=self.object].iter().flatten();
        keepers.find_map(|step| keeper_of_step(step))
    }

    /// The expression of the object; what is behind a traceback is of no use to anybody.
    pub(super) fn text(&self) -> String {
        let of_error = self.first(is_of_error);
        if let Some(at) = self.local().filter(|_| of_error.is_none()) {
            return self.text_of_local(at);
        }
        let shown = of_error.map(|at| match self.steps[at] {
            // The traceback itself is in a name.
            Some(step) if !is_of_exception(step) => at.saturating_sub(1),
            _ => at,
        });
        self.text_to(shown.unwrap_or(self.object))
    }

    fn text_to(&self, at: usize) -> String {
        let vertex = self.chain.get(at).copied().unwrap_or(self.root);
        path::text(&self.look.web, &self.look.reach, SESSION, vertex)
    }

    /// Where the way leads through a `threading.local`.
    fn local(&self) -> Option<usize> {
        let is_local = |at: &usize| matches!(&*self.node(*at).type_name, "_local" | "local");
        (0..self.object).find(is_local)
    }

    /// What a thread has in it reads as an attribute, as the thread itself writes it.
    fn text_of_local(&self, at: usize) -> String {
        let mut text = self.text_to(at);
        let mut inside = self.steps[at + 1..=self.object].iter().flatten();
        let attribute = inside.by_ref().find_map(|step| match step {
            Step::Key(key) => key.strip_prefix('\'')?.strip_suffix('\''),
            _ => None,
        });
        text.extend(attribute.map(|name| format!(".{name}")));
        text.extend(inside.map(ToString::to_string));
        text
    }

    /// Another variable is the object, or a view of it.
    pub(super) fn is_same_object(
        &self,
        promise: &Holding,
        n_bytes: Bytes,
        stored: &HashMap<u64, &SizedStorage>,
    ) -> bool {
        let node = self.node(self.object);
        if self.object > 0 && !self.steps[1..=self.object].iter().all(|it| is_within(*it)) {
            return false;
        }
        let is_tensor = node.category.is_some() || node.shape.is_some();
        // Another variable had it, too, and was the nearer one.
        if !promise.is_first {
            return true;
        }
        if !CONTAINERS.contains(&&*node.type_name) {
            return is_tensor || *node.type_name == *promise.type_name;
        }
        let of_root = stored.values().filter(|it| it.root == self.root);
        let of_root: Bytes = of_root.map(|it| Bytes::new(it.n_bytes)).sum();
        *node.type_name == *promise.type_name && of_root <= n_bytes
    }

    /// The objects of libraries on the way to it, the nearest first.
    pub(super) fn library_objects(&self) -> Vec<LibraryObject> {
        let Some(end) = self.chain.get(self.object) else {
            return Vec::new();
        };
        let before = self.chain[..self.object].iter().rev();
        before
            .filter_map(|vertex| self.look.library_object(*vertex, *end))
            .collect()
    }

    /// How it can be let go of, and the code that does so.
    pub(super) fn out(&self) -> Option<(WayOut, String)> {
        let name = &self.look.web.names[self.root as usize - 1];
        match name.kind {
            RootKind::UncollectedGarbage => {
                return Some((WayOut::Collector, name.kind.release()?.to_owned()));
            }
            RootKind::ThreadFrame => return Some((WayOut::Thread, String::new())),
            RootKind::Variable | RootKind::ModuleGlobal => {}
            _ => return None,
        }
        if self.local().is_some() {
            return Some((WayOut::Thread, String::new()));
        }
        let mut expressions = self.expressions();
        let is_name = |text: &String| text.chars().all(is_name_letter);
        if let Some(at) = self.first(is_of_error) {
            let error = expressions.get(at.saturating_sub(1))?;
            let is_own = self.steps[at].is_some_and(|it| it.is_attribute("__traceback__"));
            if is_own && !is_name(error) {
                let code = format!("{error}.with_traceback(None);");
                return Some((WayOut::Exception, code));
            }
            expressions.truncate(at);
            let mut parts = (1..expressions.len()).rev();
            let part = parts.find_map(|at| self.taken_out(at, &expressions[at]));
            let own = expressions.first().filter(|it| is_name(it));
            let code = part.or_else(|| Some(format!("del {}", own?)))?;
            return Some((WayOut::Exception, code));
        }
        let handle = self.hook().and_then(|hook| {
            let handle = self.look.web.graph.handles.get(&hook)?;
            Some((WayOut::Hook, format!("{handle}.remove()")))
        });
        let cache = || {
            let mut caches = (0..self.object.min(expressions.len())).rev();
            let at = caches.find(|at| *self.node(*at).type_name == *CACHE)?;
            Some((WayOut::Cache, format!("{}.cache_clear()", expressions[at])))
        };
        let part = || {
            if self.is_of_optimizer() {
                return None;
            }
            let mut parts = (1..expressions.len()).rev();
            Some((
                WayOut::Part,
                parts.find_map(|at| self.taken_out(at, &expressions[at]))?,
            ))
        };
        let own = || {
            let own = expressions.first().filter(|it| is_name(it))?;
            Some((WayOut::Name, format!("del {own}")))
        };
        handle.or_else(cache).or_else(part).or_else(own)
    }

    /// An optimizer has what it changes in several places, and is of no use without it.
    fn is_of_optimizer(&self) -> bool {
        let named = self.chain.first().copied().unwrap_or(self.root);
        let mut links = self.look.web.successors(named);
        links.any(|(_, link)| {
            let edge = self.look.web.edge(link);
            edge.is_some_and(|it| it.step.is_attribute(PARAMETERS))
        })
    }

    /// The number of the hook that leads to the object.
    fn hook(&self) -> Option<u64> {
        let mut steps = self.steps[..=self.object].iter().flatten();
        steps.find(
            |step| matches!(step, Step::Attribute(name) | Step::Variable(name) if is_of_hooks(name)),
        )?;
        steps.find_map(|step| match step {
            Step::Key(key) => Some(key.parse().ok()),
            Step::Index(idx) => Some(Some(*idx)),
            _ => None,
        })?
    }

    /// What each object on the way is in Python, as far as it can be written.
    fn expressions(&self) -> Vec<String> {
        let entry = self.look.web.successors(self.root).next();
        let entry = entry.and_then(|(_, link)| self.look.web.entry(link));
        let mut text = match entry {
            Some(root) if !root.path.contains(['<', '(']) => root.path.to_string(),
            _ => return Vec::new(),
        };
        let mut expressions = vec![text.clone()];
        for step in self.steps.iter().take(self.object + 1).skip(1) {
            let is_written = match step {
                Some(Step::Attribute(name) | Step::Variable(name)) => is_identifier(name),
                Some(Step::Key(key)) => !key.contains(['…', '<', ' ']),
                Some(Step::Index(_) | Step::Within) => true,
                _ => false,
            };
            let Some(step) = step.filter(|_| is_written) else {
                break;
            };
            text.push_str(&step.to_string());
            expressions.push(text.clone());
        }
        expressions
    }

    /// The statement that takes it out of what has it.
    fn taken_out(&self, at: usize, expression: &str) -> Option<String> {
        let parent = self.node(at - 1);
        let is_fixed = parent.category.is_some()
            || matches!(
                &*parent.type_name,
                "tuple" | "partial" | "method" | "frozenset"
            );
        match self.steps[at] {
            _ if is_fixed => None,
            Some(Step::Index(_) | Step::Key(_)) => Some(format!("del {expression}")),
            Some(Step::Attribute(_) | Step::Variable(_)) => Some(format!("{expression} = None")),
            _ => None,
        }
    }
}

/// The steps that lead from an exception or a traceback into its frames, and to the exceptions behind it.
fn is_of_error(step: &Step) -> bool {
    let is_of_traceback = match step {
        Step::Frame(_) => true,
        Step::Attribute(name) => name.starts_with("tb_"),
        _ => false,
    };
    is_of_exception(step) || is_of_traceback
}

fn is_of_exception(step: &Step) -> bool {
    let behind = ["__traceback__", "__context__", "__cause__"];
    matches!(step, Step::Attribute(name) if behind.contains(&&**name))
}

fn is_within(step: Option<&Step>) -> bool {
    matches!(step, Some(Step::Within))
}

/// A name that code can write, and assign to: none of Python's own.
fn is_identifier(name: &str) -> bool {
    let is_own = name.starts_with("__") && name.ends_with("__");
    !is_own && !name.is_empty() && name.chars().all(is_name_letter)
}

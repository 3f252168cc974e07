//! What should be dead: storages that live on although the variable that held them is gone.

use std::collections::{BTreeMap, HashMap};

use super::csr_graph::SESSION;
use super::heap_analysis::HeapAnalysis;
use super::holders::{is_of_hooks, keeper_of_step};
use super::holding::Holding;
use super::inventory::{Inventory, Shelf};
use super::node::Node;
use super::path;
use super::reach::Held;
use super::retained_size::{RetainedSize, Stored};
use super::step::Step;
use super::{Holders, words};
use gpumem_model::holders::{Keeper, Outlived, RootKind, WayOut};
use gpumem_model::source_text::is_name_letter;
use gpumem_model::units::Bytes;

/// Of one device, as many are followed: those that held the most.
const MAX_PROMISES: usize = 16;

/// What is at most so small is no reason to search further than names.
const WORTH_SEARCHING: Bytes = Bytes::mib(1);

/// The object that has this share of the bytes is called the one that keeps them.
const NEARLY_ALL: f64 = 0.9;

/// Where optimizers have the parameters of a model.
pub(super) const PARAMETERS: &str = "param_groups";

/// Containers that several names may fill.
const CONTAINERS: [&str; 4] = ["list", "dict", "tuple", "set"];

/// Switches the collector on that is off.
const COLLECT: &str = "import gc; gc.enable(); gc.collect()";

/// What a search must know to tell what should be dead.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// Variables that the search before found, and that were deleted since, or are `None`.
    pub gone: &'a [String],
    /// The garbage collector is on, so cyclic garbage is freed soon.
    pub is_collected: bool,
}

/// What should be dead, or would be if its name has a new object only since then.
fn promises(shelf: &Shelf, asked: &Asked<'_>) -> Vec<Holding> {
    let is_gone = |it: &Holding| asked.gone.iter().any(|name| **name == *it.name);
    let fresh = shelf.holdings.iter();
    let fresh = fresh.map(|it| Holding {
        is_rebound: !is_gone(it),
        ..it.clone()
    });
    let (rebound, gone): (Vec<_>, Vec<_>) = fresh.partition(|it| it.is_rebound);
    let mut all = shelf.promises.clone();
    // The latest is what a name promises.
    all.retain(|old| !gone.iter().any(|it| it.name == old.name));
    let mut rebound = rebound;
    rebound.retain(|it| !all.iter().any(|old| old.name == it.name));
    all.splice(..0, gone);
    all.truncate(MAX_PROMISES);
    all.extend(rebound);
    all
}

/// What became of a promise.
enum Outcome {
    /// All is freed, or under the name again.
    Kept,
    /// No name leads to the rest, which this search did not look for.
    Unknown,
    /// It lives on, which is no news: another variable is the same object, or the collector will free it.
    Fine,
    LivesOn(Outlived),
}

impl HeapAnalysis<'_> {
    /// Notes in `holders` what should be dead and lives on, and in `inventory` what of it a later search must
    /// look for. True if something of it may live on where this search did not look.
    pub fn outlived(
        &self,
        inventory: &mut Inventory,
        holders: &mut Holders,
        before: &Inventory,
        asked: &Asked<'_>,
    ) -> bool {
        let mut is_hidden = false;
        let labels: Vec<String> = self.labels().map(str::to_owned).collect();
        for (device, label) in labels.iter().enumerate() {
            let Some(earlier) = before.shelf(label) else {
                continue;
            };
            let promises = promises(earlier, asked);
            if promises.is_empty() {
                continue;
            }
            let nameless = inventory.shelf(label).and_then(|it| {
                it.handed_out?;
                Some(inventory.nameless(it))
            });
            let stored = self.stored_by_id(device as u16);
            let mut kept = Vec::new();
            let mut outlived = Vec::new();
            for promise in promises {
                let was_known = earlier.promises.iter().any(|it| it.name == promise.name);
                let is_far = before.is_whole && was_known || !asked.is_collected;
                match self.outcome(&promise, &stored, asked, nameless, is_far) {
                    Outcome::Kept => {}
                    Outcome::Unknown => {
                        is_hidden = true;
                        kept.push(promise);
                    }
                    Outcome::Fine => kept.push(promise),
                    Outcome::LivesOn(it) => {
                        outlived.push(it);
                        kept.push(promise);
                    }
                }
            }
            outlived.sort_by_key(|it| std::cmp::Reverse(it.n_bytes));
            outlived.truncate(MAX_PROMISES);
            kept.retain(|it| !it.is_rebound || outlived.iter().any(|out| *out.name == *it.name));
            let mut shelves = inventory.devices.iter_mut();
            if let Some(shelf) = shelves.find(|it| *it.device == **label) {
                shelf.promises = kept;
            }
            let mut devices = holders.devices.iter_mut();
            if let Some(found) = devices.find(|it| it.device == *label) {
                found.outlived = outlived;
            }
        }
        is_hidden && !self.web.graph.is_whole && !self.web.graph.is_cut
    }

    fn stored_by_id(&self, device: u16) -> HashMap<u64, &Stored> {
        let stored = self.ground.storages.iter().filter(|it| it.device == device);
        let by_id = stored.filter_map(|stored| {
            let node = self.web.node_of(self.vertex(stored.number))?;
            Some((self.web.graph.node(node).storage.as_ref()?.id, stored))
        });
        by_id.collect()
    }

    fn outcome(
        &self,
        promise: &Holding,
        stored: &HashMap<u64, &Stored>,
        asked: &Asked<'_>,
        nameless: Option<Bytes>,
        is_far: bool,
    ) -> Outcome {
        if self.web.graph.is_cut {
            return Outcome::Fine;
        }
        let found = promise.ids.iter().filter_map(|id| stored.get(id).copied());
        let mut by_root: BTreeMap<u32, Vec<&Stored>> = BTreeMap::new();
        let mut n_found = Bytes::ZERO;
        for stored in found {
            n_found += Bytes::new(stored.n_bytes);
            by_root.entry(stored.root).or_default().push(stored);
        }
        let is_own = |root: &u32| {
            let name = self.web.name_of(*root);
            name.is_some_and(|it| it.kind == RootKind::Variable && *it.name == *promise.name)
        };
        by_root.retain(|root, _| !is_own(root));
        let missing = promise.n_bytes.saturating_sub(n_found);
        let may_be_nameless = nameless.map_or(is_far, |n| n.as_f64() >= missing.as_f64() / 2.0);
        if missing >= WORTH_SEARCHING && may_be_nameless && !self.web.graph.is_whole {
            return Outcome::Unknown;
        }
        let n_bytes = by_root.values().flatten();
        let n_bytes = n_bytes.map(|it| Bytes::new(it.n_bytes)).sum();
        let sum = |stored: &Vec<&Stored>| stored.iter().map(|it| it.n_bytes).sum::<u64>();
        let Some((root, held)) = by_root.iter().max_by_key(|(_, stored)| sum(stored)) else {
            return Outcome::Kept;
        };
        let way = Way::to(self, *root, held, promise);
        let name = &self.web.names[*root as usize - 1];
        if name.kind == RootKind::CyclicGarbage && asked.is_collected {
            return Outcome::Fine;
        }
        let keeper = way.keeper();
        let is_alone = by_root.len() == 1
            && held.iter().all(|it| {
                self.tops[it.number as usize] == self.dominators.number(*root)
                    || it.held == Held::Unnamed
            });
        let outlived = Outlived {
            name: promise.name.to_string(),
            is_rebound: promise.is_rebound,
            had: promise.n_bytes,
            n_bytes,
            kind: name.kind,
            holder: name.name.to_owned(),
            is_alone,
            path: way.text(),
            what: words::object(way.node(way.object), &RetainedSize::default()),
            keeper,
            ..Outlived::default()
        };
        let outlived = match way.out() {
            Some((way_out, code)) => Outlived {
                way_out: Some(way_out),
                code,
                ..outlived
            },
            None => outlived,
        };
        if promise.is_rebound {
            // A list rightly collects what each run puts under the name.
            return if outlived.is_accident() {
                Outcome::LivesOn(outlived)
            } else {
                Outcome::Kept
            };
        }
        if name.kind == RootKind::Variable && way.is_same_object(promise, n_bytes, stored) {
            return Outcome::Kept;
        }
        Outcome::LivesOn(outlived)
    }
}

/// The way from a name to the object that keeps what lives on.
struct Way<'l, 'a> {
    look: &'l HeapAnalysis<'a>,
    root: u32,
    /// The vertices, from the named object on.
    chain: Vec<u32>,
    /// The steps to each of them; none to the named object.
    steps: Vec<Option<&'l Step>>,
    /// Which of them is the object.
    object: usize,
}

impl<'l, 'a> Way<'l, 'a> {
    /// To the object that has nearly all of these storages: the one that was deleted, if it is on the way.
    fn to(look: &'l HeapAnalysis<'a>, root: u32, held: &[&Stored], promise: &Holding) -> Self {
        let largest = held.iter().max_by_key(|it| it.n_bytes);
        let largest = largest.map_or(root, |it| look.vertex(it.number));
        let links = look.reach.path(root, largest);
        let edge = |link: u32| look.web.graph.edges.get(link as usize);
        let chain: Vec<u32> = links.iter().map(|(_, to, _)| *to).collect();
        let steps = links
            .iter()
            .map(|(.., link)| edge(*link).map(|it| &it.step));
        let mut way = Self {
            look,
            root,
            steps: steps.collect(),
            object: 0,
            chain,
        };
        let depth = way.depth_of_most(held);
        let is_type = |at: &usize| *way.node(*at).type_name == *promise.type_name;
        let deleted = (0..=depth).rev().find(is_type);
        way.object = deleted.unwrap_or(depth);
        way
    }

    /// The deepest vertex below which nearly all of these are; never a storage.
    fn depth_of_most(&self, held: &[&Stored]) -> usize {
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

    fn node(&self, at: usize) -> &'l Node {
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

    fn keeper(&self) -> Option<Keeper> {
        let is_traceback = |step: &Step| keeper_of_step(step) == Some(Keeper::Traceback);
        if self.first(is_traceback).is_some() {
            return Some(Keeper::Traceback);
        }
        let mut keepers = self.steps[..=self.object].iter().flatten();
        keepers.find_map(|step| keeper_of_step(step))
    }

    /// The expression of the object; what is behind a traceback is of no use to anybody.
    fn text(&self) -> String {
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
        text.extend(inside.map(|step| step.to_string()));
        text
    }

    /// Another variable is the object, or a view of it.
    fn is_same_object(
        &self,
        promise: &Holding,
        n_bytes: Bytes,
        stored: &HashMap<u64, &Stored>,
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

    /// How it can be let go of, and the code that does so.
    fn out(&self) -> Option<(WayOut, String)> {
        let name = &self.look.web.names[self.root as usize - 1];
        match name.kind {
            RootKind::CyclicGarbage => return Some((WayOut::Collector, COLLECT.to_owned())),
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
            let is_own = matches!(
                self.steps[at],
                Some(Step::Attribute(name)) if &**name == "__traceback__"
            );
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
        let method = || {
            let with_method = (0..self.object.min(expressions.len())).rev();
            let mut methods = with_method.filter_map(|at| {
                let method = self.node(at).release.as_deref()?;
                Some(format!("{}.{method}()", expressions[at]))
            });
            Some((WayOut::Method, methods.next()?))
        };
        let is_of_optimizer =
            matches!(self.steps.get(1), Some(Some(Step::Attribute(name))) if &**name == PARAMETERS);
        let part = || {
            if is_of_optimizer {
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
        handle.or_else(method).or_else(part).or_else(own)
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
    is_of_exception(step) || matches!(step, Step::Attribute(name) if name.starts_with("tb_"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GraphBuilder, Limits, NodeIdx, ObjectGraph, Root};
    use gpumem_model::holders::Allocated;

    /// A model with two weights of 300 MiB.
    fn model(builder: &mut GraphBuilder) -> NodeIdx {
        let model = builder.node(Node::object("Model"));
        let weights = builder.node(Node::object("list"));
        builder.edge(model, weights, Step::attribute("weights"));
        for id in 0..2 {
            let tensor = builder.node(Node::tensor("Tensor", "float32", &[64]));
            let storage = builder.node(Node::storage(id, "sim:0", Bytes::mib(300)));
            builder.edge(weights, tensor, Step::Index(id));
            builder.edge(tensor, storage, Step::Within);
        }
        model
    }

    /// Objects of these types, each reached from the one before by the step; the last leads to the model.
    fn held_by(builder: &mut GraphBuilder, model: NodeIdx, name: &str, way: &[(Node, Step)]) {
        let mut next = model;
        for (node, step) in way.iter().rev() {
            let node = builder.node(node.clone());
            builder.edge(node, next, step.clone());
            next = node;
        }
        builder.root(Root::variable(name, next));
    }

    fn graph(build: impl FnOnce(&mut GraphBuilder, NodeIdx)) -> ObjectGraph {
        let mut builder = GraphBuilder::default();
        let model = model(&mut builder);
        build(&mut builder, model);
        let mut graph = builder.build();
        let all = Allocated {
            n_bytes: Bytes::mib(600),
            is_rounded: false,
        };
        graph.account("sim:0", all);
        graph
    }

    /// Where the model is, and the code that lets go of it, after `model` was deleted.
    fn found(
        way: &[(Node, Step)],
        build: impl Fn(&mut GraphBuilder, NodeIdx),
        asked: &Asked<'_>,
    ) -> (Vec<(String, String)>, Inventory) {
        let before = graph(|builder, model| {
            held_by(builder, model, "holder", way);
            builder.root(Root::variable("model", model));
        });
        let now = graph(|builder, model| {
            held_by(builder, model, "holder", way);
            build(builder, model);
        });
        let before = HeapAnalysis::at(&before).inventory();
        let look = HeapAnalysis::at(&now);
        let (mut inventory, mut holders) =
            (look.inventory(), look.holders(&Limits::default(), None));
        look.outlived(&mut inventory, &mut holders, &before, asked);
        let found = holders.on("sim:0").map(|it| it.outlived.clone());
        let found = found.unwrap_or_default().into_iter();
        let found = found.map(|it| {
            assert_eq!((it.n_bytes, &*it.name), (Bytes::mib(600), "model"));
            (it.path, it.code)
        });
        (found.collect(), inventory)
    }

    #[track_caller]
    fn check(way: &[(Node, Step)], expected: &[(&str, &str)]) {
        let gone = ["model".to_owned()];
        let asked = Asked {
            gone: &gone,
            is_collected: true,
        };
        let (found, _) = found(way, |_, _| {}, &asked);
        let found: Vec<_> = found.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert_eq!(found, expected);
    }

    fn object(type_name: &str, step: Step) -> (Node, Step) {
        (Node::object(type_name), step)
    }

    #[test]
    fn who_keeps_it_is_named_with_the_code_that_lets_go() {
        let models = || {
            [
                object("Accelerator", Step::attribute("_models")),
                object("list", Step::Index(0)),
            ]
        };
        let part = ("holder._models[0]", "del holder._models[0]");
        check(&models(), &[part]);
        let mut with_method = models();
        with_method[0].0 = with_method[0].0.clone().released_by("free_memory");
        check(&with_method, &[(part.0, "holder.free_memory()")]);
        check(
            &[object("Pipeline", Step::attribute("model"))],
            &[("holder.model", "holder.model = None")],
        );
        check(
            &[
                object("list", Step::Index(3)),
                object("function", Step::closure("network")),
            ],
            &[("holder[3].<closure>.network", "del holder[3]")],
        );
        check(
            &[object("function", Step::closure("network"))],
            &[("holder.<closure>.network", "del holder")],
        );
        check(
            &[object("tuple", Step::Index(1))],
            &[("holder[1]", "del holder")],
        );
    }

    #[test]
    fn an_exception_is_let_go_of_as_a_whole() {
        let frames = |first: &str| {
            [
                object("ValueError", Step::attribute(first)),
                object("traceback", Step::attribute("tb_frame")),
                object("frame", Step::local("model")),
            ]
        };
        check(
            &frames("__traceback__"),
            &[("holder.__traceback__", "del holder")],
        );
        let kept = [
            object("list", Step::Index(0)),
            frames("__traceback__")[0].clone(),
        ];
        let kept = [&kept[..], &frames("__traceback__")[1..]].concat();
        let code = "holder[0].with_traceback(None);";
        check(&kept, &[("holder[0].__traceback__", code)]);
        let info = [
            &[object("tuple", Step::Index(2))],
            &frames("__traceback__")[1..],
        ];
        check(&info.concat(), &[("holder[2]", "del holder")]);
    }

    #[test]
    fn a_hook_is_removed_by_its_handle() {
        let way = [
            object("Linear", Step::attribute("_forward_hooks")),
            object("OrderedDict", Step::key("7")),
            object("function", Step::closure("teacher")),
        ];
        let path = "holder._forward_hooks[7].<closure>.teacher";
        check(&way, &[(path, "del holder._forward_hooks[7]")]);
        let gone = ["model".to_owned()];
        let asked = Asked {
            gone: &gone,
            is_collected: true,
        };
        let with_handle = |builder: &mut GraphBuilder, _| builder.handle(7, "handle".to_owned());
        let (found, _) = found(&way, with_handle, &asked);
        assert_eq!(found, [(path.to_owned(), "handle.remove()".to_owned())]);
    }

    #[test]
    fn another_name_of_the_same_object_is_no_news() {
        check(&[], &[]);
        // Nor is one that was bound again.
        let gone = ["model".to_owned()];
        let asked = Asked {
            gone: &gone,
            is_collected: true,
        };
        let again =
            |builder: &mut GraphBuilder, model| builder.root(Root::variable("model", model));
        let way = [
            object("Pipeline", Step::attribute("inner")),
            object("Inner", Step::attribute("model")),
        ];
        assert_eq!(found(&way, again, &asked).0, []);
    }

    #[test]
    fn an_optimizer_does_not_own_the_parameters() {
        let way = [
            object("SGD", Step::attribute("param_groups")),
            object("list", Step::Index(0)),
            object("dict", Step::key("'params'")),
        ];
        let graph = graph(|builder, model| {
            held_by(builder, model, "optimizer", &way);
            builder.root(Root::variable("model", model));
        });
        let inventory = HeapAnalysis::at(&graph).inventory();
        let holdings = inventory.devices[0].holdings.iter();
        let names: Vec<_> = holdings.map(|it| &*it.name).collect();
        assert_eq!(names, ["model"]);
        check(&way, &[("holder.param_groups[0]['params']", "del holder")]);
    }

    #[test]
    fn what_a_name_had_before_is_told_only_if_it_is_an_accident() {
        let rebound = Asked {
            gone: &[],
            is_collected: true,
        };
        let way = [object("list", Step::Index(0))];
        let new = |builder: &mut GraphBuilder, _| {
            let new = builder.node(Node::object("Model"));
            builder.root(Root::variable("model", new));
        };
        assert_eq!(found(&way, new, &rebound).0, []);
        let way = [
            object("ValueError", Step::attribute("__traceback__")),
            object("traceback", Step::attribute("tb_frame")),
            object("frame", Step::local("model")),
        ];
        assert_eq!(found(&way, new, &rebound).0.len(), 1);
    }

    #[test]
    fn garbage_is_told_only_if_the_collector_is_off() {
        let of = |is_collected: bool| {
            let before = graph(|builder, model| builder.root(Root::variable("model", model)));
            let now = graph(|builder, model| {
                builder.whole();
                builder.root(Root::new("cyclic garbage", RootKind::CyclicGarbage, model));
            });
            let gone = ["model".to_owned()];
            let asked = Asked {
                gone: &gone,
                is_collected,
            };
            let before = HeapAnalysis::at(&before).inventory();
            let look = HeapAnalysis::at(&now);
            let (mut inventory, mut holders) =
                (look.inventory(), look.holders(&Limits::default(), None));
            look.outlived(&mut inventory, &mut holders, &before, &asked);
            // It is followed either way.
            assert_eq!(inventory.devices[0].promises.len(), 1);
            let outlived = &holders.devices[0].outlived;
            outlived.first().map(|it| it.code.clone())
        };
        assert_eq!(of(true), None);
        assert_eq!(of(false).as_deref(), Some(COLLECT));
    }

    #[test]
    fn what_names_do_not_lead_to_is_worth_a_further_search() {
        let before = graph(|builder, model| builder.root(Root::variable("model", model)));
        let mut nothing = GraphBuilder::default();
        let other = nothing.node(Node::storage(9, "sim:0", Bytes::mib(1)));
        nothing.root(Root::variable("x", other));
        let before = HeapAnalysis::at(&before).inventory();
        let gone = ["model".to_owned()];
        let asked = Asked {
            gone: &gone,
            is_collected: true,
        };
        let is_hidden = |n_mib: u64| {
            let mut graph = nothing.clone().build();
            let allocated = Allocated {
                n_bytes: Bytes::mib(n_mib),
                is_rounded: false,
            };
            graph.account("sim:0", allocated);
            let look = HeapAnalysis::at(&graph);
            let (mut inventory, mut holders) = (look.inventory(), Holders::default());
            look.outlived(&mut inventory, &mut holders, &before, &asked)
        };
        assert!(is_hidden(601));
        assert!(!is_hidden(1));
    }
}

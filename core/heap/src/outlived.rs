//! What should be dead: storages that live on although the variable that held them is gone.

mod way;

use std::collections::{BTreeMap, HashMap};

use super::heap_analysis::HeapAnalysis;
use super::holding::Holding;
use super::inventory::{Inventory, Shelf};
use super::reach::BestHolder;
use super::retained_size::{RetainedSize, SizedStorage};
use super::{Holders, words};
use gpumem_model::holders::{NameLevel, Outlived, RootKind};
use gpumem_model::units::Bytes;
use way::Way;

/// Of one device, as many are followed: those that held the most.
const MAX_PROMISES: usize = 16;

/// What is at most so small is no reason to search further than names.
const WORTH_SEARCHING: Bytes = Bytes::mib(1);

/// What a search must know to tell what should be dead.
#[derive(Debug, Clone, Copy, Default)]
pub struct OutlivedQuery<'a> {
    /// Variables that the search before found, and that were deleted since, or are `None`.
    pub gone: &'a [String],
    /// The garbage collector is on, so cyclic garbage is freed soon.
    pub is_collected: bool,
    /// The device that held what is gone has not given it back.
    pub is_kept: bool,
}

/// What should be dead, or would be if its name has a new object only since then.
fn promises(shelf: &Shelf, query: &OutlivedQuery<'_>) -> Vec<Holding> {
    let is_gone = |it: &Holding| query.gone.iter().any(|name| **name == *it.name);
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
enum PromiseOutcome {
    /// All is freed.
    Freed,
    /// It is under the name again.
    Back,
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
        query: &OutlivedQuery<'_>,
    ) -> bool {
        let mut is_hidden = false;
        let labels: Vec<String> = self.labels().map(str::to_owned).collect();
        for (device, label) in labels.iter().enumerate() {
            let Some(earlier) = before.shelf(label) else {
                continue;
            };
            let promises = promises(earlier, query);
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
            let mut given_back = Vec::new();
            for promise in promises {
                let was_known = earlier.promises.iter().any(|it| it.name == promise.name);
                let is_far = before.is_whole && was_known || query.is_kept || !query.is_collected;
                match self.outcome(&promise, &stored, nameless, is_far) {
                    PromiseOutcome::Back => {}
                    PromiseOutcome::Freed => given_back.push(NameLevel {
                        kind: RootKind::Variable,
                        name: promise.name.to_string(),
                        n_bytes: promise.n_bytes,
                        n_storages: promise.ids.len() as u64,
                    }),
                    PromiseOutcome::Unknown => {
                        is_hidden = true;
                        kept.push(promise);
                    }
                    PromiseOutcome::Fine => kept.push(promise),
                    PromiseOutcome::LivesOn(it) => {
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
                found.given_back = given_back;
            }
        }
        is_hidden && !self.web.graph.is_whole && !self.web.graph.is_cut
    }

    fn stored_by_id(&self, device: u16) -> HashMap<u64, &SizedStorage> {
        let stored = self.storages_on(device);
        let by_id = stored.filter_map(|stored| Some((self.storage(stored)?.id, stored)));
        by_id.collect()
    }

    fn outcome(
        &self,
        promise: &Holding,
        stored: &HashMap<u64, &SizedStorage>,
        nameless: Option<Bytes>,
        is_far: bool,
    ) -> PromiseOutcome {
        if self.web.graph.is_cut {
            return PromiseOutcome::Fine;
        }
        let found = promise.ids.iter().filter_map(|id| stored.get(id).copied());
        let mut by_root: BTreeMap<u32, Vec<&SizedStorage>> = BTreeMap::new();
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
            return PromiseOutcome::Unknown;
        }
        let n_bytes = by_root.values().flatten();
        let n_bytes = n_bytes.map(|it| Bytes::new(it.n_bytes)).sum();
        let sum = |stored: &Vec<&SizedStorage>| stored.iter().map(|it| it.n_bytes).sum::<u64>();
        if n_found == Bytes::ZERO {
            return PromiseOutcome::Freed;
        }
        let Some((root, held)) = by_root.iter().max_by_key(|(_, stored)| sum(stored)) else {
            return PromiseOutcome::Back;
        };
        let way = Way::to(self, *root, held, promise);
        let name = &self.web.names[*root as usize - 1];
        if name.kind == RootKind::CyclicGarbage {
            return PromiseOutcome::Fine;
        }
        let keeper = way.keeper();
        let (way_out, code) = way.out().unzip();
        let is_alone = by_root.len() == 1
            && held.iter().all(|it| {
                self.tops[it.number as usize] == self.dominators.number(*root)
                    || it.held == BestHolder::Unnamed
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
            way_out,
            code: code.unwrap_or_default(),
            library_objects: way.library_objects(),
        };
        if promise.is_rebound {
            // A list rightly collects what each run puts under the name.
            return if outlived.is_accident() {
                PromiseOutcome::LivesOn(outlived)
            } else {
                PromiseOutcome::Back
            };
        }
        if name.kind == RootKind::Variable && way.is_same_object(promise, n_bytes, stored) {
            return PromiseOutcome::Back;
        }
        PromiseOutcome::LivesOn(outlived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::CACHE;
    use crate::{GraphBuilder, HolderLimits, Node, NodeIdx, ObjectGraph, Root, Step};
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
    fn held_by(
        builder: &mut GraphBuilder,
        model: NodeIdx,
        name: &str,
        way: &[(Node, Step)],
    ) -> NodeIdx {
        let mut next = model;
        for (node, step) in way.iter().rev() {
            let node = builder.node(node.clone());
            builder.edge(node, next, step.clone());
            next = node;
        }
        builder.root(Root::variable(name, next));
        next
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
        query: &OutlivedQuery<'_>,
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
        let (mut inventory, mut holders) = (
            look.inventory(),
            look.holders(&HolderLimits::default(), None),
        );
        look.outlived(&mut inventory, &mut holders, &before, query);
        let found = holders.on("sim:0").map(|it| it.outlived.clone());
        let found = found.unwrap_or_default().into_iter();
        let found = found.map(|it| {
            assert_eq!((it.n_bytes, &*it.name), (Bytes::mib(600), "model"));
            (it.path, it.code)
        });
        (found.collect(), inventory)
    }

    /// Of a name that was deleted, or of none, while the collector is on.
    fn query(gone: &[String]) -> OutlivedQuery<'_> {
        OutlivedQuery {
            gone,
            is_collected: true,
            ..OutlivedQuery::default()
        }
    }

    fn gone() -> [String; 1] {
        ["model".to_owned()]
    }

    #[track_caller]
    fn check(way: &[(Node, Step)], expected: &[(&str, &str)]) {
        let (found, _) = found(way, |_, _| {}, &query(&gone()));
        let found: Vec<_> = found.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_was_freed_is_given_back() {
        let before = graph(|builder, model| builder.root(Root::variable("model", model)));
        let before = HeapAnalysis::at(&before).inventory();
        let given_back = |now: &ObjectGraph| {
            let look = HeapAnalysis::at(now);
            let mut holders = look.holders(&HolderLimits::default(), None);
            let gone = gone();
            let query = query(&gone);
            look.outlived(&mut look.inventory(), &mut holders, &before, &query);
            let device = holders.on("sim:0").expect("a device").given_back.iter();
            device
                .map(|it| (it.name.clone(), it.n_bytes))
                .collect::<Vec<_>>()
        };
        let mut builder = GraphBuilder::default();
        let other = builder.node(Node::storage(9, "sim:0", Bytes::mib(1)));
        builder.root(Root::variable("other", other));
        let mut freed = builder.build();
        let rest = Allocated {
            n_bytes: Bytes::mib(1),
            is_rounded: false,
        };
        freed.account("sim:0", rest);
        assert_eq!(given_back(&freed), [("model".to_owned(), Bytes::mib(600))]);
        let kept = graph(|builder, model| builder.root(Root::variable("kept", model)));
        assert_eq!(given_back(&kept), []);
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
        check(
            &[object(CACHE, Step::attribute("cached"))],
            &[("holder.cached", "holder.cache_clear()")],
        );
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
                object("traceback", Step::Frame("train".into())),
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
        let gone = gone();
        let query = query(&gone);
        let with_handle = |builder: &mut GraphBuilder, _| builder.handle(7, "handle".to_owned());
        let (found, _) = found(&way, with_handle, &query);
        assert_eq!(found, [(path.to_owned(), "handle.remove()".to_owned())]);
    }

    #[test]
    fn another_name_of_the_same_object_is_no_news() {
        check(&[], &[]);
        // Nor is one that was bound again.
        let gone = gone();
        let query = query(&gone);
        let again =
            |builder: &mut GraphBuilder, model| builder.root(Root::variable("model", model));
        let way = [
            object("Pipeline", Step::attribute("inner")),
            object("Inner", Step::attribute("model")),
        ];
        assert_eq!(found(&way, again, &query).0, []);
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
    fn an_optimizer_is_let_go_of_as_a_whole() {
        let by_state = [
            object("Adam", Step::attribute("state")),
            object("defaultdict", Step::KeyItself),
        ];
        let with_groups = |builder: &mut GraphBuilder, model| {
            let optimizer = held_by(builder, model, "optimizer", &by_state);
            let groups = builder.node(Node::object("list"));
            builder.edge(optimizer, groups, Step::attribute("param_groups"));
        };
        let before = graph(|builder, model| {
            with_groups(builder, model);
            builder.root(Root::variable("model", model));
        });
        let now = graph(with_groups);
        let look = HeapAnalysis::at(&now);
        let mut holders = look.holders(&HolderLimits::default(), None);
        let gone = gone();
        let query = query(&gone);
        let before = HeapAnalysis::at(&before).inventory();
        look.outlived(&mut look.inventory(), &mut holders, &before, &query);
        let outlived = &holders.on("sim:0").expect("a device").outlived[0];
        assert_eq!(
            (&*outlived.path, &*outlived.code),
            ("optimizer", "del optimizer")
        );
    }

    #[test]
    fn a_name_s_former_object_counts_only_by_accident() {
        let rebound = query(&[]);
        let way = [object("list", Step::Index(0))];
        let new = |builder: &mut GraphBuilder, _| {
            let new = builder.node(Node::object("Model"));
            builder.root(Root::variable("model", new));
        };
        assert_eq!(found(&way, new, &rebound).0, []);
        let way = [
            object("ValueError", Step::attribute("__traceback__")),
            object("traceback", Step::Frame("train".into())),
            object("frame", Step::local("model")),
        ];
        assert_eq!(found(&way, new, &rebound).0.len(), 1);
    }

    #[test]
    fn garbage_counts_only_if_the_collector_is_off() {
        let of = |is_collected: bool| {
            let before = graph(|builder, model| builder.root(Root::variable("model", model)));
            let mut now = graph(|builder, model| {
                builder.whole();
                builder.root(Root::new("cyclic garbage", RootKind::CyclicGarbage, model));
            });
            if !is_collected {
                now.leave_garbage();
            }
            let gone = gone();
            let query = OutlivedQuery {
                is_collected,
                ..query(&gone)
            };
            let before = HeapAnalysis::at(&before).inventory();
            let look = HeapAnalysis::at(&now);
            let (mut inventory, mut holders) = (
                look.inventory(),
                look.holders(&HolderLimits::default(), None),
            );
            look.outlived(&mut inventory, &mut holders, &before, &query);
            // It is followed either way.
            assert_eq!(inventory.devices[0].promises.len(), 1);
            let outlived = &holders.devices[0].outlived;
            outlived.first().map(|it| it.code.clone())
        };
        assert_eq!(of(true), None);
        assert_eq!(of(false).as_deref(), RootKind::UncollectedGarbage.release());
    }

    #[test]
    fn what_names_do_not_lead_to_is_worth_a_further_search() {
        let before = graph(|builder, model| builder.root(Root::variable("model", model)));
        let mut nothing = GraphBuilder::default();
        let other = nothing.node(Node::storage(9, "sim:0", Bytes::mib(1)));
        nothing.root(Root::variable("x", other));
        let before = HeapAnalysis::at(&before).inventory();
        let gone = gone();
        let query = query(&gone);
        let is_hidden = |n_mib: u64| {
            let mut graph = nothing.clone().build();
            let allocated = Allocated {
                n_bytes: Bytes::mib(n_mib),
                is_rounded: false,
            };
            graph.account("sim:0", allocated);
            let look = HeapAnalysis::at(&graph);
            let (mut inventory, mut holders) = (look.inventory(), Holders::default());
            look.outlived(&mut inventory, &mut holders, &before, &query)
        };
        assert!(is_hidden(601));
        assert!(!is_hidden(1));
    }
}

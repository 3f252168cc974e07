//! Known graphs by hand, random ones against the definition.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use gpumem_model::holders::{
    Allocated, Bound, HolderBranch, Keeper, NameLevel, Remainder, RootKind, StorageUse,
};
use gpumem_model::units::{ByteDelta, Bytes};

/// Builds a graph from words: objects by name, storages by size in MiB.
#[derive(Default)]
struct TestHeap {
    builder: GraphBuilder,
    n_storages: u64,
}

impl TestHeap {
    fn object(&mut self, type_name: &str) -> NodeIdx {
        self.builder.node(Node::object(type_name))
    }

    /// A tensor with a storage of its own.
    fn tensor(&mut self, n_mib: u64) -> NodeIdx {
        let tensor = self
            .builder
            .node(Node::tensor("Tensor", "float32", &[n_mib, 262_144]));
        let storage = self.storage(n_mib);
        self.builder.edge(tensor, storage, Step::Within);
        tensor
    }

    fn storage(&mut self, n_mib: u64) -> NodeIdx {
        self.n_storages += 1;
        let storage = Node::storage(self.n_storages, "cuda:0", Bytes::mib(n_mib));
        self.builder.node(storage)
    }

    /// A graph's node with saved tensors.
    fn graph(&mut self, n_mib: u64) -> NodeIdx {
        let graph = self.builder.node(Node::graph("MmBackward0"));
        let saved = self.tensor(n_mib);
        self.builder
            .edge(graph, saved, Step::Saved(Some("self".into())));
        graph
    }

    fn edge(&mut self, from: NodeIdx, to: NodeIdx, step: Step) {
        self.builder.edge(from, to, step);
    }

    fn list(&mut self, items: &[NodeIdx]) -> NodeIdx {
        let list = self.object("list");
        for (idx, item) in items.iter().enumerate() {
            self.edge(list, *item, Step::Index(idx as u64));
        }
        list
    }

    fn variable(&mut self, name: &str, target: NodeIdx) {
        self.builder.root(Root::variable(name, target));
    }

    fn root(&mut self, name: &str, kind: RootKind, target: NodeIdx) {
        self.builder.root(Root::new(name, kind, target));
    }

    fn look(self) -> DeviceHolders {
        let mut holders = Holders::from_graph(&self.builder.build(), &HolderLimits::default());
        holders.devices.remove(0)
    }
}

#[track_caller]
fn check(found: &DeviceHolders, expected: &[(&str, u64, &str, &str)]) {
    let actual: Vec<(&str, u64, &str, &str)> = found
        .roots
        .iter()
        .map(|root| {
            (
                &*root.name,
                root.retained.get() >> 20,
                &*root.path,
                &*root.what,
            )
        })
        .collect();
    assert_eq!(actual, expected);
}

#[test]
fn a_list_of_losses_keeps_their_graphs() {
    let mut heap = TestHeap::default();
    let losses: Vec<NodeIdx> = (0..3)
        .map(|_| {
            let loss = heap.tensor(1);
            let graph = heap.graph(9);
            heap.edge(loss, graph, Step::attribute("grad_fn"));
            loss
        })
        .collect();
    let list = heap.list(&losses);
    heap.variable("losses", list);
    let found = heap.look();
    check(
        &found,
        &[(
            "losses",
            30,
            "losses[0].grad_fn._saved_self",
            "list of 3 tensors, each with its graph",
        )],
    );
    let losses = &found.roots[0];
    assert_eq!(losses.traits.graph, Bytes::mib(27));
    assert_eq!(losses.traits.part, Some(StorageUse::Graphs));
    assert_eq!(losses.branches.len(), 1);
    assert_eq!(losses.branches[0].step, "[0] … [2]");
    assert_eq!(
        found.parts,
        [
            (StorageUse::Graphs, Bytes::mib(27)),
            (StorageUse::Names, Bytes::mib(3))
        ]
    );
}

#[test]
fn a_graph_that_two_names_share_is_told_of_the_first() {
    let mut heap = TestHeap::default();
    let graph = heap.graph(9);
    for name in ["total", "mean"] {
        let tensor = heap.tensor(1);
        heap.edge(tensor, graph, Step::attribute("grad_fn"));
        heap.variable(name, tensor);
    }
    let found = heap.look();
    let graphs = found
        .roots
        .iter()
        .map(|it| (&*it.name, it.retained, it.traits.graph));
    let own = Bytes::mib(1);
    let expected = [("total", own, Bytes::mib(9)), ("mean", own, Bytes::ZERO)];
    assert_eq!(graphs.collect::<Vec<_>>(), expected);
}

#[test]
fn a_list_of_generators_is_no_list_of_their_tensors() {
    let mut heap = TestHeap::default();
    let generators = [0, 1].map(|_| {
        let generator = heap.object("generator");
        for name in ["batch", "row"] {
            let tensor = heap.tensor(4);
            heap.edge(generator, tensor, Step::attribute(name));
        }
        generator
    });
    let list = heap.list(&generators);
    heap.variable("streams", list);
    let found = heap.look();
    assert_eq!(found.roots[0].what, "list of 2 generators");
}

#[test]
fn a_function_keeps_what_is_in_it_but_not_what_a_list_of_functions_has() {
    let keeper = |is_listed: bool| {
        let mut heap = TestHeap::default();
        let function = heap.object("function");
        let tensor = heap.tensor(8);
        heap.edge(function, tensor, Step::closure("window"));
        let held = if is_listed {
            heap.list(&[function])
        } else {
            function
        };
        heap.variable("tasks", held);
        heap.look().roots[0].traits.keeper
    };
    assert_eq!(keeper(false), Some(Keeper::Function));
    assert_eq!(keeper(true), None);
}

#[test]
fn a_view_shares_what_it_looks_at() {
    let mut heap = TestHeap::default();
    let storage = heap.storage(8);
    for name in ["base", "view"] {
        let tensor = heap.builder.node(Node::tensor("Tensor", "float32", &[1]));
        heap.edge(tensor, storage, Step::Within);
        heap.variable(name, tensor);
    }
    let found = heap.look();
    check(&found, &[]);
    assert_eq!(found.n_bytes, Bytes::mib(8));
    let [shared] = &found.shared[..] else {
        panic!("{:?}", found.shared);
    };
    assert_eq!(shared.names, ["base", "view"]);
    assert_eq!((shared.n_bytes, &*shared.path), (Bytes::mib(8), "base"));
    assert_eq!(shared.part, Some(StorageUse::Names));
}

#[test]
fn an_instance_is_read_without_its_dict() {
    let mut heap = TestHeap::default();
    let model = heap.object("Trainer");
    let dict = heap.object("dict");
    let (best, cache) = (heap.tensor(5), heap.tensor(2));
    let history = heap.list(&[cache]);
    heap.edge(model, dict, Step::Within);
    heap.edge(dict, best, Step::attribute("best"));
    heap.edge(dict, history, Step::attribute("history"));
    heap.variable("trainer", model);
    let found = heap.look();
    check(
        &found,
        &[("trainer", 7, "trainer.best", "Trainer of 2 tensors")],
    );
    let steps: Vec<&str> = found.roots[0].branches.iter().map(|it| &*it.step).collect();
    assert_eq!(steps, [".best", ".history"]);
}

#[test]
fn ipython_s_and_unnamed_memory_have_their_own_roots() {
    let mut heap = TestHeap::default();
    let (kept, shown, lost) = (heap.tensor(4), heap.tensor(2), heap.tensor(1));
    let (first, second) = (heap.list(&[lost]), heap.object("dict"));
    heap.edge(first, second, Step::Index(1));
    heap.edge(second, first, Step::key("'self'"));
    heap.variable("kept", kept);
    heap.root("Out[3]", RootKind::OutputHistory, shown);
    let found = heap.look();
    let roots: Vec<(&str, RootKind, u64)> = found
        .roots
        .iter()
        .map(|root| (&*root.name, root.kind, root.retained.get() >> 20))
        .collect();
    assert_eq!(
        roots,
        [
            ("kept", RootKind::Variable, 4),
            ("Out[3]", RootKind::OutputHistory, 2),
            ("unnamed", RootKind::Unnamed, 1),
        ]
    );
    assert_eq!(
        found.parts,
        [
            (StorageUse::Names, Bytes::mib(4)),
            (StorageUse::Ipython, Bytes::mib(2)),
            (StorageUse::Unnamed, Bytes::mib(1)),
        ]
    );
}

#[test]
fn a_name_grows_by_what_is_new_not_by_what_changes_hands() {
    let heap = |names: [&str; 2], n_new: u64| {
        let mut heap = TestHeap::default();
        let old = [heap.tensor(4), heap.tensor(6)];
        for (name, tensor) in names.iter().zip(old) {
            let mut items = vec![tensor];
            if *name == "a" {
                items.extend((0..n_new).map(|_| heap.tensor(1)));
            }
            let list = heap.list(&items);
            heap.variable(name, list);
        }
        heap.builder.build()
    };
    let before = heap(["a", "b"], 0);
    let after = heap(["b", "a"], 3);
    let found = looked(&before, &after);
    let grown: Vec<(&str, Option<ByteDelta>)> = found.devices[0]
        .roots
        .iter()
        .map(|root| (&*root.name, root.grown))
        .collect();
    let mib = |n: i64| Some(ByteDelta::new(n << 20));
    assert_eq!(grown, [("a", mib(3)), ("b", mib(-2))]);
}

/// Who holds what after another look.
fn looked(before: &ObjectGraph, after: &ObjectGraph) -> Holders {
    let before = HeapAnalysis::at(before).inventory();
    let look = HeapAnalysis::at(after);
    let now = look.inventory();
    look.holders(&HolderLimits::default(), Some(now.since(&before)))
}

#[test]
fn a_list_grows_although_the_newest_has_a_shorter_name() {
    let heap = |n: u64| {
        let mut heap = TestHeap::default();
        let losses: Vec<NodeIdx> = (0..n).map(|_| heap.tensor(4)).collect();
        let list = heap.list(&losses);
        heap.variable("losses", list);
        heap.variable("loss", losses[losses.len() - 1]);
        heap.builder.build()
    };
    let (before, after) = (heap(2), heap(3));
    let found = looked(&before, &after);
    let losses = &found.devices[0].roots[0];
    assert_eq!(losses.name, "losses");
    assert_eq!(losses.grown, Some(ByteDelta::new(4 << 20)));
}

#[test]
fn a_look_tells_what_each_name_has_now_if_that_changed() {
    let heap = |names: &[(&str, u64)]| {
        let mut heap = TestHeap::default();
        for (name, n) in names {
            let tensors: Vec<NodeIdx> = (0..*n).map(|_| heap.tensor(4)).collect();
            let list = heap.list(&tensors);
            heap.variable(name, list);
        }
        heap.builder.build()
    };
    let before = heap(&[("losses", 2), ("model", 9), ("gone", 1)]);
    let after = heap(&[("losses", 5), ("model", 9)]);
    let found = looked(&before, &after);
    let changed: Vec<(&str, u64, u64)> = found.devices[0]
        .changed
        .iter()
        .map(|it| (&*it.name, it.n_bytes.get() >> 20, it.n_storages))
        .collect();
    assert_eq!(changed, [("losses", 20, 5), ("gone", 0, 0)]);
}

#[test]
fn a_look_tells_what_the_attributes_of_an_object_have() {
    let heap = |n: u64| {
        let mut heap = TestHeap::default();
        let trainer = heap.builder.node(Node::object("Trainer"));
        let inside = heap.builder.node(Node::object("dict"));
        heap.edge(trainer, inside, Step::Within);
        for (name, n) in [("weights", 2), ("history", n)] {
            let tensors: Vec<NodeIdx> = (0..n).map(|_| heap.tensor(4)).collect();
            let list = heap.list(&tensors);
            heap.edge(inside, list, Step::attribute(name));
        }
        heap.variable("trainer", trainer);
        heap.builder.build()
    };
    let levels = |before: u64| -> Vec<String> {
        let found = looked(&heap(before), &heap(5));
        let changed = found.devices[0].changed.iter();
        let level = |it: &NameLevel| format!("{} {} in {}", it.name, it.n_bytes, it.n_storages);
        changed.map(level).collect()
    };
    let of_each = [
        "trainer 28 MiB in 7",
        "trainer.weights 8 MiB in 2",
        "trainer.history 20 MiB in 5",
    ];
    assert_eq!(levels(3), of_each);
    assert_eq!(levels(5), [""; 0]);
    let found = looked(&heap(3), &heap(5));
    let growing = &found.devices[0].growing_branches;
    let paths = growing.iter().map(|it| (&*it.name, &*it.path, &*it.what));
    let history = ("trainer.history", "trainer.history[3]", "list of 5 tensors");
    assert_eq!(paths.collect::<Vec<_>>(), [history]);
}

/// Two cameras in a list, each with a background and a window over its frames: `cams[0].frames`.
fn cameras(n_frames: &[u64], type_name: &str) -> ObjectGraph {
    let mut heap = TestHeap::default();
    let mut frames: Vec<Vec<NodeIdx>> = vec![Vec::new(); n_frames.len()];
    let backgrounds: Vec<NodeIdx> = n_frames.iter().map(|_| heap.tensor(50)).collect();
    for idx in 0..n_frames.iter().copied().max().unwrap_or_default() {
        for (frames, n) in frames.iter_mut().zip(n_frames) {
            let tensor = heap.tensor(4);
            frames.extend(Some(tensor).filter(|_| idx < *n));
        }
    }
    let cams: Vec<NodeIdx> = frames
        .into_iter()
        .zip(backgrounds)
        .map(|(frames, background)| {
            let n = frames.len() as u64;
            let window = match type_name {
                "deque" => Node::object("deque").bounded(Bound { n, most: 12 }),
                other => Node::object(other),
            };
            let window = heap.builder.node(window);
            for (idx, frame) in (0..).zip(frames) {
                heap.edge(window, frame, Step::Index(idx));
            }
            let cam = heap.object("Cam");
            heap.edge(cam, window, Step::attribute("frames"));
            heap.edge(cam, background, Step::attribute("background"));
            cam
        })
        .collect();
    let cams = heap.list(&cams);
    heap.variable("cams", cams);
    heap.builder.build()
}

#[test]
fn what_grows_in_a_name_is_the_deepest_container_with_something_new() {
    let grows_in = |before: &[u64], after: &[u64], type_name: &str| {
        let found = looked(&cameras(before, type_name), &cameras(after, type_name));
        found.devices[0].roots[0].traits.grows_in.clone()
    };
    let both = grows_in(&[8, 8], &[9, 9], "deque").expect("something is new");
    assert_eq!(both.path, "cams[0].frames");
    assert!(!both.is_all);
    assert_eq!(both.bound, Some(Bound { n: 9, most: 12 }));
    assert_eq!(both.n_bytes, Bytes::mib(72));
    let one = grows_in(&[2, 8], &[2, 9], "list").expect("something is new");
    assert_eq!(
        (&*one.path, one.is_all, one.bound),
        ("cams[1].frames", true, None)
    );
    assert_eq!(one.n_bytes, Bytes::mib(36));
    assert_eq!(grows_in(&[3], &[3], "list"), None);
    // What has the name is not in itself.
    let named = |n: u64| {
        let mut heap = TestHeap::default();
        let losses: Vec<NodeIdx> = (0..n).map(|_| heap.tensor(4)).collect();
        let losses = heap.list(&losses);
        heap.variable("losses", losses);
        heap.builder.build()
    };
    let found = looked(&named(2), &named(3));
    assert_eq!(found.devices[0].roots[0].traits.grows_in, None);
}

#[test]
fn a_bound_is_that_of_the_container_alone() {
    let five_of_eight = Bound { n: 5, most: 8 };
    let bound_of = |is_inside: bool, n: u64| {
        let mut heap = TestHeap::default();
        let bound = Bound { n, ..five_of_eight };
        let deque = Node::object("deque").bounded(bound);
        let deque = heap.builder.node(deque);
        for _ in 0..5 {
            let tensors = [heap.tensor(4), heap.tensor(4)];
            let entry = heap.list(&tensors);
            heap.edge(deque, entry, Step::Opaque);
        }
        let target = if is_inside {
            heap.list(&[deque])
        } else {
            deque
        };
        heap.variable("window", target);
        heap.look().roots[0].traits.bound
    };
    assert_eq!(bound_of(false, 5), Some(five_of_eight));
    assert_eq!(bound_of(true, 5), None);
    // What a cache of C has, Python does not count.
    assert_eq!(bound_of(false, 0), Some(five_of_eight));
}

#[test]
fn a_name_that_shares_all_it_has_grows_like_another() {
    let heap = |n: u64| {
        let mut heap = TestHeap::default();
        let tensors: Vec<NodeIdx> = (0..n).map(|_| heap.tensor(4)).collect();
        for name in ["outputs", "by_step"] {
            let list = heap.list(&tensors);
            heap.variable(name, list);
        }
        heap.builder.build()
    };
    let (before, after) = (heap(2), heap(3));
    let found = looked(&before, &after);
    let [device] = &found.devices[..] else {
        panic!("one device");
    };
    assert_eq!(device.roots, []);
    let sharing = device.sharing.iter().map(|it| (&*it.name, &*it.what));
    let words = "list of 3 tensors, shared with by_step";
    assert_eq!(sharing.collect::<Vec<_>>(), [("outputs", words)]);
    let outputs = &device.sharing[0];
    assert_eq!(outputs.grown, Some(ByteDelta::new(4 << 20)));
    assert_eq!(outputs.retained, device.n_bytes);
    assert_eq!(outputs.traits.n_tensors, 3);
    assert_eq!(looked(&after, &after).devices[0].sharing, []);
}

#[test]
fn a_chain_of_a_million_is_no_matter() {
    let mut heap = TestHeap::default();
    let mut at = heap.tensor(1);
    for _ in 0..1_000_000 {
        let list = heap.object("list");
        heap.edge(list, at, Step::Index(0));
        at = list;
    }
    heap.variable("deep", at);
    let found = heap.look();
    assert_eq!(found.roots[0].retained, Bytes::mib(1));
    assert!(found.roots[0].path.starts_with("deep[0][0]"));
    assert!(found.roots[0].path.len() < 80);
}

#[test]
fn as_deep_as_somebody_asks_is_no_matter() {
    let mut heap = TestHeap::default();
    let mut at = heap.list(&[]);
    for _ in 0..100_000 {
        let tensor = heap.tensor(1);
        at = heap.list(&[at, tensor]);
    }
    heap.variable("deep", at);
    let limits = HolderLimits {
        depth: usize::MAX,
        ..HolderLimits::default()
    };
    let found = Holders::from_graph(&heap.builder.build(), &limits);
    assert_eq!(found.devices[0].roots[0].branches.len(), 2);
}

/// What is reached from the roots other than `without`, and from `others`.
fn reached(graph: &ObjectGraph, without: Option<&str>, others: &[u32]) -> HashSet<u32> {
    let named = graph
        .roots()
        .iter()
        .filter(|root| Some(&*root.name) != without);
    let mut open: Vec<u32> = named.map(|root| root.target.0).collect();
    open.extend(others);
    let mut seen: HashSet<u32> = HashSet::new();
    while let Some(node) = open.pop() {
        if seen.insert(node) {
            let edges = graph.edges().filter(|(from, _, _)| from.0 == node);
            open.extend(edges.map(|(_, to, _)| to.0));
        }
    }
    seen
}

fn bytes_of(graph: &ObjectGraph, nodes: &HashSet<u32>) -> u64 {
    let storage = |idx: &u32| graph.node(NodeIdx(*idx)).storage.as_ref();
    nodes
        .iter()
        .filter_map(storage)
        .map(|it| it.n_bytes.get())
        .sum()
}

prop_compose! {
    /// Objects, tensors, graph nodes and storages, tied at random; cycles and loops included.
    fn any_graph()(
        kinds in prop::collection::vec(0_u8..5, 1..30),
        edges in prop::collection::vec((0_u32..30, 0_u32..30, 0_u8..4), 0..90),
        roots in prop::collection::vec((0_u32..30, 0_usize..10), 0..6),
    ) -> ObjectGraph {
        let mut builder = GraphBuilder::default();
        for (idx, kind) in kinds.iter().enumerate() {
            builder.node(match kind {
                0 => Node::object("list"),
                1 => Node::graph("AddBackward0"),
                2 => Node::tensor("Tensor", "int8", &[1]),
                _ => Node::storage(idx as u64, "cuda:0", Bytes::new(1 << idx)),
            });
        }
        for (from, to, step) in edges {
            let step = match step {
                0 => Step::Within,
                1 => Step::Index(u64::from(to)),
                _ => Step::closure("x"),
            };
            // Nothing leads on from bytes.
            if kinds.get(from as usize).is_some_and(|kind| *kind < 3) {
                builder.edge(NodeIdx(from), NodeIdx(to), step);
            }
        }
        for (position, (target, kind)) in roots.into_iter().enumerate() {
            builder.root(Root::new(&format!("r{position}"), RootKind::ALL[kind], NodeIdx(target)));
        }
        builder.build()
    }
}

proptest! {
    #[test]
    fn retained_is_what_would_be_free_without_the_name(graph in any_graph()) {
        let found = Holders::from_graph(&graph, &HolderLimits { n_roots: 99, n_shared: 99, ..HolderLimits::default() });
        let named = reached(&graph, None, &[]);
        // What is alive without a name holds on, too.
        let unnamed: Vec<u32> =
            (0..graph.n_nodes() as u32).filter(|idx| !named.contains(idx)).collect();
        let total = bytes_of(&graph, &reached(&graph, None, &unnamed));
        let roots = found.devices.first().map(|it| &it.roots[..]).unwrap_or_default();
        for root in graph.roots() {
            let expected = total - bytes_of(&graph, &reached(&graph, Some(&root.name), &unnamed));
            let summary = roots.iter().find(|it| *it.name == *root.name);
            prop_assert_eq!(summary.map_or(0, |it| it.retained.get()), expected, "{}", root.name);
        }
        for device in &found.devices {
            let of_roots: Bytes = device.roots.iter().map(|it| it.retained).sum();
            let of_shared: Bytes = device.shared.iter().map(|it| it.n_bytes).sum();
            prop_assert_eq!(of_roots + of_shared, device.n_bytes);
            let of_parts: Bytes = device.parts.iter().map(|(_, n_bytes)| *n_bytes).sum();
            prop_assert_eq!(of_parts, device.n_bytes);
        }
    }

    #[test]
    fn branches_never_add_up_to_more_than_what_holds_them(graph in any_graph()) {
        fn sound(n_bytes: Bytes, branches: &[HolderBranch], more: Remainder) -> bool {
            let sum: Bytes = branches.iter().map(|it| it.n_bytes).sum();
            sum + more.n_bytes <= n_bytes
                && branches.iter().all(|it| sound(it.n_bytes, &it.branches, it.more))
        }
        for device in Holders::from_graph(&graph, &HolderLimits::default()).devices {
            for root in device.roots {
                prop_assert!(sound(root.retained, &root.branches, root.more), "{:?}", root);
            }
        }
    }
}

/// A name with a tensor on a device that handed out this many MiB.
fn accounted(named: &[(RootKind, u64)], handed_out: u64, is_whole: bool) -> ObjectGraph {
    let mut heap = TestHeap::default();
    for (kind, n_mib) in named {
        let tensor = heap.tensor(*n_mib);
        heap.root("it", *kind, tensor);
    }
    if is_whole {
        heap.builder.whole();
    }
    let mut graph = heap.builder.build();
    let handed_out = Allocated {
        n_bytes: Bytes::mib(handed_out),
        is_rounded: false,
    };
    graph.account("cuda:0", handed_out);
    graph
}

#[test]
fn what_is_allocated_and_was_not_found_is_a_holder() {
    let check = |named: &[(RootKind, u64)], is_whole, expected: &[(&str, u64)]| {
        let found = Holders::from_graph(&accounted(named, 10, is_whole), &HolderLimits::default());
        let [device] = &found.devices[..] else {
            panic!("one device: {found:?}");
        };
        let roots: Vec<_> = device
            .roots
            .iter()
            .map(|root| (&*root.name, root.retained.get() >> 20))
            .collect();
        assert_eq!(roots, expected);
        let parts: Bytes = device.parts.iter().map(|(_, n_bytes)| *n_bytes).sum();
        assert_eq!((device.n_bytes, parts), (Bytes::mib(10), Bytes::mib(10)));
    };
    let variable = RootKind::Variable;
    check(&[(variable, 10)], true, &[("it", 10)]);
    check(&[(variable, 4)], true, &[("outside Python", 6), ("it", 4)]);
    check(&[(variable, 7)], false, &[("it", 7), ("unnamed", 3)]);
    check(&[], true, &[("outside Python", 10)]);
    let garbage = RootKind::CyclicGarbage;
    check(&[(garbage, 4)], true, &[("outside Python", 6), ("it", 4)]);
}

#[test]
fn nothing_is_said_of_what_is_allocated_where_nobody_knows() {
    let mut heap = TestHeap::default();
    let tensor = heap.tensor(4);
    heap.variable("it", tensor);
    check(
        &heap.look(),
        &[("it", 4, "it", "Tensor float32[4, 262144]")],
    );
}

#[test]
fn growth_that_no_name_holds_is_worth_a_second_look() {
    let check = |before: Option<(u64, u64)>, now: (u64, u64), expected| {
        let inventory = |(named, handed_out), is_whole| {
            let graph = accounted(&[(RootKind::Variable, named)], handed_out, is_whole);
            HeapAnalysis::at(&graph).inventory()
        };
        let before = before.map(|it| inventory(it, true));
        let now = inventory(now, false);
        assert_eq!(now.hides_growth_since(before.as_ref()), expected);
    };
    check(None, (10, 10), false);
    check(None, (4, 10), true);
    check(Some((4, 10)), (4, 10), false);
    check(Some((4, 10)), (9, 15), false);
    check(Some((4, 10)), (5, 15), true);
    // Too little of what is there.
    check(Some((4, 1000)), (4, 1001), false);
}

#[test]
fn without_an_allocator_growth_is_compared_with_names() {
    let check = |before: u64, now: u64, grown: u64, expected| {
        let [before, now] = [before, now].map(|named| {
            let graph = accounted(&[(RootKind::Variable, named)], 0, false);
            HeapAnalysis::at(&graph).inventory()
        });
        assert_eq!(now.hides_on("cuda:0", Bytes::mib(grown), &before), expected);
    };
    check(4, 5, 10, true);
    check(4, 12, 10, false);
    check(8, 4, 10, true);
    check(4, 4, 0, false);
}

#[test]
fn memory_beyond_names_grew_only_if_both_scans_saw_it() {
    let check = |is_whole: (bool, bool), expected: [Option<i64>; 2]| {
        let garbage = |sizes: &[u64], handed_out, is_whole| {
            let sizes: Vec<_> = sizes
                .iter()
                .map(|it| (RootKind::CyclicGarbage, *it))
                .collect();
            accounted(&sizes, handed_out, is_whole)
        };
        let before = garbage(&[1], 4, is_whole.0);
        let found = looked(&before, &garbage(&[1, 2], 10, is_whole.1));
        let grown: Vec<_> = found.devices[0]
            .roots
            .iter()
            .map(|root| root.grown.map(|grown| grown.get() >> 20))
            .collect();
        assert_eq!(grown, expected);
    };
    check((true, true), [Some(4), Some(2)]);
    check((false, true), [None, None]);
}

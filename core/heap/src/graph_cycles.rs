//! Tensors that no name reaches and that the graph of autograd keeps, which they keep themselves.
//!
//! The graph is C++: Python's collector sees neither what a node saved nor that a tensor refers to it.

use super::graph::{Edge, ObjectGraph};
use super::node::{NodeIdx, TensorCategory};
use super::number_lists::NumberLists;
use super::root::Root;
use super::step::Step;
use gpumem_model::holders::RootKind;

/// What names of such tensors are called.
const NAME: &str = "autograd";

impl ObjectGraph {
    /// Tells which of what no name reaches is kept by a cycle through the graph of autograd.
    pub fn find_graph_cycles(&mut self) {
        if !self.roots.iter().any(is_unnamed) {
            return;
        }
        let kinds = Cyclic::new(self).kinds();
        for root in self.roots.iter_mut().filter(|it| is_unnamed(it)) {
            if let Some(kind) = kinds[root.target.get()] {
                root.name = NAME.into();
                root.kind = kind;
            }
        }
    }
}

fn is_unnamed(root: &Root) -> bool {
    root.kind == RootKind::Unnamed
}

/// What is on a cycle, or kept by one.
struct Cyclic<'g> {
    graph: &'g ObjectGraph,
    /// What each node refers to.
    referred: NumberLists,
    is_kept: Vec<bool>,
}

impl<'g> Cyclic<'g> {
    /// Of what is reached from what has no name, that which remains once all that nothing refers to is taken away,
    /// again and again.
    fn new(graph: &'g ObjectGraph) -> Self {
        let n_nodes = graph.nodes.len();
        let edges = || graph.edges.iter().map(|edge| (edge.from.0, edge.to.0));
        let mut cyclic = Self {
            graph,
            referred: NumberLists::new(n_nodes, edges),
            is_kept: vec![false; n_nodes],
        };
        let mut n_referring = vec![0_u32; n_nodes];
        let roots = graph.roots.iter().filter(|root| is_unnamed(root));
        let mut open: Vec<NodeIdx> = roots.map(|root| root.target).collect();
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut cyclic.is_kept[node.get()], true) {
                for to in cyclic.referred_to_by(node) {
                    n_referring[to.get()] += 1;
                    open.push(to);
                }
            }
        }
        let is_left = |node: &NodeIdx| cyclic.is_kept[node.get()] && n_referring[node.get()] == 0;
        let mut loose: Vec<NodeIdx> = (0..n_nodes as u32).map(NodeIdx).filter(is_left).collect();
        while let Some(node) = loose.pop() {
            cyclic.is_kept[node.get()] = false;
            for to in cyclic.referred_to_by(node) {
                n_referring[to.get()] -= 1;
                if n_referring[to.get()] == 0 {
                    loose.push(to);
                }
            }
        }
        cyclic
    }

    fn referred_to_by(&self, node: NodeIdx) -> impl Iterator<Item = NodeIdx> {
        let referred = self.referred.get(node.0).iter();
        referred.copied().map(NodeIdx)
    }

    /// For each node that is kept, what kind of cycle there is among those that it is connected with.
    fn kinds(&self) -> Vec<Option<RootKind>> {
        let mut group: Vec<usize> = (0..self.graph.nodes.len()).collect();
        let among = |edge: &&Edge| self.is_kept[edge.from.get()] && self.is_kept[edge.to.get()];
        for edge in self.graph.edges.iter().filter(among) {
            let (from, to) = (
                first(&mut group, edge.from.get()),
                first(&mut group, edge.to.get()),
            );
            group[to] = from;
        }
        let mut of_group = vec![None; group.len()];
        for edge in self.graph.edges.iter().filter(among) {
            let group = first(&mut group, edge.from.get());
            of_group[group] = self.kind_of(edge).max(of_group[group]);
        }
        let kept = self.is_kept.iter().enumerate();
        kept.map(|(node, is_kept)| is_kept.then(|| of_group[first(&mut group, node)])?)
            .collect()
    }

    /// What an edge shows of a cycle that it is part of.
    fn kind_of(&self, edge: &Edge) -> Option<RootKind> {
        match &edge.step {
            Step::Packed(_) => Some(RootKind::HookCycle),
            step if step.is_attribute("grad") => Some(RootKind::GradientCycle),
            _ => {
                let category = self.graph.node(edge.from).category;
                (category == Some(TensorCategory::Graph)).then_some(RootKind::GraphCycle)
            }
        }
    }
}

/// The node that stands for all that this one is connected with.
fn first(group: &mut [usize], mut node: usize) -> usize {
    while group[node] != node {
        group[node] = group[group[node]];
        node = group[node];
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GraphBuilder, Node};

    /// What becomes of the kind of a tensor and the node of its graph, which have these steps to each other.
    fn kind(there: Step, back: Option<Step>) -> RootKind {
        let mut builder = GraphBuilder::default();
        let tensor = builder.node(Node::tensor("Tensor", "float32", &[64]));
        let node = builder.node(Node::object("ExpBackward0"));
        builder.categorise(node, TensorCategory::Graph);
        builder.edge(tensor, node, there);
        if let Some(back) = back {
            builder.edge(node, tensor, back);
        }
        builder.root(Root::new("unnamed", RootKind::Unnamed, tensor));
        let mut graph = builder.build();
        graph.find_graph_cycles();
        graph.roots[0].kind
    }

    #[test]
    fn a_tensor_that_its_own_graph_saved_is_kept_by_a_cycle() {
        let graph = || Step::attribute("grad_fn");
        let saved = || Some(Step::Saved(Some("result".into())));
        assert_eq!(kind(graph(), None), RootKind::Unnamed);
        assert_eq!(kind(graph(), saved()), RootKind::GraphCycle);
        let packed = Some(Step::Packed("result".into()));
        assert_eq!(kind(graph(), packed), RootKind::HookCycle);
        let gradient = Step::attribute("grad");
        assert_eq!(kind(gradient, saved()), RootKind::GradientCycle);
    }
}

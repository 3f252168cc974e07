//! Every byte once, under the name where a person would look for it first.

use std::collections::BTreeMap;

use super::graph::ObjectGraph;
use super::node::NodeIdx;
use gpumem_model::holders::RootKind;
use gpumem_model::units::Bytes;

/// What a name holds on a device, excluding what a name before it holds.
/// [`Found::held_by`](super::Found::held_by) lists them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldBy {
    /// As the user knows it: `losses`, `Out[3]`.
    pub name: String,
    /// What kind of name it is.
    pub kind: RootKind,
    /// The device's label.
    pub device: String,
    /// How much it holds.
    pub n_bytes: Bytes,
}

impl ObjectGraph {
    /// Who holds what, the most first: variables come before the frames of an error, so what
    /// a function was given counts for the name of who gave it.
    pub fn by_preferred_name(&self) -> Vec<HeldBy> {
        let mut roots: Vec<_> = self.roots().iter().collect();
        roots.sort_by_key(|root| root.kind);
        let targets = self.targets();
        let mut is_seen = vec![false; self.n_nodes()];
        let mut held: BTreeMap<(RootKind, &str, &str), Bytes> = BTreeMap::new();
        for root in roots {
            let mut open = vec![root.target];
            while let Some(idx) = open.pop() {
                if std::mem::replace(&mut is_seen[idx.get()], true) {
                    continue;
                }
                if let Some(storage) = &self.node(idx).storage {
                    *held
                        .entry((root.kind, &root.name, &storage.device))
                        .or_default() += storage.n_bytes;
                }
                open.extend(&targets[idx.get()]);
            }
        }
        let mut held: Vec<HeldBy> = held
            .into_iter()
            .map(|((kind, name, device), n_bytes)| HeldBy {
                name: name.to_owned(),
                kind,
                device: device.to_owned(),
                n_bytes,
            })
            .collect();
        held.sort_by_key(|held| std::cmp::Reverse(held.n_bytes));
        held
    }

    fn targets(&self) -> Vec<Vec<NodeIdx>> {
        let mut targets = vec![Vec::new(); self.n_nodes()];
        for (from, to, _) in self.edges() {
            targets[from.get()].push(to);
        }
        targets
    }
}

#[cfg(test)]
mod tests {
    use super::super::{GraphBuilder, Node, Root, Step};
    use super::*;

    #[test]
    fn each_byte_counts_once_for_the_name_that_comes_first() {
        let mut builder = GraphBuilder::default();
        let mut tensor = |id, n_mib| {
            let tensor = builder.node(Node::tensor("Tensor", "float32", &[1]));
            let storage = builder.node(Node::storage(id, "sim:0", Bytes::mib(n_mib)));
            builder.edge(tensor, storage, Step::Within);
            tensor
        };
        let (weights, batch) = (tensor(1, 4), tensor(2, 9));
        let frame = builder.node(Node::object("frame"));
        for local in [weights, batch] {
            builder.edge(frame, local, Step::Within);
        }
        // A ring ends, too.
        builder.edge(batch, frame, Step::Within);
        builder.root(Root::new("last exception", RootKind::Traceback, frame));
        builder.root(Root::variable("weights", weights));
        let held = builder.build().by_preferred_name();
        let shown: Vec<_> = held
            .iter()
            .map(|held| (held.name.as_str(), held.n_bytes))
            .collect();
        assert_eq!(
            shown,
            [
                ("last exception", Bytes::mib(9)),
                ("weights", Bytes::mib(4))
            ]
        );
    }
}

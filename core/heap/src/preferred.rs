//! Every byte once, under the name where a person would look for it first.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::graph::ObjectGraph;
use super::node::NodeIdx;
use super::step::Step;
use gpumem_model::holders::RootKind;
use gpumem_model::units::Bytes;

/// What a name holds on a device, excluding what a name before it holds.
/// [`HeapSearchResult::held_by`](super::HeapSearchResult::held_by) lists them.
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
    /// How many storages that is.
    pub n_storages: u64,
}

impl ObjectGraph {
    /// Who holds what, the most first: variables come before the frames of an error, so what
    /// a function was given counts for the name of who gave it. What a frame of the error holds counts for
    /// its local variable: `outs in encode()`.
    pub fn by_preferred_name(&self) -> Vec<HeldBy> {
        let mut roots: Vec<_> = self.roots().iter().collect();
        roots.sort_by_key(|root| root.kind);
        let links = self.links();
        let mut is_seen = vec![false; self.n_nodes()];
        let mut held: BTreeMap<(RootKind, Rc<str>, &str), (Bytes, u64)> = BTreeMap::new();
        for root in roots {
            let mut open = vec![(root.target, Rc::<str>::from(&*root.name), None::<&str>)];
            while let Some((idx, name, function)) = open.pop() {
                if std::mem::replace(&mut is_seen[idx.get()], true) {
                    continue;
                }
                if let Some(storage) = &self.node(idx).storage {
                    let key = (root.kind, Rc::clone(&name), &*storage.device);
                    let (n_bytes, n_storages) = held.entry(key).or_default();
                    *n_bytes += storage.n_bytes;
                    *n_storages += 1;
                }
                for (to, step) in &links[idx.get()] {
                    open.push(match (step, function) {
                        (Step::Frame(function), _) => (*to, Rc::clone(&name), Some(&**function)),
                        (Step::Local(local), Some(function)) => {
                            (*to, format!("{local} in {function}()").into(), None)
                        }
                        _ => (*to, Rc::clone(&name), None),
                    });
                }
            }
        }
        let held = held.into_iter();
        let mut held: Vec<HeldBy> = held
            .map(|((kind, name, device), (n_bytes, n_storages))| HeldBy {
                name: name.to_string(),
                kind,
                device: device.to_owned(),
                n_bytes,
                n_storages,
            })
            .collect();
        held.sort_by_key(|held| std::cmp::Reverse(held.n_bytes));
        held
    }

    /// What each object holds; frames and their variables last, whose turn comes first: of an error's frames the
    /// outer ones gave the inner ones what they have, and some versions of Python keep variables in a dict, too.
    fn links(&self) -> Vec<Vec<(NodeIdx, &Step)>> {
        let mut links = vec![Vec::new(); self.n_nodes()];
        for (from, to, step) in self.edges() {
            links[from.get()].push((to, step));
        }
        for links in &mut links {
            links.sort_by_key(|(_, step)| matches!(step, Step::Frame(_) | Step::Local(_)));
        }
        links
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
        let outs = [tensor(3, 2), tensor(4, 2)];
        let mut object = |type_name| builder.node(Node::object(type_name));
        let (outer, inner) = (object("traceback"), object("traceback"));
        let (train, encode) = (object("frame"), object("frame"));
        let list = object("list");
        builder.edge(outer, train, Step::Frame("train".into()));
        builder.edge(outer, inner, Step::attribute("tb_next"));
        builder.edge(inner, encode, Step::Frame("encode".into()));
        for (frame, local, name) in [
            (train, weights, "w"),
            (train, batch, "batch"),
            (encode, batch, "x"),
            (encode, list, "outs"),
        ] {
            builder.edge(frame, local, Step::local(name));
        }
        for (idx, out) in outs.into_iter().enumerate() {
            builder.edge(list, out, Step::Index(idx as u64));
        }
        // A ring ends, too.
        builder.edge(batch, train, Step::Within);
        builder.root(Root::new("last exception", RootKind::Traceback, outer));
        builder.root(Root::variable("weights", weights));
        let held = builder.build().by_preferred_name();
        let shown: Vec<_> = held
            .iter()
            .map(|held| (held.name.as_str(), held.n_bytes, held.n_storages))
            .collect();
        assert_eq!(
            shown,
            [
                ("batch in train()", Bytes::mib(9), 1),
                ("weights", Bytes::mib(4), 1),
                ("outs in encode()", Bytes::mib(4), 2)
            ]
        );
    }
}

//! Variables that hold the same shapes and sizes twice: a checkpoint beside the model that was loaded from it.

use std::cmp::Reverse;

use super::Holders;
use super::heap_analysis::HeapAnalysis;
use super::node::{Node, TensorCategory};
use super::retained_size::SizedStorage;
use gpumem_model::holders::{RootKind, Twin};
use gpumem_model::units::Bytes;

/// Fewer storages may be alike by chance.
const FEWEST: usize = 3;

/// A variable of less is not compared.
const SMALLEST: Bytes = Bytes::mib(16);

/// Number of variables that are compared, the largest first.
const MAX_VARIABLES: usize = 24;

/// This part of the storages of one of both must be alike, …
const MOST: f64 = 0.9;

/// … and this part of the bytes of the first: a checkpoint has the optimizer's state, too.
const PART_OF_BYTES: f64 = 0.3;

/// What a storage is compared by: shape, element type, size.
type Likeness<'g> = (Option<&'g [u64]>, Option<&'g str>, u64);

/// A variable with its storages, those that are alike in a row.
struct Comparable<'g> {
    root: u32,
    n_bytes: u64,
    /// Numbers in the dominator tree, in order.
    numbers: Vec<u32>,
    likenesses: Vec<Likeness<'g>>,
}

impl HeapAnalysis<'_> {
    /// Notes in `holders` which variables hold the same as another one.
    pub fn twins(&self, holders: &mut Holders) {
        let variables = self.comparable();
        let twins: Vec<Twin> = variables
            .iter()
            .filter_map(|it| {
                let others = variables.iter().filter(|other| other.root != it.root);
                let twins = others.filter_map(|other| self.twin(it, other));
                twins.max_by_key(|twin| twin.n_alike)
            })
            .collect();
        for device in &mut holders.devices {
            let is_there = |twin: &&Twin| {
                let mut roots = device.roots.iter();
                let mut shared = device.shared.iter();
                roots.any(|it| it.kind == RootKind::Variable && it.name == twin.name)
                    || shared.any(|it| it.names.contains(&twin.name))
            };
            device.twins = twins.iter().filter(is_there).cloned().collect();
        }
    }

    /// The variables that hold enough, the most first.
    fn comparable(&self) -> Vec<Comparable<'_>> {
        let mut variables = Vec::new();
        self.each_variable(|root, found| {
            let is_own = |it: &&&SizedStorage| {
                let is_of_training = [TensorCategory::Gradient, TensorCategory::OptimizerState];
                it.is_handed_out() && !it.category.is_some_and(|it| is_of_training.contains(&it))
            };
            let own: Vec<&SizedStorage> = found.iter().filter(is_own).copied().collect();
            let n_bytes = own.iter().map(|it| it.n_bytes).sum();
            if own.len() < FEWEST || Bytes::new(n_bytes) < SMALLEST {
                return;
            }
            let mut numbers: Vec<u32> = own.iter().map(|it| it.number).collect();
            let mut likenesses: Vec<_> = own.iter().map(|it| self.likeness(it)).collect();
            numbers.sort_unstable();
            likenesses.sort_unstable();
            variables.push(Comparable {
                root,
                n_bytes,
                numbers,
                likenesses,
            });
        });
        variables.sort_by_key(|it| Reverse(it.n_bytes));
        variables.truncate(MAX_VARIABLES);
        variables
    }

    /// Of views on a storage the largest tells.
    fn likeness(&self, stored: &SizedStorage) -> Likeness<'_> {
        let holders = self.dominators.holders(stored.number).iter();
        let nodes = holders.filter_map(|number| self.web.object(self.vertex(*number)));
        let tensors = nodes.filter(|it| it.shape.is_some());
        let size = |node: &&Node| {
            let shape = node.shape.as_deref().unwrap_or_default();
            (
                shape.iter().fold(1, |all: u64, n| all.saturating_mul(*n)),
                node.shape.clone(),
            )
        };
        let tensor = tensors.max_by_key(size);
        let shape = tensor.and_then(|it| it.shape.as_deref());
        let dtype = tensor.and_then(|it| it.dtype.as_deref());
        (shape, dtype, stored.n_bytes)
    }

    /// Says of a variable that it holds the same as the other one, if it does.
    fn twin(&self, it: &Comparable<'_>, other: &Comparable<'_>) -> Option<Twin> {
        let is_shared = |number: &u32| other.numbers.binary_search(number).is_ok();
        if it.numbers.iter().any(is_shared) {
            return None;
        }
        let alike = common(&it.likenesses, &other.likenesses);
        let (n_alike, n_all) = (alike.len(), it.likenesses.len());
        let share = |n: usize| n_alike as f64 / n as f64;
        let n_bytes: u64 = alike.iter().map(|(.., n)| n).sum();
        let is_one_shape = alike.first() == alike.last();
        let is_twin = n_alike >= FEWEST
            && (share(n_all) >= MOST || share(other.likenesses.len()) >= MOST)
            && n_bytes as f64 >= PART_OF_BYTES * it.n_bytes as f64
            // Any two lists of batches are alike.
            && (!is_one_shape || n_all == other.likenesses.len());
        let name = |root: u32| self.web.name_of(root).map(|it| it.name.to_owned());
        is_twin.then_some(())?;
        Some(Twin {
            name: name(it.root)?,
            other: name(other.root)?,
            n_alike: n_alike as u64,
            n_all: n_all as u64,
            by_shape: alike.iter().all(|(shape, ..)| shape.is_some()),
        })
    }
}

/// What is in both, as often as in both; both are in order.
fn common<'g>(a: &[Likeness<'g>], b: &[Likeness<'g>]) -> Vec<Likeness<'g>> {
    let mut rest = b.iter().peekable();
    let is_there = |it: &&Likeness<'g>| {
        while rest.next_if(|other| other < it).is_some() {}
        rest.next_if(|other| other == it).is_some()
    };
    a.iter().filter(is_there).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GraphBuilder, HolderLimits, Root, Step};

    /// The twins of variables that hold tensors with these numbers of rows; a shared one has an id below 100.
    #[track_caller]
    fn check(variables: &[(&str, &[u64], u64, TensorCategory)], expected: &str) {
        let mut builder = GraphBuilder::default();
        for (name, rows, first_id, category) in variables {
            let list = builder.node(Node::object("dict"));
            for (idx, n) in rows.iter().enumerate() {
                let tensor = Node::tensor("Tensor", "float32", &[*n, 8]).with_category(*category);
                let tensor = builder.node(tensor);
                let storage = Node::storage(first_id + idx as u64, "sim:0", Bytes::mib(*n));
                let storage = builder.node(storage);
                builder.edge(list, tensor, Step::Index(idx as u64));
                builder.edge(tensor, storage, Step::Within);
            }
            builder.root(Root::variable(name, list));
        }
        let graph = builder.build();
        let look = HeapAnalysis::at(&graph);
        let mut holders = look.holders(&HolderLimits::default(), None);
        look.twins(&mut holders);
        let twins = holders.devices[0].twins.iter();
        let twins = twins.map(|it| format!("{} {} {}/{}", it.name, it.other, it.n_alike, it.n_all));
        assert_eq!(twins.collect::<Vec<_>>().join(", "), expected);
    }

    #[test]
    fn a_checkpoint_is_like_its_model() {
        const OWN: TensorCategory = TensorCategory::Tensor;
        let model: (&str, &[u64], u64, TensorCategory) =
            ("model", &[9, 8, 7, 9], 100, TensorCategory::Parameter);
        let with = |rows: &[u64], first_id: u64, category: TensorCategory, expected: &str| {
            check(&[model, ("checkpoint", rows, first_id, category)], expected);
        };
        let both = "model checkpoint 4/4, checkpoint model 4/4";
        with(&[8, 9, 7, 9], 200, OWN, both);
        // The same storages, too few alike, gradients.
        with(&[9, 8, 7, 9], 100, OWN, "");
        with(&[9, 8, 6, 6], 200, OWN, "");
        with(&[9, 8, 7, 9], 200, TensorCategory::Gradient, "");
        // With what the optimizer has for each.
        let whole = "checkpoint model 4/8, model checkpoint 4/4";
        with(&[9, 8, 7, 9, 2, 3, 4, 5], 200, OWN, whole);
        check(&[("a", &[9; 4], 100, OWN), ("b", &[9; 5], 200, OWN)], "");
    }
}

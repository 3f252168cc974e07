//! What each vertex alone keeps on one device, counted up the dominator tree.

use super::csr_graph::CsrGraph;
use super::dominators::Dominators;
use super::node::{Node, TensorCategory};
use super::reach::{BestHolder, Reachability};

/// What would be free without a vertex.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RetainedSize {
    pub(super) n_bytes: u64,
    /// Part of it that only graphs hold.
    pub(super) graph: u64,
    /// Tensors by category; those that only a graph holds are not counted.
    pub(super) n_tensors: [u32; N_COUNTED],
    /// Tensors that keep a graph alone.
    pub(super) n_with_graph: u32,
    /// Tensors of a single number.
    pub(super) n_scalars: u32,
}

/// How many categories are tensors.
pub(super) const N_COUNTED: usize = 7;

impl RetainedSize {
    pub(super) fn add(&mut self, other: &Self) {
        self.n_bytes = self.n_bytes.saturating_add(other.n_bytes);
        self.graph = self.graph.saturating_add(other.graph);
        for (n, other) in self.n_tensors.iter_mut().zip(other.n_tensors) {
            *n += other;
        }
        self.n_with_graph += other.n_with_graph;
        self.n_scalars += other.n_scalars;
    }

    /// Tensors of every category.
    pub(super) fn n_all(&self) -> u64 {
        self.n_tensors.into_iter().map(u64::from).sum()
    }
}

/// The place of a tensor's category in [`RetainedSize::n_tensors`]; `None` for what is no tensor.
pub(super) fn counted(node: &Node) -> Option<usize> {
    if node.storage.is_some() {
        return None;
    }
    let is_it = |category: &TensorCategory| Some(*category) == node.category;
    TensorCategory::ALL[..N_COUNTED].iter().position(is_it)
}

/// A storage on a device, with what is known of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct SizedStorage {
    /// Its number in the dominator tree.
    pub(super) number: u32,
    pub(super) n_bytes: u64,
    /// The position of its device among those of the graph.
    pub(super) device: u16,
    /// Nothing but graphs holds it.
    pub(super) is_saved: bool,
    pub(super) category: Option<TensorCategory>,
    pub(super) held: BestHolder,
    /// The root of its path.
    pub(super) root: u32,
}

impl SizedStorage {
    /// A tensor has it: what is free in a pool of its owner's is reserved, and not handed out.
    pub(super) fn is_handed_out(&self) -> bool {
        self.category != Some(TensorCategory::Workspace)
    }
}

/// The device of every tensor and storage, by number; `NOWHERE` for the rest.
pub(super) const NOWHERE: u16 = u16::MAX;

/// Every storage once, and where each number's bytes are.
pub(super) struct StorageIndex {
    pub(super) devices: Vec<std::sync::Arc<str>>,
    pub(super) storages: Vec<SizedStorage>,
    device_of: Vec<u16>,
}

impl StorageIndex {
    pub(super) fn new(web: &CsrGraph<'_>, reach: &Reachability, dominators: &Dominators) -> Self {
        let mut ground = Self {
            devices: Vec::new(),
            storages: Vec::new(),
            device_of: vec![NOWHERE; dominators.vertices.len()],
        };
        for idx in 0..web.graph.nodes.len() as u32 {
            let vertex = web.first_node() + idx;
            let node = &web.graph.nodes[idx as usize];
            let Some(storage) = &node.storage else {
                continue;
            };
            let number = dominators.number(vertex);
            let device = ground.device(&storage.device);
            ground.device_of[number as usize] = device;
            let mut category = node.category;
            let mut is_saved = true;
            for holder in dominators.holders(number) {
                let holder_vertex = dominators.vertices[*holder as usize];
                is_saved &= web.is_graph(holder_vertex);
                let Some(holding) = web.object(holder_vertex) else {
                    continue;
                };
                category = match (category, holding.category) {
                    (Some(known), Some(other)) => Some(known.min(other)),
                    (known, other) => known.or(other),
                };
                if counted(holding).is_some() {
                    ground.device_of[*holder as usize] = device;
                }
            }
            let held = reach.held(vertex);
            if !web.is_twin(idx) {
                ground.storages.push(SizedStorage {
                    number,
                    n_bytes: storage.n_bytes.get(),
                    device,
                    is_saved: held == BestHolder::InGraph || is_saved,
                    category,
                    held,
                    root: reach.root(vertex),
                });
            }
        }
        ground
    }

    fn device(&mut self, label: &std::sync::Arc<str>) -> u16 {
        let known = self.devices.iter().position(|device| device == label);
        let idx = known.unwrap_or_else(|| {
            self.devices.push(label.clone());
            self.devices.len() - 1
        });
        // Devices beyond what a machine can have are one.
        u16::try_from(idx).unwrap_or(NOWHERE - 1).min(NOWHERE - 1)
    }

    /// What each number alone keeps on a device.
    pub(super) fn tallies(
        &self,
        web: &CsrGraph<'_>,
        dominators: &Dominators,
        device: u16,
    ) -> Vec<RetainedSize> {
        let mut tallies = vec![RetainedSize::default(); dominators.vertices.len()];
        for stored in self.storages.iter().filter(|it| it.device == device) {
            let tally = &mut tallies[stored.number as usize];
            tally.n_bytes = stored.n_bytes;
            tally.graph = if stored.is_saved { stored.n_bytes } else { 0 };
        }
        for number in (1..tallies.len()).rev() {
            let vertex = dominators.vertices[number];
            let tally = &mut tallies[number];
            if let Some(node) = web.object(vertex) {
                let is_here = self.device_of[number] == device;
                if let Some(category) = counted(node).filter(|_| is_here) {
                    tally.n_tensors[category] += 1;
                    tally.n_with_graph += u32::from(tally.graph > 0);
                    tally.n_scalars += u32::from(is_scalar(node));
                } else if web.is_graph(vertex) {
                    *tally = RetainedSize {
                        n_bytes: tally.n_bytes,
                        graph: tally.n_bytes,
                        ..RetainedSize::default()
                    };
                }
            }
            let tally = *tally;
            tallies[dominators.above[number] as usize].add(&tally);
        }
        tallies
    }
}

fn is_scalar(node: &Node) -> bool {
    let shape = node.shape.as_deref();
    shape.is_some_and(|shape| shape.iter().all(|n| *n == 1))
}

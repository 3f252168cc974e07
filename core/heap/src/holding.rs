//! Which storages each variable holds, whoever else does, too.

use std::collections::HashMap;

use super::csr_graph::CsrGraph;
use super::heap_analysis::HeapAnalysis;
use super::reach::BestHolder;
use super::retained_size::SizedStorage;
use gpumem_model::holders::RootKind;
use gpumem_model::units::Bytes;

/// Where optimizers have the parameters of a model.
pub(super) const PARAMETERS: &str = "param_groups";

/// A variable of less is not followed.
const SMALLEST: Bytes = Bytes::mib(1);

/// Of one device, as many variables are followed: those that hold the most.
const MAX_HOLDINGS: usize = 64;

/// Smaller storages are not followed, …
const SMALLEST_STORAGE: u64 = 64 << 10;

/// … and of one variable not more than these: the first that are met.
const MAX_IDS: usize = 1 << 12;

/// For all variables together, as many objects are visited.
const MAX_VISITS: usize = 1 << 22;

/// A variable, and the storages that it holds: what it promises to let go of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holding {
    /// The variable.
    pub name: Box<str>,
    /// The type of its object.
    pub type_name: Box<str>,
    /// The variable is not gone, but has a new object.
    pub is_rebound: bool,
    /// Paths prefer this name for most of them.
    pub is_first: bool,
    /// What it holds.
    pub n_bytes: Bytes,
    /// Which storages those are.
    pub ids: Vec<u64>,
}

impl HeapAnalysis<'_> {
    /// What each variable holds on each device, in the order of the labels: the most first. What has a
    /// variable of its own is that one's.
    pub(super) fn holdings(&self) -> Vec<Vec<Holding>> {
        let mut holdings = vec![Vec::new(); self.labels().count()];
        self.each_variable(|root, found| {
            for (device, holdings) in holdings.iter_mut().enumerate() {
                let here = found.iter().filter(|it| usize::from(it.device) == device);
                holdings.extend(self.holding(root, here.copied()));
            }
        });
        for holdings in &mut holdings {
            holdings.sort_by_key(|it| std::cmp::Reverse(it.n_bytes));
            holdings.truncate(MAX_HOLDINGS);
        }
        holdings
    }

    /// Visits each variable with the storages that it holds, those of variables that it reaches left out.
    pub(super) fn each_variable<'s>(&'s self, mut visit: impl FnMut(u32, &[&'s SizedStorage])) {
        let mut stored_at: Vec<Option<&SizedStorage>> = vec![None; self.web.n_vertices()];
        for stored in &self.ground.storages {
            stored_at[self.vertex(stored.number) as usize] = Some(stored);
        }
        let is_variable = |root: &u32| {
            let name = self.web.name_of(*root);
            name.is_some_and(|it| it.kind == RootKind::Variable)
        };
        let roots: Vec<u32> = (1..self.web.first_node()).filter(is_variable).collect();
        let mut is_named = vec![false; self.web.n_vertices()];
        for (target, _) in roots.iter().flat_map(|root| self.web.successors(*root)) {
            is_named[target as usize] = true;
        }
        // What only a graph holds has no other name.
        let mut of_graphs: HashMap<u32, Vec<&SizedStorage>> = HashMap::new();
        let in_graphs = self.ground.storages.iter();
        for stored in in_graphs.filter(|it| it.held == BestHolder::InGraph) {
            of_graphs.entry(stored.root).or_default().push(stored);
        }
        let mut met_by = vec![0; self.web.n_vertices()];
        let mut visits_left = MAX_VISITS;
        for root in roots {
            let mut found: Vec<&SizedStorage> = Vec::new();
            let mut open = vec![root];
            while let Some(vertex) = open.pop() {
                found.extend(stored_at[vertex as usize]);
                for (target, link) in self.web.successors(vertex) {
                    let is_own = vertex == root || !is_named[target as usize];
                    let is_new = std::mem::replace(&mut met_by[target as usize], root) != root;
                    if is_own && is_new && leads_on(&self.web, target, link) {
                        open.push(target);
                        visits_left = visits_left.saturating_sub(1);
                    }
                }
            }
            found.extend(of_graphs.remove(&root).unwrap_or_default());
            visit(root, &found);
            if visits_left == 0 {
                break;
            }
        }
    }

    fn holding<'s>(
        &self,
        root: u32,
        found: impl Iterator<Item = &'s SizedStorage>,
    ) -> Option<Holding> {
        let target = self.target(root).map(|idx| self.web.graph.node(idx));
        let mut holding = Holding {
            name: self.web.name_of(root)?.name.into(),
            type_name: target.map_or_else(Box::default, |it| (&*it.type_name).into()),
            ..Holding::default()
        };
        let mut n_first = Bytes::ZERO;
        let is_followed = |it: &&SizedStorage| it.is_handed_out() && it.n_bytes >= SMALLEST_STORAGE;
        for stored in found.filter(is_followed).take(MAX_IDS) {
            let n_bytes = Bytes::new(stored.n_bytes);
            holding.n_bytes += n_bytes;
            if stored.root == root {
                n_first += n_bytes;
            }
            holding.ids.extend(self.storage(stored).map(|it| it.id));
        }
        holding.is_first = n_first.as_f64() >= holding.n_bytes.as_f64() / 2.0;
        (holding.n_bytes >= SMALLEST).then_some(holding)
    }
}

/// What a graph saved, and the parameters that an optimizer changes, are not theirs.
fn leads_on(web: &CsrGraph<'_>, target: u32, link: u32) -> bool {
    let edge = web.edge(link);
    let is_of_optimizer = edge.is_some_and(|edge| edge.step.is_attribute(PARAMETERS));
    !is_of_optimizer && !web.is_graph(target)
}

//! What kind of thing holds memory: its type, its bound, the library's object that keeps it.

use gpumem_model::holders::{Bound, Keeper, LibraryObject, StorageUse, Traits};
use gpumem_model::units::Bytes;

use crate::csr_graph::SESSION;
use crate::heap_analysis::HeapAnalysis;
use crate::node::{CACHE, NodeIdx};
use crate::path;
use crate::retained_size::RetainedSize;
use crate::step::Step;

impl HeapAnalysis<'_> {
    pub(crate) fn traits(
        &self,
        target: Option<NodeIdx>,
        tally: &RetainedSize,
        largest: u32,
        part: Option<StorageUse>,
    ) -> Traits {
        let type_name = target.map(|idx| &*self.web.graph.node(idx).type_name);
        let links = self.reach.path(SESSION, largest);
        Traits {
            type_name: type_name.unwrap_or_default().to_owned(),
            n_tensors: tally.n_all(),
            scalars: tally.n_all() > 0 && u64::from(tally.n_scalars) == tally.n_all(),
            graph: Bytes::new(tally.graph),
            keeper: self.keeper(type_name, &links),
            part,
            bound: self.bound(&links),
            tensor_type: self.tensor_type(&links),
            library_objects: self.library_objects(&links),
            ..Traits::default()
        }
    }

    /// The objects of libraries that these links lead through, the nearest to their end first.
    fn library_objects(&self, links: &[(u32, u32, u32)]) -> Vec<LibraryObject> {
        let Some((_, end, _)) = links.last() else {
            return Vec::new();
        };
        let before = links.iter().rev().skip(1);
        before
            .filter_map(|(_, to, _)| self.library_object(*to, *end))
            .collect()
    }

    /// An object of a library on the way to `end`.
    pub(crate) fn library_object(&self, vertex: u32, end: u32) -> Option<LibraryObject> {
        let class = self.web.object(vertex)?.class.as_ref()?;
        Some(LibraryObject {
            class: class.name.clone(),
            version: class.version.clone(),
            object: path::text(&self.web, &self.reach, SESSION, vertex),
            rest: path::text(&self.web, &self.reach, vertex, end),
        })
    }

    /// Of what has the storage at the end of the path.
    fn tensor_type(&self, links: &[(u32, u32, u32)]) -> String {
        let holder = links.last().and_then(|(from, ..)| self.web.object(*from));
        let tensor = holder.filter(|node| node.category.is_some() || node.shape.is_some());
        tensor.map_or_else(String::new, |node| node.type_name.to_string())
    }

    /// Of the first container on the way to it, or of the object that has that container.
    fn bound(&self, links: &[(u32, u32, u32)]) -> Option<Bound> {
        for (_, to, link) in links {
            let edge = self.web.edge(*link);
            if edge.is_some_and(|edge| matches!(edge.step, Step::Index(_) | Step::Key(_))) {
                return None;
            }
            if let Some(bound) = self.web.object(*to).and_then(|node| node.bound) {
                return Some(self.filled(bound, *to));
            }
        }
        None
    }

    /// How full a container is.
    pub(crate) fn filled(&self, bound: Bound, container: u32) -> Bound {
        let n = match bound.n {
            0 => self.n_entries(container).min(bound.most),
            n => n,
        };
        Bound { n, ..bound }
    }

    /// How many objects with memory a container holds whose entries Python does not count.
    fn n_entries(&self, container: u32) -> u64 {
        let links = self.web.successors(container);
        let edges = links.filter_map(|(_, link)| self.web.edge(link));
        let is_entry = |step: &Step| matches!(step, Step::Opaque | Step::Index(_) | Step::Key(_));
        let n = edges.filter(|edge| is_entry(&edge.step)).count();
        n.max(1) as u64
    }

    /// What has the object at the end of the links, if the name is of that type.
    pub(crate) fn keeper(
        &self,
        type_name: Option<&str>,
        links: &[(u32, u32, u32)],
    ) -> Option<Keeper> {
        let of_link = |(_, to, link): &(u32, u32, u32)| {
            let root = self.web.entry(*link);
            let of_root = root.filter(|root| is_of_hooks(&root.path));
            let edge = self.web.edge(*link);
            let of_edge = edge.and_then(|edge| keeper_of_step(&edge.step));
            let of_step = of_root.map(|_| Keeper::Hooks).or(of_edge);
            let node = self.web.object(*to);
            let is_cache = node.is_some_and(|node| &*node.type_name == CACHE);
            of_step.or(is_cache.then_some(Keeper::Function))
        };
        // What functions keep that are themselves items of a collection was collected with them.
        let is_item = |(.., link): &&(u32, u32, u32)| {
            let edge = self.web.edge(*link);
            edge.is_some_and(|edge| matches!(edge.step, Step::Index(_) | Step::Key(_)))
        };
        let n_before_items = links.iter().take_while(|it| !is_item(it)).count();
        let all = || {
            let kept = links.iter().enumerate();
            let kept = kept.filter_map(|(at, it)| Some((at, of_link(it)?)));
            let kept = kept.filter(|(at, it)| *it != Keeper::Function || *at < n_before_items);
            kept.map(|(_, it)| it)
        };
        match type_name {
            Some("type") => Some(Keeper::Class),
            Some(name) if name.ends_with(CACHE) => all().find(|it| *it != Keeper::Function),
            _ => all().min_by_key(|it| *it == Keeper::Function),
        }
    }
}

pub(crate) fn keeper_of_step(step: &Step) -> Option<Keeper> {
    match step {
        Step::Closure(_) | Step::Default(_) | Step::Cell => Some(Keeper::Function),
        Step::Frame(_) => Some(Keeper::Traceback),
        Step::Attribute(name) | Step::Variable(name) if &**name == "__traceback__" => {
            Some(Keeper::Traceback)
        }
        Step::Attribute(name) | Step::Variable(name) | Step::Key(name) | Step::Local(name) => {
            is_of_hooks(name).then_some(Keeper::Hooks)
        }
        _ => None,
    }
}

/// Frameworks call the dicts of their hooks such: `_forward_hooks`.
pub(crate) fn is_of_hooks(name: &str) -> bool {
    name.contains("_hooks")
}

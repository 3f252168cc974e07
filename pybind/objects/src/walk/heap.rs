//! The objects that the roots reach through `tp_traverse`.
//!
//! All of it happens in one section, so that borrowed pointers stay good.

use std::collections::{BTreeSet, HashSet};
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gpumem_heap::Step;
use gpumem_model::units::Bytes;
use pyo3::ffi;
use pyo3::types::PyTypeMethods;

use super::classes::{Classes, Treatment};
use super::sink::{ObjectDetails, PoolId, Sink, StorageEntry};
use super::table::{AddressTable, ByNumber};
use super::{WalkLimits, WalkedMemory};
use crate::adapters::registered::Registered;
use crate::adapters::{Adapter, Unread};
use crate::still::{Object, Section};
use gpumem_base::cpu_time;

/// How many references are followed between two looks at the clock.
const STRIDE: usize = 1 << 14;

/// The most references that are remembered: an endless traversal visits the same object forever.
const MOST_REFERENCES: usize = 1 << 28;

/// The number of an object, a part of one, or a storage.
pub(super) type NodeNumber = u32;

/// In the table: an object that is not entered wherever it is met.
const CLOSED: NodeNumber = NodeNumber::MAX;

/// What a node stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeKind {
    /// A Python object, alive as long as the walk.
    Object(NonNull<ffi::PyObject>),
    /// Something of a framework that is no Python object, such as a node of a graph.
    Part,
    /// Bytes of a device.
    Storage(StorageNumber),
}

pub(super) type StorageNumber = u32;

/// Bytes of a device that were met.
#[derive(Debug)]
pub(super) struct StorageNode {
    pub(super) id: u64,
    pub(super) device: u32,
    pub(super) n_bytes: Bytes,
    pub(super) address: Option<u64>,
}

/// A reference that `tp_traverse` does not report.
#[derive(Debug)]
pub(super) struct HiddenReference {
    pub(super) from: NodeNumber,
    pub(super) to: NodeNumber,
    pub(super) step: Step,
}

/// What was reached so far.
pub(crate) struct Heap<'a, 's> {
    pub(super) section: &'s Section<'s>,
    adapters: &'a [Box<dyn Adapter + 's>],
    classes: Classes<'a, 's>,
    table: AddressTable,
    pub(super) places: Vec<NodeKind>,
    /// Where the references of each entered node begin in `references`.
    pub(super) starts: Vec<u32>,
    pub(super) references: Vec<NodeNumber>,
    pub(super) hidden_references: Vec<HiddenReference>,
    pub(super) details: ByNumber<NodeNumber, ObjectDetails>,
    parts: ByNumber<usize, NodeNumber>,
    storage_nodes: ByNumber<(u32, u64), NodeNumber>,
    pub(super) storages: Vec<StorageNode>,
    pub(super) devices: Vec<Arc<str>>,
    /// What an adapter made for the walk and others point to.
    kept: Vec<Object<'s>>,
    /// Classes that are reached from an instance, entered when nothing else leads to them.
    deferred: Vec<(NodeNumber, *mut ffi::PyTypeObject)>,
    /// Classes of these modules hold nothing of the user's.
    libraries: &'a HashSet<String>,
    /// What was skipped, and why.
    pub(super) notes: BTreeSet<String>,
    /// Objects that a user's adapter handles, and which adapter.
    pub(super) questions: Vec<(NodeNumber, u8)>,
    /// Objects that keep a pool of an allocator's.
    pub(super) pools: Vec<(NodeNumber, PoolId)>,
    /// Nodes below this one were shown to the adapters, though not entered.
    n_looked_at: usize,
    /// Shorter bytes and texts are passed over, whatever their class.
    least: Bytes,
    /// Nodes below this index are already reachable; later references to them are ignored.
    settled: NodeNumber,
    budget: WalkBudget,
}

struct WalkBudget {
    until: Instant,
    cpu_until: Option<Duration>,
    n_nodes: usize,
    /// References until the clock is looked at.
    left: usize,
    is_spent: bool,
}

impl WalkBudget {
    #[inline]
    fn spend(&mut self, n_nodes: usize, n_references: usize) -> bool {
        self.left -= 1;
        if self.left == 0 {
            self.left = STRIDE;
            let is_over = self
                .cpu_until
                .is_some_and(|until| cpu_time::spent() >= until);
            self.is_spent |= is_over || Instant::now() >= self.until;
            self.is_spent |= n_references >= MOST_REFERENCES;
        }
        self.is_spent |= n_nodes >= self.n_nodes;
        !self.is_spent
    }
}

impl<'a, 's> Heap<'a, 's> {
    pub(super) fn new(
        section: &'s Section<'s>,
        adapters: &'a [Box<dyn Adapter + 's>],
        registered: &[Registered<'_>],
        libraries: &'a HashSet<String>,
        limits: WalkLimits,
    ) -> Self {
        let registered = registered.iter().map(|(class, _)| class.as_type_ptr());
        Self {
            section,
            adapters,
            classes: Classes::new(section, adapters, registered.collect()),
            table: AddressTable::with_room(1 << 16),
            places: Vec::new(),
            starts: Vec::new(),
            references: Vec::new(),
            hidden_references: Vec::new(),
            details: ByNumber::default(),
            parts: ByNumber::default(),
            storage_nodes: ByNumber::default(),
            storages: Vec::new(),
            devices: Vec::new(),
            kept: Vec::new(),
            deferred: Vec::new(),
            libraries,
            notes: BTreeSet::new(),
            questions: Vec::new(),
            pools: Vec::new(),
            n_looked_at: 0,
            least: Bytes::ZERO,
            settled: 0,
            budget: WalkBudget {
                until: limits.until,
                cpu_until: limits.cpu_until,
                n_nodes: limits.n_nodes.min(CLOSED as usize - 1),
                left: STRIDE,
                is_spent: false,
            },
        }
    }

    /// Does not enter `object`, wherever it is met from now on.
    pub(super) fn close(&mut self, object: &Object<'_>) {
        if self.table.insert(object.address(), CLOSED).is_none() {
            self.budget.is_spent = true;
        }
    }

    /// Something was passed over or left out.
    pub(super) fn note(&mut self, words: &str) {
        if !self.notes.contains(words) {
            self.notes.insert(words.to_owned());
        }
    }

    /// How many objects, parts and storages were met.
    pub(super) fn n_objects(&self) -> usize {
        self.places.len()
    }

    /// Something was left out for want of time or room.
    pub(super) fn is_cut(&self) -> bool {
        self.budget.is_spent
    }

    /// The node of an object that may lead to device memory; `run` enters it.
    pub(super) fn reach(&mut self, object: &Object<'_>) -> Option<NodeNumber> {
        self.meet(NonNull::new(object.as_ptr())?)
    }

    /// From now on shorter bytes and texts are passed over.
    pub(super) fn pass_shorter_than(&mut self, least: Bytes) {
        self.least = least;
    }

    /// Short bytes and texts are passed over.
    pub(super) fn passes_short(&self) -> bool {
        self.least > Bytes::ZERO
    }

    /// From now on nothing leads to what was met so far.
    pub(super) fn settle(&mut self) {
        self.settled = self.places.len() as NodeNumber;
    }

    /// Enters everything that was met, until there is nothing more or the budget is spent.
    pub(super) fn run(&mut self) {
        loop {
            while self.starts.len() < self.places.len() && !self.budget.is_spent {
                self.enter(self.starts.len() as NodeNumber);
            }
            if self.budget.is_spent || !self.take_deferred() {
                break;
            }
        }
        self.look_at_the_rest();
    }

    /// Once the budget is spent: still reports the tensors that were met, nearest first.
    fn look_at_the_rest(&mut self) {
        let met = self.places.len();
        let first = self.starts.len().max(self.n_looked_at).min(met);
        for node in first..met {
            if let NodeKind::Object(object) = self.places[node] {
                // SAFETY: met as a live object, and nothing was freed since.
                let class = unsafe { ffi::Py_TYPE(object.as_ptr()) };
                let treatment = self.classes.treatment(class);
                self.look(node as NodeNumber, object, treatment);
            }
        }
        self.n_looked_at = met;
    }

    #[inline]
    pub(super) fn meet(&mut self, object: NonNull<ffi::PyObject>) -> Option<NodeNumber> {
        // SAFETY: a live object of the heap, in a section.
        let class = unsafe { ffi::Py_TYPE(object.as_ptr()) };
        if class.is_null() {
            return None;
        }
        let treatment = self.classes.treatment(class);
        if treatment.is_passed() || treatment.is_too_small(object, self.least) {
            return None;
        }
        if !has_room(&mut self.places) {
            self.budget.is_spent = true;
            return None;
        }
        let next = self.places.len() as NodeNumber;
        let Some((node, is_new)) = self.table.insert(object.as_ptr() as usize, next) else {
            self.budget.is_spent = true;
            return None;
        };
        if is_new {
            self.places.push(NodeKind::Object(object));
            if let Some(class) = self.classes.take_new_heap_type() {
                self.deferred.push((node, class));
            }
        }
        (node != CLOSED && node >= self.settled).then_some(node)
    }

    /// Holds what an adapter made for this walk. A copy of the process ends with all it has.
    pub(super) fn keep(&mut self, object: &Object<'_>) {
        // SAFETY: it was met in this section: its address is that of a live object.
        let object = unsafe { self.section.borrowed(object.as_ptr()) };
        self.kept.push(object);
    }

    pub(super) fn tell(&mut self, from: NodeNumber, to: NodeNumber, step: Step) {
        if to < self.settled {
            return;
        }
        if !has_room(&mut self.hidden_references) {
            self.budget.is_spent = true;
            return;
        }
        self.hidden_references
            .push(HiddenReference { from, to, step });
    }

    /// The node of something at an address that is no Python object, and whether it is new.
    pub(super) fn part(&mut self, address: usize) -> (NodeNumber, bool) {
        let next = self.places.len() as NodeNumber;
        let node = *self.parts.entry(address).or_insert(next);
        if node == next {
            self.places.push(NodeKind::Part);
        }
        (node, node == next)
    }

    /// The node of a storage.
    pub(super) fn storage(&mut self, storage: &StorageEntry<'_>) -> NodeNumber {
        let device = self.device(storage.device);
        let next = self.places.len() as NodeNumber;
        let node = *self
            .storage_nodes
            .entry((device, storage.id.now))
            .or_insert(next);
        if node == next {
            let number = self.storages.len() as StorageNumber;
            self.storages.push(StorageNode {
                id: storage.id.over_time,
                device,
                n_bytes: storage.n_bytes,
                address: storage.address,
            });
            self.places.push(NodeKind::Storage(number));
        }
        node
    }

    fn device(&mut self, label: &str) -> u32 {
        let known = self.devices.iter().position(|it| &**it == label);
        let position = known.unwrap_or_else(|| {
            self.devices.push(label.into());
            self.devices.len() - 1
        });
        position as u32
    }

    /// Where in memory it was.
    pub(super) fn touched(&self) -> WalkedMemory {
        const NEAR: usize = 1 << 12;
        let object = |place: &NodeKind| match place {
            NodeKind::Object(object) => Some(object.as_ptr() as usize / NEAR * NEAR),
            _ => None,
        };
        let mut objects: Vec<usize> = self.places.iter().filter_map(object).collect();
        // Most lie beside the one before: to sort all would take as long as the walk.
        objects.dedup();
        objects.sort_unstable();
        objects.dedup();
        let on_host = |it: &&StorageNode| &*self.devices[it.device as usize] == "host";
        let range = |it: &StorageNode| {
            let start = usize::try_from(it.address?).ok()?;
            Some(start..start.checked_add(usize::try_from(it.n_bytes.get()).ok()?)?)
        };
        let arrays = self
            .storages
            .iter()
            .filter(on_host)
            .filter_map(range)
            .collect();
        WalkedMemory { objects, arrays }
    }

    /// The object that a node stands for.
    pub(super) fn object(&self, node: NodeNumber) -> Option<Object<'s>> {
        let NodeKind::Object(object) = self.places[node as usize] else {
            return None;
        };
        // SAFETY: met as a live object, and nothing was freed since.
        Some(unsafe { self.section.borrowed(object.as_ptr()) })
    }

    /// The node of the object at an address, if it was met.
    pub(super) fn node_of(&self, address: usize) -> Option<NodeNumber> {
        self.table.get(address).filter(|node| *node != CLOSED)
    }

    /// What an entered node refers to, each as often as it does.
    #[inline]
    pub(super) fn references_of(&self, node: NodeNumber) -> &[NodeNumber] {
        let node = node as usize;
        let end = self.starts.get(node + 1);
        let end = end.map_or(self.references.len(), |end| *end as usize);
        let begin = self.starts.get(node).map_or(end, |begin| *begin as usize);
        &self.references[begin..end]
    }

    fn enter(&mut self, node: NodeNumber) {
        if !has_room(&mut self.starts) {
            self.budget.is_spent = true;
            return;
        }
        self.starts.push(self.references.len() as u32);
        let NodeKind::Object(object) = self.places[node as usize] else {
            return;
        };
        // SAFETY: met as a live object, and nothing was freed since.
        let class = unsafe { ffi::Py_TYPE(object.as_ptr()) };
        let treatment = self.classes.treatment(class);
        self.look(node, object, treatment);
        self.questions
            .extend(treatment.own_adapter.map(|it| (node, it)));
        if let Some(traverse) = self.traverse_of(object, treatment) {
            let mut visit = Visit {
                heap: self,
                own_class: class.cast(),
            };
            // SAFETY: the type's own slot on its instance; `visited` takes a `Visit` as argument.
            unsafe { traverse(object.as_ptr(), visited, (&raw mut visit).cast()) };
        }
    }

    /// The object at this address was met, or is closed.
    pub(super) fn is_met(&self, address: usize) -> bool {
        self.table.get(address).is_some()
    }

    /// An adapter knows objects of its class, which is none of Python's own collections.
    pub(super) fn is_claimed(&mut self, object: &Object<'_>) -> bool {
        let treatment = self.classes.treatment(object.class().as_type_ptr());
        self.classes.take_new_heap_type();
        treatment.adapter.is_some() && !treatment.is_collection()
    }

    /// Counts one reference; false where the budget is spent.
    #[inline]
    pub(super) fn spend(&mut self) -> bool {
        self.budget.spend(self.places.len(), self.references.len())
    }

    /// The traversal of an object that the collector tracks.
    pub(super) fn traverse_of_tracked(
        &mut self,
        object: NonNull<ffi::PyObject>,
    ) -> Option<ffi::traverseproc> {
        // SAFETY: a live object; the GIL is held.
        let class = unsafe { ffi::Py_TYPE(object.as_ptr()) };
        let treatment = self.classes.treatment(class);
        self.classes.take_new_heap_type();
        let traverse = treatment.traverse?;
        is_traversable(object, treatment).then_some(traverse)
    }

    /// Calls the adapter of an object's class, if there is one.
    fn look(&mut self, node: NodeNumber, object: NonNull<ffi::PyObject>, treatment: Treatment) {
        let Some(adapter) = treatment.adapter_of(object) else {
            return;
        };
        // SAFETY: met as a live object, and nothing was freed since.
        let object = unsafe { self.section.borrowed(object.as_ptr()) };
        let adapters = self.adapters;
        let outcome = adapters[adapter.0 as usize].look(&object, &mut Sink::new(self, node));
        if let Err(Unread(what)) = outcome {
            self.note(&format!("{what} could not be read"));
        }
    }

    fn traverse_of(
        &self,
        object: NonNull<ffi::PyObject>,
        treatment: Treatment,
    ) -> Option<ffi::traverseproc> {
        let traverse = treatment.traverse?;
        let is_entered = is_traversable(object, treatment)
            && (!treatment.is_metaclass || self.is_users_class(object));
        is_entered.then_some(traverse)
    }

    /// A class that no library defines: its attributes are the user's.
    fn is_users_class(&self, object: NonNull<ffi::PyObject>) -> bool {
        // SAFETY: met as a live object, and nothing was freed since.
        let object = unsafe { self.section.borrowed(object.as_ptr()) };
        let module = object.as_class().and_then(|class| class.module());
        module.is_some_and(|module| !self.libraries.contains(&module))
    }

    /// Classes that nothing but their instances lead to.
    fn take_deferred(&mut self) -> bool {
        let n_before = self.places.len();
        for (from, class) in std::mem::take(&mut self.deferred) {
            let address = class as usize;
            if self.table.get(address).is_none()
                && let Some(class) = NonNull::new(class.cast())
                && let Some(to) = self.meet(class)
            {
                let step = Step::attribute("__class__");
                self.hidden_references
                    .push(HiddenReference { from, to, step });
            }
        }
        self.places.len() > n_before
    }
}

/// Whether the object can be traversed. Of classes, only those that Python code made can.
fn is_traversable(object: NonNull<ffi::PyObject>, treatment: Treatment) -> bool {
    match treatment.is_gc {
        // SAFETY: the type's own slot on its instance.
        Some(is_gc) => unsafe { is_gc(object.as_ptr()) != 0 },
        None => true,
    }
}

/// Whether one more fits. Running out of memory ends the walk, not the process.
#[inline]
fn has_room<T>(places: &mut Vec<T>) -> bool {
    places.len() < places.capacity() || places.try_reserve(1).is_ok()
}

/// The second argument of `visited`.
struct Visit<'h, 'a, 's> {
    heap: &'h mut Heap<'a, 's>,
    own_class: *mut ffi::PyObject,
}

/// A `visitproc`; other than 0 ends the traversal.
// SAFETY: `Heap::enter` alone hands it out, with a `Visit` as argument.
unsafe extern "C" fn visited(object: *mut ffi::PyObject, argument: *mut c_void) -> c_int {
    // SAFETY: `Heap::enter` hands its `Visit` to the traversal that calls this.
    let visit = unsafe { &mut *argument.cast::<Visit<'_, '_, '_>>() };
    let is_aligned = (object as usize).is_multiple_of(align_of::<ffi::PyObject>());
    if let Some(met) = NonNull::new(object).filter(|_| is_aligned && object != visit.own_class)
        && let Some(node) = visit.heap.meet(met)
    {
        if !has_room(&mut visit.heap.references) {
            visit.heap.budget.is_spent = true;
            return 1;
        }
        visit.heap.references.push(node);
    }
    c_int::from(!visit.heap.spend())
}

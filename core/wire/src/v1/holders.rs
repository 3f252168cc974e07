//! The frame of a look at the holders.

use crate::record::{decoded_lists, wire};
use crate::values::KnownKind;
use gpumem_model::holders::{
    Bound, GrowsIn, Holder, HolderBranch, IpythonRetention, LibraryObject, NameLevel, Outlived,
    Remainder, SharedMemory, StorageUse, Twin,
};
use gpumem_model::recording::HolderSnapshot;
use gpumem_model::units::Bytes;

/// Branches nested deeper than that are left out.
const MAX_DEPTH: usize = 6;

wire! { HolderSnapshot {
    required "run" => run,
    required "device" => device,
    sparse "inside_at_nanos" => inside_at,
    "label" => holders.device,
    "bytes" => holders.n_bytes,
    "n_storages" => holders.n_storages,
    "roots" => holders.roots,
    "more" => holders.more,
    sparse "sharing" => holders.sharing,
    sparse "changed" => holders.changed,
    sparse "growing_branches" => holders.growing_branches,
    "shared" => holders.shared,
    "more_shared" => holders.more_shared,
    "kept" => holders.kept,
    sparse "outlived" => holders.outlived,
    sparse "given_back" => holders.given_back,
    sparse "twins" => holders.twins,
    "parts" => holders.parts,
    "is_cut" => holders.is_cut,
}}

/// A look as far as it is written.
pub(crate) fn bounded(mut held: HolderSnapshot) -> HolderSnapshot {
    let holders = &mut held.holders;
    let all = holders.roots.iter_mut().chain(&mut holders.sharing);
    for holder in all.chain(&mut holders.growing_branches) {
        cut(&mut holder.branches, MAX_DEPTH);
    }
    held
}

fn cut(branches: &mut Vec<HolderBranch>, depth: usize) {
    if depth == 0 {
        branches.clear();
    }
    for branch in branches {
        cut(&mut branch.branches, depth - 1);
    }
}

// What the bytes of a part come to; this version may not know the part.
wire! { (StorageUse, Bytes) => (Option<StorageUse>, Bytes) {
    required "part" => 0,
    "bytes" => 1,
}}

decoded_lists! {
    (StorageUse, Bytes): |(part, bytes)| Some((part?, bytes));
    IpythonRetention: WireKept::known;
}

/// What a place keeps, which this version may not know.
#[derive(Default)]
struct WireKept {
    place: KnownKind,
    n_bytes: Bytes,
    name: String,
    path: String,
    what: String,
}

wire! { IpythonRetention => WireKept {
    required "class" => place,
    "bytes" => n_bytes,
    "name" => name,
    "path" => path,
    "what" => what,
}}

impl WireKept {
    fn known(self) -> Option<IpythonRetention> {
        Some(IpythonRetention {
            place: self.place.0?,
            n_bytes: self.n_bytes,
            name: self.name,
            path: self.path,
            what: self.what,
        })
    }
}

wire! { Outlived {
    required "name" => name,
    sparse "is_rebound" => is_rebound,
    "had" => had,
    "bytes" => n_bytes,
    required "class" => kind,
    "holder" => holder,
    sparse "is_alone" => is_alone,
    "path" => path,
    "what" => what,
    sparse "keeper" => keeper,
    sparse "way_out" => way_out,
    sparse "code" => code,
    sparse "library_objects" => library_objects,
}}

wire! { LibraryObject {
    required "class" => class,
    sparse "version" => version,
    "object" => object,
    "rest" => rest,
}}

wire! { Twin {
    required "name" => name,
    required "other" => other,
    "n_alike" => n_alike,
    "n_all" => n_all,
    sparse "by_shape" => by_shape,
}}

wire! { Remainder {
    "n" => n,
    "bytes" => n_bytes,
}}

wire! { Holder {
    required "name" => name,
    required "class" => kind,
    "retained" => retained,
    sparse "grown" => grown,
    sparse "fresh" => fresh,
    "path" => path,
    "what" => what,
    "type_name" => traits.type_name,
    "n_tensors" => traits.n_tensors,
    "scalars" => traits.scalars,
    "graph" => traits.graph,
    sparse "keeper" => traits.keeper,
    sparse "is_shared" => traits.is_shared,
    sparse "part" => traits.part,
    sparse "bound" => traits.bound,
    sparse "tensor_type" => traits.tensor_type,
    sparse "filled_by" => traits.filled_by,
    sparse "library_objects" => traits.library_objects,
    sparse "grows_in" => traits.grows_in,
    "branches" => branches,
    "more" => more,
}}

wire! { GrowsIn {
    required "path" => path,
    sparse "is_all" => is_all,
    sparse "bound" => bound,
    "bytes" => n_bytes,
}}

wire! { Bound {
    "n" => n,
    "most" => most,
}}

wire! { NameLevel {
    required "name" => name,
    required "class" => kind,
    "bytes" => n_bytes,
    "n_storages" => n_storages,
}}

// Nesting is bounded by the reader.
wire! { HolderBranch {
    required "step" => step,
    "what" => what,
    "n" => n,
    "bytes" => n_bytes,
    sparse "branches" => branches,
    "more" => more,
}}

wire! { SharedMemory {
    "names" => names,
    "and_others" => and_others,
    "bytes" => n_bytes,
    "path" => path,
    "what" => what,
    sparse "part" => part,
}}

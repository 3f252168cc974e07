//! Names and messages in a recording are text of others: labels, devices, processes, what a walk through the
//! heap calls things. Each is made printable once, when its frame is applied, so every output has clean ones.
//! The sources of cells stay as they are.

use super::{Frame, Header, HolderSnapshot, Run, Series, Trace};
use crate::holders::{DeviceHolders, Holder, HolderBranch, LibraryObject};
use crate::printable::{make_printable, make_printable_lines};

impl Header {
    pub(super) fn clean(&mut self) {
        for (name, value) in self.versions.iter_mut().chain(&mut self.process) {
            make_printable(name);
            make_printable(value);
        }
        for source in &mut self.sources {
            make_printable(&mut source.reason);
        }
        self.expected.iter_mut().for_each(make_printable);
    }
}

impl Frame {
    pub(super) fn clean(&mut self) {
        match self {
            Self::Header(header) => header.clean(),
            Self::Device(device) => {
                make_printable(&mut device.label);
                make_printable(&mut device.name);
                let outside = device.outside.iter_mut();
                let children = outside.flat_map(|it| &mut it.reading.driver.children);
                children.for_each(|it| make_printable(&mut it.name));
            }
            Self::Run(run) => run.clean(),
            Self::Samples(samples) => {
                if let Series::Marked(label) = &mut samples.series {
                    make_printable(label);
                }
            }
            Self::Loop(counted) => {
                make_printable(&mut counted.file);
                make_printable(&mut counted.text);
                make_printable(&mut counted.function);
            }
            Self::Trace(trace) => trace.clean(),
            Self::Holders(held) => held.clean(),
            Self::Segments(mapped) => {
                if let Err(reason) = &mut mapped.found {
                    make_printable(reason);
                }
            }
            Self::Missing(missing) => make_printable(&mut missing.words),
            Self::Cell(cell) => {
                let files = cell.revisions.iter_mut().filter_map(|it| it.file.as_mut());
                files.for_each(make_printable);
            }
            Self::Finish(_) => {}
        }
    }
}

impl Run {
    fn clean(&mut self) {
        self.label.iter_mut().for_each(make_printable);
        let levels = self.levels.iter_mut();
        let readings = levels.flat_map(|it| std::iter::once(&mut it.before).chain(&mut it.after));
        let children = readings.flat_map(|it| &mut it.driver.children);
        children.for_each(|it| make_printable(&mut it.name));
        if let Some(oom) = &mut self.oom {
            let names = oom.holders.iter_mut().map(|holder| &mut holder.name);
            names.for_each(make_printable);
            oom.message.iter_mut().for_each(make_printable_lines);
        }
    }
}

impl Trace {
    fn clean(&mut self) {
        for module in &mut self.modules {
            make_printable(&mut module.path);
        }
        for stack in &mut self.stacks {
            stack.frames.iter_mut().for_each(make_printable);
        }
    }
}

impl HolderSnapshot {
    fn clean(&mut self) {
        let DeviceHolders {
            device,
            roots,
            sharing,
            growing_branches,
            changed,
            shared,
            kept,
            outlived,
            given_back,
            twins,
            ..
        } = &mut self.holders;
        make_printable(device);
        let holders = roots.iter_mut().chain(sharing).chain(growing_branches);
        holders.for_each(clean_holder);
        for level in changed.iter_mut().chain(given_back) {
            make_printable(&mut level.name);
        }
        for memory in shared {
            memory.names.iter_mut().for_each(make_printable);
            make_printable(&mut memory.path);
            make_printable(&mut memory.what);
        }
        for place in kept {
            make_printable(&mut place.name);
            make_printable(&mut place.path);
            make_printable(&mut place.what);
        }
        for twin in twins {
            make_printable(&mut twin.name);
            make_printable(&mut twin.other);
        }
        for it in outlived {
            for text in [
                &mut it.name,
                &mut it.holder,
                &mut it.path,
                &mut it.what,
                &mut it.code,
            ] {
                make_printable(text);
            }
            it.library_objects.iter_mut().for_each(clean_library_object);
        }
    }
}

fn clean_holder(holder: &mut Holder) {
    let traits = &mut holder.traits;
    for text in [
        &mut holder.name,
        &mut holder.path,
        &mut holder.what,
        &mut traits.type_name,
        &mut traits.tensor_type,
        &mut traits.filled_by,
    ] {
        make_printable(text);
    }
    if let Some(it) = &mut traits.grows_in {
        make_printable(&mut it.path);
    }
    traits
        .library_objects
        .iter_mut()
        .for_each(clean_library_object);
    holder.branches.iter_mut().for_each(clean_branch);
}

fn clean_library_object(object: &mut LibraryObject) {
    for text in [
        &mut object.class,
        &mut object.version,
        &mut object.object,
        &mut object.rest,
    ] {
        make_printable(text);
    }
}

fn clean_branch(branch: &mut HolderBranch) {
    make_printable(&mut branch.step);
    make_printable(&mut branch.what);
    branch.branches.iter_mut().for_each(clean_branch);
}

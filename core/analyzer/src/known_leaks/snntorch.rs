//! Leaks of snntorch.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const INSTANCES: CatalogueEntry = CatalogueEntry {
    id: "snntorch-instances",
    library: "snntorch",
    versions: Versions::ALL,
    pattern: LeakPattern::Global {
        path: "snntorch._neurons.neurons.SpikingNeuron.instances",
    },
    title: "snnTorch keeps every neuron that was made",
    cause: "each neuron is appended to a list of its class, `SpikingNeuron.instances`",
    cure: KnownCure::Call("import snntorch; snntorch._neurons.SpikingNeuron.instances.clear()"),
    link: "https://github.com/jeshraghian/snntorch/issues/328",
};

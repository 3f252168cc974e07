//! Leaks of tensorflow.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const RETRACED: CatalogueEntry = CatalogueEntry {
    id: "tensorflow-retraced-functions",
    library: "tensorflow",
    versions: Versions::ALL,
    pattern: LeakPattern::Compiled { by: "tf.function" },
    title: "TensorFlow keeps a graph for each new argument",
    cause: "a `tf.function` is traced once more for each Python number and each shape, and the graph stays",
    cure: KnownCure::Change(
        "call it with tensors, `tf.constant(n)`, or give it an `input_signature`",
    ),
    link: "https://www.tensorflow.org/guide/function",
};

//! What a model in training should take, compared with what is there.
//!
//! Parameters take their own size, a gradient is as large as its parameter, and the optimizer's state
//! follows from its class (`optimizers.rs`, after the optimizers' own code). Activations depend on the
//! input and are not predicted.
//!
//! ```
//! use gpumem_footprint::{Footprint, TrainedModel, ModelTensor, Options, Parameter};
//! use gpumem_model::units::Bytes;
//!
//! let device = "cuda:0".to_owned();
//! let tensor = ModelTensor { device, dtype: "float32".to_owned(), shape: vec![1 << 20], element_bytes: 4 };
//! let parameter = Parameter { tensor, requires_grad: true, options: Some(Options::default()) };
//! let model = TrainedModel {
//!     parameters: vec![parameter],
//!     optimizer: Some(vec!["torch.optim.adam.Adam".to_owned()]),
//!     ..TrainedModel::default()
//! };
//! // 4 MiB each for the parameter, its gradient and two moments.
//! assert_eq!(Footprint::for_model(&model).expected("cuda:0"), Some(Bytes::mib(16)));
//! ```
#![forbid(unsafe_code)]

mod optimizers;
mod text;

use std::collections::BTreeMap;

use gpumem_model::named;
use gpumem_model::units::Bytes;

pub use optimizers::Options;
use optimizers::Rule;

named! {
    /// A kind of memory that a model takes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum FootprintPart {
        /// Trained and frozen parameters.
        Parameters = "parameters",
        /// Tensors of the modules that are not parameters, such as running means.
        Buffers = "buffers",
        /// One for each parameter that requires grad, from the first backward pass on.
        Gradients = "gradients",
        /// The optimizer's state for each parameter, from its first step on.
        OptimizerState = "optimizer_state",
    }
}

/// One tensor of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelTensor {
    /// Label of its device.
    pub device: String,
    /// Name of its element type.
    pub dtype: String,
    /// Lengths of its dimensions.
    pub shape: Vec<u64>,
    /// Bytes of one element.
    pub element_bytes: u64,
}

impl ModelTensor {
    /// How many elements it has.
    fn n_elements(&self) -> u64 {
        product(&self.shape)
    }

    /// Its size: elements times bytes per element.
    pub fn n_bytes(&self) -> Bytes {
        Bytes::new(self.n_elements().saturating_mul(self.element_bytes))
    }
}

/// One parameter, listed once even if the model uses it several times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameter {
    /// The tensor.
    pub tensor: ModelTensor,
    /// Whether a backward pass leaves a gradient on it.
    pub requires_grad: bool,
    /// The optimizer's options for it; `None` if no optimizer has it.
    pub options: Option<Options>,
}

/// The present size of one part on one device. An entry of [`TrainedModel::present`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresentPart {
    /// Label of the device.
    pub device: String,
    /// The kind.
    pub part: FootprintPart,
    /// Its size, storages counted once.
    pub n_bytes: Bytes,
}

/// A model as it was found: the input of [`Footprint::for_model`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrainedModel {
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// Its buffers.
    pub buffers: Vec<ModelTensor>,
    /// The optimizer's class and its bases, as `module.Name`, nearest first.
    pub optimizer: Option<Vec<String>>,
    /// The sizes that it takes now.
    pub present: Vec<PresentPart>,
}

/// One part on one device: what it should take, and what it takes. A row of [`Footprint::rows`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FootprintRow {
    /// Label of the device.
    pub device: String,
    /// The kind.
    pub part: FootprintPart,
    /// What it should take; `None` if the optimizer is not known.
    pub expected: Option<Bytes>,
    /// The present size.
    pub present: Bytes,
    /// How the expected size is computed.
    pub formula: String,
}

/// What a model in training should take, compared with what is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footprint {
    /// By device, then by part.
    pub rows: Vec<FootprintRow>,
    /// The optimizer's name, if there is one.
    pub optimizer: Option<String>,
}

impl Footprint {
    /// Computes what `model` should take.
    pub fn for_model(model: &TrainedModel) -> Self {
        let lineage = model.optimizer.as_deref();
        let optimizer = lineage.map(optimizers::shown);
        let rule = lineage.and_then(optimizers::rule);
        let keeper = match (&rule, lineage) {
            (Some(rule), _) => StateRule::Known(rule),
            (None, Some(_)) => StateRule::Unknown,
            (None, None) => StateRule::Nobody,
        };
        let mut sums = PartSums::default();
        for parameter in &model.parameters {
            sums.add_parameter(parameter, keeper);
        }
        for buffer in &model.buffers {
            sums.at(&buffer.device, FootprintPart::Buffers)
                .add(buffer.n_bytes());
        }
        for found in &model.present {
            sums.at(&found.device, found.part).present += found.n_bytes;
        }
        let formulas = Formulas {
            model,
            rule,
            optimizer: optimizer.as_deref(),
        };
        let rows = sums
            .0
            .into_iter()
            .map(|((device, part), sum)| FootprintRow {
                formula: formulas.formula(&device, part),
                device,
                part,
                expected: (!sum.is_unknown).then_some(sum.expected),
                present: sum.present,
            });
        Self {
            rows: rows.collect(),
            optimizer,
        }
    }

    /// The expected total of a device; `None` if a part of it is not known.
    pub fn expected(&self, device: &str) -> Option<Bytes> {
        self.on(device).map(|row| row.expected).sum()
    }

    /// The present total of a device.
    pub fn present(&self, device: &str) -> Bytes {
        self.on(device).map(|row| row.present).sum()
    }

    fn on<'a>(&'a self, device: &'a str) -> impl Iterator<Item = &'a FootprintRow> {
        self.rows.iter().filter(move |row| row.device == device)
    }

    /// The labels of its devices.
    pub fn devices(&self) -> Vec<&str> {
        let mut devices: Vec<&str> = self.rows.iter().map(|row| row.device.as_str()).collect();
        devices.dedup();
        devices
    }
}

/// Which state the optimizer keeps for each parameter.
#[derive(Clone, Copy)]
enum StateRule<'a> {
    Nobody,
    /// An optimizer whose rule is not known.
    Unknown,
    Known(&'a Rule),
}

#[derive(Default)]
struct PartSum {
    expected: Bytes,
    present: Bytes,
    is_unknown: bool,
}

impl PartSum {
    fn add(&mut self, n_bytes: Bytes) {
        self.expected += n_bytes;
    }
}

#[derive(Default)]
struct PartSums(BTreeMap<(String, FootprintPart), PartSum>);

impl PartSums {
    fn at(&mut self, device: &str, part: FootprintPart) -> &mut PartSum {
        self.0.entry((device.to_owned(), part)).or_default()
    }

    fn add_parameter(&mut self, parameter: &Parameter, keeper: StateRule<'_>) {
        let tensor = &parameter.tensor;
        self.at(&tensor.device, FootprintPart::Parameters)
            .add(tensor.n_bytes());
        if !parameter.requires_grad {
            return;
        }
        self.at(&tensor.device, FootprintPart::Gradients)
            .add(tensor.n_bytes());
        let Some(options) = &parameter.options else {
            return;
        };
        match keeper {
            StateRule::Nobody => {}
            StateRule::Unknown => {
                self.at(&tensor.device, FootprintPart::OptimizerState)
                    .is_unknown = true;
            }
            StateRule::Known(rule) => {
                for (n_bytes, is_on_host) in rule.sizes(tensor, options) {
                    let device = if is_on_host { "host" } else { &tensor.device };
                    self.at(device, FootprintPart::OptimizerState).add(n_bytes);
                }
            }
        }
    }
}

/// The formulas of the sizes.
struct Formulas<'a> {
    model: &'a TrainedModel,
    rule: Option<Rule>,
    optimizer: Option<&'a str>,
}

impl Formulas<'_> {
    fn formula(&self, device: &str, part: FootprintPart) -> String {
        let parameters = self.model.parameters.iter();
        match part {
            FootprintPart::Parameters => {
                let tensors = parameters.map(|parameter| &parameter.tensor);
                tensors_by_dtype(tensors.filter(|tensor| tensor.device == device))
            }
            FootprintPart::Buffers => {
                let buffers = self.model.buffers.iter();
                tensors_by_dtype(buffers.filter(|tensor| tensor.device == device))
            }
            FootprintPart::Gradients => {
                let here = parameters.filter(|parameter| parameter.tensor.device == device);
                let (n, n_frozen) = here.fold((0, 0), |(n, n_frozen), parameter| {
                    (n + 1, n_frozen + usize::from(!parameter.requires_grad))
                });
                match n_frozen {
                    0 => "one like each parameter".to_owned(),
                    _ => format!("one like each of {} of {n} parameters", n - n_frozen),
                }
            }
            FootprintPart::OptimizerState => {
                let name = self.optimizer.unwrap_or("no optimizer");
                let options = parameters.filter_map(|parameter| parameter.options.as_ref());
                match &self.rule {
                    Some(rule) => format!("{name}: {}", rule.describe(options)),
                    None => format!("{name}: what it keeps is not known"),
                }
            }
        }
    }
}

/// `148 of bfloat16 (2 B)`, the most common type first.
fn tensors_by_dtype<'a>(tensors: impl Iterator<Item = &'a ModelTensor>) -> String {
    let mut counts: BTreeMap<(&str, u64), usize> = BTreeMap::new();
    for tensor in tensors {
        let dtype = (tensor.dtype.as_str(), tensor.element_bytes);
        *counts.entry(dtype).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let shown = counts
        .iter()
        .map(|((dtype, element_bytes), n)| format!("{n} of {dtype} ({element_bytes} B)"));
    shown.collect::<Vec<_>>().join(", ")
}

fn product(shape: &[u64]) -> u64 {
    shape.iter().fold(1, |n, length| n.saturating_mul(*length))
}

#[cfg(test)]
mod tests;

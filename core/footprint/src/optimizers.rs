//! The state that each optimizer keeps for a parameter.
//!
//! The rules follow the optimizers' own code: `torch.optim` as of 2.11, and the
//! 8-bit and 32-bit optimizers of bitsandbytes. Unless noted otherwise a kept
//! tensor has the parameter's shape and element type (`zeros_like`).

use super::{ModelTensor, product};
use gpumem_model::units::Bytes;

/// A number beside the tensors, such as a count of steps.
const SCALAR: Bytes = Bytes::new(4);
/// Parameters with fewer elements keep 32 bits in an 8-bit optimizer.
const MIN_8BIT_ELEMENTS: u64 = 4096;
/// This many elements share one scale in an 8-bit optimizer.
const BLOCK_ELEMENTS: u64 = 256;

#[expect(
    clippy::struct_excessive_bools,
    reason = "independent switches, as torch has them"
)]
/// The options of an optimizer that decide what it keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// A momentum other than zero.
    pub has_momentum: bool,
    /// Adam with the maximum of all second moments.
    pub is_amsgrad: bool,
    /// `RMSprop` with the mean gradient.
    pub is_centered: bool,
    /// The count of steps lies on the device (fused and capturable).
    pub has_step_on_device: bool,
    /// Number of past steps that `LBFGS` keeps.
    pub history_size: u64,
}

/// One part of an optimizer's state.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule(&'static [OptimizerState]);

#[derive(Debug, Clone, Copy)]
struct OptimizerState {
    name: &'static str,
    size: StateSize,
    when: fn(&Options) -> bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StateSize {
    /// Shape and element type of the parameter.
    Like,
    /// One number, on the host unless the options say otherwise.
    Step,
    /// One number on the parameter's device.
    Number,
    /// A row and a column in place of each matrix.
    Factored,
    /// As many copies as `history_size`.
    History,
    /// Four bytes an element.
    Float32,
    /// A byte an element and a scale for each block.
    Blocks,
}

const ALWAYS: fn(&Options) -> bool = |_| true;
const STEP: OptimizerState = kept("step", StateSize::Step);

const fn kept(name: &'static str, size: StateSize) -> OptimizerState {
    let when = ALWAYS;
    OptimizerState { name, size, when }
}

const fn like(name: &'static str) -> OptimizerState {
    kept(name, StateSize::Like)
}

const fn like_when(name: &'static str, when: fn(&Options) -> bool) -> OptimizerState {
    let size = StateSize::Like;
    OptimizerState { name, size, when }
}

const ADAM: Rule = Rule(&[
    like("exp_avg"),
    like("exp_avg_sq"),
    like_when("max_exp_avg_sq", |options| options.is_amsgrad),
    STEP,
]);
const MOMENTS: Rule = Rule(&[like("exp_avg"), like("exp_avg_sq"), STEP]);
const NADAM: Rule = Rule(&[
    like("exp_avg"),
    like("exp_avg_sq"),
    STEP,
    kept("mu_product", StateSize::Step),
]);
const ADAMAX: Rule = Rule(&[like("exp_avg"), like("exp_inf"), STEP]);
const SGD: Rule = Rule(&[like_when("momentum_buffer", |options| options.has_momentum)]);
const RMSPROP: Rule = Rule(&[
    like("square_avg"),
    like_when("momentum_buffer", |options| options.has_momentum),
    like_when("grad_avg", |options| options.is_centered),
    STEP,
]);
const ADAGRAD: Rule = Rule(&[like("sum"), STEP]);
const ADADELTA: Rule = Rule(&[like("square_avg"), like("acc_delta"), STEP]);
const RPROP: Rule = Rule(&[like("prev"), like("step_size"), STEP]);
const ASGD: Rule = Rule(&[
    like("ax"),
    kept("step", StateSize::Number),
    kept("eta", StateSize::Number),
    kept("mu", StateSize::Number),
]);
const ADAFACTOR: Rule = Rule(&[kept("row_var and col_var", StateSize::Factored), STEP]);
const MUON: Rule = Rule(&[like("momentum_buffer")]);
const LBFGS: Rule = Rule(&[
    like("d"),
    like("prev_flat_grad"),
    kept("old_dirs", StateSize::History),
    kept("old_stps", StateSize::History),
]);
const TWO_OF_8_BITS: Rule = Rule(&[
    kept("state1", StateSize::Blocks),
    kept("state2", StateSize::Blocks),
]);
const ONE_OF_8_BITS: Rule = Rule(&[kept("state1", StateSize::Blocks)]);
const TWO_OF_32_BITS: Rule = Rule(&[
    kept("state1", StateSize::Float32),
    kept("state2", StateSize::Float32),
]);
const ONE_OF_32_BITS: Rule = Rule(&[kept("state1", StateSize::Float32)]);

/// The rule of the nearest class that has one.
pub(super) fn rule(lineage: &[String]) -> Option<Rule> {
    lineage.iter().find_map(|class| {
        let (module, name) = class.rsplit_once('.')?;
        match module.split('.').next()? {
            "torch" => of_torch(name),
            "bitsandbytes" => of_bitsandbytes(name),
            _ => None,
        }
    })
}

/// The name of the class itself, without its module.
pub(super) fn shown(lineage: &[String]) -> String {
    let name = lineage.first().map(String::as_str).unwrap_or_default();
    name.rsplit('.').next().unwrap_or_default().to_owned()
}

fn of_torch(name: &str) -> Option<Rule> {
    Some(match name {
        "Adam" | "AdamW" => ADAM,
        "RAdam" | "SparseAdam" => MOMENTS,
        "NAdam" => NADAM,
        "Adamax" => ADAMAX,
        "SGD" => SGD,
        "RMSprop" => RMSPROP,
        "Adagrad" => ADAGRAD,
        "Adadelta" => ADADELTA,
        "Rprop" => RPROP,
        "ASGD" => ASGD,
        "Adafactor" => ADAFACTOR,
        "Muon" => MUON,
        "LBFGS" => LBFGS,
        _ => return None,
    })
}

/// Paged ones keep as much, in memory that the driver moves.
fn of_bitsandbytes(name: &str) -> Option<Rule> {
    let name = name.strip_prefix("Paged").unwrap_or(name);
    let (kind, is_8_bit) = match name.strip_suffix("8bit") {
        Some(kind) => (kind, true),
        None => (name.strip_suffix("32bit").unwrap_or(name), false),
    };
    Some(match (kind, is_8_bit) {
        ("Adam" | "AdamW" | "LAMB", true) => TWO_OF_8_BITS,
        ("Adam" | "AdamW" | "LAMB", false) => TWO_OF_32_BITS,
        ("SGD" | "Lion" | "RMSprop" | "Adagrad" | "LARS", true) => ONE_OF_8_BITS,
        ("SGD" | "Lion" | "RMSprop" | "Adagrad" | "LARS", false) => ONE_OF_32_BITS,
        _ => return None,
    })
}

impl Rule {
    /// The state for a parameter: each size, and whether it is on the host.
    pub(super) fn sizes(
        &self,
        tensor: &ModelTensor,
        options: &Options,
    ) -> impl Iterator<Item = (Bytes, bool)> {
        let kept = self.0.iter().filter(|kept| (kept.when)(options));
        kept.map(|kept| {
            let is_on_host = kept.size == StateSize::Step && !options.has_step_on_device;
            (kept.size.bytes(tensor, options), is_on_host)
        })
    }

    /// A description of the state for any of the parameters.
    pub(super) fn describe<'a>(&self, options: impl Iterator<Item = &'a Options>) -> String {
        let options: Vec<&Options> = options.collect();
        let is_kept = |kept: &&OptimizerState| options.iter().any(|options| (kept.when)(options));
        let kept: Vec<&OptimizerState> = self.0.iter().filter(is_kept).collect();
        let (like, other): (Vec<&OptimizerState>, Vec<&OptimizerState>) = kept
            .into_iter()
            .partition(|kept| kept.size == StateSize::Like);
        let like: Vec<&str> = like.iter().map(|kept| kept.name).collect();
        let like = (!like.is_empty()).then(|| format!("{} like each parameter", like.join(" + ")));
        let history_size = options.iter().map(|options| options.history_size).max();
        let other = other
            .iter()
            .map(|kept| kept.describe(history_size.unwrap_or(0)));
        let words = like.into_iter().chain(other).collect::<Vec<_>>().join(", ");
        if words.is_empty() {
            "keeps nothing".to_owned()
        } else {
            words
        }
    }
}

impl OptimizerState {
    fn describe(&self, history_size: u64) -> String {
        let name = self.name;
        match self.size {
            StateSize::Like => format!("{name} like each parameter"),
            StateSize::Step | StateSize::Number => format!("{name} of 4 B"),
            StateSize::Factored => format!("{name} of each matrix"),
            StateSize::History => format!("up to {history_size} {name} like each parameter"),
            StateSize::Float32 => format!("{name} of 4 B a number"),
            StateSize::Blocks => format!("{name} of 1 B a number"),
        }
    }
}

impl StateSize {
    fn bytes(self, tensor: &ModelTensor, options: &Options) -> Bytes {
        let n_elements = tensor.n_elements();
        let times = |n: u64| Bytes::new(tensor.n_bytes().get().saturating_mul(n));
        let four_each = Bytes::new(n_elements.saturating_mul(4));
        match self {
            Self::Like => times(1),
            Self::Step | Self::Number => SCALAR,
            Self::Factored => factored(tensor),
            Self::History => times(options.history_size),
            Self::Float32 => four_each,
            Self::Blocks if n_elements < MIN_8BIT_ELEMENTS => four_each,
            Self::Blocks => {
                let scales = n_elements.div_ceil(BLOCK_ELEMENTS).saturating_mul(4);
                Bytes::new(n_elements) + Bytes::new(scales)
            }
        }
    }
}

/// The means of each row and of each column of the last two dimensions; a vector is kept whole.
fn factored(tensor: &ModelTensor) -> Bytes {
    let [outer @ .., n_rows, n_columns] = tensor.shape.as_slice() else {
        return tensor.n_bytes();
    };
    let n_means = product(outer).saturating_mul(n_rows.saturating_add(*n_columns));
    Bytes::new(n_means.saturating_mul(tensor.element_bytes))
}

//! The words that identify a message as out of memory.

use super::ClassName;
use gpumem_model::recording::Framework;

/// The beginning of a message, and its offset.
pub(super) struct Head {
    pub(super) start: usize,
    kind: MessageKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MessageKind {
    /// `CUDA out of memory. Tried to allocate`, and the same for other accelerators.
    Torch,
    /// `MPS backend out of memory`.
    Mps,
    /// torch on the host, which allocates through the C library.
    TorchHost,
    /// A status of XLA or TensorFlow, which other services give, too.
    Exhausted,
    Tensorflow,
    Cupy,
    Rmm,
    Numba,
    Numpy,
    /// The driver's message, or that of one of its libraries.
    Driver,
}

/// The most specific head comes first: it wins if a text has several.
const HEADS: [(&str, MessageKind); 33] = [
    ("out of memory. tried", MessageKind::Torch),
    ("would exceed allowed memory", MessageKind::Torch),
    ("mps backend out of memory", MessageKind::Mps),
    ("cuda out of memory", MessageKind::Torch),
    ("hip out of memory", MessageKind::Torch),
    ("xpu out of memory", MessageKind::Torch),
    ("defaultcpuallocator", MessageKind::TorchHost),
    ("oom when allocating tensor", MessageKind::Tensorflow),
    ("dst tensor is not initialized", MessageKind::Tensorflow),
    ("(allocated so far", MessageKind::Cupy),
    ("std::bad_alloc: out_of_memory", MessageKind::Rmm),
    ("maximum pool size exceeded", MessageKind::Rmm),
    ("results in cuda_error_out_of_memory", MessageKind::Numba),
    ("for an array with shape", MessageKind::Numpy),
    ("failed to allocate request for", MessageKind::Exhausted),
    (
        "ran out of memory trying to allocate",
        MessageKind::Exhausted,
    ),
    (
        "out of memory while trying to allocate",
        MessageKind::Exhausted,
    ),
    ("out of memory allocating", MessageKind::Exhausted),
    ("failed to allocate memory [op:", MessageKind::Exhausted),
    ("resource_exhausted", MessageKind::Exhausted),
    ("resource exhausted", MessageKind::Exhausted),
    ("cuda error: out of memory", MessageKind::Driver),
    ("hip error: out of memory", MessageKind::Driver),
    ("cuda_error_out_of_memory", MessageKind::Driver),
    ("cudaerrormemoryallocation", MessageKind::Driver),
    ("hiperroroutofmemory", MessageKind::Driver),
    ("cuda runtime error (2)", MessageKind::Driver),
    ("cuda failure 2 'out of memory'", MessageKind::Driver),
    ("blas_status_alloc_failed", MessageKind::Driver),
    ("cudnn_status_alloc_failed", MessageKind::Driver),
    ("cumemalloc failed: out of memory", MessageKind::Driver),
    ("cudamalloc failed: out of memory", MessageKind::Driver),
    ("out_of_device_memory", MessageKind::Driver),
];

/// A message's figures are at most this many bytes before the words that identify it.
const NEAR: usize = 400;

impl Head {
    /// The head of the last message in `lower`: a traceback quotes source lines before it.
    pub(super) fn last_of(lower: &str) -> Option<Self> {
        let heads = HEADS.iter();
        let (place, kind) = heads
            .filter_map(|(words, kind)| Some((lower.rfind(words)?, *kind)))
            .find(|(place, kind)| kind.is_of_memory(&lower[*place..]))?;
        let before = &lower[..place];
        let begins_with = match kind {
            MessageKind::Torch => before.rfind("allocation on device"),
            MessageKind::Cupy => before.rfind("out of memory"),
            MessageKind::Numpy => Some(before.rfind("unable to allocate")?),
            MessageKind::Exhausted => before
                .rfind("{{function_node")
                .or(before.rfind("allocator (")),
            _ => None,
        };
        let start = begins_with.filter(|start| place - start <= NEAR);
        Some(Self {
            start: start.unwrap_or_else(|| accelerator_start(lower, place)),
            kind,
        })
    }

    pub(super) fn framework(&self, lower: &str) -> Option<Framework> {
        // XLA names the same allocator, `with allocator GPU_0_bfc`.
        let of_tensorflow = [
            "tensorflow",
            "[op:",
            "{{node",
            "{{function_node",
            "by allocator gpu_",
            "allocator (gpu_",
        ];
        Some(match self.kind {
            MessageKind::Torch if lower[..self.start].ends_with("simulated ") => Framework::Sim,
            MessageKind::Torch | MessageKind::Mps | MessageKind::TorchHost => Framework::Torch,
            MessageKind::Tensorflow => Framework::Tensorflow,
            MessageKind::Exhausted if of_tensorflow.iter().any(|words| lower.contains(words)) => {
                Framework::Tensorflow
            }
            MessageKind::Exhausted => Framework::Jax,
            MessageKind::Cupy => Framework::Cupy,
            MessageKind::Rmm => Framework::Rmm,
            MessageKind::Numba => Framework::Numba,
            MessageKind::Numpy => Framework::Numpy,
            MessageKind::Driver => return framework_named_in(lower),
        })
    }

    /// `cuda:1`, from the accelerator that the head names and the number that follows it.
    pub(super) fn device(&self, framework: Option<Framework>, message: &str) -> Option<String> {
        match (self.kind, framework) {
            (MessageKind::TorchHost | MessageKind::Numpy, _) => Some("host".to_owned()),
            (MessageKind::Mps, _) => Some("mps:0".to_owned()),
            (_, Some(Framework::Sim)) => {
                let number = number_after(message, "gpu ").unwrap_or("0");
                Some(format!("sim:{number}"))
            }
            _ => device_in(message),
        }
    }
}

impl MessageKind {
    /// Other services use the same status for quotas and message sizes.
    fn is_of_memory(self, message: &str) -> bool {
        let words = ["memory", "allocat", "oom "];
        self != Self::Exhausted || words.iter().any(|words| message.contains(words))
    }
}

/// The device that a text names, as people write it.
pub(super) fn device_in(message: &str) -> Option<String> {
    if message.contains("device:cpu:") {
        return Some("host".to_owned());
    }
    let prefix = match message {
        _ if message.starts_with("xpu") => "xpu",
        _ if message.starts_with("npu") => "npu",
        _ if message.contains("tpu:") => "tpu",
        _ => "cuda",
    };
    let before_number = [
        "device:gpu:",
        "device:tpu:",
        "device ordinal ",
        "gpu ",
        "npu ",
        "xpu ",
        "gpu:",
        "gpu_",
        "cuda:",
        "device ",
    ];
    let mut before_number = before_number.into_iter();
    let number = before_number.find_map(|words| number_after(message, words));
    number.map(|number| format!("{prefix}:{number}"))
}

/// The framework that reports a driver's error, if the text names it.
fn framework_named_in(lower: &str) -> Option<Framework> {
    let named = [
        ("numba", Framework::Numba),
        ("cupy", Framework::Cupy),
        ("rmm", Framework::Rmm),
        ("xla", Framework::Jax),
        ("jax", Framework::Jax),
        ("tensorflow", Framework::Tensorflow),
        ("torch", Framework::Torch),
        ("kernel errors might be asynchronously", Framework::Torch),
        ("_failed when calling `", Framework::Torch),
    ];
    let mut named = named.into_iter();
    let framework = named.find(|(words, _)| lower.contains(words));
    framework
        .map(|(_, framework)| framework)
        .or(Some(Framework::Driver))
}

/// The owner of a class whose name says out of memory. The outer `None` is any other class.
pub(super) fn of_class(class: &ClassName) -> Option<OomClass> {
    let package = class.module.split('.').next().unwrap_or_default();
    let framework = match (package, class.name.as_str()) {
        ("torch", "OutOfMemoryError") => Some(Framework::Torch),
        ("cupy" | "cupy_backends", "OutOfMemoryError") => Some(Framework::Cupy),
        ("gpumem", "OutOfMemoryError") => Some(Framework::Sim),
        ("tensorflow", "ResourceExhaustedError") => Some(Framework::Tensorflow),
        // It has the name of its base.
        ("numpy", "MemoryError" | "_ArrayMemoryError") => Some(Framework::Numpy),
        ("pycuda", "MemoryError") => Some(Framework::Driver),
        // A stand-in, or an unknown framework.
        (_, "OutOfMemoryError") => None,
        _ => return None,
    };
    Some(OomClass {
        framework,
        is_of_host: framework == Some(Framework::Numpy),
    })
}

/// The exception that Python raises if the host has no memory. With a message, a library raised it, and it may
/// mean anything.
pub(super) fn is_of_python(class: &ClassName) -> bool {
    (class.module.as_str(), class.name.as_str()) == ("builtins", "MemoryError")
}

pub(super) const OF_PYTHON: OomClass = OomClass {
    framework: None,
    is_of_host: true,
};

/// An exception class for out of memory.
pub(super) struct OomClass {
    /// The framework that raises it, if known.
    pub(super) framework: Option<Framework>,
    /// Whether host memory ran out.
    pub(super) is_of_host: bool,
}

/// Where the accelerator's name before `place` begins: `cuda out of memory`.
fn accelerator_start(text: &str, place: usize) -> usize {
    let before = text[..place].trim_end_matches(' ');
    let word = before.rfind(|c: char| !c.is_ascii_alphanumeric());
    let start = word.map_or(0, |idx| idx + 1);
    match text.get(start..before.len()) {
        Some("cuda" | "hip" | "xpu" | "npu" | "musa") => start,
        _ => place,
    }
}

fn number_after<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    text.match_indices(words).find_map(|(place, found)| {
        let after = &text[place + found.len()..];
        let n_digits = after.bytes().take_while(u8::is_ascii_digit).count();
        (1..=4).contains(&n_digits).then(|| &after[..n_digits])
    })
}

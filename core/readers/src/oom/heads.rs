//! The words by which a message is known for one of memory that ran out.

use super::ClassName;
use gpumem_model::recording::Framework;

/// What a message begins with, and where.
pub(super) struct Head {
    pub(super) start: usize,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `CUDA out of memory. Tried to allocate`, and the same for every other accelerator.
    Torch,
    /// `MPS backend out of memory`.
    Mps,
    /// torch on the host, which asks the C library.
    TorchHost,
    /// A status of XLA or TensorFlow, which other services give, too.
    Exhausted,
    Tensorflow,
    Cupy,
    Rmm,
    Numba,
    Numpy,
    /// What the driver or one of its libraries says.
    Driver,
}

/// What tells most comes first: where several stand in a text, it is the message's.
const HEADS: [(&str, Kind); 33] = [
    ("out of memory. tried", Kind::Torch),
    ("would exceed allowed memory", Kind::Torch),
    ("mps backend out of memory", Kind::Mps),
    ("cuda out of memory", Kind::Torch),
    ("hip out of memory", Kind::Torch),
    ("xpu out of memory", Kind::Torch),
    ("defaultcpuallocator", Kind::TorchHost),
    ("oom when allocating tensor", Kind::Tensorflow),
    ("dst tensor is not initialized", Kind::Tensorflow),
    ("(allocated so far", Kind::Cupy),
    ("std::bad_alloc: out_of_memory", Kind::Rmm),
    ("maximum pool size exceeded", Kind::Rmm),
    ("results in cuda_error_out_of_memory", Kind::Numba),
    ("for an array with shape", Kind::Numpy),
    ("failed to allocate request for", Kind::Exhausted),
    ("ran out of memory trying to allocate", Kind::Exhausted),
    ("out of memory while trying to allocate", Kind::Exhausted),
    ("out of memory allocating", Kind::Exhausted),
    ("failed to allocate memory [op:", Kind::Exhausted),
    ("resource_exhausted", Kind::Exhausted),
    ("resource exhausted", Kind::Exhausted),
    ("cuda error: out of memory", Kind::Driver),
    ("hip error: out of memory", Kind::Driver),
    ("cuda_error_out_of_memory", Kind::Driver),
    ("cudaerrormemoryallocation", Kind::Driver),
    ("hiperroroutofmemory", Kind::Driver),
    ("cuda runtime error (2)", Kind::Driver),
    ("cuda failure 2 'out of memory'", Kind::Driver),
    ("blas_status_alloc_failed", Kind::Driver),
    ("cudnn_status_alloc_failed", Kind::Driver),
    ("cumemalloc failed: out of memory", Kind::Driver),
    ("cudamalloc failed: out of memory", Kind::Driver),
    ("out_of_device_memory", Kind::Driver),
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
            Kind::Torch => before.rfind("allocation on device"),
            Kind::Cupy => before.rfind("out of memory"),
            Kind::Numpy => Some(before.rfind("unable to allocate")?),
            Kind::Exhausted => before
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
            Kind::Torch if lower[..self.start].ends_with("simulated ") => Framework::Sim,
            Kind::Torch | Kind::Mps | Kind::TorchHost => Framework::Torch,
            Kind::Tensorflow => Framework::Tensorflow,
            Kind::Exhausted if of_tensorflow.iter().any(|words| lower.contains(words)) => {
                Framework::Tensorflow
            }
            Kind::Exhausted => Framework::Jax,
            Kind::Cupy => Framework::Cupy,
            Kind::Rmm => Framework::Rmm,
            Kind::Numba => Framework::Numba,
            Kind::Numpy => Framework::Numpy,
            Kind::Driver => return framework_named_in(lower),
        })
    }

    /// `cuda:1`, from the accelerator that the head names and the number that follows it.
    pub(super) fn device(&self, framework: Option<Framework>, message: &str) -> Option<String> {
        match (self.kind, framework) {
            (Kind::TorchHost | Kind::Numpy, _) => Some("host".to_owned()),
            (Kind::Mps, _) => Some("mps:0".to_owned()),
            (_, Some(Framework::Sim)) => {
                let number = number_after(message, "gpu ").unwrap_or("0");
                Some(format!("sim:{number}"))
            }
            _ => device_in(message),
        }
    }
}

impl Kind {
    /// Other services run out of quota or of room for a message by the same status.
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

/// Through which framework a driver's words came, where the text says so.
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

/// Whose class this is, where its very name says that memory ran out. The outer `None`
/// is any other class.
pub(super) fn of_class(class: &ClassName) -> Option<OfClass> {
    let package = class.module.split('.').next().unwrap_or_default();
    let framework = match (package, class.name.as_str()) {
        ("torch", "OutOfMemoryError") => Some(Framework::Torch),
        ("cupy" | "cupy_backends", "OutOfMemoryError") => Some(Framework::Cupy),
        ("gpumem", "OutOfMemoryError") => Some(Framework::Sim),
        ("tensorflow", "ResourceExhaustedError") => Some(Framework::Tensorflow),
        // It shows itself under the name of its base.
        ("numpy", "MemoryError" | "_ArrayMemoryError") => Some(Framework::Numpy),
        ("pycuda", "MemoryError") => Some(Framework::Driver),
        // A stand-in, or a framework that is not known yet.
        (_, "OutOfMemoryError") => None,
        _ => return None,
    };
    Some(OfClass {
        framework,
        is_of_host: framework == Some(Framework::Numpy),
    })
}

/// What Python raises where the host has no room. With a message it is somebody's own, and may mean anything.
pub(super) fn is_of_python(class: &ClassName) -> bool {
    (class.module.as_str(), class.name.as_str()) == ("builtins", "MemoryError")
}

pub(super) const OF_PYTHON: OfClass = OfClass {
    framework: None,
    is_of_host: true,
};

/// A class that stands for memory that ran out.
pub(super) struct OfClass {
    /// Whose it is, where that is known.
    pub(super) framework: Option<Framework>,
    /// It is host memory.
    pub(super) is_of_host: bool,
}

/// Where the accelerator that is named before `place` begins: `cuda out of memory`.
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

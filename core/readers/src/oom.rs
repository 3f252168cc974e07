//! Out-of-memory messages, turned into bytes.
//!
//! Every allocator has its own wording, and each has changed between versions, so a message is not
//! matched as a whole. Its **head** says that memory ran out and in which framework; the words next to
//! a figure identify it (`X is free`, `Tried to allocate X`), anywhere in the message.
//!
//! In all of these messages a `GB` is 2^30 bytes, like a `GiB`.
//!
//! ```
//! use gpumem_readers::oom::parse;
//! use gpumem_model::units::Bytes;
//!
//! let oom = parse("CUDA out of memory. Tried to allocate 2.00 MiB. GPU 1 has").unwrap();
//! assert_eq!(oom.figures.wanted, Some(Bytes::mib(2)));
//! assert_eq!(oom.device.as_deref(), Some("cuda:1"));
//! assert_eq!(parse("index 4 is out of bounds"), None);
//! ```

mod heads;
mod sizes;
#[cfg(test)]
mod tests;

use gpumem_model::recording::{Framework, OomFigures, OtherProcess};
use gpumem_model::units::Bytes;
use heads::Head;
use sizes::TextSizes;

/// Number of bytes of a message that are read from its head on; a long list of buffers may follow.
const LONGEST: usize = 4096;

/// An out-of-memory message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OomMessage {
    /// The framework that requested the memory, if the message shows it.
    pub framework: Option<Framework>,
    /// The device's label (`cuda:0`), if the message names one.
    pub device: Option<String>,
    /// The figures.
    pub figures: OomFigures,
}

impl OomMessage {
    /// Whether it names a device other than the host.
    pub fn names_accelerator(&self) -> bool {
        self.device
            .as_deref()
            .is_some_and(|device| device != "host")
    }
}

/// One class of an exception: its module and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassName {
    /// `torch`, `cupy.cuda.memory`.
    pub module: String,
    /// `OutOfMemoryError`.
    pub name: String,
}

/// Reads a message; `None` if it is not about memory that ran out.
pub fn parse(text: &str) -> Option<OomMessage> {
    // Offsets stay the same: only ASCII letters change.
    let lower = text.to_ascii_lowercase();
    let head = Head::last_of(&lower)?;
    let message = within(&lower[head.start..], LONGEST);
    let framework = head.framework(&lower);
    Some(OomMessage {
        framework,
        device: head.device(framework, message),
        figures: figures(message),
    })
}

/// Reads an exception: its message, or else its classes, the most derived first. A class named after
/// the error needs no message.
pub fn of_exception(classes: &[ClassName], text: &str) -> Option<OomMessage> {
    parse(text).or_else(|| {
        // Python itself gives no message.
        let is_of_python = || text.is_empty() && classes.first().is_some_and(heads::is_of_python);
        let known = classes.iter().find_map(heads::of_class);
        let class = known.or_else(|| is_of_python().then_some(heads::OF_PYTHON))?;
        let lower = text.to_ascii_lowercase();
        let message = within(&lower, LONGEST);
        Some(OomMessage {
            framework: class.framework,
            device: if class.is_of_host {
                Some("host".to_owned())
            } else {
                heads::device_in(message)
            },
            figures: figures(message),
        })
    })
}

/// The longest beginning of `text` that has at most `n_bytes`, cut between characters.
pub fn within(text: &str, n_bytes: usize) -> &str {
    let is_end = |n: &usize| text.is_char_boundary(*n);
    let n_bytes = (0..=n_bytes.min(text.len())).rev().find(is_end);
    &text[..n_bytes.unwrap_or(0)]
}

fn figures(message: &str) -> OomFigures {
    let sizes = TextSizes::new(message);
    let allocated = sizes
        .before(&["already allocated", "is allocated by pytorch"])
        .or_else(|| sizes.after(&["currently allocated", "mps allocated", "so far", "used"]));
    let reserved = sizes.before(&["reserved in total by pytorch"]);
    let unallocated = sizes.before(&["is reserved by pytorch but unallocated", "cached"]);
    // Metal's own allocations, this process's included.
    let beside_mps = sizes.after(&["other allocations"]);
    OomFigures {
        wanted: wanted(message, &sizes),
        free: sizes
            .after(&["free (according to cuda)", "free memory"])
            .or_else(|| sizes.before(&["is free", "free"])),
        total: sizes
            .after(&["capacity of", "capacty of", "device limit", "total memory"])
            .or_else(|| sizes.before(&["total capacity", "total capacty", "hbm"])),
        limit: sizes
            .before(&["allowed"])
            .or_else(|| sizes.after(&["max allowed", "limit set to", "memory fraction)"])),
        allocated,
        reserved: reserved.or_else(|| Some(allocated? + unallocated?)),
        unallocated: unallocated.or_else(|| Some(reserved?.saturating_sub(allocated?))),
        private_pools: sizes.before(&["allocated in private pools"]),
        largest_free: None,
        this_process: sizes
            .after(&["this process has"])
            .or_else(|| Some(allocated? + beside_mps?)),
        others: others(message, &sizes),
    }
}

fn wanted(message: &str, sizes: &TextSizes<'_>) -> Option<Bytes> {
    let before_it = [
        "allocate",
        "allocating",
        "allocate request for",
        "requested",
        "requested memory",
        "requested buffer of size",
    ];
    sizes.after(&before_it).or_else(|| tensor_size(message))
}

/// `shape[500,512,4,4] and type float`: TensorFlow gives no bytes.
fn tensor_size(message: &str) -> Option<Bytes> {
    let (_, from_shape) = message.split_once("shape[")?;
    let (shape, after) = from_shape.split_once(']')?;
    let name: String = after
        .trim_start()
        .strip_prefix("and type")?
        .trim_start()
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect();
    let item: u64 = match name.as_str() {
        "bool" | "int8" | "uint8" | "qint8" | "quint8" => 1,
        "half" | "float16" | "bfloat16" | "int16" | "uint16" => 2,
        "float" | "float32" | "int32" | "uint32" => 4,
        "double" | "float64" | "int64" | "uint64" | "complex64" => 8,
        "complex128" => 16,
        _ => return None,
    };
    let dimensions = shape.split(',').map(str::trim).filter(|it| !it.is_empty());
    let n_items = dimensions
        .map(|dimension| dimension.parse::<u64>().ok())
        .try_fold(1_u64, |product, dimension| product.checked_mul(dimension?));
    Some(Bytes::new(n_items?.checked_mul(item)?))
}

/// `Process 2109 has 344.00 MiB memory in use.`, once for each.
fn others(message: &str, sizes: &TextSizes<'_>) -> Vec<OtherProcess> {
    let mut others = Vec::new();
    for (start, clause) in message.match_indices("process ") {
        let after = &message[start + clause.len()..];
        let n_digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = after.split_at(n_digits);
        let Ok(pid) = digits.parse() else { continue };
        if let Some(has) = rest.strip_prefix(" has") {
            let used = sizes.at(message.len() - has.len());
            others.push(OtherProcess { pid, used });
        }
    }
    others
}

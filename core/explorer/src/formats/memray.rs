//! Captures of memray: their format is not public.

use gpumem_readers::container::Container;

use super::{ReadMethod, RegistryEntry};

/// In the registry.
pub(super) struct Memray;

impl RegistryEntry for Memray {
    const NAME: Option<&'static str> = Some("a capture of memray");
    const READING: ReadMethod = ReadMethod::Elsewhere(|name| {
        format!(
            "a capture of memray, whose format is not public; it has host memory only\nhint: `memray table {name}` or \
             `memray flamegraph {name}` shows it"
        )
    });

    fn recognises(container: Container, head: &[u8]) -> bool {
        container == Container::Unknown && (head.starts_with(b"memray\0") || is_packed(head))
    }
}

/// memray packs its captures by LZ4, which leaves a text as it is where it occurs first.
fn is_packed(head: &[u8]) -> bool {
    const FRAME: &[u8] = b"\x04\x22\x4d\x18";
    const NAME: &[u8] = b"memray";
    let beginning = head.get(..32).unwrap_or(head);
    beginning.starts_with(FRAME) && beginning.windows(NAME.len()).any(|at| at == NAME)
}

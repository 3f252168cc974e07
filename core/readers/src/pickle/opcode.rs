//! Opcodes by their names in Python's `pickletools`.

use super::fault::PickleFault;

/// The name of a refused opcode, and what it would do.
pub(super) const fn refused(opcode: u8) -> Option<(&'static str, &'static str)> {
    Some(match opcode {
        b'c' => ("GLOBAL", "import"),
        0x93 => ("STACK_GLOBAL", "import an object"),
        b'R' => ("REDUCE", "call an object"),
        b'b' => ("BUILD", "set the state of an object"),
        b'i' => ("INST", "make an instance of"),
        b'o' => ("OBJ", "make an instance of a class"),
        0x81 => ("NEWOBJ", "make an instance of a class"),
        0x92 => ("NEWOBJ_EX", "make an instance of a class"),
        b'P' => ("PERSID", "look up an object outside of the file"),
        b'Q' => ("BINPERSID", "look up an object outside of the file"),
        0x82 => ("EXT1", "import a registered object"),
        0x83 => ("EXT2", "import a registered object"),
        0x84 => ("EXT4", "import a registered object"),
        0x8f => ("EMPTY_SET", "make a set"),
        0x90 => ("ADDITEMS", "fill a set"),
        0x91 => ("FROZENSET", "make a frozenset"),
        0x96 => ("BYTEARRAY8", "make a bytearray"),
        0x97 => ("NEXT_BUFFER", "take a buffer from outside of the file"),
        0x98 => ("READONLY_BUFFER", "take a buffer from outside of the file"),
        b'2' => ("DUP", "put a value on the stack twice"),
        _ => return None,
    })
}

/// The error for an opcode that is not read; `argument` follows it.
pub(super) fn fault(opcode: u8, argument: &[u8]) -> PickleFault {
    let Some((name, deed)) = refused(opcode) else {
        return PickleFault::Unknown(opcode);
    };
    let named = matches!(opcode, b'c' | b'i').then(|| global(argument));
    PickleFault::Refused {
        opcode: name,
        deed,
        name: named.flatten(),
    }
}

/// `os.system` from the two lines that follow `GLOBAL`.
fn global(argument: &[u8]) -> Option<String> {
    const LONGEST: usize = 200;
    let argument = argument.get(..LONGEST).unwrap_or(argument);
    let text = String::from_utf8_lossy(argument);
    let mut lines = text.split_inclusive('\n');
    let (module, name) = (
        lines.next()?.strip_suffix('\n')?,
        lines.next()?.strip_suffix('\n')?,
    );
    Some(gpumem_model::printable::printable(&format!(
        "{module}.{name}"
    )))
}

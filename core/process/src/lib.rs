//! What a process says of itself, from bytes: its mappings, sets of its addresses, the loops of its code.
//!
//! ```
//! use gpumem_process::addresses::AddressRanges;
//! use gpumem_process::mappings::read;
//!
//! let list = "1000-3000 rw-p 00000000 00:00 0\n3000-4000 r--p 00000000 08:01 7 /usr/lib/libc.so\n";
//! let mappings = read(list.as_bytes()).expect("text");
//! let own = mappings.into_iter().filter(|it| it.is_private_memory);
//! let own: AddressRanges = own.map(|it| it.range).collect();
//! assert_eq!(own.as_slice(), [0x1000..0x3000]);
//! ```
#![forbid(unsafe_code)]

pub mod addresses;
pub mod bytecode;
pub mod mappings;

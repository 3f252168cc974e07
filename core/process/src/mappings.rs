//! The mappings of a process, as Linux lists them.
//!
//! ```
//! use gpumem_process::mappings::read;
//!
//! let list = "7f2c5c000000-7f2c5c021000 rw-p 00000000 00:00 0          [heap]\n";
//! let mappings = read(list.as_bytes()).expect("text");
//! assert_eq!((mappings[0].range.len(), &*mappings[0].name), (0x21000, "[heap]"));
//! ```

use std::io::{self, BufRead};
use std::ops::Range;

/// One mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Its addresses.
    pub range: Range<usize>,
    /// It belongs to no file and to no other process: a copy of the process has a copy of it.
    pub is_private_memory: bool,
    /// The process may write there.
    pub is_writable: bool,
    /// `[heap]`, `[stack]`, or what a program has called it; empty as a rule.
    pub name: String,
    /// Bytes of it in memory; 0 if not requested.
    pub resident: usize,
    /// Those of them that were read or written; in a copy of the process, since the copy was made. The
    /// kernel counts some pages too many.
    pub referenced: usize,
}

/// Reads `/proc/PID/maps`, or `smaps`, which also says what is in memory.
///
/// # Errors
///
/// Those of the list itself. A line that is no mapping is passed over.
pub fn read(mut list: impl BufRead) -> io::Result<Vec<Mapping>> {
    let mut mappings: Vec<Mapping> = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        if list.read_until(b'\n', &mut line)? == 0 {
            return Ok(mappings);
        }
        let text = String::from_utf8_lossy(&line);
        if let Some(mapping) = mapping(text.trim_end()) {
            mappings.push(mapping);
        } else if let Some(last) = mappings.last_mut() {
            last.resident = figure(&text, "Rss:").unwrap_or(last.resident);
            last.referenced = figure(&text, "Referenced:").unwrap_or(last.referenced);
        }
    }
}

/// `Rss:                 132 kB`
fn figure(line: &str, name: &str) -> Option<usize> {
    let kib = line.strip_prefix(name)?.trim().strip_suffix(" kB")?;
    kib.parse::<usize>().ok().map(|kib| kib << 10)
}

/// `7f2c5c000000-7f2c5c021000 rw-p 00000000 00:00 0          [heap]`
fn mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let address = |digits| usize::from_str_radix(digits, 16).ok();
    let range = address(start)?..address(end)?;
    let permissions = fields.next()?;
    let inode = fields.nth(2)?;
    let name = fields.next().unwrap_or_default().trim_start().to_owned();
    let is_of_file = inode != "0" || !(name.is_empty() || name.starts_with('['));
    // The kernel's own, which cannot be left out.
    let is_kernels = name.starts_with("[v") || name == "[stack]";
    Some(Mapping {
        range,
        is_private_memory: permissions.ends_with('p') && !is_of_file && !is_kernels,
        is_writable: permissions.contains('w'),
        name,
        resident: 0,
        referenced: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, range: Range<usize>, is_private_memory: bool, name: &str) {
        let found = mapping(line).expect("a mapping");
        assert_eq!(
            (found.range, found.is_private_memory, &*found.name),
            (range, is_private_memory, name)
        );
    }

    #[test]
    fn lines_of_the_kernels_list() {
        check("1000-3000 rw-p 00000000 00:00 0 ", 0x1000..0x3000, true, "");
        check(
            "1000-3000 rw-p 00000000 00:00 0      [heap]",
            0x1000..0x3000,
            true,
            "[heap]",
        );
        check(
            "1000-3000 rw-p 00000000 00:00 0 [anon:arena]",
            0x1000..0x3000,
            true,
            "[anon:arena]",
        );
        check(
            "1000-3000 rw-s 00000000 00:01 77 /dev/zero (deleted)",
            0x1000..0x3000,
            false,
            "/dev/zero (deleted)",
        );
        check(
            "1000-3000 r--p 0000f000 08:01 77 /lib/with space.so",
            0x1000..0x3000,
            false,
            "/lib/with space.so",
        );
        check(
            "1000-3000 r-xp 00000000 00:00 0 [vdso]",
            0x1000..0x3000,
            false,
            "[vdso]",
        );
        check(
            "1000-3000 rw-p 00000000 00:00 0 [stack]",
            0x1000..0x3000,
            false,
            "[stack]",
        );
        assert_eq!(mapping("Rss:                 132 kB"), None);
        assert_eq!(mapping("VmFlags: rd wr mr mw me ac sd"), None);
    }

    #[test]
    fn what_is_resident_and_referenced() {
        let list = "1000-2000 rw-p 0 00:00 0\nRss: 4 kB\nReferenced:        0 kB\nVmFlags: rd\n\
                    2000-3000 rw-p 0 00:00 0\nReferenced:        4 kB\n";
        let mappings = read(list.as_bytes()).expect("it is in memory");
        let figures: Vec<_> = mappings
            .iter()
            .map(|it| (it.resident, it.referenced))
            .collect();
        assert_eq!(figures, [(4096, 0), (0, 4096)]);
    }
}

//! What a file is, by its content.

use gpumem_readers::container::{Container, LOOKED_AT};
use gpumem_readers::json_file;

use super::{Format, PageKind, ReadMethod};

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileKind {
    /// What it is written in.
    pub container: Container,
    /// What is in it, if that is known.
    pub format: Option<Format>,
    /// What a gzip file holds that is not read from there.
    packed: Option<&'static str>,
}

impl FileKind {
    /// What a file with this beginning is: of longer ones the first [`LOOKED_AT`] bytes count. A damaged file may
    /// look like what it was.
    pub fn recognise(bytes: &[u8]) -> Self {
        let head = bytes.get(..LOOKED_AT).unwrap_or(bytes);
        let outer = Self::unpacked(head);
        if outer.container != Container::Gzip || outer.format.is_some() {
            return outer;
        }
        let inner = Self::unpacked(&json_file::head(head));
        let format = match inner.format {
            // The reader reports damage.
            None if matches!(inner.container, Container::Empty | Container::Unknown) => {
                Some(Format::TorchTrace)
            }
            format => format.filter(|it| it.may_be_packed()),
        };
        Self {
            format,
            packed: format.is_none().then(|| inner.name()),
            ..outer
        }
    }

    fn unpacked(head: &[u8]) -> Self {
        let container = Container::recognise(head);
        let mut formats = Format::ALL.into_iter().rev();
        Self {
            container,
            format: formats.find(|format| format.recognises(container, head)),
            packed: None,
        }
    }

    /// What messages call such a file.
    pub fn name(self) -> &'static str {
        let of_format = self.format.and_then(Format::name);
        of_format.unwrap_or(self.container.name())
    }

    /// Whether it is a recording of gpumem, or may be one whose beginning is damaged.
    pub fn may_be_recording(self) -> bool {
        match self.format {
            Some(format) => format == Format::Recording,
            None => self.container == Container::Unknown,
        }
    }

    /// What explores it in the page.
    pub fn page(self) -> Option<PageKind> {
        self.format.and_then(Format::page)
    }

    /// Why a file of that name is not read, and what to do.
    pub fn refusal(self, name: &str) -> String {
        if let Some(ReadMethod::Elsewhere(refusal)) = self.format.map(Format::reading) {
            return refusal(name);
        }
        if let Some(packed) = self.packed {
            return format!(
                "byte 0: a gzip file with {packed} in it\nhint: unpack it first, with `gunzip -k {name}`"
            );
        }
        match self.container {
            Container::Empty => "byte 0: an empty file".to_owned(),
            _ => format!(
                "byte 0: {}, which gpumem does not read\n{}",
                self.name(),
                hint()
            ),
        }
    }
}

/// What gpumem reads, for those who give something else.
pub fn hint() -> String {
    let mut listed: Vec<&str> = Format::ALL.into_iter().filter_map(Format::listed).collect();
    let last = listed.pop().unwrap_or_default();
    format!(
        "hint: gpumem reads its own recordings, {}, and {last}",
        listed.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], format: impl Into<Option<Format>>, name: &str) {
        let kind = FileKind::recognise(bytes);
        assert_eq!((kind.format, kind.name()), (format.into(), name));
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("memory takes it");
        encoder.finish().expect("memory takes it")
    }

    #[test]
    fn a_capture_of_memray_is_known_as_it_is_and_packed() {
        let memray = (Format::Memray, "a capture of memray");
        check(b"memray\0\x0b\0", memray.0, memray.1);
        let in_lz4 = b"\x04\x22\x4d\x18\x40\x40\xc0\x20\0\0\0\xf0\x12memray\0\x0c";
        check(in_lz4, memray.0, memray.1);
        check(
            b"\x04\x22\x4d\x18\x40\x40\xc0\x20\0\0\0\xf0\x12another",
            None,
            "a file of unknown kind",
        );
    }

    #[test]
    fn json_is_a_trace_unless_it_is_something_else() {
        check(b"{\"traceEvents\": []}", Format::TorchTrace, "JSON");
        let timeline = (Format::MemoryTimeline, "a memory timeline of PyTorch");
        check(b"[[1, 2], [3]]", timeline.0, timeline.1);
        let export = b"[{\"timestamp_ns\": 1, \"allocator_allocated_bytes\": 2}]";
        check(export, Format::Stormlog, "an export of stormlog");
    }

    #[test]
    fn what_is_packed_counts() {
        check(&packed(b"{\"a\": 1}"), Format::TorchTrace, "a gzip file");
        let timeline = (Format::MemoryTimeline, "a memory timeline of PyTorch");
        check(&packed(b"[[1, 2], [3]]"), timeline.0, timeline.1);
        let profile =
            b"\x0a\x04\x08\x01\x10\x02\x32\x00\x32\x05space\x32\x05bytes\x12\x03\x12\x01\x07";
        let jax = (Format::DeviceProfile, "a device memory profile");
        check(profile, jax.0, jax.1);
        check(&packed(profile), jax.0, jax.1);
        let log = packed(b"# gpu fb\n# Idx MB\n0 1\n");
        check(&log, None, "a gzip file");
        assert_eq!(
            FileKind::recognise(&log).refusal("log.gz"),
            "byte 0: a gzip file with a log of nvidia-smi in it\nhint: unpack it first, with `gunzip -k log.gz`"
        );
    }

    #[test]
    fn a_damaged_gzip_file_is_refused_where_it_is_read() {
        check(b"\x1f\x8b\x08", Format::TorchTrace, "a gzip file");
    }

    #[test]
    fn the_hint_names_each_reader() {
        assert_eq!(
            hint(),
            "hint: gpumem reads its own recordings, memory snapshots, traces and memory timelines of PyTorch, logs of \
             nvidia-smi, SQLite exports of Nsight Systems, memory profiles of JAX, and exports of stormlog"
        );
        for format in Format::ALL {
            assert!(format.listed().is_none() || format.is_read(), "{format:?}");
        }
    }
}

//! What the libraries of a torch wheel link of NVIDIA's: read from the wheel itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use object::Endianness;
use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, SHT_DYNSYM};
use object::read::ReadCache;
use object::read::elf::{Dyn, ElfFile64, FileHeader, Sym};

use crate::stamp;

/// What is known of a library of NVIDIA's.
struct Known {
    /// How its file's name starts.
    file: &'static str,
    /// How its functions' names start.
    functions: &'static str,
    /// The status by which a function says that it is not there.
    status: i32,
    /// The archive of `tests/played-cuda/toolkit` has functions of it.
    is_played: bool,
}

const LIBRARIES: [Known; 15] = [
    played("libcudart.", "cuda", 801),
    played("libcublasLt.", "cublasLt", 0),
    played("libcublas.", "cublas", 0),
    played("libcupti.", "cupti", 15),
    stubs("libcudnn.", "cudnn", 1001),
    stubs("libcufft.", "cufft", 5),
    stubs("libcufile.", "cuFile", 1),
    stubs("libcurand.", "curand", 1),
    stubs("libcusolver.", "cusolver", 1),
    stubs("libcusparse.", "cusparse", 1),
    stubs("libcusparseLt.", "cusparseLt", 1),
    stubs("libnccl.", "nccl", 3),
    stubs("libnvrtc.", "nvrtc", 7),
    stubs("libnvshmem_host.", "nvshmem", 1),
    stubs("libnvJitLink.", "nvJitLink", 1),
];

const fn played(file: &'static str, functions: &'static str, status: i32) -> Known {
    Known {
        file,
        functions,
        status,
        is_played: true,
    }
}

const fn stubs(file: &'static str, functions: &'static str, status: i32) -> Known {
    Known {
        file,
        functions,
        status,
        is_played: false,
    }
}

/// A library that the wheel wants.
#[derive(Debug)]
pub(super) struct Library {
    /// As the loader looks for it: `libcudart.so.13`.
    pub(super) name: String,
    pub(super) versions: BTreeSet<String>,
    pub(super) functions: BTreeSet<String>,
    /// What a function that is not played returns.
    pub(super) status: i32,
    /// Some of its functions are played.
    pub(super) is_played: bool,
}

/// The folder of an installed torch.
pub(super) struct Wheel<'a> {
    torch: &'a Path,
}

/// What one of its libraries says of others.
#[derive(Default)]
struct Dynamic {
    needed: BTreeSet<String>,
    search_paths: Vec<String>,
    /// Library and version of symbols; neither, if a symbol has no version.
    symbols: Vec<(String, Option<(String, String)>)>,
}

impl<'a> Wheel<'a> {
    pub(super) fn at(torch: &'a Path) -> Self {
        Self { torch }
    }

    /// 13020, if the wheel was made for CUDA 13.2.
    pub(super) fn cuda_version(&self) -> Result<u32> {
        let file = self.torch.join("version.py");
        let text = fs::read_to_string(&file)?;
        let line = text.lines().find(|line| line.starts_with("cuda"));
        let version = line.and_then(|line| line.split('\'').nth(1));
        let version = version.and_then(|it| it.split_once('.'));
        let number = version.and_then(|(major, minor)| {
            Some(major.parse::<u32>().ok()? * 1000 + minor.parse::<u32>().ok()? * 10)
        });
        number.with_context(|| format!("{} names no version of CUDA", file.display()))
    }

    /// The first folder of NVIDIA's where its libraries look for others.
    pub(super) fn search_folder(&self) -> Result<PathBuf> {
        let dynamic = Dynamic::of(&self.torch.join("lib/libc10_cuda.so"))?;
        let folders = dynamic
            .search_paths
            .iter()
            .flat_map(|paths| paths.split(':'));
        let relative = folders
            .filter_map(|folder| folder.strip_prefix("$ORIGIN/../../"))
            .find(|folder| folder.starts_with("nvidia/"));
        let relative = relative.context("torch looks for no library of NVIDIA's")?;
        let packages = self.torch.parent().unwrap_or(self.torch);
        Ok(packages.join(relative))
    }

    /// NVIDIA's libraries that those of the wheel link, but for the driver.
    pub(super) fn nvidia_libraries(&self) -> Result<Vec<Library>> {
        let mut found: BTreeMap<String, Library> = BTreeMap::new();
        let mut unversioned = BTreeSet::new();
        for file in self.own_libraries()? {
            let dynamic = Dynamic::of(&file)?;
            for name in dynamic.needed {
                if let Some(known) = known(&name) {
                    found.entry(name.clone()).or_insert_with(|| Library {
                        name,
                        versions: BTreeSet::new(),
                        functions: BTreeSet::new(),
                        status: known.status,
                        is_played: known.is_played,
                    });
                }
            }
            for (function, origin) in dynamic.symbols {
                match origin {
                    None => {
                        unversioned.insert(function);
                    }
                    Some((library, version)) => {
                        if let Some(library) = found.get_mut(&library) {
                            library.functions.insert(function);
                            library.versions.insert(version);
                        }
                    }
                }
            }
        }
        for library in found.values_mut().filter(|it| it.versions.is_empty()) {
            let start = known(&library.name).map_or("", |it| it.functions);
            let own = unversioned.iter().filter(|it| it.starts_with(start));
            library.functions.extend(own.cloned());
        }
        Ok(found.into_values().collect())
    }

    fn own_libraries(&self) -> Result<Vec<PathBuf>> {
        let mut files = stamp::entries(&self.torch.join("lib"))?;
        files.extend(stamp::entries(self.torch)?);
        files.retain(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            file.is_file() && name.contains(".so")
        });
        Ok(files)
    }
}

fn known(library: &str) -> Option<&'static Known> {
    LIBRARIES.iter().find(|it| library.starts_with(it.file))
}

impl Dynamic {
    /// Reads it without the code: a wheel's libraries have half a gigabyte of that.
    fn of(path: &Path) -> Result<Self> {
        let read = || -> Result<Self> {
            let cache = ReadCache::new(File::open(path)?);
            let file = ElfFile64::<Endianness, _>::parse(&cache)?;
            Self::read(&file, &cache)
        };
        read().with_context(|| format!("reading {}", path.display()))
    }

    fn read<'data>(
        file: &ElfFile64<'data, Endianness, &'data ReadCache<File>>,
        data: &'data ReadCache<File>,
    ) -> Result<Self> {
        let mut dynamic = Self::default();
        let (header, endian) = (file.elf_header(), file.endian());
        let sections = header.sections(endian, data)?;
        if let Some((entries, link)) = sections.dynamic(endian, data)? {
            let strings = sections.strings(endian, data, link)?;
            for entry in entries {
                let text = || -> Result<String> {
                    let text = entry.string(endian, strings)?;
                    Ok(String::from_utf8_lossy(text).into_owned())
                };
                match entry.d_tag(endian) {
                    DT_NEEDED => {
                        dynamic.needed.insert(text()?);
                    }
                    DT_RPATH | DT_RUNPATH => dynamic.search_paths.push(text()?),
                    _ => {}
                }
            }
        }
        let symbols = sections.symbols(endian, data, SHT_DYNSYM)?;
        let versions = sections.versions(endian, data)?.unwrap_or_default();
        for (idx, symbol) in symbols.enumerate() {
            if !symbol.is_undefined(endian) {
                continue;
            }
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let version = versions.version(versions.version_index(endian, idx).index())?;
            let origin = version.and_then(|it| Some((text(it.file()?), text(it.name()))));
            let name = text(symbol.name(endian, symbols.strings())?);
            dynamic.symbols.push((name, origin));
        }
        Ok(dynamic)
    }
}

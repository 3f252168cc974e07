"""Link every library of NVIDIA's that an installed torch wants: what is played, and stubs.

``link.py TORCH ARCHIVE``: the folder of an installed torch, and what is played of all libraries.
Which functions a library has, and under which versions, is read from the wheel itself.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

# How the name of a library's file starts and those of its functions, and the status by which a
# function says that it is not there.
PLAYED = {
    "libcudart.": ("cuda", 801),
    "libcublasLt.": ("cublasLt", 0),
    "libcublas.": ("cublas", 0),
    "libcupti.": ("cupti", 15),
}
STUBS = {
    "libcudnn.": ("cudnn", 1001),
    "libcufft.": ("cufft", 5),
    "libcufile.": ("cuFile", 1),
    "libcurand.": ("curand", 1),
    "libcusolver.": ("cusolver", 1),
    "libcusparse.": ("cusparse", 1),
    "libcusparseLt.": ("cusparseLt", 1),
    "libnccl.": ("nccl", 3),
    "libnvrtc.": ("nvrtc", 7),
    "libnvshmem_host.": ("nvshmem", 1),
    "libnvJitLink.": ("nvJitLink", 1),
}
# Functions that return a version, and not a status; torch compares cuDNN's with its own.
VERSIONS = {"cudnnGetVersion": 92600, "cudnnGetCudartVersion": 13020}


@dataclass
class Library:
    """A library that the wheel wants, by the name under which the loader looks for it."""

    name: str
    versions: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)

    @property
    def is_played(self) -> bool:
        return self.name.startswith(tuple(PLAYED))

    @property
    def kind(self) -> tuple[str, int]:
        """How its functions' names start, and the status of those that are not there."""
        return next(it for start, it in (PLAYED | STUBS).items() if self.name.startswith(start))

    def stub(self, function: str) -> str:
        """Return the source of a function that is not played."""
        if function.endswith("String"):
            return f'const char *{function}(void) {{ return "not played"; }}'
        status: object = VERSIONS.get(function, self.kind[1])
        if self.name.startswith("libcudart.") and function not in VERSIONS:
            status = f'played_missing("{function}")'
        return f"long {function}(void) {{ return {status}; }}"

    def exports(self) -> str:
        """Return the linker's script: its functions and nothing else, under the first version."""
        first, *others = sorted(self.versions) or [""]
        names = "".join(f"{name}; " for name in sorted(self.functions))
        named = f"global: {names}" if names else ""
        empty = "".join(f"{version} {{ }};\n" for version in others)
        return f"{first} {{ {named}local: *; }};\n{empty}"


def output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def origins_of_versions(file: Path) -> dict[str, str]:
    """Return the library from which a file wants each version of symbols."""
    origins, library = {}, ""
    for line in output("readelf", "-VW", file).split("\n"):
        if at := re.search(r"File: (\S+)", line):
            library = at[1]
        elif at := re.search(r"Name: (\S+)  Flags", line):
            origins[at[1]] = library
    return origins


def wanted(torch: Path) -> list[Library]:
    """Return the libraries of NVIDIA's that those of the wheel link, but for the driver."""
    files = [file for folder in (torch / "lib", torch) for file in folder.glob("*.so*")]
    found: dict[str, Library] = {}
    unversioned: set[str] = set()
    for file in files:
        needed = re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "-dW", file))
        ours = [name for name in needed if name.startswith(tuple(PLAYED | STUBS))]
        found |= {name: Library(name) for name in ours if name not in found}
        origins = origins_of_versions(file)
        undefined = ["nm", "-D", "--undefined-only", "--with-symbol-versions", str(file)]
        for symbol in output(*undefined).split("\n"):
            name, _, version = symbol.split(" ")[-1].partition("@")
            library = found.get(origins.get(version, ""))
            if not version:
                unversioned.add(name)
            elif library is not None:
                library.versions.add(version)
                library.functions.add(name)
    for library in found.values():
        if not library.versions:
            start = library.kind[0]
            library.functions |= {name for name in unversioned if name.startswith(start)}
    return list(found.values())


def cuda_version(torch: Path) -> int:
    """Return 13020, if the wheel was made for CUDA 13.2."""
    text = (torch / "version.py").read_text(encoding="utf-8")
    found = re.search(r"^cuda.*'(\d+)\.(\d+)", text, re.MULTILINE)
    if found is None:
        sys.exit(f"{torch / 'version.py'} names no version of CUDA")
    return int(found[1]) * 1000 + int(found[2]) * 10


def search_folder(torch: Path) -> Path:
    """Return the first folder of NVIDIA's where the wheel's libraries look for others."""
    dynamic = output("readelf", "-dW", torch / "lib" / "libc10_cuda.so")
    found = re.search(r"\$ORIGIN/\.\./\.\./(nvidia/[^:\]]+)", dynamic)
    if found is None:
        sys.exit("torch looks for no library of NVIDIA's")
    return torch.parent / found[1]


def link(library: Library, archive: Path, version: int, folder: Path) -> None:
    """Link a library, and put it into the folder in one step."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        stubs, exports, linked = (Path(scratch) / name for name in ("a.c", "a.map", "a.so"))
        weak = [f"__attribute__((weak)) {library.stub(it)}\n" for it in sorted(library.functions)]
        head = f"const int played_cuda_version = {version};\nint played_missing(const char *);\n"
        stubs.write_text(head + "".join(weak), encoding="utf-8")
        exports.write_text(library.exports(), encoding="utf-8")
        command = ["cc", "-shared", "-fPIC", "-O1", "-w", "-o", str(linked)]
        command += [f"-Wl,-soname,{library.name}", f"-Wl,--version-script={exports}", str(stubs)]
        if library.is_played:
            # Weak stubs give way to what is played, and what nobody wants is left out.
            command += ["-Wl,--gc-sections,--whole-archive", str(archive), "-Wl,--no-whole-archive"]
            command += ["-lgcc_s", "-lpthread", "-ldl", "-lm"]
        subprocess.run(command, check=True)
        linked.replace(folder / library.name)


def main(torch: Path, archive: Path) -> None:
    """Link all that the torch in a folder wants."""
    folder = search_folder(torch)
    folder.mkdir(parents=True, exist_ok=True)
    for library in wanted(torch):
        link(library, archive, cuda_version(torch), folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

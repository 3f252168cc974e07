"""Write the seeds of the corpus: a small file of each form that each reader knows.

`python tests/fuzz/seeds.py`, from the repository's root. Recordings: `cargo run --example recordings`.
"""

from __future__ import annotations

import gzip
import itertools
import json
import pickle
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.python import snapshots  # noqa: E402 (the folder is found only now)

TRACE = [
    json.loads(line)
    for line in r"""
{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 1, "dur": 90}
{"ph": "X", "cat": "python_function", "name": "nn.Module: Linear_0", "pid": 1, "tid": 1, "ts": 2, "dur": 80, "args": {"Python id": 1, "Python parent id": null, "Python module id": 0}}
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10.5, "dur": 20, "args": {"External id": 7, "Input Dims": [[2, 3], []], "Sequence number": 1}}
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 12, "dur": 3, "args": {"External id": 7, "correlation": 9}}
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 16, "dur": 9, "args": {"External id": 7, "correlation": 9, "device": 0, "stream": 7}}
{"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 13, "args": {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": 512, "Total Allocated": 2560, "Total Reserved": 2048}}
{"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 40, "args": {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": -512, "Total Allocated": 2048, "Total Reserved": 2048}}
{"ph": "i", "name": "[OutOfMemory]", "pid": 1, "tid": 1, "ts": 50, "args": {"Device Type": 1, "Device Id": 0, "Bytes": 1099511627776, "Total Allocated": 2048}}
""".strip().splitlines()
]
SMI = {
    "query": "timestamp, index, name, memory.used [MiB], memory.total [MiB]\n"
    "2024/01/17 12:34:56.100, 0, NVIDIA A100, 10 MiB, 1000 MiB\n"
    "2024/01/17 12:35:56.100, 0, NVIDIA A100, [N/A], 1000 MiB\n",
    "apps": "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n"
    "1705494896, GPU-1, 41, /opt/a, b/python, 10 MiB\n",
    "dmon": "#Date       Time        gpu    fb  bar1    sm\n"
    "#YYYYMMDD   HH:MM:SS    Idx    MB    MB     %\n"
    " 20240117   23:59:59      0   100     2     5\n"
    " 20240117   00:00:04      1     -     -     -\n",
    "pmon": "#Time        gpu        pid  type    fb  ccpm   command\n"
    "#HH:MM:SS    Idx          #   C/G    MB    MB   name\n"
    " 23:59:58      0       4211     C   800     0   python3 -m train \n",
    "bare": "0, 10 MiB, 1000 MiB\n1, 20 MiB, 1000 MiB\n",
    "quoted": 'elapsed,gpu0_mem_used_mb,name\n1,2,"a\n"\n2,3,"a ""b"""\n',
    "prose": "Tue Oct 29 07:00:23 PM 2024\n[0] Tesla P100 | 48'C | 15757 / 16280 MB | e(1M)\n"
    "[04-03-2021 @ 13:32:39] >  Temp: 58C  Utilization: 0%  Memory: 9/11019 MiB\n",
    "table": "Tue Oct 29 19:00:23 2024\n| NVIDIA-SMI 550.54.15   CUDA Version: 12.4 |\n"
    "|   0  NVIDIA L40S          On  |   00000000:4A:00.0 Off |          0 |\n"
    "| N/A   53C    P0   305W / 350W |    7MiB /  46068MiB |     93%      Default |\n"
    "| Processes:                                                 |\n"
    "|    0   N/A  N/A   3794277      C   python -m train   11942MiB |\n",
    "list": "==============NVSMI LOG==============\nTimestamp    : Thu Jan 30 16:14:43 2025\n"
    "GPU 00000000:01:00.0\n    Product Name   : NVIDIA A100\n    MIG Devices\n"
    "        FB Memory Usage\n            Used   : 13 MiB\n    FB Memory Usage\n"
    "        Total   : 8188 MiB\n        Used   : 100 MiB\n    Processes\n"
    "        Process ID   : 1234\n            Name   : python\n            Used GPU Memory   : 4 MiB\n",
    "xml": '<nvidia_smi_log>\n\t<timestamp>Fri Oct  2 19:30:00 2026</timestamp>\n\t<gpu id="0">\n'
    "<product_name>NVIDIA A30</product_name><uuid>GPU-22</uuid>\n<fb_memory_usage>"
    "<total>24258 MiB</total><used>10 MiB</used></fb_memory_usage>\n<processes><process_info>"
    "<pid>42</pid><process_name>python</process_name><used_memory>9 MiB</used_memory>"
    "</process_info></processes>\n</gpu>\n</nvidia_smi_log>\n",
}
EVENT = json.loads(
    """{"schema_version": 2, "timestamp_ns": 1000000000, "event_type": "sample", "collector": "stormlog.cuda_tracker", "pid": 7, "host": "a", "device_id": 0, "allocator_allocated_bytes": 100, "allocator_reserved_bytes": 200, "device_used_bytes": 700, "device_total_bytes": 9000, "context": null, "metadata": {"a": [1, {}]}}"""
)
OLD_EVENTS = [
    {
        "timestamp": 1.0 + at,
        "event_type": kind,
        "memory_allocated": 100,
        "memory_reserved": 200,
        "device_id": at,
    }
    for at, kind in enumerate(["allocation", "warning"])
]
OOM = {
    "torch": "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 15.77 GiB of which "
    "11.88 MiB is free. Process 4211 has 15.74 GiB memory in use. Of the allocated memory 14.02 GiB is allocated "
    "by PyTorch, and 612.40 MiB is reserved by PyTorch but unallocated.",
    "old_torch": "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 15.90 GiB total capacity; "
    "13.07 GiB already allocated; 1.70 GiB free; 13.44 GiB reserved in total by PyTorch)",
    "jax": "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.",
    "cupy": "cupy.cuda.memory\nOutOfMemoryError\nOut of memory allocating 8,000,000,000 bytes (allocated so far: "
    "1,024 bytes, limit set to: 2,048 bytes).",
    "tensorflow": "OOM when allocating tensor with shape[64,256,112,112] and type float on /job:localhost/replica:0"
    "/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Conv2D]",
}


def dumped(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def shortened(snapshot: Any) -> Any:
    """Return a snapshot with fewer events, so that a seed is small."""
    if isinstance(snapshot, dict):
        for trace in snapshot.get("device_traces", []):
            del trace[:2]
        del snapshot["segments"][1:2]
    return snapshot


def pickles() -> dict[str, bytes]:
    made = {
        f"{form.__name__}_{protocol}": pickle.dumps(shortened(form()), protocol)
        for form, protocol in [
            (snapshots.oldest, 2),
            (snapshots.with_history, 3),
            (snapshots.with_settings, 2),
            (snapshots.with_annotations, 4),
            (snapshots.newest, 5),
            (snapshots.with_names, 4),
            (snapshots.shared, 0),
        ]
    }
    values: list[Any] = [
        1,
        -1,
        1 << 70,
        -(1 << 40),
        2.5,
        None,
        True,
        "é",
        b"\xff" * 3,
        (1, 2, 3, 4),
        {"a": []},
    ]
    return made | {f"values_{protocol}": pickle.dumps(values, protocol) for protocol in range(6)}


def varint(number: int) -> bytes:
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def field(number: int, value: int | bytes) -> bytes:
    """Return a field of a Protocol Buffers message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def profile() -> bytes:
    """Return a memory profile with one stack of two lines."""
    texts = "|allocations|count|space|bytes|kind|buffer|device|cuda:0|step|/srv/train.py|/lib/jax/api.py"
    label = [field(3, field(1, key) + field(2, text)) for key, text in [(5, 6), (7, 8)]]
    sample = (
        field(1, varint(1) + varint(2)) + field(2, varint(2) + varint(3 << 20)) + b"".join(label)
    )
    made = field(1, field(1, 1) + field(2, 2)) + field(1, field(1, 3) + field(2, 4))
    made += field(2, sample) + field(2, field(2, varint(1) + varint(8)))
    for n, file in [(1, 11), (2, 10)]:
        made += field(4, field(1, n) + field(4, field(1, n) + field(2, 300)))
        made += field(5, field(1, n) + field(2, 9) + field(4, file))
    return made + b"".join(field(6, text.encode()) for text in texts.split("|")) + field(9, 1 << 60)


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def files() -> dict[str, dict[str, bytes]]:
    """Return the seeds by reader and name."""
    trace = dumped({"schemaVersion": 1, "distributedInfo": {"rank": 1}, "traceEvents": TRACE})
    rows = [[-1, 1, 10, 0], [-1, 1, 5, 1], [7000, 2, 20, 4], [9000, 4, -20, 4]]
    sizes = [[4, 5], [[0, 3, 0, 0, 0, 0, 0, 0, 0], [0, 3, 0, 0, 0, 9, 0, 0, 0]]]
    smi = {name: text.encode() for name, text in SMI.items()}
    smi["utf16"] = SMI["query"].encode("utf-16")
    csv = (
        ",".join(EVENT)
        + "\n"
        + ",".join("" if it in (None, "") else str(it) for it in EVENT.values())
        + "\n"
    )
    storm = {
        "array": dumped([EVENT, EVENT]),
        "lines": dumped(EVENT) + b"\n" + dumped(EVENT) + b"\n",
        "csv": csv.replace("{'a': [1, {}]}", '"{""a"": 1}"').encode(),
        "old": dumped({"events": OLD_EVENTS}),
    }
    rows_of_nsight = [
        bytes([what, 32, 0, 0]) + b"".join(n.to_bytes(4, "little") for n in (at, 64, 1 << 20, 0, 0))
        for at, what in enumerate([7, 4, 0, 6, 8, 12])
    ]
    timelines = {"rows": dumped(rows), "sizes": dumped(sizes), "packed": packed(dumped(rows))}
    made = {
        "chrome_trace": {
            "trace": trace,
            "list": dumped(TRACE[-3:]),
            "packed": packed(trace),
            "nearly": b'{"traceEvents":[{"ph":"i","name":"a\\x\n","ts":nan,"args":{"Bytes":-inf}}]}',
        },
        "memory_timeline": timelines,
        "device_profile": {"plain": profile(), "packed": packed(profile())},
        "nvidia_smi": smi,
        "stormlog": storm,
        "nsight": {"rows": b"".join(rows_of_nsight)},
        "oom": {name: text.encode() for name, text in OOM.items()},
        "pickle": {name: it for name, it in pickles().items() if name.startswith("values")},
        "torch_snapshot": {
            name: it for name, it in pickles().items() if not name.startswith("values")
        },
    }
    made["cell_files"] = {
        "names": b"3427300630 In [3]\n7 cell 2\n/tmp/ipykernel_4711/3427300630.py\nC:\\a\\ipykernel_1\\7.py",
    }
    kinds = {f"{folder}_{name}": it[:120] for folder, of in made.items() for name, it in of.items()}
    made["snapshot_change"] = changes(made["torch_snapshot"])
    return made | {"file_kind": kinds, "snapshot_explorer": made["torch_snapshot"]}


def changes(snapshots: dict[str, bytes]) -> dict[str, bytes]:
    """Return pairs of snapshots, each with the length of the first before them."""
    return {
        f"{one}_{other}": len(snapshots[one]).to_bytes(2, "little")
        + snapshots[one]
        + snapshots[other]
        for one, other in itertools.pairwise(sorted(snapshots))
    }


def dictionary_entries(contents: dict[str, bytes]) -> list[str]:
    """Return the words of files as entries of a libFuzzer dictionary."""
    found = {
        word
        for it in contents.values()
        for word in re.findall(rb"[A-Za-z_#\[][\w .:#/\]%-]{2,30}", it)
    }
    return [f'"{word.decode()}"' for word in sorted(found)][:400]


def main() -> None:
    for reader, contents in files().items():
        folder = HERE / "corpus" / reader
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (folder / name).write_bytes(content)
        dictionary = HERE / "dictionaries" / f"{reader}.dict"
        dictionary.parent.mkdir(exist_ok=True)
        if reader not in {"nsight", "file_kind", "snapshot_change", "snapshot_explorer"}:
            plain = {name: it for name, it in contents.items() if not it.startswith(b"\x1f\x8b")}
            dictionary.write_text("\n".join(dictionary_entries(plain)) + "\n")


if __name__ == "__main__":
    main()

"""Workers of a data loader record themselves: one of eight leaks, and is named."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="shares of memory are told there")

DATA = """
    import time
    import torch
    from torch.utils.data import Dataset, get_worker_info

    class Leaking(Dataset):
        def __init__(self, n):
            self.n, self.kept = n, []

        def __len__(self):
            return self.n

        def __getitem__(self, index):
            if get_worker_info().id == 3:
                self.kept.append(b"x" * (6 << 20))
            time.sleep(0.01)
            return torch.zeros(1000)
"""
CELL = """
loader = torch.utils.data.DataLoader(
    data.Leaking(960), batch_size=4, num_workers=8, multiprocessing_context=method,
    worker_init_fn=gpumem.worker if method == "spawn" else None)
for batch in gpumem.steps(loader):
    pass
"""
SESSION = """
    import json, sys
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config
    import data

    if __name__ == "__main__":
        config = Config()
        config.HistoryManager.enabled = False
        config.GpuMem.store = sys.argv[1]
        config.GpuMem.quiet = True
        shell = InteractiveShell.instance(config=config)
        shell.run_line_magic("load_ext", "gpumem")
        shell.run_line_magic("gpumem", "on")
        import gpumem
        import torch
        shell.user_ns.update(data=data, torch=torch, gpumem=gpumem, method=sys.argv[2])
        assert shell.run_cell(sys.argv[3], store_history=True).success
        report = gpumem.report()
        print("FOUND" + json.dumps({"text": report.text(100), **json.loads(report.to_json())}))
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_worker_that_leaks_is_named(tmp_path: Path, method: str) -> None:
    (tmp_path / "data.py").write_text(textwrap.dedent(DATA))
    script = tmp_path / "session.py"
    script.write_text(textwrap.dedent(SESSION))
    command = [sys.executable, str(script), str(tmp_path / "store"), method, CELL]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout.rpartition("FOUND")[2])
    names = {child["name"] for child in found["processes"]}
    assert names == {f"DataLoader worker {n}" for n in range(8)}
    (finding,) = found["process_findings"]
    assert finding["title"].startswith("DataLoader worker 3 (pid ")
    leaking = next(it for it in found["processes"] if it["name"] == "DataLoader worker 3")
    assert (leaking["growth"]["state"], leaking["growth"]["per"]) == ("leak", "step")
    # A batch of four in a process of eight.
    assert leaking["growth"]["bytes_per_step"] == pytest.approx(3 << 20, rel=0.3)
    assert {child["ending"] for child in found["processes"]} == {"in_order"}

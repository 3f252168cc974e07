"""Pages of the site that are no file of `docs/`: the README as its start, and a live report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parents[2]
OURS = "https://github.com/jupyter-gpumem/gpumem/blob/main/docs/"
PICTURE = "https://raw.githubusercontent.com/jupyter-gpumem/gpumem/main/docs/"
# What `cargo xtask site` has a session of the simulated GPU write.
REPORT = "GPUMEM_SITE_REPORT"

LIVE = """# A live report

This is a report as `%gpumem_report --html FILE` writes it: one file that loads nothing from the
network. Click a cell, open *Evidence*, move a slider under *Settings*. [The report](report.md)
explains its parts.

<iframe src="../report.html" title="A live report of gpumem" loading="lazy"
  style="width: 100%; height: 60rem; border: 1px solid #8888; border-radius: 4px"></iframe>

[Open it by itself](report.html)
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made from something else."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    start = readme.replace(OURS, "").replace(PICTURE, "")
    files.append(File.generated(config, "index.md", content=start))
    files.append(File.generated(config, "live.md", content=LIVE))
    report = Path(os.environ[REPORT])
    files.append(File.generated(config, "report.html", abs_src_path=str(report)))
    return files

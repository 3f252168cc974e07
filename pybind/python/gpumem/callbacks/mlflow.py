"""MLflow."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

from gpumem.callbacks._by_hand import ByHand

FINDINGS = "gpumem/findings.md"


class MLflow(ByHand):
    """Write levels as metrics and findings as an artifact of a run, by default the active one."""

    def __init__(self, run_id: str | None = None, client: Any = None) -> None:
        super().__init__()
        self._run_id = run_id
        self._client = client

    def scalars(self, values: dict[str, int], step: int) -> None:
        """Write bytes by their names."""
        run_id = self._active()
        if run_id is None:
            return
        metric = import_module("mlflow.entities").Metric
        now_millis = int(time.time() * 1000)
        metrics = [metric(name, value, now_millis, step) for name, value in values.items()]
        # One request: the tracking server may be far away.
        self._api().log_batch(run_id, metrics=metrics)

    def text(self, words: str, step: int) -> None:  # noqa: ARG002 (an artifact has no steps)
        """Write the findings as Markdown."""
        run_id = self._active()
        if run_id is not None:
            self._api().log_text(run_id, words, FINDINGS)

    def _active(self) -> str | None:
        if self._run_id is not None:
            return self._run_id
        # Without a run, MLflow would begin one.
        run = import_module("mlflow").active_run()
        return None if run is None else run.info.run_id

    def _api(self) -> Any:
        if self._client is None:
            self._client = import_module("mlflow").MlflowClient()
        return self._client

"""The sessions of `tests/sessions` that use torch, on a card: the same truth, leak by leak."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.sessions.score import MAY_BE_MISSED, details, judge, read_list, sessions, world_of

if TYPE_CHECKING:
    from pathlib import Path

    from .played import Machine

# Sessions that cannot be what they are on a played card, with the reason.
CANNOT = {
    "95_policy_gradient_episode": "it checks its numbers, which are garbage here",
    "95b_policy_gradient_kept": "it checks its numbers, which are garbage here",
    "E19_torch_state_with_its_graph": "its layer needs cuDNN, which is not played",
    "A5_dataloader_persistent": "its workers would use the card, which torch refuses",
}
OF_TORCH = [path for path in sessions() if world_of(path) == "torch"]
WRONG = read_list()


@pytest.mark.first_try
@pytest.mark.parametrize("path", OF_TORCH, ids=lambda path: path.stem)
def test_session(path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    if path.stem in CANNOT:
        pytest.skip(CANNOT[path.stem])
    for name, value in machine.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GPUMEM_SESSION_DEVICE", "cuda")
    # What a fix does is the same everywhere.
    judged = judge(path, fixes=False)
    if judged.skipped:
        pytest.skip(judged.skipped)
    errors = [entry["error"] for entry in judged.said["log"] if entry["error"]]
    assert not errors, errors
    listed = WRONG.get(path.stem)
    allowed = listed.always | listed.at_times if listed else set()
    wrong = judged.wrong - allowed
    if wrong and wrong <= MAY_BE_MISSED:
        wrong &= judge(path, fixes=False).wrong
    assert not wrong, f"wrong: {', '.join(sorted(wrong))}\n{judged.row}\n{details(judged)}"

"""Real trainers: a leak in one of their steps is found by its callback, and its holder is named."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import tempfile
import warnings
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
import torch

from tests.support.in_process import cannot, forked_from
from tests.support.programs import until

from .shell import run, shell

if TYPE_CHECKING:
    from collections.abc import Callable

    Fit = Callable[[Callable[[], None], Any], None]

kept: list[Any] = []
logged: list[str] = []


class Log(logging.Handler):
    """What gpumem logs."""

    def emit(self, record: logging.LogRecord) -> None:
        logged.append(record.getMessage())


class Rows(torch.utils.data.Dataset):
    """A data set of 64 rows."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, idx: int) -> dict[str, Any]:
        return {"x": torch.full((4,), float(idx)), "labels": torch.zeros(1)}


class Writer:
    """A writer that notes what it is given."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.words: list[str] = []

    def scalars(self, values: dict[str, int], step: int) -> None:
        assert all(name.startswith("gpumem/host/") for name in values), values
        self.steps.append(step)

    def text(self, words: str, _step: int) -> None:
        self.words.append(words)


class Broken:
    """A writer that fails."""

    def scalars(self, _values: dict[str, int], _step: int) -> None:
        raise OSError("full")

    text = scalars


def growth() -> list[Any]:
    found = gpumem.report().findings
    return [it for it in found if it.path == ("step",) and it.state in ("leak", "suspected")]


def keep() -> None:
    kept.append(torch.ones(4 << 20))


def prepared(library: str) -> None:
    """Open a shell beside a library."""
    if importlib.util.find_spec(library) is None:
        cannot(f"{library} is not installed here")
    os.environ.update(KERAS_BACKEND="torch", CUDA_VISIBLE_DEVICES="", TQDM_DISABLE="1")
    shell().user_ns.update(kept=kept, torch=torch, gpumem=gpumem)
    logging.getLogger("gpumem").addHandler(Log())


def trained(cell: str) -> None:
    run(f"%%gpumem -q\n{cell}")
    ran = shell().last_execution_result
    assert ran.success, ran.error_in_exec


def assert_leak_has_its_holder() -> Any:
    # A busy machine is late with the answer.
    until(lambda: growth()[0].holders)
    [leak] = growth()
    assert leak.holders[0].name == "kept", leak.holders
    return leak


def transformers(each: Callable[[], None], writer: Any) -> None:
    import transformers  # noqa: PLC0415 (each of these takes seconds)

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x: Any, labels: Any = None) -> dict[str, Any]:
            each()
            out = self.layer(x)
            return {"loss": ((out - labels) ** 2).mean(), "logits": out}

    arguments = transformers.TrainingArguments(
        tempfile.mkdtemp(),
        max_steps=16,
        per_device_train_batch_size=4,
        logging_steps=4,
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        save_strategy="no",
    )
    callback = gpumem.callbacks.TrainerCallback(writers=[writer] if writer else ())
    transformers.Trainer(Model(), arguments, train_dataset=Rows(), callbacks=[callback]).train()


def lightning(package: str) -> Fit:
    def fit(each: Callable[[], None], writer: Any) -> None:
        warnings.filterwarnings("ignore")
        pl = importlib.import_module(package)

        class Model(pl.LightningModule):  # type: ignore[name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.layer = torch.nn.Linear(4, 1)

            def training_step(self, batch: Any, _: int) -> Any:
                each()
                return ((self.layer(batch["x"]) - batch["labels"]) ** 2).mean()

            def configure_optimizers(self) -> Any:
                return torch.optim.SGD(self.parameters(), lr=1e-6)

        trainer = pl.Trainer(
            max_epochs=1,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            log_every_n_steps=4,
            callbacks=[gpumem.callbacks.Lightning(writers=[writer] if writer else ())],
        )
        trainer.fit(Model(), torch.utils.data.DataLoader(Rows(), batch_size=4))

    return fit


def keras(each: Callable[[], None], writer: Any) -> None:
    import keras  # noqa: PLC0415 (each of these takes seconds)

    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    planted = keras.callbacks.LambdaCallback(on_train_batch_end=lambda *_, **__: each())
    ours = gpumem.callbacks.Keras(writers=[writer] if writer else ())
    x, y = torch.ones(64, 4), torch.ones(64, 1)
    model.fit(x, y, batch_size=4, verbose=0, callbacks=[planted, ours])


FITS: dict[str, Fit] = {
    "transformers": transformers,
    "lightning": lightning("lightning.pytorch"),
    "pytorch_lightning": lightning("pytorch_lightning"),
    "keras": keras,
}


@pytest.mark.parametrize("library", FITS)
@forked_from("torch")
def test_a_step_s_leak_is_found_and_a_healthy_training_is_clean(library: str) -> None:
    prepared(library)
    written = Writer()
    shell().user_ns.update(fit=FITS[library], keep=keep, written=written, broken=Broken())
    trained("fit(lambda: None, None)")
    assert growth() == [], growth()
    trained("fit(keep, written)")
    leak = assert_leak_has_its_holder()
    assert leak.state == "leak", leak
    assert leak.bytes_per_run > 12 << 20, leak.bytes_per_run
    assert written.steps, written.words
    assert "leaks" in written.words[0], written.words
    assert not logged, logged
    kept.clear()
    trained("fit(lambda: None, broken)")
    assert logged
    assert all("the training goes on" in it for it in logged), logged


ACCELERATE = """
import accelerate
accelerator = accelerate.Accelerator(cpu=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
loader = torch.utils.data.DataLoader(torch.ones(64, 4), batch_size=4)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for batch in gpumem.steps(loader, "step"):
    loss = model(batch).sum()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    kept.append(torch.ones(4 << 20))
"""


@forked_from("torch")
def test_a_loop_of_accelerate_needs_no_callback() -> None:
    prepared("accelerate")
    trained(ACCELERATE)
    assert_leak_has_its_holder()


@forked_from("torch")
def test_tensorboards_own_writer_takes_it() -> None:
    prepared("tensorboard")
    from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 (takes seconds)

    board_files = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    folder = tempfile.mkdtemp()
    board = SummaryWriter(folder)
    writer = gpumem.callbacks.TensorBoard(board)
    writer.log(1)
    writer.finish(2)
    board.close()
    assert not logged, logged
    read = board_files.EventAccumulator(folder)
    read.Reload()
    assert [it.step for it in read.Scalars("gpumem/host/peak_bytes")] == [1, 2]
    assert "gpumem/findings/text_summary" in read.Tags()["tensors"], read.Tags()

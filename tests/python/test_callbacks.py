"""Callbacks and writers, by what the documentation of each library says it calls and takes.

``tests/frameworks/test_trainers.py`` has the real trainers.
"""

from __future__ import annotations

import logging
import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import gpumem
import pytest
from gpumem import _trainers, callbacks, sim
from gpumem.callbacks import _quiet

from tests.support.programs import output_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.python.conftest import Shell

MIB = 1 << 20

STATE = SimpleNamespace(global_step=7, is_world_process_zero=True)
TRAINER = SimpleNamespace(loggers=[], is_global_zero=True, log_every_n_steps=1, global_step=7)
# Which events each library sends for its beginning, a step, a log and the end.
EVENTS: dict[str, tuple[tuple[str, tuple[Any, ...]], ...]] = {
    "TrainerCallback": (
        ("on_train_begin", (None, STATE, None)),
        ("on_step_end", (None, STATE, None)),
        ("on_log", (None, STATE, None)),
        ("on_train_end", (None, STATE, None)),
    ),
    "Lightning": (
        ("on_train_start", (TRAINER, None)),
        ("on_train_batch_end", (TRAINER, None, None, None, 0)),
        ("on_train_epoch_end", (TRAINER, None)),
        ("on_train_end", (TRAINER, None)),
    ),
    "Keras": (
        ("on_train_begin", (None,)),
        ("on_train_batch_end", (0, None)),
        ("on_epoch_end", (0, None)),
        ("on_train_end", (None,)),
    ),
}

# What it sends where nothing is trained: the name of the steps, and the events of a beginning, a
# batch and the end.
TRAINER.sanity_checking = False
OTHERS: tuple[tuple[str, str, str, str, str], ...] = (
    ("TrainerCallback", "prediction", "", "on_prediction_step", "on_evaluate"),
    ("TrainerCallback", "prediction", "", "on_prediction_step", "on_predict"),
    ("Lightning", "validation", "on_validation_start", "on_validation_batch_end", ""),
    ("Lightning", "test", "on_test_start", "on_test_batch_end", ""),
    ("Lightning", "prediction", "on_predict_start", "on_predict_batch_end", ""),
    ("Keras", "test", "on_test_begin", "on_test_batch_end", ""),
    ("Keras", "prediction", "on_predict_begin", "on_predict_batch_end", ""),
)


class Base:
    """A library's callback: it answers every event."""

    def __init__(self) -> None:
        """Take nothing."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("on_"):
            raise AttributeError(name)
        return lambda *_, **__: None


@pytest.fixture(autouse=True)
def _libraries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stand-ins for the libraries; each of our modules is imported again."""
    for name in ("transformers", "transformers.trainer", "lightning", "lightning.pytorch", "keras"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    vars(sys.modules["transformers"])["TrainerCallback"] = Base
    vars(sys.modules["lightning.pytorch"])["Callback"] = Base
    vars(sys.modules["keras"])["callbacks"] = SimpleNamespace(Callback=Base)
    _quiet.SAID.clear()
    yield
    for place in ("transformers", "lightning", "keras"):
        sys.modules.pop(f"gpumem.callbacks.{place}", None)


class Written:
    """A writer that keeps what it gets."""

    def __init__(self) -> None:
        self.values: list[tuple[int, dict[str, int]]] = []
        self.words: list[str] = []

    def scalars(self, values: dict[str, int], step: int) -> None:
        self.values.append((step, values))

    def text(self, words: str, _step: int) -> None:
        self.words.append(words)


def prepared(shell: Shell, name: str, **options: Any) -> None:
    """Put ``fit(n, leaks)`` into the shell, which sends what a trainer sends."""
    sim.use()
    callback = getattr(callbacks, name)(**options)
    begin, step, log, end = EVENTS[name]
    kept: list[Any] = []

    def fit(n: int, *, leaks: bool) -> None:
        getattr(callback, begin[0])(*begin[1])
        for _ in range(n):
            batch = sim.tensor(4 << 20)
            if leaks:
                kept.append(batch)
            getattr(callback, step[0])(*step[1])
            getattr(callback, log[0])(*log[1])
        getattr(callback, end[0])(*end[1])

    shell.user_ns.update(fit=fit, kept=kept)


@pytest.mark.parametrize("name", EVENTS)
def test_growth_inside_of_a_trainer_is_found_and_its_holder(shell: Shell, name: str) -> None:
    prepared(shell, name)
    shell.run("%%gpumem\nfit(12, leaks=True)")
    [leak] = [it for it in gpumem.report().findings if it.device == "sim:0"]
    assert (leak.kind, leak.path, leak.n_runs) == ("leak", ("step",), 12)
    assert leak.bytes_per_run == 4 * MIB
    assert leak.holders[0].name == "kept"


@pytest.mark.parametrize("events", OTHERS)
def test_growth_where_nothing_is_trained_is_found(shell: Shell, events: tuple[str, ...]) -> None:
    name, steps, begin, batch, end = events
    sim.use()
    callback = getattr(callbacks, name)()
    kept: list[Any] = []

    def send(event: str) -> None:
        arguments = {"Lightning": (TRAINER, None), "Keras": (None,)}.get(name, ())
        if event:
            getattr(callback, event)(*arguments, *((None,) * (event == batch and name == "Keras")))

    def evaluate(n: int) -> None:
        send(begin)
        for _ in range(n):
            kept.append(sim.tensor(4 << 20))
            send(batch)
        send(end)

    shell.user_ns.update(evaluate=evaluate, kept=kept)
    shell.run("%%gpumem\nevaluate(13)")
    [leak] = [it for it in gpumem.report().findings if it.device == "sim:0"]
    assert (leak.kind, leak.path) == ("leak", (f"{steps} step",))
    assert leak.bytes_per_run == 4 * MIB
    assert leak.holders[0].name == "kept"


def test_what_is_evaluated_within_a_training_is_part_of_it(shell: Shell) -> None:
    sim.use()
    trainer = SimpleNamespace(**(vars(TRAINER) | {"sanity_checking": True}))
    callback = callbacks.Lightning()

    def fit() -> None:
        callback.on_validation_start(trainer, None)
        callback.on_validation_batch_end(trainer)
        callback.on_train_start(trainer, None)
        for _ in range(12):
            callback.on_train_batch_end(trainer)
            callback.on_validation_start(TRAINER, None)
            callback.on_validation_batch_end(TRAINER)
        callback.on_train_end(trainer, None)

    shell.user_ns.update(fit=fit)
    shell.run("%%gpumem\nfit()")
    labels = gpumem.report().table("samples")._columns()["label"]
    assert {it for it in labels if it} == {"step"}


@pytest.mark.parametrize("name", EVENTS)
def test_a_healthy_training_is_clean(shell: Shell, name: str) -> None:
    prepared(shell, name, label="batch")
    shell.run("%%gpumem\nfit(12, leaks=False)")
    report = gpumem.report()
    assert [it for it in report.findings if it.state in {"leak", "suspected"}] == []
    labels = report.table("samples")._columns()["label"]
    assert "batch" in labels


@pytest.mark.parametrize("name", EVENTS)
def test_levels_and_findings_are_written(shell: Shell, name: str) -> None:
    written = Written()
    prepared(shell, name, writers=[written])
    shell.run("%%gpumem\nfit(12, leaks=True)")
    levels = [values["gpumem/sim_0/allocated_bytes"] for _, values in written.values]
    # Lightning logs with its batches, the others when `log` is called.
    assert levels == [4 * MIB * n for n in range(1, 13)] + [48 * MIB]
    last = written.values[-1][1]
    assert last["gpumem/sim_0/kept_bytes"] == last["gpumem/sim_0/peak_bytes"] == 48 * MIB
    assert not any("host" in name for name in last)
    assert written.words[0].startswith("- **")


class Broken:
    """A writer that fails."""

    def scalars(self, _values: dict[str, int], _step: int) -> None:
        raise OSError("the disk is full")

    text = scalars


@pytest.mark.parametrize("name", EVENTS)
def test_a_training_goes_on_if_a_callback_fails(
    shell: Shell, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    prepared(shell, name, writers=[Broken()])
    with caplog.at_level(logging.WARNING, "gpumem"):
        outcome = shell.run("%%gpumem\nfit(12, leaks=True)")
    assert outcome.raw.success
    assert any(it.path == ("step",) for it in gpumem.report().findings)
    places = [record.message.partition(" failed")[0] for record in caplog.records]
    assert len(places) == len(set(places)) == 2
    assert all("the training goes on: OSError: the disk is full" in it for it in caplog.messages)


@pytest.mark.parametrize("name", ["TrainerCallback", "Lightning"])
def test_one_of_several_processes_writes(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(STATE, "is_world_process_zero", False)
    monkeypatch.setattr(TRAINER, "is_global_zero", False)
    written = Written()
    prepared(shell, name, writers=[written])
    shell.run("%%gpumem\nfit(12, leaks=True)")
    assert (written.values, written.words) == ([], [])
    assert any(it.path == ("step",) for it in gpumem.report().findings)


def test_a_callback_outside_of_any_run_raises_nothing() -> None:
    callback = callbacks.TrainerCallback()
    callback.on_step_end(None, STATE, None)
    callback.on_train_end(None, STATE, None)
    callback.on_train_begin(None, STATE, None)
    callback.on_step_end(None, STATE, None)
    callback.on_train_end(None, STATE, None)


def test_no_library_is_imported_before_it_is_needed() -> None:
    script = (
        "import sys, gpumem, gpumem.callbacks; print(dir(gpumem.callbacks)); "
        "callback = gpumem.callbacks.TensorBoard(None); "
        "names = ('transformers', 'lightning', 'keras', 'wandb', 'mlflow', 'torch'); "
        "assert not set(names) & set(sys.modules)"
    )
    assert "TrainerCallback" in output_of("-c", script)


def test_another_name_is_none_of_them() -> None:
    name = "Fastai"
    with pytest.raises(AttributeError, match="has no attribute 'Fastai'"):
        getattr(callbacks, name)


class Board:
    """The part of ``SummaryWriter`` that is used."""

    def __init__(self) -> None:
        self.scalars: list[tuple[str, int, int]] = []
        self.texts: list[tuple[str, str, int]] = []

    def add_scalar(self, tag: str, scalar_value: int, global_step: int) -> None:
        self.scalars.append((tag, scalar_value, global_step))

    def add_text(self, tag: str, text_string: str, global_step: int) -> None:
        self.texts.append((tag, text_string, global_step))


def test_tensorboard_gets_scalars_and_text() -> None:
    sim.use()
    board = Board()
    writer = callbacks.TensorBoard(board)
    writer.log(0)
    batch = sim.tensor(4 << 20)
    writer.log(1)
    del batch
    writer.finish(2)
    tag = "gpumem/sim_0/allocated_bytes"
    assert [it for it in board.scalars if it[0] == tag] == [
        (tag, 0, 0),
        (tag, 4 * MIB, 1),
        (tag, 0, 2),
    ]
    assert ("gpumem/sim_0/peak_bytes", 4 * MIB, 2) in board.scalars
    assert ("gpumem/sim_0/kept_bytes", 0, 2) in board.scalars
    assert board.texts == [("gpumem/findings", "no findings", 2)]


def test_wandb_gets_its_own_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[Any] = []
    run = SimpleNamespace(
        define_metric=lambda name, step_metric: logged.append((name, step_metric)),
        log=logged.append,
        summary={},
    )
    monkeypatch.setitem(sys.modules, "wandb", ModuleType("wandb"))
    vars(sys.modules["wandb"])["run"] = None
    writer = callbacks.WandB()
    writer.scalars({"a": 1}, 3)
    writer.text("words", 3)
    assert logged == []
    vars(sys.modules["wandb"])["run"] = run
    writer.scalars({"a": 1}, 3)
    writer.scalars({"a": 2}, 4)
    writer.text("words", 4)
    assert logged == [
        ("gpumem/*", "gpumem/step"),
        {"a": 1, "gpumem/step": 3},
        {"a": 2, "gpumem/step": 4},
    ]
    assert run.summary == {"gpumem/findings": "words"}


def test_mlflow_gets_metrics_and_an_artifact(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[Any] = []
    client = SimpleNamespace(
        log_batch=lambda run_id, metrics: logged.append((run_id, metrics)),
        log_text=lambda run_id, text, artifact_file: logged.append((run_id, text, artifact_file)),
    )
    mlflow = ModuleType("mlflow")
    runs: list[Any] = [None]
    vars(mlflow).update(MlflowClient=lambda: client, active_run=lambda: runs[0])
    entities = ModuleType("mlflow.entities")
    vars(entities)["Metric"] = lambda key, value, timestamp, step: (key, value, step)  # noqa: ARG005
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
    writer = callbacks.MLflow()
    writer.scalars({"a": 1}, 3)
    assert logged == []
    runs[0] = SimpleNamespace(info=SimpleNamespace(run_id="r1"))
    writer.scalars({"a": 1}, 3)
    writer.text("words", 3)
    assert logged == [("r1", [("a", 1, 3)]), ("r1", "words", "gpumem/findings.md")]


class TensorBoardLogger:
    """Lightning's, as far as it is used."""

    def __init__(self) -> None:
        self.experiment = Board()
        self.metrics: list[tuple[dict[str, int], int]] = []

    def log_metrics(self, metrics: dict[str, int], step: int) -> None:
        self.metrics.append((metrics, step))


def test_lightnings_own_loggers_are_written(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    logger = TensorBoardLogger()
    monkeypatch.setattr(TRAINER, "loggers", [logger])
    prepared(shell, "Lightning")
    shell.run("%%gpumem\nfit(3, leaks=True)")
    assert [step for _, step in logger.metrics] == [7] * 4
    assert logger.metrics[-1][0]["gpumem/sim_0/kept_bytes"] == 12 * MIB
    [(tag, _, step)] = logger.experiment.texts
    assert (tag, step) == ("gpumem/findings", 7)


class Trainer:
    """Hugging Face's or Lightning's, by its module."""

    def train(self) -> None:
        """Train."""

    fit = train


HINT = "trainer.train is one run: callbacks=[gpumem.callbacks.TrainerCallback()] judges growth"


@pytest.mark.parametrize(
    ("package", "source", "expected"),
    [
        ("transformers.trainer", "trainer.train()", "trainer.train is one run"),
        ("transformers.trainer", "%time\nresult = trainer.train()", "TrainerCallback()"),
        ("transformers.trainer", "for _ in range(2):\n    trainer.train()", "TrainerCallback()"),
        ("transformers.trainer", "Trainer().train()", "Trainer.train is one run"),
        ("lightning.pytorch.trainer.trainer", "trainer.fit()", "Lightning()"),
        ("lightning.pytorch.trainer.trainer", "trainer.train()", None),
        ("transformers.trainer", "# trainer.train()", None),
        ("transformers.trainer", "def later():\n    trainer.train()", None),
        ("transformers.trainer", "other.train()", None),
        ("transformers.trainer", "trainer.fit()", None),
        ("transformers.trainer", "trainer.train() or", None),
        ("mine", "trainer.train()", None),
    ],
)
def test_a_hint_names_the_callback_of_the_trainer_that_is_called(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, package: str, source: str, expected: str | None
) -> None:
    monkeypatch.setattr(Trainer, "__module__", package)
    shell.user_ns.update(trainer=Trainer(), Trainer=Trainer)
    hint = _trainers.hint(shell, source)
    assert (hint is None) if expected is None else (hint is not None and expected in hint)


def test_a_hint_comes_once_and_after_a_long_cell(
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(Trainer, "__module__", "transformers.trainer")
    sim.use()
    shell.user_ns.update(trainer=Trainer())
    shell.run("import gpumem")
    shell.run("%%gpumem\ntrainer.train()")
    gpumem._gpumem._testing.long_from(0)
    request.addfinalizer(lambda: gpumem._gpumem._testing.long_from(5000))
    shell.run("%%gpumem\ngpumem.mark()\ntrainer.train()")
    shell.run("%%gpumem\nx = 1")
    assert not caplog.records
    assert not any("! trainer.train" in line for line in shell.lines)
    for _ in range(2):
        shell.run("%%gpumem\ntrainer.train()")
    [line] = [line for line in shell.lines if "! trainer.train" in line]
    assert HINT in line

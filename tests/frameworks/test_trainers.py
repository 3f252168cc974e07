"""Real trainers: a leak in one of their steps is found by its callback, and its holder is named."""

from __future__ import annotations

import pytest

from .test_oom import in_a_shell

PRELUDE = """
    import logging, os, sys, tempfile, time, warnings
    os.environ.update(KERAS_BACKEND="torch", CUDA_VISIBLE_DEVICES="", TQDM_DISABLE="1")
    folder = tempfile.mkdtemp()
    logged = []
    handler = logging.Handler()
    handler.emit = lambda record: logged.append(record.getMessage())
    logging.getLogger("gpumem").addHandler(handler)
    import torch
    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return 64
        def __getitem__(self, idx):
            return {"x": torch.full((4,), float(idx)), "labels": torch.zeros(1)}
    class Writer:
        def __init__(self):
            self.steps, self.words = [], []
        def scalars(self, values, step):
            assert all(name.startswith("gpumem/host/") for name in values), values
            self.steps.append(step)
        def text(self, words, step):
            self.words.append(words)
    class Broken:
        def scalars(self, values, step):
            raise OSError("full")
        text = scalars
    def growth():
        found = gpumem.report().findings
        return [it for it in found if it.path == ("step",) and it.state in ("leak", "suspected")]
    def leak_with_holder():
        # A busy machine is late with the answer.
        until = time.monotonic() + 60
        while not growth()[0].holders and time.monotonic() < until:
            time.sleep(0.5)
        [leak] = growth()
        return leak
    shell.user_ns.update(kept=[], torch=torch)
    kept = shell.user_ns["kept"]
    def keep():
        kept.append(torch.ones(4 << 20))
    def trained(cell):
        run("%%gpumem -q\\n" + cell)
        assert shell.last_execution_succeeded, shell.last_execution_result.error_in_exec
    def check(fit):
        shell.user_ns.update(fit=fit)
        run("import gpumem")
        written = Writer()
        trained("fit(lambda: None, None)")
        assert growth() == [], growth()
        shell.user_ns.update(keep=keep, written=written, broken=Broken())
        trained("fit(keep, written)")
        leak = leak_with_holder()
        assert leak.state == "leak", leak
        assert leak.holders[0].name == "kept", leak.holders
        assert leak.bytes_per_run > 12 << 20, leak.bytes_per_run
        assert written.steps and "leaks" in written.words[0], (written.steps, written.words)
        assert not logged, logged
        kept.clear()
        trained("fit(lambda: None, broken)")
        assert logged and all("the training goes on" in it for it in logged), logged
"""

TRANSFORMERS = """
    import transformers
    class Model(torch.nn.Module):
        def __init__(self, each):
            super().__init__()
            self.layer, self.each = torch.nn.Linear(4, 1), each
        def forward(self, x, labels=None):
            self.each()
            out = self.layer(x)
            return {"loss": ((out - labels) ** 2).mean(), "logits": out}
    def fit(each, writer):
        arguments = transformers.TrainingArguments(
            folder, max_steps=16, per_device_train_batch_size=4, logging_steps=4, report_to="none",
            use_cpu=True, disable_tqdm=True, save_strategy="no")
        callback = gpumem.callbacks.TrainerCallback(writers=[writer] if writer else ())
        trainer = transformers.Trainer(
            Model(each), arguments, train_dataset=Rows(), callbacks=[callback])
        trainer.train()
"""

LIGHTNING = """
    import PACKAGE as pl
    warnings.filterwarnings("ignore")
    class Model(pl.LightningModule):
        def __init__(self, each):
            super().__init__()
            self.layer, self.each = torch.nn.Linear(4, 1), each
        def training_step(self, batch, _):
            self.each()
            return ((self.layer(batch["x"]) - batch["labels"]) ** 2).mean()
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-6)
    def fit(each, writer):
        callback = gpumem.callbacks.Lightning(writers=[writer] if writer else ())
        trainer = pl.Trainer(
            max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, log_every_n_steps=4,
            callbacks=[callback])
        trainer.fit(Model(each), torch.utils.data.DataLoader(Rows(), batch_size=4))
"""

KERAS = """
    import keras
    def fit(each, writer):
        model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        planted = keras.callbacks.LambdaCallback(on_train_batch_end=lambda *_, **__: each())
        ours = gpumem.callbacks.Keras(writers=[writer] if writer else ())
        model.fit(torch.ones(64, 4), torch.ones(64, 1), batch_size=4, verbose=0,
                  callbacks=[planted, ours])
"""


@pytest.mark.parametrize(
    ("library", "program"),
    [
        ("transformers", TRANSFORMERS),
        ("lightning", LIGHTNING.replace("PACKAGE", "lightning.pytorch")),
        ("pytorch_lightning", LIGHTNING.replace("PACKAGE", "pytorch_lightning")),
        ("keras", KERAS),
    ],
)
def test_a_step_s_leak_is_found_and_a_healthy_training_is_clean(library: str, program: str) -> None:
    in_a_shell(library, f"{PRELUDE}{program}\n    check(fit)\n")


def test_a_loop_of_accelerate_needs_no_callback() -> None:
    in_a_shell(
        "accelerate",
        f"""{PRELUDE}
    import textwrap
    cell = '''
        import accelerate, gpumem
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
    '''
    trained(textwrap.dedent(cell).strip())
    leak = leak_with_holder()
    assert leak.holders[0].name == "kept", leak.holders
""",
    )


def test_tensorboards_own_writer_takes_it() -> None:
    in_a_shell(
        "tensorboard",
        f"""{PRELUDE}
    from torch.utils.tensorboard import SummaryWriter
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    board = SummaryWriter(folder)
    writer = gpumem.callbacks.TensorBoard(board)
    writer.log(1)
    writer.finish(2)
    board.close()
    assert not logged, logged
    read = EventAccumulator(folder)
    read.Reload()
    assert [it.step for it in read.Scalars("gpumem/host/peak_bytes")] == [1, 2]
    assert "gpumem/findings/text_summary" in read.Tags()["tensors"], read.Tags()
""",
    )

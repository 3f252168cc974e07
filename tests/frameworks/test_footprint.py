"""What a model should take, next to what is there, with the real torch."""

from __future__ import annotations

from typing import Any

import gpumem
import pytest
import torch

N = 300
OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "SGD": ("SGD", {"lr": 0.1}),
    "SGD with momentum": ("SGD", {"lr": 0.1, "momentum": 0.9}),
    "Adam": ("Adam", {}),
    "AdamW with amsgrad": ("AdamW", {"amsgrad": True}),
    "fused Adam": ("Adam", {"fused": True}),
    "NAdam": ("NAdam", {}),
    "RAdam": ("RAdam", {}),
    "Adamax": ("Adamax", {}),
    "RMSprop": ("RMSprop", {}),
    "centered RMSprop with momentum": ("RMSprop", {"centered": True, "momentum": 0.9}),
    "Adagrad": ("Adagrad", {}),
    "Adadelta": ("Adadelta", {}),
    "Rprop": ("Rprop", {}),
    "ASGD": ("ASGD", {}),
    "Adafactor": ("Adafactor", {}),
}


def network(dtype: torch.dtype = torch.float32) -> torch.nn.Module:
    layers = [torch.nn.Linear(N, N), torch.nn.ReLU(), torch.nn.Linear(N, 8)]
    return torch.nn.Sequential(*layers).to(dtype)


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    dtype = next(model.parameters()).dtype
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(4, N, dtype=dtype)).sum().backward()
        optimizer.step()


def is_as_expected(footprint: gpumem.types.Footprint) -> bool:
    return all(row.expected_bytes == row.present_bytes for row in footprint.rows)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_after_two_steps_all_is_there_to_the_byte(name: str, dtype: torch.dtype) -> None:
    model = network(dtype)
    kind, options = OPTIMIZERS[name]
    optimizer = getattr(torch.optim, kind)(model.parameters(), **options)
    train(model, optimizer)
    footprint = gpumem.footprint(model, optimizer)
    assert footprint.optimizer == kind
    assert is_as_expected(footprint), footprint


def test_before_training_it_says_what_will_come() -> None:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters())
    expected = {row.part: row.expected_bytes for row in gpumem.footprint(model, optimizer).rows}
    n_bytes = sum(parameter.nbytes for parameter in model.parameters())
    assert expected["gradients"] == n_bytes
    assert expected["optimizer_state"] == 2 * n_bytes + 4 * 4


def test_a_model_without_memory_shows_what_it_would_take() -> None:
    with torch.device("meta"):
        model = torch.nn.Linear(1 << 20, 1 << 10, bias=False, dtype=torch.bfloat16)
    [parameters, gradients] = gpumem.footprint(model).rows
    assert (parameters.device, parameters.expected_bytes) == ("meta", 2 << 30)
    assert parameters.present_bytes == 0
    assert gradients.expected_bytes == 2 << 30
    shown = gpumem.footprint(model)._repr_html_()
    assert shown.count(">2 GiB</td>") == 2
    assert ">0 B</td>" in shown


def test_frozen_and_tied_parameters_count_for_what_they_are() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(N, N, bias=False), torch.nn.Linear(N, N))
    model[1].weight = model[0].weight
    model[1].bias.requires_grad_(requires_grad=False)
    optimizer = torch.optim.Adam(model.parameters())
    train(model, optimizer)
    footprint = gpumem.footprint(model, optimizer)
    assert is_as_expected(footprint)
    parameters, gradients, _ = footprint.rows
    assert parameters.present_bytes == 4 * (N * N + N)
    assert gradients.present_bytes == 4 * N * N
    assert gradients.formula == "one like each of 1 of 2 parameters"


def test_the_optimizer_inside_another_is_found() -> None:
    class Wrapper:
        def __init__(self, optimizer: torch.optim.Optimizer) -> None:
            self.optimizer = optimizer

    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    assert gpumem.footprint(model, Wrapper(optimizer)).optimizer == "SGD"


def test_an_optimizer_of_ones_own_is_not_guessed() -> None:
    class Mine(torch.optim.Optimizer):
        def __init__(self, parameters: Any) -> None:
            super().__init__(parameters, {})

    model = network()
    rows = gpumem.footprint(model, Mine(model.parameters())).rows
    [state] = [row for row in rows if row.part == "optimizer_state"]
    assert state.expected_bytes is None
    assert "Mine" in state.formula
    assert "not known" in repr(state)


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(TypeError, match=r"a torch.nn.Module is needed"):
        gpumem.footprint(3)
    with pytest.raises(TypeError, match=r"a torch.optim.Optimizer is needed"):
        gpumem.footprint(network(), 3)


def test_hooks_and_modes_are_not_entered() -> None:
    entered = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, *args: Any, **kwargs: Any) -> Any:
            entered.append(args)
            return super().__torch_function__(*args, **kwargs)

    class Marked(torch.nn.Parameter):
        @classmethod
        def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any:
            entered.append(args)
            return super().__torch_function__(*args, **kwargs)

    model = torch.nn.Linear(N, N)
    model.weight = Marked(torch.ones(N, N))
    with Mode():
        parameters = dict(model.named_parameters())
        entered.clear()
        assert len(gpumem.footprint(model).rows) == 2
    assert entered == []
    assert torch.is_grad_enabled()
    assert set(parameters) == {"weight", "bias"}

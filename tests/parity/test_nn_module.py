"""Modules: names, attributes, modes and utilities give the same facts in both libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from parity.stories import Stories, Story, check, net, outcome, rows


program = Stories()


# --- names and order ------------------------------------------------------------------------------


@program
def names(lib: Any) -> Any:
    n = net(lib)
    return [
        [name for name, _ in n.named_parameters()],
        [name for name, _ in n.named_parameters(prefix="net")],
        [name for name, _ in n.named_parameters(recurse=False)],
        [name for name, _ in n.named_parameters(remove_duplicate=False)],
        [name for name, _ in n.named_buffers()],
        [name for name, _ in n.named_modules()],
        [name for name, _ in n.named_modules(prefix="a")],
        [name for name, _ in n.named_modules(remove_duplicate=False)],
        [name for name, _ in n.named_children()],
        [type(m).__name__ for m in n.modules()],
        list(n.state_dict()),
        list(n.state_dict(prefix="net.")),
        len(list(n.parameters())),
    ]


@program
def order_after_replacing(lib: Any) -> Any:
    n = net(lib)
    n.scale = lib.nn.Parameter(lib.zeros(4))
    n.first = lib.nn.Linear(3, 4)
    n.count = lib.ones(2)
    return list(n.state_dict()), [name for name, _ in n.named_modules()]


@program
def shared_parameters(lib: Any) -> Any:
    a, b = lib.nn.Linear(2, 2), lib.nn.Linear(2, 2)
    b.weight = a.weight
    s = lib.nn.Sequential(a, b, a)
    found = [name for name, _ in s.named_parameters()]
    return found, list(s.state_dict()), len(list(s.modules())), len(list(s.children()))


@program
def applied(lib: Any) -> Any:
    seen: list[str] = []
    net(lib).apply(lambda m: seen.append(type(m).__name__))
    return seen


@program
def finding_by_name(lib: Any) -> Any:
    n = net(lib)
    return [
        type(n.get_submodule("last.out")).__name__,
        n.get_submodule("") is n,
        tuple(n.get_parameter("last.out.weight").shape),
        tuple(n.get_buffer("count").shape),
        outcome(lambda: n.get_submodule("last.none")),
        outcome(lambda: n.get_parameter("last.out.none")),
        outcome(lambda: n.get_parameter("count")),
        outcome(lambda: n.get_buffer("scale")),
    ]


# --- attributes -----------------------------------------------------------------------------------


@program
def assigning(lib: Any) -> Any:
    nn = lib.nn

    def attempt(change: Callable[[Any], Any]) -> Any:
        n = net(lib)
        error = outcome(lambda: change(n))
        held = [list(getattr(n, h)) for h in ("_parameters", "_buffers", "_modules")]
        return error, held, list(n.state_dict())

    return [
        attempt(lambda n, name=name, value=value: setattr(n, name, value()))
        for name in ("scale", "count", "hidden", "first", "nothing", "absent", "new")
        for value in (
            lambda: None,
            lambda: 3,
            lambda: lib.zeros(1),
            lambda: nn.Parameter(lib.zeros(1)),
            lambda: nn.Buffer(lib.zeros(1)),
            lambda: nn.Buffer(lib.zeros(1), persistent=False),
            lambda: nn.Tanh(),
        )
    ]


@program
def registering(lib: Any) -> Any:
    nn = lib.nn

    def attempt(change: Callable[[Any], Any]) -> Any:
        n = net(lib)
        error = outcome(lambda: change(n))
        return error, [list(getattr(n, h)) for h in ("_parameters", "_buffers", "_modules")]

    ways = [
        lambda n, name: n.register_parameter(name, nn.Parameter(lib.zeros(1))),
        lambda n, name: n.register_parameter(name, None),
        lambda n, name: n.register_parameter(name, lib.zeros(1)),
        lambda n, name: n.register_buffer(name, lib.zeros(1)),
        lambda n, name: n.register_buffer(name, None),
        lambda n, name: n.register_buffer(name, 3),
        lambda n, name: n.add_module(name, nn.Tanh()),
        lambda n, name: n.add_module(name, None),
        lambda n, name: n.register_module(name, 3),
    ]
    names = ("scale", "count", "first", "nothing", "forward", "new", "a.b", "", 3)
    return [attempt(lambda n, w=way, k=name: w(n, k)) for way in ways for name in names]


@program
def parameters_must_be_leaves(lib: Any) -> Any:
    n = net(lib)
    made = lib.nn.Parameter(lib.zeros(2))
    return [
        outcome(lambda: n.register_parameter("p", made * 2)),
        outcome(lambda: setattr(n, "p", made)),
    ]


@program
def deleting(lib: Any) -> Any:
    n = net(lib)
    for name in ("scale", "hidden", "blocks", "nothing", "absent"):
        delattr(n, name)
    return list(n.state_dict()), outcome(lambda: delattr(n, "scale")), hasattr(n, "nothing")


@program
def before_init(lib: Any) -> Any:
    class Early(lib.nn.Module):
        def __init__(self, value: Any):
            self.value = value
            super().__init__()

    values = (3, None, lib.zeros(1), lib.nn.Parameter(lib.zeros(1)), lib.nn.Tanh())
    return [outcome(lambda v=v: Early(v)) for v in values]


@program
def without_forward(lib: Any) -> Any:
    class Empty(lib.nn.Module):
        pass

    return outcome(lambda: Empty()(1)), outcome(lambda: Empty().absent), repr(Empty())


# --- modes, types ---------------------------------------------------------------------------------


@program
def training_mode(lib: Any) -> Any:
    n = net(lib)
    n.last.eval()
    before = [m.training for m in n.modules()]
    after = [m.training for m in n.eval().modules()]
    return before, after, n.train() is n, outcome(lambda: n.train("yes"))


@program
def types(lib: Any) -> Any:
    facts = []
    for change in (
        lambda n: n.float(),
        lambda n: n.half(),
        lambda n: n.double(),
        lambda n: n.to("cpu"),
        lambda n: n.to(lib.float16),
        lambda n: n.to(dtype=lib.float32),
        lambda n: n.cpu(),
        lambda n: n.to(device="cpu", dtype=lib.float32),
        lambda n: n.to(lib.zeros(1)),
        lambda n: n.to("cpu", lib.float16),
        lambda n: n.to(lib.int64),
        lambda n: n.to(wrong=1),
        lambda n: n.type(lib.float32),
    ):
        n = net(lib)
        n.register_buffer("steps", lib.zeros(1, dtype=lib.int64))
        n(rows(lib)).sum().backward()
        error = outcome(lambda n=n, f=change: f(n) is n)
        kinds = [str(t.dtype).rpartition(".")[2] for t in n.state_dict().values()]
        facts.append([error, kinds, str(n.scale.grad.dtype).rpartition(".")[2]])
    return facts


@program
def freezing(lib: Any) -> Any:
    n = net(lib).requires_grad_(False)
    n.last.requires_grad_()
    n(rows(lib)).sum().backward()
    return [p.requires_grad for p in n.parameters()], [p.grad is None for p in n.parameters()]


@program
def zero_grad(lib: Any) -> Any:
    n = net(lib)
    n(rows(lib)).sum().backward()
    gradient = n.scale.grad
    n.zero_grad(set_to_none=False)
    zeros = [p.grad for p in n.parameters() if p.grad is not None]
    same = n.scale.grad is gradient
    n.zero_grad()
    return zeros, same, [p.grad is None for p in n.parameters()]


# --- utilities ------------------------------------------------------------------------------------


@program
def clipping(lib: Any) -> Any:
    utils = lib.nn.utils
    facts = []
    for order in (2.0, 1.0, 3, 0.5, float("inf"), 0.0):
        for limit in (0.1, 1e6, 0.0):
            n = net(lib)
            n(rows(lib)).sum().backward()
            before = utils.clip_grad_norm_(n.parameters(), limit, norm_type=order)
            facts.append([before, [p.grad for p in n.parameters() if p.grad is not None]])
    n = net(lib)
    n(rows(lib)).sum().backward()
    utils.clip_grad_value_(n.parameters(), 0.05)
    facts.append([p.grad for p in n.parameters() if p.grad is not None])
    n.scale.grad[0] = float("nan")
    facts.append(outcome(lambda: utils.clip_grad_norm_(n.scale, 1.0, error_if_nonfinite=True)))
    facts.append([utils.clip_grad_norm_(n.scale, 1.0), n.scale.grad])
    facts.append([utils.clip_grad_norm_([], 1.0), utils.get_total_norm([rows(lib), rows(lib)])])
    return facts


@program
def vectors(lib: Any) -> Any:
    utils, n = lib.nn.utils, net(lib)
    vector = utils.parameters_to_vector(n.parameters())
    vector.sum().backward()
    utils.vector_to_parameters(vector.detach() * 2, n.parameters())
    return [
        vector,
        n.scale,
        n.scale.grad,
        n.last.out.weight,
        outcome(lambda: utils.vector_to_parameters(lib.zeros(3), n.parameters())),
        outcome(lambda: utils.vector_to_parameters([1.0], n.parameters())),
    ]


@pytest.mark.parametrize("story", program, ids=lambda p: p.__name__)
def test_program(story: Story) -> None:
    check(story)

"""Calls that go without Python see everything that the long way sees."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import pytest

import chainrule
from chainrule import backend, compiler, nn, optim
from chainrule.backend import recorded

native = pytest.mark.skipif(backend.why_not_native != "", reason="there are no compiled kernels")


class Training:
    """A step as a method, with all that it uses in attributes."""

    def __init__(self, optimizer: str = "Adam"):
        chainrule.manual_seed(1)
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
        self.optimizer = getattr(optim, optimizer)(self.net.parameters(), lr=0.01)
        self.scale = 1.0
        self.x, self.y = chainrule.randn(6, 4), chainrule.arange(6) % 3

    def step(self, x: Any, y: Any) -> Any:
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.net(x), y) * self.scale
        loss.backward()
        self.optimizer.step()
        return loss

    def state(self) -> list[Any]:
        """All that lives on, as numbers."""
        held = [v for s in self.optimizer.state.values() for v in s.values()]
        tensors = [*self.net.parameters(), *[p.grad for p in self.net.parameters()], *held]
        return [t.tolist() if isinstance(t, chainrule.Tensor) else t for t in tensors]


def change_rate(t: Training) -> None:
    t.optimizer.param_groups[0]["lr"] = 0.5


def change_decay(t: Training) -> None:
    t.optimizer.param_groups[0]["weight_decay"] = 0.1


def change_count(t: Training) -> None:
    for state in t.optimizer.state.values():
        state["step"] = 1


def load_state(t: Training) -> None:
    t.optimizer.load_state_dict(copy.deepcopy(t.optimizer.state_dict()))


def evaluate(t: Training) -> None:
    t.net.eval()


def change_layer(t: Training) -> None:
    t.net[1].p = 0.25


def change_attribute(t: Training) -> None:
    t.scale = 3.0


def seed(t: Training) -> None:
    chainrule.manual_seed(77)


def replace_array(t: Training) -> None:
    t.net[0].weight.data = chainrule.ones(8, 4)


def freeze(t: Training) -> None:
    t.net[0].weight.requires_grad_(False)


def drop_gradients(t: Training) -> None:
    t.net.zero_grad()


def another_layer(t: Training) -> None:
    t.net[2] = copy.deepcopy(t.net[2])


CHANGES = [
    *(change_rate, change_decay, change_count, load_state, evaluate, change_layer),
    *(change_attribute, seed, replace_array, freeze, drop_gradients, another_layer),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_what_changes_is_seen(change: Any) -> None:
    outcomes = []
    for way in (lambda f: f, lambda f: chainrule.compile(f, fullgraph=True)):
        t = Training()
        step = way(t.step)
        losses = [step(t.x, t.y).item() for _ in range(6)]
        change(t)
        losses += [step(t.x, t.y).item() for _ in range(6)]
        outcomes.append((losses, t.state()))
    assert outcomes[0] == outcomes[1]
    assert step.repeated > 5


@native
@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_calls_do_go_without_python(optimizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    t = Training(optimizer)
    step = chainrule.compile(t.step, fullgraph=True)
    for _ in range(5):
        step(t.x, t.y)
    monkeypatch.setattr(compiler.Compiled, "_call", None)
    before = step.repeated
    losses = [step(t.x, t.y) for _ in range(3)]
    assert step.repeated == before + 3
    assert len({loss.item() for loss in losses}) == 3
    with pytest.raises(TypeError, match="NoneType"):
        step(t.x[:3], t.y[:3])  # another form


def test_modules_and_objects_among_the_arguments() -> None:
    @chainrule.compile
    def predicted(net: Any, x: Any) -> Any:
        return net(x)

    net, x = nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 1)), chainrule.ones(1, 2)
    with chainrule.no_grad():
        seen = {predicted(net, x).item() for _ in range(40)}
        assert len(seen) > 1
        net.eval()
        assert {predicted(net, x).item() for _ in range(6)} == {net(x).item()}


def test_modules_that_only_their_calls_tell_of() -> None:
    nets = {"one": [nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 1))]}

    def find() -> Any:
        return nets["one"][0]

    @chainrule.compile
    def predicted(x: Any) -> Any:
        return find()(x)

    x = chainrule.ones(1, 2)
    with chainrule.no_grad():
        for _ in range(6):
            predicted(x)
        find().eval()
        assert {predicted(x).item() for _ in range(6)} == {find()(x).item()}


class Listed(nn.Module):
    """Keeps a number in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.scales = [2.0]

    def forward(self, x: Any) -> Any:
        return x * self.scales[0]


def test_what_lists_and_dictionaries_hold() -> None:
    scale, more, net = [2.0], {"a": (1, [3.0])}, Listed()

    @chainrule.compile
    def f(x: Any) -> Any:
        return net(x) * scale[0] + more["a"][1][0]

    def check() -> None:
        wanted = net.scales[0] * scale[0] + more["a"][1][0]
        for _ in range(6):
            assert f(chainrule.ones(1)).tolist() == [wanted]

    check()
    scale[0] = 5.0
    check()
    more["a"][1][0] = 7.0
    check()
    net.scales[0] = 11.0
    check()
    assert f.repeated >= 8


def test_methods_of_a_class() -> None:
    class Scaled:
        def __init__(self, factor: float):
            self.factor = factor

        @chainrule.compile
        def __call__(self, x: Any) -> Any:
            return x * self.factor

    two, three = Scaled(2.0), Scaled(3.0)
    x = chainrule.ones(2)
    for _ in range(6):
        assert two(x).tolist() == [2.0, 2.0]
        assert three(x).tolist() == [3.0, 3.0]
    two.factor = 5.0
    assert two(x).tolist() == [5.0, 5.0]


def test_with_and_without_gradients_have_records_of_their_own() -> None:
    @chainrule.compile
    def f(x: Any) -> Any:
        return (x * 2).detach()

    for _ in range(5):
        f(chainrule.ones(2))
        with chainrule.no_grad():
            f(chainrule.ones(2))
    assert f.repeated == 4
    assert len(f.entries) == 2


@native
def test_results_are_the_callers_own_and_inputs_stay() -> None:
    f = chainrule.compile(lambda x: x * 2, fullgraph=True)
    x = chainrule.ones(3)
    results = [f(x + i) for i in range(8)]
    assert [r[0].item() for r in results] == [2.0 + 2 * i for i in range(8)]
    results[-1].add_(1)
    assert f(x).tolist() == [2.0] * 3
    assert x.tolist() == [1.0] * 3


def test_a_call_inside_a_recording_is_recorded_too() -> None:
    inner = chainrule.compile(lambda x: x * 2)
    for _ in range(5):
        inner(chainrule.ones(3))
    outer = chainrule.compile(lambda x: inner(x) + 1, fullgraph=True)
    for _ in range(5):
        assert outer(chainrule.ones(3)).tolist() == [3.0] * 3
    assert [step.kernel for step in outer.program.instructions] == ["mul", "add"]
    assert not recorded.under_way


def test_nothing_is_kept_alive() -> None:
    def make() -> Any:
        t = Training()
        step = chainrule.compile(t.step)
        for _ in range(6):
            step(t.x, t.y)
        return weakref.ref(t.net), weakref.ref(step)

    references = make()
    gc.collect()
    assert [r() for r in references] == [None, None]


def test_compiled_modules_can_be_copied_and_pickled() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    twin = chainrule.compile(net)
    x = chainrule.ones(1, 2)
    with chainrule.no_grad():
        for other in (copy.deepcopy(twin), pickle.loads(pickle.dumps(twin)), twin):
            assert isinstance(other, nn.Sequential)
            for _ in range(5):
                assert other(x).tolist() == net(x).tolist()
            assert other.forward.repeated == 2
    assert twin[0].weight is net[0].weight
    assert chainrule.compile(twin) is twin


@native
def test_a_compiled_layer_is_called_inside_a_sequence() -> None:
    layer = chainrule.compile(nn.Linear(2, 3))
    net = nn.Sequential(layer, nn.ReLU())
    with chainrule.no_grad():
        for _ in range(5):
            net(chainrule.ones(1, 2))
    assert layer.forward.repeated == 2


@native
def test_shortcuts_are_made_of_what_they_need() -> None:
    module = backend.native_module()
    assert module is not None
    with pytest.raises(AttributeError, match="tensor"):
        module.Shortcut(object())
    with pytest.raises(TypeError, match="Shortcut or None"):
        chainrule.compile(lambda x: x).take(3)


@native
def test_gradients_of_the_call_before_cannot_be_differentiated_any_more() -> None:
    """They are memory of the program, which the next call has changed; before, they can."""
    net = nn.Linear(3, 2)
    optimizer = optim.SGD(net.parameters(), lr=0.1)

    @chainrule.compile
    def step(x: chainrule.Tensor) -> chainrule.Tensor:
        optimizer.zero_grad()
        loss = (net(x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    x = chainrule.ones(4, 3)
    for calls in (4, 1, 2):  # the first that are repeated, and those that follow
        for _ in range(calls):
            step(x)
        held = net.weight.grad
        w = chainrule.ones(2, 3, requires_grad=True)
        (held * w).sum().backward()
        assert chainrule.equal(w.grad, held)
        late = (held * w).sum()
        step(x)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            late.backward()

"""Modules and containers: the same little program gives the same facts in both libraries."""

from __future__ import annotations

import copy
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
from helpers import assert_close

import chainrule

torch = pytest.importorskip("torch")

PROGRAMS: list[Callable[[Any], Any]] = []


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS.append(function)
    return function


def net(lib: Any) -> Any:
    """A network that holds something of every kind, and one module twice."""
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(3, 4)
            self.scale = nn.Parameter(lib.ones(4))
            self.register_buffer("count", lib.zeros(2))
            self.register_buffer("hidden", lib.zeros(1), persistent=False)
            self.blocks = nn.ModuleList([nn.Linear(4, 4, bias=False), self.first])
            self.last = nn.Sequential(OrderedDict(act=nn.Tanh(), out=nn.Linear(4, 2)))
            self.nothing = None
            self.register_parameter("absent", None)

        def forward(self, x: Any) -> Any:
            return self.last(self.blocks[0](self.first(x) * self.scale))

    module = Net().double()
    with lib.no_grad():
        for k, p in enumerate(module.parameters()):
            p.copy_(lib.arange(p.numel()).reshape(p.shape) * 0.07 * (-1) ** k - 0.2)
    return module


def rows(lib: Any, requires_grad: bool = True) -> Any:
    x = lib.tensor([[0.3, -0.2, 1.0], [0.5, 0.1, -0.4]], dtype=lib.float64)
    return x.requires_grad_(requires_grad)


def outcome(function: Callable[[], Any]) -> Any:
    """What a call gives, or the type of its exception."""
    try:
        result = function()
    except Exception as error:  # noqa: BLE001
        return type(error).__name__
    return result if isinstance(result, (str, int, list, tuple)) else "fine"


def assert_same(ours: Any, theirs: Any) -> None:
    """Tensors and numbers to rounding, everything else exactly."""
    __tracebackhide__ = True
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        ours, theirs = list(ours.values()), list(theirs.values())
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), f"{ours} is not {theirs}"
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b)
    elif isinstance(theirs, (float, torch.Tensor)):
        assert_close(ours, theirs, rtol=1e-9, atol=1e-12)
    else:
        assert ours == theirs


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


# --- hooks ----------------------------------------------------------------------------------------


@program
def forward_hooks(lib: Any) -> Any:
    layer = lib.nn.Linear(3, 2).double()
    with lib.no_grad():
        layer.weight.fill_(0.5)
        layer.bias.fill_(0.25)
    order: list[str] = []
    x = rows(lib, False)
    hooks = [
        layer.register_forward_pre_hook(lambda m, a: order.append("first")),
        layer.register_forward_pre_hook(lambda m, a: a[0] + 1),
        layer.register_forward_pre_hook(lambda m, a: order.append("prepended"), prepend=True),
        layer.register_forward_hook(lambda m, a, y: order.append(str(float(a[0][0, 0])))),
        layer.register_forward_hook(lambda m, a, y: y * 2),
        layer.register_forward_hook(lambda m, a, y: order.append("early"), prepend=True),
        layer.register_forward_hook(lambda m, a, k, y: y + len(k), with_kwargs=True),
        layer.register_forward_pre_hook(lambda m, a, k: (a, {}), with_kwargs=True),
    ]
    outputs = [layer(x), layer(x, scale=3)]
    for hook in hooks:
        hook.remove()
        outputs.append(layer(x))
    return outputs, order


@program
def failing_hooks(lib: Any) -> Any:
    seen: list[Any] = []
    layer = lib.nn.Linear(3, 2)
    layer.register_forward_hook(lambda m, a, y: seen.append(("plain", y is None)))
    layer.register_forward_hook(lambda m, a, y: seen.append(("always", y)), always_call=True)
    error = outcome(lambda: layer(lib.zeros(2, 5)))
    layer.register_forward_pre_hook(lambda m, a, k: 3, with_kwargs=True)
    return error, seen, outcome(lambda: layer(lib.zeros(2, 3)))


@program
def hook_as_context(lib: Any) -> Any:
    seen: list[int] = []
    layer = lib.nn.Tanh()
    with layer.register_forward_hook(lambda m, a, y: seen.append(1)):
        layer(lib.zeros(1))
    layer(lib.zeros(1))
    return seen


def pair(lib: Any) -> Any:
    """A module of several inputs (one not a tensor) and several outputs."""

    class Pair(lib.nn.Module):
        def forward(self, x: Any, factor: int, y: Any) -> Any:
            return x * factor + y, "text", y**2

    return Pair()


@program
def backward_hooks(lib: Any) -> Any:
    seen: list[Any] = []
    module = pair(lib)
    module.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
    module.register_full_backward_pre_hook(lambda m, go: seen.append(go))
    module.register_full_backward_hook(lambda m, gi, go: (gi[0] * 2, None, gi[2]))
    x, y = rows(lib), rows(lib)
    a, _, b = module(x, 3, y)
    (a.sum() + (b * b).sum()).backward()
    return seen, x.grad, y.grad


@program
def backward_hooks_with_constants(lib: Any) -> Any:
    seen: list[Any] = []
    module = pair(lib)
    # Of the input that has no gradient, PyTorch says zeros; ours says None.
    module.register_full_backward_hook(lambda m, gi, go: seen.append((gi[1:], go)))
    y = rows(lib)
    a, _, b = module(rows(lib, False), 3, y)
    (a.sum() + b.sum()).backward()
    layer = lib.nn.Linear(3, 2).double()
    with lib.no_grad():
        layer.weight.fill_(0.5)
    layer.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
    layer(rows(lib, False)).sum().backward()
    return seen, y.grad, layer.weight.grad


@program
def replaced_gradients(lib: Any) -> Any:
    layer = lib.nn.Linear(3, 2).double()
    with lib.no_grad():
        layer.weight.copy_(lib.arange(6).reshape(2, 3) * 0.1)
    x = rows(lib)
    layer.register_full_backward_pre_hook(lambda m, go: (go[0] * 3,))
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0] + go[0].sum(),))
    layer(x).sum().backward()
    first = [x.grad.clone(), layer.weight.grad.clone()]
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    return first, outcome(lambda: layer(x).sum().backward())


# --- states ---------------------------------------------------------------------------------------


@program
def loading(lib: Any) -> Any:
    facts = []
    for change in (
        lambda s: s.pop("scale"),
        lambda s: s.update(extra=lib.zeros(1)),
        lambda s: s.update(scale=lib.zeros(3)),
        lambda s: s.update(scale=3),
        lambda s: s.update({"last.out.bias": lib.full((2,), 7.0)}),
        lambda s: s.clear(),
    ):
        for strict in (True, False):
            for assign in (True, False):
                n, state = net(lib), dict(net(lib).state_dict())
                change(state)
                facts.append(
                    [
                        outcome(
                            lambda n=n, s=state, k=strict, a=assign: [
                                *map(list, n.load_state_dict(s, strict=k, assign=a))
                            ]
                        ),
                        n.last.out.bias,
                        str(n.last.out.bias.dtype).rpartition(".")[2],
                    ]
                )
    return facts, outcome(lambda: net(lib).load_state_dict(3))


@program
def messages_of_loading(lib: Any) -> Any:
    state = dict(net(lib).state_dict())
    del state["scale"], state["first.bias"]
    state |= {"more": lib.zeros(1), "count": lib.zeros(3), "first.weight": lib.zeros(1, 2)}
    try:
        net(lib).load_state_dict(state)
    except RuntimeError as error:
        lines = [line.strip() for line in str(error).split("\n\t")]
        return lines[:3], [line.partition(":")[0] for line in lines[3:]]
    return []


@program
def state_hooks(lib: Any) -> Any:
    n, seen = net(lib), []
    n.last.register_state_dict_pre_hook(lambda m, p, k: seen.append((type(m).__name__, p, k)))
    n.last.register_state_dict_post_hook(lambda m, s, p, meta: s.update({p + "more": 1}))
    n.last.register_load_state_dict_pre_hook(
        lambda m, s, p, meta, strict, missing, unexpected, errors: (s.pop(p + "more"), None)[1]
    )
    n.register_load_state_dict_post_hook(lambda m, keys: seen.append(list(keys.missing_keys)))
    n.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    state = n.state_dict()
    del state["scale"]
    return list(state), str(n.load_state_dict(state)), seen


@program
def extra_state(lib: Any) -> Any:
    class Counter(lib.nn.Module):
        count = 0

        def get_extra_state(self) -> Any:
            return self.count

        def set_extra_state(self, state: Any) -> None:
            self.count = state

    a, b = Counter(), Counter()
    a.count = 5
    b.load_state_dict(a.state_dict())
    return dict(a.state_dict()), b.count, outcome(lambda: b.load_state_dict({}))


@program
def copies(lib: Any) -> Any:
    n = net(lib)
    n(rows(lib)).sum().backward()
    other = copy.deepcopy(n)
    with lib.no_grad():
        n.scale.fill_(9)
    tied = other.blocks[1] is other.first
    return other.scale, tied, [p.grad is None for p in other.parameters()], other(rows(lib))


@program
def state_shares_memory(lib: Any) -> Any:
    n = net(lib)
    n.state_dict()["scale"].fill_(9)
    kept = n.state_dict(keep_vars=True)["scale"]
    return n.scale, kept is n.scale, n.state_dict()["scale"].requires_grad


# --- containers -----------------------------------------------------------------------------------


@program
def sequential(lib: Any) -> Any:
    nn = lib.nn

    def fresh() -> Any:
        return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2), nn.Sigmoid())

    def attempt(change: Callable[[Any], Any]) -> Any:
        s = fresh()
        result = outcome(lambda: repr(change(s)))
        return result, repr(s), list(s.state_dict())

    return [
        attempt(f)
        for f in (
            lambda s: s[0],
            lambda s: s[-1],
            lambda s: s[1:3],
            lambda s: s[::-1],
            lambda s: s[9],
            lambda s: s.__setitem__(1, nn.ReLU()),
            lambda s: s.__setitem__(9, nn.ReLU()),
            lambda s: s.__delitem__(0),
            lambda s: s.__delitem__(slice(1, 3)),
            lambda s: s.pop(1),
            lambda s: s.append(nn.ReLU()),
            lambda s: s.insert(1, nn.ReLU()),
            lambda s: s.pop(-1),
            lambda s: s.insert(9, nn.ReLU()),
            lambda s: s.insert(-1, nn.ReLU()),
            lambda s: s.append(3),
            lambda s: s.extend([nn.ReLU(), nn.Tanh()]),
            lambda s: s + fresh(),
            lambda s: s.__add__([1]),
            lambda s: s.__iadd__(fresh()),
            lambda s: s * 2,
            lambda s: 2 * s,
            lambda s: s * 0,
            lambda s: s * 1.5,
            lambda s: s.__imul__(2),
            lambda s: len(s),
            lambda s: s.add_module("2", s[0]),
            lambda s: [type(m).__name__ for m in s],
            lambda s: nn.Sequential(OrderedDict(a=s, b=s)),
        )
    ]


@program
def module_list(lib: Any) -> Any:
    nn = lib.nn

    def attempt(change: Callable[[Any], Any]) -> Any:
        m = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2)])
        result = outcome(lambda: repr(change(m)))
        return result, repr(m), list(m.state_dict())

    return [
        attempt(f)
        for f in (
            lambda m: m[0],
            lambda m: m[-1],
            lambda m: m[1:],
            lambda m: m[4],
            lambda m: m.pop(0),
            lambda m: m.append(nn.Tanh()),
            lambda m: m.extend([nn.Tanh()]),
            lambda m: m.extend(3),
            lambda m: m.__delitem__(1),
            lambda m: m.__delitem__(slice(0, 2)),
            lambda m: m.__add__([nn.Tanh()]),
            lambda m: m.__iadd__([nn.Tanh()]),
            lambda m: m.__setitem__(2, nn.Linear(2, 2)),
            lambda m: m(1),
            lambda m: len(m),
            lambda m: m.append(3),
            lambda m: nn.ModuleList(),
            lambda m: nn.ModuleList([nn.ModuleList(m), nn.ModuleList(m)]),
        )
    ]


@program
def module_dict(lib: Any) -> Any:
    nn = lib.nn

    def attempt(change: Callable[[Any], Any]) -> Any:
        m = nn.ModuleDict({"b": nn.Linear(2, 2), "a": nn.Tanh()})
        result = outcome(lambda: repr(change(m)))
        return result, repr(m), list(m)

    return [
        attempt(f)
        for f in (
            lambda m: m["a"],
            lambda m: m["c"],
            lambda m: m.pop("b"),
            lambda m: m.pop("c"),
            lambda m: m.update({"c": nn.Tanh(), "a": nn.ReLU()}),
            lambda m: m.update([("c",)]),
            lambda m: m.update(3),
            lambda m: m.update([3]),
            lambda m: m.update([["c", nn.Tanh()]]),
            lambda m: m.clear(),
            lambda m: m.__delitem__("a"),
            lambda m: "a" in m,
            lambda m: len(m),
            lambda m: list(m.keys()),
            lambda m: list(m.values()),
            lambda m: list(m.items()),
            lambda m: m.__setitem__("keys", nn.Tanh()),
            lambda m: m.__setitem__("a.b", nn.Tanh()),
            lambda m: m.__setitem__("c", 3),
            lambda m: m(1),
            lambda m: m.update(nn.ModuleDict(m)),
        )
    ]


@program
def parameter_list(lib: Any) -> Any:
    nn = lib.nn

    def attempt(change: Callable[[Any], Any]) -> Any:
        p = nn.ParameterList([lib.zeros(2), nn.Parameter(lib.ones(2, 3))])
        result = outcome(lambda: str(change(p)).replace("chainrule.", "torch."))
        return result, repr(p).replace("chainrule.", "torch."), list(p.state_dict())

    return [
        attempt(f)
        for f in (
            lambda p: p,
            lambda p: p[-1].shape,
            lambda p: p[2],
            lambda p: p[1:],
            lambda p: len(p),
            lambda p: p.append(lib.zeros(3)),
            lambda p: p.extend([lib.zeros(3), "text"]),
            lambda p: p.extend(lib.zeros(3)),
            lambda p: p.extend(3),
            lambda p: p(1),
            lambda p: p.__iadd__([lib.zeros(1)]),
            lambda p: p.__setitem__(0, lib.ones(5)),
            lambda p: p.__setitem__(7, lib.ones(5)),
            lambda p: [q.requires_grad for q in p],
            lambda p: nn.ParameterList(),
            lambda p: nn.ParameterList([lib.zeros(4)]),
        )
    ]


@program
def parameter_dict(lib: Any) -> Any:
    nn = lib.nn

    def attempt(change: Callable[[Any], Any]) -> Any:
        p = nn.ParameterDict({"b": lib.zeros(2), "a": nn.Parameter(lib.ones(2, 3))})
        result = outcome(lambda: str(change(p)).replace("chainrule.", "torch."))
        return result, list(p), list(p.state_dict())

    return [
        attempt(f)
        for f in (
            lambda p: p["a"].shape,
            lambda p: p.pop("a").shape,
            lambda p: p.popitem()[0],
            lambda p: p.get("c", 3),
            lambda p: p.get("a").shape,
            lambda p: p.setdefault("c", 4),
            lambda p: p.setdefault("a", 4).shape,
            lambda p: p.clear(),
            lambda p: list(p.copy()),
            lambda p: p.update({"z": lib.zeros(1), "c": lib.zeros(1)}),
            lambda p: p.update(3),
            lambda p: p.update(OrderedDict(z=lib.zeros(1), c=lib.zeros(1))),
            lambda p: p.update([3]),
            lambda p: p.update([("z", lib.zeros(1)), ("c", 5)]),
            lambda p: p.update([(1, 2, 3)]),
            lambda p: list(p | nn.ParameterDict({"c": lib.zeros(1)})),
            lambda p: list(reversed(p)),
            lambda p: list(p.fromkeys(["x", "y"], lib.zeros(1))),
            lambda p: len(p),
            lambda p: p(1),
            lambda p: [k for k, _ in p.items()],
            lambda p: len(list(p.values())),
            lambda p: p.__delitem__("a"),
            lambda p: p.__setitem__("b", "text"),
            lambda p: "b" in p,
            lambda p: p.__ior__({"q": lib.zeros(1)}) is p,
        )
    ]


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


@pytest.mark.parametrize("story", PROGRAMS, ids=lambda p: p.__name__)
def test_program(story: Callable[[Any], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = (story(lib) for lib in (chainrule, torch))
    assert_same(ours, theirs)


def test_messages_of_loading_are_not_empty() -> None:
    first, rest = messages_of_loading(chainrule)
    assert "more" in first[2]
    assert len(rest) == 2

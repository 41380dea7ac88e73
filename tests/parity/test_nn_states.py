"""Hooks and states of modules give the same facts in both libraries."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from parity.stories import Stories, Story, check, net, outcome, rows

import chainrule

program = Stories()


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


@pytest.mark.parametrize("story", program, ids=lambda p: p.__name__)
def test_program(story: Story) -> None:
    check(story)


def test_messages_of_loading_are_not_empty() -> None:
    first, rest = messages_of_loading(chainrule)
    assert "more" in first[2]
    assert len(rest) == 2

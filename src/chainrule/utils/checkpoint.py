"""Memory for time: activations are not kept for the backward pass, but computed again in it.

In PyTorch there are two implementations, chosen by ``use_reentrant``. Here there is one, for both:
parameters get their gradients even if no input requires one, ``autograd.grad``, ``inputs=`` and
derivatives of any order work, and tensors may come in lists and dicts.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from chainrule.absent import absent
from chainrule.autograd.checkpoint import CheckpointError, Context, recomputed
from chainrule.nn import Sequential
from chainrule.tensor import Tensor

__all__ = [
    "CheckpointError",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "detach_variable",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]


def noop_context_fn() -> tuple[Context, Context]:
    """Nothing around the function, the first time and the second."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Context, Context]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """``function(*args, **kwargs)``, of which only the arguments are kept for the backward pass.

    The backward pass calls the function again, with the same random numbers, and must find it
    computing the same. What it changes besides (the running statistics of BatchNorm) it changes
    twice, as in PyTorch. A function that changes its arguments in place is not called again; its
    activations are kept.

    Args:
        use_reentrant: chooses between two implementations in PyTorch; there is one here.
        context_fn: returns two contexts, for the first call and for the second.
        determinism_check: "default" compares shapes, types and the tensors used; "none" does not.
        debug: longer messages in PyTorch.
        early_stop: whether PyTorch may break off the second call.
        preserve_rng_state: whether the second call draws the random numbers of the first.

    >>> import chainrule as torch
    >>> from chainrule.utils.checkpoint import checkpoint
    >>> x = torch.tensor([0.5], requires_grad=True)
    >>> y = checkpoint(lambda x: x.tanh().exp().sin(), x, use_reentrant=False)
    >>> y.grad_fn
    <CheckpointBackward>
    >>> y.backward()
    >>> x.grad
    tensor([-0.0208])
    """
    if determinism_check not in ("default", "none"):
        raise ValueError(
            "checkpoint: determinism_check should be one of 'default' and 'none', got "
            f"{determinism_check!r}"
        )
    return recomputed(
        function,
        args,
        kwargs,
        preserve_rng_state=preserve_rng_state,
        contexts=context_fn(),
        check=determinism_check == "default",
    )


def checkpoint_sequential(
    functions: Sequential | Sequence[Callable[[Any], Any]],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    *,
    preserve_rng_state: bool = True,
) -> Any:
    """A chain of functions in so many parts of about the same length, each a :func:`checkpoint`.

    The last part is not: its activations are needed first.

    >>> import chainrule as torch
    >>> net = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(6)])
    >>> checkpoint_sequential(net, 3, torch.ones(1, 2), use_reentrant=False).shape
    chainrule.Size([1, 2])
    """
    chain: list[Callable[[Any], Any]] = []
    chain.extend(functions.children() if isinstance(functions, Sequential) else functions)
    if not 1 <= segments <= max(len(chain), 1):
        raise ValueError(
            f"checkpoint_sequential: expected 1 to {len(chain)} segments for {len(chain)} "
            f"functions, got {segments}"
        )
    size = len(chain) // segments
    for start in range(0, size * (segments - 1), size):
        part = _in_turn(chain[start : start + size])
        input = checkpoint(part, input, preserve_rng_state=preserve_rng_state)
    return _in_turn(chain[size * (segments - 1) :])(input)


def _in_turn(functions: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def composed(input: Any) -> Any:
        for function in functions:
            input = function(input)
        return input

    return composed


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tensors without history, asking for a gradient where they did."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            f"detach_variable: Only tuple of tensors is supported, got {type(inputs).__name__}"
        )
    return tuple(
        x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs
    )


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warns if no tensor requires a gradient."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """A block with longer messages in PyTorch."""
    yield


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """A block in which PyTorch may break off the second call, or not; it is never broken off."""
    yield


ABSENT = {
    "CheckpointFunction": "call checkpoint(function, *args)",
    **dict.fromkeys(
        ("DefaultDeviceType", "get_device_states", "set_device_states"),
        "random numbers are drawn on the host, and checkpoint() keeps them by itself",
    ),
    **dict.fromkeys(
        (
            "CheckpointPolicy",
            "GraphExecGroup",
            "SAC_IGNORED_OPS",
            "SelectiveCheckpointContext",
            "create_selective_checkpoint_contexts",
        ),
        "a checkpoint keeps nothing of what a function computes; put what is to be kept outside",
    ),
}


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)

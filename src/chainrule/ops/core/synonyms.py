"""Other words for arguments, ``axis`` for ``dim`` and ``keepdims`` for ``keepdim``, and ``out``.

:func:`numpy_names` declares that a function takes them, as PyTorch's do. The function keeps one
name for each argument; the words are exchanged before it is called, and nothing happens where no
keyword was given. ``sum`` and ``mean`` are called too often to pass through another function: they
take the words as ``**names`` and ask :func:`in_words_of_pytorch` if there are any.
:func:`also_named` is the same for further words, and :func:`takes_out` for a tensor to write into.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypedDict, TypeVar
from weakref import WeakSet

from chainrule.ops.core.out import into
from chainrule.tensor import Tensor
from chainrule.typing import Dims

__all__ = ["NumPyNames", "also_named", "in_words_of_pytorch", "numpy_names", "takes_out"]

F = TypeVar("F", bound=Callable[..., Any])

WORDS = {"axis": "dim", "keepdims": "keepdim"}


class NumPyNames(TypedDict, total=False):
    """The words of a reduction."""

    axis: Dims
    keepdims: bool
    out: Tensor | None


def numpy_names(function: F) -> F:
    """Makes ``axis`` and ``keepdims`` keywords for the parameters ``dim`` and ``keepdim``.

    >>> import chainrule
    >>> chainrule.ones(2, 3).amax(axis=1, keepdims=True)
    tensor([[1.],
            [1.]])
    """
    code: Any = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    meant = {word: name for word, name in WORDS.items() if name in names}
    if code.co_flags & inspect.CO_VARKEYWORDS:
        function.synonyms = meant  # type: ignore[attr-defined]
        return function
    return _called(function, meant)


def also_named(**words: str) -> Callable[[F], F]:
    """Makes further keywords for parameters, beside ``axis`` and ``keepdims``.

    >>> import chainrule
    >>> chainrule.arange(3).split(split_size=2)
    (tensor([0, 1]), tensor([2]))
    """

    def declare(function: F) -> F:
        code: Any = function.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        numpy = {word: name for word, name in WORDS.items() if name in names}
        return _called(function, numpy | words)

    return declare


def takes_out(exact: bool = True, typed: bool = False, apart: bool = False) -> Callable[[F], F]:
    """Gives a function the keyword ``out``: a tensor, or several, for the result to be written to.

    ``exact`` says that its type must be that of the result, ``typed`` that the function makes a
    tensor of that type if no other is asked for, ``apart`` that it may not be one of the inputs.

    >>> import chainrule
    >>> chainrule.arange(3, out=chainrule.empty(0))
    tensor([0., 1., 2.])
    """

    def declare(function: F) -> F:
        declared: Any = function
        op, words = declared.__name__, {}
        if declared in _made:  # one call for both: around the function itself
            declared, words = declared.__wrapped__, declared.synonyms

        def write(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            out = kwargs.pop("out")
            if out is None:
                return call(*args, **kwargs)
            if typed and kwargs.get("dtype") is None and isinstance(out, Tensor):
                kwargs["dtype"] = out.dtype
            inputs = (*args, *kwargs.values())
            return into(op, out, call(*args, **kwargs), inputs, exact, apart)

        return _called(declared, words, write)

    return declare


_made: WeakSet[Callable[..., Any]] = WeakSet()


def _called(function: F, meant: dict[str, str], write: Callable[..., Any] | None = None) -> F:
    """The function under another call: with the words exchanged, its result written."""
    code: Any = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            if write is not None and "out" in kwargs:
                return write(call, args, kwargs)
            for word in kwargs:
                if word in meant:
                    given = dict.fromkeys(names[: min(len(args), code.co_argcount)])
                    kwargs = _exchanged(function.__name__, meant, given, kwargs)
                    break
            return function(*args, **kwargs)
        return function(*args)

    update_wrapper(call, function)
    if meant:
        call.synonyms = meant  # type: ignore[attr-defined]
    _made.add(call)
    return call  # type: ignore[return-value]


def in_words_of_pytorch(op: str, names: NumPyNames, dim: Dims, keepdim: bool) -> tuple[Dims, bool]:
    """``dim`` and ``keepdim`` of a reduction that was given other words for them."""
    given = {"dim": dim} if dim is not None else {}
    if keepdim:
        given["keepdim"] = keepdim
    words = _exchanged(op, WORDS, given, dict(names)) | given
    unknown = [word for word in words if word not in ("dim", "keepdim")]
    if unknown:
        raise TypeError(f"{op}() got an unexpected keyword argument {unknown[0]!r}")
    return words.get("dim"), words.get("keepdim", False)


def _exchanged(
    op: str, meant: dict[str, str], given: dict[str, Any], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Keyword arguments under the names of the parameters; ``given`` are those without a word."""
    out: dict[str, Any] = {}
    for word, value in kwargs.items():
        name = meant.get(word, word)
        if name in given or name in out:
            synonym = next(w for w, n in meant.items() if n == name)
            raise TypeError(
                f"{op}(): {name!r} and {synonym!r} are the same argument; give one of them"
            )
        out[name] = value
    return out

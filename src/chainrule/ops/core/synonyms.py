"""NumPy's words for arguments: ``axis`` for ``dim``, ``keepdims`` for ``keepdim``.

:func:`numpy_names` declares that a function takes them, as PyTorch's do. The function keeps one
name for each argument; the words are exchanged before it is called, and nothing happens where no
keyword was given. ``sum`` and ``mean`` are called too often to pass through another function: they
take the words as ``**names`` and ask :func:`in_words_of_pytorch` if there are any.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypedDict, TypeVar

from chainrule.typing import Dims

__all__ = ["NumPyNames", "in_words_of_pytorch", "numpy_names"]

F = TypeVar("F", bound=Callable[..., Any])

WORDS = {"axis": "dim", "keepdims": "keepdim"}


class NumPyNames(TypedDict, total=False):
    """The words of a reduction."""

    axis: Dims
    keepdims: bool


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

    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            for word in kwargs:
                if word in meant:
                    given = dict.fromkeys(names[: min(len(args), code.co_argcount)])
                    kwargs = _exchanged(function.__name__, meant, given, kwargs)
                    break
            return function(*args, **kwargs)
        return function(*args)

    update_wrapper(call, function)
    call.synonyms = meant  # type: ignore[attr-defined]
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

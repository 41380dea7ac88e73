"""What the forward computation of a user's own operation leaves for its derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chainrule.tensor import Tensor

__all__ = ["FunctionCtx"]


class FunctionCtx:
    """What ``forward`` leaves for ``backward`` and ``jvp``; other attributes may be set freely."""

    def __init__(self) -> None:
        self.needs_input_grad: tuple[bool, ...] = ()
        self.materialize_grads = True
        self.dirty: tuple[Tensor, ...] = ()
        self._saved: tuple[Any, ...] = ()
        self._saved_forward: tuple[Any, ...] = ()
        self._seq_of_saved: tuple[int, ...] = ()
        self._non_differentiable: tuple[Any, ...] = ()

    if TYPE_CHECKING:  # what the user sets

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for ``backward``, which reads them as ``ctx.saved_tensors``."""
        self._saved = tensors
        self._seq_of_saved = tuple(0 if t is None else t._version for t in tensors)

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for ``jvp``, which reads them as ``ctx.saved_tensors``."""
        self._saved_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors that were saved, checked not to have changed since."""
        for t, version in zip(self._saved, self._seq_of_saved, strict=True):
            if t is not None and t._version != version:
                raise RuntimeError(
                    "Function: one of the variables needed for gradient computation has been "
                    "modified by an inplace operation after save_for_backward"
                )
        return self._saved or self._saved_forward

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Says that these outputs have no derivative."""
        self._non_differentiable = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Says that these inputs were changed in place."""
        self.dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether gradients that are not there reach ``backward`` as zeros (default) or as None."""
        self.materialize_grads = value

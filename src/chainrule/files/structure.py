"""Nested values as JSON with the tensors beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from chainrule import nn
from chainrule.backend import dtypes
from chainrule.data.preprocess import Pipeline, Transform
from chainrule.files import objects
from chainrule.files.architecture import Describer, Rebuilder
from chainrule.nn.parameter import Parameter
from chainrule.ops.elementwise.complex_numbers import complex, imag, real
from chainrule.ops.shape.stacking import stack
from chainrule.random import fork_rng
from chainrule.tensor import OtherLayout, Tensor, device, of_array

__all__ = ["Decoder", "Encoder"]


class Encoder:
    """Takes a value apart: what JSON holds stays, tensors get names of their own."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.describer = Describer(self.encode)

    def encode(self, value: object, path: str = "") -> Any:
        """The value as JSON; ``path`` says where in the whole it is, for names and errors."""
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, Tensor):
            return self._tensor(value, path)
        if isinstance(value, OtherLayout):
            return {"sparse": self._sparse(value, path)}
        if isinstance(value, nn.Module):
            return {"module": self._module(value, path)}
        if isinstance(value, (list, tuple)):
            items = [self.encode(v, f"{path}.{i}") for i, v in enumerate(value)]
            return items if isinstance(value, list) else {"tuple": items}
        if isinstance(value, Mapping):
            for key in value:
                if not isinstance(key, (str, int, float, bool)) and key is not None:
                    raise TypeError(
                        f"save: {_place(path)} has the key {key!r}; keys are text or numbers"
                    )
            inside = f"{path}." if path else ""
            return {"dict": [[k, self.encode(v, f"{inside}{k}")] for k, v in value.items()]}
        if isinstance(value, dtypes.dtype):
            return {"dtype": str(value).removeprefix("chainrule.")}
        if isinstance(value, device):
            return {"device": str(value)}
        kind = objects.kind_of(value)
        if kind is not None:
            inside = f"{path}." if path else ""
            parts: Mapping[str, Any] = value.file_parts()  # type: ignore[attr-defined]
            told = [[name, self.encode(part, f"{inside}{name}")] for name, part in parts.items()]
            return {"object": {"kind": kind, "parts": told}}
        if hasattr(value, "__array__"):
            return self.encode(of_array(value.__array__()), path)
        raise TypeError(
            f"save: {_place(path)} is a {type(value).__name__}; a file holds tensors, numbers, "
            "text, None, modules, fitted networks and estimators, and lists, tuples and "
            "dictionaries of these"
        )

    def _module(self, module: nn.Module, path: str) -> dict[str, Any]:
        """A description from which the same module can be made: that is tried at once."""
        _check_fitted(module, path)
        told = self.describer.describe(module, path)
        if "same" in told:
            return told
        classes = {type(m) for m in module.modules()}
        with fork_rng():
            twin = Decoder(self.tensors, classes, _place(path)).rebuilder.rebuild(told)
        if str(twin) != str(module):
            raise ValueError(
                f"save: {_place(path)}, a {type(module).__name__}, was changed after it was made, "
                "so its class and arguments do not describe it; save model.state_dict(), or "
                f"build it as nn.Sequential. Made anew it would be\n{twin}"
            )
        return told

    def _sparse(self, value: Any, path: str) -> dict[str, Any]:
        """The parts of a sparse tensor; from ``starts`` follows that its rows are compressed."""
        s = value.structure
        parts = {"indices": of_array(s.indices), "values": value.entries}
        if s.starts is not None:
            parts = {"starts": of_array(s.starts), "columns": of_array(s.indices[1])} | parts
            del parts["indices"]
        told: dict[str, Any] = {"shape": list(s.shape), "is_coalesced": s.is_coalesced}
        inside = f"{path}." if path else ""
        return told | {name: self._tensor(t, inside + name) for name, t in parts.items()}

    def _tensor(self, value: Tensor, path: str) -> dict[str, Any]:
        name = path or "tensor"
        while name in self.tensors or name == "__metadata__":  # which safetensors takes
            name += "'"
        told: dict[str, Any] = {"tensor": name}
        if value.dtype.is_complex:
            told["complex"] = True
            value = stack([real(value.detach()), imag(value.detach())], -1)
        if isinstance(value, Parameter):
            told["parameter"] = True
        if value.requires_grad:
            told["requires_grad"] = True
        self.tensors[name] = value.detach()
        return told


def _check_fitted(module: nn.Module, path: str) -> None:
    """A file of transforms that have learned nothing would be of no use."""
    found = [
        (name, type(m).__name__)
        for name, m in module.named_modules()
        if isinstance(m, Transform) and not isinstance(m, Pipeline) and not m.is_fitted
    ]
    if found:
        name, kind = found[0]
        where = _place(".".join(part for part in (path, name) if part))
        raise ValueError(
            f"save: {where}, a {kind}, is not fitted; call fit(x) with the training part before "
            "you save it"
        )


def _place(path: str) -> str:
    return f"{path!r}" if path else "the value"


class Decoder:
    """Puts a value together again."""

    def __init__(self, tensors: Mapping[str, Tensor], classes: Iterable[type], where: str):
        self.tensors, self.where = tensors, where
        elements = sum([t.numel() for t in tensors.values()])
        self.rebuilder = Rebuilder(self.decode, classes, elements, len(tensors), where)

    def decode(self, told: Any) -> Any:
        """The value that was encoded like this."""
        if told is None or isinstance(told, (bool, int, float, str)):
            return told
        if isinstance(told, list):
            return [self.decode(v) for v in told]
        kind = next(iter(told), "")
        content = told.get(kind)
        if kind == "tensor":
            return self._tensor(told)
        if kind == "sparse":
            return self._sparse(content)
        if kind == "dict":
            return {k: self.decode(v) for k, v in content}
        if kind == "tuple":
            return tuple([self.decode(v) for v in content])
        if kind == "module":
            return self.rebuilder.rebuild(content)
        if kind == "object":
            return self._object(content)
        if kind == "float":
            return float(content)
        if kind == "dtype":
            return dtypes.as_dtype(content)
        if kind == "device":
            return device(content)
        raise ValueError(f"load: {self.where} holds a value of an unknown kind, {kind!r}")

    def _object(self, told: Mapping[str, Any]) -> Any:
        parts = {name: self.decode(part) for name, part in told["parts"]}
        try:
            return objects.find(told["kind"]).from_file_parts(parts)
        except ImportError as error:
            raise ValueError(
                f"load: {self.where} holds a {told['kind']}, which cannot be made: {error}"
            ) from None
        except Exception as error:  # of parts that may be anything
            raise ValueError(
                f"load: the {told['kind']} in {self.where} is damaged: {error}"
            ) from error

    def _sparse(self, told: Mapping[str, Any]) -> Any:
        from chainrule.sparse import sparse_coo_tensor, sparse_csr_tensor

        values, shape = self._tensor(told["values"]), told["shape"]
        asked = values.requires_grad
        try:
            if "starts" in told:
                rows = (self._tensor(told["starts"]), self._tensor(told["columns"]))
                return sparse_csr_tensor(*rows, values, shape, requires_grad=asked)
            indices, is_coalesced = self._tensor(told["indices"]), told["is_coalesced"]
            return sparse_coo_tensor(
                indices, values, shape, requires_grad=asked, is_coalesced=is_coalesced
            )
        except RuntimeError as error:
            raise ValueError(
                f"load: {self.where} holds a damaged sparse tensor: {error}"
            ) from error

    def _tensor(self, told: Mapping[str, Any]) -> Tensor:
        name = told["tensor"]
        if name not in self.tensors:
            raise ValueError(f"load: {self.where} lacks the tensor {name!r} that it describes")
        value = self.tensors[name]
        if told.get("complex"):
            value = complex(value[..., 0], value[..., 1])
        if told.get("parameter"):
            return Parameter(value, bool(told.get("requires_grad")))
        return value.requires_grad_() if told.get("requires_grad") else value

"""``save`` and ``load``: tensors as safetensors, all else as JSON, nothing to execute."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import safetensors
from safetensors.numpy import load as read_tensors
from safetensors.numpy import save as tensors_as_bytes

from chainrule import nn
from chainrule.backend import K
from chainrule.files.atomic import write_atomically
from chainrule.files.structure import Decoder, Encoder
from chainrule.tensor import Tensor

__all__ = ["FORMAT_VERSION", "describe_file", "load", "save"]

FORMAT_VERSION = 1
DESCRIPTION = "model.json"  # of a folder
KEY = "chainrule"  # of the metadata in one file
PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def save(obj: object, f: str | os.PathLike[str], *, folder: bool | None = None) -> None:
    """Saves tensors, state_dicts, whole models, or nested values of them.

    One safetensors file, whose metadata say what else there is, or a folder with a readable
    ``model.json`` and the weights beside it. A save that fails or is killed leaves what was there.

    Args:
        obj: a Module, a tensor, or dictionaries, lists and tuples of these, numbers and text.
        f: the path.
        folder: whether to write a folder; by default if the path ends in a slash or is one.

    >>> import chainrule, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "net.safetensors")
    >>> chainrule.save(chainrule.nn.Linear(2, 1), path)
    >>> chainrule.load(path)
    Linear(in_features=2, out_features=1, bias=True)
    """
    path = _path("save", f)
    if folder is None:
        folder = path.is_dir() or str(f).endswith(("/", os.sep))
    encoder = Encoder()
    told = {
        "format": FORMAT_VERSION,
        "chainrule": _own_version(),
        "value": encoder.encode(obj),
    }
    arrays = {name: K.to_contiguous(t.array) for name, t in encoder.tensors.items()}
    if folder:
        _save_folder(path, told, arrays)
    else:
        if path.is_dir():
            raise IsADirectoryError(f"save: {path} is a folder; give a file's name, or folder=True")
        write_atomically(path, _as_bytes(arrays, {KEY: json.dumps(told)}))


def _own_version() -> str:
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version("chainrule")
    return "unknown"


def _path(op: str, f: str | os.PathLike[str]) -> Path:
    if not isinstance(f, (str, os.PathLike)):
        raise TypeError(f"{op}: expected a path, got {type(f).__name__}")
    if not str(f):
        raise ValueError(f"{op}: the path is empty")
    return Path(f)


def _as_bytes(arrays: dict[str, Any], told: dict[str, str] | None) -> bytes:
    try:
        return tensors_as_bytes(arrays, metadata=told)
    except (safetensors.SafetensorError, KeyError, TypeError) as error:
        kinds = sorted({str(a.dtype) for a in arrays.values()})
        raise TypeError(f"save: safetensors cannot hold one of {kinds}: {error}") from error


def _save_folder(path: Path, told: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Weights under a name of their own first, then the description that names them."""
    content = _as_bytes(arrays, None)
    weights = f"weights-{hashlib.sha256(content).hexdigest()[:12]}.safetensors"
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"save: {path} is a file; give another name for the folder")
    write_atomically(path / weights, content)
    told = {**told, "weights": weights}
    write_atomically(path / DESCRIPTION, json.dumps(told, indent=1).encode())
    for old in path.glob("weights-*.safetensors"):
        if old.name != weights:
            with contextlib.suppress(OSError):
                old.unlink()


def load(
    f: str | os.PathLike[str],
    *,
    model: nn.Module | None = None,
    classes: Iterable[type] = (),
) -> Any:
    """Loads what :func:`save` wrote, or a safetensors file of PyTorch's as a state_dict.

    Nothing in the file is executed: models are rebuilt from chainrule's own classes, and from those
    that are passed here. Damaged files and files of a later version are refused.

    Args:
        f: the path of a file or a folder.
        model: a module to load into, for a file that holds one module or a state_dict; returned.
        classes: classes of your own that the saved model is made of.
    """
    path = _path("load", f)
    told, tensors = _read(path)
    try:
        decoder = Decoder(tensors, classes, str(path))
        state = _state_of(told["value"]) if model is not None and told else None
        if model is not None and state is not None:
            model.load_state_dict({k: decoder.decode(v) for k, v in state})
            return model
        value = decoder.decode(told["value"]) if told else tensors
    except (KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"load: the description in {path} is damaged: {error!r}") from error
    if model is not None:
        model.load_state_dict(value)
        return model
    return value


def describe_file(f: str | os.PathLike[str]) -> dict[str, Any]:
    """The versions and the number of tensors and elements of a file, without making a model."""
    path = _path("load", f)
    told, tensors = _read(path)
    return {
        **{k: v for k, v in told.items() if k in ("format", "chainrule")},
        "tensors": len(tensors),
        "elements": sum([t.numel() for t in tensors.values()]),
    }


def _state_of(told: Any) -> Any:
    """The state in the description of a module or of a state_dict, None if it is neither."""
    if isinstance(told, dict) and "module" in told:
        return told["module"]["state"]
    if isinstance(told, dict) and "dict" in told:
        return told["dict"]
    return None


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The description (empty for a plain safetensors file) and the tensors by name."""
    if path.is_dir():
        told = _parsed(path / DESCRIPTION, _content(path / DESCRIPTION).decode("utf-8", "replace"))
        name = told.get("weights")
        if not isinstance(name, str) or Path(name).name != name:
            raise ValueError(f"load: {path / DESCRIPTION} does not name a file with weights")
        return told, _tensors(path / name, _content(path / name))
    content = _content(path)
    tensors = _tensors(path, content)
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size]).get("__metadata__") or {}
    if KEY not in header:
        return {}, tensors
    return _parsed(path, header[KEY]), tensors


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        beside = ", ".join(sorted(p.name for p in path.parent.glob("*"))[:8]) or "nothing"
        raise FileNotFoundError(
            f"load: there is no file {path}; its folder holds {beside}"
            if path.parent.is_dir()
            else f"load: there is no folder {path.parent}"
        ) from None


def _tensors(path: Path, content: bytes) -> dict[str, Tensor]:
    try:
        arrays = read_tensors(content)
    except (safetensors.SafetensorError, KeyError, ValueError, TypeError, OverflowError) as error:
        if content.startswith(PICKLES):
            raise ValueError(
                f"load: {path} is a pickle (as torch.save writes), which could run code; where it "
                "was made, write safetensors: safetensors.torch.save_file(model.state_dict(), path)"
            ) from None
        raise ValueError(
            f"load: {path} is not a whole safetensors file ({len(content)} bytes): {error}"
        ) from error
    return {name: Tensor(K.owned(a, True)) for name, a in arrays.items()}


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"load: the description in {path} is damaged: {error}") from error
    version = told.get("format") if isinstance(told, dict) else None
    if not isinstance(version, int) or "value" not in told:
        raise ValueError(f"load: the description in {path} is not one of chainrule's")
    if version > FORMAT_VERSION:
        raise ValueError(
            f"load: {path} has format {version}, written by chainrule {told.get('chainrule')}; "
            f"this version reads up to {FORMAT_VERSION}. Update: pip install --upgrade chainrule"
        )
    return told

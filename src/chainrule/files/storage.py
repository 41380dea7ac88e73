"""``save`` and ``load``: tensors as safetensors, all else as JSON, nothing to execute."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import safetensors
from safetensors.numpy import save as tensors_as_bytes

from chainrule import nn
from chainrule.backend import K, dtypes
from chainrule.files.atomic import write_atomically
from chainrule.files.streams import (
    FileLike,
    MapLocation,
    is_stream,
    mapped,
    path_of,
    read_one,
    write_all,
)
from chainrule.files.structure import Decoder, Encoder
from chainrule.files.weights import read_tensors
from chainrule.tensor import Tensor, of_array
from chainrule.typing import DType

__all__ = ["FORMAT_VERSION", "describe_file", "load", "save"]

FORMAT_VERSION = 1
DESCRIPTION = "model.json"  # of a folder
KEY = "chainrule"  # of the metadata in one file
PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def save(
    obj: object,
    f: FileLike,
    pickle_module: ModuleType | None = None,
    pickle_protocol: int | None = None,
    _use_new_zipfile_serialization: bool = True,
    *,
    folder: bool | None = None,
) -> None:
    """Saves tensors, state_dicts, whole models, or nested values of them.

    One safetensors file, whose metadata say what else there is, or a folder with a readable
    ``model.json`` and the weights beside it. A save that fails or is killed leaves what was there.

    Args:
        obj: a Module, a tensor, or dictionaries, lists and tuples of these, numbers and text.
        f: the path, or a file that is open for writing bytes.
        pickle_module: refused: nothing is pickled.
        pickle_protocol: how PyTorch would pickle; it changes nothing.
        folder: whether to write a folder; by default if the path ends in a slash or is one.

    >>> import chainrule, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "net.safetensors")
    >>> chainrule.save(chainrule.nn.Linear(2, 1), path)
    >>> chainrule.load(path)
    Linear(in_features=2, out_features=1, bias=True)
    """
    _refuse_pickle("save", pickle_module)
    if is_stream(f):
        if folder:
            raise ValueError("save: folder=True needs a path, not an open file")
        told, arrays = _taken_apart(obj)
        write_all(f, _as_bytes(arrays, {KEY: json.dumps(told)}))
        return
    path = path_of("save", f)
    if folder is None:
        folder = path.is_dir() or str(f).endswith(("/", os.sep))
    told, arrays = _taken_apart(obj)
    if folder:
        _save_folder(path, told, arrays)
    else:
        if path.is_dir():
            raise IsADirectoryError(f"save: {path} is a folder; give a file's name, or folder=True")
        write_atomically(path, _as_bytes(arrays, {KEY: json.dumps(told)}))


def _refuse_pickle(op: str, module: ModuleType | None) -> None:
    if module is not None:
        raise ValueError(
            f"{op}: pickle_module={module.__name__} is refused: files are safetensors, and nothing "
            "in them is executed; leave it out"
        )


def _taken_apart(obj: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """The description of a value, and its tensors as arrays."""
    encoder = Encoder()
    told = {
        "format": FORMAT_VERSION,
        "chainrule": _own_version(),
        "value": encoder.encode(obj),
    }
    return told, {name: K.to_contiguous(t.array) for name, t in encoder.tensors.items()}


def _own_version() -> str:
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version("chainrule")
    return "unknown"


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
    f: FileLike,
    map_location: MapLocation | None = None,
    pickle_module: ModuleType | None = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    dtype: DType | None = None,
    model: nn.Module | None = None,
    classes: Iterable[type] = (),
) -> Any:
    """Loads what :func:`save` wrote, or a safetensors file of PyTorch's as a state_dict.

    Nothing in the file is executed: models are rebuilt from chainrule's own classes, and from those
    that are passed here. Damaged files and files of a later version are refused.

    Args:
        f: the path of a file or a folder, or a file that is open for reading bytes.
        map_location: where the tensors are to be: on the CPU; or a function of a tensor and "cpu".
        pickle_module: refused: pickles are not read.
        weights_only: whether a pickle of PyTorch's may make other objects; none is read either way.
        mmap: whether PyTorch reads tensors when they are used; they are read at once.
        dtype: the type of floating tensors, if not the one they were saved in. bfloat16 needs
            ml_dtypes, unless it is read as another type.
        model: a module to load into, for a file that holds one module or a state_dict; returned.
        classes: classes of your own that the saved model is made of.
    """
    _refuse_pickle("load", pickle_module)
    where, told, tensors = _opened(f, dtype)
    tensors = mapped(tensors, map_location)
    try:
        decoder = Decoder(tensors, classes, where)
        state = _state_of(told["value"]) if model is not None and told else None
        if model is not None and state is not None:
            model.load_state_dict({k: decoder.decode(v) for k, v in state})
            return model
        value = decoder.decode(told["value"]) if told else tensors
    except (KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"load: the description in {where} is damaged: {error!r}") from error
    if model is not None:
        model.load_state_dict(value)
        return model
    return value


def describe_file(f: FileLike) -> dict[str, Any]:
    """The versions and the number of tensors and elements of a file, without making a model."""
    _, told, tensors = _opened(f, dtypes.float32)
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


def _opened(f: FileLike, dtype: DType | None) -> tuple[str, dict[str, Any], dict[str, Tensor]]:
    """The name of a file, its description (empty if it has none) and its tensors by name."""
    if is_stream(f):
        name, content = read_one(f)
        return name, *_parts(name, content, dtype)
    path = path_of("load", f)
    if not path.is_dir():
        return str(path), *_parts(str(path), _content(path), dtype)
    described = str(path / DESCRIPTION)
    told = _parsed(described, _content(path / DESCRIPTION).decode("utf-8", "replace"))
    weights = told.get("weights")
    if not isinstance(weights, str) or Path(weights).name != weights:
        raise ValueError(f"load: {described} does not name a file with weights")
    return str(path), told, _tensors(str(path / weights), _content(path / weights), dtype)


def _parts(
    where: str, content: bytes, dtype: DType | None
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    tensors = _tensors(where, content, dtype)
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size]).get("__metadata__") or {}
    return _parsed(where, header[KEY]) if KEY in header else {}, tensors


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


def _tensors(where: str, content: bytes, dtype: DType | None) -> dict[str, Tensor]:
    try:
        arrays = read_tensors(content, as_stored=dtype is None)
    except (safetensors.SafetensorError, KeyError, ValueError, TypeError, OverflowError) as error:
        if content.startswith(PICKLES):
            raise ValueError(
                f"load: {where} is a pickle (as torch.save writes), which could run code; where it "
                "was made, write safetensors: safetensors.torch.save_file(model.state_dict(), path)"
            ) from None
        raise ValueError(
            f"load: {where} is not a whole safetensors file ({len(content)} bytes): {error}"
        ) from error
    tensors = {name: of_array(K.owned(a, True)) for name, a in arrays.items()}
    if dtype is None:
        return tensors
    return {name: t.to(dtype) if t.is_floating_point() else t for name, t in tensors.items()}


def _parsed(where: str, text: str) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"load: the description in {where} is damaged: {error}") from error
    version = told.get("format") if isinstance(told, dict) else None
    if not isinstance(version, int) or "value" not in told:
        raise ValueError(f"load: the description in {where} is not one of chainrule's")
    if version > FORMAT_VERSION:
        raise ValueError(
            f"load: {where} has format {version}, written by chainrule {told.get('chainrule')}; "
            f"this version reads up to {FORMAT_VERSION}. Update: pip install --upgrade chainrule"
        )
    return told

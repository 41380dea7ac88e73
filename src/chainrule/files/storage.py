"""``save`` and ``load``: tensors as safetensors, all else as JSON, nothing to execute."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping
from importlib import metadata
from io import BufferedReader
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from chainrule import nn
from chainrule.backend import K, dtypes
from chainrule.files import weights
from chainrule.files.atomic import BINARY, write_atomically
from chainrule.files.folder import (
    DESCRIPTION,
    WEIGHTS,
    check_digest,
    finish_if_left,
    places_of,
    write_folder,
)
from chainrule.files.grammar import Misfit, check_value
from chainrule.files.streams import (
    FileLike,
    MapLocation,
    check_readable,
    is_stream,
    mapped,
    path_of,
    write_all,
)
from chainrule.files.structure import Decoder, Encoder
from chainrule.files.weights import LARGEST_HEADER
from chainrule.tensor import Tensor, of_array
from chainrule.typing import DType

__all__ = ["FORMAT_VERSION", "describe_file", "load", "save", "save_folder"]

FORMAT_VERSION = 1
KEY = "chainrule"  # of the metadata in one file
SEALED = json.dumps({"checksum": weights.CHECKSUM})[1:-1]  # in the text of a description
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
        obj: a Module, a tensor, a FittedNetwork, an estimator, or dictionaries, lists and tuples of
            these, numbers and text.
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
        write_all(f, weights.parts(arrays, {KEY: json.dumps(told)}))
        return
    path = path_of("save", f)
    if folder is None:
        folder = path.is_dir() or str(f).endswith(("/", os.sep))
    told, arrays = _taken_apart(obj)
    if folder:
        write_folder(path, told, weights.parts(arrays, {}), {})
    else:
        if path.is_dir():
            raise IsADirectoryError(f"save: {path} is a folder; give a file's name, or folder=True")
        write_atomically(path, weights.parts(arrays, {KEY: json.dumps(told)}))


def save_folder(obj: object, path: str | os.PathLike[str], beside: Mapping[str, bytes]) -> None:
    """Saves as a folder, with other files beside that belong to it, as one version.

    Killed at any moment, it leaves the whole former version or the whole new one.
    """
    told, arrays = _taken_apart(obj)
    write_folder(Path(path), told, weights.parts(arrays, {}), beside)


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
        "checksum": weights.CHECKSUM,  # so that one that was cut out is missed
        "value": encoder.encode(obj),
    }
    return told, {name: K.to_contiguous(t.array) for name, t in encoder.tensors.items()}


def _own_version() -> str:
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version("chainrule")
    return "unknown"


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
        map_location: where the tensors are to be, by default on the CPU, wherever they were saved
            from: a device; ``{"cpu": device}``; or a function of a tensor and "cpu".
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
    value = _decoded(told, tensors, classes, where, state_only=model is not None)
    if model is not None:
        model.load_state_dict(value)
        return model
    return value


def _decoded(
    told: dict[str, Any],
    tensors: dict[str, Tensor],
    classes: Iterable[type],
    where: str,
    state_only: bool,
) -> Any:
    """What a file holds; of a module only its state, if that is all that is wanted."""
    if not told:
        return tensors
    try:
        check_value(told["value"])
        decoder = Decoder(tensors, classes, where)
        state = _state_of(told["value"]) if state_only else None
        if state is not None:
            return {k: decoder.decode(v) for k, v in state}
        return decoder.decode(told["value"])
    except Misfit as error:
        raise ValueError(f"load: the description in {where} is damaged: {error}") from None
    except Exception as error:  # of a description that may say anything at all
        if isinstance(error, ValueError) and str(error).startswith("load: "):
            raise
        raise ValueError(f"load: the description in {where} is damaged: {error!r}") from error


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
        name = check_readable(f)
        return name, *_parts(name, f, None, dtype)
    path = path_of("load", f)
    if not path.is_dir():
        with _open(path) as file:
            return str(path), *_parts(str(path), file, os.fstat(file.fileno()).st_size, dtype)
    finish_if_left(path)
    while True:
        told, text = _description(path)
        try:
            return str(path), told, _of_folder(path, told["weights"], dtype)
        except FileNotFoundError:
            # Replaced between the reading of the two: the new description names what there is.
            if _description(path)[1] == text:
                raise


def _description(path: Path) -> tuple[dict[str, Any], bytes]:
    """The description in a folder, and its text."""
    described = path / DESCRIPTION
    with _open(described) as file:
        size = os.fstat(file.fileno()).st_size
        if size > LARGEST_HEADER:
            raise ValueError(
                f"load: {described} has {size:,} bytes; a description has at most "
                f"{LARGEST_HEADER:,}"
            )
        text = file.read(size)  # a larger number would reserve so many bytes
    told = _parsed(str(described), text.decode("utf-8", "replace"))
    name = told.get("weights")
    if not isinstance(name, str) or Path(name).name != name:
        raise ValueError(f"load: {described} does not name a file with weights")
    check_digest(described, told)
    return told, text


def _of_folder(path: Path, name: str, dtype: DType | None) -> dict[str, Tensor]:
    with _open_first(places_of(path, name)) as file:
        size = os.fstat(file.fileno()).st_size
        known = WEIGHTS.fullmatch(name)
        if known and hashlib.file_digest(file, "sha256").hexdigest()[:12] != known[1]:
            raise ValueError(
                f"load: {path / name} is damaged: its content is not that which its name tells; "
                "bytes were changed or lost"
            )
        file.seek(0)
        return _parts(str(path / name), file, size, dtype)[1]


def _open_first(places: list[Path]) -> BufferedReader:
    """The first of some files that is there."""
    for place in places[:-1]:
        with contextlib.suppress(FileNotFoundError):
            return _open(place)
    return _open(places[-1])


def _open(path: Path) -> BufferedReader:
    """A file to be read; what is no file, such as a device that never ends, is refused."""
    try:
        handle = os.open(path, os.O_RDONLY | BINARY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        beside = ", ".join(sorted(p.name for p in path.parent.glob("*"))[:8]) or "nothing"
        raise FileNotFoundError(
            f"load: there is no file {path}; its folder holds {beside}"
            if path.parent.is_dir()
            else f"load: there is no folder {path.parent}"
        ) from None
    except ValueError as error:  # of a name that no file can have
        raise ValueError(f"load: {str(path)!r} is not the name of a file: {error}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ValueError(f"load: {path} is not a file but a device, a pipe or a folder")
    return os.fdopen(handle, "rb")


def _parts(
    where: str, f: IO[bytes], size: int | None, dtype: DType | None
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The description and the tensors of one file."""
    start = f.tell() if f.seekable() else None
    try:
        told, arrays = weights.read(f, size, as_stored=dtype is None)
    except weights.Unsupported as error:
        raise ValueError(f"load: {where} cannot be read: {error}") from error
    except weights.Damaged as error:
        if start is not None:
            f.seek(start)
            if f.read(4).startswith(PICKLES):
                raise ValueError(
                    f"load: {where} is a pickle (as torch.save writes), which could run code; "
                    "where it was made, write safetensors: "
                    "safetensors.torch.save_file(model.state_dict(), path)"
                ) from None
        raise ValueError(f"load: {where} is not a whole safetensors file: {error}") from error
    tensors = {name: of_array(a) for name, a in arrays.items()}
    if dtype is not None:
        tensors = {n: t.to(dtype) if t.is_floating_point() else t for n, t in tensors.items()}
    description = _parsed(where, told[KEY]) if KEY in told else {}
    # Also where the name of the description was damaged together with that of the checksum.
    has_lost_it = "checksum" in description or any(SEALED in text for text in told.values())
    if has_lost_it and weights.CHECKSUM not in told:
        raise ValueError(f"load: {where} is damaged: it lacks the checksum it was written with")
    return description, tensors


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

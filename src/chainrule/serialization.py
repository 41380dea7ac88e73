"""PyTorch's ``torch.serialization``: ``save`` and ``load``, and names around pickles.

A file of chainrule's is data, so there is no list of what is safe to make from it: nothing in it is
executed (see :func:`chainrule.load`).
"""

from __future__ import annotations

from typing import Any

from chainrule.absent import absent
from chainrule.files import load, save

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "load",
    "safe_globals",
    "save",
]

NO_PICKLES = "files are safetensors, not pickles; leave this out"


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Lets a pickle make these classes: pickles are not read, whatever is allowed."""


def clear_safe_globals() -> None:
    """Forgets what a pickle may make: nothing."""


def get_safe_globals() -> list[Any]:
    """What a pickle may make: nothing."""
    return []


class safe_globals:
    """A block in which a pickle may make these classes: pickles are not read, whatever is allowed.

    Classes of your own that a model is made of are passed to ``chainrule.load(classes=[...])``.
    """

    def __init__(self, safe_globals: list[Any]):
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


ABSENT = dict.fromkeys(
    (
        "LoadEndianness",
        "SourceChangeWarning",
        "StorageType",
        "check_module_version_greater_or_equal",
        "default_restore_location",
        "get_crc32_options",
        "get_default_load_endianness",
        "get_default_mmap_options",
        "get_unsafe_globals_in_checkpoint",
        "location_tag",
        "mkdtemp",
        "normalize_storage_type",
        "register_package",
        "set_crc32_options",
        "set_default_load_endianness",
        "set_default_mmap_options",
        "skip_data",
        "storage_to_tensor_type",
        "validate_cuda_device",
        "validate_hpu_device",
    ),
    NO_PICKLES,
)


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)

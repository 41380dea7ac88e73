"""Saving and loading: safetensors and JSON, whole files or none, nothing executed."""

from __future__ import annotations

from chainrule.files.atomic import check_room, write_atomically
from chainrule.files.storage import FORMAT_VERSION, describe_file, load, save, save_folder

__all__ = [
    "FORMAT_VERSION",
    "check_room",
    "describe_file",
    "load",
    "save",
    "save_folder",
    "write_atomically",
]

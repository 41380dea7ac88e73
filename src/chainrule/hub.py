"""PyTorch's ``torch.hub``: models from the internet, which come with code to run. Refused."""

from __future__ import annotations

import os
from pathlib import Path

from chainrule.absent import refused
from chainrule.data.downloads import download
from chainrule.data.vision import data_root

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

NO_CODE = (
    "a repository of the hub is code from the internet, written for PyTorch; models that come with "
    "chainrule are in chainrule.models, and chainrule.load reads weights saved as safetensors"
)
_folder: Path | None = None


def get_dir() -> str:
    """The folder for what is downloaded: ``hub`` in that of the datasets, or the one set."""
    return str(data_root() / "hub" if _folder is None else _folder)


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets the folder for what is downloaded."""
    global _folder
    _folder = Path(d).expanduser()


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Fetches a file over HTTP; ``hash_prefix`` is the SHA-256 of the file, all of it."""
    if hash_prefix is not None and len(hash_prefix) != 64:
        raise ValueError(
            "download_url_to_file: hash_prefix must be a whole SHA-256 of 64 digits here, got "
            f"{len(hash_prefix)}; check the beginning of a hash yourself"
        )
    download(url, dst, sha256=hash_prefix, progress=progress)


load = refused("hub.load", NO_CODE)
list = refused("hub.list", NO_CODE)
help = refused("hub.help", NO_CODE)
load_state_dict_from_url = refused(
    "hub.load_state_dict_from_url",
    "weights for PyTorch come as pickles, which could run code; fetch a safetensors file with "
    "hub.download_url_to_file and read it with chainrule.load",
)

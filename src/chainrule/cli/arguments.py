"""What the arguments of a command mean: tables, folders of images, settings, places to write."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainrule.cli.columns import roles_of

if TYPE_CHECKING:
    from chainrule.data import Table
    from chainrule.train import Settings
    from chainrule.train.progress import ProgressLike

__all__ = [
    "NotWritten",
    "UserError",
    "asked_of",
    "check_writable",
    "image_size",
    "is_image_folder",
    "prepared",
    "progress_option",
    "read",
    "refuse_unused",
    "settings_of",
]

LEAST = 2**19  # bytes: the smallest network with its report


class UserError(Exception):
    """A mistake in a command, to be told in one line."""

    status = 2  # with which the program ends


class NotWritten(UserError):
    """The work is done, but its results could not be written where they belong."""

    status = 1


def is_image_folder(data: str) -> bool:
    """Whether the data is a folder, which holds images by class.

    An embedded table is meant by its name, unless a folder of this name has subfolders.
    """
    from chainrule.data import EMBEDDED

    folder = Path(data)
    if not folder.is_dir():
        return False
    return data not in EMBEDDED or any([p.is_dir() for p in folder.iterdir()])


# Options that a folder of images has a use for, and those that nothing else has.
OF_TRAINING = (
    *("hidden", "activation", "dropout", "norm", "optimizer", "lr", "weight_decay", "epochs"),
    *("batch_size", "patience", "class_weight", "test_size", "validation_size", "seed", "doctor"),
)
OF_RUNS = (
    "data",
    "out",
    "devices",
    "resume",
    "checkpoint_every",
    "progress",
    "quiet",
    "json",
    "debug",
)
OF_IMAGES = ("size", "channels", "augment")


def refuse_unused(options: argparse.Namespace) -> None:
    """An error for an option of tables with a folder of images, and the other way round."""
    images = is_image_folder(options.data)
    used = {*OF_TRAINING, *OF_RUNS, *OF_IMAGES, "command", "run", "arguments", "usual"}
    names = [n for n in vars(options) if n not in used] if images else OF_IMAGES
    for name in names:
        if getattr(options, name) == options.usual(name):
            continue
        option = "--" + name.replace("_", "-")
        if images:
            raise UserError(
                f"{option} is for tables, and {options.data} is a folder of images: these have no "
                "columns, and their classes are the names of the subfolders"
            )
        raise UserError(f"{option} is for a folder of images, and {options.data} is a table")


def read(data: str) -> tuple[Table, str | None]:
    """The table that an argument names, and its usual target: embedded, or a file."""
    from chainrule.data import EMBEDDED, embedded, read_table

    if data in EMBEDDED:
        return embedded(data).table, embedded(data).target
    if not Path(data).exists():
        raise UserError(
            f"there is no file {data!r}, and no embedded table of that name; the embedded ones are "
            f"{', '.join(sorted(EMBEDDED))}"
        )
    return read_table(data), None


def prepared(options: argparse.Namespace) -> tuple[Table, list[str], dict[str, str | list[str]]]:
    """The table, the targets, and the roles that were given to columns."""
    table, usual = read(options.data)
    roles = roles_of(options, table.names)
    for name in roles:
        table[name]  # an error that lists the columns
    targets = _targets(table, options.target or usual or table.names[-1])
    if options.target is not None and not options.target.strip():
        raise UserError("--target: name a column, or leave it out for the last one")
    for name in targets:
        if name in options.drop:
            raise UserError(f"--drop {name}: that is the target")
    return table, targets, roles


def _targets(table: Table, text: str) -> list[str]:
    """ "a,b" as two columns, unless one has that name."""
    names = [text] if text in table else [part.strip() for part in text.split(",") if part.strip()]
    for name in names:
        table[name]  # an error that lists the columns
    return names


def asked_of(options: argparse.Namespace) -> dict[str, Any]:
    """What was asked for of weights, groups, times, levels and quantiles, for ``fit_table``."""
    asked = {"weights": options.weight, "group": options.group, "time": options.time}
    if options.levels is not None:
        asked["levels"] = [part.strip() for part in options.levels.split(",")]
    if options.quantiles is not None:
        try:
            asked["quantiles"] = [float(part) for part in options.quantiles.split(",")]
        except ValueError:
            raise UserError(
                f"--quantiles {options.quantiles}: expected numbers between 0 and 1 like "
                "0.1,0.5,0.9"
            ) from None
    return {name: value for name, value in asked.items() if value is not None}


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings of a training: those given, and the defaults for tables or images."""
    from chainrule.train import Settings
    from chainrule.train.automatic.images import IMAGES
    from chainrule.train.automatic.settings import hidden_sizes, seconds_of

    hidden = hidden_sizes(options.hidden) if options.hidden is not None else None
    given = {
        name: getattr(options, name)
        for name in (
            "activation",
            "dropout",
            "norm",
            "optimizer",
            "lr",
            "weight_decay",
            "epochs",
            "batch_size",
            "patience",
            "class_weight",
            "test_size",
            "validation_size",
            "seed",
            "doctor",
            "effort",
            "time_limit",
        )
        if getattr(options, name, None) is not None
    }
    if "time_limit" in given:
        given["time_limit"] = seconds_of(given["time_limit"])
    default = IMAGES if is_image_folder(options.data) else Settings()
    if hidden is not None:
        given["hidden"] = tuple(hidden)
    return Settings(**{**vars(default), **given})


def progress_option(options: argparse.Namespace) -> ProgressLike:
    """What shows how far a fit is."""
    if options.quiet and options.progress in ("bar", "plot"):
        raise UserError(f"--quiet --progress {options.progress}: these contradict each other")
    if options.progress in ("bar", "plot"):
        return options.progress
    return options.progress is None and not (options.quiet or options.json)


def image_size(text: str | None) -> list[int] | None:
    """ "32,32", "32x32" or "32" as height and width."""
    if text is None:
        return None
    parts = text.replace("x", ",").split(",")
    if not all(p.strip().isdigit() and int(p) > 0 for p in parts) or len(parts) not in (1, 2):
        raise UserError(f"--size {text}: expected HEIGHT,WIDTH like 32,32")
    sizes = [int(p) for p in parts]
    return sizes * 2 if len(sizes) == 1 else sizes


def check_writable(out: Path) -> None:
    """Before any work is done: whether the results can be written."""
    from chainrule.files import check_room

    parent = out
    try:
        if out.exists() and not out.is_dir():
            raise UserError(f"--out {out}: that is a file; give the name of a folder")
        while not parent.exists():
            parent = parent.parent
    except OSError as error:
        raise UserError(f"--out {out}: {error.strerror}") from None
    if not parent.is_dir():
        raise UserError(f"--out {out}: {parent} is a file, not a folder")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise UserError(f"--out {out}: no permission to write in {parent}")
    try:
        check_room(parent, LEAST)
    except OSError as error:
        raise UserError(f"--out {out}: {error.strerror}") from None

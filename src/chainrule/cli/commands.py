"""The commands: each prints what it found, and returns it for ``--json``."""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainrule.backend import processes
from chainrule.cli.arguments import (
    NotWritten,
    UserError,
    asked_of,
    check_writable,
    image_size,
    is_image_folder,
    prepared,
    progress_option,
    refuse_unused,
    settings_of,
)
from chainrule.cli.installation import facts, info
from chainrule.cli.predicting import loaded, with_target, words_for_warnings

if TYPE_CHECKING:
    from chainrule.train import FittedNetwork, RunFolder

__all__ = ["cv", "datasets", "evaluate", "export", "fit", "show_info"]


def fit(options: argparse.Namespace) -> dict[str, Any]:
    """Trains a network and writes it with its history and report."""
    from chainrule.train import RunFolder, html_report, text_report

    out = Path(options.out or f"chainrule-{Path(options.data).resolve().stem}")
    check_writable(out)
    if options.devices is not None and os.environ.get("WORLD_SIZE", "1") != "1":
        from chainrule.distributed import init_process_group

        init_process_group()
    folder = RunFolder(out, options.checkpoint_every, options.resume, _notice)
    network = _fitted(options, folder)
    given = [a for a in options.arguments if not (a > "--re" and "--resume".startswith(a))]
    page = html_report(network, shlex.join(["chainrule", *given]), str(out))
    if not processes.is_writer():
        return {**network.about, "out": str(out)}  # the process of rank 0 writes and tells
    _write(network, out, page)
    if network.history.ending != "interrupted":
        folder.remove_checkpoint()
    if options.json:
        for text in network.about.get("warnings", []):
            _notice(f"warning: {text}")
    else:
        print(text_report(network))
        print(f"model, history.csv and report.html are in {out}{os.sep}")
    return {**network.about, "out": str(out)}


def _notice(line: str) -> None:
    if processes.is_writer():
        print(f"chainrule fit: {line}", file=sys.stderr)


def _fitted(options: argparse.Namespace, folder: RunFolder) -> FittedNetwork:
    """The network that the options ask for, trained."""
    from chainrule.data import EMBEDDED
    from chainrule.train import fit_images, fit_table

    refuse_unused(options)
    settings, progress = settings_of(options), progress_option(options)
    if is_image_folder(options.data):
        return fit_images(
            options.data,
            settings,
            size=image_size(options.size),
            channels=options.channels,
            augment=options.augment,
            progress=progress,
            checkpoints=folder,
            devices=options.devices,
        )
    table, targets, roles = prepared(options)
    network = fit_table(
        table,
        targets,
        options.task,
        settings,
        roles=roles,
        **asked_of(options),
        source=options.data,
        progress=progress,
        checkpoints=folder,
        devices=options.devices,
    )
    network.about["embedded"] = options.data in EMBEDDED
    return network


def _write(network: FittedNetwork, out: Path, page: str) -> None:
    """Writes the results where they belong; if that fails, where it can be done."""
    try:
        network.save(out, page)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        kept = _kept_elsewhere(network, out.resolve().name, page)
        where = "nor to another place, nothing is kept" if kept is None else f"it is in {kept}"
        raise NotWritten(
            f"the network is trained but cannot be written to {out} ({reason}); {where}"
        ) from None


def _kept_elsewhere(network: FittedNetwork, name: str, page: str) -> Path | None:
    """Saves into a new folder in the first place that takes it."""
    for place in (Path.cwd, tempfile.gettempdir, Path.home, lambda: "/dev/shm"):
        with contextlib.suppress(OSError, RuntimeError):  # which Path.home raises
            kept = Path(place(), f"{name}-{secrets.token_hex(4)}")
            kept.mkdir()  # with the permissions that the user gives to new folders
            try:
                network.save(kept, page)
                return kept
            except OSError:
                kept.rmdir()
    return None


def evaluate(options: argparse.Namespace) -> dict[str, Any]:
    """The scores of a network on data with the target."""
    network = loaded(options.model)
    if options.weight is not None and network.about.get("images"):
        raise UserError("--weight: images have no columns")
    rows, target = with_target(network, options.data)
    if target is None:
        raise UserError(
            f"{options.data} has no column {network.about['target']!r}, the target of the model"
        )
    with words_for_warnings("evaluate"):
        found = network.evaluation(rows, target, options.weight)
    if not options.json:
        from chainrule.train.reporting.verdict import measure

        if found.left_out:
            print(f"left out, as the target is missing there: {found.left_out:,} rows")
        what = "images" if network.about.get("images") else "rows"
        print(f"{found.rows:,} {what} of {options.data} (95 % interval):")
        width = max(map(len, found.scores))
        for name, value in found.scores.items():
            plain = measure(name).plain
            low, high = map(plain, found.intervals[name])
            print(f"  {name:<{width}}  {plain(value)}  ({low} to {high})")
    return {
        "rows": found.rows,
        "left_out": found.left_out,
        "scores": found.scores,
        "intervals": found.intervals,
    }


def export(options: argparse.Namespace) -> dict[str, Any]:
    """Writes a network with its preprocessing as an ONNX file."""
    network, out = loaded(options.model), Path(options.out)
    if out.is_dir():
        raise UserError(f"{out} is a folder; name the file to write, like {out / 'model.onnx'}")
    program = network.export(out, opset_version=options.opset)
    if not options.json:
        print(f"{out}: {len(program.content):,} bytes")
        for what, named in (("takes", program.inputs), ("gives", program.outputs)):
            print(f"it {what}:", *[f"  {n}: {kind}" for n, kind in named.items()], sep="\n")
    return {"out": str(out), "inputs": program.inputs, "outputs": program.outputs}


def cv(options: argparse.Namespace) -> dict[str, Any]:
    """Cross-validation of a table."""
    from chainrule.train import cross_validate_table

    if is_image_folder(options.data):
        raise UserError("cv: cross-validation is for tables; use `chainrule fit` for images")
    table, targets, roles = prepared(options)
    result = cross_validate_table(
        table,
        targets,
        options.task,
        settings_of(options),
        options.folds,
        options.jobs,
        roles=roles,
        **asked_of(options),
    )
    if not options.json:
        print(result)
    return {
        "folds": result.folds.rows,
        "mean": result.mean,
        "std": result.std,
        "target": ", ".join(targets),
    }


def datasets(options: argparse.Namespace) -> dict[str, Any]:
    """The tables that come with the package."""
    from chainrule.data import EMBEDDED

    if not options.json:
        for name, t in sorted(EMBEDDED.items()):
            print(f"{name:<14} {t.task:<15} {t.description}\n{'':<14} {'':<15} {t.source}")
    return {
        name: {"task": t.task, "target": t.target, "description": t.description}
        for name, t in EMBEDDED.items()
    }


def show_info(options: argparse.Namespace) -> dict[str, Any]:
    """What is installed."""
    rows = facts()
    if not options.json:
        print(info())
    return rows

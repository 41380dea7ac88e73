"""The command line: fit a network to data, use it, and say what is installed."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainrule import backend

if TYPE_CHECKING:
    from chainrule.data import Column, Table
    from chainrule.train import FittedNetwork, Settings
    from chainrule.train.fitted import Raw

__all__ = ["info", "main"]

# What the usual BLAS libraries under NumPy read, first the one that all of them understand.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

EXAMPLES = """examples:
  chainrule fit iris                          an embedded table, with a report in ./chainrule-iris
  chainrule fit houses.csv --target price     a file; the task is detected
  chainrule fit photos/ --size 32,32          a folder with one subfolder of images for each class
  chainrule predict chainrule-iris new.csv    labels for new rows
  chainrule cv wine --folds 10                cross-validation instead of one split
"""


class UserError(Exception):
    """A mistake in a command, to be told in one line."""


# --- info -----------------------------------------------------------------------------------------


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed (run from its sources?)" if package == "chainrule" else "missing"


def _kernels() -> str:
    """Which kernels compute, and why those."""
    asked = os.environ.get("CHAINRULE_KERNELS")
    if asked == backend.current():
        why = f"CHAINRULE_KERNELS={asked}"
    elif len(backend.available()) == 1:
        why = f"compiled ones: {backend.why_not_native}"
    else:
        why = "the default"
    return f"{backend.current()} ({why}; available: {', '.join(backend.available())})"


def _threads() -> str:
    """How many threads the array library may use, and who says so."""
    for name in _THREAD_VARIABLES:
        if name in os.environ:
            return f"{os.environ[name]} ({name})"
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{usable} (the processors this program may use)"


def _facts() -> dict[str, str]:
    return {
        "chainrule": _version("chainrule"),
        "Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "NumPy": _version("numpy"),
        "SciPy": _version("scipy"),
        "kernels": _kernels(),
        "threads": _threads(),
    }


def info() -> str:
    """What ``chainrule info`` prints: versions, kernels and threads.

    >>> print(info())
    chainrule ...
    Python    ...
    NumPy     ...
    SciPy     ...
    kernels   ...
    threads   ...
    """
    rows = _facts()
    return "\n".join(f"{name:<9} {value}" for name, value in rows.items())


# --- data -----------------------------------------------------------------------------------------


def _is_image_folder(data: str) -> bool:
    return Path(data).is_dir()


def _read(data: str) -> tuple[Table, str | None]:
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


def _prepared(options: argparse.Namespace) -> tuple[Table, str]:
    """The table with its choices of columns, and the target."""
    table, usual = _read(options.data)
    for name in options.drop:
        table[name]  # an error that lists the columns
    target = options.target or usual or table.names[-1]
    table[target]
    if target in options.drop:
        raise UserError(f"--drop {target}: that is the target")
    table = table.without(*options.drop).with_categories(options.categorical)
    return table, target


def _settings(options: argparse.Namespace) -> Settings:
    from chainrule.train import Settings
    from chainrule.train.automatic import hidden_sizes

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
        )
        if getattr(options, name, None) is not None
    }
    images = _is_image_folder(options.data)
    default = Settings(hidden=(64,), epochs=60, patience=10) if images else Settings()
    if hidden is not None:
        given["hidden"] = tuple(hidden)
    return Settings(**{**vars(default), **given})


# --- commands -------------------------------------------------------------------------------------


def _fit(options: argparse.Namespace) -> dict[str, Any]:
    from chainrule.data import EMBEDDED
    from chainrule.train import fit_table, html_report, text_report

    out = Path(options.out or f"chainrule-{Path(options.data).resolve().stem}")
    _check_writable(out)
    settings, progress = _settings(options), not (options.quiet or options.json)
    if _is_image_folder(options.data):
        from chainrule.train.automatic_images import fit_images

        network = fit_images(
            options.data,
            settings,
            size=_size(options.size),
            channels=options.channels,
            progress=progress,
        )
    else:
        table, target = _prepared(options)
        network = fit_table(
            table, target, options.task, settings, source=options.data, progress=progress
        )
        network.inputs.left_out |= dict.fromkeys(options.drop, "dropped by --drop")
        network.about["embedded"] = options.data in EMBEDDED
    command = shlex.join(["chainrule", *options.arguments])
    _write(network, out, html_report(network, command))
    if not options.json:
        print(text_report(network))
        print(f"model, history.csv and report.html are in {out}{os.sep}")
    return {**network.about, "out": str(out)}


def _check_writable(out: Path) -> None:
    """Before any work is done: whether the results can be written."""
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out}: that is a file; give the name of a folder")
    parent = out
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        raise UserError(f"--out {out}: {parent} is a file, not a folder")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise UserError(f"--out {out}: no permission to write in {parent}")


def _write(network: FittedNetwork, out: Path, page: str) -> None:
    from chainrule.files import write_atomically

    network.save(out)
    network.history.to_csv(out / "history.csv")
    write_atomically(out / "report.html", page.encode())


def _size(text: str | None) -> list[int] | None:
    if text is None:
        return None
    parts = text.replace("x", ",").split(",")
    if not all(p.strip().isdigit() and int(p) > 0 for p in parts) or len(parts) not in (1, 2):
        raise UserError(f"--size {text}: expected HEIGHT,WIDTH like 32,32")
    sizes = [int(p) for p in parts]
    return sizes * 2 if len(sizes) == 1 else sizes


def _load(path: str) -> FittedNetwork:
    from chainrule.train import FittedNetwork

    if not Path(path).exists():
        raise UserError(f"there is no model {path!r}; make one with `chainrule fit`")
    return FittedNetwork.load(path)


def _inputs_for(network: FittedNetwork, data: str) -> tuple[Raw, Column | None]:
    """The rows to predict, and their target column if it is there."""
    if network.about.get("images"):
        from chainrule.data import Column
        from chainrule.data.image_encoder import image_files

        paths, classes = image_files(data)
        return paths, Column("class", "category", classes)
    table, _ = _read(data)
    return table, table.columns.get(network.about["target"])


def _predict(options: argparse.Namespace) -> dict[str, Any]:
    import csv
    import io

    from chainrule.files import write_atomically

    network = _load(options.model)
    rows, _ = _inputs_for(network, options.data)
    predicted = network.predict(rows)
    name = network.about["target"]
    columns: dict[str, list[Any]] = {}
    if network.about.get("images"):
        columns["image"] = [str(p) for p in rows]
    columns[name] = predicted
    if network.task == "classification":
        p = network.predict_proba(rows)
        for k, label in enumerate(network.about["classes"]):
            columns[f"p({label})"] = [round(v, 6) for v in p[:, k].tolist()]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    if options.out:
        write_atomically(Path(options.out), text.getvalue().encode())
        if not options.json:
            print(f"{len(predicted)} predictions are in {options.out}")
    elif not options.json:
        print(text.getvalue(), end="")
    return {"rows": len(predicted), "predictions": predicted, "out": options.out}


def _evaluate(options: argparse.Namespace) -> dict[str, Any]:
    network = _load(options.model)
    rows, target = _inputs_for(network, options.data)
    if target is None:
        raise UserError(
            f"{options.data} has no column {network.about['target']!r}, the target of the model"
        )
    scores = network.evaluate(rows, target)
    if not options.json:
        print(f"{len(target.values)} rows of {options.data}:")
        for name, value in scores.items():
            print(f"  {name:<10} {value:.4f}")
    return {"rows": len(target.values), "scores": scores}


def _cv(options: argparse.Namespace) -> dict[str, Any]:
    from chainrule.train.automatic import cross_validate_table

    if _is_image_folder(options.data):
        raise UserError("cv: cross-validation is for tables; use `chainrule fit` for images")
    table, target = _prepared(options)
    result = cross_validate_table(
        table, target, options.task, _settings(options), options.folds, options.jobs
    )
    if not options.json:
        print(result)
    return {
        "folds": result.folds.rows,
        "mean": result.mean,
        "std": result.std,
        "target": target,
    }


def _datasets(options: argparse.Namespace) -> dict[str, Any]:
    from chainrule.data import EMBEDDED

    if not options.json:
        for name, t in sorted(EMBEDDED.items()):
            print(f"{name:<14} {t.task:<15} {t.description}\n{'':<14} {'':<15} {t.source}")
    return {
        name: {"task": t.task, "target": t.target, "description": t.description}
        for name, t in EMBEDDED.items()
    }


def _info(options: argparse.Namespace) -> dict[str, Any]:
    rows = _facts()
    if not options.json:
        print(info())
    return rows


# --- the parser -----------------------------------------------------------------------------------


def _training_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "data",
        metavar="DATA",
        help="a CSV, TSV or Parquet file, a folder of images by class, or "
        "the name of an embedded table",
    )
    add("--target", metavar="COL", help="the column to predict (default: the last one)")
    add("--task", choices=["auto", "classification", "regression"], default="auto")
    add("--drop", metavar="COL", nargs="+", default=[], help="columns to leave out")
    add(
        "--categorical",
        metavar="COL",
        nargs="+",
        default=[],
        help="columns of numbers that are categories",
    )
    add("--hidden", metavar="N,N", help='widths of the hidden layers, "" for none (64,64)')
    add("--activation", help="of the hidden layers (relu)")
    add("--dropout", type=float, help="probability of dropping a hidden unit (0)")
    add("--norm", choices=["batch", "layer"], help="normalization of the hidden layers")
    add("--optimizer", help="any optimizer of chainrule.optim (adam)")
    add("--lr", type=float, help="learning rate (the optimizer's own)")
    add("--weight-decay", type=float, help="weight decay (0)")
    add("--epochs", type=int, help="at most so many (200)")
    add("--batch-size", type=int, help="samples in a batch (32)")
    add("--patience", type=int, help="epochs without improvement before stopping (20)")
    add("--class-weight", choices=["balanced"], help="weigh rare classes up")
    add("--seed", type=int, default=0, help="of split, start and order (0)")


def _common_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object, for scripts")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="chainrule",
        description="Neural networks in Python, with every derivative in sight.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"chainrule {_version('chainrule')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: Callable[..., Any], help: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name,
            help=help,
            description=help,
            epilog=EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.set_defaults(run=run)
        _common_options(sub)
        return sub

    fit = command("fit", _fit, "train a network on data, with a report and a file of the model")
    _training_options(fit)
    fit.add_argument("--test-size", type=float, help="fraction held out for the scores (0.2)")
    fit.add_argument("--validation-size", type=float, help="fraction to stop early by (0.15)")
    fit.add_argument("--size", metavar="H,W", help="resize images")
    fit.add_argument("--channels", type=int, choices=[1, 3], default=3, help="of images")
    fit.add_argument("--out", metavar="DIR", help="where to write (default: chainrule-NAME)")
    fit.add_argument("--quiet", action="store_true", help="no progress bar")

    predict = command("predict", _predict, "labels or numbers for new data")
    predict.add_argument("model", metavar="MODEL", help="the folder that `fit` wrote")
    predict.add_argument("data", metavar="DATA")
    predict.add_argument("--out", metavar="FILE", help="a CSV file (default: print)")

    evaluate = command("evaluate", _evaluate, "scores of a model on data with the target")
    evaluate.add_argument("model", metavar="MODEL", help="the folder that `fit` wrote")
    evaluate.add_argument("data", metavar="DATA")

    cv = command("cv", _cv, "cross-validation: train and score on each of several folds")
    _training_options(cv)
    cv.add_argument("--folds", type=int, default=5)
    cv.add_argument("--jobs", type=int, default=1, help="folds at once (needs joblib)")

    command("datasets", _datasets, "the tables that come with the package")
    command("info", _info, "say what is installed, and which kernels compute and why")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status: 2 for a user's mistake."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    options.arguments = given
    try:
        result = options.run(options)
    except KeyboardInterrupt:
        print("chainrule: interrupted", file=sys.stderr)
        return 130
    except (UserError, ValueError, TypeError, OSError, ImportError, RuntimeError) as error:
        if options.debug:
            traceback.print_exc()
        text = " ".join(str(error).split())
        print(f"chainrule {options.command}: error: {text}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(result))
    return 0

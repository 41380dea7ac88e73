"""``chainrule predict``: answers for new data, piece by piece, in the order of the rows."""

from __future__ import annotations

import argparse
import contextlib
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainrule.cli.arguments import UserError, read
from chainrule.cli.outputs import Rows, as_csv, written_as

if TYPE_CHECKING:
    from chainrule.data import Column, Table
    from chainrule.data.tabular.pieces import TablePieces
    from chainrule.train import FittedNetwork
    from chainrule.train.fitted import Raw

__all__ = [
    "HELP",
    "add_options",
    "answers",
    "loaded",
    "predict",
    "with_target",
    "words_for_warnings",
]

HELP = "labels or numbers for new data"
IMAGES = 256  # answered in one piece


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="the folder that `fit` wrote")
    add("data", metavar="DATA", help="a table; for a network of images a file or a folder of them")
    add(
        "--out",
        metavar="FILE",
        help="a .csv, .tsv, .jsonl or .parquet file (default: print CSV); of any length, as data "
        "are read, answered and written in pieces",
    )
    add(
        "--id",
        metavar="COL",
        nargs="+",
        default=[],
        help="columns that are copied in front of the answers, as they stand",
    )
    add("--probabilities", action="store_true", help="the probability of each class, too")
    add(
        "--interval",
        metavar="LEVEL",
        type=float,
        help="for numbers: the interval that holds the truth with this probability, like 0.9",
    )


def predict(options: argparse.Namespace) -> dict[str, Any]:
    """Labels or numbers for new data, as a table."""
    network = loaded(options.model)
    _check_asked(network, options)
    make = written_as(options.out) if options.out else as_csv
    count = 0
    kept: list[Any] = []

    def counted() -> Iterator[Rows]:
        nonlocal count
        for block in _blocks(network, options):
            found = [block[name] for name in network.target.columns_named()]
            count += len(found[0])
            if not options.out and options.json:
                kept.extend(found[0] if len(found) == 1 else map(list, zip(*found, strict=True)))
            yield block

    if options.out:
        from chainrule.files import write_atomically

        write_atomically(Path(options.out), make(counted()))
        if not options.json:
            print(f"{count} predictions are in {options.out}")
        return {"rows": count, "out": options.out}
    for text in make(counted()):
        if not options.json:
            sys.stdout.write(text.decode())
    return {"rows": count, "predictions": kept, "out": None}


def loaded(path: str) -> FittedNetwork:
    """The network in a folder that ``fit`` wrote."""
    from chainrule.train import FittedNetwork

    if not Path(path).exists():
        raise UserError(f"there is no model {path!r}; make one with `chainrule fit`")
    return FittedNetwork.load(path)


def _check_asked(network: FittedNetwork, options: argparse.Namespace) -> None:
    """Refuses what this network cannot answer."""
    if options.probabilities and not network.target.classes:
        raise UserError(
            "--probabilities: this network predicts numbers, not classes; --interval 0.9 says how "
            "sure it is"
        )
    if options.interval is not None:
        if not 0 < options.interval < 1:
            raise UserError(f"--interval {options.interval:g}: expected a number between 0 and 1")
        if network.target.classes:
            raise UserError(
                "--interval: this network predicts classes, not numbers; --probabilities says how "
                "sure it is"
            )
        if network.task != "regression":
            raise UserError(
                "--interval: intervals are for the task regression; `fit --task quantile` predicts "
                "quantiles"
            )
    if options.id and network.about.get("images"):
        raise UserError("--id: images have no columns; the name of each file is in the answers")
    for name in network.target.names:
        if name in options.id:
            raise UserError(f"--id {name}: that is the target, which is predicted")


def answers(network: FittedNetwork, rows: Raw, probabilities: bool, interval: float | None) -> Rows:
    """The answers for some rows, as columns."""
    output = network.outputs(rows)
    columns: Rows = network.target.columns(output)
    if probabilities:
        p = network.probabilities(output)
        for k, label in enumerate(network.about["classes"]):
            columns[f"p({label})"] = [round(v, 6) for v in p[:, k].tolist()]
    if interval is not None:
        names = network.target.names
        bounds = network.predict_interval(rows, interval).reshape(-1, len(names), 2)
        for k, name in enumerate(names):
            mark = f"({name})" if len(names) > 1 else ""
            columns[f"low{mark}"], columns[f"high{mark}"] = bounds[:, k].mT.tolist()
    return {name: [_without_noise(v) for v in values] for name, values in columns.items()}


def _without_noise(value: Any) -> Any:
    """A number with the nine digits that a float of 32 bits has; anything else as it is."""
    return float(f"{value:.9g}") if isinstance(value, float) else value


def _blocks(network: FittedNetwork, options: argparse.Namespace) -> Iterator[Rows]:
    """The answers for all rows, in their order, in pieces."""
    asked = (options.probabilities, options.interval)
    if network.about.get("images"):
        files = image_paths(options.data)
        for i in range(0, len(files), IMAGES):
            block = files[i : i + IMAGES]
            yield {"image": [str(p) for p in block], **answers(network, block, *asked)}
        return
    source = _opened(options.data)
    unknown = [n for n in network.unknown_columns(source.names) if n not in options.id]
    if unknown:
        _say(
            "predict", f"ignored, as the model does not know them: {', '.join(map(repr, unknown))}"
        )
    start = 0
    for piece in source.pieces(list(network.columns), options.id):
        with _counted_from(start, piece.table):
            found = answers(network, piece.table, *asked)
        yield {**piece.copied, **found}
        start += len(piece.table)


@contextlib.contextmanager
def _counted_from(start: int, table: Table) -> Iterator[None]:
    """Says where a piece begins, if an error counts its rows; a column's note counts them all."""
    from chainrule.data import TableError

    try:
        yield
    except TableError as error:
        counted = start and not any([c.note and c.note in str(error) for c in table])
        where = f" (counted from row {start + 1} of the file)" if counted else ""
        raise TableError(f"{error}{where}") from None


def _opened(data: str) -> TablePieces:
    """The table that an argument names, in pieces."""
    from chainrule.data import EMBEDDED
    from chainrule.data.tabular.pieces import TablePieces, table_pieces

    if data in EMBEDDED or not Path(data).exists():
        return TablePieces(read(data)[0])
    return table_pieces(data)


def image_paths(data: str) -> list[Path]:
    """One image, or all images in a folder and its subfolders, by their names."""
    from chainrule.data.image_encoder import SUFFIXES, images_in

    place = Path(data)
    if not place.exists():
        raise UserError(f"there is no file or folder {data!r}; this network takes images")
    one = place.is_file() and place.suffix.lower() in SUFFIXES
    images = [place] if one else images_in(place)
    if not images:
        raise UserError(f"{data} is no image and holds none ({', '.join(SUFFIXES)})")
    return images


def with_target(network: FittedNetwork, data: str) -> tuple[Raw, Column | Table | None]:
    """The rows to predict, and their target columns if they are there."""
    if network.about.get("images"):
        from chainrule.data import Column
        from chainrule.data.image_encoder import image_files

        paths, classes = image_files(data)
        return paths, Column("class", "category", classes)
    from chainrule.data import Table

    table, _ = read(data)
    known = [table[name] for name in network.target.names if name in table]
    if len(known) < len(network.target.names):
        return table, None
    return table, known[0] if len(known) == 1 else Table(known)


@contextlib.contextmanager
def words_for_warnings(command: str) -> Iterator[None]:
    """Warnings of the library as lines beside the output."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for text in _different([str(w.message) for w in caught]):
        _say(command, text)


def _different(texts: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _say(command: str, line: str) -> None:
    print(f"chainrule {command}: {line}", file=sys.stderr)

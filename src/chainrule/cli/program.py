"""The command ``chainrule``: its options, and what becomes of errors."""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import os
import re
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from chainrule.backend import processes
from chainrule.cli import commands, drawing, inspecting, launching, predicting, serving
from chainrule.cli.arguments import UserError
from chainrule.cli.columns import add_column_options
from chainrule.cli.installation import version

__all__ = ["main"]

TASKS = ("auto", "classification", "regression", "multilabel", "count", "quantile", "ordinal")
EXAMPLES = """examples:
  chainrule fit iris                          an embedded table, with a report in ./chainrule-iris
  chainrule fit houses.csv --target price     a file; the task is detected
  chainrule fit photos/ --size 32,32          a folder with one subfolder of images for each class
  chainrule predict chainrule-iris new.csv    labels for new rows; --out FILE writes them
  chainrule serve chainrule-iris              answers over HTTP, with a page to try it
  chainrule export chainrule-iris iris.onnx   the network with its preprocessing as ONNX
  chainrule inspect chainrule-iris            the layers of a network; --list names the instruments
  chainrule launch --processes 2 train.py     a program in two processes that compute together
  chainrule cv wine --folds 10                cross-validation instead of one split
  chainrule atlas X06 N07                     what the courses show, beside what they print
"""


def _training_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "data",
        metavar="DATA",
        help="a CSV, TSV, Parquet, JSON or Excel file, a folder of images by class, or "
        "the name of an embedded table",
    )
    add(
        "--target",
        metavar="COL",
        help="the column to predict (default: the last one); A,B for several numbers or labels",
    )
    add("--task", choices=TASKS, default="auto", help="what the target is for (auto)")
    add("--levels", metavar="A,B,C", help="the values of an ordinal target, the lowest first")
    add("--quantiles", metavar="P,P", help="quantiles to predict, for example 0.1,0.5,0.9")
    add("--weight", metavar="COL", help="the column that says how much each row counts")
    add("--group", metavar="COL", help="the column of groups that no split tears apart")
    add("--time", metavar="COL", help="dates or numbers: train on earlier rows, test on later ones")
    add_column_options(parser)
    add(
        "--effort",
        choices=["quick", "normal", "high"],
        help="how long to look for the network of a table: high trains several and keeps those "
        "that are best together (normal)",
    )
    add(
        "--time-limit",
        metavar="TIME",
        help="search for so long with --effort high: 90s, 10m, 1h; Ctrl-C ends it, too, with the "
        "best so far",
    )
    add("--lr", type=float, help="learning rate (chosen; the optimizer's own for a plain network)")
    add("--weight-decay", type=float, help="weight decay (chosen; 0)")
    add("--epochs", type=int, help="at most so many (chosen; 200)")
    add("--batch-size", type=int, help="samples in a batch (chosen; 32)")
    add("--patience", type=int, help="epochs without improvement before stopping (chosen; 20)")
    add(
        "--hidden",
        metavar="N,N",
        help='a plain network with hidden layers of these widths, "" for none (64,64 where one of '
        "the next four is given)",
    )
    add("--activation", help="a plain network, with this activation (relu)")
    add("--dropout", type=float, help="a plain network: probability of dropping a hidden unit (0)")
    add("--norm", choices=["batch", "layer"], help="a plain network with this normalization")
    add("--optimizer", help="a plain network, by any optimizer of chainrule.optim (adam)")
    add("--class-weight", choices=["balanced"], help="weigh rare classes up")
    add("--seed", type=int, default=0, help="of split, start and order (0)")


def _fit_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--test-size", type=float, help="fraction held out for the scores (0.2)")
    add("--validation-size", type=float, help="fraction to stop early by (0.15)")
    add("--size", metavar="H,W", help="of images (theirs, the longer side at most 64)")
    add("--channels", type=int, choices=[1, 3], help="1: gray, 3: color (as they are)")
    add(
        "--augment",
        action=argparse.BooleanOptionalAction,
        help="shift training images at random (from 16 by 16 pixels on)",
    )
    add("--out", metavar="DIR", help="where to write (default: chainrule-NAME)")
    add("--resume", action="store_true", help="go on from the checkpoint of a fit that was killed")
    add(
        "--checkpoint-every",
        metavar="SECONDS",
        type=float,
        default=30.0,
        help="time between checkpoints, which are written at the end of an epoch (30; inf: none)",
    )
    add(
        "--devices",
        metavar="WHICH",
        help="devices that share each batch: cuda, tpu, xla, a number, auto, or cuda:0,cuda:1",
    )
    add("--doctor", action="store_true", default=None, help="look for mistakes before and after")
    add(
        "--progress",
        choices=["bar", "plot", "none"],
        help="a bar, or curves that are drawn again (a bar; none with --json)",
    )
    add("--quiet", action="store_true", help="the same as --progress none")

    parser.set_defaults(usual=parser.get_default)


def _common_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object, for scripts")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")


class _Parser(argparse.ArgumentParser):
    """A parser that tells a mistake in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="chainrule",
        description="Neural networks in Python, with every derivative in sight.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"chainrule {version('chainrule')}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: Callable[..., Any], help: str) -> argparse.ArgumentParser:
        sub = subparsers.add_parser(
            name,
            help=help,
            description=help,
            epilog=EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.set_defaults(run=run)
        _common_options(sub)
        return sub

    fit = command(
        "fit", commands.fit, "train a network on data, with a report and a file of the model"
    )
    _training_options(fit)
    _fit_options(fit)
    predicting.add_options(command("predict", predicting.predict, predicting.HELP))

    serving.add_options(command("serve", serving.serve, serving.HELP))

    evaluate = command("evaluate", commands.evaluate, "scores of a model on data with the target")
    evaluate.add_argument("model", metavar="MODEL", help="the folder that `fit` wrote")
    evaluate.add_argument("data", metavar="DATA", help="a table, or a folder of images by class")
    evaluate.add_argument(
        "--weight", metavar="COL", help="the column that says how much each row counts"
    )

    export = command("export", commands.export, "write a model with its preprocessing as ONNX")
    export.add_argument("model", metavar="MODEL", help="the folder that `fit` wrote")
    export.add_argument("out", metavar="FILE", help="the file to write, like model.onnx")
    export.add_argument("--opset", type=int, help="the version of ONNX's operators (18; up to 23)")

    inspecting.add_options(command("inspect", inspecting.inspect, inspecting.HELP))

    cv = command("cv", commands.cv, "cross-validation: train and score on each of several folds")
    _training_options(cv)
    cv.add_argument("--folds", type=int, default=5)
    cv.add_argument("--jobs", type=int, default=1, help="folds at once (needs joblib)")

    launching.add_options(command("launch", launching.launch, launching.HELP))

    drawing.add_options(command("atlas", drawing.atlas, drawing.HELP))

    command("datasets", commands.datasets, "the tables that come with the package")
    command("info", commands.show_info, "say what is installed, and which kernels compute and why")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status.

    2 is a user's mistake, 130 Ctrl-C, and 141 that nobody reads the output any more (``| head``).
    """
    with _interrupts(is_program=arguments is None):
        try:
            status = _run(list(sys.argv[1:] if arguments is None else arguments))
            sys.stdout.flush()
            return status
        except BrokenPipeError:
            _leave_output()
            return 141
        except KeyboardInterrupt:
            print("chainrule: interrupted", file=sys.stderr)
            return 130


def _leave_output() -> None:
    """What is still to be written goes nowhere, so that the end of the program does not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            with contextlib.suppress(OSError, ValueError):  # a stream that is no file
                os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@contextlib.contextmanager
def _interrupts(is_program: bool) -> Iterator[None]:
    """The first Ctrl-C raises KeyboardInterrupt; the second ends the process, whatever it does.

    At the end of the program there is nothing left to be interrupted.
    """
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not ours or threading.current_thread() is not threading.main_thread():
        yield
        return
    seen = itertools.count()

    def handle(number: int, frame: object) -> None:
        if next(seen):
            os.write(2, b"\nchainrule: interrupted again, ended at once\n")
            os._exit(130)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        last = signal.SIG_IGN if is_program else signal.default_int_handler
        signal.signal(signal.SIGINT, last)


def _tell(command: str, message: Warning | str, *more: Any) -> None:
    """A warning as a line."""
    print(f"chainrule {command}: {' '.join(str(message).split())}", file=sys.stderr)


def _run(given: list[str]) -> int:
    """Runs the command with its arguments; returns its exit status."""
    options = _parser().parse_args(given)
    options.arguments = given
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            # Of what Pillow warns, an error follows.
            warnings.filterwarnings("ignore", "Image size .* pixels")
            warnings.showwarning = functools.partial(_tell, options.command)
            result = options.run(options)
    except BrokenPipeError:
        raise  # of the output, not of what was asked for
    except (UserError, ValueError, TypeError, OSError, ImportError, RuntimeError) as error:
        if options.debug:
            traceback.print_exc()
        said = "; ".join([str(error), *getattr(error, "__notes__", ())])
        text = re.sub(r"^\[Errno \d+\] ", "", " ".join(said.split()))
        print(f"chainrule {options.command}: error: {text}", file=sys.stderr)
        return error.status if isinstance(error, UserError) else 2
    if options.json and processes.is_writer():
        print(json.dumps(result))
    return 0

"""``chainrule inspect``: an instrument applied to a saved network."""

from __future__ import annotations

import argparse
import ast
import inspect as signatures
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainrule.cli.arguments import UserError, is_image_folder, read

if TYPE_CHECKING:
    from collections.abc import Callable

    from chainrule.inspect import Instrument
    from chainrule.nn import Module
    from chainrule.train import FittedNetwork

__all__ = ["add_options", "inspect"]

HELP = "look into a saved network: its layers, what they compute, what they do with data"
WRITTEN = (".json", ".html", ".png", ".svg", ".tex", ".txt")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    add("model", metavar="MODEL", nargs="?", help="a folder of `fit`, or a file of chainrule.save")
    add("instrument", metavar="INSTRUMENT", nargs="?", help="its name (default: summary)")
    add("--list", action="store_true", help="the names of all instruments and what they are for")
    add(
        "--data",
        metavar="DATA",
        help="what the network is given: a table or images for a network of `fit`, else a file of "
        "chainrule.save with a tensor, or with a dict of inputs and targets",
    )
    add(
        "--input-size",
        metavar="N,N",
        nargs="+",
        help="made inputs instead: their sizes with the batch, such as 1,3,32,32",
    )
    add(
        "--loss",
        metavar="NAME",
        help="for instruments that need a loss: a function of nn.functional, such as cross_entropy "
        "(a network of `fit` has its own)",
    )
    add(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an argument of the instrument, such as layer=conv1",
    )
    add("--out", metavar="FILE", help=f"write the result: *{', *'.join(WRITTEN)}")


@dataclass
class _Saved:
    """What a file holds: a network, and how its data is read if `fit` wrote it."""

    model: Module
    fitted: FittedNetwork | None = None
    given: dict[str, Any] = field(default_factory=dict)  # what instruments can have


def inspect(options: argparse.Namespace) -> Any:
    """Applies an instrument to a saved network, prints what it found, and writes it."""
    if options.list:
        return _listed(options)
    if options.model is None:
        raise UserError("which network? give the folder that `fit` wrote, or see --list")
    chosen = _instrument(options.instrument or "summary")
    settings = _settings(chosen, options.set)
    loss = None if options.loss is None else _loss(chosen, options.loss)
    out = None if options.out is None else _checked_out(Path(options.out))
    saved = _load(options.model)
    _give(saved, options, chosen)
    if loss is not None:
        saved.given["loss"] = loss
    result = chosen.function(**_arguments(chosen, saved, options), **settings)
    if out is not None:
        _write(result, out)
    if not options.json:
        print(result if out is None else f"{chosen.name} is in {out}")
    return result.to_dict()


def _listed(options: argparse.Namespace) -> dict[str, str]:
    from chainrule.inspect import INSTRUMENTS

    given = {
        "MODEL": options.model,
        "--data": options.data,
        "--input-size": options.input_size,
        "--loss": options.loss,
        "--set": options.set,
        "--out": options.out,
    }
    for name, value in given.items():
        if value:
            raise UserError(f"--list takes no {name}")
    ordered = sorted(INSTRUMENTS.values(), key=lambda i: (i.room, i.name))
    if not options.json:
        width = max(len(i.name) for i in ordered)
        for one in ordered:
            print(f"{one.name:<{width}}  {one.purpose}")
    return {one.name: one.purpose for one in ordered}


def _instrument(name: str) -> Instrument:
    from chainrule.inspect import INSTRUMENTS

    if name not in INSTRUMENTS:
        raise UserError(f"there is no instrument {name!r}; there are {', '.join(INSTRUMENTS)}")
    return INSTRUMENTS[name]


def _settings(chosen: Instrument, given: list[str]) -> dict[str, Any]:
    """``name=value`` as keyword arguments; a value is a number, a tuple and so on, or text."""
    parameters = signatures.signature(chosen.function).parameters
    provided = {"model", "inputs", "input_size", "targets", "data", "loss", *chosen.needs}
    usable = [
        name
        for name, p in parameters.items()
        if name not in provided and p.kind != p.VAR_POSITIONAL
    ]
    settings: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name not in usable:
            known = ", ".join(usable) or "none"
            raise UserError(f"--set {text}: {chosen.name} has the arguments {known} to set")
        settings[name] = _value(value, str(parameters[name].annotation))
    return settings


def _value(text: str, kind: str) -> Any:
    """A literal of Python; text where text is wanted (a layer's name can be a number) or given."""
    if kind in ("str", "str | None") and text != "None":
        return text
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _loss(chosen: Instrument, name: str) -> Callable[[Any, Any], Any]:
    """A loss of ``nn.functional`` by its name, of the first tensor that the network returns."""
    from chainrule.inspect.core.arguments import main_tensor
    from chainrule.nn import functional

    if "loss" not in chosen.needs:
        raise UserError(f"{chosen.name} takes no loss; leave --loss out")
    known = [n for n in functional.__all__ if n.endswith("_loss") or "cross_entropy" in n]
    if name not in known:
        raise UserError(f"--loss {name}: there is no such loss; there are {', '.join(known)}")
    function = getattr(functional, name)
    return lambda output, targets: function(main_tensor(chosen.name, output), targets)


# --- the network ----------------------------------------------------------------------------------


def _load(path: str) -> _Saved:
    from chainrule.files import load
    from chainrule.nn import Module
    from chainrule.train import FittedNetwork
    from chainrule.train.fitted import KIND

    if not Path(path).exists():
        raise UserError(f"there is no model {path!r}; make one with `chainrule fit`")
    kept = load(path)
    is_older = isinstance(kept, dict) and kept.get("kind") == KIND
    if isinstance(kept, FittedNetwork) or is_older:
        fitted = FittedNetwork.load(path) if is_older else kept
        return _Saved(fitted.model.eval(), fitted)
    if isinstance(kept, Module):
        return _Saved(kept.eval())
    raise UserError(
        f"{path} holds no network but {type(kept).__name__}; save the module itself with "
        "chainrule.save(model, path)"
    )


# --- what it is given -----------------------------------------------------------------------------


def _give(saved: _Saved, options: argparse.Namespace, chosen: Instrument) -> None:
    """Puts together what instruments can ask for: inputs, targets, data and a loss."""
    from chainrule.inspect.structure.inputs import made_inputs

    if options.data is not None and options.input_size is not None:
        raise UserError("give --data or --input-size, not both")
    if options.data is not None:
        given = _read(saved, options.data)
        saved.given = {name: value for name, value in given.items() if value is not None}
    elif options.input_size is not None:
        sizes = [_size(text) for text in options.input_size]
        saved.given = {"inputs": made_inputs(chosen.name, saved.model, sizes)}
    elif saved.fitted is not None and chosen.room == "structure":
        saved.given = {"inputs": made_inputs(chosen.name, saved.model, _usual_size(saved.fitted))}
    if saved.fitted is not None:
        from chainrule.nn.functional import cross_entropy, mse_loss

        saved.given["loss"] = cross_entropy if saved.fitted.task == "classification" else mse_loss
    if "targets" in saved.given:
        saved.given["data"] = (saved.given["inputs"], saved.given["targets"])


def _read(saved: _Saved, data: str) -> dict[str, Any]:
    if saved.fitted is not None:
        return _read_by(saved.fitted, data)
    from chainrule.files import load
    from chainrule.tensor import Tensor

    if not Path(data).exists():
        raise UserError(f"there is no file {data!r}")
    kept = load(data)
    if isinstance(kept, dict) and set(kept) <= {"inputs", "targets"} and "inputs" in kept:
        return kept
    if isinstance(kept, Tensor) or (
        isinstance(kept, (tuple, list)) and kept and all(isinstance(t, Tensor) for t in kept)
    ):
        return {"inputs": kept}
    raise UserError(
        f"{data} must hold a tensor, a tuple of tensors, or a dict of inputs and targets, saved by "
        f"chainrule.save; it holds {type(kept).__name__}"
    )


def _read_by(fitted: FittedNetwork, data: str) -> dict[str, Any]:
    """Rows of a table or images as the network of `fit` reads them, with targets if there are."""
    from chainrule.data import Column
    from chainrule.data.image_encoder import image_files

    target = fitted.about["target"]
    if fitted.about.get("images"):
        if not is_image_folder(data):
            raise UserError(f"{data} must be a folder of images: the network was trained on images")
        paths, classes = image_files(data)
        inputs = fitted.inputs(paths, target)
        return {"inputs": inputs, "targets": fitted.target(Column("class", "category", classes))}
    table, _ = read(data)
    names = fitted.target.names
    known = fitted.target(table) if all(name in table for name in names) else None
    return {"inputs": fitted.inputs(table.without(*names)), "targets": known}


def _usual_size(fitted: FittedNetwork) -> list[tuple[int, ...]]:
    encoder: Any = fitted.inputs
    if fitted.about.get("images"):
        return [(1, encoder.channels, *encoder.size)]
    return [(1, len(encoder.feature_names))]


def _size(text: str) -> tuple[int, ...]:
    parts = text.replace("x", ",").split(",")
    if not all(p.strip().isdigit() for p in parts):
        raise UserError(f"--input-size {text}: expected sizes with the batch like 1,3,32,32")
    return tuple(int(p) for p in parts)


NEEDED = {
    "inputs": "--data or --input-size",
    "targets": "--data with the target",
    "data": "--data with the target",
    "loss": "--loss, such as --loss cross_entropy (a network of `chainrule fit` has its own)",
}


def _arguments(chosen: Instrument, saved: _Saved, options: argparse.Namespace) -> dict[str, Any]:
    """What the instrument needs, and what it can use besides."""
    given = {"model": saved.model, **saved.given}
    parameters = signatures.signature(chosen.function).parameters
    needs = [n for n in chosen.needs if n in parameters or n not in NEEDED]
    missing = [n for n in needs if n not in given and not _can_do_without(chosen, n)]
    if missing:
        name = missing[0]
        if name not in NEEDED:
            raise UserError(f"{chosen.name} needs {name}, which only a program can give it")
        raise UserError(f"{chosen.name} needs {name}: give {NEEDED[name]}")
    if options.data is not None and not {"inputs", "data", "targets"} & set(parameters):
        raise UserError(f"{chosen.name} takes no data; leave --data out")
    return {n: given[n] for n in (*needs, "targets") if n in given and n in parameters}


def _can_do_without(chosen: Instrument, name: str) -> bool:
    """The summary of a network without inputs lists its parameters."""
    return chosen.name == "summary" and name == "inputs"


# --- what is written ------------------------------------------------------------------------------


def _checked_out(out: Path) -> Path:
    """Before any work is done: whether the result can be written there."""
    if out.suffix not in WRITTEN:
        raise UserError(f"--out {out}: name a file that ends in {', '.join(WRITTEN)}")
    if out.is_dir():
        raise UserError(f"--out {out}: that is a folder")
    parent = out.parent
    if not parent.is_dir():
        raise UserError(f"--out {out}: there is no folder {parent}")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise UserError(f"--out {out}: no permission to write in {parent}")
    return out


def _write(result: Any, out: Path) -> None:
    from chainrule.files import write_atomically
    from chainrule.inspect.core.pages import page

    if out.suffix == ".json":
        data = json.dumps(result.to_dict()).encode()
    elif out.suffix == ".txt":
        data = f"{result}\n".encode()
    elif out.suffix == ".html":
        whole = result.to_html() if hasattr(result, "to_html") else None
        data = (whole or page(type(result).__name__, result._repr_html_())).encode()
    else:
        data = _picture(result, out.suffix[1:])
    write_atomically(out, data)


def _picture(result: Any, form: str) -> bytes:
    """The picture as SVG text or as pixels."""
    if form == "tex":
        if not hasattr(result, "to_tikz"):
            raise UserError("drawings of networks are written as .tex; name it .svg or .png")
        return str(result.to_tikz()).encode()
    if hasattr(result, "svg"):
        if form != "svg":
            raise UserError("a diagram is written as .svg or .html, without a library")
        return str(result.svg).encode()
    import io

    drawn = result.plot()
    while not hasattr(drawn, "figure"):
        drawn = drawn[0]
    import matplotlib.pyplot as plt

    written = io.BytesIO()
    drawn.figure.savefig(written, format=form, dpi=120)
    plt.close(drawn.figure)
    return written.getvalue()

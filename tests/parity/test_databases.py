"""PyTorch's own records of its operators, modules and optimizers, run on both libraries.

An entry is a record in one dtype and one aspect. Those that do not agree are listed with the
reason, and the list is exact: an entry of it that agrees fails, too.
"""

from __future__ import annotations

import itertools
import pathlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import chainrule

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's records need it")

from parity.database import modules, operators, optimizers  # noqa: E402
from parity.database.differences import DIFFERENCES  # noqa: E402
from torch.testing._internal import common_utils  # noqa: E402
from torch.testing._internal.opinfo import core  # noqa: E402

FLOATS = ["float64", "complex128"]
KINDS = {
    "values": ["float64", "float32", "int64", "bool", "complex128"],
    "gradients": FLOATS,
    "second_order": FLOATS,
    "forward_mode": FLOATS,
    "methods": ["float64", "int64"],
    "in_place": ["float64", "int64"],
    "errors": ["float64"],
}
CLOSE = {"values", "gradients", "steps"}  # the aspects that nearly all entries must agree in
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "pytorch.md"


@dataclass(frozen=True)
class Entry:
    """A record in one dtype and one aspect."""

    database: str
    record: str
    dtype: str
    aspect: str
    run: Callable[[], Iterator[str]]

    def __str__(self) -> str:
        return f"{self.database}:{self.record}:{self.dtype}:{self.aspect}"

    def reason(self) -> str | None:
        """Why the libraries differ here, if they are known to."""
        found = (why for pattern, why in DIFFERENCES.items() if re.fullmatch(pattern, str(self)))
        return next(found, None)


def of_operators() -> Iterator[Entry]:
    for name, op in operators.OPERATORS.items():
        for aspect, run in operators.ASPECTS.items():
            if not operators.applies(op, aspect):
                continue
            derived = aspect in {"gradients", "second_order", "forward_mode"}
            known = (op.supported_backward_dtypes if derived else op.supported_dtypes)("cpu")
            for dtype in KINDS[aspect]:
                if aspect == "errors" or getattr(torch, dtype) in known:
                    yield Entry("op", name, dtype, aspect, lambda o=op, d=dtype, r=run: r(o, d))


def of_others() -> Iterator[Entry]:
    sources: list[tuple[str, Any, dict[str, Any]]] = [
        ("module", modules, modules.MODULES),
        ("optim", optimizers, optimizers.OPTIMIZERS),
    ]
    for database, room, records in sources:
        present = {name: info for name, info in records.items() if room.exists(info)}
        for (name, info), (aspect, run) in itertools.product(present.items(), room.ASPECTS.items()):
            every = aspect in {"values", "gradients", "second_order", "steps"}
            for dtype in room.dtypes(info) if every else ["float64"]:
                if aspect in {"values", "steps"} or dtype != "float32":
                    yield Entry(
                        database, name, dtype, aspect, lambda o=info, d=dtype, r=run: r(o, d)
                    )


ENTRIES = [*of_operators(), *of_others()]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Two libraries whose threads wait for each other on few cores are slow."""
    before = torch.get_num_threads(), chainrule.get_num_threads()
    torch.set_num_threads(1)
    chainrule.set_num_threads(1)
    yield
    torch.set_num_threads(before[0])
    chainrule.set_num_threads(before[1])


@pytest.fixture(autouse=True, scope="module")
def no_test_of_unittest() -> Iterator[None]:
    """Each list of samples looks through the whole stack, with the sources of every frame, for a
    test of unittest that it belongs to: here there is none, and that took most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (common_utils, core):
            patch.setattr(module, "extract_test_fn", lambda: None)
        yield


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_entry(entry: Entry) -> None:
    with np.errstate(all="ignore"):
        found = list(itertools.islice(entry.run(), 5))
    if entry.reason() is None:
        assert not found, "\n".join(line[:500] for line in found)
    else:
        assert found, f"agrees now: take it out of the list ({entry.reason()})"


@pytest.mark.parametrize(("aspects", "share"), [(CLOSE, 0.995), (None, 0.98)])
def test_share_of_entries_that_agree(aspects: set[str] | None, share: float) -> None:
    asked = [e for e in ENTRIES if (e.aspect in CLOSE) == (aspects is not None)]
    differ = [e for e in asked if e.reason() is not None]
    assert 1 - len(differ) / len(asked) >= share, sorted(map(str, differ))


def test_each_difference_stands_on_the_page() -> None:
    page = PAGE.read_text()
    assert [why for why in DIFFERENCES.values() if why not in page] == []


def test_each_pattern_matches_an_entry() -> None:
    names = [str(e) for e in ENTRIES]
    unused = [p for p in DIFFERENCES if not any(re.fullmatch(p, n) for n in names)]
    assert unused == []

"""Changes of files: what disks, networks and attackers do to bytes and to JSON."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

__all__ = ["changed_bytes", "changed_json", "dumped"]

Random = random.Random
EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
WIDE = (2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
NUMBERS = (
    "0",
    "-1",
    "1e308",
    "1e999",
    "-0.0",
    "nan",
    "NaN",
    "Infinity",
    "null",
    "4294967296",
    "9223372036854775808",
    "1" + "0" * 30,
    "9" * 400,
    "9" * 5000,
    "[1]",
    '"1"',
)
DIGITS = re.compile(rb"\d+")


# --- bytes ----------------------------------------------------------------------------------------


def _place(r: Random, content: bytes) -> int:
    """Where to change something: anywhere, or where headers are."""
    return r.randrange(min(len(content), 64) if r.random() < 0.4 else len(content))


def _slice(r: Random, content: bytes) -> slice:
    start = _place(r, content)
    return slice(start, start + min(r.choice((1, 2, 4, 8, 64, 1024)), len(content)))


def _flip(r: Random, content: bytes, other: bytes) -> bytes:
    out = bytearray(content)
    for _ in range(r.choice((1, 1, 1, 2, 8))):
        out[_place(r, content)] ^= 1 << r.randrange(8)
    return bytes(out)


def _overwrite(r: Random, content: bytes, other: bytes) -> bytes:
    at = _slice(r, content)
    return content[: at.start] + r.randbytes(len(content[at])) + content[at.stop :]


def _truncate(r: Random, content: bytes, other: bytes) -> bytes:
    return content[: r.randrange(len(content))]


def _extend(r: Random, content: bytes, other: bytes) -> bytes:
    return content + r.choice((r.randbytes(r.randrange(1, 100)), b"\0" * 8, content, other))


def _insert(r: Random, content: bytes, other: bytes) -> bytes:
    at = _place(r, content)
    return content[:at] + r.randbytes(r.choice((1, 2, 4, 8, 64))) + content[at:]


def _delete(r: Random, content: bytes, other: bytes) -> bytes:
    at = _slice(r, content)
    return content[: at.start] + content[at.stop :]


def _repeat(r: Random, content: bytes, other: bytes) -> bytes:
    at = _slice(r, content)
    return content[: at.stop] + content[at] * r.choice((1, 1, 2, 50)) + content[at.stop :]


def _move(r: Random, content: bytes, other: bytes) -> bytes:
    """A part to another place, over what is there."""
    at, to = _slice(r, content), _place(r, content)
    part = content[at]
    return content[:to] + part + content[to + len(part) :]


def _extreme_length(r: Random, content: bytes, other: bytes) -> bytes:
    """A number of 1 to 8 bytes that is as small or as large as it can be, or off by a little."""
    width = r.choice((1, 2, 4, 8))
    at, order = _place(r, content), r.choice(("little", "big"))
    old = int.from_bytes(content[at : at + width], order)  # type: ignore[arg-type]
    new = r.choice((*EXTREMES, *WIDE, old + 1, old - 1, old * 2)) % 256**width
    return content[:at] + new.to_bytes(width, order) + content[at + width :]  # type: ignore[arg-type]


def _number_in_text(r: Random, content: bytes, other: bytes) -> bytes:
    start = _place(r, content)
    found = DIGITS.search(content, start) or DIGITS.search(content)
    if found is None:
        return _flip(r, content, other)
    return content[: found.start()] + r.choice(NUMBERS).encode() + content[found.end() :]


def _head_of_another(r: Random, content: bytes, other: bytes) -> bytes:
    size = r.choice((1, 4, 8, 16, 64, 512))
    return other[:size] + content[size:]


def _spliced(r: Random, content: bytes, other: bytes) -> bytes:
    return content[: r.randrange(len(content))] + other[r.randrange(len(other) or 1) :]


CHANGES: tuple[Callable[[Random, bytes, bytes], bytes], ...] = (
    _flip,
    _overwrite,
    _truncate,
    _extend,
    _insert,
    _delete,
    _repeat,
    _move,
    _extreme_length,
    _number_in_text,
    _head_of_another,
    _spliced,
)


def changed_bytes(r: Random, content: bytes, others: Sequence[bytes]) -> bytes:
    """The content of a file with one to three changes; ``others`` are files to take parts from."""
    for _ in range(r.choice((1, 1, 1, 2, 3))):
        if content:
            content = r.choice(CHANGES)(r, content, r.choice(others))
    return content


# --- JSON -----------------------------------------------------------------------------------------

VALUES = [
    json.dumps(value)
    for value in (
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        64,
        1000,
        2**31,
        2**63,
        10**30,
        0.5,
        -0.0,
        1e308,
        float("nan"),
        float("inf"),
        "",
        "x",
        "0.weight",
        "..",
        "\ud800",
        "__class__",
        "y" * 10_000,
        [],
        {},
        [[]],
        [0] * 3,
        {"tensor": "0.weight"},
        {"dict": [[1, 2]]},
        {"tuple": []},
        {"float": "x"},
        {"dtype": "float99"},
        {"device": "cuda"},
        {"named": "nn.functional.relu"},
        {"named": "chainrule.manual_seed"},
        {"same": 0},
        {"module": {"same": 10**9}},
        {"sparse": {}},
    )
]

# Stands for lists in lists, as deep as a reader can be driven; written by `dumped`.
DEEP = "lists in lists"
DEPTHS = (50, 400, 980, 3000, 100_000)


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """All (container, key) of a tree."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in items:
            yield node, key
            if isinstance(value, (dict, list)) and value:
                waiting.append(value)


def _change_one(r: Random, tree: Any, words: Sequence[str]) -> None:
    places = list(_places(tree))
    if not places:
        return
    node, key = r.choice(places)
    way = r.random()
    if way < 0.35:
        node[key] = json.loads(r.choice(VALUES))
    elif way < 0.5:  # a value from elsewhere
        other, at = r.choice(places)
        node[key] = json.loads(json.dumps(other[at]))
    elif way < 0.62:
        del node[key]
    elif way < 0.72 and words:
        node[key] = r.choice(words)
    elif way < 0.8 and isinstance(node[key], int):
        node[key] = r.choice((node[key] + 1, -node[key], node[key] * 2, node[key] * 10**6, 2**40))
    elif way < 0.86 and isinstance(node[key], list):
        size = max(len(json.dumps(node[key])), 1)
        times = r.choice([n for n in (2, 100, 1000) if n * size < 3_000_000] or [1])
        # Copies: elements that are one object would all change with the next change.
        node[key] = json.loads(json.dumps(node[key] * times))
    elif way < 0.92 and isinstance(node, dict):
        node[r.choice([*node, *words, "x"])] = node.pop(key)
    elif way < 0.96:
        node[key] = DEEP
    elif isinstance(node, list):
        r.shuffle(node)


def changed_json(r: Random, text: str | bytes, words: Sequence[str] = ()) -> Any:
    """The tree in a JSON text after one to four changes; ``words`` are names with a meaning."""
    tree = json.loads(text)
    for _ in range(r.choice((1, 1, 1, 2, 4))):
        _change_one(r, tree, words)
    return tree


def dumped(r: Random, tree: Any) -> bytes:
    """JSON as text; now and then with what no parser likes."""
    text = json.dumps(tree)
    if DEEP in text:
        opening, closing = r.choice((("[", "]"), ('{"tuple":[', "]}"), ('{"dict":[["k",', "]]}")))
        depth = r.choice(DEPTHS)
        text = text.replace(json.dumps(DEEP), f"{opening * depth}0{closing * depth}", 1)
    if r.random() < 0.01:
        text = text.replace("1", "1" * 5000, 1)
    return text.encode("utf-8", "surrogatepass")

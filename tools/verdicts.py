"""Records what the entries of the atlas find: ``python tools/verdicts.py [IDS]``.

Computes the entries of these ids, or all, at their quick settings, and writes their verdicts below
tests/atlas/verdicts (a file for each file of entries). The tables of all verdicts in README.md and
docs/atlas.md are written by ``chainrule atlas --summary FILE``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import matplotlib  # noqa: E402
from atlas.required import VERDICTS  # noqa: E402

from chainrule.atlas import choose, compute, entries  # noqa: E402
from chainrule.atlas.core.pictures import close_all  # noqa: E402


def file_of(module: str) -> Path:
    """Where the verdicts of a file of entries are recorded."""
    return VERDICTS / f"{module.removeprefix('chainrule.atlas.')}.json"


def main(ids: list[str]) -> None:
    """Computes, records and tells."""
    matplotlib.use("agg")
    found: dict[Path, dict[str, str]] = {}
    for entry in choose(ids):
        outcome = compute(entry)
        close_all()
        found.setdefault(file_of(entry.function.__module__), {})[entry.id] = entry.verdict(outcome)
        print(entry.id, entry.verdict(outcome))
        for judged in entry.judge(outcome):
            print(f"    {judged.finding}: {judged.name}: {judged.printed} | {judged.obtained}")
    known = entries()
    for path, verdicts in found.items():
        before = json.loads(path.read_text("utf-8")) if path.exists() else {}
        kept = {
            id: v
            for id, v in before.items()
            if id in known and file_of(known[id].function.__module__) == path
        }
        path.write_text(json.dumps(dict(sorted({**kept, **verdicts}.items())), indent=1) + "\n")
    print(f"{len(known)} entries")


if __name__ == "__main__":
    main(sys.argv[1:])

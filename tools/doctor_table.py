"""Plants the mistakes, runs the healthy networks, and writes what the doctor says into its page.

The cases stand in ``tests/looking/planted.py`` and ``tests/looking/healthy.py``; the tables go into
``docs/doctor.md`` below the line that names this program. Run ``make doctor``.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "doctor.md"
MARK = "<!-- below this line written by tools/doctor_table.py -->\n"
SEEDS = 3

sys.path.insert(0, str(ROOT / "tests"))


def _cells(*values: object) -> str:
    return "| " + " | ".join(str(v).replace("|", "\\|") for v in values) + " |"


def _header(*names: str) -> list[str]:
    return [_cells(*names), "|" + "---|" * len(names)]


def rules() -> list[str]:
    """The table of all rules, which needs no run."""
    from chainrule.inspect import RULES

    lines = ["## The rules", "", *_header("mistake", "looks at", "kind", "from", "why from there")]
    return lines + [
        _cells(r.name, r.stage, r.severity, f"{r.threshold:g}", r.because) for r in RULES.values()
    ]


def planted(seeds: int) -> list[str]:
    """Every mistake, and what was said of it."""
    from looking.planted import MISTAKES

    rows, found, others = [], 0, 0
    for name, (rule, run) in MISTAKES.items():
        said = [run(seed) for seed in range(seeds)]
        hits = [[f for f in findings if f.rule == rule] for findings in said]
        others += sum(f.rule != rule for findings in said for f in findings)
        found += all(hits)
        first = hits[0][0] if hits[0] else None
        words = [rule, "", "", "not found"]
        if first is not None:
            words = [rule, first.layer, f"{first.number:.3g}", first.remedy]
        rows.append(_cells(name, *words[:3], f"{sum(map(bool, hits))} of {seeds}", words[3]))
    count = len(MISTAKES)
    return [
        "## Planted mistakes",
        "",
        f"{found} of {count} are found from each of {seeds} starts; in these {count * seeds} runs "
        f"{others} other findings were told, too.",
        "",
        *_header("planted", "rule", "layer", "number", "found", "remedy"),
        *rows,
    ]


def healthy(seeds: int) -> list[str]:
    """Every healthy run, and whether the doctor was silent."""
    from looking.healthy import HEALTHY

    rows, silent = [], 0
    for name, run in HEALTHY.items():
        said = [run(seed) for seed in range(seeds)]
        quiet = sum(not findings for findings in said)
        silent += quiet == seeds
        told = ", ".join(sorted({f.rule for findings in said for f in findings})) or "nothing"
        rows.append(_cells(name, f"{quiet} of {seeds}", told))
    return [
        "## Healthy runs",
        "",
        f"On {silent} of {len(HEALTHY)} nothing is told from any of {seeds} starts: before "
        "training, beside it, and after it.",
        "",
        *_header("run", "silent", "told"),
        *rows,
    ]


def main(seeds: int = SEEDS) -> None:
    """Writes the tables."""
    lines = [*planted(seeds), "", *healthy(seeds), "", *rules()]
    written, mark, _ = PAGE.read_text("utf-8").partition(MARK)
    PAGE.write_text(written + mark + "\n" + "\n".join(lines) + "\n", "utf-8")
    print(*(line for line in lines if " of " in line and not line.startswith("|")), sep="\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

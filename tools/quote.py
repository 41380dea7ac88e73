"""Quotations of source on the pages: a block below a mark has the text of the source.

A mark names a file and a definition in it; the block below it is the text of that definition:

    <!-- from: src/chainrule/ops/elementwise/functions.py: tanh -->
    ```py
    tanh = unary(...)
    ```

A method is named ``Class.method``. ``python tools/quote.py`` writes the blocks anew;
``tests/test_docs.py`` says whether they are current.
"""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
QUOTATION = re.compile(
    r"^<!-- from: (?P<path>\S+): (?P<name>[\w.]+) -->\n```py\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def pages() -> list[Path]:
    """The pages of the project, those at the root first."""
    return [
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / "docs").glob("**/*.md")),
    ]


def names(node: ast.stmt) -> list[str]:
    """The names that a statement gives."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return [
        leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name)
    ]


def definition(source: str, name: str) -> str:
    """The lines that define a name (of several definitions the last, which counts)."""
    body: list[ast.stmt] = ast.parse(source).body
    *outer, last = name.split(".")
    for part in outer:
        (holder,) = [n for n in body if isinstance(n, ast.ClassDef) and n.name == part]
        body = holder.body
    found = [node for node in body if last in names(node)]
    if not found:
        raise LookupError(f"there is no {name} in the source")
    node = found[-1]
    decorators = node.decorator_list if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else []
    first = min([node.lineno, *[d.lineno for d in decorators]])
    lines = source.splitlines()[first - 1 : node.end_lineno]
    return textwrap.dedent("\n".join(lines)) + "\n"


def current(page: str, root: Path = ROOT) -> str:
    """The page with its quotations as the source has them now."""

    def anew(match: re.Match[str]) -> str:
        source = (root / match["path"]).read_text("utf-8")
        mark = match.group().partition("\n")[0]
        return f"{mark}\n```py\n{definition(source, match['name'])}```"

    return QUOTATION.sub(anew, page)


def main() -> None:
    """Writes the pages whose quotations have changed."""
    for path in pages():
        before = path.read_text("utf-8")
        after = current(before)
        if after != before:
            path.write_text(after, "utf-8")
            print(f"{path.relative_to(ROOT)}: quotations written anew")


if __name__ == "__main__":
    main()

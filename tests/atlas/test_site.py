"""The pages of the atlas: links, pictures, cards, code, and the file of all numbers."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from chainrule.atlas import Number, Statement, Unchecked, choose, entries, run
from chainrule.atlas.core import running
from chainrule.atlas.core.sources import code_of, public_names
from chainrule.atlas.site.card import card
from chainrule.atlas.site.code import colored
from chainrule.atlas.site.sizes import size_of
from chainrule.atlas.site.writing import write_site

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out: Path = tmp_path_factory.mktemp("atlas")
    run(choose(["V28", "M22", "ERR001", "ERR003"]), out)
    write_site(out)
    return out


def broken_links(site: Path) -> list[str]:
    """Addresses of pages that lead to no file, to no place on a page, or to elsewhere."""
    pages = {p.name: p.read_text("utf-8") for p in site.glob("*.html")}
    places = {name: {*re.findall(r'id="([^"]*)"', text)} for name, text in pages.items()}
    found = []
    for name, text in pages.items():
        for address in re.findall(r'(?:href|src)="([^"]*)"', text):
            path, _, anchor = address.partition("#")
            whole = "//" not in address and (site / (path or name)).is_file()
            if not whole or (anchor and anchor not in places[path or name]):
                found.append(f"{name}: {address}")
    return found


def test_every_link_leads_somewhere(site: Path) -> None:
    assert {p.name for p in site.glob("*.html")} == {"index.html", "api.html"} | {
        f"{id}.html" for id in ("V28", "M22", "ERR001", "ERR003")
    }
    assert not broken_links(site)
    index = site / "index.html"
    text = index.read_text("utf-8")
    for planted in ("https://example.com/a.png", "V99.html", "api.html#chainrule.gone"):
        index.write_text(text.replace('href="api.html"', f'href="{planted}"'), "utf-8")
        assert broken_links(site) == [f"index.html: {planted}"]
    index.write_text(text, "utf-8")


def test_all_pages_of_the_atlas_are_linked(tmp_path: Path) -> None:
    """Of every entry, as if it had been computed."""
    for id in entries():
        one = Unchecked("a claim", "a text", "it is not computed here").judge()
        told = running.Record(id, "", False, {}, "not checked", [one], {})
        folder = tmp_path / "files" / id
        folder.mkdir(parents=True)
        (folder / "record.json").write_text(json.dumps(dataclasses.asdict(told)), "utf-8")
    shown = write_site(tmp_path)
    assert [e.id for e, _ in shown] == [*entries()]
    assert not broken_links(tmp_path)
    linked = [id for id in entries() if "api.html#" in (tmp_path / f"{id}.html").read_text("utf-8")]
    assert len(linked) > 0.95 * len(entries())


def test_pictures_have_their_size_on_the_page(tmp_path: Path) -> None:
    drawn = tmp_path / "a.svg"
    drawn.write_text('<?xml version="1.0"?>\n<svg width="144pt" height="72pt"><g width="9"/></svg>')
    assert size_of(drawn) == (192, 96)
    drawn.write_text('<svg viewBox="0 0 3 4" width="30.4" height="40px"/>')
    assert size_of(drawn) == (30, 40)
    figure = pyplot.figure(figsize=(2, 1))
    figure.savefig(tmp_path / "a.png", dpi=130)
    pyplot.close(figure)
    assert size_of(tmp_path / "a.png") == (192, 96)


def test_the_json_file_has_all_numbers(site: Path) -> None:
    told = json.loads((site / "atlas.json").read_text("utf-8"))
    assert [e["id"] for e in told["entries"]] == ["V28", "M22", "ERR001", "ERR003"]
    v28 = told["entries"][0]
    assert v28["obtained"]["feature map"] == [4, 3, 4, 2, 4, 3, 2, 3, 4]
    assert (v28["verdict"], v28["course"]) == ("reproduced", "004")
    assert (site / v28["films"][0]).is_file()


def test_a_page_shows_printed_obtained_and_code(site: Path) -> None:
    text = (site / "ERR003.html").read_text("utf-8")
    for words in ("1.7581", "erratum", "files/ERR003/card.svg", "def</span> selu", "api.html#"):
        assert words in text
    assert (site / "files" / "ERR003" / "card.svg").is_file()


def test_writing_again_changes_nothing(site: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in site.rglob("*") if p.is_file()}
    write_site(site)
    assert {p: p.stat().st_mtime_ns for p in site.rglob("*") if p.is_file()} == before


def test_the_card_holds_text_that_looks_like_tags() -> None:
    judged = Number("<b>" + "long " * 30, 1.0, 0.5).judge(1.0)
    drawn = card([judged] * 5)
    assert "<b>" not in drawn
    assert drawn.count("…") == 3
    words = Statement("n", "said in as many words as there is place for in rows", at_most=1)
    rows = re.findall(r"<text[^>]*>([^<]*)<", card([words.judge([0.123456] * 12)]))
    assert " ".join(rows).startswith(
        "n printed: said in as many words as there is place for in rows"
    )
    assert max(map(len, rows)) <= 52


def test_code_is_shown_with_its_helpers_and_names() -> None:
    whole = code_of(entries()["X06"])  # through a module: training.landscape_outcome
    assert whole.index("def landscape_outcome") < whole.index("def optimizer_matrix")
    several = code_of(entries()["ERR014"])  # H, D, K, T = ...: one line for four names
    assert several.count("H, D, K, T = ") == 1
    code = code_of(entries()["X01"])
    assert code.index("def descend") < code.index("def line_outcome") < code.index("def sgd_on")
    assert "chainrule.optim.SGD" in public_names(entries()["X01"])
    assert colored("x = 'a'  # <b>\n") == (
        'x = <span class="s">&#x27;a&#x27;</span>  <span class="c"># &lt;b&gt;</span>\n'
    )

"""Every entry of the atlas, at its quick settings: verdict, tampered claims, pictures."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from atlas.required import ROOT, VERDICTS, required
from looking.drawn import assert_axes_numbered, assert_drawn_well

from chainrule.atlas import Number, Unchecked, compute, entries
from chainrule.atlas.core.claims import tampered, verdict_of, without_files
from chainrule.atlas.core.pictures import close_all, figure_of, files_of
from chainrule.atlas.core.sources import code_of
from chainrule.atlas.core.values import numbers
from chainrule.atlas.site.summary import with_summary

pytest.importorskip("matplotlib")
RECORDED = {
    id: verdict
    for path in VERDICTS.glob("*.json")
    for id, verdict in json.loads(path.read_text("utf-8")).items()
}


@pytest.fixture(autouse=True)
def _figures() -> Iterator[None]:
    import matplotlib

    matplotlib.use("agg")
    yield
    close_all()


@pytest.mark.parametrize("id", [*entries()])
def test_entry(id: str) -> None:
    """Its verdict is the recorded one (``python tools/verdicts.py ID`` records it)."""
    entry = entries()[id]
    outcome = compute(entry)
    judged = entry.judge(outcome)
    told = "\n".join(map(str, judged))
    assert verdict_of(judged) == RECORDED.get(id, "not recorded"), told
    for place, claim in enumerate(entry.claims):
        if judged[place].finding == "not checked":
            assert isinstance(claim, Unchecked) or (claim.needs and entry.data), claim
            continue
        changed, obtained = tampered(claim, outcome.obtained[claim.name])
        turned = changed.judge(obtained)  # type: ignore[arg-type]
        assert turned.finding != judged[place].finding, f"{claim} is not decided by its number"
        if verdict_of(judged) in ("reproduced", "erratum"):
            others = [*judged[:place], turned, *judged[place + 1 :]]
            assert verdict_of(others) != verdict_of(judged), claim
    for number, drawn in enumerate(outcome.pictures):
        figure = figure_of(drawn)
        if figure is not None:
            assert_drawn_well(figure)
            assert_axes_numbered(figure)
        assert all([file.content for file in files_of(number, drawn)])


def test_every_id_has_an_entry() -> None:
    assert not [id for id in required() if id not in entries()]


def test_every_recorded_verdict_is_of_an_entry() -> None:
    assert {*RECORDED} == {*entries()}


@pytest.mark.parametrize("page", ["README.md", "docs/atlas.md"])
def test_the_counts_on_the_pages_are_current(page: str) -> None:
    """``chainrule atlas --summary README.md --summary docs/atlas.md`` writes them."""
    text = (ROOT / page).read_text("utf-8")
    found = [(entries()[id].group, verdict) for id, verdict in RECORDED.items()]
    assert with_summary(text, found) == text


def test_nearly_all_claims_are_decided_by_numbers() -> None:
    claims = [c for e in entries().values() for c in e.claims]
    unchecked = [c for c in claims if isinstance(c, Unchecked) or without_files(c)]
    assert len(unchecked) <= 0.05 * len(claims), unchecked


def is_narrow(claim: Number) -> bool:
    """Whether what the claim allows is little beside its number: two standard deviations, half of
    a count's unit, or a tenth."""
    found = numbers(claim.printed)
    largest = max(map(abs, found)) or 1.0
    is_count = claim.tolerance <= 0.5 and all(x.is_integer() for x in found)
    return claim.deviations <= 2 and (is_count or claim.tolerance <= 0.1 * largest)


def test_no_tolerance_takes_in_other_numbers() -> None:
    """Ten tolerances turn a claim however wide they are: so they must not be wide."""
    claims = [(id, c) for id, e in entries().items() for c in e.claims if isinstance(c, Number)]
    assert not [(id, c.name) for id, c in claims if not is_narrow(c)]


@pytest.mark.parametrize(
    ("claim", "narrow"),
    [
        (Number("n", 61706, 0.5), True),
        (Number("n", (1, 2), 0.5), True),
        (Number("n", 0.17, 0.5), False),
        (Number("n", (0.0, 1.0), 0.1), True),
        (Number("n", (0.0, 1.0), 0.6), False),
        (Number("n", 0.6, deviations=2), True),
        (Number("n", 0.6, deviations=3), False),
    ],
)
def test_a_wide_tolerance_is_seen(claim: Number, narrow: bool) -> None:
    assert is_narrow(claim) == narrow


@pytest.mark.parametrize("id", [*entries()])
def test_its_code_is_shown_whole(id: str) -> None:
    code = code_of(entries()[id])
    compile(code, id, "exec")
    assert f'@entry(\n    "{id}"' in code
    assert entries()[id].function.__name__ in code

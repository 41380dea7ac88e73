"""Claims and verdicts, the list of entries, running and resuming."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import chainrule
from chainrule import nn
from chainrule.atlas import (
    NOT_KEPT,
    Entry,
    Failed,
    Forms,
    Keep,
    Number,
    Outcome,
    Refuted,
    Spread,
    Statement,
    Unchecked,
    Wrong,
    attempt,
    choose,
    compute,
    entries,
    entry,
    run,
)
from chainrule.atlas.core import running
from chainrule.atlas.core.claims import tampered, verdict_of, without_files
from chainrule.atlas.core.registry import ENTRIES
from chainrule.atlas.core.sources import key_of
from chainrule.atlas.core.values import distance, shown

pytest.importorskip("matplotlib")
inf = math.inf

# --- claims ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "obtained", "finding"),
    [
        (Number("n", 0.7877, 5e-5), 0.78767, "holds"),
        (Number("n", 0.7877, 5e-5), 0.7879, "does not hold"),
        (Number("n", (1, 2), 0.5), [1, 2], "holds"),
        (Number("n", (1, 2), 0.5), [1, 2, 3], "does not hold"),
        (Number("n", 2.0, 1.0), math.nan, "does not hold"),
        (Number("n", 2.0, deviations=2), Spread((1.0, 2.0, 3.5)), "holds"),
        (Number("n", 9.0, deviations=2), Spread((1.0, 2.0, 3.5)), "does not hold"),
        (Statement("s", "small", at_most=1), [0.5, 1.0], "holds"),
        (Statement("s", "small", at_most=1), [0.5, 1.5], "does not hold"),
        (Statement("s", "in", at_least=0, at_most=1), math.nan, "does not hold"),
        (Wrong("w", "a", "b"), Forms(1.0, 2.0, 2.0), "erratum"),
        (Wrong("w", "a", "b"), Forms(2.0, 2.0, 2.0), "the printed form holds"),
        (Wrong("w", "a", "b"), Forms(1.0, 3.0, 2.0), "does not hold"),
        (Wrong("w", "a", "b"), Forms(Failed("TypeError"), 2.0, 2.0), "erratum"),
        (Refuted("r", "positive", (1e-9, inf), "not negative", (0, inf)), 0.0, "erratum"),
        (
            Refuted("r", "positive", (1e-9, inf), "not negative", (0, inf)),
            1.0,
            "the printed form holds",
        ),
        (Refuted("r", "positive", (1e-9, inf), "not negative", (0, inf)), -1.0, "does not hold"),
    ],
)
def test_a_claim_is_judged_by_its_number(claim: object, obtained: object, finding: str) -> None:
    judged = claim.judge(obtained)  # type: ignore[attr-defined]
    assert judged.finding == finding
    if finding in ("holds", "erratum"):
        turned, changed = tampered(claim, obtained)  # type: ignore[arg-type]
        assert turned.judge(changed).finding != finding  # type: ignore[arg-type]


def test_a_number_that_is_not_printed_says_where_it_comes_from() -> None:
    claim = Number("parameters", 62_006, 0.5, needs="the files", unprinted="counted by hand")
    expected = "62006 (not printed: counted by hand)"
    assert claim.judge(62_006).printed == expected
    unchecked = without_files(claim)
    assert unchecked is not None
    assert unchecked.text == expected
    assert Number("parameters", 62_006, 0.5).judge(62_006).printed == "62006"


def test_a_number_that_does_not_hold_is_moved_to_what_was_obtained() -> None:
    claim, value = tampered(Number("n", 5.0, 0.1), 7.0)
    assert claim.judge(value).finding == "holds"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
        (["holds", "holds"], "reproduced"),
        (["holds", "not checked"], "reproduced"),
        (["holds", "not checked", "not checked"], "in part"),
        (["holds", "does not hold"], "in part"),
        (["does not hold"], "not reproduced"),
        (["erratum", "holds"], "erratum"),
        (["erratum", "does not hold"], "in part"),
        (["erratum", "the printed form holds"], "in part"),
        (["the printed form holds"], "reproduced"),
        (["not checked"], "not checked"),
    ],
)
def test_the_verdict_follows_from_the_findings(findings: list[str], verdict: str) -> None:
    one = Unchecked("n", "t", "w").judge()
    assert verdict_of([dataclasses.replace(one, finding=f) for f in findings]) == verdict  # type: ignore[arg-type]


def test_values_are_compared_and_shown() -> None:
    assert distance(chainrule.ones(2, 2), chainrule.ones(4)) == inf
    assert distance(chainrule.ones(2), [1.0, 1.5]) == 0.5
    assert distance(Failed("no"), Failed("no")) == inf
    assert shown([1, 2.5]) == "(1, 2.5)"
    assert shown(True) == "yes"
    assert shown(Spread((1.0, 3.0))) == "2 ± 1.41421 (2 seeds)"
    assert shown(math.inf) == "inf"
    failed = attempt(lambda: nn.MaxPool2d(2, in_channels=3))  # type: ignore[call-arg, arg-type, return-value]
    assert isinstance(failed, Failed)
    assert "in_channels" in failed.reason


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Number("n", 1.0), "needs a positive tolerance"),
        (lambda: Number("n", 1.0, 0.1, deviations=1), "not both"),
        (lambda: Number("n", 1.0, deviations=2).judge(1.0), "needs a Spread"),
        (lambda: Number("n", 1.0, deviations=2).judge(Spread((1.0, 1.0))), "give a tolerance"),
        (lambda: Statement("s", "t"), "needs a bound"),
        (lambda: Wrong("w", "a", "b").judge(1.0), "needs Forms"),
        (lambda: Number("n", 1.0, 0.1).judge(Forms(1, 2, 3)), "for a claim that is Wrong"),
        (lambda: Spread((1.0,)), "two seeds or more"),
    ],
)
def test_a_claim_without_what_decides_it_is_refused(make: object, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        make()  # type: ignore[operator]


# --- the list -------------------------------------------------------------------------------------


@pytest.fixture
def listed() -> Iterator[None]:
    """What a test puts on the list is taken off again."""
    before = dict(entries())
    yield
    ENTRIES.clear()
    ENTRIES.update(before)


def planted(id: str = "Z01", **given: object) -> Entry:
    def function(size: int = 2) -> Outcome:
        """Two is two."""
        return Outcome({"two": 2.0 if size else 3.0})

    function.__module__ = "chainrule.atlas.numbers.planted"
    about = {"course": "004", "printed": "here", "title": "t", "claims": [Number("two", 2, 0.5)]}
    entry(id, **{**about, **given})(function)  # type: ignore[arg-type]
    return ENTRIES[id]


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"id": "v1"}, "capital letters"),
        ({"course": "007"}, "none of"),
        ({"claims": []}, "has no claim"),
        ({"claims": [Number("two", 2, 1), Number("two", 3, 1)]}, "two claims of one name"),
        ({"full": {"sizes": 3}}, "takes no setting"),
        ({"id": "V10"}, "is in chainrule.atlas.figures"),
    ],
)
def test_an_entry_that_is_not_whole_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        planted(**given)  # type: ignore[arg-type]


@pytest.mark.usefixtures("listed")
def test_values_and_claims_belong_together() -> None:
    made = planted()
    assert made.group == "numbers"
    with pytest.raises(ValueError, match="missing \\['two'\\], without claim \\['three'\\]"):
        made.judge(Outcome({"three": 3.0}))


@pytest.mark.usefixtures("listed")
def test_a_claim_that_needs_files_is_unchecked_without_them() -> None:
    claims = [Number("two", 2, 0.5), Statement("three", "3", 3, 3, needs="the files of MNIST")]
    made = planted(claims=claims, data=("mnist",))
    two, three = made.judge(Outcome({"two": 2.0}))
    assert (two.finding, three.finding) == ("holds", "not checked")
    assert three.note == "it takes the files of MNIST: --full --data DIR"
    assert made.verdict(Outcome({"two": 2.0})) == "reproduced"
    assert made.verdict(Outcome({"two": 2.0, "three": 4.0})) == "in part"


def test_entries_are_chosen_by_id_and_course() -> None:
    assert [e.id for e in choose(["err1", "V10", "v10"])] == ["ERR001", "V10"]
    assert {e.id for e in choose(course="001")} == {
        e.id for e in entries().values() if "001" in [e.course, *re.findall(r"\d{3}", e.printed)]
    }
    assert entries()["V02"].courses == ("000", "003")  # printed="fig. 8; 003"
    assert {"V02", "ERR083"} <= {e.id for e in choose(course="003")}
    with pytest.raises(ValueError, match="no entry 'V99'; the nearest are V"):
        choose(["V99"])
    with pytest.raises(ValueError, match="no course '9'"):
        choose(course="9")
    with pytest.raises(ValueError, match="none of V10 is of course 004"):
        choose(["V10"], "004")


def test_settings_are_the_defaults_or_those_of_the_course() -> None:
    v23 = entries()["V23"]
    assert (v23.settings(), v23.settings(full=True)) == ({"points": 9}, {"points": 21})
    assert key_of(v23, False) != key_of(v23, True)


def test_an_entry_leaves_the_random_numbers_alone(capsys: pytest.CaptureFixture[str]) -> None:
    chainrule.manual_seed(5)
    expected = chainrule.rand(3)
    chainrule.manual_seed(5)
    first = compute(entries()["EX04"]).obtained
    assert chainrule.equal(chainrule.rand(3), expected)
    assert compute(entries()["EX04"]).obtained == first
    assert capsys.readouterr().out == ""


# --- running --------------------------------------------------------------------------------------


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the entries that are computed from now on."""
    seen: list[str] = []
    whole = running.compute
    monkeypatch.setattr(running, "compute", lambda e, *a: (seen.append(e.id), whole(e, *a))[1])
    return seen


def test_what_is_done_is_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = counted(monkeypatch)
    told: list[tuple[str, bool]] = []
    chosen = choose(["ERR002", "M22"])
    run(chosen, tmp_path, done=lambda record, there: told.append((record.id, there)))
    run(chosen, tmp_path, done=lambda record, there: told.append((record.id, there)))
    assert seen == ["ERR002", "M22"]
    assert told == [("ERR002", False), ("M22", False), ("ERR002", True), ("M22", True)]
    # Another source, a picture that is gone, a record that is damaged: computed again.
    record = tmp_path / "files" / "ERR002" / "record.json"
    record.write_text(record.read_text().replace(key_of(entries()["ERR002"], False), "old"))
    (tmp_path / "files" / "M22" / "picture-0.svg").unlink()
    run(chosen, tmp_path)
    record.write_text("{")
    run(chosen, tmp_path)
    assert seen == ["ERR002", "M22", "ERR002", "M22", "ERR002"]


@pytest.mark.usefixtures("listed")
def test_a_full_run_is_not_replaced_by_a_quick_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = counted(monkeypatch)
    chosen = choose(["V23"])
    run(chosen, tmp_path)
    run(chosen, tmp_path, full=True)
    (kept,) = run(chosen, tmp_path)
    assert seen == ["V23", "V23"]
    assert kept.full


def test_a_full_run_reads_files_although_a_quick_one_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ERR114 has no other settings: it counts in the files, if there are any."""
    given: list[object] = []
    made = entries()["ERR114"]

    def counting(data: Path | None = None) -> Outcome:
        given.append(data)
        return made.function()

    monkeypatch.setitem(ENTRIES, "ERR114", dataclasses.replace(made, function=counting))
    monkeypatch.setattr(running, "key_of", lambda e, full: key_of(made, full))
    chosen = [entries()["ERR114"]]
    for full in (False, True, True):
        run(chosen, tmp_path, full=full, data=tmp_path)
    assert given == [None, tmp_path]


def test_pictures_of_an_earlier_run_go(tmp_path: Path) -> None:
    run(choose(["M22"]), tmp_path)
    folder = tmp_path / "files" / "M22"
    (folder / "picture-7.png").write_bytes(b"old")
    record = folder / "record.json"
    record.write_text(record.read_text().replace(key_of(entries()["M22"], False), "old"))
    run(choose(["M22"]), tmp_path)
    assert {p.name for p in folder.iterdir()} == {"picture-0.svg", "record.json"}


def test_an_interrupt_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = running.compute

    def interrupted(e: Entry, *args: object) -> Outcome:
        if e.id == "M22":
            raise KeyboardInterrupt
        return whole(e, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(running, "compute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(choose(["ERR002", "M22", "ERR003"]), tmp_path)
    assert running.kept_record(tmp_path, "ERR002") is not None
    assert running.kept_record(tmp_path, "M22") is None
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and "ERR002" not in str(p)]


def test_training_that_an_interrupt_ends_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Training gives back what it has at Ctrl-C, and the entry would go on with that."""
    whole = running.compute

    def stopped(e: Entry, *args: object) -> Outcome:
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return whole(e, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(running, "compute", stopped)
    before = signal.default_int_handler
    signal.signal(signal.SIGINT, before)  # it is ignored in a process that a script has started
    with pytest.raises(KeyboardInterrupt):
        run(choose(["ERR002", "M22"]), tmp_path)
    assert signal.getsignal(signal.SIGINT) is before
    assert not [*tmp_path.iterdir()]

    # So does one after which the entry fails: what it has is shorter than it expects.
    def failing(e: Entry, *args: object) -> Outcome:
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise IndexError("the history ends early")

    told: list[str] = []
    monkeypatch.setattr(running, "compute", failing)
    with pytest.raises(KeyboardInterrupt):
        run(choose(["ERR002", "M22"]), tmp_path, done=lambda record, _: told.append(record.id))
    assert not told
    # One that Python drops, as it does while objects are taken away, ends the run as well.
    monkeypatch.setattr(running, "compute", whole)
    close = running.close_all

    def dropped() -> None:
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        close()

    monkeypatch.setattr(running, "close_all", dropped)
    with pytest.raises(KeyboardInterrupt):
        run(choose(["ERR002", "M22"]), tmp_path)
    assert [running.kept_record(tmp_path, id) is None for id in ("ERR002", "M22")] == [False, True]


TOLD: list[str] = []


def slow(name: str) -> list[str]:
    """A result that takes long."""
    TOLD.append(name)
    if name == "second" and len(TOLD) == 2:  # training ends in order, and gives back what it has
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    return [name]


def in_parts(keep: Keep = NOT_KEPT) -> Outcome:
    """Two results that take long."""
    for name in ("first", "second"):
        assert keep(name, slow, name) == [name]
    return Outcome({"least slope": 1.0, "least value": 0.0})


@pytest.mark.usefixtures("listed")
def test_results_that_take_long_are_kept_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full run that was interrupted goes on behind them, and other entries take them, too."""
    TOLD.clear()
    made = dataclasses.replace(entries()["ERR002"], function=in_parts)
    ENTRIES["ERR002"] = made
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        run([made], tmp_path, full=True)
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["first.json"]
    (record,) = run([made], tmp_path, full=True)
    assert (record.error, TOLD) == ("", ["first", "second", "second"])
    again = Keep(tmp_path / running.SHARED)
    assert again("first", slow, "first") == ["first"]
    assert len(TOLD) == 3
    # Another source, and a file that is damaged: computed again.
    monkeypatch.setattr("chainrule.atlas.core.keep.key_of_function", lambda function: "new")
    again("first", slow, "first")
    (tmp_path / running.SHARED / "first.json").write_text("{")
    again("first", slow, "first")
    assert TOLD[3:] == ["first", "first"]
    # A quick run keeps nothing.
    run([made], tmp_path / "quick")
    assert not (tmp_path / "quick" / running.SHARED).exists()


@pytest.mark.usefixtures("listed")
def test_an_entry_that_breaks_does_not_stop_the_others(tmp_path: Path) -> None:
    broken = dataclasses.replace(entries()["ERR002"], function=_broken)
    ENTRIES["ERR002"] = broken
    records = run([broken, *choose(["ERR003"])], tmp_path)
    assert "ZeroDivisionError" in records[0].error
    assert [records[1].verdict, records[1].error] == ["erratum", ""]
    assert not (tmp_path / "files" / "ERR002").exists()


def _broken() -> Outcome:
    """It divides by nothing."""
    return Outcome({"least slope": 1 / 0, "least value": 0})


def test_several_at_once_find_the_same(tmp_path: Path) -> None:
    chosen = choose(["ERR002", "ERR003", "M22"])
    alone = run(chosen, tmp_path / "alone")
    together = run(chosen, tmp_path / "together", jobs=2)
    same = [dataclasses.replace(r, seconds=0) for r in together]
    assert [dataclasses.replace(r, seconds=0) for r in alone] == same

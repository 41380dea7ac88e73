"""What columns are taken for: every guess with values that are such and values that are not."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import pytest

from chainrule.data import Column, Table, TableEncoder, TableError
from chainrule.data.tabular.dates import reading_of
from chainrule.data.tabular.guessing import guess_role, guess_roles
from chainrule.data.tabular.numerals import decimal_mark, numeral
from chainrule.data.tabular.scales import known_order

N = 60
R = np.random.default_rng(0)
PEOPLE = [
    f"{a}{b} {c}" for a in ("An", "Bo", "Cy") for b in "abcde" for c in ("Ek", "Li", "Ng", "Ox")
]
GREEK = "η γάτα κοιμάται στον ήλιο και ο σκύλος τρέχει στην αυλή".split()  # noqa: RUF001, SIM905
CHINESE = list("我们今天去北京看长城和故宫很好玩")


def words(values: list[Any]) -> Column:
    return Column("c", "category", values)


def guessed(values: list[Any], name: str = "c") -> str:
    return guess_role(Table.from_dict({name: values})[name]).kind


def cycled(*values: Any, n: int = N) -> list[Any]:
    return [values[i % len(values)] for i in range(n)]


GUESSES: dict[str, tuple[list[Any], str]] = {
    "American dates": (cycled("12/31/2024", "1/2/2024", "3/15/2023"), "date"),
    "German dates": (cycled("31.12.2024", "1.2.2024", "15.3.23"), "date"),
    "ISO": (cycled("2024-12-31", "2023-01-05", None), "date"),
    "zones": (cycled("2024-12-31T10:00+02:00", "2024-12-30T23:59:59.5Z"), "date"),
    "named months": (
        cycled("3 Mar 2024", "March 4, 2024", "Mon, 12 Feb 2024 10:00 GMT"),
        "date",
    ),
    "months of other languages": (cycled("3. März 2024", "14. Mai 2023", "1 août 2022"), "date"),
    "packed dates": (cycled(20241231, 20240101, 20230615), "date"),
    "times": (cycled("14:30", "08:15", "23:59"), "date"),
    "no dates": (cycled("2024-13-01", "2024-12-31"), "category"),
    "both orders": (cycled("12/31/2024", "31/12/2024"), "category"),
    "versions": (cycled("1.2.3", "1.10.0", "2.0.14"), "category"),
    "addresses of machines": (cycled("10.0.0.1", "192.168.0.12"), "category"),
    "eight digits": (cycled(20241399, 20240101, 19994512), "number"),
    "dollars": (cycled("$1,234.50", "$12", "-$3.25"), "number"),
    "euros": (cycled("1.234,50 €", "12,00 €", "3 €"), "number"),
    "percent": (cycled("45%", "3.5 %", "100%"), "number"),
    "negative in parentheses": (cycled("(1,200)", "3,400", "15"), "number"),
    "thousands": (cycled("1 234", "12 345 678", "999"), "number"),
    "Swiss thousands": (cycled("CHF 1'234.50", "CHF 12.00"), "number"),
    "two currencies": (cycled("$12", "12 €", "$13"), "category"),
    "sizes in units": (cycled("12 apples", "3 pears"), "category"),
    "years": (cycled(1999, 2004, 2023), "number"),
    "ages": (cycled(31, 44, 17, 80), "number"),
    "truth": (cycled("yes", "No", None), "boolean"),
    "truth in Python": (cycled(True, False), "boolean"),
    "answers with a third one": (cycled("yes", "no", "maybe"), "category"),
    "one letter": (cycled("t", "f", "x"), "category"),
    "sexes": (cycled("male", "female"), "category"),
    "degrees": (cycled("low", "High", "medium"), "ordinal"),
    "ranges": (cycled("18-25", "26-64", "65+", "<18"), "ordinal"),
    "shirts": (cycled("S", "M", "XL", "L"), "ordinal"),
    "colors": (cycled("red", "blue", "low"), "category"),
    "codes with zeros": (cycled("01234", "00501", "90210"), "category"),
    "hex identifiers": ([hashlib.md5(str(i).encode()).hexdigest() for i in range(N)], "drop"),
    "names": (PEOPLE, "drop"),
    "row numbers": (list(range(1, N + 1)), "drop"),
    "distinct numbers": ([int(v) for v in R.permutation(10**6)[:N]], "number"),
    "Greek": ([" ".join(R.permutation(GREEK)[:6]) for _ in range(N)], "text"),
    "Chinese": (
        ["".join(R.permutation(CHINESE)) for _ in range(N)],
        "text",
    ),
    "nothing": ([None] * N, "drop"),
    "constant": (["a"] * N, "drop"),
    "constant with gaps": (cycled("a", None), "category"),
}


@pytest.mark.parametrize("name", list(GUESSES))
def test_guesses(name: str) -> None:
    values, kind = GUESSES[name]
    assert guessed(values) == kind


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("customer_id", [int(v) for v in R.permutation(10**6)[:N]], "drop"),
        ("customerId", [int(v) for v in R.permutation(10**6)[:N]], "drop"),
        ("phone", [4915100000000 + int(v) for v in R.permutation(10**6)[:N]], "drop"),
        ("__index_level_0__", [int(v) for v in R.permutation(N)], "drop"),
        ("candid", [int(v) for v in R.permutation(10**6)[:N]], "number"),
        ("store id", cycled(101, 205, 333), "category"),
        ("zip", cycled(90210, 10001, 60601), "category"),
        ("id", [float(v) for v in R.normal(size=N)], "number"),
        ("created_at", [1_700_000_000 + 1000 * int(v) for v in R.permutation(N)], "date"),
        ("created_at", [1_700_000_000_000 + 1000 * int(v) for v in R.permutation(N)], "date"),
        ("amount", [1_700_000_000 + 1000 * int(v) for v in R.permutation(N)], "number"),
    ],
)
def test_names_help(name: str, values: list[Any], kind: str) -> None:
    assert guessed(values, name) == kind


# --- dates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "form", "local", "offset"),
    [
        ("2024-12-31T10:00+02:00", "iso", np.datetime64("2024-12-31T10:00"), 7200),
        ("2024-12-31 10:00:00.250-0530", "iso", np.datetime64("2024-12-31T10:00:00.250"), -19800),
        ("2024/2/29", "iso", np.datetime64("2024-02-29"), 0),
        ("2024-02", "iso", np.datetime64("2024-02-01"), 0),
        ("05/04/2024", "dmy", np.datetime64("2024-04-05"), 0),
        ("05/04/2024", "mdy", np.datetime64("2024-05-04"), 0),
        ("1/2/69 12:05 AM", "mdy", np.datetime64("1969-01-02T00:05"), 0),
        ("1/2/68 12:05 PM", "mdy", np.datetime64("2068-01-02T12:05"), 0),
        ("Dec 31, 1899", "iso", np.datetime64("1899-12-31"), 0),
        ("2021-05-03T07", "iso", np.datetime64("2021-05-03T07"), 0),
        ("2021-05-03 7 pm", "iso", np.datetime64("2021-05-03T19"), 0),
        ("2021-05-03 24:00", "iso", np.datetime64("2021-05-04"), 0),
        ("2021-W18-1", "iso", np.datetime64("2021-05-03"), 0),
        ("2021W18", "iso", np.datetime64("2021-05-03"), 0),
        ("2021-Q2", "iso", np.datetime64("2021-04-01"), 0),
        ("Q3 2021", "iso", np.datetime64("2021-07-01"), 0),
        ("May 2021", "iso", np.datetime64("2021-05-01"), 0),
        ("May-21", "iso", np.datetime64("2021-05-01"), 0),
        ("05/2021", "iso", np.datetime64("2021-05-01"), 0),
        ("2021-May-03", "iso", np.datetime64("2021-05-03"), 0),
        ("03MAY2021:07:30:00", "iso", np.datetime64("2021-05-03T07:30"), 0),
        ("03/May/2021:07:30:00 +0200", "iso", np.datetime64("2021-05-03T07:30"), 7200),
        ("Mon May  3 07:30:00 CEST 2021", "iso", np.datetime64("2021-05-03T07:30"), 7200),
        ("Mon May 03 2021 07:30 GMT-0330 (N)", "iso", np.datetime64("2021-05-03T07:30"), -12600),
        ("2021-05-03T07:30+02:00[Europe/Berlin]", "iso", np.datetime64("2021-05-03T07:30"), 7200),
        ("2021-05-03 07:30:00 EST", "iso", np.datetime64("2021-05-03T07:30"), -18000),
        ("3.5.2021, 7:30 Uhr", "dmy", np.datetime64("2021-05-03T07:30"), 0),
        ("20210503T0730Z", "iso", np.datetime64("2021-05-03T07:30"), 0),
        ("20210503", "iso", np.datetime64("2021-05-03"), 0),
        ("2021年5月3日", "iso", np.datetime64("2021-05-03"), 0),
    ],
)
def test_readings(word: str, form: str, local: np.datetime64, offset: float) -> None:
    seconds = (local - np.datetime64("1970-01-01")) / np.timedelta64(1, "s")
    assert reading_of(word, form) == (seconds, offset)


@pytest.mark.parametrize(
    "word",
    [
        *("", "soon", "2023-02-29", "2024-12-31T25:00", "13:00 PM", "31/31/2024", "3 Foo 2024"),
        *("12345", "2021-W54-1", "2021-05-03T07:30 XYZ", "99999999", "17-2021", "Q5 2021"),
        "2021-05-03 24:01",
    ],
)
def test_no_readings(word: str) -> None:
    assert reading_of(word, "dmy") is None


def test_the_order_of_day_and_month_is_said() -> None:
    def reason(*values: str) -> str:
        return guess_role(words(list(values) * 5)).reason

    assert "day first, as in '31.12.2024'" in reason("31.12.2024", "01.02.2024")
    assert "month first, as in '1/25/2024'" in reason("1/2/2024", "1/25/2024")
    assert "the month first, no value decides it (the role 'date dmy'" in reason(
        "1/2/2024", "3/4/24"
    )
    assert "the day first, no value decides it (the role 'date mdy'" in reason("1.2.2024", "3.4.24")


@pytest.mark.parametrize(
    ("name", "values", "form"),
    [
        ("x", [20240131, 20240229, None], "ymd"),
        ("x", [20240131235959, 20240229000000], "ymdhms"),
        ("x", [202401312359, 202402290000], "ymdhm"),
        ("month", [202401, 202402, 202312], "ym"),
        ("x", [202401, 202402, 202312], None),
        ("sent_at", [1.7e15, 1.71e15], "us"),
        ("sent_at", [1.7e18, 1.71e18], "ns"),
        ("candidate_id", [170000000, 170000001], None),
        ("lifetime_value", [170000000, 170000001], None),
        ("createdAt", [1700000000, 1700000001], "s"),
    ],
)
def test_dates_as_numbers(name: str, values: list[Any], form: str | None) -> None:
    role = guess_role(Table.from_dict({name: values})[name])
    assert (role.kind, role.how.get("form")) == ("date" if form else "number", form)


def test_numbers_that_are_said_to_be_dates() -> None:
    def elapsed(values: list[Any]) -> list[float]:
        table = Table.from_dict({"x": values})
        feature: Any = TableEncoder({"x": "date"}).fit(table).features[0]
        return [feature.center, feature.spread]

    def of_words(*words: str) -> list[float]:
        return elapsed(list(words))

    assert elapsed([44319.5, 44320, 44322, 44330]) == of_words(
        "2021-05-03 12:00", "2021-05-04", "2021-05-06", "2021-05-14"
    )
    assert elapsed([2001, 2003, 2010]) == of_words("2001-01-01", "2003-01-01", "2010-01-01")
    assert elapsed([20240131, None, 20240229, 20240303]) == of_words(
        "2024-01-31", "0000-00-00", "2024-02-29", "2024-03-03"
    )
    with pytest.raises(TableError, match="'x' cannot be used as a date: its values are no dates"):
        elapsed([1.5, 2, 3])


def test_some_rows_of_many_words_are_read_alike() -> None:
    days = np.arange("2020-01-01", "2022-01-01", dtype="datetime64[D]").astype(str).tolist()
    money = [f"${1000 + i:,}" for i in range(len(days))]
    whole = Table.from_dict({"t": [None, *days], "m": [*money, None]})
    encoder = TableEncoder().fit(whole)
    rows = [500, 0, 3, 3, len(days)]
    assert encoder(whole.take(rows)).tolist() == encoder(whole)[rows].tolist()


def test_the_order_can_be_given() -> None:
    table = Table.from_dict({"t": ["01/02/2024", "01/03/2024", "01/04/2024"]})
    by_day = TableEncoder({"t": "date dmy"}).fit(table)
    by_month = TableEncoder({"t": "date mdy"}).fit(table)
    assert by_day.features[0].spread == pytest.approx(30 * 86400, rel=0.02)  # type: ignore[attr-defined]
    assert by_month.features[0].spread == 86400  # type: ignore[attr-defined]
    with pytest.raises(TableError, match="column 't' is dates, but row 2 has '25/01/2024'"):
        by_month(Table.from_dict({"t": ["01/02/2024", "25/01/2024"]}))


def test_cycles_are_those_of_the_calendar() -> None:
    days = np.arange("1999-11-01", "2025-03-01", dtype="datetime64[D]")
    table = Table.from_dict({"t": days.astype(str).tolist()})
    encoder = TableEncoder().fit(table)
    x = dict(zip(encoder.feature_names, encoder(table).numpy().T, strict=True))
    monday = (days.astype(int) + 3) % 7
    np.testing.assert_allclose(x["t sine of week 2"], np.sin(2 * np.pi * 2 * monday / 7), atol=1e-6)
    of_month = (days - days.astype("datetime64[M]")).astype(int)
    np.testing.assert_allclose(
        x["t cosine of month 1"], np.cos(2 * np.pi * of_month / 31), atol=1e-6
    )
    first = days[(days.astype("datetime64[M]").astype(int) % 12 == 2) & (of_month == 0)]
    at = np.isin(days, first)  # the first of March begins the year
    np.testing.assert_allclose(x["t sine of year 1"][at], 0, atol=1e-6)
    assert "t sine of day 1" not in x
    assert np.all(np.diff(x["t elapsed"]) > 0)


def test_zones() -> None:
    """Elapsed time is that of UTC, the time of the day that of the clock."""
    table = Table.from_dict(
        {"t": ["2024-01-01T23:00+01:00", "2024-01-01T22:00Z", "2024-01-01T10:00Z"]}
    )
    encoder = TableEncoder({"t": "date"}).fit(table)
    x = dict(zip(encoder.feature_names, encoder(table).numpy().T, strict=True))
    assert x["t elapsed"][0] == x["t elapsed"][1] != x["t elapsed"][2]
    assert x["t sine of day 1"][0] != x["t sine of day 1"][1]


def test_the_time_between_two_dates() -> None:
    table = Table.from_dict(
        {
            "ordered": ["2024-01-01", "2024-03-01", "2024-02-01", None],
            "sent": ["03.01.2024", "02.03.2024", "05.02.2024", "31.12.2024"],
        }
    )
    encoder = TableEncoder().fit(table)
    assert encoder.feature_names[-1] == "sent since ordered"
    assert encoder.columns == ["ordered", "sent"]
    assert encoder.sources[-1] == "sent"
    days = np.array([2.0, 1.0, 4.0])
    scaled = (days - 2) / 1.5
    x = encoder(table)[:, -1].tolist()
    assert x == pytest.approx([*scaled / np.sqrt(1 + (scaled / 3) ** 2), 0.0])
    again = TableEncoder()
    again.load_state_dict(encoder.state_dict())
    assert again(table).tolist() == encoder(table).tolist()
    state = encoder.get_extra_state()
    state["features"][-1]["start"] = "elsewhere"
    with pytest.raises(ValueError, match="the saved features and roles are of different columns"):
        again.set_extra_state(state)


def test_a_linear_model_sees_the_date() -> None:
    """Weekends and summers: what a linear model on text of dates cannot know."""
    r = np.random.default_rng(0)
    days = np.datetime64("2022-01-01") + r.integers(0, 700, 1500)
    weekend = (days.astype(int) + 3) % 7 > 4
    summer = np.isin(days.astype("datetime64[M]").astype(int) % 12, [5, 6, 7])
    y = (1.5 * weekend + 1.5 * summer - 1 + r.logistic(size=1500) > 0).astype(float)
    table = Table.from_dict({"day": days.astype(str).tolist(), "x": r.normal(size=1500)})
    encoder = TableEncoder().fit(table.take(range(1000)))
    x = np.column_stack([encoder(table).numpy(), np.ones(1500)])
    weights = np.linalg.lstsq(x[:1000], y[:1000], rcond=None)[0]
    score, truth = x[1000:] @ weights, y[1000:] > 0
    auc = np.mean(score[truth][:, None] > score[~truth][None])
    assert auc > 0.66


# --- numbers in words -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "mark", "value"),
    [
        ("$1,234.50", ".", 1234.5),
        ("1.234,50 €", ",", 1234.5),
        ("45%", ".", 0.45),
        ("(1,200)", ".", -1200),
        ("1\u202f234\u00a0567", ".", 1234567),
        ("\u22125", ".", -5),
        ("5-", ".", -5),
        ("EUR12", ".", 12),
        ("12,5", ".", None),
        ("1,23,456", ".", None),
        ("12 34", ".", None),
        ("$", ".", None),
        ("12 apples", ".", None),
        ("1.234,5", ".", None),
        ("", ".", None),
        ("1e3", ".", 1000),
    ],
)
def test_numerals(word: str, mark: str, value: float | None) -> None:
    assert numeral(word, mark) == value


@pytest.mark.parametrize(
    ("some", "mark"),
    [
        (["1,234", "5"], "."),
        (["0,5", "12,75"], ","),
        (["1.234 €", "12.000 €"], ","),
        (["1.25 €", "12.000 €"], "."),
        (["01234", "10,5"], None),
        (["$1", "1 €"], None),
        ([], None),
    ],
)
def test_decimal_marks(some: list[str], mark: str | None) -> None:
    assert decimal_mark(some) == mark


def test_numerals_are_read_as_in_training() -> None:
    encoder = TableEncoder().fit(Table.from_dict({"x": ["0,250", "12,75", "3,5", None]}))
    assert encoder.roles["x"].kind == "number"
    one = encoder(Table.from_dict({"x": ["3,500", "1 €"]}))
    assert one[0].tolist() == [0.0, 0.0]  # the median, not 3500
    with pytest.raises(TableError, match="column 'x' is numbers, but row 2 has 'much'"):
        encoder(Table.from_dict({"x": ["3,5", "much"]}))


# --- orders, booleans, text -----------------------------------------------------------------------


def test_known_orders() -> None:
    assert known_order(["XL", "S", "M"]) == ["S", "M", "XL"]
    assert known_order(["over 30", "10 to 20", "20 to 30", "under 10"]) == [
        "under 10",
        "10 to 20",
        "20 to 30",
        "over 30",
    ]
    assert known_order(["a", "b", "c"]) is None
    assert known_order(["low", "high"]) is None  # two values need no order
    assert known_order(["1st street", "2nd street", "3 roads"]) is None


def test_orders_that_are_given() -> None:
    table = Table.from_dict({"c": ["cold", "hot", "warm", None], "k": [3, 1, 2, 1]})
    encoder = TableEncoder({"c": ["cold", "warm", "hot"], "k": "ordinal"}).fit(table)
    assert encoder(table).tolist() == [[-1, 0, 1], [1, 0, -1], [0, 0, 0], [0, 1, -1]]
    assert encoder.roles["c"].given
    with pytest.raises(TableError, match="column 'c' has values that its order lacks: 'warm'"):
        TableEncoder({"c": ["cold", "hot"]}).fit(table)
    with pytest.raises(TableError, match="column 'c' is text whose order is not known: give its"):
        TableEncoder({"c": "ordinal"}).fit(table)
    with pytest.raises(TableError, match="ordered values of 'c' must be several, got 'a' twice"):
        TableEncoder({"c": ["a", "a"]})


def test_booleans() -> None:
    table = Table.from_dict({"b": ["Yes", "no", None, "YES"]})
    encoder = TableEncoder().fit(table)
    assert encoder.feature_names == ["b", "b missing"]
    assert encoder(table).tolist() == [[1, 0], [-1, 0], [0, 1], [1, 0]]
    assert encoder(Table.from_dict({"b": [1, 0]})).tolist() == [[1, 0], [-1, 0]]
    sexes = Table.from_dict({"s": ["m", "f", "m"]})
    assert TableEncoder({"s": "boolean"}).fit(sexes)(sexes).tolist() == [[1], [-1], [1]]
    with pytest.raises(TableError, match="column 's' has 3 different values .* a boolean has two"):
        TableEncoder({"s": "boolean"}).fit(Table.from_dict({"s": ["a", "b", "c"]}))


def test_text_in_any_language_is_told_apart() -> None:
    r = np.random.default_rng(0)
    others = "το πλοίο φεύγει αύριο από λιμάνι με δυνατό άνεμο".split()  # noqa: SIM905
    y = r.integers(0, 2, 200)
    values = [" ".join(r.permutation(others if k else GREEK)[:5]) for k in y]
    table = Table.from_dict({"t": values})
    encoder = TableEncoder().fit(table.take(range(150)))
    assert len(encoder.feature_names) == 128
    x = np.column_stack([encoder(table).numpy(), np.ones(200)])
    a = x[:150].T @ x[:150] + np.eye(129)
    weights = np.linalg.solve(a, x[:150].T @ y[:150])
    assert np.mean((x[150:] @ weights > 0.5) == y[150:]) > 0.9


def test_hashes_do_not_depend_on_the_other_rows() -> None:
    table = Table.from_dict({"t": ["a fine day", "another word or two", "x", "", "é" * 3000]})
    encoder = TableEncoder({"t": "text"}).fit(table)
    whole = encoder(table)
    assert whole.dtype.is_floating_point
    for i in range(len(table)):
        assert encoder(table.take([i]))[0].tolist() == whole[i].tolist()


# --- columns without information, and what is said ------------------------------------------------


def test_duplicates_are_left_out() -> None:
    x, gaps, c = [1.0, 2.0, 5.0], [1.0, None, 3.0], ["a", "b", "a"]
    table = Table.from_dict(
        {
            "x": x,
            "again": x,
            "g": gaps,
            "g2": gaps,
            "c": c,
            "d": c,
            "e": [1, 2, 6],
        }
    )
    encoder = TableEncoder().fit(table)
    assert encoder.left_out == {
        "again": "its values are those of 'x'",
        "g2": "its values are those of 'g'",
        "d": "its values are those of 'c'",
    }
    kept = TableEncoder({"again": "number"}).fit(table)
    assert "again" not in kept.left_out


def test_rows_that_are_counted_stay_if_there_is_nothing_else() -> None:
    rows = list(range(30))
    assert list(guess_roles(Table.from_dict({"n": rows}))["n"].kind) == list("number")
    roles = guess_roles(Table.from_dict({"n": rows, "x": [math.sin(i) for i in rows]}))
    assert (roles["n"].kind, roles["n"].reason) == ("drop", "it counts the rows")


@pytest.mark.parametrize(
    ("values", "role", "message"),
    [
        (["a", "b", "c"], "number", "column 'c' is numbers, but row 1 has 'a'"),
        ([1, 2, 3], "date", "cannot be used as a date: its values are no dates like 20241231"),
        (["a", "b", "c"], "date", "no dates in one form, .* one of them is 'a'"),
        (["a", "a", "a"], "category", "cannot be used as category: it has one value only; drop it"),
        ([None, None, None], "text", "cannot be used as text: all values are missing"),
    ],
)
def test_roles_that_cannot_be_had(values: list[Any], role: str, message: str) -> None:
    table = Table.from_dict({"c": values, "x": [1, 2, 3]})
    with pytest.raises(TableError, match=message):
        TableEncoder({"c": role}).fit(table)


@pytest.mark.parametrize("role", ["number", "category", "text", "drop"])
def test_a_guess_can_be_overridden(role: str) -> None:
    table = Table.from_dict({"c": cycled("$1", "$2,000", "$3"), "x": list(R.normal(size=N))})
    encoder = TableEncoder({"c": role}).fit(table)
    assert encoder.roles["c"].kind == role
    assert encoder.roles["c"].given
    expected = {"number": 1, "category": 3, "text": 128, "drop": 0}[role]
    assert encoder.sources.count("c") == expected


def test_bad_roles() -> None:
    table = Table.from_dict({"x": [1, 2, 3]})
    with pytest.raises(TableError, match="there is no column 'z' to have a role; .* 'x'"):
        TableEncoder({"z": "drop"}).fit(table)
    with pytest.raises(ValueError, match="column 'x' cannot be 'float'; it can be number, "):
        TableEncoder({"x": "float"})
    with pytest.raises(ValueError, match="cannot be 'number dmy'"):
        TableEncoder({"x": "number dmy"})
    with pytest.raises(TypeError, match="needs the name of a kind or a list"):
        TableEncoder({"x": 3})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="expected a dictionary from columns to kinds, got list"):
        TableEncoder(["x"])  # type: ignore[arg-type]

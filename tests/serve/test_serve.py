"""A network behind an address: answers, refusals, limits, joined rows, and the page."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from chainrule import data, serve, train
from chainrule.serve.batching import Batcher
from chainrule.serve.rows import example, table_of, wanted, wrong_with

httpx = pytest.importorskip("httpx")
pytest.importorskip("starlette")

SETTINGS = train.Settings(epochs=2, hidden=(4,))
Network = train.FittedNetwork


@pytest.fixture(scope="module")
def classes() -> Network:
    """A network for classes, of numbers with gaps and of text."""
    table = data.Table.from_dict(
        {
            "size": [None if i % 11 == 5 else i / 7 for i in range(60)],
            "town": [("01", "north", "west")[i % 3] for i in range(60)],
            "kind": ["big" if i > 30 else "small" for i in range(60)],
        }
    )
    return train.fit_table(table, "kind", settings=SETTINGS, progress=False)


@pytest.fixture(scope="module")
def numbers() -> Network:
    """A network for numbers."""
    rows = {"size": [i / 7 for i in range(60)], "price": [i * 2.0 for i in range(60)]}
    table = data.Table.from_dict(rows)
    return train.fit_table(table, "price", "regression", SETTINGS, progress=False)


def ask(
    network: Network, act: Callable[[Any], Awaitable[Any]], limits: serve.Limits | None = None
) -> Any:
    """What an action with a client of the service returns."""

    async def inside() -> Any:
        app = serve.application(network, limits)
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://test") as client,
        ):
            return await act(client)

    return asyncio.run(inside())


def posted(network: Network, body: Any, query: str = "", **limits: Any) -> tuple[int, Any]:
    async def act(client: Any) -> Any:
        return await client.post(f"/predict{query}", json=body)

    reply = ask(network, act, serve.Limits(**limits))
    return reply.status_code, reply.json()


def rows(count: int) -> list[dict[str, Any]]:
    towns = ("01", "north", "west", "elsewhere", None)
    return [
        {"size": None if i % 9 == 0 else i / 100, "town": towns[i % 5], "id": i}
        for i in range(count)
    ]


def expected(network: Network, sent: list[dict[str, Any]]) -> Any:
    columns = {name: [row[name] for row in sent] for name in network.columns}
    return data.Table.from_dict(columns)


def test_rows_are_answered_in_order(classes: Network) -> None:
    sent = rows(100)
    table = expected(classes, sent)
    status, told = posted(classes, sent, "?probabilities=true")
    assert status == 200
    assert told["ignored"] == ["id"]
    assert [a["prediction"] for a in told["answers"]] == classes.predict(table)
    for answer, p in zip(told["answers"], classes.predict_proba(table).tolist(), strict=True):
        assert list(answer["probabilities"]) == ["big", "small"]
        assert list(answer["probabilities"].values()) == pytest.approx(p, rel=1e-5)
    assert posted(classes, sent[3])[1]["answers"] == [{"prediction": classes.predict(table)[3]}]


def test_numbers_are_on_their_own_scale(numbers: Network) -> None:
    status, told = posted(numbers, [{"size": 1}, {"size": "2.5"}])
    assert status == 200
    found = [a["prediction"] for a in told["answers"]]
    assert found == pytest.approx(numbers.predict({"size": [1.0, 2.5]}), rel=1e-5)


def test_intervals_and_several_targets(numbers: Network) -> None:
    status, told = posted(numbers, [{"size": 1}, {"size": 4}], "?interval=0.8")
    assert status == 200
    expected = numbers.predict_interval({"size": [1.0, 4.0]}, 0.8).tolist()
    for answer, (low, high) in zip(told["answers"], expected, strict=True):
        assert answer["interval"] == pytest.approx([low, high], rel=1e-4)
        assert low < answer["prediction"] < high
    assert posted(numbers, {"size": 1}, "?interval=1.5")[0] == 400
    rows = {"a": [i / 7 for i in range(60)], "y": [i * 2.5 for i in range(60)]}
    table = data.Table.from_dict({**rows, "z": [i / 3 for i in range(60)]})
    both = train.fit_table(table, ["y", "z"], "regression", SETTINGS, progress=False)
    (answer,) = posted(both, {"a": 1.5})[1]["answers"]
    columns = both.target.columns(both.outputs({"a": [1.5]}))
    found = {name: pytest.approx(values[0], rel=1e-5) for name, values in columns.items()}
    assert answer["prediction"] == found


@pytest.mark.parametrize(
    ("row", "column", "rule"),
    [
        ({"town": "x"}, "size", "is missing; send null"),
        ({"size": "big", "town": "x"}, "size", "must be a finite number.*'big'"),
        ({"size": True, "town": "x"}, "size", "must be a finite number.*True"),
        ({"size": [1], "town": "x"}, "size", r"must be a finite number.*\[1\]"),
        ({"size": 1e999, "town": "x"}, "size", "must be a finite number.*inf"),
        ({"size": 1, "town": {}}, "town", "must be a text"),
        ([1, 2], None, "a row must be an object"),
    ],
)
def test_mistakes_are_named(row: Any, column: str | None, rule: str, classes: Network) -> None:
    good = {"size": 1.0, "town": "x"}
    content = json.dumps([good, row])

    async def act(client: Any) -> Any:
        kind = {"Content-Type": "application/json"}
        return await client.post("/predict", content=content, headers=kind)

    reply = ask(classes, act)
    assert reply.status_code == 422
    first = reply.json()["mistakes"][0]
    assert (first["row"], first["column"]) == (1, column)
    assert re.search(rule, first["rule"])
    assert reply.json()["error"].startswith("row 1")


def test_a_row_is_read_by_the_network_and_not_by_its_neighbors(classes: Network) -> None:
    """The town 01 is a text, whether or not others beside it are."""
    kinds = wanted(classes)
    alone = table_of([{"size": 1, "town": "01"}], kinds)
    beside = table_of([{"size": 1, "town": "01"}, {"size": None, "town": "north"}], kinds)
    assert alone["town"].values == ["01"]
    assert beside["town"].values == ["01", "north"]
    assert table_of([{"size": "2", "town": 3.0}], kinds)["town"].values == ["3"]
    assert wrong_with([{"size": "NA", "town": "-"}], kinds) == []
    assert table_of([{"size": "NA", "town": "-"}], kinds)["town"].values == [None]


def test_dates_and_written_numbers() -> None:
    table = data.Table.from_dict(
        {
            "day": [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(60)],
            "stamp": [20240101 + i % 28 for i in range(60)],
            "paid": [f"$1,{i + 100}.50" for i in range(60)],
            "open": [i % 3 == 0 for i in range(60)],
            "kind": ["big" if i > 30 else "small" for i in range(60)],
        }
    )
    network = train.fit_table(table, "kind", settings=SETTINGS, progress=False)
    assert network.columns == {"day": "date", "stamp": "date", "paid": "number", "open": "boolean"}
    sent = [
        {"day": "2024-05-06", "stamp": 20240107, "paid": "$1,130.50", "open": True},
        {"day": None, "stamp": 20240108, "paid": 1150, "open": "false"},
    ]
    status, told = posted(network, sent, "?probabilities=true")
    assert status == 200
    columns = {name: [row[name] for row in sent] for name in network.columns}
    columns["paid"], columns["open"] = ["$1,130.50", "$1,150"], ["True", "False"]
    p = network.predict_proba(columns).tolist()
    for answer, expected_p in zip(told["answers"], p, strict=True):
        assert list(answer["probabilities"].values()) == pytest.approx(expected_p, rel=1e-5)
    usual = example(network)
    assert wrong_with([usual], wanted(network)) == []
    assert usual["day"].startswith("2024-")
    assert 20240101 <= usual["stamp"] <= 20240128
    assert usual["open"] is True
    assert None not in usual.values()
    assert posted(network, usual)[0] == 200
    wrong = [{"day": "soon", "stamp": "x", "paid": "much", "open": {}}]
    mistakes = posted(network, wrong)[1]["mistakes"]
    assert [m["column"] for m in mistakes] == ["day", "stamp", "paid", "open"]


def test_refusals(classes: Network, numbers: Network) -> None:
    good = {"size": 1.0, "town": "x"}
    assert posted(classes, [])[0] == 422
    assert posted(classes, "text")[0] == 422
    assert "at most 2" in posted(classes, [good] * 3, max_rows=2)[1]["error"]
    assert posted(classes, [good] * 3, max_rows=2)[0] == 413
    status, told = posted(classes, [good] * 9, max_bytes=50)
    assert (status, told["error"]) == (413, "the body is longer than 50 bytes")
    status, told = posted(classes, [good] * 9, max_waiting=5)
    assert status == 429
    assert "5 can" in told["error"]
    status, told = posted(classes, [good] * 9, max_held=50)
    assert (status, told["error"]) == (429, "too many bytes are at work; try again in a moment")
    assert "unknown parameter 'x'" in posted(classes, good, "?x=1")[1]["error"]
    assert posted(classes, good, "?probabilities=yes")[0] == 400
    assert posted(classes, good, "?interval=0.9")[0] == 400
    assert "numbers" in posted(numbers, good, "?probabilities=true")[1]["error"]

    async def others(client: Any) -> Any:
        kind = {"Content-Type": "application/json"}
        return [
            await client.post("/predict", content=b"{", headers=kind),
            await client.post("/predict", content=b"[" * 99_999, headers=kind),
            await client.post("/predict", content=b"{}"),
            await client.get("/predict"),
            await client.get("/nothing"),
        ]

    found = ask(classes, others)
    assert [reply.status_code for reply in found] == [400, 400, 415, 405, 404]
    assert "is not JSON" in found[0].json()["error"]


def test_what_takes_too_long_is_refused(classes: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the rows behind it are answered all the same."""
    import time

    whole = Batcher._computed

    def slow(batcher: Batcher, sent: Any, asked: Any) -> Any:
        if sent[0]["size"] == 7:
            time.sleep(0.4)
        return whole(batcher, sent, asked)

    monkeypatch.setattr(Batcher, "_computed", slow)

    async def act(client: Any) -> Any:
        first = await client.post("/predict", json={"size": 7, "town": "x"})
        await asyncio.sleep(0.4)
        return first, await client.post("/predict", json={"size": 1, "town": "x"})

    first, second = ask(classes, act, serve.Limits(timeout=0.2))
    assert first.status_code == 503
    assert "within 0.2 s" in first.json()["error"]
    assert first.headers["retry-after"] == "1"
    assert second.status_code == 200


def test_requests_are_joined_and_fail_alone(
    classes: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    whole = Batcher._computed

    def noted(batcher: Batcher, sent: Any, asked: Any) -> Any:
        sizes.append(len(sent))
        if any(row["size"] == 13 for row in sent):
            raise data.TableError("thirteen")
        return whole(batcher, sent, asked)

    monkeypatch.setattr(Batcher, "_computed", noted)
    sent = [{"size": i, "town": "north"} for i in range(40)]

    async def act(client: Any) -> Any:
        return await asyncio.gather(*[client.post("/predict", json=row) for row in sent])

    replies = ask(classes, act, serve.Limits(batch_wait=0.2))
    assert sizes[0] > 10
    assert [r.status_code for r in replies] == [422 if i == 13 else 200 for i in range(40)]
    assert replies[13].json()["error"] == "thirteen"
    found = [r.json()["answers"][0]["prediction"] for i, r in enumerate(replies) if i != 13]
    table = expected(classes, sent)
    assert found == [p for i, p in enumerate(classes.predict(table)) if i != 13]


def test_page_and_document(classes: Network) -> None:
    async def act(client: Any) -> Any:
        return [await client.get(path) for path in ("/", "/openapi.json", "/health")]

    page, document, health = ask(classes, act)
    assert page.headers["content-type"].startswith("text/html")
    outside = r"(?:src|href)\s*=\"(?!#|data:|openapi.json|health)|url\(|https?://"
    assert re.findall(outside, page.text) == []
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "<code>town</code>" in page.text
    told = document.json()
    assert told["openapi"] == "3.1.0"
    row = told["components"]["schemas"]["Row"]
    assert row["required"] == ["size", "town"]
    assert wrong_with(row["examples"], wanted(classes)) == []
    assert set(told["paths"]["/predict"]["post"]["responses"]) >= {"200", "413", "422", "429"}
    assert health.json()["status"] == "ok"


def test_the_library_does_not_import_it() -> None:
    program = "import sys, chainrule.train, chainrule.cli; print('starlette' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout == "False\n"


def test_limits_are_checked() -> None:
    with pytest.raises(ValueError, match="max_rows must be positive, got 0"):
        serve.Limits(max_rows=0)

"""A network of images behind an address: files as they are or in base64, and what is refused."""

from __future__ import annotations

import asyncio
import base64
import io
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import chainrule
from chainrule import data, serve, train
from chainrule.cli import main

httpx = pytest.importorskip("httpx")
pytest.importorskip("starlette")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of pictures, and the network of it."""
    folder = tmp_path_factory.mktemp("images")
    g = chainrule.Generator().manual_seed(0)
    for name, low in (("dark", 0.0), ("light", 0.6)):
        (folder / "pictures" / name).mkdir(parents=True)
        for i in range(8):
            picture = low + 0.4 * chainrule.rand(3, 9, 8, generator=g)
            data.write_image(picture, folder / "pictures" / name / f"{i}.png")
    settings = train.Settings(hidden=(4,), norm="batch", epochs=6)
    train.fit_images(folder / "pictures", settings, progress=False).save(folder / "m")
    return folder


@pytest.fixture(scope="module")
def network(place: Path) -> train.FittedNetwork:
    return train.FittedNetwork.load(place / "m")


def ask(network: train.FittedNetwork, *requests: dict[str, Any], **limits: Any) -> list[Any]:
    """The replies to requests at once: arguments of a POST to /predict, or a path to GET."""

    async def one(client: Any, request: dict[str, Any]) -> Any:
        if "path" in request:
            return await client.get(request["path"])
        return await client.post("/predict", **request)

    async def inside() -> Any:
        app = serve.application(network, serve.limits_for(network, **limits) if limits else None)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client,
        ):
            return await asyncio.gather(*[one(client, request) for request in requests])

    return asyncio.run(inside())


def upload(content: bytes, kind: str = "image/png") -> dict[str, Any]:
    return {"content": content, "headers": {"Content-Type": kind}}


def text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def test_files_and_base64_are_answered_as_predict_does(
    place: Path, network: train.FittedNetwork
) -> None:
    paths = sorted((place / "pictures").rglob("*.png"))
    files = [path.read_bytes() for path in paths]
    rows = [{"image": text(f), "id": i} for i, f in enumerate(files)]
    rows[1]["image"] = "data:image/png;base64," + rows[1]["image"]
    expected, p = network.predict(paths), network.predict_proba(paths).tolist()
    many, *single = ask(
        network,
        {"json": rows, "params": {"probabilities": "true"}},
        *[upload(f) for f in files],
        {"json": rows[0]},
    )
    assert many.status_code == 200
    assert many.json()["ignored"] == ["id"]
    for answer, name, own in zip(many.json()["answers"], expected, p, strict=True):
        assert answer["prediction"] == name
        assert list(answer["probabilities"].values()) == pytest.approx(own, abs=1e-5)
    assert [r.json()["answers"] for r in single[:-1]] == [[{"prediction": n}] for n in expected]
    assert single[-1].json()["answers"] == [{"prediction": expected[0]}]
    assert network.predict(files) == expected


def bomb(side: int) -> bytes:
    """A small file of many pixels; a large one is refused before they are looked at."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + crc

    pixels = zlib.compress(b"\0" * (side // 8 + 1) * min(side, 1000))
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def test_bad_images_are_named_and_leave_the_others(
    place: Path, network: train.FittedNetwork
) -> None:
    good = (place / "pictures" / "dark" / "0.png").read_bytes()
    buffer = io.BytesIO()
    Image.new("F", (4, 4)).save(buffer, "TIFF")
    cases: list[tuple[dict[str, Any], int, str]] = [
        (upload(b"no picture"), 422, "row 0, column 'image': .*is not a picture"),
        (upload(b""), 422, "row 0, column 'image': the picture of 0 bytes is empty"),
        (upload(good[: len(good) // 2]), 422, "damaged or not complete"),
        (upload(buffer.getvalue(), "image/tiff"), 422, "floating-point numbers"),
        (upload(bomb(30_000)), 422, "row 0, column 'image': .*more than 89478485 pixels"),
        (upload(bomb(5000)), 422, "has 5000 x 5000 pixels; all images of a request together"),
        ({"json": [{"image": text(good)}, {"image": text(b"?")}]}, 422, "row 1, column 'image'"),
        ({"json": {"image": "no base64!"}}, 422, "row 0, column 'image': must be a text"),
        ({"json": {"image": None}}, 422, "must be a text"),
        ({"json": {}}, 422, "row 0, column 'image': is missing"),
        (upload(good, "text/plain"), 415, "or image/png and the like"),
        (upload(b"x" * (2**24 + 1)), 413, "longer than 16777216 bytes"),
        ({"json": {"image": text(good)}, "params": {"interval": "0.9"}}, 400, "interval"),
    ]
    replies = ask(network, upload(good), *[request for request, _, _ in cases], upload(good))
    for (_, status, words), reply in zip(cases, replies[1:-1], strict=True):
        assert reply.status_code == status
        assert re.search(words, reply.json()["error"])
        if status == 422:
            assert reply.json()["mistakes"][0]["column"] == "image"
    assert [replies[i].status_code for i in (0, -1)] == [200, 200]


def test_all_pixels_of_a_request_count(network: train.FittedNetwork) -> None:
    rows = [{"image": text(bomb(64))}] * 3
    (reply,) = ask(network, {"json": rows}, max_pixels=2 * 64 * 64)
    assert reply.status_code == 422
    assert reply.json()["mistakes"][0]["row"] == 2
    (reply,) = ask(network, {"json": rows}, max_pixels=3 * 64 * 64)
    assert reply.status_code == 200


def test_page_and_document(network: train.FittedNetwork) -> None:
    page, document, health = ask(
        network, {"path": "/"}, {"path": "/openapi.json"}, {"path": "/health"}
    )
    assert '<input type="file" id="file"' in page.text
    script = re.search(r"<script>(.*)</script>", page.text, re.S)
    assert script is not None
    policy = page.headers["content-security-policy"]
    assert serve.page._hash(script[1]) in policy
    told = document.json()
    assert set(told["paths"]["/predict"]["post"]["requestBody"]["content"]) == {
        "application/json",
        "image/*",
    }
    example = told["components"]["schemas"]["Row"]["examples"][0]
    (reply,) = ask(network, {"json": example})
    assert reply.status_code == 200
    assert health.json()["status"] == "ok"


def test_limits_that_do_not_apply_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = data.Table.from_dict({"x": [i / 9 for i in range(40)], "y": ["a", "b"] * 20})
    settings = train.Settings(epochs=1, hidden=(2,))
    train.fit_table(table, "y", settings=settings, progress=False).save(tmp_path / "m")
    assert main(["serve", str(tmp_path / "m"), "--port", "0", "--max-pixels", "5"]) == 2
    assert "max_pixels is for networks of images" in capsys.readouterr().err

"""Pictures that a small file blows up: refused by their size, before a pixel is read."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest
from PIL import Image

from chainrule.cli import main
from chainrule.data import ImageError, ImageFolder, read_image


def png(width: int, height: int) -> bytes:
    """A file of one bit a pixel, all black, with only the first of its rows."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        sum_ = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", sum_)

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    rows = zlib.compress(bytes(width // 8 + 2))
    parts = [(b"IHDR", header), (b"IDAT", rows), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join([chunk(*part) for part in parts])


def tiff(width: int, height: int) -> bytes:
    entries = [(256, width), (257, height), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1)]
    entries += [(278, height), (279, width * height)]
    table = b"".join([struct.pack("<HHII", tag, 4, 1, value) for tag, value in entries])
    return b"II*\0\x08\0\0\0" + struct.pack("<H", len(entries)) + table + bytes(4)


BOMBS = {
    "a.png": png(50_000, 50_000),
    "b.png": png(12_000, 12_000),  # of which Pillow itself only warns
    "c.gif": b"GIF89a" + struct.pack("<HHBBB", 60_000, 60_000, 0, 0, 0) + b"\x2c" + bytes(20),
    "d.bmp": b"BM"
    + struct.pack("<IIIIiiHHIIiiII", 99, 0, 54, 40, 50_000, 50_000, 1, 24, 0, 0, 0, 0, 0, 0),
    "e.ppm": b"P6 50000 50000 255\n" + bytes(99),
    "f.tif": tiff(50_000, 50_000),
}


@pytest.mark.filterwarnings("ignore:Image size")
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_with_the_limit_and_the_remedy(tmp_path: Path, name: str) -> None:
    path = tmp_path / "class" / name
    path.parent.mkdir()
    path.write_bytes(BOMBS[name])
    message = rf"{name} .*more than {Image.MAX_IMAGE_PIXELS} pixels.*smaller.*MAX_IMAGE_PIXELS"
    with pytest.raises(ImageError, match=message):
        read_image(path)
    if not name.endswith(".gif"):  # which is not among the images of ImageFolder
        with pytest.raises(ImageError, match=message):
            ImageFolder(tmp_path)[0]


def test_the_limit_is_pillows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.new("L", (40, 50)).save(tmp_path / "x.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 2000)
    assert read_image(tmp_path / "x.png").shape == (3, 50, 40)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 999)
    with pytest.raises(ImageError, match="more than 999 pixels"):
        read_image(tmp_path / "x.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    assert read_image(tmp_path / "x.png").shape == (3, 50, 40)


def test_the_command_line_says_it_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("high", "low"):
        (tmp_path / "images" / name).mkdir(parents=True)
        for i in range(8):
            Image.new("L", (8, 8), 9 * i).save(tmp_path / "images" / name / f"{i}.png")
    folder, model = str(tmp_path / "images"), str(tmp_path / "model")
    fit = ["fit", folder, "--epochs", "1", "--hidden", "", "--out", model, "--json"]
    assert main(fit) == 0
    capsys.readouterr()
    for name in ("a.png", "b.png"):
        bomb = tmp_path / "images" / "low" / name
        bomb.write_bytes(BOMBS[name])
        for arguments in (fit, ["predict", model, folder], ["evaluate", model, folder]):
            assert main(arguments) == 2
            told = capsys.readouterr().err
            assert len(told.splitlines()) == 1
            assert f"{name} " in told
            assert "pixels, the most that are read" in told
        bomb.unlink()

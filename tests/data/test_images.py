"""Pictures to tensors and back, and side by side."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from PIL import Image

import chainrule
from chainrule.data import (
    ImageError,
    imshow,
    make_grid,
    read_image,
    to_float,
    to_uint8,
    unnormalize,
    write_image,
)
from chainrule.data import transforms_functional as TF


def picture(h: int, w: int, channels: int = 3, seed: int = 0) -> np.ndarray:
    shape = (h, w, channels) if channels > 1 else (h, w)
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["png", "tif", "tiff", "PNG"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_what_is_written_is_read(tmp_path: Path, ending: str, channels: int) -> None:
    x = chainrule.randint(0, 256, (channels, 5, 7), dtype=chainrule.uint8)
    write_image(x, tmp_path / f"a.{ending}")
    again = read_image(tmp_path / f"a.{ending}", {1: "L", 3: "RGB", 4: "RGBA"}[channels])
    assert again.dtype is chainrule.uint8
    assert again.tolist() == x.tolist()
    assert read_image(tmp_path / f"a.{ending}", "unchanged").tolist() == x.tolist()


def test_pixels_are_those_of_pillow(tmp_path: Path) -> None:
    array = picture(188, 257)
    Image.fromarray(array).save(tmp_path / "a.png")
    x = read_image(tmp_path / "a.png")
    assert x[None].shape == (1, 3, 188, 257)  # the shape of the course's geological image
    assert_close(x, array.transpose(2, 0, 1))
    assert_close(
        read_image(str(tmp_path / "a.png"), "L")[0], np.asarray(Image.fromarray(array).convert("L"))
    )


def test_jpeg_is_near(tmp_path: Path) -> None:
    y, x = np.mgrid[:32, :48]
    smooth = np.stack([4 * x, 6 * y, 3 * (x + y) // 2]).astype(np.uint8)
    write_image(chainrule.tensor(smooth), tmp_path / "fine.jpg", quality=95)
    write_image(chainrule.tensor(smooth), tmp_path / "plain.jpeg")
    again = read_image(tmp_path / "fine.jpg").numpy().astype(int)
    assert np.abs(again - smooth).max() < 16
    assert (tmp_path / "plain.jpeg").stat().st_size < (tmp_path / "fine.jpg").stat().st_size


def test_floats_are_rounded_to_bytes(tmp_path: Path) -> None:
    write_image(chainrule.tensor([[0.0, 0.5, 1.0, 0.2]]), tmp_path / "a.png")
    assert read_image(tmp_path / "a.png", "L").tolist() == [[[0, 128, 255, 51]]]
    x = chainrule.arange(256, dtype=chainrule.uint8).reshape(1, 16, 16)
    assert to_uint8(to_float(x)).tolist() == x.tolist()


@pytest.mark.parametrize(
    ("mode", "kept"), [("1", "L"), ("P", "RGB"), ("CMYK", "RGB"), ("LA", "LA"), ("YCbCr", "RGB")]
)
def test_other_ways_to_hold_pixels(tmp_path: Path, mode: str, kept: str) -> None:
    image = Image.fromarray(picture(6, 8)).convert(mode)
    image.save(tmp_path / "a.tif")
    with Image.open(tmp_path / "a.tif") as stored:
        expected = np.asarray(stored.convert("RGB")).transpose(2, 0, 1)
        as_it_is = np.asarray(stored.convert(kept))
    assert_close(read_image(tmp_path / "a.tif"), expected)
    whole = as_it_is[None] if as_it_is.ndim == 2 else as_it_is.transpose(2, 0, 1)
    assert_close(read_image(tmp_path / "a.tif", "unchanged"), whole)


def test_a_palette_with_transparency_keeps_it(tmp_path: Path) -> None:
    Image.fromarray(picture(6, 8)).convert("P").save(tmp_path / "a.png", transparency=0)
    assert read_image(tmp_path / "a.png", "unchanged").shape == (4, 6, 8)


@pytest.mark.parametrize("ending", ["png", "tif"])
def test_sixteen_bits_are_scaled_not_cut(tmp_path: Path, ending: str) -> None:
    levels = np.array([[0, 257, 300, 32896, 65535]], np.uint16)
    Image.fromarray(levels).save(tmp_path / f"a.{ending}")
    assert read_image(tmp_path / f"a.{ending}", "L").tolist() == [[[0, 1, 1, 128, 255]]]
    assert read_image(tmp_path / f"a.{ending}").tolist() == [[[0, 1, 1, 128, 255]]] * 3
    whole = read_image(tmp_path / f"a.{ending}", "unchanged")
    assert whole.dtype is chainrule.int32
    assert whole.tolist() == [levels.tolist()]


def test_floating_point_files(tmp_path: Path) -> None:
    levels = np.array([[0.5, -3.25]], np.float32)
    Image.fromarray(levels).save(tmp_path / "a.tif")
    assert_close(read_image(tmp_path / "a.tif", "unchanged"), levels[None])
    with pytest.raises(ImageError, match=r"a.tif holds floating-point numbers.*'unchanged'"):
        read_image(tmp_path / "a.tif")
    Image.fromarray(np.array([[70000, -1]], np.int32)).save(tmp_path / "b.tif")
    with pytest.raises(ImageError, match=r"b.tif holds numbers from -1 to 70000"):
        read_image(tmp_path / "b.tif", "L")


def test_orientation_of_photographs(tmp_path: Path) -> None:
    image, array = Image.fromarray(picture(8, 16)), picture(8, 16)
    exif = image.getexif()
    exif[0x0112] = 6  # the camera was turned by 90 degrees
    image.save(tmp_path / "a.png", exif=exif)
    assert read_image(tmp_path / "a.png").shape == (3, 8, 16)
    turned = read_image(tmp_path / "a.png", apply_exif_orientation=True)
    assert_close(turned, np.rot90(array, -1).transpose(2, 0, 1).copy())


def test_the_first_of_several_pictures(tmp_path: Path) -> None:
    pages = [Image.fromarray(picture(4, 4, seed=i)) for i in range(3)]
    pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:])
    assert_close(read_image(tmp_path / "a.tif"), picture(4, 4).transpose(2, 0, 1))


# --- broken files ---------------------------------------------------------------------------------


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file .*none.png"):
        read_image(tmp_path / "none.png")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_image(tmp_path)
    (tmp_path / "empty.png").touch()
    with pytest.raises(ImageError, match=r"empty.png is empty"):
        read_image(tmp_path / "empty.png")
    (tmp_path / "text.jpg").write_text("not a picture at all")
    with pytest.raises(ImageError, match=r"text.jpg is not a picture"):
        read_image(tmp_path / "text.jpg")
    with pytest.raises(ValueError, match="mode must be one of L, LA, RGB, RGBA, unchanged; got 'B"):
        read_image(tmp_path / "text.jpg", "BGR")


@pytest.mark.parametrize("ending", ["png", "jpg", "tif"])
def test_truncated_files_name_the_file(tmp_path: Path, ending: str) -> None:
    write_image(
        chainrule.tensor(picture(40, 40).transpose(2, 0, 1).copy()), tmp_path / f"a.{ending}"
    )
    whole = (tmp_path / f"a.{ending}").read_bytes()
    for part in (0.02, 0.3, 0.6, 0.9):
        (tmp_path / f"b.{ending}").write_bytes(whole[: int(part * len(whole))])
        with pytest.raises(ImageError, match=rf"b.{ending} is (damaged|not)"):
            read_image(tmp_path / f"b.{ending}")


@pytest.mark.parametrize("ending", ["png", "jpg", "tif"])
def test_corrupted_files_are_read_or_refused(tmp_path: Path, ending: str) -> None:
    """Never another exception, whatever byte is wrong."""
    write_image(
        chainrule.tensor(picture(12, 12).transpose(2, 0, 1).copy()), tmp_path / f"a.{ending}"
    )
    whole = (tmp_path / f"a.{ending}").read_bytes()
    r, refused = np.random.default_rng(0), []
    for _ in range(150):
        content = bytearray(whole)
        for at in r.integers(0, len(whole), 3):
            content[at] = r.integers(0, 256)
        (tmp_path / f"b.{ending}").write_bytes(content)
        try:
            read_image(tmp_path / f"b.{ending}")
        except ImageError as error:
            refused.append(str(error))
    assert refused
    assert all(f"b.{ending}" in message for message in refused)


def test_without_pillow_the_message_says_how_to_install() -> None:
    program = (
        "import sys; sys.modules['PIL'] = None\n"
        "from chainrule.data import read_image\n"
        "try:\n    read_image('a.png')\n"
        "except ImportError as error:\n    print(error)"
    )
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "Pillow, which is not installed: pip install 'chainrule[image]'" in out.stdout


def test_the_room_imports_no_pillow() -> None:
    names = ("PIL", "matplotlib", "ssl")
    program = f"import sys, chainrule.data; print([m for m in {names} if m in sys.modules])"
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("shape", "name", "options", "message"),
    [
        ((3, 4, 4), "a.gif", {}, r"a.gif should end in one of .png, .jpg"),
        ((3, 4, 4), "a", {}, "should end in one of"),
        ((4, 4, 4), "a.jpg", {}, "JPEG holds 1 or 3 channels, got 4"),
        ((3, 4, 4), "a.png", {"quality": 50}, "quality is a number from 1 to 95 for JPEG"),
        ((3, 4, 4), "a.jpg", {"quality": 0}, "quality is a number from 1 to 95"),
        ((2, 3, 4, 4), "a.png", {}, "expected one image .*make_grid"),
        ((5, 4, 4), "a.png", {}, r"channels .*got shape \(5, 4, 4\)"),
        ((3, 0, 4), "a.png", {}, "at least one pixel"),
    ],
)
def test_write_refuses(tmp_path: Path, shape: Any, name: str, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_image(chainrule.zeros(shape), tmp_path / name, **options)
    assert list(tmp_path.iterdir()) == []


def test_numbers_out_of_range_are_refused(tmp_path: Path) -> None:
    for value in (1.5, -0.5, float("nan")):
        with pytest.raises(ValueError, match=r"expected numbers in \[0, 1\], got .*unnormalize"):
            write_image(chainrule.full((1, 2, 2), value), tmp_path / "a.png")
    with pytest.raises(TypeError, match="expected uint8 or floating-point numbers, got .*int64"):
        to_uint8(chainrule.arange(3))
    with pytest.raises(TypeError, match=r"expected uint8, whose white is 255, got chainrule.int32"):
        to_float(chainrule.arange(3, dtype=chainrule.int32))
    assert to_uint8(chainrule.tensor([1.0000001, -1e-7])).tolist() == [255, 0]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: Any) -> None:
    write_image(chainrule.zeros(1, 2, 2), tmp_path / "a.png")
    before = (tmp_path / "a.png").read_bytes()

    def full(self: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        write_image(chainrule.ones(1, 2, 2), tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]


# --- tensors --------------------------------------------------------------------------------------


def test_to_tensor() -> None:
    array = picture(4, 6)
    expected = array.transpose(2, 0, 1).astype(np.float32) / 255
    for given in (array, Image.fromarray(array), chainrule.tensor(array.transpose(2, 0, 1).copy())):
        out = TF.to_tensor(given)
        assert out.dtype is chainrule.float32
        assert_close(out, expected)
    assert TF.to_tensor(picture(4, 6, 1)).shape == (1, 4, 6)
    assert TF.to_tensor(Image.new("1", (3, 2), 1)).tolist() == [[[1.0] * 3] * 2]
    assert TF.to_tensor(np.zeros((2, 3, 1))).dtype is chainrule.float64
    with pytest.raises(TypeError, match="expected a Pillow image, an array or a Tensor, got list"):
        TF.to_tensor([1, 2])
    with pytest.raises(ValueError, match=r"expected an array \(H, W\) or \(H, W, C\)"):
        TF.to_tensor(np.zeros(3))


def test_pillow_and_back() -> None:
    array = picture(4, 6)
    again = np.asarray(TF.to_pil_image(TF.to_tensor(array)))
    assert_close(again, array)
    assert TF.to_pil_image(chainrule.zeros(5, 4)).mode == "L"


def test_normalize_and_back() -> None:
    """Example 6 of the course: (x - 0.5) / 0.5 and x / 2 + 0.5."""
    x = chainrule.rand(3, 4, 5, dtype=chainrule.float64)
    half = (0.5, 0.5, 0.5)
    y = TF.normalize(x, half, half)
    assert_close(y, 2 * x.numpy() - 1)
    assert_close(unnormalize(y, half, half), y.numpy() / 2 + 0.5)
    assert_close(unnormalize(y, half, half), x)
    batch = chainrule.rand(2, 3, 4, 5)
    mean, std = chainrule.tensor([0.1, 0.2, 0.3]), chainrule.tensor([1.0, 2.0, 3.0])
    expected = (batch.numpy() - mean.numpy()[:, None, None]) / std.numpy()[:, None, None]
    assert_close(TF.normalize(batch, mean, std), expected, rtol=1e-6)


def test_normalize_refuses() -> None:
    with pytest.raises(TypeError, match="expected a floating-point image, got .*uint8.*ToTensor"):
        TF.normalize(chainrule.zeros(3, 2, 2, dtype=chainrule.uint8), 0, 1)
    with pytest.raises(ValueError, match="mean must be one number or one for each of the 3 chann"):
        TF.normalize(chainrule.zeros(3, 2, 2), (0.5, 0.5), 1)
    with pytest.raises(ValueError, match="std contains zero"):
        TF.normalize(chainrule.zeros(3, 2, 2), 0, (1, 0, 1))
    with pytest.raises(ValueError, match=r"expected an image \(C, H, W\).*got shape \(2, 2\)"):
        unnormalize(chainrule.zeros(2, 2), 0, 1)


# --- grids ----------------------------------------------------------------------------------------


def by_hand(x: np.ndarray, nrow: int, padding: int, value: float) -> np.ndarray:
    n, c, h, w = x.shape
    columns = min(nrow, n)
    rows = -(-n // columns)
    out = np.full(
        (c, rows * (h + padding) + padding, columns * (w + padding) + padding), value, x.dtype
    )
    for k in range(n):
        i, j = divmod(k, columns)
        top, left = padding + i * (h + padding), padding + j * (w + padding)
        out[:, top : top + h, left : left + w] = x[k]
    return out


@pytest.mark.parametrize(
    ("n", "nrow", "padding", "value"),
    [(7, 3, 2, 0.0), (8, 8, 1, 0.5), (3, 8, 0, 0.0), (4, 1, 3, 1.0), (10, 5, 2, -1.0)],
)
def test_grid(n: int, nrow: int, padding: int, value: float) -> None:
    x = np.random.default_rng(n).normal(size=(n, 3, 4, 5))
    grid = make_grid(chainrule.tensor(x), nrow, padding, pad_value=value)
    assert_close(grid, by_hand(x, nrow, padding, value))
    listed = make_grid(list(chainrule.tensor(x)), nrow, padding, pad_value=value)
    assert_close(listed, grid)


def test_grid_of_gray_images_and_of_one() -> None:
    x = np.random.default_rng(0).normal(size=(5, 1, 4, 4))
    assert_close(make_grid(chainrule.tensor(x)), by_hand(np.repeat(x, 3, 1), 8, 2, 0.0))
    one = chainrule.tensor(x[:1])
    assert_close(make_grid(one), np.repeat(x[0], 3, 0))
    assert_close(make_grid(one[0, 0]), np.repeat(x[0], 3, 0))
    bytes_ = chainrule.full((2, 1, 2, 2), 7, dtype=chainrule.uint8)
    assert make_grid(bytes_, pad_value=255).dtype is chainrule.uint8


def test_grid_normalized() -> None:
    x = np.random.default_rng(1).normal(size=(4, 3, 4, 4))
    low, high = x.min(), x.max()
    whole = make_grid(chainrule.tensor(x), normalize=True, padding=0)
    assert_close(whole, by_hand((x - low) / (high - low), 8, 0, 0.0))
    ranged = make_grid(chainrule.tensor(x), normalize=True, value_range=(-1, 1), padding=0)
    assert_close(ranged, by_hand((x.clip(-1, 1) + 1) / 2, 8, 0, 0.0))
    each = make_grid(chainrule.tensor(x), normalize=True, scale_each=True, padding=0)
    lows, highs = x.min((1, 2, 3), keepdims=True), x.max((1, 2, 3), keepdims=True)
    assert_close(each, by_hand((x - lows) / (highs - lows), 8, 0, 0.0))
    assert_close(
        make_grid(chainrule.ones(2, 3, 2, 2), normalize=True, padding=0),
        np.zeros((3, 2, 4), np.float32),
    )


def test_grid_is_differentiable() -> None:
    x = chainrule.randn(3, 1, 2, 2, dtype=chainrule.float64, requires_grad=True)
    assert chainrule.autograd.gradcheck(lambda t: make_grid(t, nrow=2, pad_value=0.3), (x,))


@pytest.mark.parametrize(
    ("given", "options", "error", "message"),
    [
        ([], {}, ValueError, "the list is empty"),
        ("abc", {}, TypeError, "expected a Tensor or a list of them, got 'abc'"),
        ((2, 3, 4, 4, 4), {}, ValueError, r"expected images \(N, C, H, W\)"),
        ((0, 3, 4, 4), {}, ValueError, "at least one, got"),
        ((2, 3, 4, 4), {"nrow": 0}, ValueError, "nrow must be positive"),
        ((2, 3, 4, 4), {"value_range": (0, 1)}, ValueError, "needs normalize=True"),
    ],
)
def test_grid_refuses(given: Any, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make_grid(chainrule.zeros(given) if isinstance(given, tuple) else given, **options)


class Axes:
    """What matplotlib's axes get to see."""

    def imshow(self, array: np.ndarray, **options: Any) -> None:
        self.array, self.options = array, options

    def set_axis_off(self) -> None:
        self.off = True


def test_imshow() -> None:
    ax = Axes()
    grid = make_grid(chainrule.rand(4, 3, 5, 5) * 2 - 1)
    assert imshow(grid, mean=0.5, std=0.5, ax=ax) is ax
    assert ax.array.shape == (9, 30, 3)
    assert_close(ax.array, to_uint8(grid / 2 + 0.5).numpy().transpose(1, 2, 0))
    imshow(chainrule.rand(4, 5), ax=ax)
    assert ax.array.shape == (4, 5)
    assert ax.options == {"cmap": "gray", "vmin": 0, "vmax": 255}
    with pytest.raises(ValueError, match="mean and std undo a normalization together"):
        imshow(grid, mean=0.5, ax=ax)
    with pytest.raises(ValueError, match="expected one image of 1, 3 or 4 channels.*make_grid"):
        imshow(chainrule.rand(2, 3, 4, 4), ax=ax)

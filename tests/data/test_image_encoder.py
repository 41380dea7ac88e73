"""Image files of all kinds as tensors of one size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import chainrule
from chainrule.data.image_encoder import ImageEncoder, image_facts, image_files
from chainrule.data.images import ImageError
from chainrule.train import Settings
from chainrule.train.automatic.images import small_convnet

GRAY = np.arange(64, dtype="u1").reshape(8, 8) * 4


def raw(path: Path, channels: int = 1) -> np.ndarray:
    """What the encoder makes of a file before it is standardized, in bytes."""
    encoder = ImageEncoder((8, 8), channels).fit([path])
    return (encoder([path])[0] * encoder.spread + encoder.mean).numpy() * 255


def test_gray_palette_and_sixteen_bits_are_the_same_picture(tmp_path: Path) -> None:
    pictures = {
        "gray.png": Image.fromarray(GRAY),
        "color.png": Image.fromarray(GRAY).convert("RGB"),
        "palette.png": Image.fromarray(GRAY).convert("P"),
        "deep.png": Image.fromarray(GRAY.astype("u2") * 257),
        "deep.tif": Image.fromarray(GRAY.astype("u2") * 257),
    }
    for name, picture in pictures.items():
        picture.save(tmp_path / name)
        for channels in (1, 3):
            found = raw(tmp_path / name, channels)
            assert found.shape == (channels, 8, 8)
            np.testing.assert_allclose(found, np.broadcast_to(GRAY, found.shape), atol=0.51)


def test_transparency_is_laid_on_white(tmp_path: Path) -> None:
    pixels = np.zeros((8, 8, 4), "u1")
    pixels[:4, :, 3] = 255  # above black, below nothing
    pixels[4, :, 3] = 51
    Image.fromarray(pixels).save(tmp_path / "a.png")
    for channels in (1, 3):
        found = raw(tmp_path / "a.png", channels)
        np.testing.assert_allclose(found[:, :4], 0, atol=0.51)
        np.testing.assert_allclose(found[:, 4], 204, atol=0.51)
        np.testing.assert_allclose(found[:, 5:], 255, atol=0.51)


def test_a_photograph_is_turned_as_its_camera_says(tmp_path: Path) -> None:
    file = tmp_path / "a.png"
    exif = Image.Exif()
    exif[274] = 6  # turn it to the right
    Image.fromarray(GRAY[:, :4]).save(file, exif=exif)
    encoder = ImageEncoder().fit([file])
    assert encoder.size == [4, 8]
    assert encoder.channels == 1
    found = (encoder([file]) * encoder.spread + encoder.mean).numpy()[0, 0] * 255
    np.testing.assert_allclose(found, np.rot90(GRAY[:, :4], -1), atol=0.51)


@pytest.mark.parametrize(
    ("sizes", "chosen"),
    [
        ([(10, 12)] * 3, [10, 12]),
        ([(10, 12), (20, 30), (40, 31)], [20, 30]),
        ([(100, 200)] * 2, [32, 64]),
        ([(1, 640)] * 2, [1, 64]),
    ],
)
def test_the_size_is_chosen(
    sizes: list[tuple[int, int]], chosen: list[int], tmp_path: Path
) -> None:
    paths = []
    for i, size in enumerate(sizes):
        paths.append(tmp_path / f"{i}.png")
        Image.fromarray(np.full(size, 40 * i, "u1")).save(paths[-1])
    encoder = ImageEncoder()
    x = encoder.fit_transform(paths)
    assert encoder.size == chosen
    assert x.shape == (len(sizes), 1, *chosen)
    assert chainrule.equal(x, encoder(paths))


def test_the_size_of_a_file_is_known_without_its_pixels(tmp_path: Path) -> None:
    for suffix in ("png", "tif", "gif", "bmp"):
        Image.fromarray(GRAY[:, :4]).save(tmp_path / f"a.{suffix}")
        assert image_facts(tmp_path / f"a.{suffix}")[:2] == (8, 4)


def test_one_colored_image_makes_three_channels(tmp_path: Path) -> None:
    Image.fromarray(GRAY).save(tmp_path / "a.png")
    Image.fromarray(np.stack([GRAY] * 3, 2)).save(tmp_path / "b.png")
    assert ImageEncoder().fit([tmp_path / "a.png", tmp_path / "b.png"]).channels == 3
    assert ImageEncoder().fit([tmp_path / "a.png"]).channels == 1


def test_a_bomb_is_refused_before_its_pixels_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.fromarray(GRAY).save(tmp_path / "a.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)
    for look in (image_facts, ImageEncoder((8, 8), 1)._one):
        with pytest.raises(ImageError, match=r"a\.png.* more than 20 pixels"):
            look(tmp_path / "a.png")


def test_what_is_no_image_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"not an image")
    with pytest.raises(ImageError, match=r"a\.png is not a picture"):
        ImageEncoder().fit([tmp_path / "a.png"])
    with pytest.raises(ValueError, match="there are no images"):
        ImageEncoder().fit([])
    with pytest.raises(RuntimeError, match="not fitted"):
        ImageEncoder()([tmp_path / "a.png"])
    with pytest.raises(ValueError, match="channels must be 1 or 3"):
        ImageEncoder(None, 2)
    with pytest.raises(ValueError, match=r"size must be \(height, width\)"):
        ImageEncoder((8, 0))


def test_a_damaged_state_is_refused(tmp_path: Path) -> None:
    Image.fromarray(GRAY).save(tmp_path / "a.png")
    encoder = ImageEncoder().fit([tmp_path / "a.png"])
    state = encoder.get_extra_state()
    other = ImageEncoder()
    other.set_extra_state(state)
    assert chainrule.equal(other([tmp_path / "a.png"]), encoder([tmp_path / "a.png"]))
    for wrong in ({"channels": 2}, {"size": [8]}, {"size": [2**20, 2**20]}, {"mean": "a"}):
        with pytest.raises(ValueError, match="ImageEncoder"):
            other.set_extra_state(state | wrong)


def test_litter_of_archives_is_left_out(tmp_path: Path) -> None:
    for name in ("cats/a.png", "cats/.b.png", "__MACOSX/c.png", ".trash/d.png", "dogs/e.PNG"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.fromarray(GRAY).save(tmp_path / name, "PNG")
    paths, classes = image_files(tmp_path)
    assert [p.name for p in paths] == ["a.png", "e.PNG"]
    assert classes == ["cats", "dogs"]


def test_the_network_is_what_the_settings_say() -> None:
    settings = Settings(hidden=(5,), activation="tanh", norm="layer", dropout=0.5)
    net = small_convnet(1, 16, 16, 3, settings, augment=True)
    kinds = [type(layer).__name__ for layer in net]
    assert kinds[:5] == ["RandomCrop", "Conv2d", "GroupNorm", "Tanh", "MaxPool2d"]
    assert kinds[-4:] == ["Linear", "Tanh", "Dropout", "Linear"]
    assert "ReLU" not in kinds
    plain = small_convnet(1, 16, 16, 3, Settings(norm=None))
    assert not [layer for layer in plain if "Norm" in type(layer).__name__]
    with pytest.raises(ValueError, match="norm must be"):
        small_convnet(1, 16, 16, 3, Settings(norm="other"))


def test_images_are_shifted_in_training_alone() -> None:
    net = small_convnet(1, 16, 16, 3, Settings(), augment=True)
    x = chainrule.arange(2 * 256).reshape(2, 1, 16, 16).float()
    first = net[0]
    assert chainrule.equal(first.eval()(x), x)
    chainrule.manual_seed(0)
    moved = first.train()(x)
    assert moved.shape == x.shape
    assert not chainrule.equal(moved, x)

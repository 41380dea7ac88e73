"""Files for TensorBoard, read back: pictures, sounds, texts, graphs, settings, points."""

from __future__ import annotations

import io
import struct
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from utils.events import Fields, events, fields, only, values

import chainrule
from chainrule import nn
from chainrule.utils.tensorboard import SummaryWriter


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[SummaryWriter]:
    with SummaryWriter(tmp_path) as opened:
        yield opened


# --- pictures, sounds, texts ----------------------------------------------------------------------


def picture(folder: Path, tag: str) -> np.ndarray:
    told = fields(only(folder, tag)[4][0])
    image = Image.open(io.BytesIO(told[4][0]))
    assert [told[1], told[2], told[3]] == [[image.height], [image.width], [len(image.getbands())]]
    return np.asarray(image)


@pytest.mark.parametrize("dataformats", ["CHW", "HWC", "HCW"])
def test_images(writer: SummaryWriter, tmp_path: Path, dataformats: str) -> None:
    x = np.random.default_rng(0).integers(0, 256, (4, 6, 3), dtype=np.uint8)
    order = ["HWC".index(c) for c in dataformats]
    writer.add_image("bytes", x.transpose(order), dataformats=dataformats)
    writer.add_image("unit", chainrule.tensor(x.transpose(order)) / 255, dataformats=dataformats)
    writer.close()
    np.testing.assert_array_equal(picture(tmp_path, "bytes"), x)
    np.testing.assert_allclose(picture(tmp_path, "unit"), x, atol=1)


def test_gray_clipped_and_transparent_images(writer: SummaryWriter, tmp_path: Path) -> None:
    writer.add_image("gray", chainrule.tensor([[-1.0, 0.5, 7.0]]), dataformats="HW")
    writer.add_image("alpha", chainrule.ones(4, 2, 2, dtype="uint8") * 9)
    writer.close()
    assert picture(tmp_path, "gray").tolist() == [[[0] * 3, [127] * 3, [255] * 3]]
    assert picture(tmp_path, "alpha").shape == (2, 2, 4)


def test_several_images_in_a_grid(writer: SummaryWriter, tmp_path: Path) -> None:
    x = chainrule.arange(10).reshape(10, 1, 1, 1).expand(10, 1, 2, 3).to("uint8")
    writer.add_images("grid", x)
    writer.close()
    shown = picture(tmp_path, "grid")
    assert shown.shape == (4, 24, 3)
    assert shown[0, ::3, 0].tolist() == list(range(8))
    assert shown[2, ::3, 0].tolist() == [8, 9, 0, 0, 0, 0, 0, 0]


def test_boxes(writer: SummaryWriter, tmp_path: Path) -> None:
    writer.add_image_with_boxes("box", chainrule.zeros(3, 10, 12), [[2, 3, 8, 7]])
    writer.close()
    red = picture(tmp_path, "box")[:, :, 0] == 255
    assert (red[3:8, 2:9]).sum() == red.sum() == 5 * 7 - 1 * 3
    with pytest.raises(ValueError, match="use add_figure"):
        writer.add_image_with_boxes("box", chainrule.zeros(3, 9, 9), [[1, 1, 2, 2]], labels=["a"])


@pytest.mark.parametrize(
    ("shape", "dataformats", "match"),
    [
        ((3, 2, 2), "CHH", "stands twice"),
        ((3, 2, 2), "CHX", "should have the letters"),
        ((3, 2, 2), "HW", "are different"),
        ((2, 2, 2), "CHW", "1, 3 or 4 channels, got 2"),
    ],
)
def test_wrong_images(
    writer: SummaryWriter, shape: tuple[int, ...], dataformats: str, match: str
) -> None:
    with pytest.raises(AssertionError, match=match):
        writer.add_image("x", chainrule.zeros(*shape), dataformats=dataformats)


def test_figures(writer: SummaryWriter, tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    drawn = [pyplot.figure(figsize=(2, 1), dpi=50) for _ in range(3)]
    drawn[0].patch.set_facecolor("red")
    writer.add_figure("one", drawn[0])
    writer.add_figure("two", drawn[1:], close=False)
    writer.close()
    assert picture(tmp_path, "one")[0, 0].tolist() == [255, 0, 0]
    assert picture(tmp_path, "two").shape == (50, 200, 3)
    assert not pyplot.fignum_exists(drawn[0].number)
    assert pyplot.fignum_exists(drawn[1].number)
    pyplot.close("all")


def test_sounds(writer: SummaryWriter, tmp_path: Path) -> None:
    writer.add_audio("sound", chainrule.tensor([[0.0, 0.5, -1.0, 3.0]]), sample_rate=8000)
    writer.close()
    told = fields(only(tmp_path, "sound")[6][0])
    assert [told[1], told[2], told[3], told[5]] == [[8000.0], [1], [4], [b"audio/wav"]]
    with wave.open(io.BytesIO(told[4][0])) as file:
        assert file.getframerate() == 8000
        samples = struct.unpack("<4h", file.readframes(4))
    assert samples == (0, 16383, -32767, 32767)
    with pytest.raises(AssertionError, match="should be 1 dimensional"):
        writer.add_audio("sound", chainrule.zeros(2, 3))


def test_texts(writer: SummaryWriter, tmp_path: Path) -> None:
    writer.add_text("note", "# größer", 7)
    writer.close()
    told = only(tmp_path, "note/text_summary")
    assert told[0] == [7]
    assert fields(told[8][0])[8] == ["# größer".encode()]


# --- of the whole run -----------------------------------------------------------------------------


def test_graphs(writer: SummaryWriter, tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Tanh(), nn.Linear(4, 2)))
    state = chainrule.get_rng_state()
    writer.add_graph(net, chainrule.ones(5, 3))
    writer.close()
    assert chainrule.equal(chainrule.get_rng_state(), state)
    assert not net.has_hooks
    (event,) = [e for e in events(tmp_path) if 4 in e]
    nodes = [fields(n) for n in fields(event[4][0])[1]]
    graph = {
        n[1][0].decode(): (n[2][0].decode(), [i.decode() for i in n.get(3, [])]) for n in nodes
    }
    assert graph["input/0"] == ("Placeholder", [])
    assert graph["Sequential/0/weight"] == ("Parameter", [])
    assert graph["Sequential/0/linear"] == (
        "linear",
        ["input/0", "Sequential/0/weight", "Sequential/0/bias"],
    )
    assert graph["Sequential/1/0/tanh"] == ("tanh", ["Sequential/0/linear"])
    assert graph["output/0"] == ("Output", ["Sequential/1/1/linear"])
    (last,) = [n for n in nodes if n[1] == [b"output/0"]]
    shape = fields(fields(fields(fields(last[5][0])[2][0])[1][0])[7][0])[2]
    assert [fields(d)[1][0] for d in shape] == [5, 2]


def test_graphs_of_several_inputs_and_outputs(writer: SummaryWriter, tmp_path: Path) -> None:
    class Twice(nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            values, places = (a + b).max(0)
            return {"values": values, "places": places, "same": a}

    writer.add_graph(Twice(), (chainrule.ones(2), chainrule.ones(2)))
    writer.close()
    (event,) = [e for e in events(tmp_path) if 4 in e]
    names = [fields(n)[1][0].decode() for n in fields(event[4][0])[1]]
    assert {"input/0", "input/1", "Twice/add", "output/0", "output/1", "output/2"} <= set(names)
    assert len(set(names)) == len(names)


def test_settings_and_what_came_of_them(writer: SummaryWriter, tmp_path: Path) -> None:
    settings = {"lr": 0.1, "n": 3, "name": "adam", "on": True, "none": None}
    writer.add_hparams(settings, {"accuracy": 0.5}, {"name": ["adam", "sgd"]}, run_name="trial")
    writer.close()
    found = values(tmp_path / "trial")
    assert list(found) == [
        "_hparams_/experiment",
        "_hparams_/session_start_info",
        "_hparams_/session_end_info",
        "accuracy",
    ]
    assert found["accuracy"][0][2] == [0.5]

    def content(tag: str) -> Fields:
        return fields(fields(fields(found[tag][0][9][0])[1][0])[2][0])

    start = fields(content("_hparams_/session_start_info")[3][0])[1]
    told = {fields(e)[1][0].decode(): fields(fields(e)[2][0]) for e in start}
    assert told == {"lr": {2: [0.1]}, "n": {2: [3.0]}, "name": {3: [b"adam"]}, "on": {4: [1]}}
    infos = [fields(i) for i in fields(content("_hparams_/experiment")[2][0])[4]]
    assert [(i[1][0], i[4][0]) for i in infos] == [
        (b"lr", 3),
        (b"n", 3),
        (b"name", 1),
        (b"on", 2),
    ]
    assert len(fields(infos[2][5][0])[1]) == 2


def test_wrong_settings(writer: SummaryWriter) -> None:
    with pytest.raises(TypeError, match="should be dictionary"):
        writer.add_hparams([("lr", 1)], {})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="value of 'x' should be one of int.*got list"):
        writer.add_hparams({"x": [1]}, {})
    with pytest.raises(TypeError, match="list of same type as hparam_dict\\['x'\\]"):
        writer.add_hparams({"x": 1}, {}, {"x": ["a"]})


def test_charts(writer: SummaryWriter, tmp_path: Path) -> None:
    writer.add_custom_scalars_multilinechart(["a", "b"], title="two")
    writer.add_custom_scalars_marginchart(["v", "low", "high"], category="c")
    writer.close()
    first, second = values(tmp_path)["custom_scalars__config__"]
    (category,) = fields(fields(first[8][0])[8][0])[2]
    chart = fields(fields(category)[2][0])
    assert chart[1] == [b"two"]
    assert fields(chart[2][0])[1] == [b"a", b"b"]
    (category,) = fields(fields(second[8][0])[8][0])[2]
    series = fields(fields(fields(fields(category)[2][0])[3][0])[1][0])
    assert series == {1: [b"v"], 2: [b"low"], 3: [b"high"]}
    with pytest.raises(AssertionError, match="has 3 tags.*got 2"):
        writer.add_custom_scalars_marginchart(["a", "b"])


def test_points_for_the_projector(writer: SummaryWriter, tmp_path: Path) -> None:
    images = chainrule.rand(5, 1, 4, 6)
    writer.add_embedding(chainrule.arange(10).reshape(5, 2), list("abcde"), images, 2, "a/b")
    writer.add_embedding(np.zeros((2, 3)), [["x", 1], ["y", 2]], metadata_header=["n", "v"])
    folder = tmp_path / "00002" / "a%2fb"
    assert (folder / "tensors.tsv").read_text().splitlines()[1] == "2\t3"
    assert (folder / "metadata.tsv").read_text() == "a\nb\nc\nd\ne\n"
    with Image.open(folder / "sprite.png") as sprite:
        assert sprite.size == (18, 18)
    header = (tmp_path / "00000" / "default" / "metadata.tsv").read_text().splitlines()
    assert header == ["n\tv", "x\t1", "y\t2"]
    config = (tmp_path / "projector_config.pbtxt").read_text()
    assert config.count("embeddings {") == 2
    assert 'tensor_name: "a/b:00002"' in config
    assert "single_image_dim: 6\n    single_image_dim: 4" in config


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"mat": np.zeros(3)}, "should be 2D"),
        ({"mat": np.zeros((3, 2)), "metadata": ["a"]}, "#labels should equal.*1 and 3"),
        ({"mat": np.zeros((1, 2)), "label_img": np.zeros((2, 3, 4, 4))}, "#images.*2 and 1"),
        ({"mat": np.zeros((1, 2)), "label_img": np.zeros((1, 2, 4, 4))}, "1 or 3 channels"),
        (
            {"mat": np.zeros((1, 2)), "metadata": [["a", "b"]], "metadata_header": ["x"]},
            "len of header.*1 and 2",
        ),
    ],
)
def test_wrong_points(writer: SummaryWriter, arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(AssertionError, match=match):
        writer.add_embedding(**arguments)

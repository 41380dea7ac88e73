"""Files for TensorBoard, read back byte by byte: records, numbers, distributions."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from utils.events import doubles, events, fields, only, values

import chainrule
from chainrule.utils.tensorboard import SummaryWriter, records
from chainrule.utils.tensorboard import messages as m


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[SummaryWriter]:
    with SummaryWriter(tmp_path) as opened:
        yield opened


# --- the format -----------------------------------------------------------------------------------

# As the package tensorboard writes these events.
WRITTEN = {
    "scalar": (
        m.event(1.5, 3, m.summary("loss", m.fraction(2, 0.25))),
        "1a00000000000000129bd82d09000000000000f83f10032a0d0a0b0a046c6f7373150000803ed054b255",
    ),
    "histogram": (
        m.event(
            1.5,
            300,
            m.summary(
                "w",
                m.inside(
                    5,
                    b"".join([m.number(i + 1, v) for i, v in enumerate((-1, 2, 3, 2, 6))])
                    + m.doubles(6, [-1, 0.5, 2])
                    + m.doubles(7, [0, 1, 2]),
                ),
            ),
        ),
        "76000000000000004e43f07d09000000000000f83f10ac022a680a660a01772a6109000000000000f0bf11000000"
        "00000000401900000000000008402100000000000000402900000000000018403218000000000000f0bf00000000"
        "0000e03f00000000000000403a180000000000000000000000000000f03f00000000000000404543577f",
    ),
    "text": (
        m.event(
            1.5,
            -1,
            m.summary(
                "hello/text_summary", m.inside(8, m.strings(["ä".encode()], [1])), m.plugin("text")
            ),
        ),
        "440000000000000043592e9a09000000000000f83f10ffffffffffffffffff012a2e0a2c0a1268656c6c6f2f7465"
        "78745f73756d6d617279420c08071204120208014202c3a44a080a060a047465787407bdcfa2",
    ),
    "tensor": (
        m.event(
            1.5,
            1,
            m.summary("t", m.inside(8, m.tensor(chainrule.tensor([-1, 300]))), m.plugin("tensor")),
        ),
        "36000000000000004f578cef09000000000000f83f10012a290a270a017442160809120412020802520cffffffff"
        "ffffffffff01ac024a0a0a080a0674656e736f72876a2ec9",
    ),
}


@pytest.mark.parametrize(("message", "expected"), WRITTEN.values(), ids=WRITTEN)
def test_records_are_those_of_tensorboard(message: bytes, expected: str) -> None:
    assert records.record(message).hex() == expected


def test_the_checksum() -> None:
    assert records.crc32c(b"123456789") == 0xE3069283
    assert records.crc32c(b"") == 0
    assert records.crc32c(bytes(32)) == 0x8A9136AA


# --- numbers --------------------------------------------------------------------------------------


def test_curves(writer: SummaryWriter, tmp_path: Path) -> None:
    for step, loss in enumerate([0.5, chainrule.tensor(0.25), np.float32(0.125)]):
        writer.add_scalar("loss", loss, step)
    writer.add_scalar("large", 1e300)
    writer.close()
    found = values(tmp_path)
    assert [(v[0][0], v[2][0]) for v in found["loss"]] == [(0, 0.5), (1, 0.25), (2, 0.125)]
    assert found["large"][0][2] == [float("inf")]
    assert found["large"][0][0] == [None]
    with pytest.raises(AssertionError, match=r"should contain one element.*\(2,\)"):
        writer.add_scalar("x", chainrule.ones(2))


def test_curves_as_tensors(writer: SummaryWriter, tmp_path: Path) -> None:
    writer.add_scalar("single", 0.1, 1, new_style=True)
    writer.add_scalar("double", 0.1, 1, new_style=True, double_precision=True)
    writer.close()
    single, double = (fields(only(tmp_path, tag)[8][0]) for tag in ("single", "double"))
    assert struct.unpack("<f", single[5][0])[0] == np.float32(0.1)
    assert doubles(double[6][0]) == [0.1]
    assert fields(fields(only(tmp_path, "single")[9][0])[1][0])[1] == [b"scalars"]


def test_several_curves_in_one_chart(writer: SummaryWriter, tmp_path: Path) -> None:
    for step in range(2):
        writer.add_scalars("both/x", {"a": step, "b": -step}, step)
    writer.close()
    assert [v[2][0] for v in values(tmp_path / "both_x_a")["both/x"]] == [0, 1]
    assert [v[2][0] for v in values(tmp_path / "both_x_b")["both/x"]] == [0, -1]


@pytest.mark.parametrize("bins", ["tensorflow", "auto", "sturges", 7, [-1.0, 0.0, 0.5, 1.0]])
def test_distributions(writer: SummaryWriter, tmp_path: Path, bins: Any) -> None:
    x = np.random.default_rng(0).normal(size=500).astype(np.float32)
    writer.add_histogram("w", chainrule.tensor(x, requires_grad=True), 3, bins=bins)
    writer.close()
    told = fields(only(tmp_path, "w")[5][0])
    wide = x.astype(np.float64)
    moments = [wide.min(), wide.max(), 500, wide.sum(), (wide**2).sum()]
    assert [told[i][0] for i in range(1, 6)] == pytest.approx(moments)
    limits, counts = doubles(told[6][0]), doubles(told[7][0])
    borders = writer.default_bins if bins == "tensorflow" else bins
    expected, edges = np.histogram(wide, borders)
    kept = np.flatnonzero(expected)
    assert counts == [0, *expected[kept[0] : kept[-1] + 1]]
    assert limits == edges[kept[0] : kept[-1] + 2].tolist()


def test_fewer_bins(writer: SummaryWriter, tmp_path: Path) -> None:
    writer.add_histogram("w", chainrule.arange(100), bins=10, max_bins=4)
    writer.close()
    told = fields(only(tmp_path, "w")[5][0])
    assert doubles(told[7][0]) == [0, 20, 20, 20, 20, 20]
    assert doubles(told[6][0]) == pytest.approx([0, 19.8, 39.6, 59.4, 79.2, 99])


def test_distributions_counted_before(writer: SummaryWriter, tmp_path: Path) -> None:
    writer.add_histogram_raw("w", 0, 1, 2, 3, 4, [1, 2], [5, 6])
    writer.close()
    told = fields(only(tmp_path, "w")[5][0])
    assert [told[i][0] for i in range(1, 6)] == [0, 1, 2, 3, 4]
    assert [doubles(told[i][0]) for i in (6, 7)] == [[1, 2], [5, 6]]


@pytest.mark.parametrize(
    ("x", "match"),
    [([], "no element"), ([1.0, float("nan")], "should be finite"), ([float("inf")], "finite")],
)
def test_distributions_of_nothing(writer: SummaryWriter, x: list[float], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        writer.add_histogram("w", chainrule.tensor(x))
    with pytest.raises(ValueError, match=r"len\(bucket_limits\) != len\(bucket_counts\)"):
        writer.add_histogram_raw("w", 0, 1, 2, 3, 4, [1, 2], [5])


@pytest.mark.parametrize(
    ("x", "kind", "field"),
    [
        (chainrule.tensor([1.5, -2.0]), 1, 5),
        (chainrule.tensor([1.5], dtype="float16"), 1, 5),
        (chainrule.tensor([1.5], dtype="float64"), 2, 6),
        (chainrule.tensor([[1], [2]], dtype="int32"), 3, 7),
        (chainrule.tensor([True]), 10, 11),
        (chainrule.tensor([1 + 2j]), 8, 9),
    ],
)
def test_tensors(writer: SummaryWriter, tmp_path: Path, x: Any, kind: int, field: int) -> None:
    writer.add_tensor("t", x)
    writer.close()
    told = fields(only(tmp_path, "t")[8][0])
    assert told[1] == [kind]
    assert [fields(d)[1][0] for d in fields(told[2][0])[2]] == list(x.shape)
    assert set(told) == {1, 2, field}


def test_precision_and_recall(writer: SummaryWriter, tmp_path: Path) -> None:
    labels, predictions = np.array([1, 0, 1, 1, 0]), np.array([0.9, 0.8, 0.7, 0.2, 0.1])
    writer.add_pr_curve("pr", labels, predictions, num_thresholds=11)
    writer.add_pr_curve_raw("raw", *[chainrule.ones(3) * i for i in range(6)], num_thresholds=3)
    writer.close()
    told = fields(only(tmp_path, "pr")[8][0])
    rows = np.frombuffer(told[5][0], "<f4").reshape(6, 11)
    tp, fp, tn, fn, precision, recall = rows[:, 5]  # threshold 0.5
    assert [tp, fp, tn, fn] == [2, 1, 1, 1]
    assert [precision, recall] == pytest.approx([2 / 3, 2 / 3])
    assert rows[:4, 0].tolist() == [3, 2, 0, 0]
    told = fields(only(tmp_path, "raw")[8][0])
    assert np.frombuffer(told[5][0], "<f4").reshape(6, 3)[:, 0].tolist() == [0, 1, 2, 3, 4, 5]


# --- files ----------------------------------------------------------------------------------------


def test_folders_and_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with SummaryWriter(comment="_lr1", filename_suffix=".x") as writer:
        assert writer.get_logdir().startswith("runs")
        assert writer.get_logdir().endswith("_lr1")
    (path,) = (tmp_path / writer.get_logdir()).iterdir()
    assert path.name.startswith("events.out.tfevents.")
    assert path.name.endswith(".x")


def test_events_reach_the_file(tmp_path: Path) -> None:
    writer = SummaryWriter(tmp_path, max_queue=3)
    writer.add_scalar("a", 1)
    assert values(tmp_path) == {}
    writer.flush()
    assert len(values(tmp_path)["a"]) == 1
    for _ in range(3):
        writer.add_scalar("a", 1)
    assert len(values(tmp_path)["a"]) == 4
    writer.close()
    writer.close()
    writer.add_scalar("a", 1)  # in a new file
    writer.close()
    assert len(values(tmp_path)["a"]) == 5
    assert len(list(tmp_path.iterdir())) == 2


def test_a_program_that_does_not_close(tmp_path: Path) -> None:
    program = (
        "from chainrule.utils.tensorboard import SummaryWriter\n"
        f"writer = SummaryWriter({str(tmp_path)!r})\n"
        "writer.itself = writer\n"
        "writer.add_scalar('a', 1)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert len(values(tmp_path)["a"]) == 1


def test_events_do_not_wait_long(tmp_path: Path) -> None:
    writer = SummaryWriter(tmp_path, flush_secs=0)
    writer.add_scalar("a", 1)
    assert len(values(tmp_path)["a"]) == 1
    writer.close()


def test_a_run_that_starts_again(tmp_path: Path) -> None:
    SummaryWriter(tmp_path, purge_step=5).close()
    (event,) = events(tmp_path)
    assert event[2] == [5]
    assert fields(event[7][0]) == {1: [1]}


@pytest.mark.parametrize("name", ["add_video", "add_mesh", "add_onnx_graph"])
def test_what_is_not_written(writer: SummaryWriter, name: str) -> None:
    with pytest.raises(RuntimeError, match=f"{name}: no .*; add_"):
        getattr(writer, name)("x", None)

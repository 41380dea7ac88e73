"""Tox21: the loader on files of the form of the challenge's, and a network on them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import chainrule
from chainrule import data, models
from chainrule.atlas.numbers.tox21 import known_tests, write_stand_in
from chainrule.data import DatasetError

DENSE = "tox21_dense_train.csv"
LABELS = "tox21_labels_train.csv"


def write(folder: Path, dense: str, labels: str) -> None:
    (folder / DENSE).write_text(dense)
    (folder / LABELS).write_text(labels)


def test_cells_of_both_files(tmp_path: Path) -> None:
    write(tmp_path, ",a,b\nc1,1.5,2\nc2,-3,4e-1\n", ",NR.AR,SR.p53\nc1,1,NA\nc2,0,1.0\n")
    found = data.Tox21(tmp_path)
    assert found.data.tolist() == [[1.5, 2.0], pytest.approx([-3.0, 0.4])]
    assert found.targets[1].tolist() == [0.0, 1.0]
    assert found.targets.isnan().tolist() == [[False, True], [False, False]]
    assert (found.tasks, found.names) == (["NR.AR", "SR.p53"], ["c1", "c2"])
    assert len(found) == 2
    x, y = found[1]
    assert (x.shape, y.shape) == ((2,), (2,))
    assert repr(found) == "Tox21(2 compounds, 2 descriptors)"


def test_compressed_files_in_a_folder_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "tox21").mkdir()
    for name, text in ((DENSE, ",a\nc1,1\n"), (LABELS, ",t\nc1,0\n")):
        (tmp_path / "tox21" / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    assert data.Tox21(tmp_path).data.tolist() == [[1.0]]
    with pytest.raises(FileNotFoundError, match="tox21_dense_test.csv not found in .* Get the"):
        data.Tox21(tmp_path, train=False)


@pytest.mark.parametrize(
    ("dense", "labels", "words"),
    [
        (",a\nc1,1\n", ",t\nc2,0\n", "not of the same compounds"),
        (",a\nc1,1\n", ",t\nc1,2\n", "are 0, 1 or missing, got 2.0"),
        (",a\nc1,one\n", ",t\nc1,1\n", "a cell that is no number"),
        (",a\nc1,NA\n", ",t\nc1,1\n", "descriptors that are missing"),
        (",a\nc1,1,2\n", ",t\nc1,1\n", "is no table"),
        ("", ",t\nc1,1\n", "is no table"),
    ],
)
def test_files_that_are_not_whole(tmp_path: Path, dense: str, labels: str, words: str) -> None:
    write(tmp_path, dense, labels)
    with pytest.raises(DatasetError, match=words):
        data.Tox21(tmp_path)


def test_a_damaged_archive(tmp_path: Path) -> None:
    write(tmp_path, ",a\nc1,1\n", ",t\nc1,1\n")
    (tmp_path / DENSE).unlink()
    (tmp_path / f"{DENSE}.gz").write_bytes(gzip.compress(b",a\nc1,1\n")[:-6])
    with pytest.raises(DatasetError, match="is damaged"):
        data.Tox21(tmp_path)


def test_a_network_learns_the_tests_that_were_made(tmp_path: Path) -> None:
    """The stand-in has the form of the challenge's files; tests not made give no gradient."""
    chainrule.manual_seed(0)
    write_stand_in(tmp_path, 60)
    x, y = data.Tox21(tmp_path).tensors()
    assert (x.shape, y.shape) == ((60, 801), (60, 12))
    assert 0.1 < y.isnan().float().mean().item() < 0.3
    net = models.SelfNormalizingMLP(801, [32], 12)
    output = net(x)
    output.retain_grad()
    before = known_tests(output, y)
    before.backward()
    assert chainrule.equal(output.grad == 0, y.isnan())
    with chainrule.no_grad():
        for p in net.parameters():
            p -= 0.1 * p.grad
    assert known_tests(net(x), y) < before

"""The example that prunes a LeNet runs, on a few images."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MNIST = ROOT.parent / "shared" / "data" / "mnist"


@pytest.mark.skipif(not MNIST.exists(), reason="the files of MNIST are not there")
def test_prune_lenet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    out = tmp_path / "figures.json"
    figures = importlib.import_module("prune_lenet").main(
        [
            "--root",
            str(MNIST),
            "--images",
            "256",
            "--tests",
            "64",
            "--epochs",
            "1",
            "--steps",
            "1",
            "--sample",
            "8",
            "--out",
            str(out),
        ]
    )
    assert figures["obd_sparsity"] == pytest.approx(0.9, abs=1e-3)
    assert figures["units"] == [113, 226]
    assert figures["parameters"][1] < 20000
    assert out.exists()

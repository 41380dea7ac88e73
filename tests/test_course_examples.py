"""The examples of the course run, mended where the errata say so, and show what they claim."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

COURSE = Path(__file__).parent.parent / "examples" / "course"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(str(COURSE))

    def load(name: str) -> ModuleType:
        sys.modules.pop(name, None)
        return importlib.import_module(name)

    return load


def test_example_1_a_layer_of_neurons(example) -> None:  # type: ignore[no-untyped-def]
    assert example("ex01_neuron").main() == (5, 10)


def test_example_2_a_multi_layer_perceptron(example) -> None:  # type: ignore[no-untyped-def]
    assert example("ex02_mlp").main() == 784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10


def test_example_3_an_image_as_a_tensor(example) -> None:  # type: ignore[no-untyped-def]
    image = example("ex03_image").main()
    assert image.shape == (1, 3, 188, 257)
    assert 0 <= image.min().item() < image.max().item() <= 1


def test_example_4_filters(example) -> None:  # type: ignore[no-untyped-def]
    shapes = [s[2:] for s in example("ex04_filters").main()]
    assert shapes == [(188, 257), (188, 257), (184, 253), (94, 129), (170, 239)]


def test_example_5_pooling(example) -> None:  # type: ignore[no-untyped-def]
    maps = example("ex05_pooling").main()
    assert maps["convolution"].shape == (1, 4, 188, 257)
    assert maps["average pooling"].shape == maps["maximum pooling"].shape == (1, 3, 188, 257)
    assert (maps["maximum pooling"] >= maps["average pooling"]).all()


def test_example_6_a_convolutional_classifier(example) -> None:  # type: ignore[no-untyped-def]
    assert example("ex06_classifier").main() > 0.9


@pytest.mark.parametrize("name", ["ex07_rnn", "ex08_lstm"])
def test_examples_7_and_8_recurrent_networks(example, name) -> None:  # type: ignore[no-untyped-def]
    first, last = example(name).main()
    assert last < 0.3 * first

"""Twenty PyTorch programs run with the import changed, and learn what they are there to learn.

``tests/parity/test_programs.py`` compares each of their losses with PyTorch's.
"""

from __future__ import annotations

import ast
import math
from pathlib import Path

import pytest
from program_runner import FOLDER, PROGRAMS, assert_same_text, changed, run

# The mean of how many of the last losses lies below what.
LEVELS = {
    "char_transformer": (5, 2.2),
    "ddpm": (10, 0.2),
    "forward_forward": (1, 0.2),
    "gcn": (1, 0.8),
    "lbfgs_regression": (1, 0.005),
    "neural_ode": (1, 0.3),
    "pinn": (1, 0.2),
    "realnvp": (5, 1.5),
    "reinforce": (1, -40),
    "resnet": (1, 0.9),
    "seq2seq_attention": (10, 1.2),
    "siamese": (4, 0.6),
    "simclr": (1, 1.0),
    "siren": (1, 0.001),
    "style_transfer": (1, 0.3),
    "tutorial": (1, 0.4),
    "unet": (1, 0.3),
    "vae": (1, 23.0),
    "wgan_gp": (1, 0.1),
    "word_model": (10, 1.2),
}


def test_every_program_has_a_level() -> None:
    assert sorted(LEVELS) == PROGRAMS
    assert len(PROGRAMS) == 20


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, tmp_path: Path) -> None:
    losses, printed = run(FOLDER / f"{name}.py", "chainrule", tmp_path)
    assert all(map(math.isfinite, losses))
    assert printed
    count, level = LEVELS[name]
    assert sum(losses[-count:]) / count < level


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_is_one_for_pytorch(name: str) -> None:
    source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert "import torch\n" in source
    assert "chainrule" not in source.replace("chain rule", "")
    assert 40 <= len(source.splitlines()) <= 140


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import torch", "import chainrule as torch"),
        ("import torch as th", "import chainrule as th"),
        ("import torch.nn as nn, sys", "import chainrule.nn as nn, sys"),
        ("import torch.utils.data", "import chainrule.utils.data as _, chainrule as torch"),
        ("from torch import nn", "from chainrule import nn"),
        ("from torch.optim import Adam as A", "from chainrule.optim import Adam as A"),
        ("def f():\n    import torch", "def f():\n    import chainrule as torch"),
        ("import torchvision, os.path", "import torchvision, os.path"),
        ("from torchvision import models", "from torchvision import models"),
        ("from .torch import nn", "from .torch import nn"),
        ("x = torch.ones(3)  # torch", "x = torch.ones(3)"),
        ("print('import torch')", "print('import torch')"),
    ],
)
def test_only_imports_are_changed(before: str, after: str) -> None:
    assert ast.unparse(changed(before)) == after


def test_texts_that_differ_are_told_apart() -> None:
    assert_same_text("step 3: 0.4213 torch", "step 3: 0.4214 torch", 1e-9)
    assert_same_text("chainrule.Size([2])", "torch.Size([2])", 0)
    for ours, theirs in [
        ("step 3", "step 4"),
        ("loss 0.4211", "loss 0.4214"),
        ("loss 0.42", "less 0.42"),
        ("1 2", "1"),
        ("1.0", "nan"),
    ]:
        with pytest.raises(AssertionError):
            assert_same_text(ours, theirs, 1e-9)

"""A network that is trained here answers elsewhere: in another process, from its file alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import chainrule
from chainrule import data, models, nn, train

PROGRAM = """
import json, sys
import chainrule
net = chainrule.load(sys.argv[1])
with chainrule.no_grad():
    print(json.dumps(net(chainrule.tensor(json.loads(sys.stdin.read()))).tolist()))
"""


def answers(path: Path, rows: list[list[float]]) -> list[list[float]]:
    """What a process says that knows nothing but the file, in an empty folder of its own."""
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, path.name],
        input=json.dumps(rows),
        capture_output=True,
        text=True,
        cwd=path.parent,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize("folder", [False, True])
def test_another_process_gives_the_same_answers(tmp_path: Path, folder: bool) -> None:
    x, y = data.embedded("iris").tensors()
    chainrule.manual_seed(0)
    net = nn.Sequential(nn.BatchNorm1d(4), *models.MLP(4, [8], 3, dropout=0.2), nn.Softmax(1))
    train.Trainer(net, lambda p, t: nn.functional.nll_loss(p.log(), t), "adam").fit(
        (x, y), epochs=3
    )
    path = tmp_path / ("net" if folder else "net.safetensors")
    chainrule.save(net.eval(), path, folder=folder)
    with chainrule.no_grad():
        expected = net(x[:10]).tolist()
    assert answers(path, x[:10].tolist()) == expected

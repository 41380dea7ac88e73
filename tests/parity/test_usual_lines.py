"""The usual lines of PyTorch programs: the import is all that changes."""

from __future__ import annotations

import textwrap
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

# Each leaves what it found in ``result``: plain numbers, texts and truth values.
PROGRAMS = {
    "device": """
        import torch
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        device2 = "mps" if torch.backends.mps.is_available() else "cpu"
        accelerator = "cpu"
        if torch.accelerator.is_available():
            accelerator = torch.accelerator.current_accelerator().type
        model = torch.nn.Linear(2, 1).to(device)
        x = torch.ones(3, 2, device=device).to(device2)
        kwargs = {"num_workers": 1, "pin_memory": True} if device.type == "cuda" else {}
        result = [device.type, str(device), device2, accelerator, model(x).device.type, kwargs]
    """,
    "seeds": """
        import random
        import torch
        import torch.backends.cudnn as cudnn
        def seed_everything(seed):
            random.seed(seed)
            torch.manual_seed(seed)
            torch.cuda.manual_seed(seed)
            torch.cuda.manual_seed_all(seed)
            cudnn.deterministic = True
            cudnn.benchmark = False
            torch.backends.cudnn.enabled = True
            torch.use_deterministic_algorithms(True, warn_only=True)
        seed_everything(1)
        a = torch.rand(3)
        seed_everything(1)
        result = [torch.equal(torch.rand(3), a), cudnn.deterministic, torch.initial_seed()]
        torch.use_deterministic_algorithms(False)
    """,
    "data": """
        import torch
        from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset, random_split
        from torch.utils.data.dataloader import default_collate
        from torch.utils.data.sampler import SubsetRandomSampler, WeightedRandomSampler
        class Squares(Dataset):
            def __len__(self):
                return 10
            def __getitem__(self, i):
                return torch.tensor([float(i)]), i**2
        train, test = torch.utils.data.random_split(Squares(), [7, 3])
        loader = torch.utils.data.DataLoader(Squares(), batch_size=4, shuffle=False, drop_last=True)
        batches = [(x.shape, y.tolist()) for x, y in loader]
        sampled = DataLoader(TensorDataset(torch.arange(5)), sampler=SubsetRandomSampler([1, 3]))
        weighted = list(WeightedRandomSampler([0.0, 1.0], 3))
        joined = default_collate([(1, 2.0), (3, 4.0)])
        result = [len(train), len(test), [(list(s), y) for s, y in batches],
                  sorted(x.item() for (x,) in sampled), weighted,
                  [t.tolist() for t in joined], len(Subset(Squares(), [1, 2]))]
    """,
    "variables": """
        import torch
        from torch.autograd import Variable
        x = Variable(torch.ones(2, 2), requires_grad=True)
        y = (x + 2) ** 2
        y.mean().backward()
        result = [x.grad.tolist(), isinstance(y, Variable), Variable(y).requires_grad]
    """,
    "initializers by class": """
        import torch
        import torch.nn as nn
        from torch.nn.modules.batchnorm import _BatchNorm
        from torch.nn.modules.conv import _ConvNd
        from torch.nn.modules.utils import _pair
        net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(),
                            nn.ConvTranspose1d(1, 1, 2), nn.modules.linear.Linear(2, 1))
        kinds = []
        for m in net.modules():
            if isinstance(m, (_ConvNd, nn.modules.Linear)):
                nn.init.constant_(m.weight, 0.5)
                kinds.append("weights")
            elif isinstance(m, _BatchNorm):
                kinds.append("norm")
            elif isinstance(m, nn.modules.activation.ReLU):
                kinds.append("relu")
        result = [kinds, _pair(3), net[0].weight.sum().item()]
    """,
    "a loss of one's own": """
        import torch
        import torch.nn.functional as F
        from torch.nn.modules.loss import _Loss, _WeightedLoss
        class Focal(_WeightedLoss):
            def __init__(self, gamma=2.0, weight=None, reduction="mean"):
                super().__init__(weight=weight, reduction=reduction)
                self.gamma = gamma
            def forward(self, x, y):
                ce = F.cross_entropy(x, y, weight=self.weight, reduction="none")
                return ((1 - torch.exp(-ce)) ** self.gamma * ce).mean()
        loss = Focal(weight=torch.tensor([1.0, 2.0]))
        x = torch.tensor([[0.5, -0.5], [0.25, 1.0]])
        result = [round(loss(x, torch.tensor([0, 1])).item(), 5), isinstance(loss, _Loss),
                  list(loss.state_dict())]
    """,
    "mixed precision": """
        import torch
        from torch.cuda.amp import GradScaler, autocast
        model = torch.nn.Linear(2, 1)
        torch.nn.init.ones_(model.weight)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        use_amp = torch.cuda.is_available()
        scaler = torch.amp.GradScaler("cuda", enabled=use_amp)
        for _ in range(2):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device_type="cuda", dtype=torch.float16, enabled=use_amp):
                loss = (model(torch.ones(4, 2)) - model.bias).pow(2).mean()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        result = [round(model.weight.sum().item(), 4), scaler.get_scale(), scaler.state_dict()]
    """,
    "scaling on the CPU": """
        import torch
        w = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
        scales = []
        for factor in (1.0, float("inf"), 1.0, 1.0):
            optimizer.zero_grad()
            scaler.scale((w * factor).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
        result = [scales, [round(v, 5) for v in w.tolist()], scaler.state_dict()]
    """,
    "checkpoints in the backward pass": """
        import torch
        from torch import nn
        from torch.utils.checkpoint import checkpoint, checkpoint_sequential
        net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
        for p in net.parameters():
            nn.init.constant_(p, 0.5)
        x = torch.ones(4, 2, requires_grad=True)
        y = checkpoint(net[:2], x, use_reentrant=False)
        net[2](y).sum().backward()
        first = [round(v, 4) for v in x.grad.flatten().tolist()]
        x.grad = None
        checkpoint_sequential(net, 2, x, use_reentrant=True).sum().backward()
        result = [first, [round(v, 4) for v in x.grad.flatten().tolist()],
                  round(net[0].weight.grad.sum().item(), 4)]
    """,
    "saving": """
        import io
        import torch
        model = torch.nn.Linear(2, 1)
        torch.save({"epoch": 3, "state_dict": model.state_dict()}, "model.pth")
        checkpoint = torch.load("model.pth", map_location=torch.device("cpu"), weights_only=True)
        keys = model.load_state_dict(checkpoint["state_dict"])
        buffer = io.BytesIO()
        torch.save(model.state_dict(), buffer)
        buffer.seek(0)
        state = torch.load(buffer, map_location=lambda storage, loc: storage)
        result = [checkpoint["epoch"], list(state), str(keys),
                  torch.equal(state["weight"], model.weight)]
    """,
    "compiling and scripting": """
        import torch
        @torch.jit.ignore
        def helper(x):
            return x * 2
        @torch.jit.unused
        def other(x):
            return x
        @torch.no_grad()
        def double(x):
            if torch.jit.is_scripting() or torch.jit.is_tracing():
                return x
            return helper(x)
        torch.fx.wrap("len")
        result = [double(torch.ones(2)).tolist(), torch.compiler.is_compiling(),
                  torch.onnx.is_in_onnx_export(), isinstance(double, torch.jit.ScriptModule)]
    """,
    "one process": """
        import os
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP
        from torch.utils.data.distributed import DistributedSampler
        def is_main_process():
            return not (dist.is_available() and dist.is_initialized()) or dist.get_rank() == 0
        world = int(os.environ.get("WORLD_SIZE_OF_NOBODY", 1))
        model = torch.nn.Linear(1, 1)
        raw = model.module if isinstance(model, DDP) else model
        wrapped = torch.nn.DataParallel(model)
        def parts(drop_last):
            share = lambda r: DistributedSampler(range(7), 3, r, False, drop_last=drop_last)
            return [list(share(r)) for r in range(3)]
        result = [is_main_process(), world, raw is model, list(wrapped.state_dict()),
                  wrapped(torch.zeros(1, 1)).shape == (1, 1), parts(False), parts(True)]
    """,
    "checks": """
        import torch
        torch.testing.assert_close(torch.ones(3) + 1e-7, torch.ones(3))
        messages = []
        for a, b in ((torch.ones(3), torch.zeros(3)), ([1, 2], [1, 3]), ({"a": 1.0}, {"a": 2.0})):
            try:
                torch.testing.assert_close(a, b)
            except AssertionError as error:
                messages.append(str(error))
        result = messages
    """,
    "settings": """
        import torch
        torch.set_float32_matmul_precision("high")
        high = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        torch.backends.cuda.matmul.allow_tf32 = True
        allowed = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.set_default_device("cpu")
        torch.set_default_device(None)
        with torch.device("cpu"):
            x = torch.zeros(1)
        torch.cuda.empty_cache()
        result = [high, allowed, x.device.type, torch.cuda.device_count(), torch.version.cuda,
                  torch.cuda.memory_allocated(), torch.is_storage(x), torch.typename(3)]
    """,
    "hooks": """
        import torch
        from torch.utils.hooks import RemovableHandle
        features = {}
        layer = torch.nn.Linear(2, 3)
        handle = layer.register_forward_hook(lambda m, i, o: features.update(out=o.detach()))
        layer(torch.ones(1, 2))
        handle.remove()
        result = [list(features["out"].shape), isinstance(handle, RemovableHandle)]
    """,
}


def run(source: str, library: str) -> Any:
    text = textwrap.dedent(source)
    if library != "torch":
        text = text.replace("import torch\n", f"import {library} as torch\n")
        text = text.replace("import torch.", f"import {library}.")
        text = text.replace("from torch", f"from {library}")
    space: dict[str, Any] = {}
    exec(compile(text, library, "exec"), space)
    return space["result"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_with_the_import_changed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ours = run(PROGRAMS[name], "chainrule")  # warnings are errors here
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = run(PROGRAMS[name], "torch")
    assert ours == theirs

"""Files that chainrule writes itself: tensors, models, folders, networks of fit, checkpoints."""

from __future__ import annotations

import hashlib
import io
import json
import random
import re
import shutil
from collections import OrderedDict
from pathlib import Path
from typing import Any

import chainrule
from chainrule import models, nn, optim, train
from chainrule.files import storage, weights
from reliability.cases import Case, Kind, fingerprint
from reliability.mutate import changed_bytes, changed_json, dumped

__all__ = ["KINDS"]

EMPTY = b"0" * 64
STORED = re.compile(rf'"{weights.CHECKSUM}": ?"([0-9a-f]{{64}})"'.encode())
NOTICED = "refused, or exactly what was saved"
HARMLESS = "refused, or a value of the documented kinds; bounded time and memory"


def _models() -> list[nn.Module]:
    chainrule.manual_seed(5)
    shared = nn.Linear(3, 3)
    frozen = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    frozen[0].weight.requires_grad_(False)
    frozen[1].eval()
    return [
        models.MLP(4, [8, 8], 3, dropout=0.2, norm="batch"),
        frozen,
        nn.Sequential(shared, nn.Tanh(), shared),
        nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.MaxPool2d(2)),
        nn.ModuleDict({"a": nn.LSTM(3, 4, 2), "b": nn.GRU(2, 3, bidirectional=True)}),
        nn.TransformerEncoderLayer(8, 2, 16),
        nn.Sequential(
            OrderedDict([("e", nn.Embedding(10, 4)), ("n", nn.LayerNorm(4)), ("g", nn.GELU())])
        ),
        models.Autoencoder(6, [4], 2),
        nn.ModuleList([nn.Bilinear(2, 3, 4), nn.PReLU(), nn.Upsample(scale_factor=2)]),
    ]


def _values() -> list[Any]:
    chainrule.manual_seed(6)
    indices = chainrule.tensor([[0, 1, 1], [2, 0, 2]])
    return [
        dict(nn.Sequential(nn.Linear(3, 2), nn.Linear(3, 2)).state_dict()),
        {
            "step": 3,
            "rate": float("inf"),
            "names": ["a", ("b", None, True)],
            "dtype": chainrule.float64,
            "device": chainrule.device("cpu"),
            "i": chainrule.arange(5),
            "mask": chainrule.tensor([True, False]),
            "c": chainrule.tensor([1 + 2j]),
            7: nn.Parameter(chainrule.randn(2, 2)),
        },
        {"s": chainrule.sparse_coo_tensor(indices, chainrule.randn(3), (2, 3)), "n": [1.5, "x"]},
        chainrule.randn(3, 5, dtype="float64"),
        [chainrule.zeros(0, 3), chainrule.tensor(1.0), chainrule.ones(2, dtype=chainrule.int8)],
    ]


def _saved(value: Any) -> bytes:
    file = io.BytesIO()
    chainrule.save(value, file)
    return file.getvalue()


def _words() -> list[str]:
    """Names that a description may hold: they lead deeper than random text does."""
    rooms = {"nn": nn, "models": models, "data": chainrule.data, "nn.functional": nn.functional}
    names = [f"{room}.{name}" for room, home in rooms.items() for name in home.__all__]
    return [*names, "weight", "bias", "0.weight", "class", "args", "kwargs", "state", "same"]


def sealed(header: bytes, data: bytes) -> bytes:
    """A file with a header and a checksum that is right, as an attacker would write it."""
    stored = STORED.search(header)
    if stored is not None:
        header = header.replace(stored[1], EMPTY, 1)
        header = header.replace(EMPTY, hashlib.sha256(header + data).hexdigest().encode(), 1)
    return len(header).to_bytes(8, "little") + header + data


def parts(content: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the data of a safetensors file."""
    size = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + size]), content[8 + size :]


class _OneFile(Kind):
    """Values of some kind, each saved as one file."""

    def values(self) -> list[Any]:
        """What is saved."""
        return [*_models(), *_values()]

    def prepare(self, folder: Path) -> None:
        """Saves the values, and notes what they are when they are loaded."""
        self.contents = [_saved(v) for v in self.values()]
        self.expected = [fingerprint(chainrule.load(io.BytesIO(c))) for c in self.contents]
        self.words = _words()


class Damaged(_OneFile):
    name = "models and tensors, one file"
    rule = NOTICED

    def case(self, r: random.Random, folder: Path) -> Case:
        """Bytes changed anywhere; read from a path or from an open file."""
        number = r.randrange(len(self.contents))
        content = changed_bytes(r, self.contents[number], self.contents)
        # One whole file may stand in the place of another, or at the beginning of a stream.
        begins = [i for i, whole in enumerate(self.contents) if content.startswith(whole)]
        expected = self.expected[begins[0] if begins else number]
        if r.random() < 0.3:
            return Case(lambda: chainrule.load(io.BytesIO(content)), expected)
        path = folder / "file.safetensors"
        path.write_bytes(content)
        return Case(lambda: chainrule.load(path), expected, path.name)


class Forged(_OneFile):
    name = "descriptions with a checksum made anew"
    rule = HARMLESS

    def case(self, r: random.Random, folder: Path) -> Case:
        """JSON changed in the header or in the description, and the checksum made to fit."""
        header, data = parts(r.choice(self.contents))
        if r.random() < 0.8:
            told = changed_json(r, header["__metadata__"]["chainrule"], self.words)
            header["__metadata__"]["chainrule"] = dumped(r, told).decode("utf-8", "replace")
        else:
            header = changed_json(r, json.dumps(header), self.words)
        path = folder / "file.safetensors"
        path.write_bytes(sealed(dumped(r, header), data))
        return Case(lambda: chainrule.load(path), None, path.name)


class Others(Kind):
    name = "safetensors of other programs"
    rule = HARMLESS

    def prepare(self, folder: Path) -> None:
        """Files without a checksum and without a description."""
        self.contents = []
        for value in (dict(m.state_dict()) for m in _models()):
            header, data = parts(_saved(value))
            del header["__metadata__"]
            text = json.dumps(header).encode()
            self.contents.append(len(text).to_bytes(8, "little") + text + data)
        self.words = ["BF16", "F8_E4M3", "F64", "BOOL", "I64", "U8", "dtype", "shape"]

    def case(self, r: random.Random, folder: Path) -> Case:
        """Bytes or JSON of the header changed."""
        content = r.choice(self.contents)
        if r.random() < 0.5:
            header, data = parts(content)
            text = dumped(r, changed_json(r, json.dumps(header), self.words))
            content = len(text).to_bytes(8, "little") + text + data
        else:
            content = changed_bytes(r, content, self.contents)
        path = folder / "other.safetensors"
        path.write_bytes(content)
        return Case(lambda: chainrule.load(path), None, path.name)


class _Folder(Kind):
    """Folders: a description, and weights under the name of their checksum."""

    read = staticmethod(chainrule.load)

    def values(self) -> list[Any]:
        """What is saved."""
        return [*_models(), *_values()]

    def write(self, value: Any, path: Path) -> None:
        """Saves one of the values."""
        chainrule.save(value, path, folder=True)

    def prepare(self, folder: Path) -> None:
        """Saves the values into folders and keeps the content of their files."""
        self.folders: list[dict[str, bytes]] = []
        self.expected = []
        for i, value in enumerate(self.values()):
            path = folder / f"original-{i}"
            self.write(value, path)
            self.folders.append({p.name: p.read_bytes() for p in sorted(path.iterdir())})
            self.expected.append(fingerprint(self.read(path)))
        self.all = [content for files in self.folders for content in files.values()]
        self.words = _words()

    def place(self, folder: Path, files: dict[str, bytes]) -> Path:
        """Writes a folder in the place of the last one."""
        path = folder / "model"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        for name, content in files.items():
            (path / name).write_bytes(content)
        return path


class DamagedFolder(_Folder):
    name = "folders of models"
    rule = NOTICED

    def case(self, r: random.Random, folder: Path) -> Case:
        """Bytes changed in one file, or a file lost, or another folder's in its place."""
        number = r.randrange(len(self.folders))
        files = dict(self.folders[number])
        name = r.choice(list(files))
        way = r.random()
        if way < 0.03:
            del files[name]
        elif way < 0.06:
            files[name] = r.choice(self.all)
        else:
            files[name] = changed_bytes(r, files[name], self.all)
        path = self.place(folder, files)
        return Case(lambda: self.read(path), self.expected[number], path.name)


class ForgedFolder(_Folder):
    name = "folders with checksums made anew"
    rule = HARMLESS

    def case(self, r: random.Random, folder: Path) -> Case:
        """JSON of the description changed, and all checksums made to fit."""
        files = dict(r.choice(self.folders))
        told = changed_json(r, files.pop(storage.DESCRIPTION), self.words)
        if r.random() < 0.2:
            name, content = next(iter(files.items()))
            header, data = parts(content)
            content = sealed(dumped(r, changed_json(r, json.dumps(header), self.words)), data)
            del files[name]
            name = f"weights-{hashlib.sha256(content).hexdigest()[:12]}.safetensors"
            files[name] = content
            if isinstance(told, dict) and "weights" in told:
                told["weights"] = name
        files[storage.DESCRIPTION] = resealed(dumped(r, told))
        path = self.place(folder, files)
        return Case(lambda: self.read(path), None, path.name)


def resealed(text: bytes) -> bytes:
    """A description in a folder whose checksum is right, if it has one."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(told, dict) or "digest" not in told:
        return text
    del told["digest"]
    own = hashlib.sha256(json.dumps(told).encode()).hexdigest()[:12]
    return json.dumps({**told, "digest": own}).encode()


class _Fitted:
    """What `chainrule fit` leaves in its folder, read as `chainrule predict` reads it."""

    read = staticmethod(train.FittedNetwork.load)

    def values(self) -> list[Any]:
        """Networks for a few rows: classes of text and numbers, and a number."""
        from chainrule.data import Table

        rows = {
            "a": [float(i % 7) for i in range(40)],
            "b": ["red" if i % 3 else "blue" for i in range(40)],
            "day": [f"2024-{i % 12 + 1:02}-{i % 28 + 1:02}" for i in range(40)],
            "sent": [f"2025-{i % 5 + 1:02}-{i % 28 + 1:02}" for i in range(40)],
            "city": [f"city {i % 15}" for i in range(40)],
            "price": [f"${i % 9},000.50" for i in range(40)],
            "size": [("S", "M", "L")[i % 3] for i in range(40)],
            "sure": [("yes", "no")[i % 5 == 0] for i in range(40)],
            "note": [f"some words about case {i}" for i in range(40)],
        }
        classes = Table.from_dict({**rows, "y": ["yes" if i % 2 else "no" for i in range(40)]})
        numbers = Table.from_dict({**rows, "y": [float(i) for i in range(40)]})
        settings = train.Settings(epochs=1, hidden=(4,))
        return [train.fit_table(t, "y", "auto", settings) for t in (classes, numbers)]

    def write(self, value: Any, path: Path) -> None:
        """Saves as `chainrule fit` does."""
        value.save(path)


class DamagedNetwork(_Fitted, DamagedFolder):
    name = "networks of chainrule fit"


class ForgedNetwork(_Fitted, ForgedFolder):
    name = "networks of chainrule fit, checksums made anew"


class ForgedEstimator(Forged):
    name = "estimators, checksums made anew"

    def values(self) -> list[Any]:
        """Estimators for classes, labels, numbers and codes, one that is not fitted, a network."""
        import warnings

        from chainrule import estimators

        chainrule.manual_seed(7)
        x = chainrule.randn(30, 3).numpy()
        small: Any = {"hidden_layer_sizes": (3,), "max_iter": 2, "random_state": 0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two epochs do not converge
            return [
                estimators.NetworkClassifier(**small).fit(x, ["a", "b", "c"] * 10),
                estimators.NetworkClassifier(**small).fit(x, [[1, 0, 1], [0, 1, 0]] * 15),
                estimators.NetworkRegressor(**small, norm="batch").fit(x, x[:, 0]),
                estimators.NetworkTransformer(**small, n_components=2).fit(x),
                estimators.NetworkClassifier((4,)),
                _Fitted().values()[0],
            ]


class Checkpoints(_OneFile):
    name = "checkpoints of Trainer, checksums made anew"
    rule = "refused with nothing changed, or a trainer that goes on; bounded time and memory"

    def trainer(self) -> train.Trainer:
        """A trainer with all that a checkpoint can hold."""
        chainrule.manual_seed(1)
        model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Dropout(0.1), nn.Linear(3, 2))
        optimizer = optim.Adam(model.parameters(), lr=0.01)
        schedule = optim.lr_scheduler.StepLR(optimizer, 2)
        return train.Trainer(model, "cross_entropy", optimizer, schedule=schedule, seed=3)

    def values(self) -> list[Any]:
        """The state of a trainer after two epochs."""
        from chainrule.train.checkpoints import state_of

        trainer = self.trainer()
        self.data = (chainrule.randn(12, 2), chainrule.tensor([0, 1] * 6))
        trainer.fit(self.data, self.data, epochs=2, batch_size=6, early_stopping=5)
        return [state_of(trainer)]

    def case(self, r: random.Random, folder: Path) -> Case:
        """JSON changed in the description, the checksum made to fit."""
        header, data = parts(self.contents[0])
        told = changed_json(r, header["__metadata__"]["chainrule"], self.words)
        header["__metadata__"]["chainrule"] = dumped(r, told).decode("utf-8", "replace")
        path = folder / "checkpoint.safetensors"
        path.write_bytes(sealed(json.dumps(header).encode(), data))
        return Case(lambda: self._resumed(path), None, path.name)

    def _resumed(self, path: Path) -> Any:
        trainer = self.trainer()
        before = fingerprint(dict(trainer.model.state_dict()))
        try:
            trainer.fit(self.data, self.data, epochs=0, batch_size=6, early_stopping=5, resume=path)
        except ValueError as error:
            if fingerprint(dict(trainer.model.state_dict())) != before:
                raise RuntimeError(f"the model was changed by what was refused: {error}") from error
            raise
        return trainer


KINDS: tuple[type[Kind], ...] = (
    Damaged,
    Forged,
    Others,
    DamagedFolder,
    ForgedFolder,
    DamagedNetwork,
    ForgedNetwork,
    ForgedEstimator,
    Checkpoints,
)

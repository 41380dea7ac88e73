"""Networks over sequences: transformers, language models, translation."""

from __future__ import annotations

from typing import Any

from architectures.task import Task, classifying, integers, same_weights

__all__ = ["encoder", "gpt", "lstm_language_model", "seq2seq", "vit"]

ADAMW: dict[str, Any] = {"optimizer": "AdamW", "options": {}}


def _block(nn: Any) -> Any:
    class Block(nn.Module):  # type: ignore[misc, name-defined]
        """x + attention(norm(x)), then x + perceptron(norm(x))."""

        def __init__(self, width: int, heads: int, causal: bool) -> None:
            super().__init__()
            self.heads, self.causal = heads, causal
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def attention(self, x: Any) -> Any:
            n, length, width = x.shape
            parts = self.qkv(x).split(width, 2)
            q, k, v = [p.view(n, length, self.heads, -1).transpose(1, 2) for p in parts]
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
            return self.out(y.transpose(1, 2).reshape(n, length, width))

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.norm1(x))
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

    return Block


def vit(
    lib: Any, batch: int, size: int = 32, layers: int = 6, width: int = 192, heads: int = 3
) -> Task:
    """A vision transformer, Dosovitskiy et al., 2021, over patches of 4x4."""
    nn = lib.nn

    class ViT(nn.Module):  # type: ignore[misc, name-defined]
        """Patches as words, and one more word that is asked for the class."""

        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, width, 4, 4)
            self.asked = nn.Parameter(lib.zeros(1, 1, width))
            self.position = nn.Parameter(lib.zeros(1, (size // 4) ** 2 + 1, width))
            self.blocks = nn.Sequential(*[_block(nn)(width, heads, False) for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

        def forward(self, x: Any) -> Any:
            words = self.patches(x).flatten(2).transpose(1, 2)
            words = lib.cat([self.asked.expand(len(x), -1, -1), words], 1) + self.position
            return self.head(self.norm(self.blocks(words))[:, 0])

    return classifying(lib, ViT(), (3, size, size), batch, **ADAMW)


def gpt(
    lib: Any,
    batch: int = 4,
    length: int = 128,
    layers: int = 4,
    width: int = 128,
    heads: int = 4,
    vocabulary: int = 65,
) -> Task:
    """A language model of letters after Radford et al., 2019 (GPT-2)."""
    nn = lib.nn

    class GPT(nn.Module):  # type: ignore[misc, name-defined]
        """Logits of the next word after each word."""

        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*[_block(nn)(width, heads, True) for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

        def forward(self, x: Any) -> Any:
            x = self.words(x) + self.places(lib.arange(x.shape[1], device=x.device))
            return self.head(self.norm(self.blocks(x)))

    model = same_weights(lib, GPT())
    text = integers(lib, vocabulary, batch, length + 1)
    x, y = text[:, :-1], text[:, 1:]

    def loss() -> Any:
        return nn.functional.cross_entropy(model(x).reshape(-1, vocabulary), y.reshape(-1))

    return Task(lib, model, loss, lambda: model(x), **ADAMW)


def encoder(
    lib: Any, batch: int = 16, length: int = 64, layers: int = 3, width: int = 128, heads: int = 4
) -> Task:
    """``nn.TransformerEncoder`` over sentences of several lengths, behind a padding mask."""
    nn = lib.nn

    class Encoder(nn.Module):  # type: ignore[misc, name-defined]
        """The mean of the words that are not padding, and classes of it."""

        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(
                width, heads, 4 * width, dropout=0.0, batch_first=True
            )
            self.words = nn.Embedding(1000, width)
            self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
            self.head = nn.Linear(width, 10)

        def forward(self, x: Any, padding: Any) -> Any:
            y = self.layers(self.words(x), src_key_padding_mask=padding)
            y = y.masked_fill(padding.unsqueeze(2), 0.0).sum(1)
            return self.head(y / (~padding).sum(1, keepdim=True))

    model = same_weights(lib, Encoder())
    x, y = integers(lib, 1000, batch, length), integers(lib, 10, batch)
    lengths = integers(lib, length // 2, batch, 1, seed=2) + length // 2
    padding = lib.arange(length).unsqueeze(0) >= lengths
    criterion = nn.CrossEntropyLoss()
    run = lambda: model(x, padding)  # noqa: E731
    return Task(lib, model, lambda: criterion(run(), y), run, **ADAMW)


def lstm_language_model(
    lib: Any,
    batch: int = 16,
    length: int = 35,
    vocabulary: int = 20_000,
    width: int = 128,
    hidden: int = 256,
) -> Task:
    """A language model of words: embedding, two layers of LSTM, logits of all words."""
    nn = lib.nn

    class Model(nn.Module):  # type: ignore[misc, name-defined]
        """Logits of the next word after each word."""

        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(vocabulary, width)
            self.lstm = nn.LSTM(width, hidden, 2, batch_first=True)
            self.head = nn.Linear(hidden, vocabulary)

        def forward(self, x: Any) -> Any:
            return self.head(self.lstm(self.words(x))[0])

    model = same_weights(lib, Model())
    text = integers(lib, vocabulary, batch, length + 1)
    x, y = text[:, :-1], text[:, 1:]

    def loss() -> Any:
        return nn.functional.cross_entropy(model(x).reshape(-1, vocabulary), y.reshape(-1))

    return Task(lib, model, loss, lambda: model(x), "SGD", {})


def seq2seq(
    lib: Any, batch: int = 32, length: int = 20, vocabulary: int = 2000, width: int = 128
) -> Task:
    """Translation after Bahdanau et al., 2015: GRUs, and attention at each word written."""
    nn = lib.nn

    class Translator(nn.Module):  # type: ignore[misc, name-defined]
        """Reads a sentence, and writes one word after the other, the right ones given."""

        def __init__(self) -> None:
            super().__init__()
            self.read, self.write = nn.Embedding(vocabulary, width), nn.Embedding(vocabulary, width)
            self.encoder = nn.GRU(width, width, batch_first=True)
            self.decoder = nn.GRUCell(2 * width, width)
            self.key, self.query = nn.Linear(width, width), nn.Linear(width, width, bias=False)
            self.score = nn.Linear(width, 1, bias=False)
            self.head = nn.Linear(2 * width, vocabulary)

        def forward(self, x: Any, y: Any) -> Any:
            memory, state = self.encoder(self.read(x))
            state, keys, words = state[0], self.key(memory), self.write(y)
            outputs = []
            for t in range(y.shape[1]):
                scores = self.score((keys + self.query(state).unsqueeze(1)).tanh())
                weights = scores.squeeze(2).softmax(1)
                context = (weights.unsqueeze(1) @ memory).squeeze(1)
                state = self.decoder(lib.cat([words[:, t], context], 1), state)
                outputs.append(lib.cat([state, context], 1))
            return self.head(lib.stack(outputs, 1))

    model = same_weights(lib, Translator())
    x = integers(lib, vocabulary, batch, length)
    text = integers(lib, vocabulary, batch, length + 1, seed=1)
    y, wanted = text[:, :-1], text[:, 1:]

    def loss() -> Any:
        return nn.functional.cross_entropy(model(x, y).reshape(-1, vocabulary), wanted.reshape(-1))

    return Task(lib, model, loss, lambda: model(x, y), "Adam", {})

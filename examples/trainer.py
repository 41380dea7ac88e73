"""A convolutional network on handwritten digits with the Trainer: early stopping, scores, a file.

python examples/trainer.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import chainrule
from chainrule import data, nn, optim, train


def main(epochs: int = 30) -> float:
    chainrule.manual_seed(0)
    x, y = data.embedded("digits").tensors()
    x = (x / 16).reshape(-1, 1, 8, 8)
    x_train, x_val, x_test, y_train, y_val, y_test = data.train_validation_test_split(
        x, y, stratify=y, random_state=0
    )
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    )
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    trainer = train.Trainer(
        model,
        "cross_entropy",
        optimizer,
        schedule=optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs),
        metrics=["accuracy"],
    )
    history = trainer.fit((x_train, y_train), (x_val, y_val), epochs=epochs, early_stopping=8)
    print(history)
    scores = trainer.evaluate((x_test, y_test))
    print(f"held-out accuracy {scores['accuracy']:.4f}")

    path = Path(tempfile.mkdtemp()) / "digits.safetensors"
    chainrule.save(model, path)
    again = chainrule.load(path)
    same = bool((again(x_test[:5]) == model(x_test[:5])).all())
    print(f"saved and loaded: {path.name}, the same outputs: {same}")
    return scores["accuracy"]


if __name__ == "__main__":
    main()

"""A time series: windows of the past, an LSTM that predicts the next value, truncated at windows.

python examples/series.py
"""

from __future__ import annotations

import chainrule
from chainrule import data, nn, optim, train


class Forecaster(nn.Module):
    """An LSTM over the window and a linear read-out of its last state."""

    def __init__(self, channels: int, hidden: int):
        super().__init__()
        self.lstm = nn.LSTM(channels, hidden, batch_first=True)
        self.out = nn.Linear(hidden, channels)

    def forward(self, window: chainrule.Tensor) -> chainrule.Tensor:
        states, _ = self.lstm(window)
        return self.out(states[:, -1]).unsqueeze(1)


def main(epochs: int = 15) -> tuple[float, float]:
    """Trains; the mean squared error on the last fifth, and that of "as the last value"."""
    chainrule.manual_seed(0)
    t = chainrule.arange(1200).float()
    series = (chainrule.sin(t * 0.2) + 0.5 * chainrule.sin(t * 0.53 + 1)).reshape(-1, 1)
    series = series + 0.05 * chainrule.randn(1200, 1)
    past, future = series[:960], series[960:]
    train_set = data.WindowDataset(past, window=24, horizon=1)
    test_set = data.WindowDataset(future, window=24, horizon=1)

    model = Forecaster(1, 24)
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    trainer = train.Trainer(model, "mse", optimizer, clip_norm=1.0)
    trainer.fit(train_set, test_set, epochs=epochs, batch_size=32)
    error = trainer.evaluate(test_set)["loss"]
    windows, targets = test_set.take(slice(None))
    naive = float(((windows[:, -1:] - targets) ** 2).mean())
    print(f"mean squared error {error:.4f}; repeating the last value {naive:.4f}; noise 0.0025")
    return error, naive


if __name__ == "__main__":
    main()

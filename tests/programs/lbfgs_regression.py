"""Regression by L-BFGS: a sum of bells in full batches, and then a sine wave by two LSTM cells."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

torch.set_default_dtype(torch.float64)


class Bells(nn.Module):
    """y = sum over k of a[k] exp(-(x - m[k])^2 / (2 s[k]^2)) + b"""

    def __init__(self, k):
        super().__init__()
        self.a = nn.Parameter(torch.ones(k))
        self.m = nn.Parameter(torch.linspace(-2, 2, k))
        self.log_s = nn.Parameter(torch.zeros(k))
        self.b = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        z = (x[:, None] - self.m) / self.log_s.exp()
        return torch.exp(-0.5 * z**2) @ self.a + self.b


class Sequence(nn.Module):
    def __init__(self):
        super(Sequence, self).__init__()
        self.lstm1 = nn.LSTMCell(1, 10)
        self.lstm2 = nn.LSTMCell(10, 10)
        self.linear = nn.Linear(10, 1)

    def forward(self, input, future=0):
        outputs = []
        n = input.size(0)
        h_t, c_t, h_t2, c_t2 = (torch.zeros(n, 10, dtype=torch.double) for _ in range(4))
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for _ in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


def fit(model, x, y, optimizer, steps):
    criterion = nn.MSELoss()
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        losses.append(loss.item())
        return loss

    for i in range(steps):
        first = optimizer.step(closure)
        print("STEP: ", i, " loss: %.8f" % first.item())
    return losses


def main():
    np.random.seed(0)
    torch.manual_seed(0)
    x = torch.from_numpy(np.sort(np.random.uniform(-3, 3, 80)))
    y = torch.from_numpy(np.sin(2 * x.numpy()) * np.exp(-0.1 * x.numpy() ** 2))
    bells = Bells(6)
    optimizer = optim.LBFGS(
        bells.parameters(), lr=1, max_iter=20, history_size=10, line_search_fn="strong_wolfe"
    )
    losses = fit(bells, x, y, optimizer, 3)

    T, L, N = 10, 40, 8
    data = np.empty((N, L), "int64")
    data[:] = np.array(range(L)) + np.random.randint(-4 * T, 4 * T, N).reshape(N, 1)
    data = np.sin(data / 1.0 / T).astype("float64")
    source, target = torch.from_numpy(data[2:, :-1]), torch.from_numpy(data[2:, 1:])
    test_input, test_target = torch.from_numpy(data[:2, :-1]), torch.from_numpy(data[:2, 1:])
    seq = Sequence()
    seq.double()
    losses += fit(seq, source, target, optim.LBFGS(seq.parameters(), lr=0.8), 2)
    with torch.no_grad():
        pred = seq(test_input, future=10)
        loss = nn.functional.mse_loss(pred[:, :-10], test_target)
        print(
            "test loss: %.8f, %d values ahead" % (loss.item(), pred.detach().numpy().shape[1] - 39)
        )
    losses.append(loss.item())
    return losses


if __name__ == "__main__":
    main()

"""A neural ODE learns a spiral; its gradients come from the adjoint equation, solved backwards."""

import torch
import torch.nn as nn
import torch.optim as optim

torch.set_default_dtype(torch.float64)


def rk4(func, y, t0, t1, steps=4):
    """Integrates a tuple of tensors from t0 to t1 by Runge and Kutta's rule."""
    h = (t1 - t0) / steps
    t = t0

    def shifted(k, c):
        return tuple(a + c * b for a, b in zip(y, k))

    for _ in range(steps):
        k1 = func(t, y)
        k2 = func(t + h / 2, shifted(k1, h / 2))
        k3 = func(t + h / 2, shifted(k2, h / 2))
        k4 = func(t + h, shifted(k3, h))
        y = tuple(a + h / 6 * (p + 2 * q + 2 * r + s) for a, p, q, r, s in zip(y, k1, k2, k3, k4))
        t = t + h
    return y


class OdeintAdjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, func, y0, t, flat_params):
        with torch.no_grad():
            ys = [y0]
            for t0, t1 in zip(t[:-1], t[1:]):
                ys.append(rk4(lambda s, y: (func(s, y[0]),), (ys[-1],), t0, t1)[0])
            ys = torch.stack(ys)
        ctx.func = func
        ctx.save_for_backward(t, ys, flat_params)
        return ys

    @staticmethod
    def backward(ctx, grad_ys):
        func = ctx.func
        t, ys, flat_params = ctx.saved_tensors
        params = tuple(func.parameters())

        def augmented(s, state):
            y, a, _ = state
            with torch.enable_grad():
                y = y.detach().requires_grad_(True)
                f = func(s, y)
                dy, *dp = torch.autograd.grad(f, (y, *params), -a, allow_unused=True)
            dp = [torch.zeros_like(p) if g is None else g for p, g in zip(params, dp)]
            return f.detach(), dy, torch.cat([g.reshape(-1) for g in dp])

        with torch.no_grad():
            a, grad_params = grad_ys[-1], torch.zeros_like(flat_params)
            for i in range(len(t) - 1, 0, -1):
                state = (ys[i], a, grad_params)
                _, a, grad_params = rk4(augmented, state, t[i], t[i - 1])
                a = a + grad_ys[i - 1]
        return None, a, None, grad_params


def odeint_adjoint(func, y0, t):
    flat_params = torch.cat([p.reshape(-1) for p in func.parameters()])
    return OdeintAdjoint.apply(func, y0, t, flat_params)


class ODEFunc(nn.Module):
    def __init__(self):
        super(ODEFunc, self).__init__()
        self.net = nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y**3)


def main():
    torch.manual_seed(0)
    true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    t = torch.linspace(0.0, 1.5, 16)
    with torch.no_grad():
        true_y = [torch.tensor([[2.0, 0.0]])]
        for t0, t1 in zip(t[:-1], t[1:]):
            true_y.append(rk4(lambda s, y: (y[0] ** 3 @ true_A,), (true_y[-1],), t0, t1, 8)[0])
        true_y = torch.stack(true_y)

    func = ODEFunc()
    optimizer = optim.RMSprop(func.parameters(), lr=1e-2)
    losses = []
    for itr in range(1, 61):
        optimizer.zero_grad()
        s = torch.from_numpy(torch.randint(0, 11, (8,)).numpy())
        batch_y0 = true_y[s]
        batch_y = torch.stack([true_y[s + i] for i in range(5)], dim=0)
        pred_y = odeint_adjoint(func, batch_y0, t[:5])
        loss = torch.mean(torch.abs(pred_y - batch_y))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if itr % 20 == 0:
            with torch.no_grad():
                total = torch.mean(torch.abs(odeint_adjoint(func, true_y[0], t) - true_y))
            print("Iter {:04d} | Total Loss {:.6f}".format(itr, total.item()))
            losses.append(total.item())
    return losses


if __name__ == "__main__":
    main()

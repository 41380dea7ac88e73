"""A graph network (Kipf and Welling, 2017) on Zachary's karate club.

34 members, 78 friendships, and a quarrel that split the club. Knowing on which side the instructor
and the officer stood, and who is whose friend, the network tells the side of everybody else.

    python examples/graph.py
"""

from __future__ import annotations

import chainrule
from chainrule import Tensor, nn, optim, sparse
from chainrule.sparse import SparseTensor

# The friends of each member that come after it (W. W. Zachary, 1977, J. Anthropological Research).
FRIENDS = {
    0: (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31),
    1: (2, 3, 7, 13, 17, 19, 21, 30),
    2: (3, 7, 8, 9, 13, 27, 28, 32),
    3: (7, 12, 13),
    4: (6, 10),
    5: (6, 10, 16),
    6: (16,),
    8: (30, 32, 33),
    9: (33,),
    13: (33,),
    14: (32, 33),
    15: (32, 33),
    18: (32, 33),
    19: (33,),
    20: (32, 33),
    22: (32, 33),
    23: (25, 27, 29, 32, 33),
    24: (25, 27, 31),
    25: (31,),
    26: (29, 33),
    27: (33,),
    28: (31, 33),
    29: (32, 33),
    30: (32, 33),
    31: (32, 33),
    32: (33,),
}
MEMBERS = 34
INSTRUCTOR, OFFICER = 0, 33
WITH_OFFICER = {9, 14, 15, 18, 20, *range(22, 34)}


def normalized_adjacency() -> SparseTensor:
    """D^-1/2 (A + 1) D^-1/2: the mean over a member and its friends, the same both ways."""
    edges = [(a, b) for a, friends in FRIENDS.items() for b in friends]
    pairs = edges + [(b, a) for a, b in edges] + [(i, i) for i in range(MEMBERS)]
    places = chainrule.tensor(pairs).T
    a = chainrule.sparse_coo_tensor(places, chainrule.ones(len(pairs)), (MEMBERS, MEMBERS))
    scale = sparse.sum(a, 1).to_dense().rsqrt()
    return (a * scale * scale[:, None]).to_sparse_csr()


class GraphNetwork(nn.Module):
    """softmax(A relu(A X W1) W2), where the features X tell members apart and nothing else."""

    adjacency: SparseTensor

    def __init__(self, adjacency: SparseTensor, hidden: int, classes: int):
        super().__init__()
        self.register_buffer("adjacency", adjacency)
        self.first = nn.Linear(adjacency.shape[0], hidden, bias=False)
        self.second = nn.Linear(hidden, classes, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        hidden = chainrule.relu(self.adjacency @ self.first(x))
        return self.adjacency @ self.second(hidden)


def main(steps: int = 100) -> float:
    """Trains on two labels; returns how many of the members are told right."""
    chainrule.manual_seed(0)
    features = chainrule.eye(MEMBERS)
    sides = chainrule.tensor([int(i in WITH_OFFICER) for i in range(MEMBERS)])
    known = chainrule.tensor([INSTRUCTOR, OFFICER])
    net = GraphNetwork(normalized_adjacency(), 8, 2)
    optimizer = optim.Adam(net.parameters(), lr=0.02)
    for step in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(features)[known], sides[known])
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step:3d}: loss {loss.item():.3f}")
    right = net(features).argmax(1) == sides
    print(f"{int(right.sum())} of {MEMBERS} members on the right side, from two labels")
    return float(right.float().mean())


if __name__ == "__main__":
    main()

"""A graph convolutional network on a random graph of four communities, sparse adjacency."""

import argparse
import math

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.nn.modules.module import Module
from torch.nn.parameter import Parameter


class GraphConvolution(Module):
    """Simple GCN layer, similar to https://arxiv.org/abs/1609.02907"""

    def __init__(self, in_features, out_features, bias=True):
        super(GraphConvolution, self).__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        if bias:
            self.bias = Parameter(torch.FloatTensor(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        support = torch.mm(input, self.weight)
        output = torch.spmm(adj, support)
        if self.bias is not None:
            return output + self.bias
        return output


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super(GCN, self).__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        x = self.gc2(x, adj)
        return F.log_softmax(x, dim=1)


def sparse_mx_to_torch_sparse_tensor(sparse_mx):
    sparse_mx = sparse_mx.tocoo().astype(np.float32)
    indices = torch.from_numpy(np.vstack((sparse_mx.row, sparse_mx.col)).astype(np.int64))
    values = torch.from_numpy(sparse_mx.data)
    return torch.sparse_coo_tensor(indices, values, torch.Size(sparse_mx.shape))


def load_data(n=200):
    """Communities: friends are ten times as frequent inside as outside; features are noisy."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, n)
    same = labels[:, None] == labels[None, :]
    upper = np.triu(rng.random((n, n)) < np.where(same, 0.1, 0.01), 1)
    adj = sp.coo_matrix((upper | upper.T).astype(np.float32)) + sp.eye(n)
    rowsum = np.array(adj.sum(1)).flatten()
    adj = sp.diags(1 / rowsum).dot(adj)
    features = np.eye(4)[labels] + rng.normal(size=(n, 4))
    idx = torch.from_numpy(rng.permutation(n))
    return (
        sparse_mx_to_torch_sparse_tensor(adj),
        torch.FloatTensor(features),
        torch.LongTensor(labels),
        idx[:60],
        idx[60:],
    )


def accuracy(output, labels):
    preds = output.max(1)[1].type_as(labels)
    return preds.eq(labels).double().sum() / len(labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--hidden", type=int, default=16)
    parser.add_argument("--dropout", type=float, default=0.5)
    args = parser.parse_args()

    torch.manual_seed(42)
    adj, features, labels, idx_train, idx_test = load_data()
    model = GCN(features.shape[1], args.hidden, labels.max().item() + 1, args.dropout)
    print(model)
    optimizer = optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    losses = []
    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad()
        output = model(features, adj)
        loss_train = F.nll_loss(output[idx_train], labels[idx_train])
        loss_train.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            output = model(features, adj)
        loss_test = F.nll_loss(output[idx_test], labels[idx_test])
        losses += [loss_train.item(), loss_test.item()]
        if epoch % 10 == 0:
            print(f"Epoch: {epoch + 1:04d} loss: {loss_train.item():.4f}")
    print(
        "Test set results: accuracy= {:.4f}".format(
            accuracy(output[idx_test], labels[idx_test]).item()
        )
    )
    return losses


if __name__ == "__main__":
    main()

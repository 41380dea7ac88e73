"""A word language model: LSTM, tied weights, truncated backpropagation through time, clipping."""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

TEXT = """
the cat sat on the mat and the dog sat on the rug
the cat saw the dog and the dog saw the cat
a bird sat in the tree and sang to the cat
the cat ran up the tree and the bird flew away
the dog ran to the tree and the cat ran away
"""


class Dictionary(object):
    def __init__(self):
        self.word2idx, self.idx2word = {}, []

    def add_word(self, word):
        if word not in self.word2idx:
            self.idx2word.append(word)
            self.word2idx[word] = len(self.idx2word) - 1
        return self.word2idx[word]


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers, dropout=0.5, tie_weights=False):
        super(RNNModel, self).__init__()
        self.ntoken = ntoken
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            self.decoder.weight = self.encoder.weight
        self.init_weights()
        self.nhid, self.nlayers = nhid, nlayers

    def init_weights(self):
        initrange = 0.3
        nn.init.uniform_(self.encoder.weight, -initrange, initrange)
        nn.init.zeros_(self.decoder.bias)
        nn.init.uniform_(self.decoder.weight, -initrange, initrange)

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return F.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        shape = (self.nlayers, bsz, self.nhid)
        return (weight.new_zeros(shape), weight.new_zeros(shape))


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz)
    return data.view(bsz, -1).t().contiguous()


def repackage_hidden(h):
    """Detaches hidden states from their history."""
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def main():
    parser = argparse.ArgumentParser(description="RNN language model")
    parser.add_argument("--lr", type=float, default=4)
    parser.add_argument("--clip", type=float, default=0.25)
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--bptt", type=int, default=10)
    parser.add_argument("--dropout", type=float, default=0.1)
    args = parser.parse_args()

    torch.manual_seed(1111)
    dictionary = Dictionary()
    ids = [dictionary.add_word(word) for word in (TEXT * 8).replace("\n", " <eos> ").split()]
    data = batchify(torch.tensor(ids).type(torch.int64), args.batch_size)
    ntokens = len(dictionary.idx2word)
    model = RNNModel(ntokens, 32, 32, 2, args.dropout, tie_weights=True)
    criterion = nn.NLLLoss()
    lr, best_loss, losses = args.lr, None, []

    for epoch in range(1, args.epochs + 1):
        total = 0.0
        model.train()
        hidden = model.init_hidden(args.batch_size)
        for i in range(0, data.size(0) - 1, args.bptt):
            seq_len = min(args.bptt, len(data) - 1 - i)
            inputs, targets = data[i : i + seq_len], data[i + 1 : i + 1 + seq_len].view(-1)
            model.zero_grad()
            hidden = repackage_hidden(hidden)
            output, hidden = model(inputs, hidden)
            loss = criterion(output, targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            for p in model.parameters():
                p.data.add_(p.grad, alpha=-lr)
            losses.append(loss.item())
            total += seq_len * loss.item()
        cur_loss = total / (len(data) - 1)
        print(f"| epoch {epoch:3d} | lr {lr:05.2f} | ppl {math.exp(cur_loss):7.2f}")
        if not best_loss or cur_loss < best_loss:
            torch.save(model.state_dict(), "model.pt")
            best_loss = cur_loss
        else:
            lr /= 4.0

    model.load_state_dict(torch.load("model.pt"))
    model.eval()
    words, hidden = ["the"], model.init_hidden(1)
    with torch.no_grad():
        for _ in range(8):
            input = torch.tensor([[dictionary.word2idx[words[-1]]]], dtype=torch.long)
            output, hidden = model(input, hidden)
            words.append(dictionary.idx2word[torch.multinomial(output.exp().squeeze(), 1)[0]])
    print(" ".join(words))
    return losses


if __name__ == "__main__":
    main()

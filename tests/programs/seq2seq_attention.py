"""Sequence to sequence with attention and teacher forcing: digits are turned around."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.nn.utils.rnn import pad_sequence

PAD, SOS, EOS = 0, 1, 2
N_TOKENS, HIDDEN, MAX_LENGTH = 10, 24, 7
teacher_forcing_ratio = 0.5
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size, dropout_p=0.1):
        super(EncoderRNN, self).__init__()
        self.embedding = nn.Embedding(input_size, hidden_size, padding_idx=PAD)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, input):
        return self.gru(self.dropout(self.embedding(input)))


class BahdanauAttention(nn.Module):
    def __init__(self, hidden_size):
        super(BahdanauAttention, self).__init__()
        self.Wa = nn.Linear(hidden_size, hidden_size)
        self.Ua = nn.Linear(hidden_size, hidden_size)
        self.Va = nn.Linear(hidden_size, 1)

    def forward(self, query, keys, mask):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        scores = scores.squeeze(2).unsqueeze(1).masked_fill(mask.unsqueeze(1), float("-inf"))
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights, keys), weights


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size, dropout_p=0.1):
        super(AttnDecoderRNN, self).__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attention = BahdanauAttention(hidden_size)
        self.gru = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, encoder_outputs, encoder_hidden, mask, steps, target_tensor=None):
        batch_size = encoder_outputs.size(0)
        decoder_input = torch.empty(batch_size, 1, dtype=torch.long, device=device).fill_(SOS)
        decoder_hidden = encoder_hidden
        outputs = []
        for i in range(steps):
            embedded = self.dropout(self.embedding(decoder_input))
            query = decoder_hidden.permute(1, 0, 2)
            context, _ = self.attention(query, encoder_outputs, mask)
            output, decoder_hidden = self.gru(torch.cat((embedded, context), 2), decoder_hidden)
            output = self.out(output)
            outputs.append(output)
            if target_tensor is not None:
                decoder_input = target_tensor[:, i].unsqueeze(1)
            else:
                _, topi = output.topk(1)
                decoder_input = topi.squeeze(-1).detach()
        return F.log_softmax(torch.cat(outputs, dim=1), dim=-1)


def batch_of_pairs(n):
    sources, targets = [], []
    for _ in range(n):
        word = [random.randint(3, N_TOKENS - 1) for _ in range(random.randint(3, MAX_LENGTH - 1))]
        sources.append(torch.tensor([*word, EOS]))
        targets.append(torch.tensor([*word[::-1], EOS]))
    return (pad_sequence(rows, batch_first=True).to(device) for rows in (sources, targets))


def main():
    torch.manual_seed(0)
    random.seed(0)
    encoder = EncoderRNN(N_TOKENS, HIDDEN).to(device)
    decoder = AttnDecoderRNN(HIDDEN, N_TOKENS).to(device)
    encoder_optimizer = optim.Adam(encoder.parameters(), lr=0.02)
    decoder_optimizer = optim.Adam(decoder.parameters(), lr=0.02)
    criterion = nn.NLLLoss(ignore_index=PAD)
    losses = []

    for step in range(60):
        source, target = batch_of_pairs(32)
        forced = target if random.random() < teacher_forcing_ratio else None
        encoder_optimizer.zero_grad()
        decoder_optimizer.zero_grad()
        outputs, hidden = encoder(source)
        log_probs = decoder(outputs, hidden, source == PAD, target.size(1), forced)
        loss = criterion(log_probs.view(-1, log_probs.size(-1)), target.view(-1))
        loss.backward()
        encoder_optimizer.step()
        decoder_optimizer.step()
        losses.append(loss.item())
        if (step + 1) % 20 == 0:
            print("step %d loss %.4f" % (step + 1, sum(losses[-20:]) / 20))

    return losses


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Makes carried.safetensors: truncated backpropagation through time of a language model, window by window.

    python3 tests/golden/make_carried.py     (needs torch and safetensors)

An LSTM and a GRU of PyTorch read a text in tracks; the hidden states behind a window are detached and are those that the
next window begins with, as in the word_language_model example of PyTorch and in Merity et al.'s awd-lstm-lm. Weights stay
as they are. weight/NAME are those of tarn's parameters, ids [windows, tracks, length] what is read and targets what is
predicted, W/loss the sum of the losses of window W, W/gradient/NAME the gradients of their mean. Doubles, from weights
that fp32 holds.
"""
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

D, VOCAB, WINDOWS, TRACKS, LENGTH = 8, 13, 3, 3, 5

torch.manual_seed(5)
weights = {name: torch.randn(*shape).mul(0.5).double().requires_grad_() for name, shape in {
    "embeddings.input.weight": (VOCAB, D), "embeddings.output.weight": (VOCAB, D), "output.bias": (1, VOCAB),
    "decoder.layer1.lstm.in.weight": (4 * D, D), "decoder.layer1.lstm.in.bias": (1, 4 * D),
    "decoder.layer1.lstm.forward.weight": (4 * D, D),
    "decoder.layer2.gru.in.weight": (3 * D, D), "decoder.layer2.gru.in.bias": (1, 3 * D),
    "decoder.layer2.gru.forward.weight": (3 * D, D), "decoder.layer2.gru.forward.bias": (1, 3 * D)}.items()}


def flat(name):
    return weights[name].reshape(-1)


lstm = torch.nn.LSTM(D, D, batch_first=True).double()
gru = torch.nn.GRU(D, D, batch_first=True).double()
cells = {"lstm": {"weight_ih_l0": weights["decoder.layer1.lstm.in.weight"],
                  "weight_hh_l0": weights["decoder.layer1.lstm.forward.weight"],
                  "bias_ih_l0": flat("decoder.layer1.lstm.in.bias"),
                  "bias_hh_l0": torch.zeros(4 * D, dtype=torch.double)},
         "gru": {"weight_ih_l0": weights["decoder.layer2.gru.in.weight"],
                 "weight_hh_l0": weights["decoder.layer2.gru.forward.weight"],
                 "bias_ih_l0": flat("decoder.layer2.gru.in.bias"),
                 "bias_hh_l0": flat("decoder.layer2.gru.forward.bias")}}

text = torch.randint(0, VOCAB, (TRACKS, WINDOWS * LENGTH + 1))
read = text[:, :-1].reshape(TRACKS, WINDOWS, LENGTH)
predicted = text[:, 1:].reshape(TRACKS, WINDOWS, LENGTH)
tensors = {"ids": read.transpose(0, 1).int(), "targets": predicted.transpose(0, 1).int()}
tensors |= {"weight/" + name: value.detach().float() for name, value in weights.items()}

below, above = (torch.zeros(1, TRACKS, D).double(),) * 2, torch.zeros(1, TRACKS, D).double()
for w in range(WINDOWS):
    x = F.embedding(read[:, w], weights["embeddings.input.weight"])
    x, below = torch.func.functional_call(lstm, cells["lstm"], (x, below))
    x, above = torch.func.functional_call(gru, cells["gru"], (x, above))
    logits = x @ weights["embeddings.output.weight"].T + weights["output.bias"]
    loss = F.cross_entropy(logits.reshape(-1, VOCAB), predicted[:, w].reshape(-1), reduction="sum")
    gradients = torch.autograd.grad(loss / (TRACKS * LENGTH), list(weights.values()))
    tensors[f"{w}/loss"] = loss.detach().reshape(1)
    tensors |= {f"{w}/gradient/{name}": g.float() for name, g in zip(weights, gradients)}
    below, above = tuple(state.detach() for state in below), above.detach()

save_file({key: value.contiguous() for key, value in tensors.items()},
          pathlib.Path(__file__).parent / "carried.safetensors")

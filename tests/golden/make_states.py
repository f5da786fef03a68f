#!/usr/bin/env python3
"""Makes the golden file of test_states_golden.c: the inside of models of make_transformer.py as PyTorch computes it, and of
models of make_bert.py and make_gpt2.py as the package transformers does.

    python3 tests/golden/make_states.py  (needs torch, transformers and safetensors; writes states.safetensors into its folder)

For each case CASE, whose weights and batch stand in its own file, it holds fp32 tensors (rounded from double) CASE/NAME
under the names of `tarn states`: rows are those of the packed batch, and weights of attention lie sentence by sentence,
[heads, tokens, tokens] each. Attention weights are those that PyTorch's own attention returns; gates come from PyTorch's
states by the equations of its documentation. Of models of transformers CASE is the folder, their texts are in the metadata
under its name, a sentence a line, and hidden states are those that it gives.
"""

import os

import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification, GPT2LMHeadModel

import make_transformer as transformer
from make_transformer import CONVOLUTIONS, D, HEADS, RECURRENT, Case, Network, pad

CASES = ["reservoirs_post", "recurrent_pre", "bigru_post", "conv_pre"]

# Folders of transformers' models: what reads them, and five texts. Tokens are bytes; a tab separates two sentences.
BYTE, END, CLS = 3, 2, 259
FOLDERS = {
    "bert_model/bert": (AutoModelForMaskedLM, ["ab c", "Hello\tyou", "x", "a tail", "abcdef\tghi"]),
    "bert_model/classes": (AutoModelForSequenceClassification, ["ab c", "Hello\tyou", "x", "a tail", "abcdef\tghi"]),
    "bert_model/number": (AutoModelForSequenceClassification, ["ab c", "Hello you", "x", "a tail", "abcdef"]),
    "gpt2_model/tied": (GPT2LMHeadModel, ["ab c", "Hello you", "x", "a tail", "abcdef ghi"]),
}


def shift(states, lengths, reverse):
    """The state before each token: zeros before the first one of its direction."""
    before = torch.zeros_like(states)
    for i, length in enumerate(lengths):
        if reverse:
            before[i, :length - 1] = states[i, 1:length]
        else:
            before[i, 1:length] = states[i, :length - 1]
    return before


class Looking(Network):
    """The network, which notes what it computes."""

    def __init__(self, case):
        super().__init__(case, torch.float64)
        self.seen, self.at, self.padding = {}, None, {}

    def note(self, name, value, side=None):
        side = side or self.at.split(".")[0]
        self.seen[name] = value[~self.padding[side]].float().contiguous()

    def embed(self, ids, table):
        x = super().embed(ids, table)
        side = "encoder" if table == "source" else "decoder"
        self.note(f"{side}.0", x, side)
        return x

    def linear(self, x, name):
        y = super().linear(x, name)
        if name.endswith(".ffn.out") and self.at.endswith(".1"):
            self.note(f"{self.at}.hidden", x)
        if name.endswith(".conv.in"):
            self.note(f"{self.at}.gates", torch.sigmoid(y[..., D:]))
        return y

    def attention(self, query, key, weight, bias, out, padding, causal):
        length = query.shape[1]
        mask = torch.triu(torch.ones(length, length, dtype=torch.bool), 1) if causal else None
        _, weights = F.multi_head_attention_forward(
            query.transpose(0, 1), key.transpose(0, 1), key.transpose(0, 1), D, HEADS, weight, bias, None, None, False,
            0.0, self.w[f"{out}.weight"], self.w[f"{out}.bias"][0], training=False, key_padding_mask=padding,
            need_weights=True, attn_mask=mask, average_attn_weights=False)
        rows = (~self.padding[self.at.split(".")[0]]).sum(dim=1).tolist()
        keys = (~padding).sum(dim=1).tolist()
        kind = "cross_attention" if ".cross_attn." in out else "attention"
        self.seen[f"{self.at}.{kind}"] = torch.cat(
            [weights[i, :, :rows[i], :keys[i]].flatten() for i in range(len(rows))]).float()
        return super().attention(query, key, weight, bias, out, padding, causal)

    def recurrence(self, x, name, kind, padding):
        _, mixer, hidden, gates, directions = RECURRENT[kind]
        y = super().recurrence(x, name, kind, padding)
        weight, bias = self.w[f"{name}.out.weight"], self.w[f"{name}.out.bias"][0]
        # PyTorch is asked for the states themselves: the same with the identity as the projection behind them.
        self.w[f"{name}.out.weight"] = torch.eye(directions * hidden, dtype=torch.float64)
        self.w[f"{name}.out.bias"] = torch.zeros(1, directions * hidden, dtype=torch.float64)
        states = super().recurrence(x, name, kind, padding)
        self.w[f"{name}.out.weight"], self.w[f"{name}.out.bias"] = weight, bias[None, :]
        self.note(f"{self.at}.states", states)
        lengths = (~padding).sum(dim=1).tolist()
        inputs = self.linear(x, f"{name}.in").split(gates * hidden, dim=-1)
        all_gates = []
        for direction, suffix in enumerate(("forward", "reverse")[:directions]):
            own = states[..., direction * hidden:(direction + 1) * hidden]
            drive = F.linear(shift(own, lengths, direction == 1), self.w[f"{name}.{suffix}.weight"])
            if mixer == "gru":
                drive = drive + self.w[f"{name}.{suffix}.bias"][0]
                r, z = (torch.sigmoid(inputs[direction][..., k * hidden:(k + 1) * hidden] +
                                      drive[..., k * hidden:(k + 1) * hidden]) for k in range(2))
                n = torch.tanh(inputs[direction][..., 2 * hidden:] + r * drive[..., 2 * hidden:])
                all_gates += [r, z, n]
            else:
                i, f, g, o = (inputs[direction] + drive).chunk(4, dim=-1)
                i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
                cell = torch.zeros_like(own)
                for t in range(cell.shape[1]):
                    cell[:, t] = f[:, t] * (cell[:, t - 1] if t else 0) + i[:, t] * g[:, t]
                assert (o * torch.tanh(cell) - own)[~padding].abs().max() < 1e-12
                self.note(f"{self.at}.cells", cell)
                all_gates += [i, f, g, o]
        self.note(f"{self.at}.gates", torch.cat(all_gates, dim=-1))
        return y

    def convolution(self, x, name, kind, padding, causal):
        mixer, width = CONVOLUTIONS[kind]
        if mixer == "dynamic_conv":
            gated = F.glu(super().linear(x, f"{name}.in"), dim=-1)
            kernels = F.linear(gated, self.w[f"{name}.kernel.weight"]).unflatten(2, (HEADS, width))
            self.note(f"{self.at}.kernel", torch.softmax(kernels, dim=-1).flatten(2))
        return super().convolution(x, name, kind, padding, causal)

    def stack(self, x, side, layers, *masks):
        for depth, (kind, set_name) in enumerate(layers, 1):
            self.at = f"{side}.{depth}"
            x = self.layer(x, f"{side}.{set_name}", kind, *masks)
            self.note(self.at, x)
        x = self.layer_norm(x, f"{side}.norm") if self.case.order(layers[-1][0]) == "pre" else x
        self.note(side, x)
        return x

    def look(self, batch):
        source, self.padding["encoder"] = pad(batch["source_ids"], batch["source_offsets"])
        target, self.padding["decoder"] = pad(batch["target_in"], batch["target_offsets"])
        memory = self.stack(self.embed(source, "source"), "encoder", self.case.encoder, self.padding["encoder"])
        x = self.stack(self.embed(target, "target"), "decoder", self.case.decoder, self.padding["decoder"], memory,
                       self.padding["encoder"])
        logits = F.linear(x, self.w[self.case.tables["output"]])
        self.note("output", logits)
        self.note("output.log_probabilities", torch.log_softmax(logits, dim=-1))
        return self.seen


def look_at_folder(folder, kind, texts):
    """What a model of transformers gives for texts, one by one, under the names of `tarn states`."""
    model = kind.from_pretrained(folder, attn_implementation="eager").double().eval()
    stack = "decoder" if kind is GPT2LMHeadModel else "encoder"
    seen = {}
    for text in texts:
        ids, segments = ([END] if stack == "decoder" else [CLS]), [0]
        for number, sentence in enumerate(text.split("\t")):
            tokens = [BYTE + byte for byte in sentence.encode()] + ([] if stack == "decoder" else [END])
            ids += tokens
            segments += [number] * len(tokens)
        more = {} if stack == "decoder" else {"token_type_ids": torch.tensor([segments])}
        made = model(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), output_hidden_states=True,
                     output_attentions=True, **more)
        hidden = made.hidden_states
        names = [f"{stack}.{depth}" for depth in range(len(hidden))]
        if stack == "decoder":  # its last one is behind the final norm
            names[-1] = stack
        new = dict(zip(names, hidden), output=made.logits)
        if stack == "encoder":
            new[stack] = hidden[-1]
        for depth, weights in enumerate(made.attentions, 1):
            new[f"{stack}.{depth}.attention"] = weights.flatten()
        for name, value in new.items():
            value = value if value.dim() == 1 else value.reshape(-1, value.shape[-1])
            seen.setdefault(name, []).append(value.float())
    return {name: torch.cat(values).contiguous() for name, values in seen.items()}


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    tensors = {}
    for name in CASES:
        with safe_open(os.path.join(folder, f"{name}.safetensors"), "pt") as file:
            Case.seed, parameters = file.metadata()["seed"], file.metadata()["parameters"].split("\n")
        case = Case(name)
        assert [line.split()[0] for line in parameters] == list(case.weights)
        assert all(line.endswith(case.sources[line.split()[0]]) for line in parameters)
        with torch.no_grad():
            seen = Looking(case).look(transformer.make_batch(case.vocab))
        tensors |= {f"{name}/{key}": value for key, value in seen.items()}
        print(f"{name}: {len(seen)} arrays")
    for name, (kind, texts) in FOLDERS.items():
        with torch.no_grad():
            seen = look_at_folder(os.path.join(folder, name), kind, texts)
        tensors |= {f"{name}/{key}": value for key, value in seen.items()}
        print(f"{name}: {len(seen)} arrays")
    path = os.path.join(folder, "states.safetensors")
    save_file(tensors, path, metadata={name: "\n".join(texts) for name, (_, texts) in FOLDERS.items()})
    print(f"{os.path.getsize(path):,} bytes")


if __name__ == "__main__":
    main()

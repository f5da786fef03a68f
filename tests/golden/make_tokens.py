#!/usr/bin/env python3
"""Makes the golden files tokens_*.safetensors of test_golden.c: FNet, MLP-Mixer, gMLP and aMLP in small models.

    python3 tests/golden/make_tokens.py     (needs torch, safetensors, g-mlp-pytorch, mlp-mixer-pytorch)

The models and files are those of make_transformer.py. The mixers are, sentence by sentence, torch.fft's transform,
mlp-mixer-pytorch's feed-forward network of convolutions across tokens, and g-mlp-pytorch's block, with its tiny
attention for aMLP; where these have weights for one length, they get the first rows and columns of the model's. Layers of MLP-Mixer that are
trained have RMSNorm: LayerNorm takes away what the bias of a token adds to all features, whose gradient is then zero.
"""

import os

import make_transformer as transformer
import torch
import torch.nn.functional as F
from g_mlp_pytorch.g_mlp_pytorch import gMLPBlock
from make_transformer import D, FFN, HEADS
from mlp_mixer_pytorch.mlp_mixer_pytorch import FeedForward

MOST = 14  # model.max_length
# Kinds: (mixer, hidden width, places, width of the attention, whether an FFN follows)
KINDS = {"W": ("fnet", 0, 0, 0, True), "X": ("mlp_mixer", 10, MOST, 0, True), "Y": ("mlp_mixer", 16, 17, 0, True),
         "U": ("gmlp", 24, MOST, 0, False), "V": ("gmlp", 20, 16, 0, True), "T": ("amlp", 28, 15, 6, False)}
CASES = {"tokens_post": ("post", "none", "W X L U Y T", "T V L"),
         "tokens_pre": ("pre", "decoder", "Y V W X T", "L U1 T U1")}
TRAINED = "WXUT"
transformer.CASES |= CASES
transformer.TRAINED += TRAINED


class Case(transformer.Case):
    def __init__(self, name):
        super().__init__(name)
        self.config = self.config.replace("dropout: 0 }", f"dropout: 0, max_length: {MOST} }}")
        for kind, (mixer, hidden, places, attention, ffn) in KINDS.items():
            keys = [f"mixer: {mixer}", f"ffn: {FFN if ffn else 0}", f"frozen: {'no' if kind in TRAINED else 'yes'}"]
            if hidden:
                keys += [f"hidden: {hidden}", f"tokens: {places}"]
            if attention:
                keys += [f"attention_width: {attention}"]
            if kind == "X":
                keys += ["norm_type: rms"]
            if mixer in ("gmlp", "amlp"):
                keys += [f"heads: {HEADS}"]
            self.config += f"  {kind}: {{ {', '.join(keys)} }}\n"

    def make_own_norm(self, name, kind, trained):
        if kind == "X":
            self.add(f"{name}.gain", trained, 1, D, scale=0.1, mean=1.0)
        else:
            self.make_norm(name, trained)

    def make_wide_norm(self, name, trained, width):
        self.add(f"{name}.gain", trained, 1, width, scale=0.1, mean=1.0)
        self.add(f"{name}.bias", trained, 1, width, scale=0.1)

    def make_layer(self, side, kind, name):
        if kind not in KINDS:
            super().make_layer(side, kind, name)
            return
        trained = kind in TRAINED
        mixer, hidden, places, attention, ffn = KINDS[kind]
        if mixer == "fnet":
            self.make_norm(f"{name}.fnet.norm", trained)
        elif mixer == "mlp_mixer":
            self.make_linear(f"{name}.mlp_mixer.in", trained, hidden, places)
            self.make_linear(f"{name}.mlp_mixer.out", trained, places, hidden)
            self.make_own_norm(f"{name}.mlp_mixer.norm", kind, trained)
        else:
            half = hidden // 2
            self.make_linear(f"{name}.gmlp.value", trained, half, D)
            self.make_linear(f"{name}.gmlp.gate", trained, half, D)
            self.make_wide_norm(f"{name}.gmlp.gate_norm", trained, half)
            self.add(f"{name}.gmlp.tokens.weight", trained, places, places, scale=places**-0.5)
            self.add(f"{name}.gmlp.tokens.bias", trained, 1, places, scale=0.1, mean=1.0)
            if attention:
                self.add(f"{name}.gmlp.qkv.weight", trained, 3 * attention, D, scale=1.5 * D**-0.5)
                self.make_linear(f"{name}.gmlp.attended", trained, half, attention)
            self.make_linear(f"{name}.gmlp.out", trained, D, half)
            self.make_norm(f"{name}.gmlp.norm", trained)
            if side == "decoder":
                self.make_linear(f"{name}.cross_attn.q", trained, D, D, 1.5)
                self.make_linear(f"{name}.cross_attn.kv", trained, 2 * D, D)
                self.make_linear(f"{name}.cross_attn.out", trained, D, D)
                self.make_norm(f"{name}.cross_attn.norm", trained)
        if ffn:
            self.make_linear(f"{name}.ffn.in", trained, FFN, D)
            self.make_linear(f"{name}.ffn.out", trained, D, FFN)
            self.make_own_norm(f"{name}.ffn.norm", kind, trained)


class Network(transformer.Network):
    def layer_norm(self, x, name):
        if f"{name}.bias" in self.w:
            return super().layer_norm(x, name)
        return F.rms_norm(x, (D,), self.w[f"{name}.gain"][0], 1e-5)

    def mlp_mixer(self, x, name, hidden):
        n = x.shape[1]
        network = FeedForward(n, hidden, 0.0, lambda *sizes: torch.nn.Conv1d(*sizes, kernel_size=1)).to(self.dtype)
        weights = {"0.weight": self.w[f"{name}.in.weight"][:, :n, None], "0.bias": self.w[f"{name}.in.bias"][0],
                   "3.weight": self.w[f"{name}.out.weight"][:n, :, None], "3.bias": self.w[f"{name}.out.bias"][0, :n]}
        return torch.func.functional_call(network, weights, (x,))

    def gated_mlp(self, x, name, hidden, attention, causal):
        n = x.shape[1]
        block = gMLPBlock(dim=D, dim_ff=hidden, seq_len=n, causal=causal, attn_dim=attention or None).to(self.dtype)
        both = {part: torch.cat([self.w[f"{name}.{half}.{part}"] for half in ("value", "gate")], dim=axis)
                for part, axis in (("weight", 0), ("bias", 1))}
        weights = {"proj_in.0.weight": both["weight"], "proj_in.0.bias": both["bias"][0],
                   "sgu.norm.weight": self.w[f"{name}.gate_norm.gain"][0],
                   "sgu.norm.bias": self.w[f"{name}.gate_norm.bias"][0],
                   "sgu.weight": self.w[f"{name}.tokens.weight"][None, :n, :n],
                   "sgu.bias": self.w[f"{name}.tokens.bias"][:, :n],
                   "proj_out.weight": self.w[f"{name}.out.weight"], "proj_out.bias": self.w[f"{name}.out.bias"][0]}
        if attention:
            weights |= {"attn.to_qkv.weight": self.w[f"{name}.qkv.weight"],
                        "attn.to_out.weight": self.w[f"{name}.attended.weight"],
                        "attn.to_out.bias": self.w[f"{name}.attended.bias"][0]}
        return torch.func.functional_call(block, weights, (x,))

    def mix(self, x, name, kind, padding, causal):
        """Each sentence without its padding."""
        mixer, hidden, _, attention, _ = KINDS[kind]
        rows = []
        for s, n in enumerate((~padding).sum(dim=1).tolist()):
            sentence = x[s:s + 1, :n]
            if mixer == "fnet":
                y = torch.fft.fft2(sentence, dim=(1, 2)).real
            elif mixer == "mlp_mixer":
                y = self.mlp_mixer(sentence, name, hidden)
            else:
                y = self.gated_mlp(sentence, name, hidden, attention, causal)
            rows.append(y[0])
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)

    def layer(self, x, name, kind, padding, memory=None, memory_padding=None):
        if kind not in KINDS:
            return super().layer(x, name, kind, padding, memory, memory_padding)
        order = self.case.order(kind)
        mixer, *_, ffn = KINDS[kind]
        own = f"{name}.{'gmlp' if mixer == 'amlp' else mixer}"
        x = self.sublayer(x, own, order, lambda h: self.mix(h, own, kind, padding, memory is not None))
        if memory is not None:
            cross = f"{name}.cross_attn"
            weight = torch.cat([self.w[f"{cross}.q.weight"], self.w[f"{cross}.kv.weight"]])
            bias = torch.cat([self.w[f"{cross}.q.bias"][0], self.w[f"{cross}.kv.bias"][0]])
            x = self.sublayer(x, cross, order, lambda h: self.attention(
                h, memory, weight, bias, f"{cross}.out", memory_padding, False))
        if not ffn:
            return x
        return self.sublayer(x, f"{name}.ffn", order, lambda h: self.channels(h, f"{name}.ffn", kind))


if __name__ == "__main__":
    transformer.Case, transformer.Network = Case, Network
    for case_name in CASES:
        transformer.make(case_name, os.path.dirname(os.path.abspath(__file__)))

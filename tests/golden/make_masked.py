#!/usr/bin/env python3
"""Makes masked_post.safetensors and masked_pre.safetensors: loss and gradients of masked language models.

    python3 tests/golden/make_masked.py     (needs torch, transformers and safetensors)

The networks are the transformers package's: BERT (post-norm, segments, tied output) and RoBERTa with pre-norm (an output
matrix of its own). The batch is of unequal sentences, padded; some tokens are masked, and of some pairs of sentences the
second has the other segment. All is computed in double precision from fp32 weights. The files are those of
make_transformer.py, with three tensors more: batch/segments, and batch/selected and batch/targets, the packed rows that
are predicted from and their tokens.
"""
import pathlib
import random
import types

import golden_file
import torch
import torch.nn.functional as F
from transformers import BertConfig, BertForMaskedLM, RobertaPreLayerNormConfig, RobertaPreLayerNormForMaskedLM

D, HEADS, FFN, VOCAB, LAYERS, LONGEST = 32, 4, 48, 90, 3, 16
SMOOTHING = 0.1
LENGTHS = [7, 12, 3, 16, 5]
SECOND = [7, 5, 3, 9, 5]  # where the second sentence of each row begins
CLS, EOS, MASK, FIRST = 3, 2, 5, 6

SIZES = {"vocab_size": VOCAB, "hidden_size": D, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
         "intermediate_size": FFN, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
         "layer_norm_eps": 1e-5, "attn_implementation": "eager"}


def make_batch():
    draw = random.Random(11)
    ids, offsets, segments, selected, targets = [], [0], [], [], []
    for length, second in zip(LENGTHS, SECOND):
        row = [CLS] + [draw.randrange(FIRST, VOCAB) for _ in range(length - 2)] + [EOS]
        for place in sorted(draw.sample(range(1, length - 1), max(1, length // 4))):
            selected.append(len(ids) + place)
            targets.append(row[place])
            row[place] = draw.choice([MASK, MASK, MASK, row[place], draw.randrange(FIRST, VOCAB)])
        ids += row
        segments += [int(place >= second) for place in range(length)]
        offsets.append(len(ids))
    values = {"target_in": ids, "target_offsets": offsets, "segments": segments, "selected": selected,
              "targets": targets}
    return {name: torch.tensor(value, dtype=torch.int32) for name, value in values.items()}


def names(prefix, norms):
    """Our names of the parameters of layers and what they are joined of."""
    table = {}
    for i in range(LAYERS):
        own, layer = f"encoder.layer{i + 1}", f"{prefix}.encoder.layer.{i}"
        for kind, of in (("weight", "weight"), ("bias", "bias")):
            table[f"{own}.self_attn.qkv.{kind}"] = [f"{layer}.attention.self.{part}.{of}"
                                                    for part in ("query", "key", "value")]
            table[f"{own}.self_attn.out.{kind}"] = [f"{layer}.attention.output.dense.{of}"]
            table[f"{own}.ffn.in.{kind}"] = [f"{layer}.intermediate.dense.{of}"]
            table[f"{own}.ffn.out.{kind}"] = [f"{layer}.output.dense.{of}"]
        for norm, theirs in zip(("self_attn.norm", "ffn.norm"), norms):
            table[f"{own}.{norm}.gain"] = [f"{layer}.{theirs}.weight"]
            table[f"{own}.{norm}.bias"] = [f"{layer}.{theirs}.bias"]
    embeddings = f"{prefix}.embeddings"
    table |= {"embeddings.positions.weight": [f"{embeddings}.position_embeddings.weight"],
              "embeddings.segments.weight": [f"{embeddings}.token_type_embeddings.weight"],
              "embeddings.norm.gain": [f"{embeddings}.LayerNorm.weight"],
              "embeddings.norm.bias": [f"{embeddings}.LayerNorm.bias"]}
    return table


def bert():
    model = BertForMaskedLM(BertConfig(max_position_embeddings=LONGEST, type_vocab_size=2, hidden_act="gelu", **SIZES))
    table = names("bert", ("attention.output.LayerNorm", "output.LayerNorm"))
    head = "cls.predictions"
    table |= {"embeddings.weight": ["bert.embeddings.word_embeddings.weight"],
              "output.dense.weight": [f"{head}.transform.dense.weight"],
              "output.dense.bias": [f"{head}.transform.dense.bias"],
              "output.norm.gain": [f"{head}.transform.LayerNorm.weight"],
              "output.norm.bias": [f"{head}.transform.LayerNorm.bias"], "output.bias": [f"{head}.bias"]}
    return model, table, 0, "norm: post"


def pre_norm():
    # Its positions begin behind that of the padding.
    model = RobertaPreLayerNormForMaskedLM(RobertaPreLayerNormConfig(
        max_position_embeddings=LONGEST + 2, type_vocab_size=2, pad_token_id=1, tie_word_embeddings=False, **SIZES))
    prefix = "roberta_prelayernorm"
    table = names(prefix, ("attention.LayerNorm", "intermediate.LayerNorm"))
    table |= {"embeddings.input.weight": [f"{prefix}.embeddings.word_embeddings.weight"],
              "embeddings.output.weight": ["lm_head.decoder.weight"], "encoder.norm.gain": [f"{prefix}.LayerNorm.weight"],
              "encoder.norm.bias": [f"{prefix}.LayerNorm.bias"], "output.dense.weight": ["lm_head.dense.weight"],
              "output.dense.bias": ["lm_head.dense.bias"], "output.norm.gain": ["lm_head.layer_norm.weight"],
              "output.norm.bias": ["lm_head.layer_norm.bias"], "output.bias": ["lm_head.decoder.bias"]}
    return model, table, 2, "norm: pre, embeddings: none"


def rows_of(ours, skip):
    return slice(skip if ours == "embeddings.positions.weight" else 0, None)


def join(theirs, get, rows):
    value = torch.cat([get(key)[rows] for key in theirs])
    return value if value.dim() == 2 else value[None, :]


def draw_weights(name, model, table, skip):
    """Gives the model weights of which none is zero or one, and returns them as golden_file.py wants them."""
    own = dict(model.named_parameters())
    case = types.SimpleNamespace(seed=f"{name} 0", weights={}, sources={}, trained={})
    for ours, theirs in table.items():
        parts = [own[key].data[rows_of(ours, skip)] for key in theirs]
        shape = join(theirs, lambda key: own[key].data, rows_of(ours, skip)).shape
        mean = 1.0 if ours.endswith(".gain") else 0.0
        case.weights[ours], case.sources[ours] = golden_file.draw(case.seed, ours, shape, 0.1, mean)
        case.trained[ours] = True
        values = case.weights[ours] if parts[0].dim() == 2 else case.weights[ours][0]
        for part, value in zip(parts, values.split([len(part) for part in parts])):
            part.copy_(value)
    return case


def make(name, build, layer="L"):
    torch.manual_seed(23)
    model, table, skip, keys = build()
    model.eval()
    case = draw_weights(name, model, table, skip)
    if getattr(model.config, "tie_word_embeddings", False):
        model.tie_weights()
    model = model.double()
    batch = make_batch()
    starts = batch["target_offsets"].tolist()
    parts = {key: torch.nn.utils.rnn.pad_sequence(batch[key].long().split(LENGTHS), batch_first=True)
             for key in ("target_in", "segments")}
    real = torch.nn.utils.rnn.pad_sequence([torch.ones(n) for n in LENGTHS], batch_first=True)
    positions = torch.arange(real.shape[1])[None, :].expand(len(LENGTHS), -1) + skip
    logits = model(input_ids=parts["target_in"], token_type_ids=parts["segments"], attention_mask=real,
                   position_ids=positions).logits
    logits = logits[real.bool()][batch["selected"].long()]
    loss = F.cross_entropy(logits, batch["targets"].long(), reduction="sum", label_smoothing=SMOOTHING)
    nll = F.cross_entropy(logits, batch["targets"].long(), reduction="sum")
    (loss / len(logits)).backward()
    own = dict(model.named_parameters())
    gradients = {ours: join(table[ours], lambda key: own[key].grad, rows_of(ours, skip)) for ours in case.weights}
    used = {key for theirs in table.values() for key in theirs}
    left = {key for key in own if key not in used and own[key].grad is not None}
    assert not left, left
    tensors = {f"batch/{key}": value for key, value in batch.items()}
    tensors["result/loss"] = torch.tensor([loss.item()], dtype=torch.float64)
    tensors["result/nll"] = torch.tensor([nll.item()], dtype=torch.float64)
    config = (f"model: {{ d_model: {D}, max_length: {LONGEST}, positions: learned, segments: 2, embedding_norm: yes,\n"
              f"         embedding_scale: no, activation: gelu, dropout: 0, {keys} }}\n"
              f"encoder: {{ layers: {layer}*{LAYERS} }}\nkinds: {{ L: {{ heads: {HEADS}, ffn: {FFN} }} }}\n")
    path = pathlib.Path(__file__).parent / f"{name}.safetensors"
    golden_file.save(path, case, gradients, tensors, {"config": config, "label_smoothing": repr(SMOOTHING)})
    print(f"{name}: loss {loss.item():.6f}, nll {nll.item():.6f}, {starts[-1]} rows, {len(logits)} predictions")


if __name__ == "__main__":
    make("masked_post", bert)
    make("masked_pre", pre_norm)

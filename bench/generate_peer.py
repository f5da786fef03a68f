"""Greedy generation by another program, from the files that generation.py has made, and its speed as one line of JSON.

    python generate_peer.py llama.cpp FOLDER q8_0 --batch 1 --tokens 100 --threads 2

Tokens a second are the new tokens of all texts over the time from the prompts to the last token, of the fastest of --repeat
runs behind one that is not counted. No text ends before its last token."""

import argparse
import ctypes
import json
import os
import struct
import time


def transformers_model(folder, precision, options):
    import torch
    import transformers

    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    model = transformers.GPT2LMHeadModel.from_pretrained(os.path.join(folder, "transformers"))
    model = model.to(getattr(torch, precision)).eval()

    def generate(prompts):
        ids = torch.tensor(prompts)
        found = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=options.tokens,
                               min_new_tokens=options.tokens, do_sample=False, pad_token_id=prompts[0][0])
        return found[:, ids.shape[1]:].tolist()

    return generate


def read_safetensors(path):
    import numpy

    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + size])
    head.pop("__metadata__", None)
    return {name: numpy.frombuffer(data, "<f4", offset=8 + size + of["data_offsets"][0],
                                   count=(of["data_offsets"][1] - of["data_offsets"][0]) // 4).reshape(of["shape"])
            for name, of in head.items()}


def convert_ctranslate2(folder, directory):
    """As its converter does, which needs PyTorch."""
    import ctranslate2

    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    with open(os.path.join(folder, "vocab.json"), encoding="utf-8") as file:
        words = json.load(file)
    tensors = {name.removeprefix("transformer."): array
               for name, array in read_safetensors(os.path.join(folder, "model.safetensors")).items()}
    spec = ctranslate2.specs.TransformerDecoderModelSpec.from_config(
        config["n_layer"], config["n_head"], pre_norm=True, activation=ctranslate2.specs.Activation.GELUTanh)

    def norm(of, name):
        of.gamma, of.beta = tensors[name + ".weight"], tensors[name + ".bias"]

    def linear(of, name):
        of.weight, of.bias = tensors[name + ".weight"].T.copy(), tensors[name + ".bias"]

    decoder = spec.decoder
    decoder.scale_embeddings = False
    decoder.embeddings.weight = decoder.projection.weight = tensors["wte.weight"]
    decoder.position_encodings.encodings = tensors["wpe.weight"]
    norm(decoder.layer_norm, "ln_f")
    for i, layer in enumerate(decoder.layer):
        norm(layer.self_attention.layer_norm, f"h.{i}.ln_1")
        linear(layer.self_attention.linear[0], f"h.{i}.attn.c_attn")
        linear(layer.self_attention.linear[1], f"h.{i}.attn.c_proj")
        norm(layer.ffn.layer_norm, f"h.{i}.ln_2")
        linear(layer.ffn.linear_0, f"h.{i}.mlp.c_fc")
        linear(layer.ffn.linear_1, f"h.{i}.mlp.c_proj")
    spec.register_vocabulary(sorted(words, key=words.get))
    end = "<|endoftext|>"
    spec.config.bos_token = spec.config.eos_token = spec.config.unk_token = end
    spec.validate()
    spec.optimize()
    os.mkdir(directory)
    spec.save(directory)


def ctranslate2_model(folder, precision, options):
    import ctranslate2

    directory = os.path.join(folder, "ctranslate2")
    if not os.path.isdir(directory):
        convert_ctranslate2(os.path.join(folder, "transformers"), directory)
    with open(os.path.join(folder, "transformers", "vocab.json"), encoding="utf-8") as file:
        ids = json.load(file)
    words = {number: word for word, number in ids.items()}
    generator = ctranslate2.Generator(directory, device="cpu", compute_type=precision, inter_threads=1,
                                      intra_threads=options.threads)
    if generator.compute_type.split("_")[0] != precision:
        raise SystemExit(f"CTranslate2 computes in {generator.compute_type}, not in {precision}")

    def generate(prompts):
        found = generator.generate_batch([[words[i] for i in prompt] for prompt in prompts], max_length=options.tokens,
                                         min_length=options.tokens, sampling_topk=1, beam_size=1,
                                         include_prompt_in_result=False)
        return [result.sequences_ids[0] for result in found]

    return generate


def llama_model(folder, precision, options):
    """Its own loop, without its sampler, which takes longer than NumPy to find the likeliest token."""
    import llama_cpp
    import numpy

    path = os.path.join(folder, precision)
    llama_cpp.llama_log_set(SILENT, ctypes.c_void_p())
    if not os.path.isfile(path):  # quantised by the program itself, from what tarn has written
        how = llama_cpp.llama_model_quantize_default_params()
        how.ftype = llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_0
        if llama_cpp.llama_model_quantize(os.path.join(folder, "f32").encode(), path.encode(), ctypes.byref(how)) != 0:
            raise SystemExit("llama.cpp cannot quantise the model")
    llama_cpp.llama_backend_init()
    model = llama_cpp.llama_model_load_from_file(path.encode(), llama_cpp.llama_model_default_params())
    if not model:
        raise SystemExit("llama.cpp does not load the model")
    how = llama_cpp.llama_context_default_params()
    longest = options.tokens + 16
    how.n_ctx = longest * options.batch
    how.n_seq_max = options.batch
    how.n_threads = how.n_threads_batch = options.threads
    context = llama_cpp.llama_init_from_model(model, how)
    vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
    batch = llama_cpp.llama_batch_init(longest * options.batch, 0, 1)

    def decode(rows):
        """Rows of (token, position, text, whether its logits are wanted); gives the likeliest tokens of those."""
        for i, (token, position, text, wanted) in enumerate(rows):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, position, 1, wanted
            batch.seq_id[i][0] = text
        batch.n_tokens = len(rows)
        if llama_cpp.llama_decode(context, batch) != 0:
            raise SystemExit("llama.cpp does not decode")
        found = []
        for i, row in enumerate(rows):
            if row[3]:
                logits = numpy.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(context, i), shape=(vocabulary,))
                logits[options.end] = -numpy.inf
                found.append(int(logits.argmax()))
        return found

    def generate(prompts):
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)
        last = decode([(token, at, text, at + 1 == len(prompt)) for text, prompt in enumerate(prompts)
                       for at, token in enumerate(prompt)])
        texts = [[token] for token in last]
        while len(texts[0]) < options.tokens:
            last = decode([(text[-1], len(prompt) + len(text) - 1, i, True)
                           for i, (prompt, text) in enumerate(zip(prompts, texts))])
            for text, token in zip(texts, last):
                text.append(token)
        return texts

    return generate


SILENT = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)
PROGRAMS = {"llama.cpp": llama_model, "CTranslate2": ctranslate2_model, "transformers": transformers_model}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("folder", help="what generation.py has made")
    parser.add_argument("precision", help="as the program calls it")
    parser.add_argument("--batch", type=int, default=1, help="texts at a time")
    parser.add_argument("--tokens", type=int, default=100, help="new tokens of each")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--end", type=int, default=50256, help="the end of a sentence, which stands before each text")
    options = parser.parse_args()
    with open(os.path.join(options.folder, "prompts.json"), encoding="utf-8") as file:
        prompts = [[options.end] + prompt for prompt in json.load(file)[:options.batch]]
    generate = PROGRAMS[options.program](options.folder, options.precision, options)
    seconds = []
    for _ in range(1 + options.repeat):
        start = time.perf_counter()
        texts = generate(prompts)
        seconds.append(time.perf_counter() - start)
    tokens = sum(map(len, texts))
    if tokens != options.tokens * options.batch:
        raise SystemExit(f"{options.program} gave {tokens} tokens")
    print(json.dumps({"speed": tokens / min(seconds[1:]), "first": texts[0]}))


if __name__ == "__main__":
    main()

# OpenAI's own Python package against tarn serve. OPENAI_PYTHON: a Python that has it.
set -u
python=${OPENAI_PYTHON:-python3}
"$python" -c 'import openai' 2>/dev/null || { echo "serve_openai_client.sh: skipped, $python has no package openai"; exit 77; }
tiny_model=language
. "$(dirname "$0")/../tiny_server.sh"
start
"$python" - "$port" <<'END_CLIENT' || fail "the client: $(cat server.txt)"
import sys

import openai

client = openai.OpenAI(base_url=f"http://127.0.0.1:{sys.argv[1]}/v1", api_key="none", max_retries=0)
models = [model.id for model in client.models.list()]
assert models == ["run"], models
assert client.models.retrieve("run").owned_by == "tarn"
ask = dict(model="run", prompt="The cat", max_tokens=9, seed=3, n=2)
whole = client.completions.create(**ask)
assert [c.index for c in whole.choices] == [0, 1] and whole.usage.completion_tokens <= 18
texts, usage = ["", ""], None
for chunk in client.completions.create(**ask, stream=True, stream_options={"include_usage": True}):
    for choice in chunk.choices:
        texts[choice.index] += choice.text
    usage = chunk.usage or usage
assert texts == [c.text for c in whole.choices], (texts, whole)
assert usage.total_tokens == whole.usage.total_tokens, (usage, whole.usage)
with client.completions.create(model="run", prompt="The", max_tokens=4000, stream=True) as stream:
    for chunk in stream:
        break  # the client leaves
greedy = client.completions.create(model="run", prompt=["The", "A"], temperature=0, logprobs=1, extra_body={"no_repeat_ngram": 0})
assert len(greedy.choices) == 2 and len(greedy.choices[0].logprobs.tokens) == len(greedy.choices[0].logprobs.token_logprobs)
drawn = client.completions.create(model="run", prompt="The", temperature=1.5, max_tokens=4, logprobs=3)
for token, value, top in zip(*(getattr(drawn.choices[0].logprobs, name) for name in ("tokens", "token_logprobs", "top_logprobs"))):
    assert 3 <= len(top) <= 4 and top[token] == value, drawn
for error, bad in (
    (openai.BadRequestError, dict(stop="")),
    (openai.BadRequestError, dict(suffix="x")),
    (openai.NotFoundError, dict(model="gpt-4")),
):
    try:
        client.completions.create(**{"model": "run", "prompt": "a", **bad})
    except error as e:
        assert e.type == "invalid_request_error" and e.param == next(iter(bad)), e
    else:
        raise AssertionError(f"{bad} was taken")
END_CLIENT
stop

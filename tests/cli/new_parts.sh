# Pooling, RMSNorm and rotary positions in one model, trained and frozen, or linear biases instead of the last; and
# Performer with redrawn features, linear attention and Linformer. Recomputation changes no bit, a resumed training
# equals an uninterrupted one, an exported model translates like its run, and unsupported uses give one line.
. "$(dirname "$0")/../tiny_run.sh"

cat >parts.yaml <<'END'
model: { d_model: 32, embeddings: all, norm: pre, norm_type: { type: rms, epsilon: 1e-6 },
         positions: { type: rotary, base: 500, share: 0.5 } }
encoder: { layers: (P1 R1 L1)*2 }
decoder: { layers: Q L }
kinds:
  L: { mixer: attention, heads: 2, ffn: 64 }
  R: { mixer: attention, heads: 4, ffn: 64, frozen: yes }
  P: { mixer: pooling, window: 5, ffn: 64, frozen: matrices }
  Q: { mixer: pooling, window: 4, heads: 2, ffn: 64, norm: post }
data: { vocab: vocab, train: train, valid: valid }
train: { max_updates: 20, max_tokens: 500, lr: 0.005, warmup: 10, log_every: 5, save_every: 10, keep_last: 2, threads: 2 }
valid: { every: 10, max_sentences: 5 }
END
for precision in fp32 bf16; do
  for recompute in none cheap block; do
    "$TARN" train --quiet parts.yaml --run $precision-$recompute --set train.precision=$precision \
      --set train.recompute=$recompute 2>errors.txt || fail "train, $precision, $recompute: $(cat errors.txt)"
  done
  same_runs $precision-none $precision-cheap
  same_runs $precision-none $precision-block
done
"$TARN" train --quiet parts.yaml --run halved --set train.max_updates=10 --set train.precision=bf16 2>errors.txt ||
  fail "train half: $(cat errors.txt)"
"$TARN" train --quiet --resume halved --set train.max_updates=20 2>errors.txt || fail "resume: $(cat errors.txt)"
same_runs bf16-none halved
for updates in 20 10; do
  "$TARN" train --quiet parts.yaml --run alibi-$updates --set train.precision=bf16 --set train.max_updates=$updates \
    --set model.positions='{ type: alibi, exponent: 5 }' 2>errors.txt || fail "train, alibi: $(cat errors.txt)"
done
"$TARN" train --quiet --resume alibi-10 --set train.max_updates=20 2>errors.txt || fail "resume, alibi: $(cat errors.txt)"
same_runs alibi-20 alibi-10
cmp -s <(log_of bf16-none) <(log_of alibi-20) && fail "linear biases change nothing"

# A model that no longer needs its recipe.
"$TARN" export --dense fp32-none exported.safetensors 2>errors.txt || fail "export: $(cat errors.txt)"
"$TARN" export --dense alibi-20 alibi.safetensors 2>errors.txt || fail "export, alibi: $(cat errors.txt)"
for model in fp32-none exported.safetensors alibi-20 alibi.safetensors; do
  "$TARN" translate --scores "$model" <corpus/valid.de >"$model.out" 2>errors.txt || fail "translate: $(cat errors.txt)"
done
cmp fp32-none.out exported.safetensors.out || fail "an exported model translates otherwise"
cmp alibi-20.out alibi.safetensors.out || fail "an exported model with linear biases translates otherwise"
[ -s fp32-none.out ] || fail "nothing was translated"

# Redrawn features depend only on the number of the update; 10 is not one at which they are drawn.
cat >linear.yaml <<'END'
model: { d_model: 32, embeddings: all, max_length: 64 }
encoder: { layers: (P1 F1)*2 A }
decoder: { layers: P A }
kinds:
  P: { mixer: performer, heads: 2, features: 20, redraw: 7, ffn: 64 }
  A: { mixer: linear_attention, heads: 2, ffn: 64, frozen: matrices }
  F: { mixer: linformer, heads: 2, rows: 4, ffn: 64, frozen: yes }
data: { vocab: vocab, train: train, valid: valid }
train: { max_updates: 20, max_tokens: 500, lr: 0.005, warmup: 20, log_every: 5, save_every: 20, threads: 2,
         precision: bf16 }
valid: { every: 10, max_sentences: 5 }
END
for run in redrawn:7:20 part:7:10 once:0:20; do
  IFS=: read -r name redraw updates <<<"$run"
  "$TARN" train --quiet linear.yaml --run "$name" --set kinds.P.redraw="$redraw" --set train.max_updates="$updates" \
    2>errors.txt || fail "train, $name: $(cat errors.txt)"
done
"$TARN" train --quiet --resume part --set train.max_updates=20 2>errors.txt || fail "resume, redrawn: $(cat errors.txt)"
same_runs redrawn part
cmp -s <(log_of redrawn) <(log_of once) && fail "features that are drawn anew change nothing"
"$TARN" export --dense redrawn redrawn.safetensors 2>errors.txt || fail "export, redrawn: $(cat errors.txt)"
for model in redrawn redrawn.safetensors; do
  "$TARN" translate --scores "$model" <corpus/valid.de >"$model.out" 2>errors.txt || fail "translate: $(cat errors.txt)"
done
cmp redrawn.out redrawn.safetensors.out || fail "an exported Performer translates otherwise"

# Validation sentences too long for position-dependent weights are left out, and translations end in time.
cat >synthesis.yaml <<'END'
model: { d_model: 32, embeddings: all, max_length: 12 }
encoder: { layers: S }
decoder: { layers: S }
kinds:
  S: { mixer: synthesizer_random, heads: 2, ffn: 64 }
data: { vocab: vocab, train: train, valid: valid }
train: { max_updates: 4, max_tokens: 500, lr: 0.005, threads: 2 }
valid: { every: 4, bleu: yes, max_sentences: 5 }
translate: { max_len_b: 300 }
END
"$TARN" train --quiet synthesis.yaml --run synthesis 2>errors.txt || fail "train, Synthesizer: $(cat errors.txt)"
grep -q 'left out of the validation loss' errors.txt || fail "no sentence of validation is too long: $(cat errors.txt)"

# INT8 files contain the weights rounded when translating with that precision, and no weights that a part looks up
# otherwise.
"$TARN" train --quiet synthesis.yaml --run rounded --set encoder.layers='H F' --set kinds.H='{ mixer: hypermixer }' \
  --set kinds.F='{ mixer: linformer, heads: 2, ffn: { type: product_keys, keys: 8, nearest: 4 } }' --set valid.bleu=no \
  2>errors.txt || fail "train, HyperMixer and Linformer: $(cat errors.txt)"
"$TARN" export --precision int8 rounded rounded.safetensors 2>errors.txt || fail "export in int8: $(cat errors.txt)"
for model in rounded rounded.safetensors; do
  "$TARN" translate "$model" --precision int8 <corpus/valid.de >"$model.int8" 2>errors.txt || fail "translate $model: $(cat errors.txt)"
done
cmp rounded.int8 rounded.safetensors.int8 || fail "a file of INT8 translates otherwise"

refused() {  # MESSAGE, options of plan
  local message=$1
  shift
  "$TARN" plan parts.yaml "$@" >out.txt 2>errors.txt && fail "plan with $* is accepted"
  grep -qF "$message" errors.txt || fail "plan with $*: $(cat errors.txt)"
}
refused 'did you mean "rotary"?' --set model.positions.type=rope
refused 'kinds.P.window: 6 is even' --set kinds.P.window=6
refused 'did you mean "window"?' --set kinds.P.pool_size=3
refused 'an even number' --set model.positions.share=0.3
refused 'out of range (0 < x <= 64)' --set model.positions='{ type: alibi, exponent: 65 }'
refused 'reads later tokens too' --set kinds.Q='{ mixer: linformer }'
refused 'are fewer than model.max_length' --set kinds.P='{ mixer: linformer, tokens: 3 }'
refused 'did you mean "features"?' --set kinds.P='{ mixer: performer, nb_features: 3 }'
refused 'kinds.P.redraw: the whole layer is frozen' --set kinds.P='{ mixer: performer, redraw: 3, frozen: yes }'
refused 'kinds.P.redraw: must be 0 with train.average' --set kinds.P='{ mixer: performer, redraw: 3 }' \
  --set train.average=2

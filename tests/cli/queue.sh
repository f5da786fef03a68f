#!/usr/bin/env bash
# tarn sweep --queue: runs of two sweeps until one comparison is decided and the other has all its seeds, with a kill and a
# stop in between; each run is recorded, and committed to git where there is one. What is wrong with one folder is said in a
# line and keeps no other from going on.
set -euo pipefail
. "$(dirname "$0")/../tiny_run.sh"
# Commits are to the repository of this folder or none, never to one above it.
export GIT_CEILING_DIRECTORIES=${PWD%/*} GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b

description() {  # NAME: sweep.yaml from standard input
  mkdir -p "results/$1"
  sed 's/max_updates: 60/max_updates: 12/; s/^valid: .*/valid: { every: 4, bleu: no }/' model.yaml >"results/$1/base.yaml"
  cat >"results/$1/sweep.yaml"
}
description clear <<'END'
base: base.yaml
baseline: regular
seeds: [1, 2]
parallel: 2
threads: 1
sequential: { max_seeds: 4, spending: pocock, equivalence: 0.01 }
variants:
  regular: {}
  slow: { train.lr: 0.0001 }
END
description close <<'END'
base: base.yaml
baseline: regular
seeds: [7]
parallel: 1
threads: 1
sequential: { max_seeds: 3, looks: [3] }
variants:
  regular: {}
  near: { train.lr: 0.00500001 }
END
printf '# Is it?\n\n    examples/make.sh OUT \\\n      --small\033\n    tarn record OUT\n' >results/clear/question.md
echo "no folder" >results/notes.md
queue() { "$TARN" sweep --queue "$@" --output out; }

# Options.
refuse 2 'needs folders of records' "$TARN" sweep --queue --output out
refuse 2 'budget: expected a time above 0' "$TARN" sweep --queue results/clear --output out --budget soon
refuse 2 'commit is for --queue' "$TARN" sweep results/clear/sweep.yaml --output out --commit
refuse 2 'queue runs here what it chooses, without --only' "$TARN" sweep --queue results/clear --output out --only slow/seed-1
refuse 2 'queue runs here what it chooses, without --interval' "$TARN" sweep --queue results/clear --output out --interval 5
mkdir -p other/clear
refuse 2 'results/clear and other/clear have the same name' queue results/clear other/clear
rm -r other

# Data are looked for in out/NAME, and the command that makes them is named; and a design is needed.
mv results/close/sweep.yaml kept.yaml
sed '/^sequential/d' kept.yaml >results/close/sweep.yaml
! queue results/* --dry-run >out.txt 2>error.txt || fail "without data"
[ "$(wc -l <error.txt)" -eq 2 ] || fail "not a line each: $(cat error.txt)"
grep -q 'left out: results/clear: .*data are looked for in out/clear, prepared by the command of question.md: examples/make.sh OUT --small?$' error.txt ||
  fail "$(cat error.txt)"
grep -q 'results/close/sweep.yaml: it has no key sequential' error.txt || fail "$(cat error.txt)"
mv kept.yaml results/close/sweep.yaml
mkdir -p out/close
for name in clear close; do ln -s ../../vocab ../../train.tarn ../../valid.tarn "out/$name/"; done
queue results/* --dry-run >out.txt || fail "dry run"
grep -q '^next: .* seed [17], about .* of training: for the first look at .* (3 seeds): 6 runs, .* s in all' out.txt ||
  fail "$(cat out.txt)"
# Machines that share the folders choose different runs.
for share in 1 2; do queue results/clear --dry-run --share $share/2 --json >share$share.txt || fail "share $share"; done
[ "$(jq -c '[.next.variant, .next.seed]' share1.txt)" != "$(jq -c '[.next.variant, .next.seed]' share2.txt)" ] || fail "shares: $(cat share1.txt share2.txt)"
refuse 2 'share: expected I/N' queue results/clear --dry-run --share 3/2
refuse 1 'results: it has no sweep.yaml, but folders in it have: give results/\*' queue results --dry-run
queue results/clear --dry-run --budget '0.001 s' >out.txt || fail "a small budget"
grep -q 'closed by the budget: the next look takes' out.txt && grep -q '^every comparison is decided or closed: nothing to do' out.txt || fail "$(cat out.txt)"
[ ! -e results/clear/sweep.json ] && [ ! -e out/clear/runs ] || fail "a dry run writes"

# A fine-tuning waits for its body.
description tuned <<'END'
base: base.yaml
baseline: regular
seeds: [1, 2]
parallel: 2
threads: 1
sequential: { max_seeds: 3 }
set: { train.init_from: "../clear/runs/regular/seed-{seed}" }
variants:
  regular: {}
  slow: { train.lr: 0.0001, train.init_from: out/none.safetensors }
END
mkdir out/tuned
for name in vocab train.tarn valid.tarn; do ln -s ../../$name "out/tuned/$name"; done
queue results/tuned --dry-run >out.txt || fail "without bodies"
grep -q '^6 runs of it wait for the end of the training that train.init_from names, the first for that of out/tuned/../clear/runs/regular/seed-1$' out.txt &&
  grep -q '^no run can be taken now$' out.txt || fail "without bodies: $(cat out.txt)"
mkdir -p out/clear/runs/regular/seed-2
queue results/tuned --dry-run --json | jq -e '.sweeps[0] | .waiting == 6' >/dev/null || fail "a body that is not trained yet"
mkdir -p out/tuned/out && : >out/tuned/out/none.safetensors
queue results/tuned --dry-run | grep -q '^next: tuned: slow seed 1, ' || fail "a body as a file"
echo '{}' >out/clear/runs/regular/seed-2/result.json
queue results/tuned --dry-run --json | jq -e '.sweeps[0].waiting == 3' >/dev/null || fail "a body without weights, such as a copied one"
: >out/clear/runs/regular/seed-2/checkpoint_last.safetensors
queue results/tuned --dry-run --json | jq -e '.sweeps[0].waiting == 2' >/dev/null ||
  fail "a body that is trained: $(queue results/tuned --dry-run --json)"
rm -r results/tuned out/tuned out/clear/runs

# Killed after the first record, stopped after the next, and ended by another start.
recorded() { [ "$(find results -name result.json | wc -l)" -ge "$1" ]; }
workers() { grep -l -a "[-]-only\|[r]uns/" /proc/[0-9]*/cmdline 2>/dev/null | while read -r p; do case $(readlink "${p%/cmdline}/cwd") in "$PWD"/out/*) echo "$p" ;; esac; done; }
no_workers() { [ -z "$(workers)" ]; }
git=no
echo >results/clear/lockstep.txt  # only the lock itself stays out of git
if command -v git >/dev/null && git init -q . 2>/dev/null; then git=yes; fi
"$TARN" sweep --queue results/* --output out >killed.txt 2>&1 &
pid=$!
within_two_minutes recorded 1 || fail "nothing is recorded: $(cat killed.txt)"
refused=0
queue results/* >out.txt 2>error.txt || refused=$?
if [ $refused -ne 0 ]; then grep -q 'another process' error.txt || fail "two queues: $(cat error.txt)"; fi
kill -KILL $pid 2>/dev/null || true
wait $pid 2>/dev/null || true
within_two_minutes no_workers || fail "processes outlive the queue: $(workers)"
before=$(find results -name result.json | wc -l)
"$TARN" sweep --queue results/* --output out --commit >stopped.txt 2>error.txt &
pid=$!
further() { recorded $((before + 1)) || gone $pid; }
within_two_minutes further || fail "it does not go on: $(cat stopped.txt error.txt)"
kill -TERM $pid 2>/dev/null || true
got=0
wait $pid || got=$?
[ $got -eq 0 ] || { [ $got -eq 143 ] && grep -q 'stopped, all is saved; the same command goes on' error.txt; } || fail "stopped: $got $(cat error.txt)"
queue results/* --commit >out.txt 2>error.txt || fail "going on: $(cat out.txt error.txt)"
grep -Eq '^slow +[12] of 2 +[34] .* worse$' out.txt || fail "not decided: $(cat out.txt)"
grep -Eq '^near +1 of 1 +3 .* undecided with all 3 seeds$' out.txt || fail "not closed: $(cat out.txt)"
[ -d results/close/near/seed-9 ] && [ ! -d results/close/near/seed-10 ] || fail "seeds follow those of the file: $(ls results/close/near)"
[ "$(find results -name 'checkpoint*' | wc -l)" -eq 0 ] || fail "weights are recorded"
if [ $git = yes ]; then
  git log --format=%s >commits.txt
  grep -q '^results: record .* of c' commits.txt || fail "nothing is committed: $(cat stopped.txt out.txt)"
  git ls-files --error-unmatch results/clear/slow/seed-1/result.json >/dev/null || fail "a record is not in git"
  git ls-files --error-unmatch results/clear/lockstep.txt >/dev/null || fail "not committed: $(git status --short)"
  [ -z "$(git ls-files results/clear/lock out)" ] || fail "more is committed: $(git ls-files)"
fi

# A look waits for all of its seeds, and what one machine recorded stays when another has made the same run.
cp -r results/clear partial && rm -r partial/slow/seed-2
"$TARN" compare partial --json | jq -e '.configurations[1].sequential | .looks == 0 and .decision == "open" and .p == 1' >/dev/null ||
  fail "a look at fewer seeds: $("$TARN" compare partial --json)"
sed -i 's/"seconds": [0-9.e-]*/"seconds": 99/' out/close/runs/near/seed-8/result.json

# All is decided: nothing is run, and a record that was lost is made again. A commit that fails does not stop the queue.
rm -r results/clear/slow/seed-3
! GIT_DIR=/nonexistent queue results/* --commit >out.txt 2>error.txt || fail "without git"
grep -q 'out/close/runs/near/seed-8: the record has another result of this run, which it keeps: results/close/near/seed-8' error.txt &&
  ! grep -q '"seconds": 99' results/close/near/seed-8/result.json || fail "another machine's run: $(cat error.txt)"
grep -q '^uncommitted clear' out.txt && grep -q 'not committed: results/clear: ' error.txt || fail "$(cat out.txt error.txt)"
! grep -q '^started' out.txt && [ -d results/clear/slow/seed-3 ] || fail "recorded again, not trained again: $(cat out.txt)"
# A .gitignore may name the lock.
if [ $git = yes ]; then
  printf 'results/*/lock*\n' >.gitignore
  rm -r results/clear/slow/seed-3
  echo later >results/clear/note.txt
  queue results/* --commit >out.txt 2>error.txt || fail "with .gitignore: $(cat out.txt error.txt)"
  ! grep -q '^uncommitted' out.txt && git ls-files --error-unmatch results/clear/note.txt >/dev/null || fail "not committed: $(cat out.txt error.txt)"
fi
queue results/* --json >out.txt || fail "json"
[ "$(jq -r 'select(.kind == "state") | .sweeps[].comparisons[].decision' out.txt | tr '\n' ' ')" = "worse full " ] || fail "$(cat out.txt)"

# A run that another folder has recorded is copied, unless its data are others.
two_variants() {  # NAME LR: "all" with this learning rate, and "slower"
  description "$1" <<END
base: base.yaml
baseline: all
seeds: [1, 2, 3]
parallel: 2
threads: 1
sequential: { max_seeds: 3, spending: pocock }
variants:
  all: { train.lr: $2 }
  slower: { train.lr: 0.0001 }
END
  mkdir -p "out/$1"
  ln -s ../../vocab ../../train.tarn ../../valid.tarn "out/$1/"
}
two_variants like 0.005
two_variants unlike 0.005
rm out/unlike/train.tarn
ln -s ../../valid.tarn out/unlike/train.tarn
queue results/like results/clear --dry-run | grep -q '^next: like: .* copied from results/clear, for the first look at slower (3 seeds): 6 runs, ' ||
  fail "no copy: $(queue results/like results/clear --dry-run)"
queue results/like results/clear >out.txt 2>error.txt || fail "copies: $(cat out.txt error.txt)"
[ "$(grep -c '^started .*copied from results/clear' out.txt)" -eq 6 ] || fail "not copied: $(cat out.txt)"
for seed in 1 2 3; do
  cmp results/clear/slow/seed-$seed/result.json results/like/slower/seed-$seed/result.json || fail "another run than that of clear"
  grep -q "\"from\": \"clear/slow/seed-$seed\"" results/like/slower/seed-$seed/reused.json || fail "the record does not say where it is from"
done
"$TARN" compare results/like --json | jq -e '[.configurations[].runs[].reused] | length == 6 and (map(select(startswith("clear/"))) | length) == 6' >/dev/null ||
  fail "compare does not say where runs are from"
"$TARN" compare results/clear results/like >out.txt && grep -q '6 runs are copies of trainings that stand here twice, so verdicts take one for two: .*results/like/all/seed-1' out.txt ||
  fail "compare does not say that runs are copies: $(cat out.txt)"
# A copy of a copy names the run that was trained.
mkdir alike
mv results/like alike/again
mkdir out/again
ln -s ../../vocab ../../train.tarn ../../valid.tarn out/again/
cp -r alike/again alike/like
rm -r alike/again/{all,slower,sweep.json} out/like/runs
queue alike/again alike/like >out.txt 2>error.txt || fail "copies of copies: $(cat out.txt error.txt)"
grep -q '"from": "clear/slow/seed-1"' alike/again/slower/seed-1/reused.json || fail "not the first: $(cat alike/again/slower/seed-1/reused.json)"
# Runs of another version are trained again, and so are those whose weights others begin with.
cp -r results/clear old
find old -name result.json -exec sed -i 's/"version": "[^"]*"/"version": "0.0.1"/' {} +
rm -r alike/again/{all,slower,sweep.json} out/again/runs
mkdir old.d && mv old old.d/clear
! queue alike/again old.d/clear --dry-run | grep -q 'copied from' || fail "copies of another version"
mkdir -p alike/tuned && cp results/clear/base.yaml alike/tuned/
printf 'base: base.yaml\nbaseline: a\nseeds: [1, 2]\nparallel: 1\nthreads: 1\nsequential: { max_seeds: 3 }\nset: { train.init_from: "../again/./runs/slower/seed-{seed}/checkpoint_last.safetensors" }\nvariants: { a: {}, b: { train.lr: 0.0001 } }\n' >alike/tuned/sweep.yaml
mkdir out/tuned
ln -s ../../vocab ../../train.tarn ../../valid.tarn out/tuned/
queue alike/again alike/tuned results/clear --dry-run >out.txt || fail "bodies: $(cat out.txt)"
grep -q '^next: again: all seed .* copied from' out.txt || fail "a baseline is no body: $(cat out.txt)"
queue alike/again alike/tuned results/clear >out.txt 2>&1 || true
[ "$(grep -c '^started .*again: all .*copied from' out.txt)" -eq 3 ] && [ "$(grep -c '^started .*again: slower .*copied from' out.txt)" -eq 0 ] &&
  [ ! -e alike/again/slower/seed-1/reused.json ] || fail "bodies are copied: $(cat out.txt)"
rm -r alike old.d out/again out/tuned
# Two folders with the same runs train each once: while one has it at work the other waits. A failed one is no copy.
two_variants one 0.0007
two_variants two 0.0007
queue results/one results/two >out.txt 2>error.txt || fail "two at once: $(cat out.txt error.txt)"
[ "$(grep -c '^started' out.txt)" -eq 12 ] && [ "$(grep -c '^started .*copied from results/' out.txt)" -eq 6 ] || fail "trained twice: $(cat out.txt)"
for variant in all slower; do
  for seed in 1 2 3; do cmp results/{one,two}/$variant/seed-$seed/result.json || fail "another run"; done
done
rm -r results/{one,two}/{all,slower,sweep.json} out/{one,two}/runs
rm out/two/valid.tarn
ln -s ../../train.tarn out/two/valid.tarn
queue results/one results/two >out.txt 2>error.txt || fail "other validation data: $(cat out.txt error.txt)"
! grep -q 'copied from' out.txt || fail "copied though validated otherwise: $(cat out.txt)"
rm -r results/{one,two} out/{one,two}
queue results/unlike results/clear >out.txt 2>error.txt || fail "other data: $(cat out.txt error.txt)"
[ -z "$(find results/unlike -name reused.json)" ] && [ -d results/unlike/slower/seed-3 ] || fail "copied from other data: $(cat out.txt)"
rm -r results/unlike

# The verdict of comparisons and pages.
"$TARN" compare results/clear --json | jq -e '.sequential.spending == "pocock" and (.configurations[1].sequential | .decision == "worse" and .p <= 0.05 and .looks >= 1)' >/dev/null ||
  fail "compare: $("$TARN" compare results/clear --json)"
"$TARN" compare results/clear --json | jq -e '.configurations[1] | .verdicts.best.p == .sequential.p and .verdicts.best.decision == "worse"' >/dev/null ||
  fail "another verdict beside the plan's: $("$TARN" compare results/clear --json)"
"$TARN" compare results/close >out.txt && grep -q '^best .* against regular by the sequential plan: up to ' out.txt && ! grep -q '^best .* comparison.*(Holm)$' <(grep -v 'by the sequential plan' out.txt) || fail "compare: $(cat out.txt)"
"$TARN" report results/clear --output page >/dev/null && grep -q 'judged by the sequential design' page/report.md || fail "report: $(cat page/report.md)"
rm results/notes.md
echo '# Near?' >results/close/question.md
mkdir documents
TARN_RESULTS=$PWD/results TARN_DOCUMENTS=$PWD/documents TARN_RECIPES=$PWD/recipes "$TARN_SOURCE_DIR/scripts/results.sh" >out.txt || fail "pages"
grep -q 'looked at after 3, 4 seeds (p counts the looks, by pocock spending of 0.05, and 1 comparison): better: none; worse: slow; equivalent within 0.01: none' results/clear/README.md ||
  fail "$(cat results/clear/README.md)"
grep -Eq '^\| near \| .* \| 1 of 1 \| undecided with all 3 seeds \|$' results/close/README.md || fail "$(cat results/close/README.md)"

# Damaged designs.
damaged() {  # PATTERN FILTER
  jq "$2" results/clear/sweep.json >partial/sweep.json
  refuse 1 "partial/sweep.json: $1" "$TARN" compare partial
}
damaged '"sequential": looks: expected ascending numbers of seeds, from 3 to max_seeds' '.sequential.looks = [4, 3]'
damaged '"sequential": "looks" must be a list of at most 100' '.sequential.looks = [range(200)]'
damaged '"seeds": 1 is given twice' '.seeds = [1, 2, 3, 1]'
damaged '"sequential": expected max_seeds numbers in "seeds", and "first" from 1 to as many' '.sequential.first = 9'

# Another plan after the runs were seen, or a first one, and damaged records.
cp results/close/sweep.yaml kept.yaml
sed -i 's/"max_seeds": "3"/"max_seeds": "4"/; s/"looks": \["3"\]/"looks": ["3", "4"]/' results/close/sweep.yaml
refuse 1 'results/close/sweep.yaml: sequential or seeds are not those of its records' queue results/close --quiet
mv kept.yaml results/close/sweep.yaml
cp results/close/sweep.json kept.json
jq 'del(.sequential)' kept.json >results/close/sweep.json
refuse 1 'results/close/sweep.yaml: sequential was added after runs were recorded' queue results/close --quiet
refuse 2 'out/close/runs has the key sequential, but runs were recorded in results/close before' "$TARN" record out/close/runs --output results/close
mv kept.json results/close/sweep.json
echo '{' >results/close/near/seed-8/result.json
! queue results/* >out.txt 2>error.txt || fail "a damaged record"
[ "$(wc -l <error.txt)" -eq 1 ] && grep -q 'left out: results/close/near/seed-8/result.json' error.txt || fail "$(cat error.txt)"
grep -Eq '^slow .* worse$' out.txt || fail "the other folder: $(cat out.txt)"
exit 0

// The names of the files of a run directory and of a sweep's folder (docs/training.md, docs/experiments.md). They are
// defined only here: code that reads or writes one of these files includes this header.
#ifndef TARN_RUN_NAMES_H
#define TARN_RUN_NAMES_H

// A run directory.
#define TARN__RUN_CONFIG "config.yaml"  // the resolved configuration, which identifies a run directory
#define TARN__RUN_LOG "log.jsonl"
#define TARN__RUN_RESULT "result.json"  // how the training ended
#define TARN__RUN_LOCK "lock"
#define TARN__RUN_EVENTS "events.out.tfevents."  // prefix of TensorBoard's files
#define TARN__RUN_CACHE "frozen_cache.bin"       // outputs of frozen layers (train.cache_frozen)
// Checkpoints. The number of updates replaces the last one's %.
#define TARN__CHECKPOINT_LAST "checkpoint_last.safetensors"
#define TARN__CHECKPOINT_BEST "checkpoint_best.safetensors"
#define TARN__CHECKPOINT_AVERAGE "checkpoint_average.safetensors"
#define TARN__CHECKPOINT_NUMBERED "checkpoint_%lld.safetensors"
#define TARN__CHECKPOINT_ANY "checkpoint_*.safetensors"  // for glob()
// Scores of a test set (tarn test).
#define TARN__RUN_TEST "test.json"
#define TARN__RUN_HYPOTHESES "test.hyp"
#define TARN__RUN_PAIRS "test.pairs"  // of BLiMP
#define TARN__RUN_BLEU "test.bleu"    // statistics of sentences in place of test.hyp, in a record (tarn record)
// Files that a sweep adds to a run.
#define TARN__RUN_ERRORS "errors.txt"   // standard error of a process
#define TARN__RUN_REUSED "reused.json"  // the source of a copied run

// A folder of runs with several seeds, and the folder of a variant: a run directory for each seed.
#define TARN__RUN_SEED "seed-"  // the number follows
#define TARN__RUN_SEED_PATH "%s/" TARN__RUN_SEED "%lld"

// A sweep's folder, in addition to a folder for each variant.
#define TARN__SWEEP_FILE "sweep.yaml"
#define TARN__SWEEP_BASE "base.yaml"
#define TARN__SWEEP_JSON "sweep.json"
#define TARN__SWEEP_JOBS "slurm"  // a folder: sweep/submissions.h
// In the folder of a variant, with the number of a seed and one of the words below: the lock of its run, a copy in
// progress, and how often the jobs of the run were over.
#define TARN__SWEEP_SEED_FILE "." TARN__RUN_SEED "%lld.%s"
#define TARN__SWEEP_LOCK "lock"
#define TARN__SWEEP_PARTIAL "partial"
#define TARN__SWEEP_REQUEUED "requeued"

#endif

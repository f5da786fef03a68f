// What a training cost beside time: energy, operations, and bytes that went to and from memory.
#ifndef TARN_COST_H
#define TARN_COST_H

#ifdef __cplusplus
extern "C" {
#endif

// NAN where a number is not known. All are of training time alone, as seconds are (train.clock): neither validation nor
// saving counts, and what a training that was resumed took in all its sessions does. Energy is known where every part
// of the training was measured or estimated.
typedef struct tarn_cost {
  // What energy was measured by; several, joined by "+", where parts of the training were measured differently, or a
  // GPU beside the processors; NULL: energy is not known. All but the last are of the whole machine, whoever uses it.
  //   "rapl"      counters of the processors' packages and of their memory (Linux' powercap)
  //   "nvml"      counters of NVIDIA's GPUs, where an accelerator computes
  //   "battery"   the power that the machine's battery gave while it discharged
  //   "estimate"  processor seconds of the process, times train.core_watts: no measurement
  const char *source;
  double joules;        // of the training
  double epoch_joules;  // of one pass over the data, mean of the training
  double best_joules;   // until the best validation by valid.metric
  double co2_grams;     // of `joules`, by train.co2_per_kwh
  // Floating-point operations of the graphs that ran, a multiply-add counts two, as tarn/plan.h counts them: products
  // and what else is counted there, without the optimiser. Not known with optimiser ridge, whose sums are not in
  // graphs.
  double operations;
  double token_operations;  // of one token (source and target tokens counted alike), mean of the training
  double best_operations;   // until the best validation by valid.metric
  double moved_bytes;       // read and written by these graphs and by the optimiser, as tarn/profile.h counts them
} tarn_cost;

#ifdef __cplusplus
}
#endif
#endif

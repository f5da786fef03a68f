// A parameter by its names in a format of the package transformers and in ours.
#ifndef TARN_FOREIGN_HF_NAME_H
#define TARN_FOREIGN_HF_NAME_H

// Ours may consist of several of theirs, stacked.
enum { TARN__HF_PARTS = 3 };
typedef struct tarn__hf_name {
  const char *theirs[TARN__HF_PARTS];  // of a layer: "attention.self.query.weight" (of "encoder.layer.0.")
  const char *ours;                    // "self_attn.qkv.weight" (of its set)
} tarn__hf_name;

#endif

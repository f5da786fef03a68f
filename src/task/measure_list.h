// The list of measures, one line each, which defines the number, the word and the line in the documentation. The
// definition and computation are in measures/measure_WORD.c. New measures go last: numbers are compiled into programs.
#ifndef TARN_TASK_MEASURE_LIST_H
#define TARN_TASK_MEASURE_LIST_H

#define TARN__MEASURE_LIST(X)                                                                                     \
  X(LOSS, loss, "validation loss per target token")                                                               \
  X(NLL, nll, "the same without label smoothing, in nats")                                                        \
  X(PPL, ppl, "perplexity per target token: exp(nll)")                                                            \
  X(BLEU, bleu, "BLEU of the translated validation sentences")                                                    \
  X(BPC, bpc,                                                                                                     \
    "bits per character of the validation text; of language models whose vocabulary "                             \
    "is one of bytes or characters, or whose validation text is a stream")                                        \
  X(BPB, bpb, "bits per byte of it, likewise")                                                                    \
  X(ACCURACY, accuracy,                                                                                           \
    "share of masked tokens whose likeliest word, or of sentences or words whose likeliest "                      \
    "class, is the right one")                                                                                    \
  X(F1, f1, "F1 of the second class, or, of more than two, the mean of those of all; of words, that of entities") \
  X(MCC, mcc, "Matthews correlation of the classes")                                                              \
  X(MSE, mse, "mean squared error of the numbers")                                                                \
  X(PEARSON, pearson, "Pearson's correlation of the numbers")                                                     \
  X(SPEARMAN, spearman, "Spearman's correlation of the numbers")

#endif

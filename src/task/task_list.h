// The list of tasks, one line each, which defines the number, the word of model.task and the line in the documentation.
// Each task is defined in its own file, whose entries are tarn__tasks_NAME. New tasks go last: numbers are compiled
// into programs.
#ifndef TARN_TASK_TASK_LIST_H
#define TARN_TASK_TASK_LIST_H

#define TARN__TASK_LIST(X)                                                                                       \
  X(TRANSLATION, translation, "translation", "from the sentences of a source to those of a target")              \
  X(LANGUAGE_MODEL, language, "language-model", "each token of a text from those before it")                     \
  X(MASKED_LANGUAGE_MODEL, masked, "masked-language-model",                                                      \
    "tokens of a text that are hidden from the model, from all others (Devlin et al. 2019, Liu et "              \
    "al. 2019)")                                                                                                 \
  X(CLASSIFICATION, classification, "classification", "the class of a sentence, or of two")                      \
  X(REGRESSION, regression, "regression", "a number for a sentence, or for two")                                 \
  X(TAGGING, tagging, "tagging", "a label for each word of a sentence")                                          \
  X(IMAGES, images, "image-classification", "the class of an image, from its patches (Dosovitskiy et al. 2021)") \
  X(MASKED_TRANSLATION, masked_translation, "masked-translation",                                                \
    "hidden tokens of a target from all others and the source: CMLM, translated by mask-predict (Ghazvininejad " \
    "et al. 2019)")                                                                                              \
  X(LEVENSHTEIN, levenshtein, "levenshtein",                                                                     \
    "edits of a target, until they leave it as it is: the Levenshtein Transformer (Gu et al. 2019)")

#define TARN__TASK_NUMBER(NAME, entries, word, text) TARN__LEARNS_##NAME,
typedef enum tarn__learns { TARN__TASK_LIST(TARN__TASK_NUMBER) TARN__LEARNS_COUNT } tarn__learns;
#undef TARN__TASK_NUMBER

#endif

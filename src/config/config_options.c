#include "config/config_options.h"

#include "task/measure_entry.h"
#include "task/task_list.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof *(array)))
#define WORD(value, word, text) {word, text, value},

static const tarn_config_word norm_words[] = {TARN_NORM_MAP(WORD)};
static const tarn_config_word final_norm_words[] = {TARN_FINAL_NORM_MAP(WORD)};
static const tarn_config_word gate_words[] = {TARN_GATE_MAP(WORD)};
static const tarn_config_word embeddings_words[] = {TARN_EMBEDDINGS_MAP(WORD)};
static const tarn_config_word frozen_embeddings_words[] = {TARN_FROZEN_EMBEDDINGS_MAP(WORD)};
static const tarn_config_word frozen_words[] = {TARN_FROZEN_MAP(WORD)};
static const tarn_config_word init_words[] = {TARN_INIT_MAP(WORD)};
static const tarn_config_word backskip_words[] = {TARN_BACKSKIP_MAP(WORD)};
static const tarn_config_word optimiser_words[] = {TARN_OPTIMISER_MAP(WORD)};
static const tarn_config_word schedule_words[] = {TARN_SCHEDULE_MAP(WORD)};
static const tarn_config_word precision_words[] = {TARN_PRECISION_MAP(WORD)};
static const tarn_config_word moments_words[] = {TARN_MOMENTS_MAP(WORD)};
static const tarn_config_word reduce_words[] = {TARN_REDUCE_MAP(WORD)};
static const tarn_config_word fp32_words[] = {TARN_FP32_MAP(WORD)};
static const tarn_config_word recompute_words[] = {TARN_RECOMPUTE_MAP(WORD)};
static const tarn_config_word clock_words[] = {TARN_CLOCK_MAP(WORD)};
#define MEASURE(NAME, word, text) {#word, text, TARN__METRIC_##NAME},
static const tarn_config_word metric_words[] = {TARN__MEASURE_LIST(MEASURE)};
static const tarn_config_word architecture_words[] = {TARN_ARCHITECTURE_MAP(WORD)};
#define TASK(NAME, entries, word, text) {word, text, TARN__LEARNS_##NAME},
static const tarn_config_word task_words[] = {TARN__TASK_LIST(TASK)};
static const tarn_config_word pool_words[] = {TARN_POOL_MAP(WORD)};
static const tarn_config_word iterated_words[] = {TARN_ITERATED_MAP(WORD)};
static const tarn_config_word iterating_words[] = {TARN_ITERATING_MAP(WORD)};
static const tarn_config_word rule_words[] = {TARN__PLACE_RULE_MAP(WORD)};

const char *tarn_fp32_name(tarn_fp32 fp32) { return (unsigned)fp32 < TARN_FP32_COUNT ? fp32_words[fp32].word : NULL; }

static const tarn_config_word tokenize_words[] = {
    {"13a", "mteval-v13a, the default of the field", TARN_BLEU_TOKENIZER_13A},
    {"intl", "international: at Unicode punctuation and symbols", TARN_BLEU_TOKENIZER_INTL},
    {"char", "every character is a word", TARN_BLEU_TOKENIZER_CHAR},
    {"none", "at white space only", TARN_BLEU_TOKENIZER_NONE},
};

#define BOOL(structure, field) TARN__KEY_BOOL(structure, field)
#define INTEGER(structure, field, low, high) TARN__KEY_INTEGER(structure, field, low, high)
#define REAL(structure, field, low, high) TARN__KEY_REAL(structure, field, low, high)
#define CHOICE(structure, field, list) TARN__KEY_WORD(structure, field, list)
#define PART(structure, field, of) TARN__KEY_PART(structure, field, TARN__TABLE_##of)
#define TEXT(structure, field) .type = TARN__OPTION_TEXT, .offset = offsetof(structure, field)
#define BELOW_MOST TARN__KEY_BELOW_MOST
#define ABOVE_LEAST TARN__KEY_ABOVE_LEAST

static const tarn__option model_options[] = {
    {"d_model", INTEGER(tarn_config_model, d_model, 1, 65536), .value = "512",
     .help = "width of every layer; even with sinusoidal positions", .also = "dim hidden_size dim-emb embed_dim"},
    {"norm", CHOICE(tarn_config_model, norm, norm_words), .value = "post",
     .help = "where the norm stands; default of kinds.NAME.norm", .also = "normalize_before"},
    {"norm_type", PART(tarn_config_model, norm_type, NORM), .later = true,
     .help = "which norm; default of kinds.NAME.norm_type", .also = "normalization normalisation norm_layer"},
    {"positions", PART(tarn_config_model, positions, POSITION), .help = "how positions are told apart",
     .also = "encoder_learned_pos decoder_learned_pos position_embeddings pos_emb"},
    {"max_length", INTEGER(tarn_config_model, max_length, 2, 1048576), .value = "1024", .unit = "tokens",
     .help = "longest sentence, end mark included; training leaves out longer pairs, translation cuts longer sentences",
     .also = "max_positions max_source_positions max-length"},
    {"dropout", REAL(tarn_config_model, dropout, 0, 1), BELOW_MOST, .value = "0.1",
     .help = "default of model.embedding_dropout and of kinds.NAME.dropout", .also = "transformer-dropout"},
    {"embedding_dropout", REAL(tarn_config_model, embedding_dropout, 0, 1), BELOW_MOST, .derived = "model.dropout",
     .help = "on the sum of embeddings and positions of encoder and decoder"},
    {"embeddings", CHOICE(tarn_config_model, embeddings, embeddings_words), .value = "decoder",
     .help = "which embedding matrices are one; of an encoder alone encoder_output or none",
     .also = "share_all_embeddings share_decoder_input_output_embed tied-embeddings tied-embeddings-all"},
    {"frozen_embeddings", CHOICE(tarn_config_model, frozen_embeddings, frozen_embeddings_words), .value = "none",
     .help = "input embeddings that keep their random first values, with learned positions of that side; the output "
             "layer is always trained",
     .also = "freeze_embeddings embedding-fix-src embedding-fix-trg freeze_embedding"},
    {"embedding_size", INTEGER(tarn_config_model, embedding_size, 0, 65536), .value = "0", .later = true,
     .help = "width of factorised embeddings, which are projected to d_model; even, below d_model; 0: "
             "d_model, without a projection",
     .also = "embedding_rank embedding_dim emb_dim"},
    {"embedding_std", REAL(tarn_config_model, embedding_std, 0, 100), ABOVE_LEAST, .derived = "1 / sqrt(their width)",
     .help = "standard deviation of the first values of embeddings, an output matrix of its own excepted",
     .also = "input_scaling init_std"},
    {"embedding_scale", BOOL(tarn_config_model, embedding_scale), .value = "yes",
     .help = "multiply input embeddings by the square root of their width", .also = "no_scale_embedding"},
    {"output_bias", BOOL(tarn_config_model, output_bias), .value = "no",
     .help = "add a trained bias to the logits; masked language models and classifiers always have one",
     .also = "output_projection_bias"},
    {"output_rank", INTEGER(tarn_config_model, output_rank, 0, 65536), .value = "0",
     .help = "rank of the output layer: its matrix is the product of two, d_model to rank and rank to vocabulary; at "
             "least 2; 0: one matrix; only with embeddings none or encoder_decoder",
     .also = "rank output_dim bottleneck"},
    {"output_mixtures", INTEGER(tarn_config_model, output_mixtures, 0, 64), .value = "0", .later = true,
     .help = "softmaxes that the output layer mixes, each of a latent vector of its own; at least 2; "
             "0: one softmax; only in translation and language models",
     .also = "n_experts mixtures num_softmaxes mixture_of_softmaxes mos"},
    {"adaptive_input_cutoff", .type = TARN__OPTION_INTEGERS,
     .offset = offsetof(tarn_config_model, adaptive_input_cutoff), .least = 1, .most = 1 << 24, .later = true,
     .help = "adaptive input: ids at which the bands of the vocabulary with narrower vectors begin; ascending, below "
             "the size of the vocabulary, at most 7 of them; none: one band",
     .also = "adaptive_input cutoffs adaptive_cutoff adaptive-input-cutoff"},
    {"adaptive_input_factor", REAL(tarn_config_model, adaptive_input_factor, 1, 65536), .value = "4", .later = true,
     .help = "band b of the input, from 0, has vectors of d_model / factor^b numbers, rounded down, and a projection",
     .also = "adaptive-input-factor"},
    {"adaptive_softmax_cutoff", .type = TARN__OPTION_INTEGERS,
     .offset = offsetof(tarn_config_model, adaptive_softmax_cutoff), .least = 1, .most = 1 << 24, .later = true,
     .help = "adaptive softmax: ids at which the bands of the vocabulary with softmaxes of their own begin; "
             "ascending, below the size of the vocabulary, at most 7 of them; none: one softmax",
     .also = "adaptive_softmax softmax_cutoff adaptive-softmax-cutoff"},
    {"adaptive_softmax_factor", REAL(tarn_config_model, adaptive_softmax_factor, 1, 65536), .value = "4", .later = true,
     .help = "band b of the output, from 1, reads the states projected to d_model / factor^b numbers, rounded down",
     .also = "div_value adaptive-softmax-factor"},
    {"adaptive_softmax_dropout", REAL(tarn_config_model, adaptive_softmax_dropout, 0, 1), BELOW_MOST, .value = "0",
     .later = true, .help = "on the states that the adaptive softmax reads, and on their projections",
     .also = "adaptive-softmax-dropout"},
    {"tie_adaptive_proj", BOOL(tarn_config_model, tie_adaptive_proj), .value = "no", .later = true,
     .help = "the projections of the adaptive softmax are the transposes of the adaptive input's, where both share "
             "their tables",
     .also = "tie_adaptive_weights tie-adaptive-proj"},
    {"share_stacks", BOOL(tarn_config_model, share_stacks), .value = "no", .later = true,
     .help = "a set that encoder and decoder both name, such as L1, is one set of weights; cross-attention is the "
             "decoder's own",
     .also = "share_encoder_decoder shared_stacks tie_encoder_decoder"},
    {"activation", PART(tarn_config_model, activation, ACTIVATION),
     .help = "between the two products of an FFN; default of kinds.NAME.ffn.activation",
     .also = "activation_fn activation_function hidden_act"},
    {"architecture", CHOICE(tarn_config_model, architecture, architecture_words),
     .derived = "by the sections encoder and decoder", .later = true,
     .help = "which stacks the model has; the sections encoder and decoder say it too", .also = "arch model_type type"},
    {"task", CHOICE(tarn_config_model, task, task_words), .derived = "by model.architecture", .later = true,
     .help =
         "what the model learns: with an encoder and a decoder translation, of a decoder alone language-model, of an "
         "encoder alone masked-language-model, unless this says another task",
     .also = "objective criterion"},
    {"segments", INTEGER(tarn_config_model, segments, 0, 65536), .value = "0", .later = true,
     .help =
         "vectors added to the embeddings that tell the first sentence of a row from the second, where the data say "
         "where it begins; of an encoder alone",
     .also = "type_vocab_size token_type_embeddings num_segments segment_embeddings"},
    {"embedding_norm", BOOL(tarn_config_model, embedding_norm), .value = "no", .later = true,
     .help = "a norm on the sum of embeddings, positions and segments; a source and a target each have their own",
     .also = "layernorm_embedding encoder_normalize_before emb_layer_norm"},
    {"decoder_start", INTEGER(tarn_config_model, decoder_start, -1, 1 << 24), .value = "-1", .later = true,
     .help = "token that the decoder of a translation or language model reads first, by its id; -1: the end of "
             "sentence",
     .also = "decoder_start_token_id decoder_start_token bos_token_id"},
};

static const tarn__option stack_options[] = {
    {"layers", .type = TARN__OPTION_PATTERN, .offset = 0,
     .help = "pattern of kinds from the bottom to the top; this or place is required", .also = "pattern stack"},
    {"layers_to_keep", .type = TARN__OPTION_INTEGERS, .offset = offsetof(tarn_stack, layers_to_keep), .least = 1,
     .most = TARN_CONFIG_LAYERS,
     .help = "depths of the pattern that there are, from 1; the others are left out; none: all",
     .also = "encoder_layers_to_keep decoder_layers_to_keep keep prune"},
    {"layerdrop", REAL(tarn_stack, layerdrop, 0, 1), BELOW_MOST, .value = "0",
     .help = "probability that a training step leaves a layer out (LayerDrop)",
     .also = "encoder_layerdrop decoder_layerdrop layer_drop structured_dropout"},
    {"final_norm", CHOICE(tarn_stack, final_norm, final_norm_words), .value = "auto", .later = true,
     .help = "whether a norm stands behind the highest layer, of that layer's norm_type",
     .also = "encoder_norm decoder_norm final_layer_norm add_final_layer_norm no_decoder_final_norm"},
    {"pool_after", .type = TARN__OPTION_INTEGERS, .offset = offsetof(tarn_stack, pool_after), .least = 1,
     .most = TARN_CONFIG_LAYERS, .later = true,
     .help =
         "Funnel-Transformer, of an encoder: layers, from 1, after which the rows of a sentence are pooled, the mean "
         "of two neighbours each; ascending; none: rows stay as they are",
     .also = "block_sizes pool_layers pooling_layers funnel"},
    {"upsample_after", INTEGER(tarn_stack, upsample_after, 0, TARN_CONFIG_LAYERS), .value = "0", .later = true,
     .help = "with pool_after: layer after which each row is repeated for its tokens, and the output before the first "
             "pooling is added; the layers above are the Funnel-Transformer's decoder; 0: the output is pooled, for "
             "classification and regression",
     .also = "num_decoder_layers upsample"},
    {"transparent_attention", BOOL(tarn_stack, transparent_attention), .value = "no", .later = true,
     .help = "Transparent attention, of a decoder behind an encoder: the cross-attention of each layer reads its own "
             "trained mean of the embeddings and the outputs of all layers of the encoder",
     .also = "transparent encoder_layer_weights weighted_encoder_layers"},
    {"step_embeddings", BOOL(tarn_stack, step_embeddings), .value = "no", .later = true,
     .help = "Universal Transformer: before each step add sinusoids of the position and of the step's number; of a "
             "pattern that names one sequence of sets several times, such as L1*6",
     .also = "add_step_timing_signal add_position_timing_signal step_timing_signal_type timestep_embeddings"},
    {"act_threshold", REAL(tarn_stack, act_threshold, 0, 1), BELOW_MOST, .value = "0", .later = true,
     .help = "adaptive computation time: a token halts once the sum of its halting probabilities exceeds this, 0.99 in "
             "the paper; 0: every token runs every step",
     .also = "act_epsilon recurrence_type halting_threshold act"},
    {"act_loss_weight", REAL(tarn_stack, act_loss_weight, 0, 100), .value = "0.01", .later = true,
     .help = "with act_threshold: factor of the ponder cost, the mean of a token's steps plus its remainder, in what "
             "training minimises",
     .also = "ponder_cost time_penalty ponder_weight"},
};

static const tarn__option place_options[] = {
    {"reservoirs", INTEGER(tarn__placement, reservoirs, 0, TARN_CONFIG_LAYERS), .unit = "layers",
     .help = "how many layers are reservoirs; required", .also = "frozen"},
    {"of", INTEGER(tarn__placement, of, 1, TARN_CONFIG_LAYERS), .unit = "layers",
     .help = "depth of the stack; required", .also = "layers depth total"},
    {"rule", CHOICE(tarn__placement, rule, rule_words), .value = "alternate", .help = "where the reservoirs stand"},
    {"trained", TEXT(tarn__placement, trained), .value = "L", .help = "kind or named set of the other layers"},
    {"reservoir", TEXT(tarn__placement, reservoir), .value = "R", .help = "kind or named set of the reservoirs"},
};

static const tarn__option kind_options[] = {
    {"mixer", PART(tarn_kind, mixer, MIXER), .beside = true,
     .help = "token mixer of the layer; its own keys stand beside it", .also = "type"},
    {"ffn", PART(tarn_kind, channel, CHANNEL), .value = "1024", .number = "width",
     .help = "channel mixer of the layer: the inner width of a feed-forward network, or a map of type and keys; 0: the "
             "layer is its token mixer only",
     .also = "ffn_dim d_ff ffn_embed_dim transformer-dim-ffn channel"},
    {"residual", BOOL(tarn_kind, residual), .value = "yes",
     .help = "no: y = f(x) in place of x + f(x), without norm and FFN", .also = "skip residual_connection"},
    {"frozen", CHOICE(tarn_kind, frozen, frozen_words), .value = "no",
     .help = "what keeps its random initial values for ever; in the decoder of cross-attention too",
     .also = "freeze trained reservoir"},
    {"init", CHOICE(tarn_kind, init, init_words), .derived = "xavier if frozen is no, else orthogonal",
     .help = "initialisation of the projection weights", .also = "initializer initialiser initialisation"},
    {"init_gain", REAL(tarn_kind, init_gain, 0, 1000), ABOVE_LEAST, .value = "1", .later = true,
     .help = "factor on the projection weights as init draws them", .also = "gain init_scale scale"},
    {"norm", CHOICE(tarn_kind, norm, norm_words), .derived = "model.norm; pre for a layer without token mixer",
     .help = "where the norm stands", .also = "normalize_before"},
    {"norm_type", PART(tarn_kind, norm_type, NORM), .derived = "model.norm_type",
     .inherits = offsetof(tarn_config_model, norm_type), .later = true,
     .help = "which norm; at the top of a stack that of the highest layer of its pattern, kept or not",
     .also = "normalization normalisation norm_layer"},
    {"gate", CHOICE(tarn_kind, gate, gate_words), .value = "none", .later = true,
     .help = "what stands before each branch of the layer; not with norm fixup, which has a factor of its own",
     .also = "rezero resweight skipinit skip_init layer_scale layerscale branch_gain"},
    {"gate_init", REAL(tarn_kind, gate_init, -1000, 1000), .value = "0", .later = true,
     .help = "first value of the gates; not 0 where frozen is yes", .also = "init_values layer_scale_init"},
    {"dropout", REAL(tarn_kind, dropout, 0, 1), BELOW_MOST, .derived = "model.dropout",
     .help = "on the output of mixer, cross-attention and FFN, before the residual sum", .random = true},
};

static const tarn__option backskip_options[] = {
    {"method", CHOICE(tarn_backskip, method, backskip_words), .value = "none",
     .help = "what stands in for the backward pass of a frozen layer; in the decoder only of a layer without "
             "cross-attention"},
    {"refresh", INTEGER(tarn_backskip, refresh, 0, 1e9), .value = "10", .unit = "updates",
     .help = "every so many updates the true backward pass is done and compared; 0: never, not with predictor",
     .also = "every interval"},
};

static const tarn__option data_options[] = {
    {"vocab", TEXT(tarn_config_data, vocab), .help = "vocabulary of the source; training needs it", .also = "vocabs"},
    {"target_vocab", TEXT(tarn_config_data, target_vocab), .derived = "data.vocab", .help = "vocabulary of the target"},
    {"train", TEXT(tarn_config_data, train), .help = "prefix of the shards that tarn prepare wrote; training needs it",
     .also = "train-sets trainpref"},
    {"valid", TEXT(tarn_config_data, valid), .help = "prefix of the validation shards; without it nothing is validated",
     .also = "valid-sets validpref dev"},
    {"valid_reference", TEXT(tarn_config_data, valid_reference), .derived = "the shard's target, detokenized",
     .help = "raw target text of the validation set, one sentence a line, for BLEU", .also = "reference"},
};

_Static_assert(offsetof(tarn_config_train, seed_count) == offsetof(tarn_config_train, seeds) + sizeof(int64_t *),
               "the count of a list stands after its pointer");
_Static_assert(offsetof(tarn_config_model, adaptive_input_cutoffs) ==
                       offsetof(tarn_config_model, adaptive_input_cutoff) + sizeof(int64_t *) &&
                   offsetof(tarn_config_model, adaptive_softmax_cutoffs) ==
                       offsetof(tarn_config_model, adaptive_softmax_cutoff) + sizeof(int64_t *),
               "the count of a list stands behind it");
_Static_assert(offsetof(tarn_stack, keep_count) == offsetof(tarn_stack, layers_to_keep) + sizeof(int64_t *),
               "the count of a list stands after its pointer");
_Static_assert(offsetof(tarn_stack, pool_count) == offsetof(tarn_stack, pool_after) + sizeof(int64_t *),
               "the count of a list stands after its pointer");
_Static_assert(offsetof(tarn_config_train, freeze_count) == offsetof(tarn_config_train, freeze) + sizeof(tarn_freeze *),
               "the count of a list stands after its pointer");

static const tarn__option train_options[] = {
    {"seed", INTEGER(tarn_config_train, seed, 0, 4294967295.0), .value = "1",
     .help = "of initialisation, shuffling and dropout"},
    {"seeds", .type = TARN__OPTION_INTEGERS, .offset = offsetof(tarn_config_train, seeds), .least = 0,
     .most = 4294967295.0, .help = "one run for each of these, in place of seed; at most 1000"},
    {"max_updates", INTEGER(tarn_config_train, max_updates, 0, 1e12), .value = "50000", .unit = "updates",
     .help = "stop after so many optimiser steps; 0: no limit", .also = "max_update max_steps updates after-batches"},
    {"max_epochs", INTEGER(tarn_config_train, max_epochs, 0, 1e9), .value = "0", .unit = "epochs",
     .help = "stop after so many passes over the data; 0: no limit", .also = "max_epoch epochs after-epochs"},
    {"max_minutes", REAL(tarn_config_train, max_minutes, 0, 1e7), .value = "0", .unit = "minutes",
     .help = "stop after so much training time, validation and saving not counted; 0: no limit",
     .also = "stop_time_hours minutes"},
    {"clock", CHOICE(tarn_config_train, clock, clock_words), .value = "wall",
     .help = "what training time is, in max_minutes, log and result"},
    {"max_tokens", INTEGER(tarn_config_train, max_tokens, 1, 16777216), .value = "4096", .unit = "tokens",
     .help = "most source tokens and most target tokens of a batch", .also = "mini-batch-words"},
    {"max_sentences", INTEGER(tarn_config_train, max_sentences, 0, 16777216), .value = "0", .unit = "sentences",
     .help = "most sentences of a batch; 0: no limit", .also = "batch_size mini-batch"},
    {"accumulate", INTEGER(tarn_config_train, accumulate, 1, 65536), .value = "1", .unit = "batches",
     .help = "batches whose gradients are summed for an update", .also = "update_freq optimizer-delay"},
    {"optimiser", CHOICE(tarn_config_train, optimiser, optimiser_words), .value = "adam", .help = "update rule"},
    {"ridge", REAL(tarn_config_train, ridge, 0, 1e12), .value = "1e-6",
     .help = "with optimiser ridge: the penalty, which is added to the diagonal of the summed products of the states",
     .also = "regularization beta lambda alpha"},
    {"lr", REAL(tarn_config_train, lr, 0, 100), ABOVE_LEAST, .value = "0.0005",
     .help = "learning rate at the end of warm-up", .also = "learning_rate learn-rate"},
    {"beta1", REAL(tarn_config_train, beta1, 0, 1), BELOW_MOST, .value = "0.9",
     .help = "decay of the optimiser's first moment", .also = "betas adam_betas"},
    {"beta2", REAL(tarn_config_train, beta2, 0, 1), BELOW_MOST, .value = "0.98",
     .help = "decay of the optimiser's second moment"},
    {"eps", REAL(tarn_config_train, eps, 1e-30, 1), .value = "1e-8", .help = "added to the root of the second moment",
     .also = "adam_eps epsilon"},
    {"weight_decay", REAL(tarn_config_train, weight_decay, 0, 1), .value = "0",
     .help = "pull of all trained parameters towards 0, as the optimiser defines it"},
    {"schedule", CHOICE(tarn_config_train, schedule, schedule_words), .value = "inverse_sqrt",
     .help = "learning rate after warm-up", .also = "lr_scheduler lr_schedule lr-decay-inv-sqrt"},
    {"warmup", INTEGER(tarn_config_train, warmup, 0, 1e12), .value = "4000", .unit = "updates",
     .help = "updates in which the rate rises linearly from 0 to lr", .also = "warmup_updates warmup_steps lr-warmup"},
    {"min_lr", REAL(tarn_config_train, min_lr, 0, 100), .value = "0",
     .help = "the learning rate after warm-up never falls below it", .also = "stop_min_lr"},
    {"clip_norm", REAL(tarn_config_train, clip_norm, 0, 1e6), .value = "0",
     .help = "largest L2 norm of all gradients together, larger ones are scaled down; 0: off",
     .also = "clip_grad gradient_clipping"},
    {"label_smoothing", REAL(tarn_config_train, label_smoothing, 0, 1), BELOW_MOST,
     .derived = "0.1 for translation, else 0", .help = "probability spread evenly over the vocabulary, or the classes",
     .also = "smoothing"},
    {"precision", CHOICE(tarn_config_train, precision, precision_words), .value = "fp32",
     .help = "number format of products and activations", .also = "fp16 bf16 dtype"},
    {"moments", CHOICE(tarn_config_train, moments, moments_words), .value = "fp32", .later = true,
     .help = "number format of the optimiser's moments", .also = "optimizer_state optim_bits"},
    {"reduce", CHOICE(tarn_config_train, reduce, reduce_words), .value = "fp32", .later = true,
     .help = "number format in which several ranks send each other gradients; they are added in fp32",
     .also = "reduce_dtype grad_reduce_in_fp32 fp16_compression bf16_compress_hook compression"},
    {"shard_optimiser", BOOL(tarn_config_train, shard_optimiser), .value = "no", .later = true,
     .help =
         "each of several ranks keeps the optimiser's moments of its part of the weights only, and updates that part "
         "(ZeRO stage 1); the result has the same bits",
     .also = "shard_optimizer zero zero_stage zero_sharding zero_optimization use_distributed_optimizer fsdp"},
    {"fp32", CHOICE(tarn_config_train, fp32, fp32_words), .value = "exact", .later = true,
     .help = "how products of fp32 numbers are computed, in training and its validation; split6 and split3 need matrix "
             "tiles (Intel's AMX), tf32 a card (the device cuda)",
     .also = "allow_tf32 matmul_precision float32_matmul_precision"},
    {"recompute", CHOICE(tarn_config_train, recompute, recompute_words), .value = "none",
     .help = "what the backward pass computes again to save memory; changes no bit of a result",
     .also = "checkpoint_activations gradient_checkpointing"},
    {"log_every", INTEGER(tarn_config_train, log_every, 1, 1e9), .value = "50", .unit = "updates",
     .help = "updates between two lines of the log", .also = "log_interval disp-freq"},
    {"tensorboard", BOOL(tarn_config_train, tensorboard), .value = "yes",
     .help = "write event files for TensorBoard beside the log", .also = "tensorboard_logdir"},
    {"save_every", INTEGER(tarn_config_train, save_every, 0, 1e12), .value = "0", .unit = "updates",
     .help = "updates between two checkpoints; 0: only when validating and at the end",
     .also = "save_interval_updates save-freq save_interval"},
    {"keep_last", INTEGER(tarn_config_train, keep_last, 0, 1000), .value = "5", .unit = "checkpoints",
     .help = "numbered checkpoints kept beside best and last", .also = "keep_last_epochs keep_interval_updates"},
    {"average", INTEGER(tarn_config_train, average, 0, 1000), .value = "0", .unit = "checkpoints",
     .help = "at the end write the mean of the last n numbered checkpoints; at most keep_last; 0: off",
     .also = "average_checkpoints exponential-smoothing"},
    {"patience", INTEGER(tarn_config_train, patience, 0, 1e6), .value = "0", .unit = "validations",
     .help = "stop after so many validations without a better valid.metric; 0: off", .also = "early-stopping"},
    {"threads", INTEGER(tarn_config_train, threads, 0, 4096), .value = "0",
     .help = "0: all that the process may use, a container's quota included", .also = "cpu-threads num_workers"},
    {"cache_frozen", BOOL(tarn_config_train, cache_frozen), .value = "no",
     .help =
         "keep the outputs of the frozen layers at the bottom of the encoder on disk, where the encoder's embedding "
         "is frozen and neither has dropout",
     .also = "cache_outputs"},
    {"carry_state", BOOL(tarn_config_train, carry_state), .value = "no", .later = true,
     .help = "read the windows of a stream (tarn prepare --stream) in order, in parallel tracks, and begin each with "
             "the recurrent states with which the one before it ended; no gradient flows from window to window "
             "(truncated backpropagation through time)",
     .also = "stateful tbptt truncated_bptt bptt carry_hidden repackage_hidden detach_hidden reset_state"},
    {"core_watts", REAL(tarn_config_train, core_watts, 0, 100000), .value = "0", .unit = "W", .later = true,
     .help = "power of one busy core: energy is estimated as this times processor seconds where nothing measures it; "
             "0: no estimate",
     .also = "watts power_draw cpu_watts energy tdp"},
    {"co2_per_kwh", REAL(tarn_config_train, co2_per_kwh, 0, 100000), .value = "0", .unit = "g", .later = true,
     .help = "CO2 emitted for a kWh of the machine's electricity, for the CO2 of the training; 0: not known",
     .also = "carbon_intensity co2 emissions emission_factor"},
    {"init_from", TEXT(tarn_config_train, init_from),
     .help = "run directory or checkpoint whose weights a new training starts from; without it they are random",
     .also = "finetune_from_model restore_file pretrained-model init"},
    {"freeze", .type = TARN__OPTION_FREEZE, .offset = offsetof(tarn_config_train, freeze), .least = 0, .most = 1e12,
     .unit = "updates",
     .help =
         "staged freezing: layers and the update after which they stay as they are, such as { encoder.layer1: 1000, "
         "embeddings.source: 500 }",
     .also = "freeze_at frozen freeze_layers freeze_schedule"},
    {"autofreeze", INTEGER(tarn_config_train, autofreeze, 0, 1e12), .value = "0", .unit = "updates",
     .help = "updates between two tests of AutoFreeze, which freezes encoder layers from the bottom when the norms of "
             "their "
             "summed gradients change little; 0: off",
     .also = "auto_freeze grad_eval_step freeze_interval"},
    {"autofreeze_percentile", REAL(tarn_config_train, autofreeze_percentile, 0, 100), .value = "50",
     .help = "layers below the lowest one whose change reaches this percentile of all changes are frozen",
     .also = "percentile"},
};

static const tarn__option masking_options[] = {
    {"share", REAL(tarn_config_masking, share, 0, 1), ABOVE_LEAST, .value = "0.15",
     .help = "share of the tokens of a sentence that the model has to predict; special tokens are never among them",
     .also = "mask_prob mlm_probability masked_lm_prob"},
    {"random", REAL(tarn_config_masking, random, 0, 1), .value = "0.1",
     .help = "share of the tokens to predict that are replaced by a random token", .also = "random_token_prob"},
    {"keep", REAL(tarn_config_masking, keep, 0, 1), .value = "0.1",
     .help = "share of the tokens to predict that are left unchanged; all others become <mask>",
     .also = "leave_unmasked_prob"},
    {"whole_words", BOOL(tarn_config_masking, whole_words), .value = "no",
     .help = "predict either all tokens of a word or none of them", .also = "mask_whole_words do_whole_word_mask"},
};

static const tarn__option levenshtein_options[] = {
    {"max_placeholders", INTEGER(tarn_config_levenshtein, max_placeholders, 1, 65535), .value = "255",
     .help = "most words inserted between two tokens at once", .also = "max_ins k_max"},
    {"beta", REAL(tarn_config_levenshtein, beta, 0, 1), .value = "0",
     .help =
         "chance that the insertion policies learn from an empty sentence, where translation begins, instead of one "
         "without a random number of words"},
};

static const tarn__option head_options[] = {
    {"pool", CHOICE(tarn_config_head, pool, pool_words), .derived = "cls of an encoder, last of a decoder",
     .help = "vector that represents a sentence: of its first token, of its last token, or the mean of all",
     .also = "pooler pooling classifier_pooling"},
    {"hidden", INTEGER(tarn_config_head, hidden, 0, 65536), .value = "0",
     .help = "width of a hidden layer with tanh below the output layer; RoBERTa's is as wide as model.d_model; 0: none",
     .also = "pooler_dim dense"},
    {"dropout", REAL(tarn_config_head, dropout, 0, 1), BELOW_MOST, .derived = "model.dropout",
     .help = "on the vector that represents the sentence, and on the hidden layer",
     .also = "classifier_dropout pooler_dropout"},
    {"labels", TEXT(tarn_config_head, labels), .derived = "of classification those of data.train",
     .help = "names of the classes, no two alike, separated by bars; a bar within a name is doubled",
     .also = "classes num_labels num_classes id2label"},
};

static const tarn__option image_options[] = {
    {"patch", INTEGER(tarn_config_image, patch, 1, 1024), .value = "4", .unit = "pixels",
     .help = "height and width of a patch, which must divide those of an image", .also = "patch_size"},
    {"height", INTEGER(tarn_config_image, height, 1, 8192), .derived = "that of data.train", .unit = "pixels",
     .help = "height of an image", .also = "image_size img_size"},
    {"width", INTEGER(tarn_config_image, width, 1, 8192), .derived = "that of data.train", .unit = "pixels",
     .help = "width of an image"},
    {"channels", INTEGER(tarn_config_image, channels, 1, 3), .derived = "those of data.train",
     .help = "numbers of a pixel: 1 grey, 3 colour", .also = "num_channels in_chans"},
};

static const tarn__option valid_options[] = {
    {"every", INTEGER(tarn_config_valid, every, 0, 1e12), .value = "1000", .unit = "updates",
     .help = "updates between two validations; 0: at the end of every epoch",
     .also = "validate_interval_updates valid-freq interval"},
    {"bleu", BOOL(tarn_config_valid, bleu), .value = "yes",
     .help = "translate the validation sentences and score them; always no for a language model", .also = "eval_bleu"},
    {"beam", INTEGER(tarn_config_valid, beam, 1, 1024), .value = "1", .help = "beam of that translation; 1: greedy",
     .also = "beam_size"},
    {"length_penalty", REAL(tarn_config_valid, length_penalty, -10, 10), .value = "1",
     .help = "length penalty of that translation, as translate.length_penalty", .also = "lenpen normalize"},
    {"max_sentences", INTEGER(tarn_config_valid, max_sentences, 0, 1e9), .value = "0", .unit = "sentences",
     .help = "sentences translated, from the first; 0: all"},
    {"at_start", BOOL(tarn_config_valid, at_start), .value = "no",
     .help = "validate the untrained model too, at update 0 and time 0; it is never the best one"},
    {"metric", CHOICE(tarn_config_valid, metric, metric_words), .before = "valid/",
     .derived = "bleu if valid.bleu; else nll, accuracy or pearson by task",
     .help = "what the best checkpoint and patience look at", .also = "best_checkpoint_metric valid-metrics"},
    {"lowercase", BOOL(tarn_config_valid, lowercase), .value = "no", .help = "BLEU of lower-cased text",
     .also = "lc sacrebleu_lowercase"},
    {"tokenize", CHOICE(tarn_config_valid, tokenize, tokenize_words), .value = "13a",
     .help = "sacreBLEU's tokenizer for BLEU", .also = "tokenizer tok"},
};

static const tarn__option set_options[] = {
    {"data", TEXT(tarn_config_scored_set, data), .help = "prefix of the shards that are scored; required",
     .also = "path"},
    {"reference", TEXT(tarn_config_scored_set, reference), .derived = "the shard's target, detokenized",
     .help = "raw target text, one sentence a line, for BLEU", .also = "valid_reference"},
    {"every", INTEGER(tarn_config_scored_set, every, 0, 1e12), .derived = "valid.every", .unit = "updates",
     .help = "updates between two scores; 0: at the end of every epoch", .also = "interval"},
    {"bleu", BOOL(tarn_config_scored_set, bleu), .derived = "valid.bleu",
     .help = "translate the sentences and score them, as valid says", .also = "eval_bleu"},
    {"max_sentences", INTEGER(tarn_config_scored_set, max_sentences, 0, 1e9), .value = "0", .unit = "sentences",
     .help = "sentences translated, from the first; 0: all"},
};

static const tarn__option dynamics_options[] = {
    {"input", TEXT(tarn_config_dynamics, input),
     .help = "text file, one sentence a line, on which the model is iterated; without it no exponents are computed",
     .also = "file text data"},
    {"sentences", INTEGER(tarn_config_dynamics, sentences, 0, 1e6), .value = "16", .unit = "sentences",
     .help = "sentences iterated, from the first; 0: all", .also = "max_sentences"},
    {"every", INTEGER(tarn_config_dynamics, every, 0, 1e12), .derived = "valid.every", .unit = "updates",
     .help = "updates between two computations; 0: at the end of every epoch; the first is before training, the last "
             "at its end",
     .also = "interval"},
    {"iterations", INTEGER(tarn_config_dynamics, iterations, 0, 1e7), .value = "0", .unit = "iterations",
     .help = "of a sentence; 0: 1000 for a period, every layer for layers, every token for a recurrence",
     .also = "steps"},
    {"exponents", INTEGER(tarn_config_dynamics, exponents, 1, 64), .value = "1",
     .help = "Lyapunov exponents of each sentence"},
    {"precision", CHOICE(tarn_config_dynamics, precision, iterating_words), .value = "fp32",
     .help = "of states and perturbations"},
    {"map", CHOICE(tarn_config_dynamics, map, iterated_words), .value = "auto", .help = "what is iterated"},
    {"first_layer", INTEGER(tarn_config_dynamics, first_layer, 0, 65536), .value = "0",
     .help = "of a period, or the recurrent layer, from 1; 0: found"},
    {"last_layer", INTEGER(tarn_config_dynamics, last_layer, 0, 65536), .value = "0", .help = "of a period; 0: found"},
    {"discard", INTEGER(tarn_config_dynamics, discard, -1, 1e7), .value = "-1", .unit = "iterations",
     .help = "iterations that the exponents leave out; -1: half of them, of layers and of a text none"},
};

static const tarn__option translate_options[] = {
    {"beam", INTEGER(tarn_config_translate, beam, 1, 1024), .value = "5", .help = "hypotheses kept; 1: greedy",
     .also = "beam_size"},
    {"length_penalty", REAL(tarn_config_translate, length_penalty, -10, 10), .value = "1",
     .help = "a hypothesis' score is its log-probability / length^length_penalty", .also = "lenpen normalize"},
    {"max_len_a", REAL(tarn_config_translate, max_len_a, 0, 100), .value = "1.2",
     .help = "a translation has at most max_len_a * source tokens + max_len_b tokens", .also = "max-length-factor"},
    {"max_len_b", INTEGER(tarn_config_translate, max_len_b, 0, 1048576), .value = "10", .unit = "tokens",
     .help = "see max_len_a"},
    {"max_tokens", INTEGER(tarn_config_translate, max_tokens, 1, 16777216), .value = "4096", .unit = "tokens",
     .help = "most source tokens in work on a thread", .also = "mini-batch mini-batch-words batch_size"},
    {"min_length", INTEGER(tarn_config_translate, min_length, 0, 1048576), .value = "1", .unit = "tokens",
     .later = true, .help = "least tokens of a translation, its end of sentence not counted; 0: it may be empty",
     .also = "min_len"},
    {"early_stopping", BOOL(tarn_config_translate, early_stopping), .value = "yes", .later = true,
     .help =
         "end a search when beam hypotheses are finished; no: when the best running one, scored as it stands, is no "
         "better than the worst of them",
     .also = "early_stop no_early_stop"},
    {"allow_unk", BOOL(tarn_config_translate, allow_unk), .value = "yes", .later = true,
     .help = "a translation may have the unknown token; no: it is never chosen, and scores stay those of all tokens",
     .also = "unk disable_unk"},
    {"iterations", INTEGER(tarn_config_translate, iterations, 1, 1024), .value = "10",
     .help = "of masked translation and of a Levenshtein Transformer, which may end before: iterations over a sentence",
     .also = "iter_decode_max_iter"},
    {"length_beam", INTEGER(tarn_config_translate, length_beam, 1, 1024), .value = "5",
     .help = "of masked translation: lengths whose translations are compared", .also = "iter_decode_with_beam"},
    {"placeholder_penalty", REAL(tarn_config_translate, placeholder_penalty, 0, 100), .value = "0",
     .help = "of a Levenshtein Transformer: lowers the log-probability of inserting nothing between two tokens",
     .also = "iter_decode_eos_penalty"},
};

#define SECTION(name, table, place) \
  { name, table, LENGTH(table), place }
static const tarn__section sections[TARN__SECTION_COUNT] = {
    [TARN__SECTION_MODEL] = SECTION("model", model_options, offsetof(tarn_config, model)),
    [TARN__SECTION_ENCODER] = SECTION("encoder", stack_options, offsetof(tarn_config, encoder)),
    [TARN__SECTION_ENCODER_PLACE] = SECTION("encoder.place", place_options, 0),
    [TARN__SECTION_DECODER] = SECTION("decoder", stack_options, offsetof(tarn_config, decoder)),
    [TARN__SECTION_DECODER_PLACE] = SECTION("decoder.place", place_options, 0),
    [TARN__SECTION_KINDS] = SECTION("kinds", kind_options, 0),
    [TARN__SECTION_KINDS_BACKSKIP] = SECTION("kinds.NAME.backskip", backskip_options, offsetof(tarn_kind, backskip)),
    [TARN__SECTION_DATA] = SECTION("data", data_options, offsetof(tarn_config, data)),
    [TARN__SECTION_MASKING] = SECTION("masking", masking_options, offsetof(tarn_config, masking)),
    [TARN__SECTION_LEVENSHTEIN] = SECTION("levenshtein", levenshtein_options, offsetof(tarn_config, levenshtein)),
    [TARN__SECTION_HEAD] = SECTION("head", head_options, offsetof(tarn_config, head)),
    [TARN__SECTION_IMAGE] = SECTION("image", image_options, offsetof(tarn_config, image)),
    [TARN__SECTION_TRAIN] = SECTION("train", train_options, offsetof(tarn_config, train)),
    [TARN__SECTION_VALID] = SECTION("valid", valid_options, offsetof(tarn_config, valid)),
    [TARN__SECTION_SETS] = SECTION("sets", set_options, 0),
    [TARN__SECTION_DYNAMICS] = SECTION("dynamics", dynamics_options, offsetof(tarn_config, dynamics)),
    [TARN__SECTION_TRANSLATE] = SECTION("translate", translate_options, offsetof(tarn_config, translate)),
};

const tarn__section *tarn__config_section(tarn__section_id id) { return &sections[id]; }

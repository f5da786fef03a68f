// The attention picture: how much each token of a translation attends to each token of its source.
#ifndef TARN_TOOLS_SERVE_ATTENTION_H
#define TARN_TOOLS_SERVE_ATTENTION_H

#include "serve/serve_request.h"
#include "tarn/lab/states.h"

// Answers a request for SERVE_ATTEND: cross-attention of the decoder's last layer, averaged over its heads. *states
// holds the states of the model of `translator`, NULL until the first of these requests; the caller closes it before
// the translator. Fails with DATA (a text that the model cannot take, no such attention), USAGE or MEMORY; on success
// the request has its answer.
tarn_status serve_attention_answer(tarn_states **states, tarn_translator *translator,
                                   const tarn_states_options *options, serve_request *request);

#endif

#include "model/plan.h"

#include <stdio.h>
#include <string.h>

static tarn_plan_part *part_of(tarn_plan *plan, const char *label) {
  for (size_t i = 0; i < plan->part_count; i++)
    if (strcmp(plan->parts[i].label, label) == 0) return &plan->parts[i];
  tarn_plan_part *part = &plan->parts[plan->part_count++];
  *part = (tarn_plan_part){0};
  snprintf(part->label, sizeof part->label, "%s", label);
  return part;
}

static void add_param(tarn_plan_part *part, const tarn__model *model, const tarn__param *param) {
  const int64_t count = param->rows * param->cols;  // independent of the storage
  if (!param->trained) {
    part->frozen_parameters += count;
    return;
  }
  part->trained_parameters += count;
  if (!param->training.planned) part->gradient_bytes += (size_t)count * sizeof(float);
  // Adam's moments, and AutoFreeze's sum.
  part->optimiser_bytes += 2 * tarn__moment_bytes(tarn__model_moments(model, param), (size_t)count);
  if (tarn__model_sums(model, param)) part->optimiser_bytes += (size_t)count * sizeof(float);
}

// Parameters of a stack: those named "<stack>.<set>." belong to the first layer that uses the set; those that all its
// layers share belong to none.
static void add_stack(tarn_plan *plan, const tarn__model *model, const tarn__task_stack *what) {
  const tarn__model_stack *stack = tarn__model_stack_at(model, what->id);
  const tarn_stack *layers = tarn__config_stack(model->config, what->id);
  const char *name = tarn__stack_name(what->id);
  char shared[64];
  const int all = snprintf(shared, sizeof shared, "%s.shared.", name);
  tarn__param *const own[] = {stack->biases, stack->halting.weight, stack->halting.bias};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (own[i]) add_param(part_of(plan, name), model, own[i]);
  for (int i = 0; model->shares && what->id == TARN__STACK_DECODER && i < stack->count; i++)
    add_param(part_of(plan, name), model, model->shares[i]);
  for (size_t p = 0; p < model->param_count; p++)
    if (strncmp(model->params[p]->name, shared, (size_t)all) == 0)
      add_param(part_of(plan, name), model, model->params[p]);
  for (int i = 0; i < stack->count; i++) {
    tarn_plan_part *part = part_of(plan, stack->layers[i].label);
    part->cached = what->bottom && i < plan->cached_layers;
    const tarn_frozen frozen = stack->layers[i].weights->kind->frozen;
    part->frozen = frozen == TARN_FROZEN_YES;
    part->matrices = frozen == TARN_FROZEN_MATRICES;
    if (layers->layers[i].first != i) continue;
    char prefix[128];
    int length = snprintf(prefix, sizeof prefix, "%s.%s.", name, layers->layers[i].set);
    for (size_t p = 0; p < model->param_count; p++)
      if (strncmp(model->params[p]->name, prefix, (size_t)length) == 0) add_param(part, model, model->params[p]);
  }
  if (!stack->norm.gain) return;
  tarn_plan_part *top = part_of(plan, stack->layers[stack->count - 1].label);
  add_param(top, model, stack->norm.gain);
  if (stack->norm.bias) add_param(top, model, stack->norm.bias);
}

// Parameters outside the layers: either those of the output layer alone, named after it or its own table, or all
// others.
static void add_beside(tarn_plan *plan, const tarn__model *model, const char *label) {
  const tarn__task_weights *weights = &model->weights;
  tarn_plan_part *part = part_of(plan, label);
  for (size_t p = 0; p < model->param_count; p++) {
    const tarn__param *param = model->params[p];
    const bool own = param == weights->output_table && param != weights->source_table && param != weights->target_table;
    const char *of = own || param->role == TARN__ROLE_OUTPUT || param->role == TARN__ROLE_OUTPUT_TABLE ? "output"
                     : param->role == TARN__ROLE_EMBEDDINGS                                            ? "embeddings"
                                                                                                       : "";
    if (strcmp(of, label) == 0) add_param(part, model, param);
  }
}

static void add_flops(tarn_plan *plan, tarn_plan_part *part, const tarn__node *node, bool forward, double tokens) {
  double flops = node->op->flops ? node->op->flops(node) / tokens : 0.0;
  double gradients = node->op->gradient_flops ? node->op->gradient_flops(node) / tokens : 0.0;
  *(node->again ? &part->recompute_flops : forward ? &part->forward_flops : &part->backward_flops) += flops;
  *(node->again ? &plan->recompute_flops : forward ? &plan->forward_flops : &plan->backward_flops) += flops;
  part->backward_flops += gradients;
  plan->backward_flops += gradients;
}

static void add_nodes(tarn_plan *plan, const tarn__graph *graph, double tokens) {
  tarn_plan_part *part = NULL;
  const char *label = NULL;  // of its node; the nodes of a layer are adjacent
  for (size_t n = 0; n < graph->node_count; n++) {
    const tarn__node *node = graph->nodes[n];
    if (!part || node->label != label) part = part_of(plan, node->label ? node->label : "other");
    label = node->label;
    bool forward = n < graph->forward_count;
    add_flops(plan, part, node, forward, tokens);
    for (int k = 0; forward && k < TARN__MAX_OUTPUTS; k++) {
      if (!node->out[k] || node->out[k]->place != TARN__WORKSPACE) continue;
      const tarn__tensor *out = tarn__tensor_owner(node->out[k]);
      if (out->first == (int)n && out->last >= (int)graph->forward_count) part->kept_bytes += out->bytes;
    }
  }
}

// Offsets of sentences of the mean length; the last one takes the remainder.
static tarn_status make_offsets(int32_t **offsets, int64_t sentences, int64_t rows) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)sentences + 1, sizeof(int32_t)));
  *offsets = memory;
  for (int64_t s = 0; s <= sentences; s++) (*offsets)[s] = (int32_t)(rows * s / sentences);
  return TARN_STATUS_OK;
}

// The planned graph of a step of update number `update` (0: one that refreshes nothing).
static tarn_status plan_step(tarn__graph *graph, const tarn__model *model, const tarn__batch *step,
                             const tarn__model_shortcuts *shortcuts, int64_t update, int threads) {
  tarn__model_begin(model, graph, true, threads);
  graph->update = update;
  graph->ahead = true;
  tarn__tensor *loss =
      tarn__model_build_loss(model, graph, step, shortcuts, model->config->train.label_smoothing, 1.0, NULL);
  tarn__model_differentiate(model, graph, loss);
  return tarn__graph_plan(graph);
}

static size_t whole_lines(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

// Bytes of the descriptions of the graph and the parameters: with a thousand layers and recomputation, they are as
// large as the activations.
static size_t description_bytes(const tarn__model *model, const tarn__graph *graph) {
  size_t bytes = graph->node_capacity * sizeof *graph->nodes + graph->tensor_capacity * sizeof *graph->tensors;
  for (size_t n = 0; n < graph->node_count; n++) bytes += whole_lines(graph->nodes[n]->attr_bytes);
  bytes +=
      graph->node_count * whole_lines(sizeof(tarn__node)) + graph->tensor_count * whole_lines(sizeof(tarn__tensor));
  for (size_t i = 0; i < model->param_count; i++)
    bytes += whole_lines(sizeof(tarn__param)) + whole_lines(strlen(model->params[i]->name) + 1);
  return bytes;
}

// Raises the plan to a planned graph.
static void raise_plan(tarn_plan *plan, const tarn__model *model, const tarn__graph *graph) {
  // Of two batches the integers are there: one is sent while the other is computed.
  const size_t activations = graph->activation_bytes + TARN__STAGING_PIECES * graph->input_bytes;
  const size_t description = description_bytes(model, graph);
  if (activations > plan->activation_bytes) plan->activation_bytes = activations;
  if (graph->scratch_bytes > plan->workspace_bytes) plan->workspace_bytes = graph->scratch_bytes;
  if (description > plan->program_bytes) plan->program_bytes = description;
}

static tarn_status plan_steps(tarn_plan *plan, const tarn__model *model, const tarn__plan_batch *batch, int threads,
                              const tarn__batch *step, tarn__graph *graph) {
  tarn__param bottom = tarn__model_bottom_table(model, batch->source_tokens);
  tarn__model_shortcuts shortcuts = {0};
  if (model->config->train.cache_frozen) {
    shortcuts.bottom = &bottom;
    plan->cached_layers = tarn__model_bottom(model);
    plan->cache_bytes = (size_t)(bottom.rows * bottom.cols) * tarn__dtype_size(bottom.dtype);
  }
  const tarn__model_carried carried = {.rows = step->target.sentences};
  if (model->config->train.carry_state) shortcuts.carried = &carried;
  // Backskipping: the first update does all the true backward passes that most updates skip.
  if (tarn__model_refreshes(model)) {
    TARN_TRY(plan_step(graph, model, step, &shortcuts, 1, threads));
    raise_plan(plan, model, graph);
  }
  TARN_TRY(plan_step(graph, model, step, &shortcuts, 0, threads));
  raise_plan(plan, model, graph);
  return TARN_STATUS_OK;
}

static tarn_status add_parts(tarn_plan *plan, const tarn__model *model, const tarn__plan_batch *batch,
                             const tarn__graph *graph) {
  void *parts;
  const tarn__task *task = tarn__config_task(model->config);
  // Outside the layers: embeddings, output, the two stacks' own, and other.
  size_t most = 5;
  for (int i = 0; i < task->stack_count; i++) most += (size_t)tarn__model_stack_at(model, task->stacks[i].id)->count;
  TARN_TRY(tarn__alloc(&parts, TARN__MEMORY_OTHER, most, sizeof(tarn_plan_part)));
  plan->parts = parts;
  add_beside(plan, model, "embeddings");
  for (int i = 0; i < task->stack_count; i++) add_stack(plan, model, &task->stacks[i]);
  add_beside(plan, model, "output");
  add_nodes(plan, graph, (double)(batch->source_rows + batch->target_rows));
  return TARN_STATUS_OK;
}

// Plans steps whose rows are so many sentences of equal length, or as many as the rows of a side allow, where one side
// is far shorter than the other; with `parts` describes them.
static tarn_status plan_division(tarn_plan *plan, const tarn__model *model, const tarn__plan_batch *batch, int threads,
                                 int64_t sentences, bool parts) {
  tarn__graph graph = {0};
  int32_t *source_offsets = NULL;
  int32_t *target_offsets = NULL;
  const int64_t rows[] = {batch->source_rows, batch->target_rows};
  for (int side = 0; side < 2; side++)
    if (rows[side] > 0 && sentences > rows[side]) sentences = rows[side];
  tarn_status status = make_offsets(&source_offsets, sentences, batch->source_rows);
  if (status == TARN_STATUS_OK) status = make_offsets(&target_offsets, sentences, batch->target_rows);
  if (status == TARN_STATUS_OK) {
    tarn__batch step = {.source = {.sentences = sentences,
                                   .rows = batch->source_rows,
                                   .longest = batch->longest_source,
                                   .offsets = source_offsets},
                        .target = {.sentences = sentences,
                                   .rows = batch->target_rows,
                                   .longest = batch->longest_target,
                                   .offsets = target_offsets}};
    tarn__task_largest(&step, model->config);
    status = plan_steps(plan, model, batch, threads, &step, &graph);
    if (status == TARN_STATUS_OK && parts) status = add_parts(plan, model, batch, &graph);
  }
  tarn__graph_close(&graph);
  tarn__free(source_offsets);
  tarn__free(target_offsets);
  return status;
}

tarn_status tarn__plan_model(tarn_plan *plan, const tarn__model *model, const tarn__plan_batch *batch, int threads) {
  const tarn_config *config = model->config;
  *plan = (tarn_plan){.upper_bound = config->encoder.layerdrop > 0 || config->decoder.layerdrop > 0 ||
                                     config->train.freeze_count > 0 || config->train.autofreeze > 0,
                      .source_rows = batch->source_rows,
                      .target_rows = batch->target_rows,
                      .source_length = batch->source_length,
                      .target_length = batch->target_length};
  tarn__model_size size;
  tarn__model_measure(model, &size);
  plan->trained_bytes = size.trained_bytes;
  plan->frozen_bytes = size.frozen_bytes;
  plan->gradient_bytes = size.gradient_bytes;
  plan->optimiser_bytes = size.optimiser_bytes;
  plan->trained_parameters = size.trained;
  plan->frozen_parameters = size.frozen;
  plan->precision = model->config->train.precision;
  plan->fp32 = model->config->train.fp32;
  plan->shared_uses = size.shared_uses;
  plan->shared_layers = size.shared_layers;
  const double mean = batch->source_length > batch->target_length ? batch->source_length : batch->target_length;
  const int64_t rows = batch->source_rows > batch->target_rows ? batch->source_rows : batch->target_rows;
  const int64_t usual = (int64_t)((double)rows / mean);
  // Many short sentences take more memory where layers keep something for each, few long ones where they compare all
  // tokens of a sentence. Operations are those of sentences of the mean length.
  tarn_status status = plan_division(plan, model, batch, threads, usual > 1 ? usual : 1, true);
  if (status == TARN_STATUS_OK && batch->sentences > 0)
    status = plan_division(plan, model, batch, threads, batch->sentences, false);
  plan->total_bytes = plan->trained_bytes + plan->frozen_bytes + plan->gradient_bytes + plan->optimiser_bytes +
                      plan->activation_bytes + plan->workspace_bytes;
  if (status != TARN_STATUS_OK) tarn_plan_close(plan);
  return status;
}

void tarn_plan_close(tarn_plan *plan) {
  tarn__free(plan->parts);
  plan->parts = NULL;
  plan->part_count = 0;
}

// The commands of the program, one file each (cmd_NAME.c); main.c has their table.
#ifndef TARN_TOOLS_COMMANDS_H
#define TARN_TOOLS_COMMANDS_H

#include "cli.h"

#define PROGRAM_SUMMARY \
  "tarn trains and runs translation and language models in which layers can be random, frozen and shared."

// Passes a visitor every command in the order of `tarn --help`, and after "series" its subcommands: "series train".
void commands_visit(cli_visitor visitor, void *user);

int cmd_average(int argc, char **argv);
int cmd_bleu(int argc, char **argv);
int cmd_blimp(int argc, char **argv);
int cmd_choices(int argc, char **argv);
int cmd_chrf(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_corpus(int argc, char **argv);
int cmd_distill(int argc, char **argv);
int cmd_draw(int argc, char **argv);
int cmd_decode(int argc, char **argv);
int cmd_encode(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_fit(int argc, char **argv);
int cmd_generate(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_import_bert(int argc, char **argv);
int cmd_import_marian(int argc, char **argv);
int cmd_import_gpt2(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_prepare(int argc, char **argv);
int cmd_prune(int argc, char **argv);
int cmd_recipe(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_label(int argc, char **argv);  // argv[0] is the word of a verb
int cmd_score(int argc, char **argv);
int cmd_sentences(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_series(int argc, char **argv);
int cmd_split(int argc, char **argv);
int cmd_states(int argc, char **argv);
int cmd_dynamics(int argc, char **argv);
int cmd_sweep(int argc, char **argv);
int cmd_ter(int argc, char **argv);
int cmd_test(int argc, char **argv);
int cmd_train(int argc, char **argv);
int cmd_translate(int argc, char **argv);
int cmd_vocab(int argc, char **argv);

#endif

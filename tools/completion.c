// Completion of commands and options in bash, zsh and fish: for each a table of the commands, and a short script in
// that shell which reads it.
#include <string.h>

#include "pages.h"

// The kind of completion of an option's value, or of an argument.
typedef enum value_kind { VALUE_NONE, VALUE_OTHER, VALUE_FILE, VALUE_FOLDER, VALUE_KINDS } value_kind;

static value_kind kind_of(const cli_option *option) {
  static const char *const files[] = {"FILE", "PATH", "PREFIX", "MODEL", "SWEEP"};
  if (!option->argument) return option->type == CLI_DEVICE ? VALUE_OTHER : VALUE_NONE;
  if (strcmp(option->argument, "DIR") == 0) return VALUE_FOLDER;
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    if (strcmp(option->argument, files[i]) == 0) return VALUE_FILE;
  return VALUE_OTHER;
}

// Prints text for single quotes: escapes every character of `special` with a backslash, and replaces a quote by
// `quote`.
static void print_quoted(FILE *file, const char *text, const char *special, const char *quote) {
  for (; *text; text++) {
    if (*text == '\'') {
      fputs(quote, file);
    } else {
      if (strchr(special, *text)) fputc('\\', file);
      fputc(*text, file);
    }
  }
}

// The second word of "series train"; NULL for commands of one word.
static const char *word_below(const cli_command *command) {
  const char *blank = strchr(command->name, ' ');
  return blank ? blank + 1 : NULL;
}

// --- bash

// bash-completion sources the file in a function, where the table would be local without -g.
static void bash_begin(FILE *file) { fputs("# Completion of tarn for bash.\ndeclare -gA _tarn_table=(\n", file); }

// ['decode']='--vocab=file --ids=none --help=none'
static void bash_command(FILE *file, const cli_command *command, const cli_option *options) {
  static const char *const kinds[VALUE_KINDS] = {"none", "other", "file", "folder"};
  fprintf(file, "  ['%s']='", command->name);
  for (const cli_option *option = options; option->name; option++)
    fprintf(file, "--%s=%s ", option->name, kinds[kind_of(option)]);
  fputs("--help=none'\n", file);
}

static void bash_end(FILE *file) {
  fputs(
      ")\n"
      "_tarn() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n"
      "  local entry kind=file options='' first='' below=''\n"
      "  for entry in \"${!_tarn_table[@]}\"; do\n"
      "    case $entry in\n"
      "      \"$command \"*) below+=\" ${entry#* }\" ;;\n"
      "      *' '*) ;;\n"
      "      *) first+=\" $entry\" ;;\n"
      "    esac\n"
      "  done\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$first --help --version\" -- \"$word\")\n"
      "    return\n"
      "  fi\n"
      "  if [ -n \"$below\" ] && [ \"$COMP_CWORD\" -eq 2 ]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$below --help\" -- \"$word\")\n"
      "    return\n"
      "  fi\n"
      "  [ -z \"$below\" ] || command+=\" ${COMP_WORDS[2]}\"\n"
      "  for entry in ${_tarn_table[$command]-}; do\n"
      "    options+=\" ${entry%=*}\"\n"
      "    [ \"${entry%=*}\" != \"$before\" ] || kind=${entry##*=}\n"
      "  done\n"
      "  if [ $kind = other ]; then return; fi\n"
      "  if [[ $word == -* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
      "  elif [ $kind = folder ]; then\n"
      "    compopt -o filenames 2>/dev/null\n"
      "    mapfile -t COMPREPLY < <(compgen -d -- \"$word\")\n"
      "  else\n"
      "    compopt -o filenames 2>/dev/null\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
      "  fi\n"
      "}\n"
      "complete -F _tarn tarn\n",
      file);
}

// --- zsh

static void zsh_begin(FILE *file) {
  fputs("#compdef tarn\nlocal -a commands below arguments\ninteger depth=1\n", file);
}

static void zsh_text(FILE *file, const char *text) { print_quoted(file, text, "[]:\\", "'\\''"); }

static void zsh_command(FILE *file, const cli_command *command, const cli_option *options) {
  static const char *const completers[VALUE_KINDS] = {NULL, "( )", "_files", "_files -/"};
  const char *word = word_below(command);
  if (word)
    fprintf(file, "[[ $words[2] == '%.*s' ]] && below+=('%s:", (int)(word - 1 - command->name), command->name, word);
  else
    fprintf(file, "commands+=('%s:", command->name);
  zsh_text(file, command->summary);
  fprintf(file, "')\nif [[ \"$words[2]%s\" == '%s' ]]; then\n  depth=%d\n  arguments=(\n", word ? " $words[3]" : "",
          command->name, word ? 2 : 1);
  for (const cli_option *option = options; option->name; option++) {
    char help[CLI_HELP_TEXT];
    cli_option_help(help, option);
    fprintf(file, "    '%s--%s[", option->type == CLI_LIST ? "*" : "", option->name);
    zsh_text(file, help);
    fputc(']', file);
    if (option->argument) {
      fputc(':', file);
      zsh_text(file, option->argument);
      fprintf(file, ":%s", completers[kind_of(option)]);
    }
    fputs("'\n", file);
  }
  fputs("    '--help[print the help of the command]'\n    '*:file:_files'\n  )\nfi\n", file);
}

static void zsh_end(FILE *file) {
  fputs(
      "if (( CURRENT == 2 )); then\n"
      "  _describe command commands\n"
      "elif (( CURRENT == 3 && $#below )); then\n"
      "  _describe command below\n"
      "else\n"
      "  shift depth words\n"
      "  (( CURRENT -= depth ))\n"
      "  _arguments \"${arguments[@]}\"\n"
      "fi\n",
      file);
}

// --- fish

static void fish_begin(FILE *file) {
  fputs(
      "# Completion of tarn for fish.\n"
      "function __fish_tarn_words  # the words before the cursor begin with these\n"
      "    set -l words (commandline -opc)\n"
      "    set -e words[1]\n"
      "    test (count $words) -ge (count $argv); or return 1\n"
      "    for i in (seq (count $argv))\n"
      "        test $words[$i] = $argv[$i]; or return 1\n"
      "    end\n"
      "end\n"
      "function __fish_tarn_count  # how many words there are\n"
      "    test (count (commandline -opc)) -eq $argv[1]\n"
      "end\n"
      "complete -c tarn -n '__fish_tarn_count 1' -f -l help -d 'print the help'\n"
      "complete -c tarn -n '__fish_tarn_count 1' -f -l version -d 'print the version and what it runs with'\n",
      file);
}

static void fish_text(FILE *file, const char *text) { print_quoted(file, text, "\\", "\\'"); }

static void fish_command(FILE *file, const cli_command *command, const cli_option *options) {
  static const char *const completers[VALUE_KINDS] = {"", " -x", " -r -F", " -x -a '(__fish_complete_directories)'"};
  const char *word = word_below(command);
  if (word)
    fprintf(file, "complete -c tarn -n '__fish_tarn_count 2; and __fish_tarn_words %.*s' -f -a %s -d '",
            (int)(word - 1 - command->name), command->name, word);
  else
    fprintf(file, "complete -c tarn -n '__fish_tarn_count 1' -f -a %s -d '", command->name);
  fish_text(file, command->summary);
  fputs("'\n", file);
  for (const cli_option *option = options; option->name; option++) {
    char help[CLI_HELP_TEXT];
    cli_option_help(help, option);
    fprintf(file, "complete -c tarn -n '__fish_tarn_words %s' -l %s%s -d '", command->name, option->name,
            completers[kind_of(option)]);
    fish_text(file, help);
    fputs("'\n", file);
  }
  fprintf(file, "complete -c tarn -n '__fish_tarn_words %s' -l help -d 'print the help of the command'\n",
          command->name);
}

static void fish_end(FILE *file) { (void)file; }

const completion_shell completion_shells[COMPLETION_SHELLS] = {
    {"tarn.bash", bash_begin, bash_command, bash_end},
    {"_tarn", zsh_begin, zsh_command, zsh_end},
    {"tarn.fish", fish_begin, fish_command, fish_end},
};

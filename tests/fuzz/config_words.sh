#!/usr/bin/env bash
# The keys and words of a configuration for dictionaries, from the table of options as docs/configuration.md has it (a test
# keeps that table equal to the program's). usage: config_words.sh ROOT
set -eu
sed -n '/<!-- options -->/,$p' "$1/docs/configuration.md" | grep -oE '`[A-Za-z0-9_.]+`' | tr -d '`' | sort -u | sed 's/.*/"&"/'
sed -n 's/^### \([a-z][a-z.]*\).*/"\1"/p' "$1/docs/configuration.md" | sort -u

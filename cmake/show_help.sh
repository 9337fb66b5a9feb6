#!/usr/bin/env bash
# Prints the comment at the head of a script and ends it, if its first argument is
# --help or -h. Scripts read this file with `source`.
if [[ ${1:-} == --help || ${1:-} == -h ]]; then
  sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
  exit 0
fi

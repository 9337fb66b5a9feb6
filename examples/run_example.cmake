# Runs an example and checks what it prints: below "// Prints:" in its source are
# lines, of which each is in the output, in this order; "..." stands for anything.
#
#   cmake -D PROGRAM=... -D SOURCE=... [-D ARGUMENT=...] [-D INPUT=...]
#     -P run_example.cmake
cmake_minimum_required(VERSION 3.25)

file(READ "${SOURCE}" text)
if(NOT text MATCHES "\n// Prints:\n((//   [^\n]+\n)+)")
  message(FATAL_ERROR "${SOURCE} has no lines below \"// Prints:\"")
endif()
set(expected "${CMAKE_MATCH_1}")

set(input)
if(INPUT)
  set(input INPUT_FILE "${INPUT}")
endif()
execute_process(COMMAND "${PROGRAM}" ${ARGUMENT} ${input}
  OUTPUT_VARIABLE printed COMMAND_ECHO STDOUT ECHO_OUTPUT_VARIABLE
  COMMAND_ERROR_IS_FATAL ANY)

# Piece by piece, since the pieces of a list may not have any bracket.
string(REGEX REPLACE "(^|\n)//   " "\\1" expected "${expected}")
string(REPLACE "..." "\n" expected "${expected}")
set(rest "${printed}")
while(NOT expected STREQUAL "")
  string(FIND "${expected}" "\n" end)
  string(SUBSTRING "${expected}" 0 ${end} piece)
  math(EXPR end "${end} + 1")
  string(SUBSTRING "${expected}" ${end} -1 expected)
  string(FIND "${rest}" "${piece}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "expected \"${piece}\" in what remains:\n${rest}")
  endif()
  string(LENGTH "${piece}" length)
  math(EXPR place "${place} + ${length}")
  string(SUBSTRING "${rest}" ${place} -1 rest)
endwhile()

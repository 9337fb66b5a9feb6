# cmake -DSOURCE=<root of the sources> -DOUTPUT=<file.cc> -P EtcBuildCommit.cmake
#
# Defines etc::kBuildCommit (tasks/commands/build_commit.h) in OUTPUT, which is
# written only where it changes. Empty where SOURCE is no checkout of its own: in
# an archive of the sources, or a copy within another project's checkout.
set(commit "")
find_program(GIT git)
if(GIT)
  # The index is read, and not refreshed: others may be using it.
  set(ENV{GIT_OPTIONAL_LOCKS} 0)
  execute_process(COMMAND "${GIT}" rev-parse --show-toplevel
    WORKING_DIRECTORY "${SOURCE}" OUTPUT_VARIABLE top ERROR_QUIET
    OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  file(REAL_PATH "${SOURCE}" source)
  if(NOT failed AND top STREQUAL source)
    execute_process(COMMAND "${GIT}" describe --always --dirty
      WORKING_DIRECTORY "${SOURCE}" OUTPUT_VARIABLE described ERROR_QUIET
      OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
    if(NOT failed AND described MATCHES "^[-+._/0-9A-Za-z]+$")
      set(commit "${described}")
    endif()
  endif()
endif()
set(text "// Made by cmake/EtcBuildCommit.cmake.\n\n")
string(APPEND text "#include \"tasks/commands/build_commit.h\"\n\n")
string(APPEND text "namespace etc {\n\n")
string(APPEND text "const char* const kBuildCommit = \"${commit}\";\n\n")
string(APPEND text "}  // namespace etc\n")
set(before "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" before)
endif()
if(NOT before STREQUAL text)
  file(WRITE "${OUTPUT}" "${text}")
endif()

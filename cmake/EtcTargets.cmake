# How a library, a program and a test of this project are declared.

# Compile options of every target of ours; never seen by those who link to us.
add_library(etc_build_options INTERFACE)
target_compile_features(etc_build_options INTERFACE cxx_std_20)
target_compile_options(etc_build_options INTERFACE
  # Kernels say where they want products and sums contracted; what they compute
  # must not depend on what the compiler inlines.
  -ffp-contract=off
  -fPIC -Wall -Wextra -Wpedantic
  # Not where files are compiled as one, as each may say `using json`.
  $<$<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wshadow>
  -Wnon-virtual-dtor -Wcast-qual
  # Structs of options are made with designated initialisers that name only
  # what differs from the defaults. Examples are compiled as programs of others.
  $<$<NOT:$<BOOL:$<TARGET_PROPERTY:ETC_IS_EXAMPLE>>>:-Wno-missing-field-initializers>
  # g++ collects garbage from 1 GB on, not from 128 MB: a tenth of its time, for
  # a tenth more memory.
  $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1048576>
  $<$<BOOL:${ETC_WARNINGS_AS_ERRORS}>:-Werror>)
# Kernels for CPUs that have no SSE4, of before 2008, would be a fifth of all: those
# take the scalar ones. Sanitizers do with fewer: threads do not depend on the target,
# and each one's accesses are tested without them (tests/support/guarded_buffer.h).
set(disabled_targets HWY_SSSE3)
if(ETC_SANITIZE MATCHES "address|thread")
  string(APPEND disabled_targets "|HWY_SSE4")
endif()
if(ETC_SANITIZE MATCHES "thread")
  string(APPEND disabled_targets "|HWY_AVX2")
endif()
target_compile_definitions(etc_build_options INTERFACE
  "HWY_DISABLED_TARGETS=${disabled_targets}")

# Some 250 tests link in a third of the time by it.
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=gold ETC_HAS_GOLD)
if(ETC_HAS_GOLD)
  target_link_options(etc_build_options INTERFACE -fuse-ld=gold)
endif()

# The sanitizers of libraries and programs, and those of tests. The code of tests
# does without the one for undefined behaviour, which doubles the time to compile
# it, and its own accesses are not checked by the address sanitizer: what tests
# allocate is, wherever the libraries use it. Threads are watched in all code.
add_library(etc_sanitizers INTERFACE)
add_library(etc_alignment_sanitizer INTERFACE)
add_library(etc_test_sanitizers INTERFACE)
if(ETC_SANITIZE)
  target_compile_options(etc_build_options INTERFACE
    -fno-omit-frame-pointer
    # g++ sees uninitialised memory in LibTorch's headers once they are
    # sanitized; the sanitizers themselves see none.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(etc_build_options INTERFACE -fsanitize=${ETC_SANITIZE})
  target_compile_options(etc_sanitizers INTERFACE
    -fsanitize=${ETC_SANITIZE} -fno-sanitize-recover=all)
  if(ETC_SANITIZE MATCHES "undefined")
    # Checks of each access that the address sanitizer makes as well, for a sixth
    # of the time to compile. Those of alignment, which take a quarter of it, are
    # made where memory is taken for numbers of another type: in the layers with
    # kernels, and in files that map others.
    target_compile_options(etc_sanitizers INTERFACE
      -fno-sanitize=null,object-size,pointer-overflow,vptr,alignment)
    target_compile_options(etc_alignment_sanitizer INTERFACE
      -fsanitize=alignment)
  endif()
  string(REGEX REPLACE ",?undefined" "" test_sanitizers "${ETC_SANITIZE}")
  if(test_sanitizers)
    target_compile_options(etc_test_sanitizers INTERFACE
      -fsanitize=${test_sanitizers} -fno-sanitize-recover=all)
  endif()
  if(test_sanitizers MATCHES "address")
    # Abseil's and the standard library's containers stay those of sanitized code.
    target_compile_options(etc_test_sanitizers INTERFACE
      $<$<CXX_COMPILER_ID:GNU>:--param=asan-instrument-reads=0
        --param=asan-instrument-writes=0 --param=asan-memintrin=0
        --param=asan-stack=0 --param=asan-globals=0>)
  endif()
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
# The directory of modules, from the prefix.
set(ETC_MODULE_DIR "${CMAKE_INSTALL_LIBDIR}/realetc")

# etc_precompiled_header(<target> <deps> <header>...)
#
# A precompiled header that other targets share by REUSE_FROM; they need the same
# compile options, so `deps` has the sanitizers.
function(etc_precompiled_header target deps)
  set(source "${PROJECT_BINARY_DIR}/${target}.cc")
  file(CONFIGURE OUTPUT "${source}" CONTENT "")
  add_library(${target} OBJECT "${source}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(${target} PRIVATE etc_build_options ${deps})
  target_precompile_headers(${target} PRIVATE ${ARGN})
endfunction()

# A file that includes LibTorch takes 7 to 20 s to compile, and 3 s when the
# headers come precompiled. Not <torch/torch.h>, which costs each file a second
# more.
set(etc_torch_headers
  <torch/autograd.h> <torch/custom_class.h> <torch/nn/module.h>
  <torch/nn/modules/container/modulelist.h> <torch/nn/modules/linear.h>
  <torch/nn/modules/normalization.h> <torch/nn/pimpl.h> <torch/types.h>
  <torch/utils.h>)
etc_precompiled_header(etc_torch_pch "etc_sanitizers;etc_torch"
  ${etc_torch_headers})

# Without LibTorch JSON and statuses take most of the time, from `tasks` on.
set(etc_common_headers
  <algorithm> <filesystem> <fstream> <functional> <map> <memory> <optional>
  <sstream> <string> <vector>
  <absl/status/statusor.h> <absl/strings/str_cat.h> <nlohmann/json.hpp>)
set(etc_common_deps absl::statusor absl::strings nlohmann_json::nlohmann_json)
etc_precompiled_header(etc_core_pch "etc_sanitizers;${etc_common_deps}"
  ${etc_common_headers})

# Tests: what nearly all of them include, and no optimisation, which together
# more than halve the time to build them. What they test is optimised. Reports of
# sanitizers name the lines of libraries, and of tests the functions alone.
set(etc_test_options -O0)
if(ETC_SANITIZE)
  list(APPEND etc_test_options -g0)
endif()
set(etc_test_headers <gmock/gmock.h> <gtest/gtest.h> ${etc_common_headers}
  "${PROJECT_SOURCE_DIR}/tests/support/json_instance.h")
if(ETC_BUILD_TESTS)
  set(deps etc_test_sanitizers GTest::gmock ${etc_common_deps})
  etc_precompiled_header(etc_test_pch "${deps}" ${etc_test_headers})
  etc_precompiled_header(etc_torch_test_pch "${deps};etc_torch"
    ${etc_torch_headers} ${etc_test_headers})
  target_compile_options(etc_test_pch PRIVATE ${etc_test_options})
  target_compile_options(etc_torch_test_pch PRIVATE ${etc_test_options})
  # Optimised: the linker takes the library's calls of it there too.
  add_library(etc_test_json STATIC
    "${PROJECT_SOURCE_DIR}/tests/support/json_instance.cc")
  set_target_properties(etc_test_json PROPERTIES UNITY_BUILD OFF)
  target_include_directories(etc_test_json PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(etc_test_json PRIVATE
    etc_build_options etc_test_sanitizers nlohmann_json::nlohmann_json)
  add_library(etc_test_main STATIC
    "${PROJECT_SOURCE_DIR}/tests/support/test_main.cc")
  set_target_properties(etc_test_main PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(etc_test_main
    PUBLIC GTest::gmock PRIVATE etc_build_options etc_test_sanitizers)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()

# Settings that libraries and programs have in common.
function(etc_set_up_target target torch)
  target_link_libraries(${target} PRIVATE
    $<BUILD_INTERFACE:etc_build_options> $<BUILD_INTERFACE:etc_sanitizers>)
  if(torch)
    target_precompile_headers(${target} REUSE_FROM etc_torch_pch)
  endif()
endfunction()

# etc_layer(NAME <name> [BELOW <layer>]
#           CORE_SOURCES <file>... [CORE_DEPS <target>...]
#           [SOURCES <file>... [DEPS <target>...]]
#           [PUBLIC_HEADERS <file>...])
#
# One layer of the code, which is one directory at the top level, as two static
# libraries, in this project and outside under the same names:
#
#   RealETC::<name>_core  what does without LibTorch, so that it compiles and
#                         starts fast
#   RealETC::<name>       all of it
#
# Each links the same library of the layer below. PUBLIC_HEADERS are installed
# under their path from the root of the repository; all others are internal.
function(etc_layer)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;BELOW"
    "CORE_SOURCES;CORE_DEPS;SOURCES;DEPS;PUBLIC_HEADERS")
  set(below)
  set(core_below)
  if(arg_BELOW)
    set(below RealETC::${arg_BELOW})
    set(core_below RealETC::${arg_BELOW}_core)
  endif()
  etc_add_library(${arg_NAME}_core FALSE
    "${arg_CORE_SOURCES}" "${core_below};${arg_CORE_DEPS}")
  etc_add_library(${arg_NAME} TRUE
    "${arg_SOURCES}" "RealETC::${arg_NAME}_core;${below};${arg_DEPS}")
  target_sources(etc_${arg_NAME} PUBLIC FILE_SET HEADERS
    BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${arg_PUBLIC_HEADERS})
endfunction()

function(etc_add_library name torch sources deps)
  set(target etc_${name})
  add_library(${target} STATIC ${sources})
  add_library(RealETC::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${name} OUTPUT_NAME realetc_${name})
  target_include_directories(${target} PUBLIC
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
  target_compile_features(${target} PUBLIC cxx_std_20)
  if(torch)
    target_link_libraries(${target} PUBLIC etc_torch)
  endif()
  target_link_libraries(${target} PUBLIC ${deps})
  etc_set_up_target(${target} ${torch})
  if(NOT torch)
    target_precompile_headers(${target} REUSE_FROM etc_core_pch)
  endif()
  set(options)
  if(ETC_SANITIZE)
    # -Og, by which the rest compiles in two thirds of the time, is too slow here.
    set(options -O1)
  endif()
  if(ETC_SANITIZE MATCHES undefined AND name MATCHES "^(base|attention)")
    # After etc_sanitizers, which has no checks of alignment.
    target_link_libraries(${target} PRIVATE
      $<BUILD_INTERFACE:etc_alignment_sanitizer>)
    # They would take minutes in templates for many instruction sets.
    list(APPEND options -fno-sanitize=alignment)
  endif()
  etc_compile_each_target_apart("${sources}" "${options}")
  set_property(GLOBAL APPEND PROPERTY ETC_LIBRARIES ${target})
endfunction()

# Leaves files that Highway compiles once for each instruction set alone where
# others are compiled as one (CMAKE_UNITY_BUILD); they get `options` as well.
function(etc_compile_each_target_apart sources options)
  foreach(source IN LISTS sources)
    file(STRINGS "${source}" each_target REGEX "hwy/foreach_target.h"
      LIMIT_COUNT 1)
    if(each_target)
      set_source_files_properties("${source}" PROPERTIES
        SKIP_UNITY_BUILD_INCLUSION ON COMPILE_OPTIONS "${options}")
    endif()
  endforeach()
endfunction()

# etc_module(<name> LAYER <layer> SOURCES <file>... DEPS <target>...
#            [INCLUDES <directory>...])
#
# A library realetc_<name>.so that code of a layer opens at run time
# (base/module_loader.h). It shows what it says and links nothing of ours.
function(etc_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LAYER" "SOURCES;DEPS;INCLUDES")
  set(target etc_${name}_module)
  add_library(${target} MODULE ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME realetc_${name} SUFFIX ".so"
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_include_directories(${target} SYSTEM PRIVATE ${arg_INCLUDES})
  target_link_options(${target} PRIVATE LINKER:--as-needed)
  target_link_libraries(${target} PRIVATE ${arg_DEPS})
  etc_set_up_target(${target} FALSE)
  add_dependencies(etc_${arg_LAYER}_core ${target})
  install(TARGETS ${target} LIBRARY DESTINATION "${ETC_MODULE_DIR}"
    COMPONENT modules)
endfunction()

# etc_program(NAME <name> SOURCES <file>... [DEPS <target>...] [TORCH])
# A program in bin/.
function(etc_program)
  cmake_parse_arguments(PARSE_ARGV 0 arg "TORCH" "NAME" "SOURCES;DEPS")
  add_executable(${arg_NAME} ${arg_SOURCES})
  set_target_properties(${arg_NAME} PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(${arg_NAME} PRIVATE ${arg_DEPS})
  etc_set_up_target(${arg_NAME} ${arg_TORCH})
endfunction()

# Threaded tests are programs of their own where no other tests are built.
set(etc_word_of_threads)
if(ETC_SANITIZE MATCHES "thread")
  set(etc_word_of_threads THREADS)
endif()

# etc_test(<file> [TORCH] [THREADS] [CUDA] [PROGRAM | COMMANDS] [OWN_PROGRAM]
#          [THREAD_CASES <filter>] [SLOW_CASES <filter>] [RELEASE_CHECK]
#          [WITH <file>...] [DEPS <target>...] [ENVIRONMENT <n=v>...])
#
# One CTest entry, a process of its own, for one test file, linked with the layer
# that it lies in: tests/attention/... with RealETC::attention if it says TORCH,
# else with RealETC::attention_core, so that it starts and compiles fast. Files of
# a layer that say the same of TORCH, CUDA, PROGRAM and COMMANDS are built as one
# program (ETC_UNITY_TESTS), of which each entry runs its own file's cases;
# OWN_PROGRAM or DEPS: this file is a program. WITH: files without tests that it
# needs, which are compiled once for a program.
# THREADS: the test runs code of ours on several threads, so the preset `tsan`
# builds and runs it (target `threaded_tests`, label `threads`). THREAD_CASES: there
# only the cases that this GoogleTest filter matches; the others compare numbers.
# CUDA: the test finds the devices of a stand-in (tests/support/stand_in_cuda.h), if
# there is one, else those that there are.
# PROGRAM: the test starts `realetc`, whose path it finds in ETC_PROGRAM; behind the
# shim in ETC_SHIM (tests/support/file_operation_shim.h) if it likes, unless
# ETC_SANITIZED. COMMANDS: the test can do so as well, and runs commands of `realetc`
# in child processes of its own (tests/support/run_realetc.h), which saves the 0.4 s
# of each start.
# SLOW_CASES: the cases that this GoogleTest filter matches are an entry <name>_slow
# with the label `slow`, which is run when it is asked for (`bash tests/run.sh release
# -L slow`).
# RELEASE_CHECK: the test has the label `release-check`: .ci/run runs it, and
# tests/run.sh when it is asked for.
# Builds with sanitizers leave out the tests in ETC_UNSANITIZED_TESTS
# (tests/CMakeLists.txt), and all that is slow; that with the address sanitizer the
# cases in ETC_UNSANITIZED_CASES too.
function(etc_test source)
  cmake_parse_arguments(PARSE_ARGV 1 arg
    "TORCH;THREADS;CUDA;PROGRAM;COMMANDS;OWN_PROGRAM;RELEASE_CHECK"
    "SLOW_CASES;THREAD_CASES" "WITH;DEPS;ENVIRONMENT")
  etc_test_path("${source}" path name)
  set_property(GLOBAL APPEND PROPERTY ETC_REGISTERED_TESTS "${path}")
  if(ETC_SANITIZE AND name IN_LIST ETC_UNSANITIZED_TESTS)
    return()
  endif()
  set(kind)
  foreach(word IN ITEMS TORCH ${etc_word_of_threads} CUDA PROGRAM COMMANDS)
    if(arg_${word})
      list(APPEND kind ${word})
    endif()
  endforeach()
  set(sources "${source}" ${arg_WITH})
  if(ETC_UNITY_TESTS AND NOT arg_OWN_PROGRAM AND NOT arg_DEPS)
    etc_join_test_program(${name} "${kind}" "${sources}" target arguments)
  else()
    string(REPLACE "/" "_" target "${name}")
    etc_add_test_program(${target} "${path}" "${kind}" "${sources}" "${arg_DEPS}")
    set(arguments)
  endif()
  set_property(GLOBAL PROPERTY ETC_TEST_COMMAND_${name} ${target} ${arguments})
  etc_choose_thread_cases("${arg_THREAD_CASES}" arguments)
  if(arg_SLOW_CASES)
    etc_add_test(${name} "${arg_ENVIRONMENT}"
      ${target} ${arguments} "--gtest_filter=-${arg_SLOW_CASES}")
    if(NOT ETC_SANITIZE)
      etc_add_test(${name}_slow "${arg_ENVIRONMENT}"
        ${target} ${arguments} "--gtest_filter=${arg_SLOW_CASES}")
      set_tests_properties(${name}_slow PROPERTIES LABELS slow)
    endif()
  else()
    etc_add_test(${name} "${arg_ENVIRONMENT}" ${target} ${arguments})
  endif()
  if(arg_RELEASE_CHECK)
    set_tests_properties(${name} PROPERTIES LABELS release-check)
  endif()
  if(arg_THREADS)
    etc_add_threaded_test(${name} ${target})
  endif()
endfunction()

# etc_tests(<name> [TORCH] [THREADS [THREAD_CASES <filter>]] <file>...
#           [APART <file>...])
#
# Files of one directory, as one CTest entry: tests that need neither an
# environment, a process nor a program of their own. GoogleTest prints "[ RUN ]"
# and the case before it runs, so that a crash says where it was. Those APART are
# files as the others are: names that clash do no harm (tests/join_files.py).
function(etc_tests program)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH;THREADS" "THREAD_CASES" "APART")
  set(sources)
  foreach(source IN LISTS arg_UNPARSED_ARGUMENTS arg_APART)
    etc_test_path("${source}" path name)
    set_property(GLOBAL APPEND PROPERTY ETC_REGISTERED_TESTS "${path}")
    if(NOT ETC_SANITIZE OR NOT name IN_LIST ETC_UNSANITIZED_TESTS)
      list(APPEND sources "${source}")
    endif()
  endforeach()
  if(NOT sources)
    return()
  endif()
  etc_test_path("${program}" path name)
  set(kind)
  foreach(word IN ITEMS TORCH ${etc_word_of_threads})
    if(arg_${word})
      list(APPEND kind ${word})
    endif()
  endforeach()
  if(ETC_UNITY_TESTS)
    etc_join_test_program(${name} "${kind}" "${sources}" target arguments)
  else()
    string(REPLACE "/" "_" target "${name}")
    etc_add_test_program(${target} "${path}" "${kind}" "${sources}" "")
    set(arguments)
  endif()
  etc_choose_thread_cases("${arg_THREAD_CASES}" arguments)
  etc_add_test(${name} "" ${target} ${arguments})
  if(arg_THREADS)
    etc_add_threaded_test(${name} ${target})
  endif()
endfunction()

# Adds the files of the CTest entry `name` to the layer's program of their kind,
# which is declared when all of them are known: at the end of the layer's
# directory. Sets the variables to the program and to the arguments by which it
# runs these files' cases alone. The target that a build of the entry alone would
# have builds that program.
function(etc_join_test_program name kind sources target_variable
    arguments_variable)
  string(REGEX REPLACE "/.*" "" layer "${name}")
  set(directory "${PROJECT_SOURCE_DIR}/tests/${layer}")
  list(JOIN kind _ words)
  string(TOLOWER "${layer}_joined_${words}" target)
  string(REGEX REPLACE "_$" "" target "${target}")
  get_property(before DIRECTORY "${directory}" PROPERTY ETC_FILES_OF_${target})
  if(NOT before)
    cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY [[${directory}]]
      CALL etc_add_joined_program ${target} ${layer} [[${kind}]])")
  endif()
  set(arguments)
  foreach(source IN LISTS sources)
    set_property(DIRECTORY "${directory}" APPEND PROPERTY
      ETC_FILES_OF_${target} "${CMAKE_CURRENT_SOURCE_DIR}/${source}")
    if(source MATCHES "_test\\.cc$")
      etc_test_path("${source}" path unused)
      list(APPEND arguments "--only=${path}")
    endif()
  endforeach()
  string(REPLACE "/" "_" own_target "${name}")
  add_custom_target(${own_target})
  add_dependencies(${own_target} ${target})
  set(${target_variable} ${target} PARENT_SCOPE)
  set(${arguments_variable} "${arguments}" PARENT_SCOPE)
endfunction()

function(etc_add_joined_program target layer kind)
  get_directory_property(sources ETC_FILES_OF_${target})
  list(REMOVE_DUPLICATES sources)
  etc_add_test_program(${target} ${layer}/joined "${kind}" "${sources}" "")
endfunction()

# The sources of a test program, of which most are joined to some few
# (tests/join_files.py), if ETC_UNITY_TESTS says so: not files that include
# themselves, for each target of Highway, nor those without tests, which use their
# unnamed namespace outside of it.
function(etc_join_sources target sources result)
  list(LENGTH sources number)
  if(NOT ETC_UNITY_TESTS OR number LESS 2)
    set(${result} "${sources}" PARENT_SCOPE)
    return()
  endif()
  set(compiled)
  set(batch)
  set(batch_bytes 0)
  set(number 0)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
    file(STRINGS "${path}" each_target REGEX "hwy/foreach_target.h" LIMIT_COUNT 1)
    if(each_target OR NOT source MATCHES "_test\\.cc$")
      list(APPEND compiled "${source}")
      continue()
    endif()
    file(SIZE "${path}" bytes)
    math(EXPR batch_bytes "${batch_bytes} + ${bytes}")
    if(batch AND batch_bytes GREATER ETC_JOINED_TEST_BYTES)
      etc_join_batch("${target}_${number}" "${batch}" compiled)
      set(batch)
      set(batch_bytes ${bytes})
      math(EXPR number "${number} + 1")
    endif()
    list(APPEND batch "${path}")
  endforeach()
  if(batch)
    etc_join_batch("${target}_${number}" "${batch}" compiled)
  endif()
  set(${result} "${compiled}" PARENT_SCOPE)
endfunction()

function(etc_join_batch name paths result)
  set(joined "${PROJECT_BINARY_DIR}/tests/joined/${name}.cc")
  set(script "${PROJECT_SOURCE_DIR}/tests/join_files.py")
  add_custom_command(OUTPUT "${joined}"
    COMMAND "${Python3_EXECUTABLE}" "${script}" "${joined}" ${paths}
    DEPENDS "${script}" ${paths} VERBATIM)
  set(${result} ${${result}} "${joined}" PARENT_SCOPE)
endfunction()

# etc_test_again(<file> <variant> ENVIRONMENT <n=v>...)
# One more CTest entry of a test that etc_test declared, in another environment; not
# with sanitizers.
function(etc_test_again source variant)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "ENVIRONMENT")
  etc_test_path("${source}" path name)
  get_property(command GLOBAL PROPERTY ETC_TEST_COMMAND_${name})
  if(command AND NOT ETC_SANITIZE)
    etc_add_test(${name}_${variant} "${arg_ENVIRONMENT}" ${command})
  endif()
endfunction()

# The path of a file of this directory from tests/, and without its ending.
function(etc_test_path source path_variable name_variable)
  cmake_path(APPEND CMAKE_CURRENT_SOURCE_DIR "${source}" OUTPUT_VARIABLE path)
  cmake_path(RELATIVE_PATH path BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/tests")
  string(REGEX REPLACE "\\.cc$" "" name "${path}")
  set(${path_variable} "${path}" PARENT_SCOPE)
  set(${name_variable} "${name}" PARENT_SCOPE)
endfunction()

# A program of test files; `kind` has some of TORCH, CUDA, PROGRAM and COMMANDS.
function(etc_add_test_program target path kind sources deps)
  string(REGEX REPLACE "/.*" "" layer "${path}")
  set(header etc_torch_test_pch)
  if(NOT TORCH IN_LIST kind)
    string(APPEND layer "_core")
    set(header etc_test_pch)
  endif()
  etc_join_sources(${target} "${sources}" sources)
  add_executable(${target} ${sources})
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests"
    UNITY_BUILD OFF)
  target_compile_definitions(${target} PRIVATE
    ETC_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  # `deps` first: what stands before the C library's calls has to.
  target_link_libraries(${target} PRIVATE
    ${deps} etc_test_main etc_test_json RealETC::${layer})
  target_link_libraries(${target} PRIVATE
    etc_build_options etc_test_sanitizers)
  target_compile_options(${target} PRIVATE ${etc_test_options})
  target_precompile_headers(${target} REUSE_FROM ${header})
  if(CUDA IN_LIST kind AND TARGET etc_cuda_stand_in)
    target_link_libraries(${target} PRIVATE
      etc_cuda_stand_in etc_emulated_cuda_kernels)
  endif()
  if(PROGRAM IN_LIST kind OR COMMANDS IN_LIST kind)
    set(sanitized false)
    if(ETC_SANITIZE)
      set(sanitized true)
    endif()
    target_compile_definitions(${target} PRIVATE
      ETC_PROGRAM="$<TARGET_FILE:realetc>"
      ETC_SHIM="$<TARGET_FILE:etc_file_operation_shim>"
      ETC_SANITIZED=${sanitized})
    add_dependencies(${target} realetc etc_file_operation_shim)
  endif()
  if(COMMANDS IN_LIST kind)
    target_link_libraries(${target} PRIVATE etc_run_realetc_child)
  elseif(PROGRAM IN_LIST kind)
    target_link_libraries(${target} PRIVATE etc_run_realetc_program)
  endif()
endfunction()

# etc_add_test(<name> <environment> <target> <argument>...)
function(etc_add_test name environment)
  add_test(NAME ${name} COMMAND ${ARGN})
  # LibTorch keeps what it allocates once for ever, its headers are seen by
  # sanitized and unsanitized code, and its threads are its own. Many tests run side
  # by side: a thread that waits must not take a core from one that works.
  list(PREPEND environment
    ASAN_OPTIONS=detect_odr_violation=0:detect_leaks=0
    TSAN_OPTIONS=ignore_noninstrumented_modules=1
    OMP_WAIT_POLICY=passive)
  if(ETC_SANITIZE MATCHES address)
    list(JOIN ETC_UNSANITIZED_CASES : cases)
    list(APPEND environment "GTEST_FILTER=-${cases}")
  endif()
  # The limit is many times what any takes alone: a machine may have much else
  # to do. A program is skipped if all of its cases are: so GoogleTest's report
  # ends then.
  set_tests_properties(${name} PROPERTIES TIMEOUT 3600
    ENVIRONMENT "${environment}"
    FAIL_REGULAR_EXPRESSION "Running 0 tests"
    SKIP_REGULAR_EXPRESSION
      "\\[  PASSED  \\] 0 tests\\.\n(\\[  SKIPPED \\][^\n]*\n)+$")
  list(FIND ETC_LONG_TESTS ${name} place)
  if(place GREATER_EQUAL 0)
    math(EXPR cost "500 - ${place}")
    set_tests_properties(${name} PROPERTIES COST ${cost})
  endif()
endfunction()

# Under the thread sanitizer, adds the choice of `cases` to the arguments of a test.
function(etc_choose_thread_cases cases arguments_variable)
  if(ETC_SANITIZE MATCHES "thread" AND NOT cases STREQUAL "")
    set(${arguments_variable}
      ${${arguments_variable}} "--gtest_filter=${cases}" PARENT_SCOPE)
  endif()
endfunction()

function(etc_add_threaded_test name target)
  if(NOT TARGET threaded_tests)
    add_custom_target(threaded_tests)
  endif()
  add_dependencies(threaded_tests ${target})
  set_tests_properties(${name} PROPERTIES LABELS threads)
endfunction()

# A *_test.cc that neither etc_test nor etc_tests names stops the configure step.
function(etc_check_every_test_is_registered)
  get_property(registered GLOBAL PROPERTY ETC_REGISTERED_TESTS)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
    RELATIVE "${PROJECT_SOURCE_DIR}/tests" "*_test.cc")
  list(REMOVE_ITEM sources ${registered})
  if(sources)
    message(FATAL_ERROR
      "Tests that no CMakeLists.txt registers with etc_test or etc_tests: "
      "${sources}")
  endif()
  foreach(name IN LISTS ETC_UNSANITIZED_TESTS)
    if(NOT "${name}.cc" IN_LIST registered)
      message(FATAL_ERROR "ETC_UNSANITIZED_TESTS names no test: ${name}")
    endif()
  endforeach()
endfunction()

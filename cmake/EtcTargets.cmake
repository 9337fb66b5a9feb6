# How a library, a program and a test of this project are declared.

# Compile options of every target of ours; never seen by those who link to us.
add_library(etc_build_options INTERFACE)
target_compile_features(etc_build_options INTERFACE cxx_std_20)
target_compile_options(etc_build_options INTERFACE
  # Kernels say where they want products and sums contracted; what they compute
  # must not depend on what the compiler inlines.
  -ffp-contract=off
  -fPIC -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wcast-qual
  # Structs of options are made with designated initialisers that name only
  # what differs from the defaults.
  -Wno-missing-field-initializers
  $<$<BOOL:${ETC_WARNINGS_AS_ERRORS}>:-Werror>)
if(ETC_SANITIZE)
  target_compile_options(etc_build_options INTERFACE
    -fsanitize=${ETC_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer
    # g++ sees uninitialised memory in LibTorch's headers once they are
    # sanitized; the sanitizers themselves see none.
    -Wno-maybe-uninitialized)
  target_link_options(etc_build_options INTERFACE -fsanitize=${ETC_SANITIZE})
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

# A file that includes LibTorch takes 7 to 20 s to compile, and 3 s when the
# headers come precompiled. All targets marked TORCH share this one.
file(WRITE "${PROJECT_BINARY_DIR}/etc_torch_pch.cc.in" "")
configure_file("${PROJECT_BINARY_DIR}/etc_torch_pch.cc.in"
  "${PROJECT_BINARY_DIR}/etc_torch_pch.cc" COPYONLY)
add_library(etc_torch_pch OBJECT "${PROJECT_BINARY_DIR}/etc_torch_pch.cc")
target_link_libraries(etc_torch_pch PRIVATE etc_build_options etc_torch)
# Not <torch/torch.h>, which costs each file a second more.
target_precompile_headers(etc_torch_pch PRIVATE
  <torch/autograd.h> <torch/custom_class.h> <torch/nn/module.h>
  <torch/nn/modules/container/modulelist.h> <torch/nn/modules/linear.h>
  <torch/nn/modules/normalization.h> <torch/nn/pimpl.h> <torch/types.h>
  <torch/utils.h>)

# What etc_library, etc_program and etc_test have in common.
function(etc_set_up_target target torch)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:etc_build_options>)
  if(torch)
    target_precompile_headers(${target} REUSE_FROM etc_torch_pch)
  endif()
endfunction()

# etc_library(NAME <name> SOURCES <file>... HEADERS <file>...
#             [DEPS <target>...] [TORCH])
#
# A static library `etc_<name>`, in this project and outside `RealETC::<name>`.
# Headers are installed under their path from the root of the repository.
# TORCH: uses LibTorch.
function(etc_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "TORCH" "NAME" "SOURCES;HEADERS;DEPS")
  set(target etc_${arg_NAME})
  add_library(${target} STATIC ${arg_SOURCES})
  add_library(RealETC::${arg_NAME} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${arg_NAME})
  target_sources(${target} PUBLIC FILE_SET HEADERS
    BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${arg_HEADERS})
  target_compile_features(${target} PUBLIC cxx_std_20)
  if(arg_TORCH)
    target_link_libraries(${target} PUBLIC etc_torch)
  endif()
  target_link_libraries(${target} PUBLIC ${arg_DEPS})
  etc_set_up_target(${target} ${arg_TORCH})
  # The storey that it is part of: the first folder of its path.
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR
    BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE storey)
  string(REGEX REPLACE "/.*" "" storey "${storey}")
  set_property(GLOBAL APPEND PROPERTY ETC_LIBRARIES_OF_${storey} ${target})
endfunction()

# etc_program(NAME <name> SOURCES <file>... [DEPS <target>...] [TORCH])
# A program in bin/.
function(etc_program)
  cmake_parse_arguments(PARSE_ARGV 0 arg "TORCH" "NAME" "SOURCES;DEPS")
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_link_libraries(${arg_NAME} PRIVATE ${arg_DEPS})
  etc_set_up_target(${arg_NAME} ${arg_TORCH})
endfunction()

# etc_test(<file> [DEPS <target>...] [TORCH] [THREADS] [ENVIRONMENT <n=v>...])
#
# One program and one CTest entry for one test file. A test that does not say
# TORCH must not link LibTorch, so that it starts and compiles fast. THREADS:
# the test runs code of ours on several threads, so the preset `tsan` builds and
# runs it (target `threaded_tests`, label `threads`).
function(etc_test source)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH;THREADS" "" "DEPS;ENVIRONMENT")
  cmake_path(APPEND CMAKE_CURRENT_SOURCE_DIR "${source}"
    OUTPUT_VARIABLE path)
  cmake_path(RELATIVE_PATH path BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/tests")
  string(REGEX REPLACE "\\.cc$" "" name "${path}")
  string(REPLACE "/" "_" target "${name}")
  add_executable(${target} "${source}")
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(${target} PRIVATE
    ETC_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE ${arg_DEPS} GTest::gmock_main)
  etc_set_up_target(${target} ${arg_TORCH})
  add_test(NAME ${name} COMMAND ${target})
  # LibTorch keeps what it allocates once for ever, its headers are seen by
  # sanitized and unsanitized code, and its threads are its own.
  set(environment
    ASAN_OPTIONS=detect_odr_violation=0:detect_leaks=0
    TSAN_OPTIONS=ignore_noninstrumented_modules=1 ${arg_ENVIRONMENT})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600
    ENVIRONMENT "${environment}"
    SKIP_REGULAR_EXPRESSION "every test was skipped")
  if(arg_THREADS)
    if(NOT TARGET threaded_tests)
      add_custom_target(threaded_tests)
    endif()
    add_dependencies(threaded_tests ${target})
    set_tests_properties(${name} PROPERTIES LABELS threads)
  endif()
  set_property(GLOBAL APPEND PROPERTY ETC_REGISTERED_TESTS "${path}")
endfunction()

# A *_test.cc that no etc_test names stops the configure step.
function(etc_check_every_test_is_registered)
  get_property(registered GLOBAL PROPERTY ETC_REGISTERED_TESTS)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
    RELATIVE "${PROJECT_SOURCE_DIR}/tests" "*_test.cc")
  list(REMOVE_ITEM sources ${registered})
  if(sources)
    message(FATAL_ERROR
      "Tests that no CMakeLists.txt registers with etc_test: ${sources}")
  endif()
endfunction()

# Everything that is not ours. doc/building.md says what each one is for.

include(EtcFindTorch)
if(ETC_TORCH_MISTAKE)
  message(FATAL_ERROR "${ETC_TORCH_MISTAKE}")
endif()
message(STATUS "LibTorch ${Torch_VERSION}: ${Torch_DIR}")
find_package(absl REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(Snappy 1.1 REQUIRED)
find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto)
find_package(ZLIB REQUIRED)
find_package(ICU 70 REQUIRED COMPONENTS uc i18n)
find_package(PkgConfig REQUIRED)
pkg_check_modules(SentencePiece REQUIRED IMPORTED_TARGET sentencepiece)
find_package(Threads REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(hwy 1.0 REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
# Not by its CMake package, which wants OpenCL. The headers are looked for beside
# the library: LibTorch has some too, of the oneDNN inside of it.
find_library(DNNL_LIBRARY libdnnl.so REQUIRED)
cmake_path(GET DNNL_LIBRARY PARENT_PATH dnnl_dir)
cmake_path(SET dnnl_beside NORMALIZE "${dnnl_dir}/../include")
cmake_path(SET dnnl_above NORMALIZE "${dnnl_dir}/../../include")
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp REQUIRED NO_DEFAULT_PATH
  PATHS "${dnnl_beside}" "${dnnl_above}")
if(ETC_CUDA)
  find_package(CUDAToolkit 12 REQUIRED)
endif()
# LibTorch's header for NCCL includes those of both, which it does not bring.
if(ETC_NCCL)
  find_package(CUDAToolkit REQUIRED)
  find_path(NCCL_INCLUDE_DIR nccl.h REQUIRED
    PATHS "${etc_torch_prefix}/../nvidia/nccl/include")
endif()

if(ETC_BUILD_TESTS)
  find_package(GTest 1.12 REQUIRED)
endif()
if(ETC_BUILD_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()

# One name for LibTorch, whichever package brought it. What is installed is
# empty: RealETCConfig.cmake fills it with the LibTorch that it finds.
add_library(etc_torch INTERFACE)
set_target_properties(etc_torch PROPERTIES EXPORT_NAME torch)
target_include_directories(etc_torch SYSTEM INTERFACE
  "$<BUILD_INTERFACE:${TORCH_INCLUDE_DIRS}>")
target_link_libraries(etc_torch INTERFACE
  "$<BUILD_INTERFACE:${TORCH_LIBRARIES}>")
# In C++20 clang instantiates the members of std::vector where they are named,
# and the headers of LibTorch 1.x name those of std::vector<c10::IValue> before
# c10::IValue is complete, unless this header comes first.
if(Torch_VERSION VERSION_LESS 2)
  target_compile_options(etc_torch INTERFACE
    "SHELL:$<$<COMPILE_LANG_AND_ID:CXX,Clang>:-include ATen/core/ivalue.h>")
endif()

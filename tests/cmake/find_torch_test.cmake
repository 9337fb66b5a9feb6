# EtcFindTorch.cmake on LibTorchs of empty files, whose TorchConfig.cmake looks
# for its libraries as the official one does: in the system first.
#
#   cmake -D WORK_DIR=... -P find_torch_test.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${WORK_DIR}")
set(cmake_dir "${CMAKE_CURRENT_LIST_DIR}/../../cmake")

# A LibTorch of `version` in the folder `name`, with the libraries that follow.
function(make_torch name version)
  set(prefix "${WORK_DIR}/${name}")
  foreach(library IN LISTS ARGN)
    file(WRITE "${prefix}/lib/lib${library}.so" "")
  endforeach()
  file(WRITE "${prefix}/share/cmake/Torch/TorchConfig.cmake" [[
    cmake_path(SET prefix NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../../..")
    find_library(c10_LIBRARY c10 PATHS "${prefix}/lib")
    find_library(TORCH_LIBRARY torch PATHS "${prefix}/lib")
    if(EXISTS "${prefix}/lib/libc10_cuda.so" AND NOT TARGET torch::cudart)
      message(FATAL_ERROR "wants the CUDA toolkit")
    endif()
  ]])
  file(WRITE "${prefix}/share/cmake/Torch/TorchConfigVersion.cmake"
    "set(PACKAGE_VERSION ${version})\n"
    "set(PACKAGE_VERSION_COMPATIBLE FALSE)\n")
endfunction()

# Configures a project that finds LibTorch. `system` stands for the system's
# folders. Sets `output` to what it printed.
set(runs 0)
function(configure output)
  math(EXPR runs "${runs} + 1")
  set(runs ${runs} PARENT_SCOPE)
  set(project "${WORK_DIR}/project_${runs}")
  file(WRITE "${project}/CMakeLists.txt" "
    cmake_minimum_required(VERSION 3.25)
    project(Finds LANGUAGES NONE)
    set(CMAKE_SYSTEM_PREFIX_PATH \"${WORK_DIR}/system\")
    include(\"${cmake_dir}/EtcFindTorch.cmake\")
    if(ETC_TORCH_MISTAKE)
      message(STATUS \"mistake: \${ETC_TORCH_MISTAKE}\")
    endif()
    message(STATUS \"found: \${Torch_VERSION} \${TORCH_LIBRARY} \${c10_LIBRARY}\")
    message(STATUS \"prefixes: \${CMAKE_PREFIX_PATH}.\")
  ")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env --unset=CMAKE_PREFIX_PATH
      --unset=Torch_DIR --unset=TORCH_INSTALL_PREFIX
      ${CMAKE_COMMAND} -S "${project}" -B "${project}/build" ${ARGN}
    OUTPUT_VARIABLE out ERROR_VARIABLE err RESULT_VARIABLE code)
  set(${output} "${out}${err}" PARENT_SCOPE)
endfunction()

function(expect text)
  foreach(part IN LISTS ARGN)
    string(FIND "${text}" "${part}" place)
    if(place EQUAL -1)
      message(SEND_ERROR "expected \"${part}\" in:\n${text}")
    endif()
  endforeach()
endfunction()

make_torch(system 1.13.1 torch c10)
make_torch(other 2.9.0 torch c10 c10_cuda)
make_torch(half 2.9.0 torch)
set(other "${WORK_DIR}/other")

configure(output)
expect("${output}" "found: 1.13.1 ${WORK_DIR}/system/lib/libtorch.so")

# By both paths that people give, and by its own folder: all of it from there,
# without the CUDA toolkit and without leaving anything behind.
set(found "found: 2.9.0 ${other}/lib/libtorch.so ${other}/lib/libc10.so")
foreach(how IN ITEMS
    CMAKE_PREFIX_PATH=${other} CMAKE_PREFIX_PATH=${other}/share/cmake)
  configure(output -D${how})
  string(REGEX REPLACE ".*=" "" prefix "${how}")
  expect("${output}" "${found}" "prefixes: ${prefix}.")
  if(output MATCHES "mistake:|Warning|WARNING|toolkit")
    message(SEND_ERROR "${output}")
  endif()
endforeach()
configure(output -DTorch_DIR=${other}/share/cmake/Torch)
expect("${output}" "${found}" "prefixes: .")

configure(output -DCMAKE_PREFIX_PATH=${WORK_DIR}/half)
expect("${output}" "mistake: LibTorch's libraries should be in one folder"
  "${WORK_DIR}/half/lib/libtorch.so and ${WORK_DIR}/system/lib/libc10.so"
  "CMAKE_PREFIX_PATH")

make_torch(old 2.5.1 torch c10)
file(APPEND "${WORK_DIR}/old/share/cmake/Torch/TorchConfig.cmake"
  "set(TORCH_CXX_FLAGS -D_GLIBCXX_USE_CXX11_ABI=0)\n")
configure(output -DCMAKE_PREFIX_PATH=${WORK_DIR}/old)
expect("${output}" "mistake: LibTorch should have the C++11 ABI"
  "${WORK_DIR}/old/share/cmake/Torch has the old one")

file(REMOVE_RECURSE "${WORK_DIR}/system")
configure(output)
expect("${output}" "mistake: There is no LibTorch" "torch.utils.cmake_prefix_path")
file(REMOVE_RECURSE "${WORK_DIR}")

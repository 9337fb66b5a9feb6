# Installs the build to an empty prefix, and configures, builds and runs the
# project in this folder with nothing but that prefix and the system's own
# packages; then one of examples/ likewise, and another one by pkg-config. Common
# warnings of the CMake projects are errors. Also checks the installed files, that
# realetc.h includes all installed headers, and the archive of sources; and
# configures this repository as a part of another project.
#
#   cmake -D BUILD_DIR=... -D WORK_DIR=... [-D TORCH_DIR=...] -D CXX=...
#     -P run.cmake
cmake_minimum_required(VERSION 3.25)
set(source_dir "${CMAKE_CURRENT_LIST_DIR}")

file(REMOVE_RECURSE "${WORK_DIR}")
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
run(${CMAKE_COMMAND} --install "${BUILD_DIR}" --prefix "${WORK_DIR}/prefix")

# The installed program and its modules search no folder of the build, where
# anybody might put a file.
file(GLOB_RECURSE binaries "${WORK_DIR}/prefix/*.so")
foreach(binary IN ITEMS "${WORK_DIR}/prefix/bin/realetc" ${binaries})
  file(READ_ELF "${binary}" RUNPATH runpath RPATH rpath)
  string(FIND "${runpath};${rpath};" "${BUILD_DIR}/" place)
  if(NOT place EQUAL -1)
    message(FATAL_ERROR "${binary} searches ${runpath};${rpath}")
  endif()
endforeach()
# The notices of libraries that are compiled in.
set(share "${WORK_DIR}/prefix/share")
file(READ "${share}/doc/realetc/copyright" notices)
foreach(holder IN ITEMS
    "The RealETC authors" "University of Cincinnati" "Niels Lohmann")
  string(FIND "${notices}" "${holder}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "the installed copyright does not name ${holder}")
  endif()
endforeach()
file(GLOB made_samples "${share}/realetc/tasks/*/sample/generate.py"
  "${share}/realetc/tasks/*/sample/demo.*")
if(made_samples OR NOT EXISTS "${share}/zsh/site-functions/_realetc")
  message(FATAL_ERROR "zsh's completion should be installed, but not any of: "
    "${made_samples}")
endif()

# Not -Werror, by which FindOpenMP's own program does not compile.
set(warnings "-DCMAKE_CXX_FLAGS=-Wall -Wextra"
  -DCMAKE_COMPILE_WARNING_AS_ERROR=ON)
run(${CMAKE_COMMAND} -G Ninja -S "${source_dir}" -B "${WORK_DIR}/build"
  "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix" "-DTorch_DIR=${TORCH_DIR}"
  ${warnings})
run(${CMAKE_COMMAND} --build "${WORK_DIR}/build")
run("${WORK_DIR}/build/outside")

set(examples "${WORK_DIR}/prefix/share/realetc/examples")
run(${CMAKE_COMMAND} -G Ninja -S "${examples}" -B "${WORK_DIR}/examples"
  "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix" "-DTorch_DIR=${TORCH_DIR}"
  ${warnings})
# One of them: all are built and run in the tree of RealETC, too.
run(${CMAKE_COMMAND} --build "${WORK_DIR}/examples" --target
  example_predictor_over_stdin)
run(${CMAKE_CTEST_COMMAND} --test-dir "${WORK_DIR}/examples"
  -R predictor_over_stdin --output-on-failure --no-tests=error)

# realetc.h, with which the examples compiled, includes all installed headers.
set(include_dir "${WORK_DIR}/prefix/include/realetc")
file(GLOB_RECURSE headers RELATIVE "${include_dir}" "${include_dir}/*.h")
list(REMOVE_ITEM headers realetc.h)
if(NOT headers)
  message(FATAL_ERROR "no headers are installed in ${include_dir}")
endif()
file(READ "${include_dir}/realetc.h" umbrella)
foreach(header IN LISTS headers)
  string(FIND "${umbrella}" "\n#include \"${header}\"\n" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "realetc.h does not include ${header}")
  endif()
endforeach()

file(GLOB_RECURSE pc "${WORK_DIR}/prefix/*/realetc.pc")
cmake_path(GET pc PARENT_PATH pc_dir)
set(ENV{PKG_CONFIG_PATH} "${pc_dir}:$ENV{PKG_CONFIG_PATH}")
execute_process(COMMAND pkg-config --cflags --libs realetc
  OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
# Flags are for clang too, whatever built the library.
file(GLOB_RECURSE config "${WORK_DIR}/prefix/*/RealETCConfig.cmake")
file(READ "${config}" text)
if(text MATCHES "RealETC_TORCH_VERSION \"1\\." AND
   NOT "ATen/core/ivalue.h" IN_LIST flags)
  message(FATAL_ERROR "clang needs ATen/core/ivalue.h first: ${flags}")
endif()
run("${CXX}" -std=c++20 "${examples}/attention_padding.cc"
  -o "${WORK_DIR}/by_pkg_config" ${flags})
run(${CMAKE_COMMAND} "-DPROGRAM=${WORK_DIR}/by_pkg_config"
  "-DSOURCE=${examples}/attention_padding.cc"
  -P "${examples}/run_example.cmake")
run("${WORK_DIR}/prefix/bin/realetc" --help)
# bash finds its completion, which asks the installed program.
run(bash --norc -c "PATH='${WORK_DIR}/prefix/bin':$PATH
source '${WORK_DIR}/prefix/share/bash-completion/completions/realetc'
COMP_WORDS=(realetc scor) COMP_CWORD=1
_realetc
[[ $COMPREPLY == score ]]")

# The message of a package that cannot be used: to a project that asks for more
# than it has, or has another LibTorch, and to a program without a module.
function(expect_mistake expected)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code
    OUTPUT_VARIABLE out ERROR_VARIABLE err)
  # CMake breaks the lines of its messages.
  string(REGEX REPLACE "[ \n]+" " " said "${out}${err}")
  string(FIND "${said}" "${expected}" place)
  if(code EQUAL 0 OR place EQUAL -1)
    message(FATAL_ERROR "expected a failure with \"${expected}\":\n${said}")
  endif()
endfunction()
# Layers are components; another name is refused.
file(WRITE "${WORK_DIR}/components/CMakeLists.txt" [[
cmake_minimum_required(VERSION 3.25)
project(Components LANGUAGES CXX)
find_package(RealETC REQUIRED COMPONENTS attention tasks ${MORE})
]])
set(configure_components ${CMAKE_COMMAND} -G Ninja
  -S "${WORK_DIR}/components" -B "${WORK_DIR}/components/build"
  "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix" "-DTorch_DIR=${TORCH_DIR}")
run(${configure_components})
expect_mistake(
  "components base, attention, etc and tasks, but not \"speed\""
  ${configure_components} -DMORE=speed)
string(REGEX REPLACE "(RealETC_TORCH_VERSION) \"[^\"]+" "\\1 \"0.9.0"
  text "${text}")
file(WRITE "${config}" "${text}")
expect_mistake("RealETC was built with LibTorch 0.9.0,"
  ${CMAKE_COMMAND} -G Ninja -S "${source_dir}" -B "${WORK_DIR}/refused"
  "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix" "-DTorch_DIR=${TORCH_DIR}")
file(GLOB_RECURSE module "${WORK_DIR}/prefix/*/realetc_onednn.so")
file(REMOVE "${module}")
expect_mistake("needs realetc_onednn.so, which could not be opened"
  "${WORK_DIR}/build/outside")

# The repository as a part of another project, which links it, and what it refuses.
cmake_path(SET root NORMALIZE "${source_dir}/../..")
file(WRITE "${WORK_DIR}/added/CMakeLists.txt" "
cmake_minimum_required(VERSION 3.25)
project(Added LANGUAGES CXX)
add_subdirectory(\"${root}\" realetc)
add_executable(outside \"${source_dir}/outside.cc\")
target_link_libraries(outside PRIVATE RealETC::tasks)
")
run(${CMAKE_COMMAND} -G Ninja -S "${WORK_DIR}/added"
  -B "${WORK_DIR}/added/build" "-DTorch_DIR=${TORCH_DIR}")
expect_mistake("built in one configuration, by a generator such as Ninja,"
  ${CMAKE_COMMAND} -G "Ninja Multi-Config" -S "${root}" -B "${WORK_DIR}/multi")
expect_mistake("CMAKE_INSTALL_LIBDIR should be a path from the prefix, but is /"
  ${CMAKE_COMMAND} -G Ninja -S "${root}" -B "${WORK_DIR}/absolute"
  "-DCMAKE_INSTALL_LIBDIR=${WORK_DIR}/lib")

# The archive of sources begins at their root, and lacks what is built in it.
run(${CMAKE_CPACK_COMMAND} --config "${BUILD_DIR}/CPackSourceConfig.cmake"
  -B "${WORK_DIR}/sources")
file(GLOB archive "${WORK_DIR}/sources/*.tar.gz")
execute_process(COMMAND ${CMAKE_COMMAND} -E tar tf "${archive}"
  OUTPUT_VARIABLE packed COMMAND_ERROR_IS_FATAL ANY)
if(NOT packed MATCHES "-Source/tasks/runs/" OR packed MATCHES "-Source/build/")
  message(FATAL_ERROR "${archive} should have tasks/runs, but not build")
endif()
file(REMOVE_RECURSE "${WORK_DIR}")

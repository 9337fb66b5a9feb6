# Installs the build to an empty prefix, and configures, builds and runs the
# project in this folder with nothing but that prefix and the system's own
# packages. Also checks that README.md and doc/library.md show these very programs
# and this project, and that all installed headers compile.
#
#   cmake -D BUILD_DIR=... -D WORK_DIR=... [-D TORCH_DIR=...] -P run.cmake
cmake_minimum_required(VERSION 3.25)
set(source_dir "${CMAKE_CURRENT_LIST_DIR}")

foreach(pair IN ITEMS
    README.md:outside.cc README.md:CMakeLists.txt doc/library.md:layer.cc)
  string(REPLACE ":" ";" pair "${pair}")
  list(GET pair 0 page)
  list(GET pair 1 file)
  file(READ "${source_dir}/${file}" shown)
  file(READ "${source_dir}/../../${page}" text)
  # The page leaves out the comment that explains the file to its readers here.
  string(REGEX REPLACE "^((//|#)[^\n]*\n)+" "" shown "${shown}")
  string(STRIP "${shown}" shown)
  string(FIND "${text}" "${shown}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "${page} does not show tests/package/${file}")
  endif()
endforeach()

file(REMOVE_RECURSE "${WORK_DIR}")
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
run(${CMAKE_COMMAND} --install "${BUILD_DIR}" --prefix "${WORK_DIR}/prefix")
run(${CMAKE_COMMAND} -G Ninja -S "${source_dir}" -B "${WORK_DIR}/build"
  "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix" "-DTorch_DIR=${TORCH_DIR}")
run(${CMAKE_COMMAND} --build "${WORK_DIR}/build")
run("${WORK_DIR}/build/outside")

file(READ "${source_dir}/CMakeLists.txt" project)
string(REPLACE "outside.cc" "\"${source_dir}/layer.cc\"" layer "${project}")
file(WRITE "${WORK_DIR}/layer/CMakeLists.txt" "${layer}")
run(${CMAKE_COMMAND} -G Ninja -S "${WORK_DIR}/layer" -B "${WORK_DIR}/layer/build"
  "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix" "-DTorch_DIR=${TORCH_DIR}")
run(${CMAKE_COMMAND} --build "${WORK_DIR}/layer/build")
run("${WORK_DIR}/layer/build/outside")

set(include_dir "${WORK_DIR}/prefix/include/realetc")
file(GLOB_RECURSE headers RELATIVE "${include_dir}" "${include_dir}/*.h")
if(NOT headers)
  message(FATAL_ERROR "no headers are installed in ${include_dir}")
endif()
list(TRANSFORM headers REPLACE "(.+)" "#include \"\\1\"\n")
list(JOIN headers "" includes)
file(WRITE "${WORK_DIR}/headers/headers.cc" "${includes}")
string(REPLACE "add_executable(outside outside.cc)"
  "add_library(outside OBJECT headers.cc)" project "${project}")
file(WRITE "${WORK_DIR}/headers/CMakeLists.txt" "${project}")
run(${CMAKE_COMMAND} -G Ninja -S "${WORK_DIR}/headers"
  -B "${WORK_DIR}/headers/build" "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix"
  "-DTorch_DIR=${TORCH_DIR}")
run(${CMAKE_COMMAND} --build "${WORK_DIR}/headers/build")
run("${WORK_DIR}/prefix/bin/realetc" --help)

# What a package says when it cannot be used: to a project with another LibTorch,
# and to a program without a module.
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
file(GLOB_RECURSE config "${WORK_DIR}/prefix/*/RealETCConfig.cmake")
file(READ "${config}" text)
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
file(REMOVE_RECURSE "${WORK_DIR}")

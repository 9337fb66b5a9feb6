# Installs realetc.pc, for builds without CMake:
#
#   g++ -std=c++20 mine.cc $(pkg-config --cflags --libs realetc)
#
# Says the same as the CMake package; LibTorch, which has no such file, is the
# one that this project was built with.

# Our libraries, upper layers first, and what they link, by its names for
# pkg-config.
set(etc_pc_names
  ICU::i18n=icu-i18n ICU::uc=icu-uc OpenSSL::Crypto=libcrypto
  Snappy::snappy=snappy ZLIB::ZLIB=zlib hwy::hwy=libhwy
  nlohmann_json::nlohmann_json=nlohmann_json)
set(ETC_PC_LIBS)
set(ETC_PC_REQUIRES)
get_property(libraries GLOBAL PROPERTY ETC_LIBRARIES)
foreach(library IN LISTS libraries)
  get_target_property(name ${library} OUTPUT_NAME)
  list(PREPEND ETC_PC_LIBS "-l${name}")
  get_target_property(linked ${library} INTERFACE_LINK_LIBRARIES)
  list(FILTER linked EXCLUDE
    REGEX "^(RealETC::.*|etc_torch|c10|Threads::Threads|.*LINK_ONLY.*)$")
  list(REMOVE_ITEM linked ${CMAKE_DL_LIBS})
  foreach(target IN LISTS linked)
    string(REGEX REPLACE "^absl::" "absl_" package "${target}")
    if(package STREQUAL target)
      set(package ${etc_pc_names})
      list(FILTER package INCLUDE REGEX "^${target}=")
      string(REGEX REPLACE "^.*=" "" package "${package}")
    endif()
    if(NOT package)
      message(FATAL_ERROR "cmake/EtcPkgConfig.cmake should name the pkg-config "
        "package of ${target}, which ${library} links")
    endif()
    list(APPEND ETC_PC_REQUIRES "${package}")
  endforeach()
endforeach()
list(REMOVE_DUPLICATES ETC_PC_REQUIRES)

# Folders that compiler and linker search anyhow are not named: that would
# change their order.
list(GET etc_torch_folders 0 library)
cmake_path(GET library PARENT_PATH folder)
if(NOT folder IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
  list(APPEND ETC_PC_LIBS "-L${folder}" "-Wl,-rpath,${folder}")
endif()
# libstdc++ first, as EtcFindTorch.cmake says.
if(Torch_VERSION VERSION_GREATER_EQUAL 2)
  list(APPEND ETC_PC_LIBS -lstdc++)
endif()
list(APPEND ETC_PC_LIBS -ltorch -ltorch_cpu -lc10
  ${OpenMP_CXX_FLAGS} -pthread -l${CMAKE_DL_LIBS})
set(ETC_PC_CFLAGS ${TORCH_CXX_FLAGS})
# Repeats etc_torch (EtcDependencies.cmake) for every compiler: clang may read what
# g++ has built.
if(Torch_VERSION VERSION_LESS 2)
  list(APPEND ETC_PC_CFLAGS "-include ATen/core/ivalue.h")
endif()
foreach(folder IN LISTS TORCH_INCLUDE_DIRS)
  file(REAL_PATH "${folder}" folder)
  if(NOT folder IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    list(APPEND ETC_PC_CFLAGS "-isystem ${folder}")
  endif()
endforeach()
list(REMOVE_DUPLICATES ETC_PC_CFLAGS)

foreach(variable IN ITEMS ETC_PC_LIBS ETC_PC_REQUIRES ETC_PC_CFLAGS)
  list(JOIN ${variable} " " ${variable})
endforeach()
set(folder "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH ETC_PREFIX_FROM_PC "/prefix/${folder}" "/prefix")
string(REGEX REPLACE "/$" "" ETC_PREFIX_FROM_PC "${ETC_PREFIX_FROM_PC}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/realetc.pc.in"
  "${PROJECT_BINARY_DIR}/realetc.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/realetc.pc" DESTINATION "${folder}"
  COMPONENT development)

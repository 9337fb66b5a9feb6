# Finds LibTorch: what find_package(Torch) sets, all of it from one place, and
# ETC_TORCH_MISTAKE, which says what is wrong, or is empty. For this project and
# for those that use its package.
#
# TorchConfig.cmake looks for libc10 in the system first and then in its own
# folder, so that with Debian's libtorch-dev installed too it takes parts of
# both. Its own folder comes first here.

# Sets `output` to the first of LibTorch's libraries, and to the first one that
# is in another folder, if there is such a one.
function(etc_list_torch_folders output)
  set(files "${TORCH_LIBRARY}" "${c10_LIBRARY}")
  foreach(target IN ITEMS torch torch_cpu c10)
    if(TARGET ${target})
      get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
      foreach(configuration IN LISTS configurations)
        get_target_property(file ${target} IMPORTED_LOCATION_${configuration})
        list(APPEND files "${file}")
      endforeach()
    endif()
  endforeach()
  list(FILTER files INCLUDE REGEX "/")
  set(folders)
  set(found)
  foreach(file IN LISTS files)
    file(REAL_PATH "${file}" folder)
    cmake_path(GET folder PARENT_PATH folder)
    if(NOT folder IN_LIST folders)
      list(APPEND folders "${folder}")
      list(APPEND found "${file}")
    endif()
  endforeach()
  set(${output} "${found}" PARENT_SCOPE)
endfunction()

# Asked for a version that nobody has, find_package reads no TorchConfig.cmake,
# but says which one it would have read.
if(NOT Torch_DIR)
  find_package(Torch 999999 EXACT QUIET CONFIG)
  unset(Torch_DIR CACHE)
  if(Torch_CONSIDERED_CONFIGS)
    list(GET Torch_CONSIDERED_CONFIGS 0 etc_torch_dir)
    cmake_path(GET etc_torch_dir PARENT_PATH etc_torch_dir)
    set(Torch_DIR "${etc_torch_dir}" CACHE PATH
      "The folder of LibTorch's TorchConfig.cmake")
  endif()
endif()
# The folder of lib, include and share/cmake/Torch. (Debian's file is one folder
# deeper, and its libraries are in the system's.)
cmake_path(SET etc_torch_prefix NORMALIZE "${Torch_DIR}/../../..")

# A LibTorch for CUDA would ask for the CUDA toolkit, down to its compiler. That
# is for code in CUDA with LibTorch, of which we have none (ETC_CUDA's kernels do
# without), and is left out if this target is there already; the libraries
# themselves know where those of CUDA are. A project that compiles CUDA finds
# Torch before RealETC.
if(EXISTS "${etc_torch_prefix}/lib/libc10_cuda.so" AND
   NOT TARGET torch::cudart)
  add_library(torch::cudart INTERFACE IMPORTED)
  if(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
    set_target_properties(torch::cudart PROPERTIES IMPORTED_GLOBAL ON)
  endif()
endif()
# Kineto is in libtorch_cpu; TorchConfig.cmake warns where it is not beside it.
if(NOT EXISTS "${etc_torch_prefix}/lib/libkineto.a")
  set(kineto_LIBRARY torch CACHE INTERNAL "Not a library of its own")
endif()

# An earlier configuration may have found another LibTorch.
foreach(variable IN ITEMS
    Caffe2_DIR TORCH_LIBRARY c10_LIBRARY C10_CUDA_LIBRARY)
  unset(${variable} CACHE)
endforeach()
set(etc_prefix_path "${CMAKE_PREFIX_PATH}")
list(PREPEND CMAKE_PREFIX_PATH "${etc_torch_prefix}")
find_package(Torch QUIET CONFIG)
set(CMAKE_PREFIX_PATH "${etc_prefix_path}")
# PyPI's libtorch.so exports functions of a newer libstdc++, as
# std::filesystem::remove_all, which call others that the system's may not have:
# a program would find them there, and jump to address 0, unless it searches
# libstdc++ first.
if(Torch_FOUND AND Torch_VERSION VERSION_GREATER_EQUAL 2)
  list(PREPEND TORCH_LIBRARIES stdc++)
endif()

set(ETC_TORCH_MISTAKE "")
etc_list_torch_folders(etc_torch_folders)
list(LENGTH etc_torch_folders etc_torch_places)
if(NOT Torch_FOUND)
  string(CONCAT ETC_TORCH_MISTAKE
    "There is no LibTorch. Install Debian's libtorch-dev, or say where another "
    "one is: -DCMAKE_PREFIX_PATH=, and what torch.utils.cmake_prefix_path is in "
    "Python, or the folder of an unpacked one. ${Torch_NOT_FOUND_MESSAGE}")
elseif(etc_torch_places GREATER 1)
  list(JOIN etc_torch_folders " and " etc_torch_folders)
  string(CONCAT ETC_TORCH_MISTAKE
    "LibTorch's libraries should be in one folder, but found were "
    "${etc_torch_folders}. Torch_DIR is ${Torch_DIR}: say which LibTorch is "
    "meant by -DCMAKE_PREFIX_PATH=, and have no TORCH_INSTALL_PREFIX in the "
    "environment.")
elseif(TORCH_CXX_FLAGS MATCHES "_GLIBCXX_USE_CXX11_ABI=0")
  string(CONCAT ETC_TORCH_MISTAKE
    "LibTorch should have the C++11 ABI, the compiler's own, but ${Torch_DIR} has "
    "the old one (${TORCH_CXX_FLAGS}). Take Debian's, an archive of 2.8 or later "
    "or one called libtorch-cxx11-abi, or PyPI's torch 2.7 or later.")
endif()

# `cmake --install` gives a CMake package: an outside project says
#
#   find_package(RealETC REQUIRED)
#   target_link_libraries(mine PRIVATE RealETC::attention)
#
# or RealETC::base, RealETC::etc, RealETC::tasks: the layers of the code, each
# with all that lies below it. Their names are components, all of them there.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/RealETC")

get_property(libraries GLOBAL PROPERTY ETC_LIBRARIES)
install(TARGETS ${libraries} EXPORT RealETCTargets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/realetc"
    COMPONENT development)
install(FILES "${PROJECT_SOURCE_DIR}/realetc.h"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/realetc" COMPONENT development)
install(TARGETS etc_torch EXPORT RealETCTargets COMPONENT development)
install(EXPORT RealETCTargets NAMESPACE RealETC:: DESTINATION "${package_dir}"
  COMPONENT development)
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/RealETCConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/RealETCConfig.cmake"
  INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/RealETCConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_SOURCE_DIR}/cmake/EtcFindTorch.cmake"
  "${PROJECT_BINARY_DIR}/RealETCConfig.cmake"
  "${PROJECT_BINARY_DIR}/RealETCConfigVersion.cmake"
  DESTINATION "${package_dir}" COMPONENT development)
include(EtcPkgConfig)

# Configurations name the files of samples by their paths from here, and the
# examples look for both beside themselves.
set(data_dir "${CMAKE_INSTALL_DATADIR}/realetc")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples" DESTINATION "${data_dir}"
  COMPONENT development)
install(TARGETS realetc RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
  COMPONENT program)
# The directories of completions that bash-completion and zsh search: Debian's zsh
# vendor-completions in /usr, and site-functions in /usr/local.
install(FILES "${PROJECT_SOURCE_DIR}/cmake/completions/realetc"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
  COMPONENT program)
foreach(folder IN ITEMS vendor-completions site-functions)
  install(FILES "${PROJECT_SOURCE_DIR}/cmake/completions/_realetc"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/${folder}" COMPONENT program)
endforeach()
# Leaves out the files that tasks/demo.sh reads and the scripts that made the
# samples.
foreach(task IN LISTS ETC_TASKS ITEMS pretrain translation)
  install(DIRECTORY
    "${PROJECT_SOURCE_DIR}/tasks/${task}/configs"
    "${PROJECT_SOURCE_DIR}/tasks/${task}/sample"
    DESTINATION "${data_dir}/tasks/${task}" COMPONENT program
    PATTERN "sample/demo.*" EXCLUDE
    PATTERN "sample/generate.py" EXCLUDE
    PATTERN "__pycache__" EXCLUDE)
endforeach()

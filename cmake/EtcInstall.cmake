# `cmake --install` gives a CMake package: an outside project says
#
#   find_package(RealETC REQUIRED)
#   target_link_libraries(mine PRIVATE RealETC::attention)
#
# and RealETC::etc or RealETC::tasks for the storeys above.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/RealETC")

# One name for each storey, over all its libraries and the storeys below. A
# storey may have a library of its own name, which then is linked with the rest
# below it.
set(below)
foreach(storey IN ITEMS attention etc tasks)
  get_property(libraries GLOBAL PROPERTY ETC_LIBRARIES_OF_${storey})
  if(NOT TARGET etc_${storey})
    add_library(etc_${storey} INTERFACE)
    add_library(RealETC::${storey} ALIAS etc_${storey})
    set_target_properties(etc_${storey} PROPERTIES EXPORT_NAME ${storey})
    target_link_libraries(etc_${storey} INTERFACE ${libraries} ${below})
    list(APPEND libraries etc_${storey})
  endif()
  set(below etc_${storey})
  install(TARGETS ${libraries} EXPORT RealETCTargets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/realetc")
endforeach()

install(TARGETS etc_torch EXPORT RealETCTargets)
install(TARGETS realetc RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(EXPORT RealETCTargets NAMESPACE RealETC:: DESTINATION "${package_dir}")
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/RealETCConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/RealETCConfig.cmake"
  INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/RealETCConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/RealETCConfig.cmake"
  "${PROJECT_BINARY_DIR}/RealETCConfigVersion.cmake"
  DESTINATION "${package_dir}")

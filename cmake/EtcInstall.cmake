# `cmake --install` gives a CMake package: find_package(RealETC).
include(CMakePackageConfigHelpers)

get_property(targets GLOBAL PROPERTY ETC_INSTALLED_TARGETS)
install(TARGETS ${targets} etc_torch EXPORT RealETCTargets
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/realetc")

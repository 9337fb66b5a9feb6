# `cpack -G DEB` gives three Debian packages, of a build with Debian's LibTorch
# (doc/building.md; debian_package_test.sh installs them in a bare Debian):
#
#   realetc           the program, shipped configurations, samples,
#                     completion for bash and zsh
#   librealetc-dev    static libraries, headers, CMake package, realetc.pc,
#                     examples
#   realetc-modules   what both open at run time
set(CPACK_PACKAGE_VENDOR "RealETC")
set(CPACK_PACKAGE_CONTACT "The maintainers of RealETC")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER
  "${CPACK_PACKAGE_CONTACT} <maintainers@realetc.invalid>")
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program development modules)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)

# Depends on any revision of the same version (CPACK_DEBIAN_PACKAGE_RELEASE).
string(CONCAT modules "realetc-modules (>= ${PROJECT_VERSION}), "
  "realetc-modules (<< ${PROJECT_VERSION}.~)")
# With the reference BLAS all is 20 times slower.
set(blas "libopenblas0-openmp")

set(CPACK_DEBIAN_MODULES_PACKAGE_NAME realetc-modules)
set(CPACK_DEBIAN_MODULES_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_MODULES_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_MODULES_DESCRIPTION
  "Modules that programs open at run time: matrix products by oneDNN, and the
SentencePiece tokenizer, apart from what LibTorch may have of both inside.")

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME realetc)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "${modules}, ${blas}")
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
  "The program realetc, which trains and runs Transformers on documents of
thousands of tokens. Configurations and samples are in /usr/share/realetc.")

# The packages that RealETCConfig.cmake and realetc.pc look for.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME librealetc-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
string(CONCAT CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "${modules}, ${blas}, libtorch-dev, libabsl-dev, nlohmann-json3-dev, "
  "libsnappy-dev, libssl-dev, zlib1g-dev, libhwy-dev, libicu-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "realetc, cmake, pkg-config")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
  "The C++20 library: attention, the ETC encoder and tasks on long documents, on
LibTorch. Examples are in /usr/share/realetc/examples.")

foreach(package IN ITEMS
    program:realetc development:librealetc-dev modules:realetc-modules)
  string(REPLACE ":" ";" package "${package}")
  list(GET package 0 component)
  list(GET package 1 name)
  install(FILES "${PROJECT_SOURCE_DIR}/cmake/copyright"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${name}" COMPONENT ${component})
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/librealetc-dev"
  COMPONENT development)

# Makes the target package_source pack the checkout without built files.
string(REGEX REPLACE "[+.()*?|$]" "[\\0]" root "${PROJECT_SOURCE_DIR}")
set(CPACK_SOURCE_IGNORE_FILES
  "^${root}/(build|prefix|runs|[.]git|[.]cache)/" "/__pycache__/")
set(CPACK_SOURCE_GENERATOR TGZ)
include(CPack)

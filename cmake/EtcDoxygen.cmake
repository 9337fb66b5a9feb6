# Pages of the installed headers, as build/<preset>/doc/html/index.html:
#
#   cmake --build build/release --target doc
#
# A warning of Doxygen's fails it.
set(ETC_DOXYGEN_INPUT "${PROJECT_SOURCE_DIR}/realetc.h")
get_property(libraries GLOBAL PROPERTY ETC_LIBRARIES)
foreach(library IN LISTS libraries)
  get_target_property(headers ${library} HEADER_SET)
  if(headers)
    list(APPEND ETC_DOXYGEN_INPUT ${headers})
  endif()
endforeach()
list(TRANSFORM ETC_DOXYGEN_INPUT REPLACE "(.+)" "\"\\1\"")
list(JOIN ETC_DOXYGEN_INPUT " " ETC_DOXYGEN_INPUT)
configure_file("${PROJECT_SOURCE_DIR}/cmake/Doxyfile.in"
  "${PROJECT_BINARY_DIR}/Doxyfile" @ONLY)

find_program(DOXYGEN doxygen)
if(DOXYGEN)
  add_custom_target(doc
    COMMAND "${DOXYGEN}" "${PROJECT_BINARY_DIR}/Doxyfile"
    COMMENT "Pages of the headers: ${PROJECT_BINARY_DIR}/doc/html/index.html"
    VERBATIM)
else()
  message(STATUS "There is no doxygen (Debian package doxygen), so no target doc")
endif()

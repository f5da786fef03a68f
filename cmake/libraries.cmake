# libtarn.a and libtarn.so, of the same objects. For others they are tarn::tarn_static and tarn::tarn, the same names as
# in the installed package; tarn_static is also what the program and the tests are linked with, which may use what is
# internal.
set(objects $<TARGET_OBJECTS:tarn_objects>)
foreach(kernels ${TARN_KERNEL_TARGETS})
  list(APPEND objects $<TARGET_OBJECTS:${kernels}>)
endforeach()
add_library(tarn_static STATIC ${objects})
add_library(tarn_shared SHARED ${objects})
set_target_properties(tarn_static PROPERTIES OUTPUT_NAME tarn)
set_target_properties(tarn_shared PROPERTIES OUTPUT_NAME tarn EXPORT_NAME tarn
  VERSION ${PROJECT_VERSION} SOVERSION ${TARN_SOVERSION})
add_library(tarn::tarn_static ALIAS tarn_static)
add_library(tarn::tarn ALIAS tarn_shared)
foreach(library tarn_static tarn_shared)
  set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX)  # that of SentencePiece
  target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
endforeach()
# What a static libtarn needs besides the modules of pkg-config: a program that links it may be pure C, compiled without
# OpenMP. GCC finds its own version of libgomp.
foreach(name ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
  if(name MATCHES "^(stdc\\+\\+|c\\+\\+|m)$")
    list(APPEND TARN_CXX_LIBRARIES ${name})
  endif()
endforeach()
list(REMOVE_DUPLICATES TARN_CXX_LIBRARIES)
set(TARN_STATIC_LIBRARIES ${TARN_CXX_LIBRARIES})
foreach(name ${OpenMP_C_LIB_NAMES})
  if(name MATCHES "^(gomp|pthread)$")
    list(APPEND TARN_STATIC_LIBRARIES ${name})
  else()
    list(APPEND TARN_STATIC_LIBRARIES ${OpenMP_${name}_LIBRARY})
  endif()
endforeach()
# The package has what is here tarn_dependencies as tarn::dependencies.
target_link_libraries(tarn_static PUBLIC $<BUILD_INTERFACE:tarn_dependencies>
  "$<BUILD_INTERFACE:${TARN_CXX_LIBRARIES}>" $<INSTALL_INTERFACE:$<LINK_ONLY:tarn::dependencies>>)
target_link_libraries(tarn_shared PRIVATE tarn_flags tarn_dependencies)
# Templates of the C++ library, and what a static archive among the dependencies has, stay within; so do the library's
# own calls.
configure_file(cmake/libtarn.map.in generated/libtarn.map @ONLY)
target_link_options(tarn_shared PRIVATE LINKER:--version-script=${PROJECT_BINARY_DIR}/generated/libtarn.map
  LINKER:-Bsymbolic-functions)
set_target_properties(tarn_shared PROPERTIES LINK_DEPENDS ${PROJECT_BINARY_DIR}/generated/libtarn.map)
if(NOT TARN_SANITIZE)
  target_link_options(tarn_shared PRIVATE LINKER:--no-undefined)
endif()
# What tests are linked with, which may use what is internal: tarn_static, except under sanitizers. There a program takes
# some 40 MB with the library within it, and the tests of one preset took eight gigabytes; so they share one.
if(TARN_SANITIZE)
  add_library(tarn_tested SHARED EXCLUDE_FROM_ALL ${objects})
  set_target_properties(tarn_tested PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(tarn_tested INTERFACE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(tarn_tested PUBLIC tarn_dependencies PRIVATE tarn_flags)
  # The library holds C++, whose checks clang's run-time has apart: a C program is linked without it unless it is told to.
  if(CMAKE_C_COMPILER_ID MATCHES "Clang")
    target_link_options(tarn_tested INTERFACE -fsanitize-link-c++-runtime)
    target_link_libraries(tarn_tested INTERFACE stdc++)
  endif()
else()
  add_library(tarn_tested ALIAS tarn_static)
endif()
if(NOT PROJECT_IS_TOP_LEVEL)
  set_target_properties(tarn_static tarn_shared PROPERTIES EXCLUDE_FROM_ALL ON)
endif()

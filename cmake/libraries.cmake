# Two libraries, each static and shared from the same objects: libtarn, which a program embeds, and libtarn-lab on top
# of it, for research on models. Other projects link tarn::tarn and tarn::tarn_lab, or tarn::tarn_static and
# tarn::tarn_lab_static, the same names as in the installed package. The program is linked with the static ones.
set(objects $<TARGET_OBJECTS:tarn_objects>)
foreach(kernels ${TARN_KERNEL_TARGETS})
  list(APPEND objects $<TARGET_OBJECTS:${kernels}>)
endforeach()
add_library(tarn_static STATIC ${objects})
add_library(tarn_shared SHARED ${objects})
add_library(tarn_lab_static STATIC $<TARGET_OBJECTS:tarn_lab_objects>)
add_library(tarn_lab_shared SHARED $<TARGET_OBJECTS:tarn_lab_objects>)
set_target_properties(tarn_static tarn_shared PROPERTIES OUTPUT_NAME tarn)
set_target_properties(tarn_lab_static tarn_lab_shared PROPERTIES OUTPUT_NAME tarn-lab)
set_target_properties(tarn_shared PROPERTIES EXPORT_NAME tarn)
set_target_properties(tarn_lab_shared PROPERTIES EXPORT_NAME tarn_lab INSTALL_RPATH "$ORIGIN")  # next to libtarn
if(TARN_BUNDLED)  # archives of Python keep no symbolic links: one file, named as programs ask for it
  set_target_properties(tarn_shared tarn_lab_shared PROPERTIES VERSION ${TARN_SOVERSION} SOVERSION ${TARN_SOVERSION})
elseif(NOT DEFINED SKBUILD)  # in a wheel they serve only its own package
  set_target_properties(tarn_shared tarn_lab_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${TARN_SOVERSION})
endif()
add_library(tarn::tarn_static ALIAS tarn_static)
add_library(tarn::tarn ALIAS tarn_shared)
add_library(tarn::tarn_lab_static ALIAS tarn_lab_static)
add_library(tarn::tarn_lab ALIAS tarn_lab_shared)
foreach(library tarn_static tarn_shared tarn_lab_static tarn_lab_shared)
  set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX)  # for SentencePiece
  target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
endforeach()
# What a static libtarn needs besides the pkg-config modules: a program that links it may be pure C, compiled without
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
# In the package, tarn_dependencies is called tarn::dependencies.
target_link_libraries(tarn_static PUBLIC $<BUILD_INTERFACE:tarn_dependencies>
  "$<BUILD_INTERFACE:${TARN_CXX_LIBRARIES}>" $<INSTALL_INTERFACE:$<LINK_ONLY:tarn::dependencies>>)
target_link_libraries(tarn_shared PRIVATE tarn_flags tarn_dependencies)
target_link_libraries(tarn_lab_static PUBLIC tarn_static)
target_link_libraries(tarn_lab_shared PUBLIC tarn_shared PRIVATE tarn_flags)
if(TARN_BUNDLED)
  add_library(tarn_runtime OBJECT ${PROJECT_SOURCE_DIR}/packaging/bundle/runtime.c)
  target_link_libraries(tarn_runtime PRIVATE tarn_flags tarn_dependencies)
  target_sources(tarn_shared PRIVATE $<TARGET_OBJECTS:tarn_runtime>)
  # libtarn contains the libraries that both use, and shows them to libtarn-lab: with two copies, each would have its own
  # threads, and objects of Jansson its own hashes. What libtarn does not use itself is named.
  target_link_options(tarn_shared PRIVATE LINKER:-u,json_pack LINKER:-u,dsyevr_)
  target_link_libraries(tarn_lab_shared PRIVATE m dl)
  if(TARN_MINIZIP)  # which libtarn does not use, and which has no state of its own
    target_link_libraries(tarn_lab_shared PRIVATE PkgConfig::MINIZIP)
  endif()
else()
  target_link_libraries(tarn_lab_shared PRIVATE tarn_dependencies)
  target_link_options(tarn_lab_shared PRIVATE LINKER:--as-needed)  # most of them are used only by libtarn
endif()
# Templates of the C++ library, and symbols of static archives among the dependencies, stay hidden; so do a library's
# internal calls. The symbols that libtarn-lab uses besides public functions have their own node in libtarn's map, named
# by the version, so that libraries of different versions cannot be mixed by accident.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/libtarn_private.txt)
file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/libtarn_private.txt TARN_PRIVATE REGEX "^tarn__")
if(TARN_BUNDLED)
  list(APPEND TARN_PRIVATE json_* GOMP_* omp_* dsyevr_)
endif()
list(JOIN TARN_PRIVATE ";\n    " TARN_PRIVATE)
foreach(library libtarn libtarn-lab)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${library}.map.in ${PROJECT_BINARY_DIR}/generated/${library}.map @ONLY)
endforeach()
foreach(library tarn_shared tarn_lab_shared)
  get_target_property(name ${library} OUTPUT_NAME)
  set(map ${PROJECT_BINARY_DIR}/generated/lib${name}.map)
  target_link_options(${library} PRIVATE LINKER:--version-script=${map} LINKER:-Bsymbolic-functions)
  set_target_properties(${library} PROPERTIES LINK_DEPENDS ${map})
  if(NOT TARN_SANITIZE)
    target_link_options(${library} PRIVATE LINKER:--no-undefined)
  endif()
endforeach()
# The libraries for tests, which may use internal symbols: the static libraries, except under sanitizers. There each
# program would contain some 40 MB of them, and the tests of one preset took eight gigabytes; so they share one library
# of both. So do tests that are packed for another machine.
option(TARN_TESTS_SHARED "link the tests with one shared library" OFF)
if(TARN_SANITIZE OR TARN_TESTS_SHARED)
  add_library(tarn_tested SHARED EXCLUDE_FROM_ALL ${objects} $<TARGET_OBJECTS:tarn_lab_objects>)
  set_target_properties(tarn_tested PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(tarn_tested INTERFACE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(tarn_tested PUBLIC tarn_dependencies PRIVATE tarn_flags)
  # The library contains C++, whose checks are in a separate runtime with clang: a C program needs an option to link it.
  if(CMAKE_C_COMPILER_ID MATCHES "Clang")
    target_link_options(tarn_tested INTERFACE -fsanitize-link-c++-runtime)
    target_link_libraries(tarn_tested INTERFACE stdc++)
  endif()
else()
  add_library(tarn_tested ALIAS tarn_lab_static)
endif()
if(NOT PROJECT_IS_TOP_LEVEL)
  set_target_properties(tarn_static tarn_shared tarn_lab_static tarn_lab_shared PROPERTIES EXCLUDE_FROM_ALL ON)
endif()

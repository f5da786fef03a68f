# The Python package: python/tarn, with both libraries and the interface that python/make_binding.py generates from the
# headers. build/PRESET/python has the complete package, for its tests; pyproject.toml makes a wheel of it
# (docs/python.md).
set(TARN_PYTHON python3 CACHE STRING "the Python that makes and tests the package: needs pycparser, NumPy and pytest")
if(DEFINED SKBUILD)  # building a wheel
  set(TARN_PYTHON ${Python3_EXECUTABLE})
endif()
if(TARN_SANITIZE)
  set(TARN_PYTHON_STATE "not built with sanitizers, whose libraries an interpreter would have to load first")
  return()
endif()
execute_process(COMMAND ${TARN_PYTHON} -c "import sys, pycparser; print(sys.version.split()[0])"
  OUTPUT_VARIABLE TARN_PYTHON_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(DEFINED SKBUILD AND NOT failed EQUAL 0)
  message(FATAL_ERROR "${TARN_PYTHON} does not find pycparser")
elseif(NOT failed EQUAL 0)
  set(TARN_PYTHON_STATE "not built: ${TARN_PYTHON} does not find pycparser")
  return()
endif()
set(TARN_PYTHON_STATE "${TARN_PYTHON} ${TARN_PYTHON_VERSION}")

set(package ${PROJECT_BINARY_DIR}/python/tarn)
file(MAKE_DIRECTORY ${package})
file(GLOB_RECURSE headers CONFIGURE_DEPENDS include/tarn/*.h)
add_custom_command(OUTPUT ${package}/_binding.py
  COMMAND ${TARN_PYTHON} python/make_binding.py ${CMAKE_C_COMPILER} include ${PROJECT_VERSION} ${package}/_binding.py
  DEPENDS python/make_binding.py ${headers}
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} COMMENT "Writing the interface of the Python package" VERBATIM)
add_custom_target(tarn_python ALL DEPENDS ${package}/_binding.py)
add_dependencies(tarn_python tarn_shared tarn_lab_shared)
if(DEFINED SKBUILD)
  install(TARGETS tarn_shared tarn_lab_shared LIBRARY DESTINATION tarn COMPONENT python)
  install(FILES ${package}/_binding.py DESTINATION tarn COMPONENT python)
else()
  file(GLOB modules CONFIGURE_DEPENDS python/tarn/*.py python/tarn/py.typed)
  foreach(module ${modules})
    get_filename_component(name ${module} NAME)
    file(CREATE_LINK ${module} ${package}/${name} SYMBOLIC)
  endforeach()
  foreach(library libtarn.so libtarn-lab.so)
    file(CREATE_LINK ${PROJECT_BINARY_DIR}/${library} ${package}/${library} SYMBOLIC)
  endforeach()
endif()

# The installation, in four components: program, library, lab, and dev for programs built with the libraries.
# packages.cmake makes packages of them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_custom_target(tarn_installed DEPENDS tarn_shared tarn_static tarn_lab_shared tarn_lab_static)
add_dependencies(tarn_installed tarn_whole)
if(TARGET tarn_pages)
  add_dependencies(tarn_installed tarn_pages)
endif()

install(TARGETS tarn_program RUNTIME COMPONENT program)
install(DIRECTORY ${TARN_PAGES}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program
  FILES_MATCHING PATTERN "*.1")
install(FILES ${TARN_PAGES}/tarn.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tarn
  COMPONENT program OPTIONAL)
install(FILES ${TARN_PAGES}/_tarn DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
  COMPONENT program OPTIONAL)
install(FILES ${TARN_PAGES}/tarn.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
  COMPONENT program OPTIONAL)

if(TARN_BUNDLED)  # a program that links the static ones would need the bundled libraries too
  set(static)
  set(static_lab)
  set(TARN_MODULES)
  set(TARN_STATIC_LIBRARIES)
else()
  set(static tarn_static)
  set(static_lab tarn_lab_static)
endif()
install(TARGETS tarn_shared ${static} EXPORT tarn_targets
  LIBRARY COMPONENT library NAMELINK_COMPONENT dev
  ARCHIVE COMPONENT dev
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS tarn_lab_shared ${static_lab} EXPORT tarn_lab_targets
  LIBRARY COMPONENT lab NAMELINK_COMPONENT dev
  ARCHIVE COMPONENT dev
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/tarn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev FILES_MATCHING PATTERN "*.h")
install(DIRECTORY examples/c/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT dev)

# find_package(tarn)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tarn)
install(EXPORT tarn_targets NAMESPACE tarn:: DESTINATION ${package} COMPONENT dev)
install(EXPORT tarn_lab_targets NAMESPACE tarn:: DESTINATION ${package} COMPONENT dev)
configure_package_config_file(cmake/tarn-config.cmake.in generated/tarn-config.cmake INSTALL_DESTINATION ${package}
  NO_SET_AND_CHECK_MACRO)
# While the major version is 0, minor versions may be incompatible.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/tarn-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/tarn-config.cmake
  ${PROJECT_BINARY_DIR}/generated/tarn-config-version.cmake DESTINATION ${package} COMPONENT dev)

# pkg-config. Paths are relative to the file, so the tree may be moved.
string(REGEX REPLACE ">=" " >= " TARN_PC_REQUIRES "${TARN_MODULES}")
list(JOIN TARN_PC_REQUIRES ", " TARN_PC_REQUIRES)
list(TRANSFORM TARN_STATIC_LIBRARIES REPLACE "^([^/].*)$" "-l\\1" OUTPUT_VARIABLE TARN_PC_LIBRARIES)
list(JOIN TARN_PC_LIBRARIES " " TARN_PC_LIBRARIES)
file(RELATIVE_PATH TARN_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
# The folders may be absolute.
file(RELATIVE_PATH TARN_PC_LIBDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH TARN_PC_INCLUDEDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
foreach(library tarn tarn-lab)
  configure_file(cmake/${library}.pc.in generated/${library}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/generated/${library}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endforeach()

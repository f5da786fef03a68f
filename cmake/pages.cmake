# Manual pages and completion, written by the program from its tables of options. If the program cannot run on the build
# machine, they are omitted.
set(TARN_PAGES ${PROJECT_BINARY_DIR}/pages)
if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
  add_custom_command(OUTPUT ${TARN_PAGES}/tarn.1
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${TARN_PAGES}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${TARN_PAGES}
    # The tests check for leaks, and know those of other libraries.
    COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 $<TARGET_FILE:tarn_program> --write-pages ${TARN_PAGES}
    DEPENDS tarn_program
    COMMENT "Writing manual pages and completion")
  add_custom_target(tarn_pages ALL DEPENDS ${TARN_PAGES}/tarn.1)
endif()

# Manual pages and completion, which the program itself writes from its tables of options. Where it cannot run on the
# machine that builds it, there are none.
set(TARN_PAGES ${PROJECT_BINARY_DIR}/pages)
if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
  add_custom_command(OUTPUT ${TARN_PAGES}/tarn.1
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${TARN_PAGES}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${TARN_PAGES}
    # Leaks are looked for by the tests, which know those of other libraries.
    COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 $<TARGET_FILE:tarn_program> --write-pages ${TARN_PAGES}
    DEPENDS tarn_program
    COMMENT "Writing manual pages and completion")
  add_custom_target(tarn_pages ALL DEPENDS ${TARN_PAGES}/tarn.1)
endif()

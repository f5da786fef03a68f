# `tarn serve`, the part of the program that needs libmicrohttpd. Without it the command says that this build lacks
# HTTP.
target_include_directories(tarn_program PRIVATE ${PROJECT_SOURCE_DIR}/tools)
if(TARN_HTTP STREQUAL "AUTO")
  pkg_check_modules(MICROHTTPD QUIET IMPORTED_TARGET libmicrohttpd>=0.9.72)
elseif(TARN_HTTP)
  pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd>=0.9.72)
endif()
if(NOT TARN_HTTP OR NOT MICROHTTPD_FOUND)
  set(TARN_HTTP_STATE "off")
  if(TARN_HTTP)
    set(TARN_HTTP_STATE "off, because libmicrohttpd-dev is not installed")
  endif()
  return()
endif()
set(TARN_HTTP_STATE "on (libmicrohttpd ${MICROHTTPD_VERSION})")

# Embeds the page and the API description as C strings with the bytes of the files.
foreach(name serve_page.html serve_openapi.json)
  string(REPLACE "." "_" symbol ${name})
  set(embedded ${PROJECT_BINARY_DIR}/generated/${symbol}.c)
  add_custom_command(OUTPUT ${embedded}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${PROJECT_SOURCE_DIR}/tools/serve/${name} -DOUTPUT=${embedded} -DSYMBOL=${symbol}
      -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${PROJECT_SOURCE_DIR}/tools/serve/${name} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding ${name}")
  target_sources(tarn_program PRIVATE ${embedded})
endforeach()
file(GLOB TARN_SERVE_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/serve/*.c)
target_sources(tarn_program PRIVATE ${TARN_SERVE_SOURCES})
target_compile_definitions(tarn_program PRIVATE TARN_HTTP=1)
target_link_libraries(tarn_program PRIVATE PkgConfig::MICROHTTPD)

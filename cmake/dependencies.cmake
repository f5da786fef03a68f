# The libraries that tarn borrows, all from Debian's packages. A missing one stops the configuration with its name.
find_package(PkgConfig REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS C)
find_package(Threads REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson>=2.12)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(ICU REQUIRED IMPORTED_TARGET icu-uc)
pkg_check_modules(SENTENCEPIECE REQUIRED IMPORTED_TARGET sentencepiece)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)

# oneDNN, 2.5 or later, by header and library (a build from source: -DCMAKE_PREFIX_PATH=...). Its own CMake files are not
# used: Debian's ask for OpenCL, which nothing here needs, and stop the configuration where it is absent.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.h REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
file(STRINGS ${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h numbers REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^0-9;]" "" numbers "${numbers}")
string(REPLACE ";" "." DNNL_VERSION "${numbers}")
if(DNNL_VERSION VERSION_LESS 2.5)
  message(FATAL_ERROR "oneDNN ${DNNL_VERSION} in ${DNNL_INCLUDE_DIR} is too old, 2.5 or later is needed")
endif()

add_library(tarn_dependencies INTERFACE)
target_include_directories(tarn_dependencies SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
# libsentencepiece needs libsentencepiece_train for training; pkg-config names both.
target_link_libraries(tarn_dependencies INTERFACE PkgConfig::JANSSON PkgConfig::YAML PkgConfig::PCRE2 PkgConfig::ICU
  PkgConfig::SENTENCEPIECE PkgConfig::XXHASH ${DNNL_LIBRARY} OpenMP::OpenMP_C Threads::Threads m)

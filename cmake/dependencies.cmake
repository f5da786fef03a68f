# The libraries that tarn borrows, all from Debian's packages. A missing one stops the configuration with its name.
find_package(PkgConfig REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS C)
find_package(Threads REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson>=2.12)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(ICU REQUIRED IMPORTED_TARGET icu-uc)
pkg_check_modules(SENTENCEPIECE REQUIRED IMPORTED_TARGET sentencepiece)
# After 0.2.0 SentencePiece gives out statuses of Abseil, and does not say so to pkg-config.
find_file(SENTENCEPIECE_HEADER sentencepiece_processor.h HINTS ${SENTENCEPIECE_INCLUDE_DIRS} REQUIRED)
file(STRINGS ${SENTENCEPIECE_HEADER} SENTENCEPIECE_ABSL REGEX "include *<absl/status/")
if(SENTENCEPIECE_ABSL)
  pkg_check_modules(ABSL REQUIRED IMPORTED_TARGET absl_status)
endif()
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(LAPACK REQUIRED IMPORTED_TARGET lapack)
pkg_check_modules(ARPACK REQUIRED IMPORTED_TARGET arpack)

add_library(tarn_dependencies INTERFACE)
# libsentencepiece needs libsentencepiece_train for training; pkg-config names both.
target_link_libraries(tarn_dependencies INTERFACE PkgConfig::JANSSON PkgConfig::YAML PkgConfig::PCRE2 PkgConfig::ICU
  PkgConfig::SENTENCEPIECE PkgConfig::XXHASH PkgConfig::ARPACK PkgConfig::LAPACK OpenMP::OpenMP_C Threads::Threads m)
if(SENTENCEPIECE_ABSL)
  target_link_libraries(tarn_dependencies INTERFACE PkgConfig::ABSL)
endif()

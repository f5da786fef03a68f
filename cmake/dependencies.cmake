# The libraries that tarn borrows, all from Debian's packages. A missing one stops the configuration with its name.
find_package(PkgConfig REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS C)
find_package(Threads REQUIRED)
# The modules of pkg-config are collected in TARN_MODULES, for tarn.pc and the CMake package.
macro(tarn_module prefix module)
  pkg_check_modules(${prefix} REQUIRED IMPORTED_TARGET ${module})
  list(APPEND TARN_MODULES ${module})
endmacro()
tarn_module(JANSSON jansson>=2.12)
tarn_module(YAML yaml-0.1)
tarn_module(PCRE2 libpcre2-8)
tarn_module(ICU icu-uc)
tarn_module(SENTENCEPIECE sentencepiece)
# After 0.2.0 SentencePiece gives out statuses of Abseil, and does not say so to pkg-config.
find_file(SENTENCEPIECE_HEADER sentencepiece_processor.h HINTS ${SENTENCEPIECE_INCLUDE_DIRS} REQUIRED)
file(STRINGS ${SENTENCEPIECE_HEADER} SENTENCEPIECE_ABSL REGEX "include *<absl/status/")
if(SENTENCEPIECE_ABSL)
  tarn_module(ABSL absl_status)
endif()
tarn_module(XXHASH libxxhash)
tarn_module(LAPACK lapack)
tarn_module(ARPACK arpack)

add_library(tarn_dependencies INTERFACE)
# libsentencepiece needs libsentencepiece_train for training; pkg-config names both.
target_link_libraries(tarn_dependencies INTERFACE PkgConfig::JANSSON PkgConfig::YAML PkgConfig::PCRE2 PkgConfig::ICU
  PkgConfig::SENTENCEPIECE PkgConfig::XXHASH PkgConfig::ARPACK PkgConfig::LAPACK OpenMP::OpenMP_C Threads::Threads m)
if(SENTENCEPIECE_ABSL)
  target_link_libraries(tarn_dependencies INTERFACE PkgConfig::ABSL)
endif()

# Optional: figures as PDF. It is opened at run time (src/report/pdf.c), so only its headers are asked for here.
pkg_check_modules(RSVG QUIET librsvg-2.0>=2.46 cairo-pdf)
if(RSVG_FOUND)
  set(TARN_RSVG_STATE "${RSVG_librsvg-2.0_VERSION} (figures of reports as PDF too)")
else()
  set(TARN_RSVG_STATE "not found (librsvg2-dev): figures of reports as SVG alone")
endif()

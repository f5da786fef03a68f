# The recipes of examples/recipes and the descriptions that they name (`model:`), embedded in libtarn-lab: they are found
# wherever the program or the library is.
file(GLOB recipe_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/recipes/*.yaml)
set(recipe_models "")
set(recipe_table "")
set(recipe_symbols "")
foreach(file ${recipe_files})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(STRINGS ${file} model REGEX "^model: ")
  if(model)
    string(REGEX REPLACE "^model: *([^ #]*).*" "\\1" model "${model}")
    list(APPEND recipe_models ${PROJECT_SOURCE_DIR}/examples/${model})
  endif()
endforeach()
list(REMOVE_DUPLICATES recipe_models)
foreach(file ${recipe_files} ${recipe_models})
  file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/examples ${file})
  string(REGEX REPLACE "[^a-z0-9]" "_" symbol "tarn__embedded_${name}")
  set(recipe NULL)
  if(name MATCHES "^recipes/(.*)\\.yaml$")
    set(recipe "\"${CMAKE_MATCH_1}\"")
  endif()
  set(embedded ${PROJECT_BINARY_DIR}/generated/${symbol}.c)
  add_custom_command(OUTPUT ${embedded}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${file} -DOUTPUT=${embedded} -DSYMBOL=${symbol} -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${file} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding ${name}")
  target_sources(tarn_lab_objects PRIVATE ${embedded})
  string(APPEND recipe_symbols "extern const char ${symbol}[];\n")
  string(APPEND recipe_table "    {\"${name}\", ${symbol}, ${recipe}},\n")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/recipe_table.c CONTENT
  "#include \"recipes/recipe_spec.h\"\n${recipe_symbols}const tarn__recipe_file tarn__recipe_files[] = {\n${recipe_table}    {0}};\n"
  @ONLY)
target_sources(tarn_lab_objects PRIVATE ${PROJECT_BINARY_DIR}/generated/recipe_table.c)

# Flags of our own targets only; nothing leaks to a program that uses the libraries.
add_library(clearhead_flags INTERFACE)
target_compile_options(clearhead_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -ffp-contract=off)
# "text" + string is reported by g++ 12 as overlapping copies that are none (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(clearhead_flags INTERFACE -Wno-restrict)
endif()
if(CLEARHEAD_WERROR)
  target_compile_options(clearhead_flags INTERFACE -Werror)
endif()
if(CLEARHEAD_SANITIZE)
  target_compile_options(clearhead_flags INTERFACE -fsanitize=${CLEARHEAD_SANITIZE} -fno-omit-frame-pointer
                                                   -fno-sanitize-recover=all)
  target_link_options(clearhead_flags INTERFACE -fsanitize=${CLEARHEAD_SANITIZE})
  set(is_program $<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>)
  target_sources(clearhead_flags INTERFACE $<${is_program}:${PROJECT_SOURCE_DIR}/cmake/sanitizer_options.cc>)
endif()

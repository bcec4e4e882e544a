# Makes a text file part of a library, as `const std::string_view NAMESPACE::NAME`, defined in a generated source.
#
#   embed_file(clearhead_views FILE lesson/en.json NAMESPACE clearhead::views NAME lesson_texts_en)
#
# The code declares it itself: namespace clearhead::views { extern const std::string_view lesson_texts_en; }
function(embed_file target)
  cmake_parse_arguments(EMBED "" "FILE;NAMESPACE;NAME" "" ${ARGN})
  get_filename_component(path ${EMBED_FILE} ABSOLUTE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} content)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${EMBED_NAME}.cc)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[
// Generated from a text file by embed_file() of cmake/EmbedFile.cmake.
#include <string_view>
namespace @EMBED_NAMESPACE@ {
extern const std::string_view @EMBED_NAME@;
const std::string_view @EMBED_NAME@ = R"embedded(@content@)embedded";
}
]])
  target_sources(${target} PRIVATE ${source})
endfunction()

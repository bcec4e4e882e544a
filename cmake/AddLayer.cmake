# One folder under clearhead/ is one static library. DEPENDS names the layers that its files may include, and is the
# whole truth: scripts/check_layers.py compares it with the includes. LIBRARIES are packages of others.
#
#   add_layer(tensor DEPENDS base LIBRARIES fmt::fmt)
function(add_layer name)
  cmake_parse_arguments(LAYER "" "" "DEPENDS;LIBRARIES" ${ARGN})
  if(LAYER_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "add_layer(${name}): unknown arguments ${LAYER_UNPARSED_ARGUMENTS}")
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "*.cc")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "*.h")
  set(target clearhead_${name})
  add_library(${target} STATIC ${sources} ${headers})
  add_library(Clearhead::${name} ALIAS ${target})
  list(TRANSFORM LAYER_DEPENDS PREPEND clearhead_ OUTPUT_VARIABLE layers)
  target_link_libraries(${target} PUBLIC ${layers} ${LAYER_LIBRARIES}
                                  PRIVATE $<BUILD_INTERFACE:clearhead_flags>)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  install(TARGETS ${target} EXPORT ClearheadTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# Called in tests/LAYER/CMakeLists.txt: all tests of one layer are one program, made from the folder's *.cc files; each
# test case is a test of ctest, property tests with a fixed seed. A folder that is no layer is tests of several.
# DEPENDS: further layers that the tests use.
# CLEARHEAD_TEST_DATA is the folder data/.
#
#   add_layer_test(tensor DEPENDS format)
function(add_layer_test name)
  cmake_parse_arguments(TEST "" "" "DEPENDS;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "*.cc")
  list(TRANSFORM TEST_DEPENDS PREPEND clearhead_ OUTPUT_VARIABLE layers)
  set(target ${name}_test)
  if(TARGET clearhead_${name})
    list(PREPEND layers clearhead_${name})
  endif()
  add_executable(${target} ${sources})
  target_link_libraries(${target} PRIVATE ${layers} ${TEST_LIBRARIES} clearhead_flags GTest::gtest_main)
  target_compile_definitions(${target} PRIVATE CLEARHEAD_TEST_DATA="${CMAKE_CURRENT_SOURCE_DIR}/data")
  gtest_discover_tests(${target} TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120
                       PROPERTIES TIMEOUT 600 LABELS ${name} ENVIRONMENT "RC_PARAMS=seed=20250101")
endfunction()

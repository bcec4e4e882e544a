# Packages of others, all from the system (scripts/setup.sh installs them). What the libraries themselves need is looked
# for again by a program that uses the installed libraries (ClearheadConfig.cmake.in), hence the two lists.
set(CLEARHEAD_PACKAGES OpenMP fmt spdlog nlohmann_json simdjson)
set(CLEARHEAD_MODULES hwy:libhwy utf8proc:libutf8proc pcre2:libpcre2-8)  # target PkgConfig::NAME : name of the .pc file

foreach(package ${CLEARHEAD_PACKAGES})
  find_package(${package} REQUIRED)
endforeach()
find_package(PkgConfig REQUIRED)
foreach(module ${CLEARHEAD_MODULES})
  string(REPLACE ":" ";" module ${module})
  list(GET module 0 name)
  list(GET module 1 file)
  pkg_check_modules(${name} REQUIRED IMPORTED_TARGET ${file})
endforeach()

find_package(CLI11 REQUIRED)
if(CLEARHEAD_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(CLEARHEAD_BUILD_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()

# What `cmake --install` puts where: headers, licence, the package for find_package().
# Layers and programs say it themselves.
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Clearhead)

install(DIRECTORY clearhead DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*-inl.h" EXCLUDE PATTERN "clearhead/apps" EXCLUDE)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(EXPORT ClearheadTargets NAMESPACE Clearhead:: DESTINATION ${package_folder})
configure_package_config_file(cmake/ClearheadConfig.cmake.in ${PROJECT_BINARY_DIR}/ClearheadConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ClearheadConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ClearheadConfig.cmake ${PROJECT_BINARY_DIR}/ClearheadConfigVersion.cmake
        DESTINATION ${package_folder})

# Installs the headers and a CMake package that any machine can read: nothing of the build machine is in it.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(mmr_package_dir ${CMAKE_INSTALL_DATADIR}/cmake/mmr)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/mmr DESTINATION include FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
install(TARGETS mmr EXPORT mmr-targets)
install(EXPORT mmr-targets NAMESPACE mmr:: DESTINATION ${mmr_package_dir})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/mmr-config.cmake.in ${PROJECT_BINARY_DIR}/mmr-config.cmake
                              INSTALL_DESTINATION ${mmr_package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mmr-config-version.cmake COMPATIBILITY SameMinorVersion
                                 ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/mmr-config.cmake ${PROJECT_BINARY_DIR}/mmr-config-version.cmake
              ${PROJECT_SOURCE_DIR}/cmake/mmr-dependencies.cmake ${PROJECT_SOURCE_DIR}/cmake/mmr-mpi.cmake
              ${PROJECT_SOURCE_DIR}/cmake/FindCBC.cmake
        DESTINATION ${mmr_package_dir})

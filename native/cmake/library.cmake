# Installs the library target `earlybird` for use by other projects: header, pkg-config file, CMake package. All of it may
# be moved as a whole.
include(CMakePackageConfigHelpers)

# The toolchain sets these; a manual build has no version.
set(EARLYBIRD_VERSION "0" CACHE STRING "The version of the installed package")
set(EARLYBIRD_MPI "${MPI_C_COMPILER}" CACHE STRING "The MPI named in the description of the installed package")

# Always lib, not lib64: Earlybird searches for the library to preload in lib.
install(TARGETS earlybird LIBRARY DESTINATION lib)
install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/include/earlybird.h ${CMAKE_CURRENT_SOURCE_DIR}/include/earlybird_f08.f90 DESTINATION include)

configure_file(${CMAKE_CURRENT_LIST_DIR}/earlybird.pc.in ${CMAKE_CURRENT_BINARY_DIR}/earlybird.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/earlybird.pc DESTINATION lib/pkgconfig)

configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/EarlybirdConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/EarlybirdConfig.cmake
  INSTALL_DESTINATION lib/cmake/Earlybird)
write_basic_package_version_file(
  ${CMAKE_CURRENT_BINARY_DIR}/EarlybirdConfigVersion.cmake
  VERSION ${EARLYBIRD_VERSION} COMPATIBILITY SameMinorVersion)
install(
  FILES ${CMAKE_CURRENT_BINARY_DIR}/EarlybirdConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/EarlybirdConfigVersion.cmake
  DESTINATION lib/cmake/Earlybird)

# COIN-OR CBC ships pkg-config files but no CMake package on Debian and Ubuntu. Gives the target CBC::CBC, with Coin's
# own folder as include directory, so that both <CbcModel.hpp> and <coin/CbcModel.hpp> are found.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_CBC QUIET cbc)
endif()

find_path(CBC_INCLUDE_DIR NAMES Cbc_C_Interface.h HINTS ${PC_CBC_INCLUDE_DIRS} PATH_SUFFIXES coin coin-or cbc/coin)

set(CBC_LIBRARIES)
set(_cbc_required)
foreach(_cbc_part CbcSolver Cbc Cgl OsiClp ClpSolver Clp Osi CoinUtils)
  find_library(CBC_${_cbc_part}_LIBRARY NAMES ${_cbc_part} HINTS ${PC_CBC_LIBRARY_DIRS})
  mark_as_advanced(CBC_${_cbc_part}_LIBRARY)
  if(CBC_${_cbc_part}_LIBRARY)
    list(APPEND CBC_LIBRARIES ${CBC_${_cbc_part}_LIBRARY})
  endif()
  if(NOT _cbc_part STREQUAL "ClpSolver") # folded into Clp by some distributions
    list(APPEND _cbc_required CBC_${_cbc_part}_LIBRARY)
  endif()
endforeach()

if(CBC_INCLUDE_DIR AND EXISTS "${CBC_INCLUDE_DIR}/CbcConfig.h")
  file(STRINGS "${CBC_INCLUDE_DIR}/CbcConfig.h" _cbc_line REGEX "define +CBC_VERSION +\"")
  string(REGEX REPLACE ".*\"([^\"]*)\".*" "\\1" CBC_VERSION "${_cbc_line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CBC REQUIRED_VARS CBC_INCLUDE_DIR ${_cbc_required} VERSION_VAR CBC_VERSION)
mark_as_advanced(CBC_INCLUDE_DIR)

if(CBC_FOUND AND NOT TARGET CBC::CBC)
  add_library(CBC::CBC INTERFACE IMPORTED)
  set_target_properties(CBC::CBC PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${CBC_INCLUDE_DIR}"
                                            INTERFACE_LINK_LIBRARIES "${CBC_LIBRARIES}")
endif()
unset(_cbc_required)
unset(_cbc_part)
unset(_cbc_line)

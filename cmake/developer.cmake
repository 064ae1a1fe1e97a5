# What the project's own tests, examples and benches are built with. Never reaches a user of mmr::mmr.
option(MMR_WERROR "Treat warnings in the project's own code as errors" OFF)
option(MMR_NATIVE "Build tests, examples and benches for the machine at hand (the kernels need it to be fast)" ON)
set(MMR_SANITIZE "" CACHE STRING "Sanitizers for tests, as -fsanitize takes them: address,undefined or thread")

add_library(mmr_developer INTERFACE)
target_compile_options(mmr_developer INTERFACE -Wall -Wextra -Wconversion -Wshadow $<$<BOOL:${MMR_WERROR}>:-Werror>)
if(MMR_NATIVE)
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-march=native MMR_KNOWS_NATIVE)
  if(MMR_KNOWS_NATIVE)
    target_compile_options(mmr_developer INTERFACE -march=native)
  endif()
endif()
if(MMR_SANITIZE)
  target_compile_options(mmr_developer INTERFACE -fsanitize=${MMR_SANITIZE} -fno-sanitize-recover=all
                                                 -fno-omit-frame-pointer -g1)
  target_link_options(mmr_developer INTERFACE -fsanitize=${MMR_SANITIZE})
  # Checks of every pointer triple the time that GCC takes. What they would find crashes, or the address sanitizer sees it.
  if(MMR_SANITIZE MATCHES "undefined")
    target_compile_options(mmr_developer INTERFACE -fno-sanitize=null,alignment,object-size,pointer-overflow,vptr)
  endif()
endif()

# Examples and benches are measured, so they are optimised; among tests (CMAKE_BUILD_TYPE=Test) they are built as these are.
add_library(mmr_optimised INTERFACE)
target_link_libraries(mmr_optimised INTERFACE mmr_developer)
target_compile_options(mmr_optimised INTERFACE $<$<NOT:$<CONFIG:Debug,Test>>:-O3>)

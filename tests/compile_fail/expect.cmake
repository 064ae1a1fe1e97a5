# Passes where COMPILER refuses SOURCE with the message that its first line expects.
cmake_minimum_required(VERSION 3.22)
file(STRINGS ${SOURCE} first LIMIT_COUNT 1)
if(NOT first MATCHES "^// expect: (.+)$")
  message(FATAL_ERROR "${SOURCE} must open with a line `// expect: REGEX`.")
endif()
set(pattern "${CMAKE_MATCH_1}")

string(REPLACE "|" ";" flags "${INCLUDE_DIRS}")
list(TRANSFORM flags PREPEND -I)
execute_process(COMMAND ${COMPILER} -std=c++20 -fsyntax-only ${flags} ${SOURCE} RESULT_VARIABLE code
                OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(code EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles, and must not: expected ${pattern}")
endif()
if(NOT output MATCHES "${pattern}")
  message(FATAL_ERROR "${SOURCE} fails with another message than ${pattern}:\n${output}")
endif()

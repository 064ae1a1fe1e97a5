// Catch2 under one name: version 2 is one header, version 3 is many.
#pragma once

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

// Version 2 has Approx and the matchers in Catch as well, so both versions are written the same way.
using Catch::Approx;

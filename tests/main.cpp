// The main function of every test executable that does not bring its own. Version 3 of Catch2 links one.
#if !__has_include(<catch2/catch_test_macros.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif

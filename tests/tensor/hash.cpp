// Saved plans and first weights depend on these values, so they are pinned to the published ones.
#include <mmr/tensor/hash.hpp>

#include "catch.hpp"

TEST_CASE("FNV-1a gives its authors' values, and takes up where it stopped") {
  CHECK(mmr::detail::hash_of("") == 0xcbf29ce484222325u);
  CHECK(mmr::detail::hash_of("a") == 0xaf63dc4c8601ec8cu);
  CHECK(mmr::detail::hash_of("foobar") == 0x85944171f73967e8u);
  CHECK(mmr::detail::hash_of("bar", mmr::detail::hash_of("foo")) == mmr::detail::hash_of("foobar"));
}

TEST_CASE("SplitMix64 gives the first numbers of the seed 0") {
  CHECK(mmr::detail::mixed(0) == 0xe220a8397b1dcdafu);
  CHECK(mmr::detail::mixed(0x9e3779b97f4a7c15u) == 0x6e789e6aa1b965f4u);
}

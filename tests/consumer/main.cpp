// The smallest user: two translation units that both include everything.
#include <mmr/auto_parallel.hpp>

int other();

int main() {
  return other();
}

#include <mmr/auto_parallel.hpp>

int other() {
  return 0;
}

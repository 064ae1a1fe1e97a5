// expect: parameters are floating point
// An integer parameter.
#include <mmr/graph/declaration.hpp>

#include "model.hpp"

template <class Op>
struct mmr::kernel<mmr::cpu_device, Op> {
  template <class T>
  static void run(const Op&, const mmr::kernel_args&) {}
};

auto wrong(mmr::declaration& m) {
  return m.parameter<std::int32_t, Batch>("steps", mmr::init::zeros());
}

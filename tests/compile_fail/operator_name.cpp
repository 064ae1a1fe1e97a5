// expect: operator_lacks_name<halve
// An operator of the user's without a name.
#include <mmr/graph/declaration.hpp>

#include "model.hpp"

template <class Op>
struct mmr::kernel<mmr::cpu_device, Op> {
  template <class T>
  static void run(const Op&, const mmr::kernel_args&) {}
};

struct halve {
  mmr::signature sign(const std::vector<mmr::tensor_type>& in) const { return mmr::elementwise(in, "halve"); }
  double flops(std::span<const std::int64_t> n) const { return mmr::points(n); }
};

auto wrong(f32<Batch> x) {
  return mmr::apply<f32<Batch>>(halve{}, x);
}

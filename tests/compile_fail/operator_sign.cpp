// expect: operator_lacks_sign<halve
// An operator of the user's that does not state its loops.
#include <mmr/graph/declaration.hpp>

#include "model.hpp"

template <class Op>
struct mmr::kernel<mmr::cpu_device, Op> {
  template <class T>
  static void run(const Op&, const mmr::kernel_args&) {}
};

struct halve {
  static constexpr std::string_view name = "halve";
  double flops(std::span<const std::int64_t> n) const { return mmr::points(n); }
};

auto wrong(f32<Batch> x) {
  return mmr::apply<f32<Batch>>(halve{}, x);
}

// expect: operator_lacks_flops<halve
// An operator of the user's that does not state its work.
#include <mmr/graph/declaration.hpp>

#include "model.hpp"

template <class Op>
struct mmr::kernel<mmr::cpu_device, Op> {
  template <class T>
  static void run(const Op&, const mmr::kernel_args&) {}
};

struct halve {
  static constexpr std::string_view name = "halve";
  mmr::signature sign(const std::vector<mmr::tensor_type>& in) const { return mmr::elementwise(in, "halve"); }
};

auto wrong(f32<Batch> x) {
  return mmr::apply<f32<Batch>>(halve{}, x);
}

// expect: operator_has_no_kernel_for_device<halve, mmr::cpu_device
// An operator of the user's without a kernel.
#include <mmr/graph/declaration.hpp>

struct Batch : mmr::axis<"batch"> {};

struct halve {
  static constexpr std::string_view name = "halve";
  mmr::signature sign(const std::vector<mmr::tensor_type>& in) const { return mmr::elementwise(in, "halve"); }
  double flops(std::span<const std::int64_t> n) const { return mmr::points(n); }
};

auto wrong(mmr::tensor<float, Batch> x) {
  return mmr::apply<mmr::tensor<float, Batch>>(halve{}, x);
}

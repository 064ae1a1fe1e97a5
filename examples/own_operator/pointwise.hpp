// An operator of one's own: any formula of tensors over equal axes, with its gradient. It is planned, sharded and run like
// the library's own, and no file of the library knows of it. docs/operators.md goes through this file.
#pragma once

#include <mmr/auto_parallel.hpp>

#include "dual.hpp"

#include <array>
#include <string_view>
#include <utility>

/// dx[k] = dy * dF/dx[k] for every operand k of the formula. Operands: dy, x[0], x[1], ...
template <class F>
struct pointwise_grad {
  static constexpr std::string_view name = "pointwise_grad";
  mmr::signature sign(const std::vector<mmr::tensor_type>& in) const {
    auto s = mmr::elementwise(in, F::name, F::operands);
    for (int k = 0; k < F::operands; ++k) s.reuse[static_cast<std::size_t>(k)] = k + 1;  // dx[k] may overwrite x[k]
    return s;
  }
  double flops(std::span<const std::int64_t> loops) const { return 3 * F::operands * F::flops * mmr::points(loops); }
};

/// y = F(x[0], x[1], ...), element by element.
template <class F>
struct pointwise {
  static constexpr std::string_view name = F::name;

  /// One loop for each axis of the operands; a mesh may split any of them, and then splits operands and result alike.
  mmr::signature sign(const std::vector<mmr::tensor_type>& in) const { return mmr::elementwise(in, F::name); }

  /// Of a rank's share: `loops` holds its sizes.
  double flops(std::span<const std::int64_t> loops) const { return F::flops * mmr::points(loops); }

  /// Emits the backward operator and says which gradient each of its results adds to.
  void vjp(auto& c) const {
    std::vector<mmr::tensor_id> operands{c.grad()};
    for (std::size_t k = 0; k < c.in_count(); ++k) operands.push_back(c.in(k));
    const auto grads = c.emit(pointwise_grad<F>{}, operands);
    for (std::size_t k = 0; k < c.in_count(); ++k) c.add_grad(c.in(k), grads[k]);
  }
};

/// The kernels for the CPU: T is float or double, and all tensors are the dense parts that this rank holds.
template <class F>
struct mmr::kernel<mmr::cpu_device, pointwise<F>> {
  template <class T>
  static void run(const pointwise<F>&, const mmr::kernel_args& args) {
    [&]<std::size_t... k>(std::index_sequence<k...>) {
      const std::array<const T*, sizeof...(k)> x{args.input<T>(k)...};
      T* const y = args.output<T>(0);
      for (std::int64_t i = 0; i < args.out[0].count(); ++i) y[i] = F::value(x[k][i]...);
    }(std::make_index_sequence<F::operands>{});
  }
};

template <class F>
struct mmr::kernel<mmr::cpu_device, pointwise_grad<F>> {
  template <class T>
  static void run(const pointwise_grad<F>&, const mmr::kernel_args& args) {
    [&]<std::size_t... k>(std::index_sequence<k...>) {
      const T* const dy = args.input<T>(0);
      const std::array<const T*, sizeof...(k)> x{args.input<T>(k + 1)...};
      const std::array<T*, sizeof...(k)> dx{args.output<T>(k)...};
      for (std::int64_t i = 0; i < args.in[0].count(); ++i) {
        // One pass with slope 1 for each operand. All are read before any is written: buffers may be shared.
        const auto slope = [&](std::size_t of) { return F::value(dual<T>(x[k][i], k == of ? 1 : 0)...).slope; };
        const T d = dy[i];
        const std::array<T, sizeof...(k)> made{d * slope(k)...};
        ((dx[k][i] = made[k]), ...);
      }
    }(std::make_index_sequence<F::operands>{});
  }
};

/// The typed function: F of each element. Operands over other axes, or of another type, do not compile.
template <class F, class T, class... A, class... Rest>
mmr::tensor<T, A...> map(mmr::tensor<T, A...> x, Rest... rest) {
  static_assert(1 + sizeof...(Rest) == F::operands, "map<F>: the formula takes another number of tensors");
  mmr::require_one_dtype<pointwise<F>, mmr::tensor<T, A...>, Rest...>();
  mmr::require_same_axes<pointwise<F>, mmr::tensor<T, A...>, Rest...>();
  return mmr::apply<mmr::tensor<T, A...>>(pointwise<F>{}, x, rest...);
}

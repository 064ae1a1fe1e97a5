// The vjp rule of every operator, through its kernels: gradients of a whole graph against central differences in
// double.
#include <map>
#include <memory>
#include <mmr/graph/declaration.hpp>
#include <mmr/op/mean.hpp>

#include "harness.hpp"

using namespace mmr_test;

namespace {

struct B : mmr::axis<"batch"> {};
struct S : mmr::axis<"seq"> {};
struct E : mmr::axis<"embed"> {};
struct H : mmr::axis<"heads"> {};
struct D : mmr::axis<"features"> {};
struct G : mmr::axis<"group"> {};
struct K : mmr::axis<"keys"> {};
struct V : mmr::axis<"words"> {};
struct P : mmr::axis<"places"> {};  // as many as seq
struct X : mmr::axis<"experts"> {};
struct C : mmr::axis<"capacity"> {};
struct R : mmr::axis<"buckets"> {};

constexpr auto any = [] { return mmr::init::normal(1); };

/// Runs a graph on one rank, each tensor in a buffer of its own.
class interpreter {
 public:
  explicit interpreter(mmr::graph g) : graph(std::move(g)), values_(static_cast<std::size_t>(graph.tensors())) {
    std::mt19937 random(3);
    for (mmr::tensor_id t = 0; t < graph.tensors(); ++t) {
      const auto& info = graph.tensor_of(t);
      if (graph.op(info.producer).when != mmr::phase::source) continue;
      const auto words = info.type.element == dtype::i32 ? words_ : 1;
      value(t) =
          random_array(info.type, info.type.element == dtype::i32 ? below(words) : law(mmr_test::normal), random);
      if (info.name == "masked targets")
        for (std::size_t i = 0; i < value(t).values.size(); i += 3) value(t).values[i] = -1;
    }
  }
  array& value(mmr::tensor_id t) { return values_[static_cast<std::size_t>(t)]; }

  /// Runs the step and returns its loss. Updated parameters go to tensors of their own: the parameters stay.
  double loss() {
    const mmr::step_info step{11, 3, 0, 1, 1.0};
    for (auto o : graph.schedule()) {
      const auto& info = graph.op(o);
      arrays in, state;
      for (auto t : info.in) in.push_back(value(t));
      for (auto t : info.state) {
        state.push_back(random_array(
            graph.tensor_of(t).type, [](std::mt19937&) { return 0.0; }, none_));
      }
      bound_operator op;
      op.rules = info.rules;
      op.shape = info.loops;
      op.element = info.element;
      auto made = run(op, whole_ranges(op.shape), in, state, step, false);
      for (std::size_t r = 0; r < made.out.size(); ++r) value(info.out[r]) = made.out[r];
    }
    return value(graph.loss).values[0];
  }

  /// The gradient that the update of a parameter takes.
  const array& gradient(mmr::tensor_id parameter) {
    for (auto o : graph.schedule())
      if (graph.op(o).writes_back == parameter) return value(graph.op(o).in[0]);
    FAIL("no update of " << graph.tensor_of(parameter).name);
    throw 0;
  }

  mmr::graph graph;

 private:
  static constexpr std::int64_t words_ = 5;
  arrays values_;
  std::mt19937 none_;
};

/// The loss itself, or a scalar with another weight for every element.
template <class T>
mmr::scalar<T> to_scalar(mmr::declaration&, mmr::scalar<T> loss) {
  return loss;
}
template <class T, class... A>
requires(sizeof...(A) > 0) mmr::scalar<T> to_scalar(mmr::declaration& d, mmr::tensor<T, A...> y) {
  return mmr::contract<A...>(y, d.input<T, A...>("slope"));
}

/// Checks the gradients of all parameters in what `model` declares.
template <class Model>
void check_gradients(const std::string& name, Model&& model) {
  mmr::declaration d{mmr::size<B>(2), mmr::size<S>(4), mmr::size<E>(6), mmr::size<H>(2),
                     mmr::size<D>(3), mmr::size<V>(5), mmr::size<G>(3), mmr::size<K>(5)};
  interpreter step(d.training_step(to_scalar(d, model(d)), mmr::sgd{}));
  INFO(name);
  CHECK(step.graph.ordered());
  step.loss();
  std::map<mmr::tensor_id, array> gradients;
  for (mmr::tensor_id t = 0; t < step.graph.tensors(); ++t)
    if (const auto& info = step.graph.tensor_of(t);
        info.kind == mmr::tensor_class::parameter && step.graph.op(info.producer).when == mmr::phase::source)
      gradients[t] = step.gradient(t);
  CHECK(!gradients.empty());
  for (const auto& [t, gradient] : gradients) {
    array differences = gradient;
    for (std::size_t i = 0; i < gradient.values.size(); ++i) {
      double& x = step.value(t).values[i];
      const double before = x, h = 1e-4;
      // The five-point difference, exact to order h^4.
      const auto at = [&](double shift) {
        x = before + shift;
        return step.loss();
      };
      differences.values[i] = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
      x = before;
    }
    INFO("parameter " << step.graph.tensor_of(t).name);
    double largest = 0;
    for (double v : differences.values) largest = std::max(largest, std::abs(v));
    CHECK(largest > 1e-3);
    check_equal({gradient}, {differences}, 1e-8);
  }
}

}  // namespace

TEST_CASE("gradients equal central differences") {
  check_gradients("add, multiply, scale", [](mmr::declaration& d) {
    auto a = d.parameter<double, B, S>("a", any()), b = d.parameter<double, B, S>("b", any());
    return mmr::scale(a * b + a, 0.7) * b;
  });
  check_gradients("a tensor times itself", [](mmr::declaration& d) {
    auto a = d.parameter<double, B, S>("a", any());
    return a * a;
  });
  check_gradients("linear with bias", [](mmr::declaration& d) {
    auto x = d.parameter<double, B, S, E>("x", any());
    return mmr::linear(x, d.parameter<double, E, H, D>("w", any()), d.parameter<double, H, D>("b", any()));
  });
  check_gradients("queries, keys and values", [](mmr::declaration& d) {
    auto x = d.parameter<double, B, S, E>("x", any());
    auto [q, k, v] =
        mmr::contract<E>(x, d.parameter<double, E, H, D>("q", any()), d.parameter<double, E, H, D>("k", any()),
                         d.parameter<double, E, H, D>("v", any()));
    return mmr::causal_attention<S>(q, k, v);
  });
  check_gradients("queries of groups, and the keys and values that they share", [](mmr::declaration& d) {
    auto x = d.parameter<double, B, S, E>("x", any());
    auto [q, k, v] =
        mmr::contract<E>(x, d.parameter<double, H, G, D, E>("q", any()), d.parameter<double, E, H, D>("k", any()),
                         d.parameter<double, H, D, E>("v", any()));
    static_assert(std::is_same_v<decltype(q), mmr::tensor<double, B, S, H, G, D>>);
    static_assert(std::is_same_v<decltype(k), mmr::tensor<double, B, S, H, D>>);
    return mmr::causal_attention<S>(q, k, v);
  });
  check_gradients("contraction over several axes and with a batch axis", [](mmr::declaration& d) {
    auto x = d.parameter<double, B, H, S, D>("x", any());
    auto y = mmr::contract<D>(x, d.parameter<double, H, D, E>("w", any()));
    return mmr::contract<H, E>(y, d.parameter<double, E, H>("u", any()));
  });
  check_gradients("one operand contracted with weights over different axes", [](mmr::declaration& d) {
    auto x = d.parameter<double, B, E>("x", any());
    auto [y, z] = mmr::contract<E>(x, d.parameter<double, B, E, D>("w", any()), d.parameter<double, E, D>("u", any()));
    return y * z;
  });
  check_gradients("bias over two axes", [](mmr::declaration& d) {
    return mmr::bias(d.parameter<double, B, S, E>("x", any()), d.parameter<double, S, E>("b", any()));
  });
  check_gradients("gelu", [](mmr::declaration& d) { return mmr::gelu(d.parameter<double, B, S, E>("x", any())); });
  check_gradients("bias_gelu", [](mmr::declaration& d) {
    return mmr::bias_gelu(d.parameter<double, B, S, E>("x", any()), d.parameter<double, E>("b", any()));
  });
  check_gradients("softmax",
                  [](mmr::declaration& d) { return mmr::softmax<E>(d.parameter<double, B, S, E>("x", any())); });
  check_gradients("layer_norm", [](mmr::declaration& d) {
    return mmr::layer_norm<E>(d.parameter<double, B, S, E>("x", any()), d.parameter<double, E>("gamma", any()),
                              d.parameter<double, E>("beta", any()));
  });
  check_gradients("embedding", [](mmr::declaration& d) {
    return mmr::embedding(d.input<std::int32_t, B, S>("tokens"), d.parameter<double, V, E>("table", any()));
  });
  check_gradients("attention", [](mmr::declaration& d) {
    return mmr::causal_attention<S>(d.parameter<double, B, S, H, D>("q", any()),
                                    d.parameter<double, B, S, H, D>("k", any()),
                                    d.parameter<double, B, S, H, D>("v", any()));
  });
  check_gradients("attention in both directions", [](mmr::declaration& d) {
    auto x = d.parameter<double, B, S, H, D>("x", any());
    return mmr::attention<S>(x, d.parameter<double, B, S, H, D>("k", any()), x, 1.3);
  });
  check_gradients("attention to other positions", [](mmr::declaration& d) {
    return mmr::attention<S, K>(d.parameter<double, B, S, H, D>("q", any()),
                                d.parameter<double, B, K, H, D>("k", any()),
                                d.parameter<double, B, K, H, D>("v", any()));
  });
  check_gradients("attention of groups of queries, causal", [](mmr::declaration& d) {
    return mmr::causal_attention<S>(d.parameter<double, B, S, H, G, D>("q", any()),
                                    d.parameter<double, B, S, H, D>("k", any()),
                                    d.parameter<double, B, S, H, D>("v", any()));
  });
  check_gradients("attention of groups of queries to other positions", [](mmr::declaration& d) {
    auto k = d.parameter<double, B, K, H, D>("k", any());
    return mmr::attention<S, K>(d.parameter<double, B, S, H, G, D>("q", any()), k, k);
  });
  check_gradients("cross_entropy", [](mmr::declaration& d) {
    return mmr::cross_entropy(d.parameter<double, B, S, V>("logits", any()), d.input<std::int32_t, B, S>("targets"));
  });
  check_gradients("rms_norm", [](mmr::declaration& d) {
    return mmr::rms_norm<E>(d.parameter<double, B, S, E>("x", any()), d.parameter<double, E>("gain", any()));
  });
  check_gradients("rotary",
                  [](mmr::declaration& d) { return mmr::rotary<S>(d.parameter<double, B, S, H, E>("x", any()), 3); });
  check_gradients("silu", [](mmr::declaration& d) { return mmr::silu(d.parameter<double, B, S, E>("x", any())); });
  check_gradients("swiglu", [](mmr::declaration& d) {
    return mmr::swiglu(d.parameter<double, B, S, E>("gate", any()), d.parameter<double, B, S, E>("up", any()));
  });
  check_gradients("mean over an inner axis",
                  [](mmr::declaration& d) { return mmr::mean<S>(d.parameter<double, B, S, E>("x", any())); });
  check_gradients("masked_cross_entropy", [](mmr::declaration& d) {
    return mmr::masked_cross_entropy(d.parameter<double, B, S, V>("logits", any()),
                                     d.input<std::int32_t, B, S>("masked targets"));
  });
  check_gradients("dropout",
                  [](mmr::declaration& d) { return mmr::dropout(d.parameter<double, B, S, E>("x", any()), 0.4); });
  for (double p : {0.0, 0.4})
    check_gradients("bias_dropout_add", [p](mmr::declaration& d) {
      return mmr::bias_dropout_add(d.parameter<double, B, S, E>("x", any()), d.parameter<double, E>("b", any()),
                                   d.parameter<double, B, S, E>("residual", any()), p);
    });
  check_gradients("a tied embedding through a block", [](mmr::declaration& d) {
    auto table = d.parameter<double, V, E>("table", any());
    auto x = mmr::embedding(d.input<std::int32_t, B, S>("tokens"), table);
    auto h = mmr::layer_norm<E>(x, d.parameter<double, E>("gamma", any()), d.parameter<double, E>("beta", any()));
    auto up =
        mmr::bias_gelu(mmr::linear(h, d.parameter<double, E, D>("up", any())), d.parameter<double, D>("ub", any()));
    auto y = mmr::bias_dropout_add(mmr::linear(up, d.parameter<double, D, E>("down", any())),
                                   d.parameter<double, E>("db", any()), x, 0.2);
    return mmr::cross_entropy(mmr::linear(y, table), d.input<std::int32_t, B, S>("targets"));
  });
}

TEST_CASE("gradients of attention with stored scores equal central differences") {
  const auto scores = [](mmr::declaration& d) {
    d.set(mmr::size<P>(4));
    return d.parameter<double, B, S, H, P>("scores", any());
  };
  check_gradients("rename", [](mmr::declaration& d) {
    d.set(mmr::size<P>(4));
    auto x = d.parameter<double, B, S, E>("x", any());
    return mmr::rename<S, P>(x) * mmr::rename<S, P>(mmr::scale(x, 0.5));
  });
  check_gradients("scaled_softmax", [&](mmr::declaration& d) { return mmr::scaled_softmax<P>(scores(d), 0.8); });
  check_gradients("causal_softmax", [&](mmr::declaration& d) { return mmr::causal_softmax<S, P>(scores(d), 0.8); });
  check_gradients("stored_dropout", [&](mmr::declaration& d) { return mmr::stored_dropout(scores(d), 0.4); });
  for (const bool both_ways : {true, false})
    check_gradients("relative_bias", [&](mmr::declaration& d) {
      d.set(mmr::size<R>(4));
      return mmr::relative_bias(scores(d), d.parameter<double, R, H>("table", any()), {4, 3, both_ways});
    });
}

TEST_CASE("gradients of a mixture of experts equal central differences") {
  for (const int top_k : {1, 2, 3}) {
    // Two slots for each of three experts: some tokens of four find none.
    const auto probs = [](mmr::declaration& d) {
      d.set(mmr::size<X>(3));
      d.set(mmr::size<C>(2));
      return mmr::softmax<X>(d.parameter<double, B, S, X>("logits", any()));
    };
    const auto name = "route to " + std::to_string(top_k);
    check_gradients(name + ": gates", [&](mmr::declaration& d) {
      const auto p = probs(d);
      return mmr::route<C>(p, top_k).gates * mmr::route<C>(p, top_k).gates;
    });
    check_gradients(name + ": balance", [&](mmr::declaration& d) {
      const auto p = probs(d);
      return mmr::load_balance(p, mmr::route<C>(p, top_k), 0.7);
    });
    check_gradients(name + ": tokens to experts and back", [&](mmr::declaration& d) {
      const auto where = mmr::route<C>(probs(d), top_k);
      auto x = d.parameter<double, B, S, E>("x", any());
      auto up = mmr::contract<E>(mmr::dispatch(x, where), d.parameter<double, X, E, D>("up", any()));
      return mmr::combine<S>(mmr::contract<D>(mmr::gelu(up), d.parameter<double, X, D, E>("down", any())), where);
    });
  }
}

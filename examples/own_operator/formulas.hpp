// The variants of the experiment. Each is one formula of one or two numbers; N is float, double, or dual of them.
#pragma once

#include <cmath>

/// max(x, 0)^2 (So et al., arXiv 2109.08668).
struct squared_relu {
  static constexpr const char* name = "squared_relu";
  static constexpr int operands = 1;
  static constexpr double flops = 2;
  template <class N>
  static N value(N x) {
    const N r = x > N(0) ? x : N(0);
    return r * r;
  }
};

/// x / (1 + e^-x) (Hendrycks and Gimpel, arXiv 1606.08415).
struct silu {
  static constexpr const char* name = "silu";
  static constexpr int operands = 1;
  static constexpr double flops = 12;
  template <class N>
  static N value(N x) {
    using std::exp;
    return x / (N(1) + exp(-x));
  }
};

// Gated linear units (Shazeer, arXiv 2002.05202): one linear map gates another.

struct bilinear {
  static constexpr const char* name = "bilinear";
  static constexpr int operands = 2;
  static constexpr double flops = 1;
  template <class N>
  static N value(N gate, N x) {
    return gate * x;
  }
};

struct swiglu {
  static constexpr const char* name = "swiglu";
  static constexpr int operands = 2;
  static constexpr double flops = 13;
  template <class N>
  static N value(N gate, N x) {
    return silu::value(gate) * x;
  }
};

struct geglu {
  static constexpr const char* name = "geglu";
  static constexpr int operands = 2;
  static constexpr double flops = 20;
  template <class N>
  static N value(N gate, N x) {
    using std::tanh;
    const N inner = N(0.7978845608028654) * (gate + N(0.044715) * gate * gate * gate);
    return N(0.5) * gate * (N(1) + tanh(inner)) * x;
  }
};

// The raw CPU kernels on the shapes of a GPT, each against the same work written plainly with Eigen, alternating in one
// process on one thread. Medians of processor time; GFLOP/s where arithmetic bounds the kernel, GB/s of compulsory
// traffic elsewhere.
#include <Eigen/Core>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <vector>

#include "mmr/backend/cpu/attention.hpp"
#include "mmr/backend/cpu/cross_entropy.hpp"
#include "mmr/backend/cpu/dropout.hpp"
#include "mmr/backend/cpu/gelu.hpp"
#include "mmr/backend/cpu/gemm.hpp"
#include "mmr/backend/cpu/layer_norm.hpp"
#include "mmr/backend/cpu/optimizer.hpp"
#include "mmr/backend/cpu/softmax.hpp"

namespace cpu = mmr::cpu;
using std::int64_t;

namespace {

template <class T>
using rows_of = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using columns_of = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
using array = Eigen::Array<float, Eigen::Dynamic, 1>;
using row_array = Eigen::Array<float, 1, Eigen::Dynamic>;

/// Processor time of this thread: the machine may be shared.
double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// Seconds of one run, averaged over at least a millisecond of them.
double seconds(const std::function<void()>& work) {
  const double start = now();
  for (int runs = 1;; ++runs) {
    work();
    if (const double spent = now() - start; spent > 1e-3) return spent / runs;
  }
}

/// One line of the table; `amount` is flops or bytes.
void compare(const char* name, double amount, const char* unit, const std::function<void()>& kernel,
             const std::function<void()>& reference) {
  std::vector<double> ours, theirs;
  kernel();
  reference();
  for (int i = 0; i < 9; ++i) {
    ours.push_back(seconds(kernel));
    theirs.push_back(seconds(reference));
  }
  const auto median = [](std::vector<double>& t) {
    std::nth_element(t.begin(), t.begin() + 4, t.end());
    return t[4];
  };
  const double mine = median(ours), other = median(theirs);
  std::printf("%-46s %9.3f ms %9.3f ms %8.1f %-7s %6.2f x\n", name, mine * 1e3, other * 1e3, amount * 1e-9 / mine, unit,
              other / mine);
}

template <class T = float>
std::vector<T> random(int64_t n) {
  std::mt19937 engine(1);
  std::uniform_real_distribution<T> value(-1, 1);
  std::vector<T> x(static_cast<std::size_t>(n));
  for (T& v : x) v = value(engine);
  return x;
}

template <class T>
void products(int64_t m, int64_t n, int64_t k, const char* orders) {
  const bool ta = orders[0] == 'T', tb = orders[1] == 'T';
  auto a = random<T>(m * k), b = random<T>(k * n), c = random<T>(m * n);
  std::vector<char> workspace(static_cast<std::size_t>(cpu::product_workspace<T>(m, n, k)));
  char name[80];
  std::snprintf(name, sizeof(name), "product %s %s %dx%dx%d", sizeof(T) == 4 ? "float" : "double", orders, int(m),
                int(n), int(k));
  const auto with_b = [&](const auto& left) {
    Eigen::Map<rows_of<T>> result(c.data(), m, n);
    if (tb) {
      result.noalias() = left * Eigen::Map<columns_of<T>>(b.data(), k, n);
    } else {
      result.noalias() = left * Eigen::Map<rows_of<T>>(b.data(), k, n);
    }
  };
  compare(
      name, 2.0 * double(m) * double(n) * double(k), "GFLOP/s",
      [&] {
        cpu::product({a.data(), m, k, ta ? 1 : k, ta ? m : 1}, {b.data(), k, n, tb ? 1 : n, tb ? k : 1},
                     cpu::matrix<T>{c.data(), m, n, n, 1}, false, workspace.data());
      },
      [&] {
        if (ta) {
          with_b(Eigen::Map<columns_of<T>>(a.data(), m, k));
        } else {
          with_b(Eigen::Map<rows_of<T>>(a.data(), m, k));
        }
      });
}

/// Attention with the whole matrix of scores in memory, per head.
struct plain_attention {
  cpu::attention_shape s;
  rows_of<float> p, dp;

  auto head(const float* x, int64_t bh) const {
    const int64_t row = s.heads * s.head_size, b = bh / s.heads, h = bh % s.heads;
    return Eigen::Map<const rows_of<float>, 0, Eigen::OuterStride<>>(x + b * s.keys * row + h * s.head_size, s.keys,
                                                                     s.head_size, Eigen::OuterStride<>(row));
  }
  auto head(float* x, int64_t bh) const {
    const int64_t row = s.heads * s.head_size, b = bh / s.heads, h = bh % s.heads;
    return Eigen::Map<rows_of<float>, 0, Eigen::OuterStride<>>(x + b * s.keys * row + h * s.head_size, s.keys,
                                                               s.head_size, Eigen::OuterStride<>(row));
  }
  void weigh(const float* q, const float* k, int64_t bh) {
    p.noalias() = head(q, bh) * head(k, bh).transpose();
    for (int64_t i = 0; i < s.queries; ++i) {
      auto seen = p.row(i).head(i + 1).array();
      seen = ((seen - seen.maxCoeff()) * float(s.scale)).exp();
      seen /= seen.sum();
      p.row(i).tail(s.queries - i - 1).setZero();
    }
  }
  void forward(const float* q, const float* k, const float* v, float* out) {
    for (int64_t bh = 0; bh < s.batch * s.heads; ++bh) {
      weigh(q, k, bh);
      head(out, bh).noalias() = p * head(v, bh);
    }
  }
  void backward(const float* dout, const float* q, const float* k, const float* v, float* dq, float* dk, float* dv) {
    for (int64_t bh = 0; bh < s.batch * s.heads; ++bh) {
      weigh(q, k, bh);
      head(dv, bh).noalias() = p.transpose() * head(dout, bh);
      dp.noalias() = head(dout, bh) * head(v, bh).transpose();
      for (int64_t i = 0; i < s.queries; ++i) {
        dp.row(i).array() = p.row(i).array() * (dp.row(i).array() - p.row(i).dot(dp.row(i))) * float(s.scale);
      }
      head(dq, bh).noalias() = dp * head(k, bh);
      head(dk, bh).noalias() = dp.transpose() * head(q, bh);
    }
  }
};

void attentions(int64_t batch, int64_t sequence, int64_t heads, int64_t d) {
  const cpu::attention_shape s{batch, sequence, sequence, heads, d, 0, true, 1 / std::sqrt(double(d))};
  const int64_t n = batch * sequence * heads * d;
  const auto q = random(n), k = q, v = q, dout = q;
  std::vector<float> out(q), dq(q), dk(q), dv(q), lse(static_cast<std::size_t>(batch * sequence * heads));
  std::vector<char> workspace(static_cast<std::size_t>(
      std::max(cpu::attention_forward_workspace<float>(s), cpu::attention_backward_workspace<float>(s))));
  plain_attention plain{s, rows_of<float>(sequence, sequence), rows_of<float>(sequence, sequence)};
  // The causal half of two products forward, five backward.
  const double flops = 2.0 * double(batch * heads * d) * double(sequence) * double(sequence + 1);
  char name[80];
  std::snprintf(name, sizeof(name), "attention forward b%d s%d h%d d%d", int(batch), int(sequence), int(heads), int(d));
  compare(
      name, flops, "GFLOP/s",
      [&] { cpu::attention_forward(q.data(), k.data(), v.data(), out.data(), lse.data(), s, workspace.data()); },
      [&] { plain.forward(q.data(), k.data(), v.data(), dq.data()); });
  std::snprintf(name, sizeof(name), "attention backward b%d s%d h%d d%d", int(batch), int(sequence), int(heads),
                int(d));
  compare(
      name, 2.5 * flops, "GFLOP/s",
      [&] {
        cpu::attention_backward(dout.data(), q.data(), k.data(), v.data(), out.data(), lse.data(), dq.data(), dk.data(),
                                dv.data(), s, workspace.data());
      },
      [&] { plain.backward(dout.data(), q.data(), k.data(), v.data(), dq.data(), dk.data(), dv.data()); });
}

void rows_and_elements(int64_t rows, int64_t n) {
  const int64_t all = rows * n;
  const double bytes = 4.0 * double(all);
  auto x = random(all), y = x, z = x, gamma = random(n), beta = gamma, dgamma = gamma, dbeta = gamma;
  std::vector<float> mean(static_cast<std::size_t>(rows)), rstd(mean);
  std::printf("%d x %d\n", int(rows), int(n));
  const auto map = [](std::vector<float>& v) { return Eigen::Map<array>(v.data(), Eigen::Index(v.size())); };
  const auto row = [n](std::vector<float>& v, int64_t i = 0) { return Eigen::Map<row_array>(v.data() + i * n, n); };
  const auto sigmoid = [](const auto& u) { return (1 + (-u).exp()).inverse(); };

  compare(
      "  copy (reference: memcpy)", 2 * bytes, "GB/s", [&] { cpu::copy(x.data(), y.data(), all); },
      [&] { std::memcpy(y.data(), x.data(), x.size() * 4); });
  compare(
      "  add", 3 * bytes, "GB/s", [&] { cpu::add(x.data(), y.data(), z.data(), all); },
      [&] { map(z) = map(x) + map(y); });
  compare(
      "  column sums", bytes, "GB/s", [&] { cpu::column_sums(x.data(), beta.data(), rows, n); },
      [&] { row(beta) = Eigen::Map<rows_of<float>>(x.data(), rows, n).colwise().sum().array(); });
  compare(
      "  bias + gelu forward", 2 * bytes, "GB/s",
      [&] { cpu::bias_gelu_forward(x.data(), gamma.data(), y.data(), rows, n); },
      [&] {
        for (int64_t i = 0; i < rows; ++i) {
          const row_array v = row(x, i) + row(gamma);
          row(y, i) = v * sigmoid(1.59576912F * (v + 0.044715F * v.cube()));
        }
      });
  compare(
      "  bias + gelu backward", 3 * bytes, "GB/s",
      [&] { cpu::bias_gelu_backward(y.data(), x.data(), gamma.data(), z.data(), dbeta.data(), rows, n); },
      [&] {
        row(dbeta).setZero();
        for (int64_t i = 0; i < rows; ++i) {
          const row_array v = row(x, i) + row(gamma);
          const row_array s = sigmoid(1.59576912F * (v + 0.044715F * v.cube()));
          row(z, i) = row(y, i) * (s + v * s * (1 - s) * 1.59576912F * (1 + 0.134145F * v.square()));
          row(dbeta) += row(z, i);
        }
      });
  compare(
      "  layer norm forward", 2 * bytes, "GB/s",
      [&] {
        cpu::layer_norm_forward(x.data(), gamma.data(), beta.data(), y.data(), mean.data(), rstd.data(), rows, n,
                                1e-5F);
      },
      [&] {
        for (int64_t i = 0; i < rows; ++i) {
          const float average = row(x, i).mean();
          const float inverse = 1 / std::sqrt((row(x, i) - average).square().mean() + 1e-5F);
          row(y, i) = (row(x, i) - average) * inverse * row(gamma) + row(beta);
        }
      });
  compare(
      "  layer norm backward", 3 * bytes, "GB/s",
      [&] {
        cpu::layer_norm_backward(y.data(), x.data(), gamma.data(), mean.data(), rstd.data(), z.data(), dgamma.data(),
                                 dbeta.data(), rows, n);
      },
      [&] {
        row(dgamma).setZero();
        row(dbeta).setZero();
        row_array h(n), g(n);
        for (int64_t i = 0; i < rows; ++i) {
          const auto at = static_cast<std::size_t>(i);
          h = (row(x, i) - mean[at]) * rstd[at];
          g = row(y, i) * row(gamma);
          const float plain = g.mean(), along = (g * h).mean();
          row(z, i) = rstd[at] * (g - plain - h * along);
          row(dgamma) += row(y, i) * h;
          row(dbeta) += row(y, i);
        }
      });
  compare(
      "  softmax forward", 2 * bytes, "GB/s", [&] { cpu::softmax_forward(x.data(), y.data(), rows, n); },
      [&] {
        for (int64_t i = 0; i < rows; ++i) {
          row(y, i) = (row(x, i) - row(x, i).maxCoeff()).exp();
          row(y, i) /= row(y, i).sum();
        }
      });
  const std::vector<std::int32_t> targets(static_cast<std::size_t>(rows), 1);
  compare(
      "  cross-entropy, all of it, in place", 2 * bytes, "GB/s",
      [&] {
        z = x;
        cpu::row_max(z.data(), mean.data(), rows, n);
        cpu::sum_exp(z.data(), mean.data(), rstd.data(), rows, n);
        cpu::cross_entropy_backward(z.data(), mean.data(), rstd.data(), targets.data(), z.data(), rows, n, 0, 1e-3F);
      },
      [&] {
        z = x;
        for (int64_t i = 0; i < rows; ++i) {
          const float most = row(z, i).maxCoeff();
          const float sum = (row(z, i) - most).exp().sum();
          row(z, i) = (row(z, i) - most).exp() * (1e-3F / sum);
        }
      });
  const cpu::box shard{2, {rows, n}, {0, 0}, {rows, n}};
  compare(
      "  bias + dropout + add (reference: std::mt19937)", 3 * bytes, "GB/s",
      [&] {
        cpu::bias_dropout_add_forward(x.data(), gamma.data(), y.data(), z.data(), shard, cpu::philox_stream{1, 2}, 0.1);
      },
      [&] {
        std::mt19937 engine(1);
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            const auto at = static_cast<std::size_t>(i * n + j);
            z[at] = y[at] + (engine() < 429496730U ? 0 : (x[at] + gamma[static_cast<std::size_t>(j)]) / 0.9F);
          }
        }
      });
  compare(
      "  bias + dropout + add without dropout", 3 * bytes, "GB/s",
      [&] {
        cpu::bias_dropout_add_forward(x.data(), gamma.data(), y.data(), z.data(), shard, cpu::philox_stream{1, 2}, 0);
      },
      [&] {
        for (int64_t i = 0; i < rows; ++i) row(z, i) = row(x, i) + row(gamma) + row(y, i);
      });
  auto m = random(all), v = m;
  for (float& value : v) value *= value;
  compare(
      "  AdamW", 7 * bytes, "GB/s",
      [&] {
        cpu::adamw(x.data(), y.data(), m.data(), v.data(), all, {1e-6, 0.9, 0.999, 1e-8, 0.01, 10, 1});
      },
      [&] {
        map(m) = 0.9F * map(m) + 0.1F * map(y);
        map(v) = 0.999F * map(v) + 0.001F * map(y).square();
        map(x) = map(x) * 0.99999999F - 1e-6F * map(m) / (map(v).sqrt() * 10.0F + 1e-8F);
      });
  double sum = 0;
  compare(
      "  sum of squares, in double", bytes, "GB/s", [&] { sum += cpu::sum_squares(x.data(), all); },
      [&] { sum += map(x).cast<double>().square().sum(); });
  if (sum < 0) std::puts("");
}

}  // namespace

int main() {
  std::printf("%-46s %12s %12s %16s %8s\n", "kernel", "mmr", "Eigen", "rate of mmr", "ratio");
  for (const char* orders : {"NN", "NT", "TN", "TT"}) products<float>(2048, 512, 1536, orders);
  for (const char* orders : {"NN", "NT", "TN", "TT"}) products<float>(512, 2048, 512, orders);
  for (const char* orders : {"NN", "NT", "TN", "TT"}) products<float>(256, 4096, 256, orders);
  for (const char* orders : {"NN", "NT", "TN"}) products<float>(256, 256, 1024, orders);
  for (const char* orders : {"NN", "NT", "TN"}) products<float>(64, 256, 64, orders);
  for (const char* orders : {"NN", "NT"}) products<float>(8, 1024, 256, orders);
  products<float>(1, 1024, 256, "NN");
  products<float>(2048, 50, 512, "NN");
  for (const char* orders : {"NN", "NT", "TN"}) products<double>(512, 512, 512, orders);
  attentions(4, 64, 8, 32);
  attentions(2, 256, 8, 64);
  attentions(1, 1024, 4, 64);
  rows_and_elements(256, 256);
  rows_and_elements(2048, 512);
  rows_and_elements(256, 4096);
}

// Every collective of any communicator against a serial reference, written once: threads and MPI run the same checks. A
// failed check throws mmr::error, as ranks are not where Catch2 can be asked. All inputs follow from a seed, so each
// rank knows what the others hold and can work out alone what it must get, to the bit.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mmr/run/communicator.hpp>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

namespace mmr_test {

template <class... Parts>
void expect(bool holds, const Parts&... parts) {
  if (!holds) mmr::fail("check failed: ", parts...);
}

/// splitmix64: the same numbers on every rank and every machine.
class random_numbers {
 public:
  explicit random_numbers(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// Uniform in [low, high].
  std::int64_t in(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::uint64_t state_;
};

using blocks = std::vector<mmr::block>;
inline std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// What rank `rank` holds. Magnitudes differ widely, so sums in another order have other bits.
template <class T>
std::vector<T> data_of(std::uint64_t seed, int rank, std::int64_t count) {
  random_numbers random(seed * 977 + static_cast<std::uint64_t>(rank));
  std::vector<T> data(at(count));
  for (T& x : data) {
    const auto mantissa = static_cast<double>(random.in(-1000000, 1000000));
    if constexpr (std::is_integral_v<T>) {
      x = static_cast<T>(mantissa);
    } else {
      x = static_cast<T>(mantissa * std::pow(10.0, static_cast<double>(random.in(-9, -3))));
    }
  }
  return data;
}

/// Place of element e of a block, straight from its definition.
inline std::size_t place(const mmr::block& b, std::int64_t e) {
  return at(b.offset + e / b.length * b.stride + e % b.length);
}

/// Counts for n blocks: all multiples of `rows`, some zero, sometimes long enough to pass every small-message path.
struct counts {
  std::int64_t rows = 1;
  std::vector<std::int64_t> lengths;
  std::int64_t of(int k) const { return rows * lengths[at(k)]; }
};

inline counts random_counts(random_numbers& random, int n) {
  counts result;
  result.rows = random.in(1, 5);
  const std::int64_t scale = random.in(0, 5) == 0 ? 300 : 1;
  for (int k = 0; k < n; ++k) result.lengths.push_back(random.in(0, 6) * scale);
  return result;
}

/// Blocks of these counts that do not overlap, and the length of the buffer they need: the columns of one matrix, or
/// blocks of other shapes, one behind the other in random order with gaps.
inline std::pair<blocks, std::int64_t> lay_out(random_numbers& random, const counts& c) {
  const auto n = static_cast<int>(c.lengths.size());
  blocks result(c.lengths.size());
  if (random.in(0, 1) == 0) {
    const std::int64_t margin = random.in(0, 2);
    const std::int64_t width = std::accumulate(c.lengths.begin(), c.lengths.end(), margin);
    std::int64_t column = random.in(0, margin);
    for (int k = 0; k < n; ++k) {
      result[at(k)] = {column, c.rows, c.lengths[at(k)], width};
      column += c.lengths[at(k)];
    }
    return {result, c.rows * width};
  }
  std::vector<int> order(c.lengths.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[at(random.in(0, static_cast<std::int64_t>(i) - 1))]);
  }
  std::int64_t end = 0;
  for (const int k : order) {
    const std::int64_t count = c.of(k);
    std::int64_t rows = random.in(1, 6);
    while (count % rows != 0) --rows;
    const std::int64_t length = count / rows, stride = length + random.in(0, 3);
    result[at(k)] = {end + random.in(0, 3), rows, length, stride};
    end = result[at(k)].offset + rows * stride;
  }
  return {result, end};
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T>
T combine(T a, T b, mmr::reduction how) {
  if (how == mmr::reduction::sum) return a + b;
  if (b != b) return b;
  return a < b ? b : a;
}

constexpr int untouched = -77;

/// Runs one collective and checks what it added to bytes_sent(), given in elements.
template <class T, class C, class Call>
void counting_bytes(C& comm, std::int64_t elements, const char* name, Call&& call) {
  const std::int64_t before = comm.bytes_sent();
  call();
  const std::int64_t sent = comm.bytes_sent() - before, due = elements * static_cast<std::int64_t>(sizeof(T));
  expect(sent == due, name, " on rank ", comm.rank(), " counts ", sent, " bytes instead of ", due);
}

template <class T, class C>
void check_all_gather(C& comm, std::uint64_t seed) {
  random_numbers shared(seed), own(seed * 31 + static_cast<std::uint64_t>(comm.rank()));
  const int n = comm.size();
  const counts c = random_counts(shared, n);
  const auto [from, length] = lay_out(own, c);
  const std::vector<T> src = data_of<T>(seed, comm.rank(), c.of(comm.rank()));
  std::vector<T> dst(at(length), T(untouched)), due = dst;
  for (int k = 0; k < n; ++k) {
    const std::vector<T> theirs = data_of<T>(seed, k, c.of(k));
    for (std::int64_t e = 0; e < c.of(k); ++e) due[place(from[at(k)], e)] = theirs[at(e)];
  }
  counting_bytes<T>(comm, c.of(comm.rank()) * (n - 1), "all_gather", [&, &blocks = from] {
    comm.all_gather(src.data(), c.of(comm.rank()), dst.data(), blocks, mmr::dtype_of<T>);
  });
  expect(same_bits(dst, due), "all_gather, seed ", seed, ", rank ", comm.rank(), " of ", n);
}

template <class T, class C>
void check_all_to_all(C& comm, std::uint64_t seed) {
  random_numbers shared(seed);
  const int n = comm.size(), me = comm.rank();
  std::vector<counts> sends;  // sends[k].of(j) elements go from rank k to rank j
  for (int k = 0; k < n; ++k) sends.push_back(random_counts(shared, n));
  const auto to_of = [&](int k) {
    random_numbers random(seed * 37 + static_cast<std::uint64_t>(k));
    return lay_out(random, sends[at(k)]);
  };
  counts receives;
  for (int k = 0; k < n; ++k) receives.lengths.push_back(sends[at(k)].of(me));
  random_numbers own(seed * 41 + static_cast<std::uint64_t>(me));
  const auto [from, length] = lay_out(own, receives);
  const auto [to, src_length] = to_of(me);
  const std::vector<T> src = data_of<T>(seed, me, src_length);
  std::vector<T> dst(at(length), T(untouched)), due = dst;
  std::int64_t leaving = 0;
  for (int k = 0; k < n; ++k) {
    const auto [their_to, their_length] = to_of(k);
    const std::vector<T> theirs = data_of<T>(seed, k, their_length);
    for (std::int64_t e = 0; e < receives.of(k); ++e) {
      due[place(from[at(k)], e)] = theirs[place(their_to[at(me)], e)];
    }
    if (k != me) leaving += sends[at(me)].of(k);
  }
  counting_bytes<T>(comm, leaving, "all_to_all", [&, &blocks_to = to, &blocks_from = from] {
    comm.all_to_all(src.data(), blocks_to, dst.data(), blocks_from, mmr::dtype_of<T>);
  });
  expect(same_bits(dst, due), "all_to_all, seed ", seed, ", rank ", me, " of ", n);
}

template <class T, class C>
void check_reduce_scatter(C& comm, std::uint64_t seed, const counts& c, mmr::reduction how) {
  const int n = comm.size(), me = comm.rank();
  const auto to_of = [&](int k) {
    random_numbers random(seed * 43 + static_cast<std::uint64_t>(k));
    return lay_out(random, c);
  };
  const auto [to, src_length] = to_of(me);
  const std::vector<T> src = data_of<T>(seed, me, src_length);
  std::vector<T> dst(at(c.of(me)), T(untouched)), due = dst;
  std::int64_t leaving = 0;
  for (int k = 0; k < n; ++k) {
    const auto [their_to, their_length] = to_of(k);
    const std::vector<T> theirs = data_of<T>(seed, k, their_length);
    for (std::int64_t e = 0; e < c.of(me); ++e) {
      const T x = theirs[place(their_to[at(me)], e)];
      due[at(e)] = k == 0 ? x : combine(due[at(e)], x, how);
    }
    if (k != me) leaving += c.of(k);
  }
  counting_bytes<T>(comm, leaving, "reduce_scatter", [&, &blocks_to = to] {
    comm.reduce_scatter(src.data(), blocks_to, dst.data(), mmr::dtype_of<T>, how);
  });
  expect(same_bits(dst, due), "reduce_scatter, seed ", seed, ", rank ", me, " of ", n);
}

template <class T, class C>
void check_all_reduce(C& comm, std::uint64_t seed, std::int64_t count, mmr::reduction how, bool in_place) {
  const int n = comm.size(), me = comm.rank();
  const auto given_by = [&](int k) {
    std::vector<T> data = data_of<T>(seed, k, count);
    if constexpr (std::is_floating_point_v<T>) {
      // A NaN of one rank must reach all, through max too.
      if (count > 2 && k == n / 2) data[1] = std::numeric_limits<T>::quiet_NaN();
    }
    return data;
  };
  std::vector<T> src = given_by(me), due = given_by(0), dst(at(count), T(untouched));
  for (int k = 1; k < n; ++k) {
    const std::vector<T> theirs = given_by(k);
    for (std::int64_t e = 0; e < count; ++e) due[at(e)] = combine(due[at(e)], theirs[at(e)], how);
  }
  const std::int64_t before = comm.bytes_sent();
  comm.all_reduce(src.data(), in_place ? src.data() : dst.data(), count, mmr::dtype_of<T>, how);
  expect(same_bits(in_place ? src : dst, due), "all_reduce of ", count, ", seed ", seed, ", rank ", me, " of ", n);
  expect(in_place || same_bits(src, given_by(me)), "all_reduce changes its source");
  // Over all ranks, 2B(n−1) bytes move, however uneven the shares.
  std::int32_t sent = static_cast<std::int32_t>(comm.bytes_sent() - before), total = 0;
  comm.all_reduce(&sent, &total, 1, mmr::dtype::i32, mmr::reduction::sum);
  expect(total == 2 * count * (n - 1) * static_cast<std::int64_t>(sizeof(T)), "all_reduce counts ", total, " bytes");
}

template <class T, class C>
void check_broadcast(C& comm, std::uint64_t seed) {
  random_numbers shared(seed);
  const std::int64_t count = shared.in(0, 1) == 0 ? shared.in(0, 9) : shared.in(1000, 3000);
  const auto root = static_cast<int>(shared.in(0, comm.size() - 1));
  std::vector<T> data = data_of<T>(seed, comm.rank(), count);
  counting_bytes<T>(comm, comm.rank() == root ? count * (comm.size() - 1) : 0, "broadcast",
                    [&] { comm.broadcast(data.data(), count, mmr::dtype_of<T>, root); });
  expect(same_bits(data, data_of<T>(seed, root, count)), "broadcast, seed ", seed, ", rank ", comm.rank());
}

/// Rank 0 takes two messages of every rank, the last rank first: matched by sender and tag, not by arrival. Then a
/// ring.
template <class T, class C>
void check_send_recv(C& comm, std::uint64_t seed) {
  const int n = comm.size(), me = comm.rank();
  if (n == 1) return;
  const auto count_of = [&](int k) {
    return static_cast<std::int64_t>((seed * 7 + static_cast<std::uint64_t>(k)) % 900);
  };
  const auto message = [&](int k, int tag) {
    return data_of<T>(seed + static_cast<std::uint64_t>(tag), k, count_of(k));
  };
  if (me != 0) {
    for (const int tag : {1, 2}) {
      counting_bytes<T>(comm, count_of(me), "send",
                        [&] { comm.send(message(me, tag).data(), count_of(me), mmr::dtype_of<T>, 0, tag); });
    }
  } else {
    for (const int tag : {1, 2}) {
      for (int k = n - 1; k > 0; --k) {
        std::vector<T> got(at(count_of(k)), T(untouched));
        comm.recv(got.data(), count_of(k), mmr::dtype_of<T>, k, tag);
        expect(same_bits(got, message(k, tag)), "recv of tag ", tag, " from rank ", k, ", seed ", seed);
      }
    }
  }
  const int next = (me + 1) % n, previous = (me + n - 1) % n;
  std::vector<T> got(at(count_of(previous)), T(untouched));
  if (me == 0) comm.send(message(me, 3).data(), count_of(me), mmr::dtype_of<T>, next, 3);
  comm.recv(got.data(), count_of(previous), mmr::dtype_of<T>, previous, 3);
  if (me != 0) comm.send(message(me, 3).data(), count_of(me), mmr::dtype_of<T>, next, 3);
  expect(same_bits(got, message(previous, 3)), "the ring, seed ", seed, ", rank ", me);
}

template <class T, class C>
void check_collectives_of(C& comm, int rounds) {
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(rounds); ++seed) {
    const auto how = seed % 3 == 0 ? mmr::reduction::max : mmr::reduction::sum;
    check_all_gather<T>(comm, seed);
    check_all_to_all<T>(comm, seed);
    random_numbers shared(seed);
    check_reduce_scatter<T>(comm, seed, random_counts(shared, comm.size()), how);
    check_broadcast<T>(comm, seed);
    check_send_recv<T>(comm, seed);
    comm.barrier();
  }
  for (const std::int64_t count : {0, 1, 2, 7, 511, 512, 513, 2500, 6001}) {
    for (const bool in_place : {false, true}) {
      check_all_reduce<T>(comm, 5, count, mmr::reduction::sum, in_place);
      check_all_reduce<T>(comm, 5, count, mmr::reduction::max, in_place);
    }
  }
}

/// Every collective, in float, double and int32, `rounds` draws of shapes each.
template <mmr::communicator C>
void check_collectives(C& comm, int rounds) {
  check_collectives_of<float>(comm, rounds);
  check_collectives_of<double>(comm, rounds);
  check_collectives_of<std::int32_t>(comm, rounds);
}

/// Reductions longer than any staging memory, with tiles that end inside a row.
template <mmr::communicator C>
void check_long_reductions(C& comm) {
  counts c;
  c.rows = 701;
  for (int k = 0; k < comm.size(); ++k) c.lengths.push_back(k % 2 == 0 ? 501 : 203);
  check_reduce_scatter<float>(comm, 1, c, mmr::reduction::sum);
  check_reduce_scatter<float>(comm, 2, c, mmr::reduction::sum);
  check_reduce_scatter<float>(comm, 4, c, mmr::reduction::max);
  check_all_reduce<float>(comm, 3, 1100003, mmr::reduction::sum, true);
}

/// The rows and columns of a grid (2×3 for six ranks), a group in reverse order, and groups of groups.
template <mmr::communicator C>
void check_groups(C& comm, int rounds) {
  const int n = comm.size(), me = comm.rank();
  const int columns = n % 2 == 0 ? n / 2 : n;
  C row = comm.split(me / columns, me % columns);
  C column = comm.split(me % columns, me / columns);
  expect(row.size() == columns && row.rank() == me % columns, "rank ", me, " has rank ", row.rank(), " in its row");
  expect(column.size() == n / columns && column.rank() == me / columns, "rank ", me, " in its column");
  expect(row.bytes_sent() == 0, "a new group has sent something");
  check_collectives(row, rounds);
  check_collectives(column, rounds);

  C reversed = comm.split(0, -me);
  expect(reversed.rank() == n - 1 - me, "keys do not order the ranks");
  C by_rank = comm.split(3, 7);
  expect(by_rank.rank() == me, "equal keys do not keep the order");
  C half = row.split(row.rank() % 2, 0);
  check_collectives(half, 1);
  std::int32_t mark = me;
  reversed.broadcast(&mark, 1, mmr::dtype::i32, 0);
  expect(mark == n - 1, "rank 0 of the reversed group is rank ", mark);
}

}  // namespace mmr_test

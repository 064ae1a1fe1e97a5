// The simulation: u_t = k u_xx on a rod with cold ends, by explicit finite differences, its positions divided over the
// ranks of a communicator. Knows nothing of mmr but how it divides an extent.
#pragma once

#include <mmr/mesh/placement.hpp>

#include <mpi.h>

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

/// One rod: diffusivity k, and its temperature at first, a sin(pi x) + b sin(3 pi x).
struct rod {
  double k, a, b;

  /// Temperature at position x and time t.
  double exact(double x, double t) const {
    using std::numbers::pi;
    return a * std::exp(-k * pi * pi * t) * std::sin(pi * x) + b * std::exp(-9 * k * pi * pi * t) * std::sin(3 * pi * x);
  }
};

/// The inner points of the rod, x = (i + 1) / (points + 1), of which each rank holds a part.
struct grid {
  int points;
  mmr::interval mine;
  int left, right;  ///< neighbouring ranks, or MPI_PROC_NULL

  /// `line` is a Cartesian communicator of one dimension.
  grid(int all, MPI_Comm line) : points(all) {
    int rank = 0, size = 1;
    MPI_Comm_rank(line, &rank);
    MPI_Comm_size(line, &size);
    mine = mmr::part_of({0, all}, size, rank);
    MPI_Cart_shift(line, 0, 1, &left, &right);
  }
  double x(std::int64_t i) const { return static_cast<double>(i + 1) / (points + 1); }
};

/// Temperatures of all rods at time `end`: [my points][rods]. All rods advance together, so that a step exchanges one
/// message with each neighbour. Needs at least one point on every rank.
inline std::vector<double> simulate(const std::vector<rod>& rods, double end, const grid& g, MPI_Comm line) {
  const auto n = rods.size(), rows = static_cast<std::size_t>(g.mine.size);
  double fastest = 0;
  for (const auto& r : rods) fastest = std::max(fastest, r.k);
  const double dx = 1.0 / (g.points + 1);
  const auto steps = static_cast<int>(std::ceil(end * fastest / (0.4 * dx * dx)));  // stable below 0.5
  const double dt = end / steps;

  // Row 0 and the last one hold the neighbours' points, or the cold ends.
  std::vector<double> now((rows + 2) * n, 0), next = now;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t r = 0; r < n; ++r) now[(i + 1) * n + r] = rods[r].exact(g.x(g.mine.begin + static_cast<std::int64_t>(i)), 0);
  const auto row = [n](std::vector<double>& u, std::size_t i) { return u.data() + i * n; };
  const auto count = static_cast<int>(n);
  for (int s = 0; s < steps; ++s) {
    MPI_Sendrecv(row(now, 1), count, MPI_DOUBLE, g.left, 0, row(now, rows + 1), count, MPI_DOUBLE, g.right, 0, line,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(row(now, rows), count, MPI_DOUBLE, g.right, 1, row(now, 0), count, MPI_DOUBLE, g.left, 1, line,
                 MPI_STATUS_IGNORE);
    for (std::size_t i = 1; i <= rows; ++i)
      for (std::size_t r = 0; r < n; ++r) {
        const auto at = i * n + r;
        next[at] = now[at] + dt * rods[r].k / (dx * dx) * (now[at - n] - 2 * now[at] + now[at + n]);
      }
    std::swap(now, next);
  }
  return {now.begin() + static_cast<std::ptrdiff_t>(n), now.end() - static_cast<std::ptrdiff_t>(n)};
}

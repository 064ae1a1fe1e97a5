// Starts the ranks of a run as threads of this process, and ends them all when one fails.
#pragma once

#include <exception>
#include <memory>
#include <mmr/backend/threads/thread_communicator.hpp>
#include <numeric>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace mmr {

/// Calls f(thread_communicator&) on `ranks` threads at once and waits for all of them. When one throws, the others
/// throw mmr::aborted from the collective, send or recv that they are in or enter next; then the first error is thrown
/// here, as mmr::error "rank 2: <its text>". A rank that returns while others wait for it is such an error too. f is
/// shared by all threads. Throws mmr::error if ranks < 1.
template <class F>
void run_ranks(int ranks, F&& f) {
  if (ranks < 1) fail("run_ranks: ", ranks, " ranks are too few; at least 1 is needed");
  const auto world = std::make_shared<detail::thread_world>();
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  const auto group = detail::rank_group::make(world, std::move(all));

  const auto body = [&](int rank) {
    try {
      thread_communicator comm(group, rank);
      f(comm);
      world->depart(rank);
    } catch (const std::exception& problem) {
      world->stop(rank, problem.what());
    } catch (...) {
      world->stop(rank, "threw something that is not a std::exception");
    }
  };

  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    try {
      threads.emplace_back(body, rank);
    } catch (const std::system_error& problem) {
      world->stop(rank, std::string("its thread could not be started: ") + problem.what());
      break;
    }
  }
  for (std::thread& thread : threads) thread.join();
  world->rethrow();
}

}  // namespace mmr

// The life of an MPI program: initialise, run, and end all ranks when one fails.
#pragma once

#include <chrono>
#include <cstdio>
#include <exception>
#include <mmr/backend/mpi/mpi_communicator.hpp>
#include <mmr/backend/mpi/mpi_error.hpp>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

namespace mmr {

/// MPI from MPI_Init_thread to MPI_Finalize, with MPI_THREAD_FUNNELED: only the thread that made this calls MPI. Leaves
/// an MPI that is already initialised as it is. Throws mmr::error where the level is not offered.
class mpi_session {
 public:
  mpi_session(int& argc, char**& argv) {
    int initialised = 0;
    detail::mpi_check(MPI_Initialized(&initialised), "MPI_Initialized");
    if (initialised) return;
    int offered = 0;
    detail::mpi_check(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &offered), "MPI_Init_thread");
    owner_ = true;
    if (offered < MPI_THREAD_FUNNELED)
      fail("this MPI offers thread level ", offered, ", but MPI_THREAD_FUNNELED is needed");
  }
  mpi_session(const mpi_session&) = delete;
  mpi_session& operator=(const mpi_session&) = delete;
  ~mpi_session() {
    int finalised = 0;
    if (owner_ && MPI_Finalized(&finalised) == MPI_SUCCESS && !finalised) MPI_Finalize();
  }

 private:
  bool owner_ = false;
};

namespace detail {

/// Prints "mmr: rank 2: <text>" and ends all ranks. Where ranks fail together (bad input that all of them read), the
/// lowest speaks for all: the others hear of it, and wait to be ended.
[[noreturn]] inline void abort_mpi(const char* text) {
  constexpr int tag = 17;
  constexpr std::chrono::milliseconds patience{300}, nap{5};
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int k = rank + 1; k < size; ++k) {
    MPI_Request unused;
    MPI_Isend(nullptr, 0, MPI_BYTE, k, tag, MPI_COMM_WORLD, &unused);
  }
  int heard = 0;
  for (auto waited = nap; rank > 0 && waited < patience && !heard; waited += nap) {
    MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &heard, MPI_STATUS_IGNORE);
    std::this_thread::sleep_for(nap);
  }
  // Should the one that speaks be held up, this ends the run all the same.
  if (heard) std::this_thread::sleep_for(std::chrono::seconds(5));
  if (!heard) {
    std::fprintf(stderr, "mmr: rank %d: %s\n", rank, text);
    std::fflush(stderr);
  }
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::terminate();
}

}  // namespace detail

/// Initialises MPI, calls f(mpi_communicator&) on a duplicate of MPI_COMM_WORLD, and finalises. Returns what f returns
/// (0 for void): the main function's status. An exception on any rank is printed once, to stderr, with the rank, and
/// ends all ranks with MPI_Abort and status 1, so that none hangs.
template <class F>
int run_mpi(int argc, char** argv, F&& f) {
  const mpi_session session(argc, argv);
  try {
    mpi_communicator comm(MPI_COMM_WORLD);
    if constexpr (std::is_void_v<std::invoke_result_t<F&, mpi_communicator&>>) {
      f(comm);
      return 0;
    } else {
      return f(comm);
    }
  } catch (const std::exception& problem) {
    detail::abort_mpi(problem.what());
  } catch (...) {
    detail::abort_mpi("threw something that is not a std::exception");
  }
}

}  // namespace mmr

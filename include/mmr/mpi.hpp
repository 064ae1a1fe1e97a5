// Ranks as MPI processes: include this beside auto_parallel.hpp and link MPI (CMake: mmr::mpi).
//
//   int main(int argc, char** argv) {
//     return mmr::run_mpi(argc, argv, [](mmr::mpi_communicator& comm) { ... });
//   }
//
// Open MPI spins while it waits. With more ranks than cores:
//   mpirun --oversubscribe --mca mpi_yield_when_idle 1 -n 4 ./program
#pragma once

#include <mmr/backend/mpi/mpi_block_type.hpp>
#include <mmr/backend/mpi/mpi_communicator.hpp>
#include <mmr/backend/mpi/mpi_error.hpp>
#include <mmr/backend/mpi/run_mpi.hpp>

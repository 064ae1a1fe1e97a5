// The checks of the thread tests, over MPI: mpirun -n 4 test_backend_mpi
// With `fail R`, rank R throws while the others wait; with `fail all`, every rank throws: one line, status not 0, no
// hang.
#include <cstdio>
#include <cstdlib>
#include <mmr/mpi.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "backend_threads/collectives.hpp"

using mmr::block;
using mmr::dtype;
using mmr::mpi_communicator;
using mmr_test::expect;

namespace {

/// Blocks as derived types, for each first element and count of a small block, with MPI's counts made as small as 3:
/// what the type holds goes through MPI_Pack, and must be what copy_block takes.
void check_block_types() {
  std::vector<float> data(200);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
  const block shapes[] = {{3, 4, 5, 7}, {0, 1, 20, 20}, {2, 20, 1, 3}, {1, 2, 10, 10}, {5, 3, 7, 40}, {0, 4, 5, 5}};
  for (const block& b : shapes) {
    std::vector<float> dense(static_cast<std::size_t>(b.count()));
    mmr::copy_block(data.data(), b, dense.data(), mmr::dense_block(0, b.count()), dtype::f32);
    for (std::int64_t first = 0; first < b.count(); ++first) {
      for (std::int64_t count = 1; first + count <= b.count(); ++count) {
        for (const std::int64_t limit : {std::int64_t{20}, std::int64_t{INT_MAX}}) {
          const std::int64_t used = limit == 20 && b.rows < 4 ? 6 : limit;
          const mmr::detail::mpi_message m = mmr::detail::mpi_block(b, first, count, dtype::f32, used);
          std::vector<float> packed(static_cast<std::size_t>(count), -1.0f);
          int position = 0;
          mmr::detail::mpi_check(
              MPI_Pack(reinterpret_cast<const char*>(data.data()) + m.offset_bytes, m.count, m.type.get(),
                       packed.data(), static_cast<int>(packed.size() * sizeof(float)), &position, MPI_COMM_SELF),
              "MPI_Pack");
          expect(position == static_cast<int>(packed.size() * sizeof(float)), "the type packs ", position, " bytes");
          for (std::int64_t e = 0; e < count; ++e) {
            expect(packed[mmr_test::at(e)] == dense[mmr_test::at(first + e)], "element ", first, " + ", e, " of ",
                   count);
          }
        }
      }
    }
  }
  // More than 2^31 elements in one message: the type is never sent here, only measured.
  const std::int64_t huge = (std::int64_t{1} << 33) + 12345;
  const mmr::detail::mpi_message m = mmr::detail::mpi_block(mmr::dense_block(7, huge), 0, huge, dtype::f64);
  MPI_Count bytes = 0;
  mmr::detail::mpi_check(MPI_Type_size_x(m.type.get(), &bytes), "MPI_Type_size_x");
  expect(m.count * bytes == huge * 8 && m.offset_bytes == 56, "a long message has ", m.count * bytes, " bytes");
}

template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const mmr::error& problem) {
    return problem.what();
  }
  return "";
}

/// The receiver of a message of another length says so.
void check_mismatches(mpi_communicator& comm) {
  if (comm.size() < 2) return;
  for (const bool longer : {false, true}) {
    mpi_communicator group = comm.split(0, 0);
    const bool odd = group.rank() == 1;
    const std::int64_t given = odd ? (longer ? 6 : 2) : 4;
    std::vector<block> from(mmr_test::at(group.size()), mmr::dense_block(0, 4));
    from[1] = mmr::dense_block(4, odd ? given : 4);
    std::vector<float> src(8), dst(16);
    const std::string text = error_of([&] { group.all_gather(src.data(), given, dst.data(), from, dtype::f32); });
    const std::string said = longer ? "sent more than the 4 float32" : "sent 2 float32, but rank ";
    expect(odd ? text.empty() : text.find(said) != std::string::npos, "rank ", group.rank(), " says: ", text);
  }
  comm.barrier();
}

void check_errors(mpi_communicator& comm) {
  float x = 0;
  expect(error_of([&] { comm.send(&x, 1, dtype::f32, comm.rank(), 0); }).find("names itself") != std::string::npos,
         "a send to itself");
  expect(error_of([&] { comm.broadcast(&x, 1, dtype::f32, comm.size()); }).find("not a rank") != std::string::npos,
         "a root outside the group");
  expect(error_of([] { mmr::detail::mpi_check(MPI_ERR_COMM, "a call"); }).find("a call failed in MPI") == 0,
         "an MPI error");
}

}  // namespace

int main(int argc, char** argv) {
  return mmr::run_mpi(argc, argv, [&](mpi_communicator& comm) {
    if (argc > 2 && std::string_view(argv[1]) == "fail") {
      if (std::string_view(argv[2]) == "all" || comm.rank() == std::atoi(argv[2])) mmr::fail("no more paper");
      comm.barrier();
      return;
    }
    check_block_types();
    check_errors(comm);
    mmr_test::check_collectives(comm, 6);
    mmr_test::check_groups(comm, 2);
    mmr_test::check_long_reductions(comm);
    check_mismatches(comm);
    if (comm.rank() == 0) std::printf("all checks passed on %d ranks\n", comm.size());
  });
}

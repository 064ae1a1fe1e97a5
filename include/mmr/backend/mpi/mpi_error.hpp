// MPI's C interface with its error codes turned into mmr::error.
#pragma once

// The C++ bindings are gone from the standard, and need a library of their own where they still exist.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <mmr/tensor/dtype.hpp>
#include <mmr/tensor/error.hpp>
#include <string_view>

namespace mmr::detail {

/// Throws mmr::error with MPI's own text unless `code` is MPI_SUCCESS.
inline void mpi_check(int code, const char* operation) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  fail(operation, " failed in MPI (code ", code, "): ", std::string_view(text, static_cast<std::size_t>(length)));
}

inline MPI_Datatype mpi_type_of(dtype type) {
  switch (type) {
    case dtype::f32:
      return MPI_FLOAT;
    case dtype::f64:
      return MPI_DOUBLE;
    case dtype::i32:
      return MPI_INT32_T;
    case dtype::u8:
      return MPI_UINT8_T;
    case dtype::bf16:
      break;
  }
  fail("elements of type ", name_of(type), " cannot be sent by MPI ranks; plan with them, and run in float32");
}

}  // namespace mmr::detail

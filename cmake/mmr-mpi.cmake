# The optional component mmr::mpi: what <mmr/mpi.hpp> needs, where MPI is installed.
if(NOT TARGET mmr::mpi)
  set(MPI_CXX_SKIP_MPICXX ON) # the C interface is all we use
  find_package(MPI QUIET COMPONENTS CXX)
  if(TARGET MPI::MPI_CXX)
    add_library(mmr_mpi INTERFACE)
    add_library(mmr::mpi ALIAS mmr_mpi)
    target_link_libraries(mmr_mpi INTERFACE mmr::mmr MPI::MPI_CXX)
  endif()
endif()

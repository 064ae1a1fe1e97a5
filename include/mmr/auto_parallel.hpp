// The public entry: declare a model, plan it, train it. Includes no MPI and no CUDA; see mmr/mpi.hpp.
#pragma once

// declare
#include <mmr/declare.hpp>

// plan
#include <mmr/mesh/topology.hpp>
#include <mmr/plan/description.hpp>
#include <mmr/plan/explain.hpp>
#include <mmr/plan/json.hpp>
#include <mmr/plan/mesh_json.hpp>
#include <mmr/plan/planner.hpp>

// run
#include <mmr/io/progress.hpp>
#include <mmr/run/calibrate.hpp>
#include <mmr/run/evaluation.hpp>
#include <mmr/run/inputs.hpp>
#include <mmr/run/share_plan.hpp>
#include <mmr/run/trainer.hpp>

#include <mmr/backend/threads/run_ranks.hpp>

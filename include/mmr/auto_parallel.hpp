// The public entry: declare a model, plan it, train it. Includes no MPI and no CUDA; see mmr/mpi.hpp.
#pragma once

// declare
#include <mmr/tensor/axis.hpp>
#include <mmr/tensor/tensor.hpp>

#include <mmr/op/add.hpp>
#include <mmr/op/attention.hpp>
#include <mmr/op/bias.hpp>
#include <mmr/op/contract.hpp>
#include <mmr/op/cross_entropy.hpp>
#include <mmr/op/dispatch.hpp>
#include <mmr/op/dropout.hpp>
#include <mmr/op/embedding.hpp>
#include <mmr/op/gelu.hpp>
#include <mmr/op/layer_norm.hpp>
#include <mmr/op/load_balance.hpp>
#include <mmr/op/masked_cross_entropy.hpp>
#include <mmr/op/mean.hpp>
#include <mmr/op/rms_norm.hpp>
#include <mmr/op/rotary.hpp>
#include <mmr/op/masked_softmax.hpp>
#include <mmr/op/relative_bias.hpp>
#include <mmr/op/rename.hpp>
#include <mmr/op/route.hpp>
#include <mmr/op/silu.hpp>
#include <mmr/op/softmax.hpp>
#include <mmr/op/squared_error.hpp>

#include <mmr/graph/declaration.hpp>

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

#include <mmr/backend/cpu/kernels.hpp>
#include <mmr/backend/threads/run_ranks.hpp>

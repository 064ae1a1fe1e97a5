// What it takes to declare a model, and no more: for headers that hold models. Programs that plan and train include
// mmr/auto_parallel.hpp.
#pragma once

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

#include <mmr/plan/scheme_axes.hpp>

// what runs the operators
#include <mmr/backend/cpu/kernels.hpp>

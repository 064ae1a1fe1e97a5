// The axes and tensors that the misuses share. Only the operators' headers: the types must stop a misuse before the
// graph and the kernels are seen, and each file is quick to refuse.
#pragma once

#include <mmr/op/add.hpp>
#include <mmr/op/attention.hpp>
#include <mmr/op/bias.hpp>
#include <mmr/op/contract.hpp>
#include <mmr/op/cross_entropy.hpp>
#include <mmr/op/dropout.hpp>
#include <mmr/op/embedding.hpp>
#include <mmr/op/gelu.hpp>
#include <mmr/op/layer_norm.hpp>
#include <mmr/op/softmax.hpp>

struct Batch : mmr::axis<"batch"> {};
struct Seq : mmr::axis<"seq"> {};
struct In : mmr::axis<"in"> {};
struct Out : mmr::axis<"out"> {};
struct Heads : mmr::axis<"heads"> {};
struct Features : mmr::axis<"features"> {};
struct Vocab : mmr::axis<"vocab"> {};

template <class... A>
using f32 = mmr::tensor<float, A...>;
template <class... A>
using f64 = mmr::tensor<double, A...>;

// Every operator of the library on the CPU. Include it before the declaration of a model.
#pragma once

#include <mmr/backend/cpu/bind/attention.hpp>
#include <mmr/backend/cpu/bind/contract.hpp>
#include <mmr/backend/cpu/bind/cross_entropy.hpp>
#include <mmr/backend/cpu/bind/dropout.hpp>
#include <mmr/backend/cpu/bind/embedding.hpp>
#include <mmr/backend/cpu/bind/experts.hpp>
#include <mmr/backend/cpu/bind/gradient.hpp>
#include <mmr/backend/cpu/bind/masked_cross_entropy.hpp>
#include <mmr/backend/cpu/bind/normalisation.hpp>
#include <mmr/backend/cpu/bind/optimizer.hpp>
#include <mmr/backend/cpu/bind/pointwise.hpp>
#include <mmr/backend/cpu/bind/rms_norm.hpp>
#include <mmr/backend/cpu/bind/rotary.hpp>
#include <mmr/backend/cpu/bind/silu.hpp>
#include <mmr/backend/cpu/bind/scores.hpp>

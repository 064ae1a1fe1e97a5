// expect: axis_stands_twice<Batch, Batch, Rows
// Two axes of one name in a tensor: the graph could not tell them apart.
#include "model.hpp"

struct Rows : mmr::axis<"batch"> {};

f32<Batch, Rows> wrong;

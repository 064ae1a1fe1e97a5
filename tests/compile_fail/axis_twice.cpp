// expect: axis_stands_twice<Seq, Batch, Seq, Seq
// One axis twice in a tensor.
#include "model.hpp"

f32<Batch, Seq, Seq> wrong;

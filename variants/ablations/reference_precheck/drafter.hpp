// Rung 2 with the precheck and nothing else of rung 5.
#pragma once

#include "ladder/reference_access/drafter.hpp"

namespace ladder {

using ReferencePrecheck = ReferenceAccess<XorNgramHash, Precheck::on>;

}  // namespace ladder

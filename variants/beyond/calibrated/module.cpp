#include "bindings/module.hpp"
#include "beyond/calibrated/drafter.hpp"

LADDER_VARIANT_MODULE(calibrated, ladder::alternative<ladder::Calibrated<50>>({{"tau", "50"}}),
                      ladder::alternative<ladder::Calibrated<3>>({{"tau", "3"}}),
                      ladder::alternative<ladder::Calibrated<100>>({{"tau", "100"}}),
                      ladder::alternative<ladder::Calibrated<200>>({{"tau", "200"}}),
                      ladder::alternative<ladder::Calibrated<400>>({{"tau", "400"}}),
                      ladder::alternative<ladder::Calibrated<700>>({{"tau", "700"}}))

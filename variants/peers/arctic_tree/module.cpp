#include "bindings/module.hpp"
#include "peers/arctic_tree/drafter.hpp"
#include "peers/shared/configured.hpp"

LADDER_VARIANT_MODULE(arctic_tree,
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{100, 10, false}>(
                          {{"max_spec_factor", "1"}, {"min_token_prob", "0.1"}, {"turns", "continue"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{100, 10, true}>(
                          {{"max_spec_factor", "1"}, {"min_token_prob", "0.1"}, {"turns", "relearn"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{100, 30, false}>(
                          {{"max_spec_factor", "1"}, {"min_token_prob", "0.3"}, {"turns", "continue"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{100, 30, true}>(
                          {{"max_spec_factor", "1"}, {"min_token_prob", "0.3"}, {"turns", "relearn"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{100, 50, false}>(
                          {{"max_spec_factor", "1"}, {"min_token_prob", "0.5"}, {"turns", "continue"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{100, 50, true}>(
                          {{"max_spec_factor", "1"}, {"min_token_prob", "0.5"}, {"turns", "relearn"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{100, 70, false}>(
                          {{"max_spec_factor", "1"}, {"min_token_prob", "0.7"}, {"turns", "continue"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{100, 70, true}>(
                          {{"max_spec_factor", "1"}, {"min_token_prob", "0.7"}, {"turns", "relearn"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{25, 10, false}>(
                          {{"max_spec_factor", "0.25"}, {"min_token_prob", "0.1"}, {"turns", "continue"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{25, 10, true}>(
                          {{"max_spec_factor", "0.25"}, {"min_token_prob", "0.1"}, {"turns", "relearn"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{25, 30, false}>(
                          {{"max_spec_factor", "0.25"}, {"min_token_prob", "0.3"}, {"turns", "continue"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{25, 30, true}>(
                          {{"max_spec_factor", "0.25"}, {"min_token_prob", "0.3"}, {"turns", "relearn"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{25, 50, false}>(
                          {{"max_spec_factor", "0.25"}, {"min_token_prob", "0.5"}, {"turns", "continue"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{25, 50, true}>(
                          {{"max_spec_factor", "0.25"}, {"min_token_prob", "0.5"}, {"turns", "relearn"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{25, 70, false}>(
                          {{"max_spec_factor", "0.25"}, {"min_token_prob", "0.7"}, {"turns", "continue"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{25, 70, true}>(
                          {{"max_spec_factor", "0.25"}, {"min_token_prob", "0.7"}, {"turns", "relearn"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{50, 10, false}>(
                          {{"max_spec_factor", "0.5"}, {"min_token_prob", "0.1"}, {"turns", "continue"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{50, 10, true}>(
                          {{"max_spec_factor", "0.5"}, {"min_token_prob", "0.1"}, {"turns", "relearn"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{50, 30, false}>(
                          {{"max_spec_factor", "0.5"}, {"min_token_prob", "0.3"}, {"turns", "continue"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{50, 30, true}>(
                          {{"max_spec_factor", "0.5"}, {"min_token_prob", "0.3"}, {"turns", "relearn"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{50, 50, false}>(
                          {{"max_spec_factor", "0.5"}, {"min_token_prob", "0.5"}, {"turns", "continue"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{50, 50, true}>(
                          {{"max_spec_factor", "0.5"}, {"min_token_prob", "0.5"}, {"turns", "relearn"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{50, 70, false}>(
                          {{"max_spec_factor", "0.5"}, {"min_token_prob", "0.7"}, {"turns", "continue"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{50, 70, true}>(
                          {{"max_spec_factor", "0.5"}, {"min_token_prob", "0.7"}, {"turns", "relearn"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{200, 10, false}>(
                          {{"max_spec_factor", "2"}, {"min_token_prob", "0.1"}, {"turns", "continue"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{200, 10, true}>(
                          {{"max_spec_factor", "2"}, {"min_token_prob", "0.1"}, {"turns", "relearn"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{200, 30, false}>(
                          {{"max_spec_factor", "2"}, {"min_token_prob", "0.3"}, {"turns", "continue"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{200, 30, true}>(
                          {{"max_spec_factor", "2"}, {"min_token_prob", "0.3"}, {"turns", "relearn"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{200, 50, false}>(
                          {{"max_spec_factor", "2"}, {"min_token_prob", "0.5"}, {"turns", "continue"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{200, 50, true}>(
                          {{"max_spec_factor", "2"}, {"min_token_prob", "0.5"}, {"turns", "relearn"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{200, 70, false}>(
                          {{"max_spec_factor", "2"}, {"min_token_prob", "0.7"}, {"turns", "continue"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{200, 70, true}>(
                          {{"max_spec_factor", "2"}, {"min_token_prob", "0.7"}, {"turns", "relearn"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{400, 10, false}>(
                          {{"max_spec_factor", "4"}, {"min_token_prob", "0.1"}, {"turns", "continue"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{400, 10, true}>(
                          {{"max_spec_factor", "4"}, {"min_token_prob", "0.1"}, {"turns", "relearn"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{400, 30, false}>(
                          {{"max_spec_factor", "4"}, {"min_token_prob", "0.3"}, {"turns", "continue"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{400, 30, true}>(
                          {{"max_spec_factor", "4"}, {"min_token_prob", "0.3"}, {"turns", "relearn"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{400, 50, false}>(
                          {{"max_spec_factor", "4"}, {"min_token_prob", "0.5"}, {"turns", "continue"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{400, 50, true}>(
                          {{"max_spec_factor", "4"}, {"min_token_prob", "0.5"}, {"turns", "relearn"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{400, 70, false}>(
                          {{"max_spec_factor", "4"}, {"min_token_prob", "0.7"}, {"turns", "continue"}}),
                      ladder::configured<ladder::ArcticTree, ladder::ArcticSettings{400, 70, true}>(
                          {{"max_spec_factor", "4"}, {"min_token_prob", "0.7"}, {"turns", "relearn"}}))

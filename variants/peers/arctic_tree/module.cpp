#include "bindings/module.hpp"
#include "peers/arctic_tree/drafter.hpp"

LADDER_VARIANT_MODULE(arctic_tree,
                      ladder::alternative<ladder::ArcticTree<100, 10, false>>(
                          {{"max_spec_factor", "1"}, {"min_token_prob", "0.1"}, {"turns", "continue"}}),
                      ladder::alternative<ladder::ArcticTree<25, 10, false>>(
                          {{"max_spec_factor", "0.25"}, {"min_token_prob", "0.1"}, {"turns", "continue"}}),
                      ladder::alternative<ladder::ArcticTree<50, 10, false>>(
                          {{"max_spec_factor", "0.5"}, {"min_token_prob", "0.1"}, {"turns", "continue"}}),
                      ladder::alternative<ladder::ArcticTree<200, 10, false>>(
                          {{"max_spec_factor", "2"}, {"min_token_prob", "0.1"}, {"turns", "continue"}}),
                      ladder::alternative<ladder::ArcticTree<400, 10, false>>(
                          {{"max_spec_factor", "4"}, {"min_token_prob", "0.1"}, {"turns", "continue"}}),
                      ladder::alternative<ladder::ArcticTree<100, 30, false>>(
                          {{"max_spec_factor", "1"}, {"min_token_prob", "0.3"}, {"turns", "continue"}}),
                      ladder::alternative<ladder::ArcticTree<100, 50, false>>(
                          {{"max_spec_factor", "1"}, {"min_token_prob", "0.5"}, {"turns", "continue"}}),
                      ladder::alternative<ladder::ArcticTree<100, 70, false>>(
                          {{"max_spec_factor", "1"}, {"min_token_prob", "0.7"}, {"turns", "continue"}}),
                      ladder::alternative<ladder::ArcticTree<100, 10, true>>(
                          {{"max_spec_factor", "1"}, {"min_token_prob", "0.1"}, {"turns", "relearn"}}))

#ifndef ETC_TESTS_TASKS_PRETRAIN_SCRIPTED_DRAWS_H_
#define ETC_TESTS_TASKS_PRETRAIN_SCRIPTED_DRAWS_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tasks/pretrain/examples/draws.h"

namespace etc {

// Draws as a list says, in order:
//
//   ["uniform", u]   ["integer", first, last, value]   ["below", n, value]
//   ["permutation", [1, 0, 2]]
//
// Fails the test if another kind of draw is asked for, or one with other
// bounds; "below" n is an integer from 0 to n - 1.
class ScriptedDraws : public Draws {
 public:
  explicit ScriptedDraws(nlohmann::json draws) : draws_(std::move(draws)) {}

  double Uniform() override {
    const nlohmann::json draw = Next("uniform");
    return draw.is_null() ? 0.0 : draw[1].get<double>();
  }

  int64_t Integer(int64_t first, int64_t last) override {
    const nlohmann::json draw = Next("integer");
    if (draw.is_null()) {
      return first;
    }
    const bool below = draw[0] == "below";
    const int64_t scripted_first = below ? 0 : draw[1].get<int64_t>();
    const int64_t scripted_last =
        below ? draw[1].get<int64_t>() - 1 : draw[2].get<int64_t>();
    EXPECT_EQ(first, scripted_first) << "draw " << used_ - 1 << ": " << draw;
    EXPECT_EQ(last, scripted_last) << "draw " << used_ - 1 << ": " << draw;
    return draw.back().get<int64_t>();
  }

  std::vector<int32_t> Permutation(int32_t size) override {
    const nlohmann::json draw = Next("permutation");
    if (!draw.is_null() && draw[1].size() == static_cast<size_t>(size)) {
      return draw[1].get<std::vector<int32_t>>();
    }
    ADD_FAILURE() << "a permutation of " << size << " instead of draw "
                  << used_ - 1 << ": " << draw;
    std::vector<int32_t> order(static_cast<size_t>(size));
    std::iota(order.begin(), order.end(), 0);
    return order;
  }

  // Draws that nobody asked for.
  int64_t left() const { return static_cast<int64_t>(draws_.size() - used_); }

 private:
  // The next draw if it is of that kind, else null and a failed test.
  nlohmann::json Next(const std::string& kind) {
    if (used_ == draws_.size()) {
      ADD_FAILURE() << "draw " << used_ << " (" << kind << ") is not scripted";
      return nullptr;
    }
    const nlohmann::json draw = draws_[used_++];
    if (draw[0] != kind && !(kind == "integer" && draw[0] == "below")) {
      ADD_FAILURE() << "draw " << used_ - 1 << " is " << kind << ", not "
                    << draw;
      return nullptr;
    }
    return draw;
  }

  const nlohmann::json draws_;
  size_t used_ = 0;
};

}  // namespace etc

#endif  // ETC_TESTS_TASKS_PRETRAIN_SCRIPTED_DRAWS_H_

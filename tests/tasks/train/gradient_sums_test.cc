// Gradients summed while the backward pass runs: the sums, from the first
// update on and when buckets go off early, with parameters that nobody, not
// everybody or only some updates use, and after a pass that was given up.

#include "tasks/train/gradient_sums.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "tests/tasks/distributed/forked_processes.h"

namespace etc {
namespace {

// One bucket each, but for the small ones.
constexpr int64_t kLarge = 700;
constexpr int64_t kSmall = 3;
constexpr size_t kBucketBytesOfTest = kLarge * sizeof(float);

class Model {
 public:
  Model() {
    for (const auto& [name, size] :
         {std::pair("encoder.layers.10.w", kLarge),
          std::pair("encoder.layers.2.rare", kSmall),
          std::pair("encoder.layers.2.w", kLarge),
          std::pair("encoder.embedding.w", kLarge), std::pair("head.w", kSmall),
          std::pair("head.unused", kSmall)}) {
      parameters[name] = torch::full({size}, 0.25).requires_grad_();
    }
  }

  // Deeper layers last, so that their gradients come first.
  void Backward(double input, const std::set<std::string>& without) {
    torch::Tensor state = torch::full({}, input);
    for (const char* name :
         {"encoder.layers.2.rare", "encoder.embedding.w", "encoder.layers.2.w",
          "encoder.layers.10.w", "head.w"}) {
      if (without.count(name) == 0) {
        state = torch::tanh(state + parameters.at(name).mean() * input);
      }
    }
    state.backward();
  }

  void Clear() {
    for (auto& [name, parameter] : parameters) {
      parameter.mutable_grad() = torch::Tensor();
    }
  }

  NamedTensors parameters;
};

double InputOf(int64_t rank, int64_t pass) {
  return 0.1 * static_cast<double>(1 + rank + 10 * pass);
}

// Two micro-batches of a process. `without` are those that it leaves out.
void ExpectSumOf(const ProcessPlace& place, Model* model, GradientSums* sums,
                 const std::function<std::set<std::string>(int64_t)>& without) {
  Model expected;
  for (int64_t rank = 0; rank < place.world_size; ++rank) {
    expected.Backward(InputOf(rank, 0), {});
    expected.Backward(InputOf(rank, 1), without(rank));
  }
  model->Clear();
  model->Backward(InputOf(place.rank, 0), {});
  sums->BeginLastPass();
  model->Backward(InputOf(place.rank, 1), without(place.rank));
  sums->SendRest();
  double number = static_cast<double>(place.rank + 1);
  ASSERT_TRUE(sums->Finish(&number).ok());
  EXPECT_EQ(number,
            static_cast<double>(place.world_size * (place.world_size + 1) / 2));
  for (const auto& [name, parameter] : model->parameters) {
    const torch::Tensor& right = expected.parameters.at(name).grad();
    EXPECT_EQ(parameter.grad().defined(), right.defined()) << name;
    if (right.defined()) {
      EXPECT_TRUE(torch::allclose(parameter.grad(), right, 1e-5, 0)) << name;
      EXPECT_GT(right.abs().max().item<float>(), 0) << name;
    }
  }
}

void InProcesses(int64_t count,
                 const std::function<void(const ProcessPlace&, Model*,
                                          GradientSums*)>& work) {
  ExpectProcesses(count, [&](const ProcessPlace& place) {
    auto group = ProcessGroup::Join(place, absl::Seconds(kSecondsToHang));
    ASSERT_TRUE(group.ok()) << group.status();
    Model model;
    GradientSums sums(model.parameters, group->get(), kBucketBytesOfTest);
    EXPECT_EQ(sums.buckets(), 4U);
    work(place, &model, &sums);
    EXPECT_TRUE((*group)->Agree(absl::OkStatus()).ok());
  });
}

TEST(GradientSumsTest, SendsEarlyWhatItHasLearntToBeComplete) {
  for (const int64_t count : {1, 2, 3}) {
    InProcesses(
        count, [](const ProcessPlace& place, Model* model, GradientSums* sums) {
          const auto nothing = [](int64_t) { return std::set<std::string>(); };
          ExpectSumOf(place, model, sums, nothing);
          EXPECT_EQ(sums->sent_early(), 0U);
          for (int i = 0; i < 2; ++i) {
            ExpectSumOf(place, model, sums, nothing);
            EXPECT_EQ(sums->sent_early(), 4U);
          }
        });
  }
}

TEST(GradientSumsTest, SumsWhatComesLate) {
  InProcesses(
      2, [](const ProcessPlace& place, Model* model, GradientSums* sums) {
        const auto without_rare = [](int64_t) {
          return std::set<std::string>{"encoder.layers.2.rare"};
        };
        ExpectSumOf(place, model, sums, without_rare);
        ExpectSumOf(place, model, sums, without_rare);
        EXPECT_EQ(sums->sent_early(), 4U);
        // In one process, after the bucket that it is in.
        const auto rare_in_one = [](int64_t rank) {
          return rank == 1 ? std::set<std::string>()
                           : std::set<std::string>{"encoder.layers.2.rare"};
        };
        ExpectSumOf(place, model, sums, rare_in_one);
        EXPECT_EQ(sums->sent_early(), 4U);
        ExpectSumOf(place, model, sums, without_rare);
      });
}

TEST(GradientSumsTest, GoesOnAfterAPassThatWasGivenUp) {
  InProcesses(
      2, [](const ProcessPlace& place, Model* model, GradientSums* sums) {
        const auto nothing = [](int64_t) { return std::set<std::string>(); };
        ExpectSumOf(place, model, sums, nothing);
        model->Clear();
        sums->BeginLastPass();
        if (place.rank == 0) {
          model->Backward(1, {});
        }
        sums->SendRest();
        ASSERT_TRUE(sums->Drop().ok());
        ExpectSumOf(place, model, sums, nothing);
      });
}

}  // namespace
}  // namespace etc

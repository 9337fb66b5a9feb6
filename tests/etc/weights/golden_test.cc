// Models of the official codes and of HuggingFace's: where a folder `golden` of
// shared data lies beside the checkout, each folder in it with an
// etc_config.json, a checkpoint in whichever format, inputs.safetensors and
// outputs.safetensors. What this project makes of the first three has to be the
// fourth, to 2e-5.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "etc/bert_input.h"
#include "etc/model.h"
#include "etc/weights/weights.h"
#include "tests/support/shared_data.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

// The tensor in `file` that is called by the first of `names` that it has.
torch::Tensor Find(const TensorReader& file,
                   const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (auto tensor = file.Read(name); tensor.ok()) {
      return *tensor;
    }
  }
  return {};
}

torch::Tensor FindIds(const TensorReader& file,
                      const std::vector<std::string>& names) {
  const torch::Tensor ids = Find(file, names);
  return ids.defined() ? ids.to(torch::kInt64) : ids;
}

// Inputs by the names of the official call (model spec 7.1), or of
// HuggingFace's.
EtcInput ReadInput(const TensorReader& file) {
  if (const torch::Tensor ids = FindIds(file, {"input_ids"}); ids.defined()) {
    return BertInput(ids, FindIds(file, {"token_type_ids"}),
                     Find(file, {"attention_mask", "input_mask"}));
  }
  EtcInput input{.token_ids = FindIds(file, {"token_ids"}),
                 .global_token_ids = FindIds(file, {"global_token_ids"})};
  if (!input.token_ids.defined()) {
    input.token_ids =
        input.global_token_ids.new_empty({input.global_token_ids.size(0), 0});
  }
  input.segment_ids = FindIds(file, {"segment_ids"});
  input.global_segment_ids = FindIds(file, {"global_segment_ids"});
  input.position_ids = FindIds(file, {"position_ids"});
  input.global_position_ids = FindIds(file, {"global_position_ids"});
  input.long_embedding_adder = Find(file, {"long_embedding_adder"});
  input.global_embedding_adder = Find(file, {"global_embedding_adder"});
  const auto mask = [&](const std::string& piece) {
    const torch::Tensor found =
        Find(file, {piece + "_att_mask", piece + "_mask"});
    return found.defined() ? found.to(torch::kBool) : found;
  };
  const auto ids = [&](const std::string& piece) {
    return FindIds(file, {piece + "_relative_att_ids", piece + "_ids"});
  };
  input.attention = AttentionInputs(ExplicitInputs{.l2l_mask = mask("l2l"),
                                                   .l2l_ids = ids("l2l"),
                                                   .l2g_mask = mask("l2g"),
                                                   .l2g_ids = ids("l2g"),
                                                   .g2g_mask = mask("g2g"),
                                                   .g2g_ids = ids("g2g"),
                                                   .g2l_mask = mask("g2l"),
                                                   .g2l_ids = ids("g2l")});
  return input;
}

void RunGoldenCase(const std::string& directory) {
  std::vector<std::string> unknown_fields;
  const auto config =
      ReadEtcConfig(directory + "/etc_config.json", &unknown_fields);
  ASSERT_TRUE(config.ok()) << config.status();
  // Inputs and outputs are safetensors too, but no weights.
  std::string checkpoint = directory;
  for (const char* name : {"model.safetensors", "pytorch_model.bin",
                           "model.ckpt.index", "bert_model.ckpt.index"}) {
    if (std::filesystem::exists(absl::StrCat(directory, "/", name))) {
      checkpoint = absl::StrCat(directory, "/", name);
      break;
    }
  }
  const auto file = OpenWeights(checkpoint);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto plan = PlanWeights(file->source, *config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->NumFresh(), 0);
  EtcModel model(*config);
  model->eval();
  ASSERT_TRUE(
      LoadPlannedWeights(file->reader, *plan, ModuleTensors(*model)).ok());
  const auto inputs = TensorReader::Open(directory + "/inputs.safetensors");
  const auto outputs = TensorReader::Open(directory + "/outputs.safetensors");
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  const torch::NoGradGuard no_grad;
  const EtcOutput actual = model->forward(ReadInput(*inputs));
  const torch::Tensor longs = Find(*outputs, {"long_output"});
  const torch::Tensor globals = Find(*outputs, {"global_output"});
  ASSERT_TRUE(longs.defined() || globals.defined());
  if (longs.defined() && longs.numel() > 0) {
    EXPECT_TRUE(IsClose(actual.long_output, longs, 2e-5));
  }
  if (globals.defined()) {
    EXPECT_TRUE(IsClose(actual.global_output, globals, 2e-5));
  }
}

TEST(GoldenTest, ModelsOfTheOfficialCodesGiveTheirOutputs) {
  ETC_SHARED_DATA_OR_SKIP(const std::string golden, "golden");
  int64_t cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden)) {
    if (std::filesystem::exists(entry.path() / "etc_config.json")) {
      SCOPED_TRACE(entry.path().string());
      RunGoldenCase(entry.path().string());
      ++cases;
    }
  }
  EXPECT_GT(cases, 0) << golden << " has no folder with an etc_config.json";
}

}  // namespace
}  // namespace etc

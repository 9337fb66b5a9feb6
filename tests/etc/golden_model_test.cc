// Models of the official codes: each folder of `golden/etc_model` beside the
// checkout (ETC_GOLDEN_DIR names another one) with a configuration, a
// checkpoint in whichever format, inputs.safetensors and outputs.safetensors is
// a case. This project's outputs for the first three have to equal the fourth
// on all three attention backends: 2e-5 absolute wherever `long_real` and
// `global_real` (`attention_mask`, for BERT) are 1. With gradients.safetensors
// and loss_weights.safetensors, so have the gradients of the weighted sum of
// outputs, to 2e-5 of the largest of a parameter, or of all where a parameter's
// own are that much smaller: gradients that are 0 in exact arithmetic (a key's
// bias moves all scores of a softmax alike) are rounding errors here and there.
//
// The kernels take patterns, no tensors: theirs are built from what the masks
// and ids were made of, and have to say what these say. Where these are no
// pattern's, or what they were made of is not there, the case of the kernels is
// skipped. BERT's inputs are patterns on every backend.

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "attention/attention_inputs.h"
#include "attention/pattern_builders.h"
#include "etc/bert_input.h"
#include "etc/model.h"
#include "etc/weights/checkpoint.h"
#include "etc/weights/weight_plan.h"
#include "etc/weights/weights.h"
#include "tests/support/shared_data.h"
#include "tests/support/tensor_matchers.h"

namespace etc {
namespace {

constexpr double kTolerance = 2e-5;
// Rounding of gradients that are 0, relative to the largest gradient of all.
constexpr double kNoGradient = 1e-6;

std::string GoldenDirectory() {
  const char* from_environment = std::getenv("ETC_GOLDEN_DIR");
  return from_environment != nullptr ? from_environment
                                     : SharedDataPath("golden/etc_model");
}

std::vector<std::string> GoldenCases() {
  std::vector<std::string> cases;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(GoldenDirectory(), error)) {
    if (std::filesystem::exists(entry.path() / "inputs.safetensors")) {
      cases.push_back(entry.path().string());
    }
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

// Inputs or outputs of a case.
class CaseTensors {
 public:
  explicit CaseTensors(std::map<std::string, torch::Tensor> tensors)
      : tensors_(std::move(tensors)) {}
  explicit CaseTensors(const std::string& path) {
    const auto file = TensorReader::Open(path);
    EXPECT_TRUE(file.ok()) << file.status();
    if (!file.ok()) {
      return;
    }
    for (const std::string& name : file->Names()) {
      const auto tensor = file->Read(name);
      EXPECT_TRUE(tensor.ok()) << tensor.status();
      tensors_[name] = tensor.value_or(torch::Tensor());
    }
  }

  bool Has(const std::string& name) const { return tensors_.contains(name); }
  // Undefined if there is none.
  torch::Tensor Find(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? torch::Tensor() : found->second;
  }
  torch::Tensor Ids(const std::string& name) const {
    return Has(name) ? Find(name).to(torch::kInt64) : torch::Tensor();
  }
  torch::Tensor Mask(const std::string& name) const {
    return Has(name) ? Find(name).to(torch::kBool) : torch::Tensor();
  }
  // Row `b` of a [B, length] tensor; empty if there is none.
  template <typename T>
  std::vector<T> Row(const std::string& name, int64_t b) const {
    std::vector<T> row;
    if (Has(name)) {
      const torch::Tensor ids = Ids(name)[b].contiguous();
      const int64_t* const data = ids.data_ptr<int64_t>();
      row.assign(data, data + ids.numel());
    }
    return row;
  }
  const std::map<std::string, torch::Tensor>& all() const { return tensors_; }

 private:
  std::map<std::string, torch::Tensor> tensors_;
};

bool IsBert(const CaseTensors& inputs) {
  return !inputs.Has("global_token_ids");
}

ExplicitInputs ExplicitAttention(const CaseTensors& inputs) {
  return {.l2l_mask = inputs.Mask("l2l_att_mask"),
          .l2l_ids = inputs.Ids("l2l_relative_att_ids"),
          .l2g_mask = inputs.Mask("l2g_att_mask"),
          .l2g_ids = inputs.Ids("l2g_relative_att_ids"),
          .g2g_mask = inputs.Mask("g2g_att_mask"),
          .g2g_ids = inputs.Ids("g2g_relative_att_ids"),
          .g2l_mask = inputs.Mask("g2l_att_mask"),
          .g2l_ids = inputs.Ids("g2l_relative_att_ids")};
}

torch::Tensor TokenIds(const CaseTensors& inputs) {
  return inputs.Ids(inputs.Has("token_ids") ? "token_ids" : "input_ids");
}

// Reads tensors by the names of the official calls (doc/model.md 7.1, 10.1),
// with ETC's masks and ids as tensors.
EtcInput ReadInput(const CaseTensors& inputs) {
  if (IsBert(inputs)) {
    return BertInput(TokenIds(inputs), inputs.Ids("token_type_ids"),
                     inputs.Find("attention_mask"));
  }
  EtcInput input{
      .token_ids = inputs.Ids("token_ids"),
      .global_token_ids = inputs.Ids("global_token_ids"),
      .segment_ids = inputs.Ids("segment_ids"),
      .global_segment_ids = inputs.Ids("global_segment_ids"),
      .position_ids = inputs.Ids("position_ids"),
      .global_position_ids = inputs.Ids("global_position_ids"),
      .long_embedding_adder = inputs.Find("long_embedding_adder"),
      .global_embedding_adder = inputs.Find("global_embedding_adder")};
  if (!input.token_ids.defined()) {
    input.token_ids =
        input.global_token_ids.new_empty({input.global_token_ids.size(0), 0});
  }
  // Also without any: there are no relative ids then.
  input.attention = AttentionInputs(ExplicitAttention(inputs));
  return input;
}

// Returns the reason why no pattern describes the masks and ids of a case;
// empty if one may. Within a stream a pattern makes classes of tokens, so that
// masks are symmetric, and ids follow from distance.
std::string WhyNoPattern(const CaseTensors& inputs) {
  const bool from_paragraphs = inputs.Has("long_paragraph_breakpoints");
  for (const char* name :
       {from_paragraphs ? "global_paragraph_breakpoints" : "global_example_ids",
        from_paragraphs ? "long_paragraph_ids" : "long_example_ids"}) {
    const bool is_long = std::string(name).starts_with("long");
    const torch::Tensor tokens =
        inputs.Ids(is_long ? "token_ids" : "global_token_ids");
    if (tokens.defined() && tokens.size(1) > 0 && !inputs.Has(name)) {
      return std::string("it has no ") + name;
    }
  }
  const ExplicitInputs given = ExplicitAttention(inputs);
  if (given.g2g_mask.defined() &&
      !given.g2g_mask.equal(given.g2g_mask.transpose(1, 2))) {
    return "global tokens see others that do not see them";
  }
  if (given.l2l_mask.defined()) {
    const int64_t length = given.l2l_mask.size(1);
    const int64_t radius = given.l2l_mask.size(2) / 2;
    for (int64_t step = 1; step <= std::min(radius, length - 1); ++step) {
      if (!given.l2l_mask.select(2, radius + step)
               .narrow(1, 0, length - step)
               .equal(given.l2l_mask.select(2, radius - step)
                          .narrow(1, step, length - step))) {
        return "long tokens see others that do not see them";
      }
    }
  }
  if (given.l2l_ids.defined() && given.l2l_ids.numel() > 0 &&
      !given.l2l_ids.equal(
          given.l2l_ids.narrow(0, 0, 1).narrow(1, 0, 1).expand_as(
              given.l2l_ids))) {
    return "relative ids of long tokens do not follow from distance";
  }
  return "";
}

// The pattern of example `b`, from whatever its masks and ids were made of.
AttentionPattern ReadPattern(const CaseTensors& inputs, const EtcConfig& config,
                             int64_t b) {
  const PatternOptions options = {
      .local_radius = config.local_radius,
      .relative_pos_max_distance = inputs.Has("g2g_relative_att_ids")
                                       ? config.relative_pos_max_distance
                                       : 0,
      .hard_g2l = config.use_hard_g2l_mask,
      .hard_l2g = config.use_hard_l2g_mask};
  const auto ids = [&](const char* name) {
    return inputs.Row<int32_t>(name, b);
  };
  if (inputs.Has("long_paragraph_breakpoints")) {
    return PatternFromMultihop(
        {.long_paragraph_breakpoints = ids("long_paragraph_breakpoints"),
         .long_paragraph_ids = ids("long_paragraph_ids"),
         .long_sentence_ids = ids("sentence_ids"),
         .linked_ids = ids("linked_ids"),
         .global_paragraph_breakpoints = ids("global_paragraph_breakpoints"),
         .ignore_hard_g2l = inputs.Row<uint8_t>("ignore_hard_g2l", b),
         .ignore_hard_l2g = inputs.Row<uint8_t>("ignore_hard_l2g", b)},
        options, /*flat_sequence=*/inputs.Has("flat_sequence"));
  }
  std::vector<int32_t> longs = ids("long_example_ids");
  std::vector<int32_t> globals = ids("global_example_ids");
  if (!inputs.Has("g2g_att_mask")) {  // everything is visible
    std::fill(longs.begin(), longs.end(), 1);
    std::fill(globals.begin(), globals.end(), 1);
  }
  return PatternFromExampleIds(longs, globals, ids("sentence_ids"), options);
}

// `expected` undefined: everything allowed, or no ids.
void ExpectSameMask(const char* name, const torch::Tensor& actual,
                    const torch::Tensor& expected) {
  EXPECT_TRUE(expected.defined() ? torch::equal(actual, expected)
                                 : actual.all().item<bool>())
      << name << " of the pattern differs";
}
void ExpectSameIds(const char* name, const torch::Tensor& actual,
                   const torch::Tensor& expected) {
  ASSERT_EQ(actual.defined(), expected.defined()) << name;
  EXPECT_TRUE(!actual.defined() || torch::equal(actual, expected))
      << name << " of the pattern differs";
}

// `input` with patterns instead of tensors. Those say the same.
EtcInput WithPatterns(const CaseTensors& inputs, const EtcConfig& config,
                      EtcInput input) {
  if (!input.attention.has_tensors()) {
    return input;
  }
  std::vector<AttentionPattern> patterns;
  for (int64_t b = 0; b < input.global_token_ids.size(0); ++b) {
    patterns.push_back(ReadPattern(inputs, config, b));
  }
  const ExplicitInputs built = Materialize(patterns, input.token_ids.size(1),
                                           input.global_token_ids.size(1));
  const ExplicitInputs given = ExplicitAttention(inputs);
  ExpectSameMask("l2l mask", built.l2l_mask, given.l2l_mask);
  ExpectSameMask("l2g mask", built.l2g_mask, given.l2g_mask);
  ExpectSameMask("g2g mask", built.g2g_mask, given.g2g_mask);
  ExpectSameMask("g2l mask", built.g2l_mask, given.g2l_mask);
  ExpectSameIds("l2l ids", built.l2l_ids, given.l2l_ids);
  ExpectSameIds("l2g ids", built.l2g_ids, given.l2g_ids);
  ExpectSameIds("g2g ids", built.g2g_ids, given.g2g_ids);
  ExpectSameIds("g2l ids", built.g2l_ids, given.g2l_ids);
  input.attention = AttentionInputs(std::move(patterns));
  return input;
}

// Returns the residual attention with which a case was run, where its
// configuration has no field for that: the official one of ETC has none.
std::optional<std::string> StatedResidualAttention(const std::string& folder) {
  std::ifstream file(folder + "/README.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string contents = text.str();
  std::smatch match;
  if (std::regex_search(
          contents, match,
          std::regex("residual[_ ]attention\\s*=?\\s*\"(off|sum|mean)\""))) {
    return match[1].str();
  }
  return std::nullopt;
}

// The weights of a case. Inputs and outputs are safetensors too, but no
// weights.
std::string CheckpointOf(const std::string& folder) {
  for (const char* name : {"model.safetensors", "pytorch_model.bin",
                           "model.ckpt.index", "bert_model.ckpt.index"}) {
    if (std::filesystem::exists(folder + "/" + name)) {
      return folder + "/" + name;
    }
  }
  return folder;
}

// Selects the rows where a [B, length] mask is 1, or all.
torch::Tensor RealRows(const torch::Tensor& rows, const torch::Tensor& mask) {
  return mask.defined() ? rows.index({mask}) : rows.flatten(0, 1);
}

void ExpectOutputs(const CaseTensors& inputs, const CaseTensors& outputs,
                   const EtcOutput& actual) {
  const bool is_bert = IsBert(inputs);
  const torch::Tensor globals =
      outputs.Find(is_bert && outputs.Has("sequence_output") ? "sequence_output"
                                                             : "global_output");
  const torch::Tensor longs = outputs.Find("long_output");
  ASSERT_TRUE(globals.defined() || longs.defined()) << "no known output";
  if (globals.defined()) {
    ASSERT_EQ(actual.global_output.sizes(), globals.sizes());
    const torch::Tensor real =
        inputs.Mask(is_bert ? "attention_mask" : "global_real");
    EXPECT_TRUE(IsClose(RealRows(actual.global_output, real),
                        RealRows(globals, real), kTolerance));
  }
  if (longs.defined()) {
    ASSERT_EQ(actual.long_output.sizes(), longs.sizes());
    const torch::Tensor real = inputs.Mask("long_real");
    EXPECT_TRUE(IsClose(RealRows(actual.long_output, real),
                        RealRows(longs, real), kTolerance));
  }
}

// The gradients of a model under the names of the file its weights are from:
// one tensor there may be several parameters here.
std::map<std::string, torch::Tensor> GradientsBySource(const EtcModel& model,
                                                       const WeightPlan& plan) {
  std::map<std::string, torch::Tensor> gradients;
  const auto parameters = model->named_parameters();
  for (const WeightStep& step : plan.steps) {
    EXPECT_TRUE(step.rows.empty()) << step.target.name;
    const torch::Tensor& parameter = parameters[step.target.name];
    const torch::Tensor& own = parameter.grad();
    const torch::Tensor gradient =
        own.defined() ? own : torch::zeros_like(parameter);
    torch::Tensor& sum = gradients[step.source];
    const torch::Tensor as_there = step.transpose ? gradient.t() : gradient;
    sum = sum.defined() ? sum + as_there : as_there;
  }
  return gradients;
}

void ExpectGradients(const std::map<std::string, torch::Tensor>& actual,
                     const CaseTensors& expected) {
  double largest_of_all = 0.0;
  for (const auto& [name, gradient] : expected.all()) {
    largest_of_all =
        std::max(largest_of_all, gradient.abs().max().item<double>());
  }
  ASSERT_GT(largest_of_all, 0.0);
  for (const auto& [name, gradient] : expected.all()) {
    SCOPED_TRACE(name);
    const auto found = actual.find(name);
    ASSERT_NE(found, actual.end()) << "no parameter comes from it";
    const double largest = gradient.abs().max().item<double>();
    EXPECT_TRUE(
        IsClose(found->second, gradient,
                std::max(kTolerance * largest, kNoGradient * largest_of_all)));
  }
}

class GoldenModelTest : public testing::TestWithParam<
                            std::tuple<std::string, AttentionImplementation>> {
};

TEST_P(GoldenModelTest, GivesTheOfficialOutputsAndGradients) {
  const auto& [folder, implementation] = GetParam();
  const auto file = OpenWeights(CheckpointOf(folder));
  ASSERT_TRUE(file.ok()) << file.status();
  EtcConfig config = file->source.config;
  if (const auto stated = StatedResidualAttention(folder);
      stated.has_value() && config.residual_attention == "off") {
    config.residual_attention = *stated;
  }
  const auto plan = PlanWeights(file->source, config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->NumFresh(), 0);
  EtcModel model(config);
  model->eval();
  const absl::Status loaded = CopyTensors(
      TensorReader(file->tensors), plan->Copies(), ModuleTensors(*model));
  ASSERT_TRUE(loaded.ok()) << loaded;
  model->set_attention_implementation(implementation);

  const CaseTensors inputs(folder + "/inputs.safetensors");
  EtcInput input = ReadInput(inputs);
  if (implementation == AttentionImplementation::kKernel) {
    if (const std::string reason = WhyNoPattern(inputs);
        input.attention.has_tensors() && !reason.empty()) {
      GTEST_SKIP() << "no pattern for the kernels: " << reason;
    }
    input = WithPatterns(inputs, config, std::move(input));
  }
  const EtcOutput actual = model->forward(input);
  {
    const torch::NoGradGuard no_grad;
    ExpectOutputs(inputs, CaseTensors(folder + "/outputs.safetensors"), actual);
  }
  if (!std::filesystem::exists(folder + "/gradients.safetensors")) {
    return;
  }
  const CaseTensors weights(folder + "/loss_weights.safetensors");
  torch::Tensor loss = torch::zeros({}, torch::kFloat64);
  for (const auto& [name, output] :
       {std::pair("long", actual.long_output),
        std::pair("global", actual.global_output),
        std::pair("sequence", actual.global_output)}) {
    if (weights.Has(name)) {
      loss = loss + (output * weights.Find(name)).sum();
    }
  }
  loss.backward();
  const torch::NoGradGuard no_grad;
  ExpectGradients(GradientsBySource(model, *plan),
                  CaseTensors(folder + "/gradients.safetensors"));
}

std::string CaseName(
    const testing::TestParamInfo<GoldenModelTest::ParamType>& info) {
  const auto& [folder, implementation] = info.param;
  std::string name = std::filesystem::path(folder).filename().string();
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  switch (implementation) {
    case AttentionImplementation::kReference:
      return name + "_reference";
    case AttentionImplementation::kBlocked:
      return name + "_blocked";
    default:
      return name + "_kernel";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, GoldenModelTest,
    testing::Combine(testing::ValuesIn(GoldenCases()),
                     testing::Values(AttentionImplementation::kReference,
                                     AttentionImplementation::kBlocked,
                                     AttentionImplementation::kKernel)),
    CaseName);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenModelTest);

TEST(GoldenPatternTest, IsNotAskedOfMasksThatNoPatternSays) {
  const torch::Tensor ids = torch::zeros({1, 4}, torch::kInt64);
  std::map<std::string, torch::Tensor> tensors = {
      {"token_ids", ids},
      {"global_token_ids", ids},
      {"g2g_att_mask", torch::ones({1, 4, 4}, torch::kInt64)},
      {"l2l_att_mask", torch::ones({1, 4, 3}, torch::kInt64)}};
  const auto reason = [&] { return WhyNoPattern(CaseTensors(tensors)); };
  EXPECT_EQ(reason(), "it has no global_example_ids");
  tensors["global_example_ids"] = tensors["long_example_ids"] = ids;
  EXPECT_EQ(reason(), "");
  tensors["g2g_att_mask"] = torch::ones({1, 4, 4}, torch::kInt64).tril();
  EXPECT_EQ(reason(), "global tokens see others that do not see them");
  tensors.erase("g2g_att_mask");
  tensors["l2l_att_mask"] = torch::tensor({{{0, 1, 0}, {1, 1, 0}}});
  EXPECT_EQ(reason(), "long tokens see others that do not see them");
  tensors["l2l_att_mask"] = torch::tensor({{{0, 1, 1}, {1, 1, 0}}});
  EXPECT_EQ(reason(), "");
  tensors["l2l_relative_att_ids"] = torch::tensor({{{2, 0, 1}, {2, 0, 2}}});
  EXPECT_EQ(reason(),
            "relative ids of long tokens do not follow from distance");
}

TEST(GoldenModelsTest, AreThereWhereTheirFolderIs) {
  if (!std::filesystem::exists(GoldenDirectory())) {
    GTEST_SKIP() << "needs " << GoldenDirectory()
                 << " (see ETC_GOLDEN_DIR in CONTRIBUTING.md)";
  }
  EXPECT_GT(GoldenCases().size(), 0u)
      << GoldenDirectory() << " has no folder with an inputs.safetensors";
}

}  // namespace
}  // namespace etc

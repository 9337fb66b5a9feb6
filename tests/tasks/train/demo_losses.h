#ifndef ETC_TESTS_TASKS_TRAIN_DEMO_LOSSES_H_
#define ETC_TESTS_TASKS_TRAIN_DEMO_LOSSES_H_

// Short runs of the tasks' demos, which tests compare between devices.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tasks/pretrain/corpus/corpus_tokenizer.h"
#include "tasks/pretrain/corpus/tokenize_corpus.h"
#include "tasks/runs/checkpoint_run.h"
#include "tasks/text/load_tokenizer.h"
#include "tests/support/shipped_config.h"
#include "tests/support/temporary_directory.h"
#include "tests/tasks/train/toy_run.h"

namespace etc {

// A demo of a task, changed by `overrides`.
struct DemoCase {
  const char* task;
  const char* train;
  std::vector<std::string> overrides;
  // True if the head has dropout that no field turns off: other devices draw
  // other numbers.
  bool draws = false;
};

// Each task's head, and each part of the encoder that configurations can
// choose.
inline std::vector<DemoCase> DemoCases() {
  return {{"wikihop", "train.json", {"residual_attention=sum"}},
          {"wikihop",
           "train.json",
           {"residual_attention=mean", "model.use_pre_activation_order=true",
            "model.embedding_size=24", "wikihop.label_smoothing=0.1",
            "optimizer.type=lamb"}},
          {"hotpotqa",
           "train.json",
           {"residual_attention=sum", "model.hidden_act=tanh",
            "model.max_absolute_position_embeddings=1024"}},
          {"hotpotqa",
           "train.json",
           {"hotpotqa.answer_encoding=bio", "optimizer.type=adamw"}},
          {"openkp", "train.jsonl", {"residual_attention=sum"}},
          {"nq", "train.jsonl.gz", {"model.share_qkv_projections=false"}},
          {"classify", "train.csv.gz", {}},
          {"glue", "train.tsv", {}, /*draws=*/true},
          {"squad", "train.json", {}},
          {"tokens", "train.conll.gz", {}},
          {"pretrain",
           "corpus.txt.gz",
           {"residual_attention=sum", "model.initializer_range=0.05"}},
          {"pretrain",
           "corpus.txt.gz",
           {"model={\"preset\":\"bert_small\",\"vocab_size\":75,"
            "\"hidden_size\":32,\"num_hidden_layers\":2,"
            "\"num_attention_heads\":2,\"intermediate_size\":48,"
            "\"hidden_act\":\"gelu_erf\",\"hidden_dropout_prob\":0,"
            "\"attention_probs_dropout_prob\":0}",
            "data={\"max_global_length\":64}",
            "pretrain={\"objective\":\"mlm_nsp\"}"}}};
}

// A token store of the sample of pre-training, in words of WikiHop's.
inline std::vector<std::string> StoreOfSample(const std::string& sample,
                                              const std::string& store) {
  const std::string vocabulary = SourcePath("tasks/wikihop/sample/vocab.txt");
  const TokenizerConfig tokenizer = {.vocabulary = vocabulary};
  const auto corpus =
      MakeCorpusTokenizer(tokenizer, *LoadTokenizer(vocabulary));
  EXPECT_TRUE(corpus.ok()) << corpus.status();
  const auto written = TokenizeCorpus(
      *corpus,
      {.corpus = {.files = {SourcePath("tasks/pretrain/sample/" + sample)},
                  .format = CorpusFormat::kBert}},
      store);
  EXPECT_TRUE(written.ok()) << written.status();
  return {absl::StrCat("data.train=[\"", store, "\"]"),
          absl::StrCat("tokenizer.vocabulary=", vocabulary)};
}

// Loss, gradient norm and update norm of each of three updates of a demo on
// `device`, without dropout but for DemoCase::draws.
inline std::vector<double> LossesOn(const std::string& device,
                                    const DemoCase& demo,
                                    const std::string& precision = "fp32") {
  std::vector<std::string> overrides = {"train.steps=3",
                                        "train.batch_size=3",
                                        "train.micro_batch_size=2",
                                        "train.device=" + device,
                                        "train.precision=" + precision,
                                        "model.hidden_dropout_prob=0",
                                        "model.attention_probs_dropout_prob=0"};
  overrides.insert(overrides.end(), demo.overrides.begin(),
                   demo.overrides.end());
  const TemporaryDirectory directory;
  if (demo.task == std::string("pretrain")) {
    for (std::string& line :
         StoreOfSample(demo.train, directory.File("corpus.tokens"))) {
      overrides.push_back(std::move(line));
    }
  }
  RunDemo(demo.task, demo.train, overrides, directory.path());
  std::vector<double> losses;
  for (const nlohmann::json& line : MetricsLines(directory.File("seed-1"))) {
    if (line.contains("evaluation")) {
      continue;
    }
    losses.push_back(line["loss"].get<double>());
    losses.push_back(line["gradient_norm"].get<double>());
    losses.push_back(line["update_norm"].get<double>());
  }
  return losses;
}

// The predictions of the last checkpoint of a WikiHop run in `directory` for
// the sample's records, evaluated on `device`. Warnings fail the test.
inline std::string PredictionsOn(const std::string& device,
                                 const std::string& directory,
                                 FakeReporter* reporter) {
  auto result = RunCheckpoint(
      {.checkpoint = absl::StrCat(directory, "/seed-1/checkpoints/last"),
       .data = {SourcePath("tasks/wikihop/sample/dev.json")},
       .device = device,
       .context = {.reporter = reporter}});
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(reporter->warnings, testing::IsEmpty());
  return result.ok() ? result->evaluation.predictions->FileContents() : "";
}

// Expects losses and norms of a run in bfloat16 to be about those in float32,
// or of one that draws other numbers (glue: losses by 0.2 %, norms by 4 %).
// Numbers of 8 bits, losses and norms of 1 to 20; differences show that they
// are rounded. Gradients of three examples are small differences of large sums:
// on the fused kernels of the CPU too, bf16 moves their norm by 7 % in a demo.
inline void ExpectRounded(const std::vector<double>& rounded,
                          const std::vector<double>& expected) {
  EXPECT_NE(rounded, expected);
  ASSERT_EQ(rounded.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const bool is_gradient_norm = i % 3 == 1;
    EXPECT_NEAR(rounded[i], expected[i],
                (is_gradient_norm ? 0.15 : 0.05) * std::abs(expected[i]))
        << "update " << i / 3 << ", number " << i % 3;
  }
}

}  // namespace etc

#endif  // ETC_TESTS_TASKS_TRAIN_DEMO_LOSSES_H_

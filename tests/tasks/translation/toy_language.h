#ifndef ETC_TESTS_TASKS_TRANSLATION_TOY_LANGUAGE_H_
#define ETC_TESTS_TASKS_TRANSLATION_TOY_LANGUAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "nlohmann/json.hpp"
#include "tests/support/temporary_directory.h"

namespace etc {

// A language of letters whose translation is the same letters backwards, in
// upper case: its files and a configuration of a tiny model.
class ToyLanguage {
 public:
  // Writes train.src, train.tgt, dev.src, dev.tgt and dict.txt.
  explicit ToyLanguage(TemporaryDirectory* directory) : directory_(directory) {
    std::string dictionary;
    for (char letter = 'a'; letter <= 'h'; ++letter) {
      absl::StrAppend(&dictionary, std::string(1, letter), " 10\n",
                      std::string(1, Upper(letter)), " 10\n");
    }
    directory->Write("dict.txt", dictionary);
    Write("train", 60);
    Write("dev", 7);
  }

  nlohmann::json Config() const {
    return {
        {"task", "translation"},
        {"model",
         {{"hidden_size", 16},
          {"intermediate_size", 32},
          {"num_attention_heads", 2},
          {"num_encoder_layers", 2},
          {"num_decoder_layers", 2},
          {"activation_dropout_prob", 0.1},
          {"attention_probs_dropout_prob", 0.1},
          {"encoder_sublayer", "admin"},
          {"decoder_sublayer", "admin"}}},
        {"residual_attention", "mean"},
        {"tokenizer",
         {{"type", "dictionary"},
          {"vocabulary", directory_->File("dict.txt")}}},
        {"data", {{"train", Files("train")}, {"dev", Files("dev")}}},
        {"translation", {{"max_tokens", 64}, {"admin_omegas", "first_batch"}}},
        {"optimizer",
         {{"type", "radam"},
          {"beta2", 0.98},
          {"weight_decay", 1e-4},
          {"clip_norm", 0}}},
        {"schedule",
         {{"type", "inverse_sqrt"},
          {"warmup_steps", 4},
          {"initial_learning_rate", 1e-7}}},
        {"train",
         {{"learning_rate", 0.01},
          {"batch_size", 2},
          {"epochs", 2},
          {"keep_last", 3},
          {"evaluation_batch_size", 3},
          {"threads", 1}}},
        {"output", directory_->File("run")}};
  }
  std::vector<std::string> Files(const std::string& part) const {
    return {directory_->File(part + ".src"), directory_->File(part + ".tgt")};
  }

 private:
  static char Upper(char letter) {
    return static_cast<char>(letter - 'a' + 'A');
  }
  void Write(const std::string& part, uint64_t count) {
    std::string sources;
    std::string targets;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t length = 1 + CombineSeeds({part.size(), i}) % 6;
      std::string target;
      for (uint64_t word = 0; word < length; ++word) {
        const char letter =
            static_cast<char>('a' + CombineSeeds({part.size(), i, word}) % 8);
        absl::StrAppend(&sources, std::string(1, letter), " ");
        target = absl::StrCat(std::string(1, Upper(letter)), " ", target);
      }
      sources += "\n";
      absl::StrAppend(&targets, target, "\n");
    }
    directory_->Write(part + ".src", sources);
    directory_->Write(part + ".tgt", targets);
  }

  TemporaryDirectory* const directory_;
};

}  // namespace etc

#endif  // ETC_TESTS_TASKS_TRANSLATION_TOY_LANGUAGE_H_

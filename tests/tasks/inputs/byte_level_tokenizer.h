#ifndef ETC_TESTS_TASKS_INPUTS_BYTE_LEVEL_TOKENIZER_H_
#define ETC_TESTS_TASKS_INPUTS_BYTE_LEVEL_TOKENIZER_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "etc/weights/roberta_vocabulary.h"
#include "nlohmann/json.hpp"
#include "tasks/text/huggingface/huggingface_tokenizer.h"

namespace etc {

// Makes a tokenizer of RoBERTa's kind from a tokenizer.json: the bytes have the
// ids 0 to 255, and `words`, with "Ġ" for a blank before them, those from 256
// on.
inline std::unique_ptr<Tokenizer> ByteLevelTokenizer(
    const std::vector<std::string>& words, bool add_prefix_space = false) {
  nlohmann::json vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[ByteCharacter(static_cast<uint8_t>(byte))] = byte;
  }
  for (const std::string& word : words) {
    vocabulary[word] = vocabulary.size();
  }
  const nlohmann::json file = {
      {"pre_tokenizer",
       {{"type", "ByteLevel"}, {"add_prefix_space", add_prefix_space}}},
      {"model",
       {{"type", "BPE"},
        {"ignore_merges", true},
        {"vocab", vocabulary},
        {"merges", nlohmann::json::array()}}}};
  auto tokenizer = ParseHuggingFaceTokenizer(file.dump(), "tokenizer.json");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

}  // namespace etc

#endif  // ETC_TESTS_TASKS_INPUTS_BYTE_LEVEL_TOKENIZER_H_

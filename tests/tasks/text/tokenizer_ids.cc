// Pieces of texts, for comparison with other tokenizers
// (tests/hugging_face_tokenizers.py, tests/random_pairs.py):
//
//   tokenizer_ids PATH < TEXTS
//
// Standard input has a JSON string a line; for each one is written
// [[id, begin, end], ...], with bytes of its UTF-8. For a line with a list of
// two strings the ids of both in one input are written, special pieces among
// them, as WriteTexts has them. PATH is a directory or a
// file as LoadTokenizer takes it, or a tokenizer.json behind "json:", which is
// read as such even if it is BERT's. An error is written to standard error.

#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "tasks/inputs/text_input.h"
#include "tasks/text/huggingface/huggingface_tokenizer.h"
#include "tasks/text/load_tokenizer.h"

namespace etc {
namespace {

absl::StatusOr<std::shared_ptr<const Tokenizer>> Load(const std::string& path) {
  constexpr absl::string_view kJson = "json:";
  if (!absl::StartsWith(path, kJson)) {
    return LoadTokenizer(path);
  }
  auto loaded = LoadHuggingFaceTokenizer(path.substr(kJson.size()));
  if (!loaded.ok()) {
    return loaded.status();
  }
  return std::shared_ptr<const Tokenizer>(*std::move(loaded));
}

// "[id,begin,end],..." of a text.
std::string Ranges(const Tokenizer& tokenizer, const std::string& text) {
  std::string out;
  for (const Token& token : tokenizer.Encode(text)) {
    absl::StrAppend(&out, out.empty() ? "" : ",", "[", token.id, ",",
                    token.begin, ",", token.end, "]");
  }
  return out;
}

// "id,..." of an input with two texts.
std::string PairIds(const Tokenizer& tokenizer, const TextMarks& marks,
                    const nlohmann::json& texts) {
  const auto pieces = [&](const nlohmann::json& text) {
    TextPieces result;
    for (const Token& token : tokenizer.Encode(text.get<std::string>())) {
      result.ids.push_back(token.id);
    }
    return result;
  };
  Example example;
  WriteTexts(pieces(texts.at(0)), pieces(texts.at(1)), marks,
             {.has_long_tokens = false}, &example);
  return absl::StrJoin(example.global_token_ids, ",");
}

int Run(const std::string& path) {
  const auto tokenizer = Load(path);
  if (!tokenizer.ok()) {
    std::cerr << tokenizer.status() << "\n";
    return 1;
  }
  TextMarks marks;
  const absl::Status marked = FindTextMarks(**tokenizer, &marks);
  for (std::string line; std::getline(std::cin, line);) {
    const auto text = nlohmann::json::parse(line);
    if (text.is_array() && !marked.ok()) {
      std::cerr << marked << "\n";
      return 1;
    }
    std::cout << "["
              << (text.is_array()
                      ? PairIds(**tokenizer, marks, text)
                      : Ranges(**tokenizer, text.get<std::string>()))
              << "]\n";
  }
  return 0;
}

}  // namespace
}  // namespace etc

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: tokenizer_ids PATH < TEXTS\n";
    return 2;
  }
  try {
    return etc::Run(argv[1]);
  } catch (const std::exception& exception) {
    std::cerr << exception.what() << "\n";
    return 1;
  }
}

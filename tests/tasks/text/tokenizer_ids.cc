// Pieces of texts, for comparison with other tokenizers
// (tests/hugging_face_tokenizers.py):
//
//   tokenizer_ids PATH < TEXTS
//
// Standard input has a JSON string a line; for each one is written
// [[id, begin, end], ...], with bytes of its UTF-8. PATH is a directory or a
// file as LoadTokenizer takes it, or a tokenizer.json behind "json:", which is
// read as such even if it is BERT's. An error is written to standard error.

#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
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

int Run(const std::string& path) {
  const auto tokenizer = Load(path);
  if (!tokenizer.ok()) {
    std::cerr << tokenizer.status() << "\n";
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const auto text = nlohmann::json::parse(line).get<std::string>();
    std::string out(1, '[');
    for (const Token& token : (*tokenizer)->Encode(text)) {
      absl::StrAppend(&out, out.size() > 1 ? "," : "", "[", token.id, ",",
                      token.begin, ",", token.end, "]");
    }
    std::cout << out << "]\n";
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

#ifndef ETC_TESTS_TASKS_NQ_RENAMED_PIECES_H_
#define ETC_TESTS_TASKS_NQ_RENAMED_PIECES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// A tokenizer some of whose pieces have other names.
class RenamedPieces : public Tokenizer {
 public:
  RenamedPieces(std::shared_ptr<const Tokenizer> tokenizer,
                std::map<std::string, std::string> names)
      : tokenizer_(std::move(tokenizer)), names_(std::move(names)) {}

  std::vector<Token> Encode(absl::string_view text) const override {
    return tokenizer_->Encode(text);
  }
  int64_t vocab_size() const override { return tokenizer_->vocab_size(); }
  std::string Piece(int32_t id) const override { return tokenizer_->Piece(id); }
  int32_t Id(absl::string_view piece) const override {
    const auto found = names_.find(std::string(piece));
    return tokenizer_->Id(found == names_.end() ? piece : found->second);
  }
  bool lower_cases() const override { return tokenizer_->lower_cases(); }

 private:
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const std::map<std::string, std::string> names_;
};

// ALBERT's model with the names that ETC's has for special tokens.
inline std::shared_ptr<const Tokenizer> WithEtcNames(
    std::shared_ptr<const Tokenizer> albert) {
  return std::make_shared<RenamedPieces>(
      std::move(albert),
      std::map<std::string, std::string>{{"<unused_63>", "[CLS]"},
                                         {"<unused_2>", "[SEP]"},
                                         {"<unused_35>", "[MASK]"},
                                         {"<unused_36>", "<pad>"}});
}

}  // namespace etc

#endif  // ETC_TESTS_TASKS_NQ_RENAMED_PIECES_H_

#ifndef ETC_TESTS_TASKS_PRETRAIN_LISTED_DOCUMENTS_H_
#define ETC_TESTS_TASKS_PRETRAIN_LISTED_DOCUMENTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tasks/pretrain/examples/document_set.h"

namespace etc {

// Tokens as words: each word that was not there before has the next id. "##ing"
// continues a word.
class WordList {
 public:
  explicit WordList(const std::vector<std::string>& first_words = {}) {
    for (const std::string& word : first_words) {
      Id(word);
    }
  }

  int32_t Id(const std::string& word) {
    const auto [found, added] =
        ids_.emplace(word, static_cast<int32_t>(words_.size()));
    if (added) {
      words_.push_back(word);
    }
    return found->second;
  }
  const std::string& Word(int32_t id) const {
    return words_.at(static_cast<size_t>(id));
  }

  Pieces ToPieces(const std::vector<std::string>& words) {
    Pieces pieces;
    for (const std::string& word : words) {
      pieces.Add(Id(word), absl::string_view(word).substr(0, 2) == "##");
    }
    return pieces;
  }
  std::vector<std::string> ToWords(const std::vector<int32_t>& ids) const {
    std::vector<std::string> words;
    for (const int32_t id : ids) {
      words.push_back(Word(id));
    }
    return words;
  }

 private:
  std::map<std::string, int32_t> ids_;
  std::vector<std::string> words_;
};

// Documents in memory: [document][sentence].
class ListedDocuments : public DocumentSet {
 public:
  explicit ListedDocuments(std::vector<std::vector<Pieces>> documents)
      : documents_(std::move(documents)) {}

  int64_t size() const override {
    return static_cast<int64_t>(documents_.size());
  }
  int64_t num_sentences(int64_t document) const override {
    return static_cast<int64_t>(
        documents_.at(static_cast<size_t>(document)).size());
  }
  absl::Status AppendSentence(int64_t document, int64_t sentence,
                              Pieces* pieces) const override {
    const Pieces& added = documents_.at(static_cast<size_t>(document))
                              .at(static_cast<size_t>(sentence));
    for (size_t i = 0; i < added.ids.size(); ++i) {
      pieces->Add(added.ids[i], added.continues_word[i] != 0);
    }
    return absl::OkStatus();
  }

 private:
  std::vector<std::vector<Pieces>> documents_;
};

}  // namespace etc

#endif  // ETC_TESTS_TASKS_PRETRAIN_LISTED_DOCUMENTS_H_

#ifndef ETC_TESTS_TASKS_PRETRAIN_RANDOM_DOCUMENTS_H_
#define ETC_TESTS_TASKS_PRETRAIN_RANDOM_DOCUMENTS_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tasks/data/example_source.h"
#include "tasks/pretrain/examples/corpus_part.h"
#include "tasks/pretrain/examples/draws.h"
#include "tests/tasks/pretrain/toy_store.h"

namespace etc {

inline constexpr int32_t kToyVocabSize = 1000;

struct RandomDocumentsOptions {
  int64_t num_documents = 60;
  int64_t max_sentences = 30;
  int64_t max_tokens = 12;
  uint64_t seed = 1;
};

// Documents of 1 to `max_sentences` sentences of 1 to `max_tokens` ids from 10
// on.
inline std::vector<ToyDocument> RandomDocuments(
    const RandomDocumentsOptions& options = {}) {
  KeyedDraws draws({options.seed});
  std::vector<ToyDocument> documents(
      static_cast<size_t>(options.num_documents));
  for (ToyDocument& document : documents) {
    document.resize(
        static_cast<size_t>(draws.Integer(1, options.max_sentences)));
    for (ToySentence& sentence : document) {
      for (int64_t t = draws.Integer(1, options.max_tokens); t > 0; --t) {
        sentence.push_back(
            static_cast<int32_t>(draws.Integer(10, kToyVocabSize - 1)));
      }
    }
  }
  return documents;
}

// A store of the documents at `path`.
inline std::shared_ptr<const TokenStore> MakeToyStore(
    const std::string& path, const std::vector<ToyDocument>& documents) {
  WriteToyStore(path, kToyVocabSize, documents);
  auto store = TokenStore::Open(path);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? std::shared_ptr<const TokenStore>(*std::move(store))
                    : nullptr;
}

// The documents of a part, which there have to be.
inline std::vector<SentenceRange> DocumentsOf(
    const TokenStore& store, const CorpusPartOptions& options) {
  CorpusCounts counts;
  auto documents = SelectDocuments(store, options, &counts);
  EXPECT_TRUE(documents.ok()) << documents.status();
  return documents.ok() ? *std::move(documents) : std::vector<SentenceRange>();
}

// The examples of a record, which have to be right.
inline Examples MakeExamples(const ExampleSource& source,
                             RecordRequest request) {
  auto examples = source.Make(request);
  EXPECT_TRUE(examples.ok()) << examples.status();
  return examples.ok() ? *std::move(examples) : Examples();
}

}  // namespace etc

#endif  // ETC_TESTS_TASKS_PRETRAIN_RANDOM_DOCUMENTS_H_

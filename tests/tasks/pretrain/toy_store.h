#ifndef ETC_TESTS_TASKS_PRETRAIN_TOY_STORE_H_
#define ETC_TESTS_TASKS_PRETRAIN_TOY_STORE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tasks/pretrain/corpus/text_hash.h"
#include "tasks/pretrain/corpus/token_store.h"
#include "tasks/pretrain/corpus/token_store_writer.h"

namespace etc {

// Documents of sentences of ids; an odd id continues a word.
using ToySentence = std::vector<int32_t>;
using ToyDocument = std::vector<ToySentence>;

inline TokenStoreSettings ToySettings(int64_t vocab_size) {
  return {.vocab_size = vocab_size,
          .vocabulary_sha256 = std::string(64, 'a'),
          .sentences = "lines",
          .unknown_id = 0,
          .cls_id = 1,
          .sep_id = 2,
          .mask_id = 3};
}

inline uint64_t ToyTextHash(const ToySentence& ids) {
  return HashText({reinterpret_cast<const char*>(ids.data()),
                   ids.size() * sizeof(int32_t)});
}

// Adds the documents, as a test says, without Finish().
inline void AddToyDocuments(const std::vector<ToyDocument>& documents,
                            TokenStoreWriter* writer) {
  for (const ToyDocument& document : documents) {
    for (const ToySentence& ids : document) {
      std::vector<uint8_t> continuations;
      for (const int32_t id : ids) {
        continuations.push_back(static_cast<uint8_t>(id % 2));
      }
      const absl::Status added =
          writer->AddSentence({.ids = ids,
                               .continuations = continuations,
                               .text_hash = ToyTextHash(ids)});
      ASSERT_TRUE(added.ok()) << added;
    }
    const absl::Status ended = writer->EndDocument();
    ASSERT_TRUE(ended.ok()) << ended;
  }
}

inline void WriteToyStore(const std::string& path,
                          const TokenStoreSettings& settings,
                          const std::vector<ToyDocument>& documents) {
  auto writer = TokenStoreWriter::Create(path, settings);
  ASSERT_TRUE(writer.ok()) << writer.status();
  AddToyDocuments(documents, writer->get());
  const absl::Status finished = (*writer)->Finish();
  ASSERT_TRUE(finished.ok()) << finished;
}

inline void WriteToyStore(const std::string& path, int64_t vocab_size,
                          const std::vector<ToyDocument>& documents) {
  WriteToyStore(path, ToySettings(vocab_size), documents);
}

// Reads the documents of a store.
inline std::vector<ToyDocument> ReadToyStore(const TokenStore& store) {
  std::vector<ToyDocument> documents;
  for (int64_t d = 0; d < store.num_documents(); ++d) {
    ToyDocument document;
    for (int64_t s = store.first_sentence(d); s < store.first_sentence(d + 1);
         ++s) {
      ToySentence ids;
      for (int64_t t = store.first_token(s); t < store.first_token(s + 1);
           ++t) {
        ids.push_back(store.token(t));
      }
      document.push_back(ids);
    }
    documents.push_back(document);
  }
  return documents;
}

}  // namespace etc

#endif  // ETC_TESTS_TASKS_PRETRAIN_TOY_STORE_H_

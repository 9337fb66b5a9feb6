#ifndef ETC_TASKS_PRETRAIN_CORPUS_TOKEN_STORE_WRITER_H_
#define ETC_TASKS_PRETRAIN_CORPUS_TOKEN_STORE_WRITER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tasks/pretrain/corpus/token_store_format.h"

namespace etc {

// The tokens of a sentence, all of the same number.
struct TokenizedSentence {
  absl::Span<const int32_t> ids;
  // 1 for a token that continues a word, else 0.
  absl::Span<const uint8_t> continuations;
  // HashText of its text.
  uint64_t text_hash = 0;
};

// Writes a token store, sentence by sentence. Its memory is four buffers, 2 MiB
// in all, 1 MiB more in Finish, and 4 bytes for each block of 64 KiB: tokens go
// to a temporary file beside the store, flags and index to three others, which
// Finish puts behind them: some 0.3 bytes a token, which the disk needs twice.
//
// The store appears whole, by a renaming, when Finish has put all on disk;
// until then, and after an error, the name is free or has what it had before.
// The temporary files are removed by the destructor; those that SIGKILL leaves
// have a TemporaryName (RemoveAbandonedTemporaries in base/directory.h).
class TokenStoreWriter {
 public:
  // Errors of the system, with the path in the message.
  static absl::StatusOr<std::unique_ptr<TokenStoreWriter>> Create(
      const std::string& path, const TokenStoreSettings& settings);
  ~TokenStoreWriter();
  TokenStoreWriter(const TokenStoreWriter&) = delete;
  TokenStoreWriter& operator=(const TokenStoreWriter&) = delete;

  // One more sentence of the document that is open. One without tokens is not
  // in the store, but in the hash of its document.
  //   kResourceExhausted  64 sentences in a row have 2^32 tokens
  // and the system's errors. Throws std::out_of_range for an id that the
  // vocabulary does not have.
  absl::Status AddSentence(const TokenizedSentence& sentence);
  // Ends the document, which is not in the store if it has no tokens.
  absl::Status EndDocument();

  // Ends the document and makes the store. Nothing may be added afterwards.
  absl::Status Finish();

  // Counts so far.
  int64_t num_documents() const {
    return static_cast<int64_t>(header_.num_documents);
  }
  int64_t num_sentences() const {
    return static_cast<int64_t>(header_.num_sentences);
  }
  int64_t num_tokens() const {
    return static_cast<int64_t>(header_.num_tokens);
  }

 private:
  class Stream;

  TokenStoreWriter(const std::string& path, const TokenStoreSettings& settings);

  Stream& StreamOf(TokenStoreSection section) {
    return *streams_[static_cast<size_t>(section)];
  }
  absl::Status AddFirstToken();
  absl::Status AddTokens(absl::Span<const int32_t> ids);
  absl::Status AddFlags(absl::Span<const uint8_t> continuations);

  TokenStoreHeader header_;
  // Streams by section. That of the tokens becomes the store.
  std::array<std::unique_ptr<Stream>, kTokenStoreSections> streams_;
  uint64_t group_first_token_ = 0;
  // Bits of the byte that the next token belongs to.
  uint8_t flags_ = 0;
  // Sentences before the document that is open, and the hash of its own.
  uint64_t document_first_sentence_ = 0;
  uint64_t document_hash_ = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_CORPUS_TOKEN_STORE_WRITER_H_

#ifndef ETC_TASKS_PRETRAIN_CORPUS_TOKEN_STORE_H_
#define ETC_TASKS_PRETRAIN_CORPUS_TOKEN_STORE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mapped_file.h"
#include "tasks/pretrain/corpus/token_store_format.h"

namespace etc {

// A corpus as `realetc tokenize` writes it (TokenStoreWriter): documents of
// sentences of tokens, none of them empty. The file is mapped into memory, so
// that a corpus may be larger than that; pages that were read stay in the
// system's cache. Read-only and thread-safe.
//
// Opening checks everything that is cheap: that it is a token store of this
// version and byte order, its size, and all of the index (checksum, and that
// documents and sentences are consecutive), 4 bytes a sentence and 16 a
// document. Afterwards no index of this class leads out of the file. Tokens and
// flags have a checksum for each block of 64 KiB: in a small store all are
// checked at once, in a large one each when CheckTokens first reaches it, so
// that nothing is read twice. A file that is written over in its place is found
// by CheckUnchanged; one that is replaced by a renaming, as TokenStoreWriter
// does, stays as it was.
class TokenStore {
 public:
  // Bytes of tokens and flags that are read and checked at once.
  static constexpr uint64_t kCheckedAtOnce = uint64_t{256} << 20;

  //   kInvalidArgument     no token store, or written with the other byte order
  //   kFailedPrecondition  of another version
  //   kDataLoss            cut off (the message has the bytes that it should
  //                        have, and those that it has), too long, or damaged
  // and the system's errors.
  static absl::StatusOr<std::unique_ptr<const TokenStore>> Open(
      const std::string& path, uint64_t checked_at_once = kCheckedAtOnce);

  const std::string& path() const { return file_.path(); }
  const TokenStoreSettings& settings() const { return header_.settings; }

  int64_t num_documents() const {
    return static_cast<int64_t>(header_.num_documents);
  }
  int64_t num_sentences() const {
    return static_cast<int64_t>(header_.num_sentences);
  }
  int64_t num_tokens() const {
    return static_cast<int64_t>(header_.num_tokens);
  }

  // `document` in [0, num_documents()]; the last is num_sentences().
  int64_t first_sentence(int64_t document) const;
  // `sentence` in [0, num_sentences()]; the last is num_tokens().
  int64_t first_token(int64_t sentence) const;
  // `document` in [0, num_documents()): the hash of its text (text_hash.h),
  // sentences without tokens among it. It does not depend on the vocabulary: a
  // selection of the documents of a development set by hash is the same in
  // every store of a corpus. Uniform in [0, 2^64).
  uint64_t document_hash(int64_t document) const;

  // `index` in [0, num_tokens()). An id of a damaged file may be another,
  // beyond the vocabulary, and even negative: CheckTokens comes first.
  int32_t token(int64_t index) const {
    return narrow_tokens_ != nullptr
               ? static_cast<int32_t>(narrow_tokens_[index])
               : static_cast<int32_t>(wide_tokens_[index]);
  }
  // Returns true if the token continues a word: a WordPiece with "##", a
  // SentencePiece without U+2581 in front.
  bool is_continuation(int64_t index) const {
    return (flags_[index / 8] >> (index % 8) & 1) != 0;
  }

  // Checks that the file is the one that was opened: before the index is used
  // again, long after the last check. kDataLoss as of MappedFile.
  absl::Status CheckUnchanged() const { return file_.CheckUnchanged(); }

  // Checks that tokens [begin, end) and their flags are as they were written,
  // and that the ids are those of the vocabulary. To be called for each piece
  // of text before it is used, behind CheckUnchanged.
  // 0 <= begin <= end <= num_tokens().
  //   kDataLoss  they are not; the message has the block or the byte
  absl::Status CheckTokens(int64_t begin, int64_t end) const;

 private:
  TokenStore(MappedFile file, TokenStoreHeader header);

  absl::string_view Section(TokenStoreSection section) const;
  absl::Status CheckSection(TokenStoreSection section) const;
  // Checks that the bytes between the sections are zero.
  absl::Status CheckPadding() const;
  // The checksums of the blocks of a section as they stand in the file.
  absl::string_view BlockChecksums(TokenStoreSection section) const;
  absl::Status CheckBlockChecksums(TokenStoreSection section) const;
  // The blocks that have bytes [begin, end) of the section, each once.
  absl::Status CheckBlocks(TokenStoreSection section, uint64_t begin,
                           uint64_t end) const;
  absl::Status CheckIndex() const;
  // The entry as it stands; not for the one behind the last.
  uint64_t FirstToken(uint64_t sentence) const;
  uint64_t FirstSentence(uint64_t document) const;

  MappedFile file_;
  TokenStoreHeader header_;
  // One of them is null.
  const uint16_t* narrow_tokens_ = nullptr;
  const uint32_t* wide_tokens_ = nullptr;
  const uint8_t* flags_ = nullptr;
  const char* sentences_ = nullptr;
  const char* documents_ = nullptr;
  // True for each block of the tokens, and of the flags, that was found intact.
  mutable std::array<std::vector<std::atomic<bool>>, 2> intact_blocks_;
};

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_CORPUS_TOKEN_STORE_H_

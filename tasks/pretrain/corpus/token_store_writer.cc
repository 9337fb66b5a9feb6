#include "tasks/pretrain/corpus/token_store_writer.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/temporary_file.h"
#include "tasks/pretrain/corpus/text_hash.h"

namespace etc {

// A section on its way to a temporary file.
class TokenStoreWriter::Stream {
 public:
  explicit Stream(const std::string& target) : file_(target) {
    buffer_.reserve(kBufferBytes);
  }

  absl::Status Create() { return file_.Create(); }
  TemporaryFile& file() { return file_; }
  // The CRC-32C of all bytes that were added and flushed, and that of each
  // block of them.
  uint32_t checksum() const { return checksum_; }
  absl::string_view block_checksums() const {
    return {reinterpret_cast<const char*>(block_checksums_.data()),
            block_checksums_.size() * sizeof(uint32_t)};
  }

  absl::Status Add(absl::string_view bytes) {
    while (!bytes.empty()) {
      const size_t room = kBufferBytes - buffer_.size();
      const absl::string_view part = bytes.substr(0, room);
      buffer_.append(part.data(), part.size());
      bytes.remove_prefix(part.size());
      if (buffer_.size() == kBufferBytes) {
        ETC_RETURN_IF_ERROR(Flush());
      }
    }
    return absl::OkStatus();
  }
  template <typename T>
  absl::Status AddNumber(T value) {
    return Add({reinterpret_cast<const char*>(&value), sizeof(value)});
  }

  // Each as a number of another type, which has room for it.
  template <typename T, typename Number>
  absl::Status AddNumbers(absl::Span<const Number> numbers) {
    constexpr size_t kPiece = 1024;
    std::array<T, kPiece> piece;
    while (!numbers.empty()) {
      const auto part = numbers.first(std::min(kPiece, numbers.size()));
      std::transform(part.begin(), part.end(), piece.begin(),
                     [](Number number) { return static_cast<T>(number); });
      ETC_RETURN_IF_ERROR(Add({reinterpret_cast<const char*>(piece.data()),
                               part.size() * sizeof(T)}));
      numbers.remove_prefix(part.size());
    }
    return absl::OkStatus();
  }

  absl::Status Flush() {
    checksum_ = ExtendCrc32c(checksum_, buffer_);
    for (absl::string_view rest = buffer_; !rest.empty();) {
      const absl::string_view block = rest.substr(0, kTokenStoreBlockBytes);
      block_checksums_.push_back(ExtendCrc32c(0, block));
      rest.remove_prefix(block.size());
    }
    ETC_RETURN_IF_ERROR(file_.Write(buffer_));
    buffer_.clear();
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kBufferBytes = size_t{1} << 19;
  // No block but the last is flushed before it is full.
  static_assert(kBufferBytes % kTokenStoreBlockBytes == 0);

  TemporaryFile file_;
  std::string buffer_;
  uint32_t checksum_ = 0;
  std::vector<uint32_t> block_checksums_;
};

namespace {

// Puts the file at `from` behind `to`.
absl::Status AppendFile(const std::string& from, TemporaryFile& to) {
  constexpr uint64_t kChunkBytes = uint64_t{1} << 20;
  ETC_ASSIGN_OR_RETURN(const RandomAccessFile file,
                       RandomAccessFile::Open(from));
  std::string chunk;
  for (uint64_t at = 0; at < file.size(); at += chunk.size()) {
    chunk.resize(std::min(kChunkBytes, file.size() - at));
    ETC_RETURN_IF_ERROR(file.Read(at, chunk.size(), chunk.data()));
    ETC_RETURN_IF_ERROR(to.Write(chunk));
  }
  return absl::OkStatus();
}

}  // namespace

TokenStoreWriter::TokenStoreWriter(const std::string& path,
                                   const TokenStoreSettings& settings) {
  header_.settings = settings;
  for (auto& stream : streams_) {
    stream = std::make_unique<Stream>(path);
  }
}

TokenStoreWriter::~TokenStoreWriter() = default;

absl::StatusOr<std::unique_ptr<TokenStoreWriter>> TokenStoreWriter::Create(
    const std::string& path, const TokenStoreSettings& settings) {
  auto writer = absl::WrapUnique(new TokenStoreWriter(path, settings));
  for (auto& stream : writer->streams_) {
    ETC_RETURN_IF_ERROR(stream->Create());
  }
  // The header comes last: zeros are no header, should anybody find the file.
  ETC_RETURN_IF_ERROR(writer->StreamOf(TokenStoreSection::kTokens)
                          .file()
                          .Write(std::string(kTokenStoreHeaderBytes, '\0')));
  return writer;
}

absl::Status TokenStoreWriter::AddFirstToken() {
  Stream& stream = StreamOf(TokenStoreSection::kSentences);
  if (header_.num_sentences % kSentenceGroup == 0) {
    group_first_token_ = header_.num_tokens;
    ETC_RETURN_IF_ERROR(stream.AddNumber(group_first_token_));
  }
  const uint64_t from_group = header_.num_tokens - group_first_token_;
  if (from_group > std::numeric_limits<uint32_t>::max()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("sentence ", header_.num_sentences, " begins ", from_group,
                     " tokens behind the one up to ", kSentenceGroup - 1,
                     " before it; split the text into shorter sentences"));
  }
  ++header_.num_sentences;
  return stream.AddNumber(static_cast<uint32_t>(from_group));
}

absl::Status TokenStoreWriter::AddTokens(absl::Span<const int32_t> ids) {
  const auto bound = static_cast<uint32_t>(header_.settings.vocab_size);
  for (const int32_t id : ids) {
    // A negative one is beyond as well.
    if (static_cast<uint32_t>(id) >= bound) {
      throw std::out_of_range(absl::StrCat(
          "the id ", id, " should be in a vocabulary of ", bound, " pieces"));
    }
  }
  Stream& stream = StreamOf(TokenStoreSection::kTokens);
  return header_.token_bytes() == sizeof(uint16_t)
             ? stream.AddNumbers<uint16_t>(ids)
             : stream.AddNumbers<uint32_t>(ids);
}

absl::Status TokenStoreWriter::AddFlags(
    absl::Span<const uint8_t> continuations) {
  Stream& stream = StreamOf(TokenStoreSection::kFlags);
  uint64_t at = header_.num_tokens;
  for (const uint8_t is_continuation : continuations) {
    flags_ = static_cast<uint8_t>(
        flags_ | static_cast<uint8_t>(is_continuation != 0) << (at % 8));
    if (++at % 8 == 0) {
      ETC_RETURN_IF_ERROR(stream.AddNumber(std::exchange(flags_, uint8_t{0})));
    }
  }
  return absl::OkStatus();
}

absl::Status TokenStoreWriter::AddSentence(const TokenizedSentence& sentence) {
  if (sentence.ids.size() != sentence.continuations.size()) {
    throw std::invalid_argument(absl::StrCat(
        "a sentence should have a flag for each token, but has ",
        sentence.continuations.size(), " for ", sentence.ids.size()));
  }
  document_hash_ = AddToDocumentHash(document_hash_, sentence.text_hash);
  if (sentence.ids.empty()) {
    return absl::OkStatus();
  }
  ETC_RETURN_IF_ERROR(AddFirstToken());
  ETC_RETURN_IF_ERROR(AddTokens(sentence.ids));
  ETC_RETURN_IF_ERROR(AddFlags(sentence.continuations));
  header_.num_tokens += sentence.ids.size();
  return absl::OkStatus();
}

absl::Status TokenStoreWriter::EndDocument() {
  const uint64_t hash = std::exchange(document_hash_, 0);
  if (document_first_sentence_ == header_.num_sentences) {
    return absl::OkStatus();
  }
  Stream& stream = StreamOf(TokenStoreSection::kDocuments);
  ETC_RETURN_IF_ERROR(stream.AddNumber(document_first_sentence_));
  ETC_RETURN_IF_ERROR(stream.AddNumber(hash));
  ++header_.num_documents;
  document_first_sentence_ = header_.num_sentences;
  return absl::OkStatus();
}

absl::Status TokenStoreWriter::Finish() {
  ETC_RETURN_IF_ERROR(EndDocument());
  if (header_.num_tokens % 8 != 0) {
    ETC_RETURN_IF_ERROR(StreamOf(TokenStoreSection::kFlags).AddNumber(flags_));
  }
  const Stream& tokens = StreamOf(TokenStoreSection::kTokens);
  const Stream& flags = StreamOf(TokenStoreSection::kFlags);
  TemporaryFile& store = StreamOf(TokenStoreSection::kTokens).file();
  uint64_t end = kTokenStoreHeaderBytes;
  for (size_t i = 0; i < streams_.size(); ++i) {
    const auto section = static_cast<TokenStoreSection>(i);
    ETC_RETURN_IF_ERROR(streams_[i]->Flush());
    const bool has_blocks = section == TokenStoreSection::kTokens ||
                            section == TokenStoreSection::kFlags;
    header_.checksums[i] = has_blocks
                               ? ExtendCrc32c(0, streams_[i]->block_checksums())
                               : streams_[i]->checksum();
    const TokenStoreExtent extent = ExtentOf(header_, section);
    if (section != TokenStoreSection::kTokens) {
      ETC_RETURN_IF_ERROR(store.Write(std::string(extent.begin - end, '\0')));
      ETC_RETURN_IF_ERROR(AppendFile(streams_[i]->file().path(), store));
    }
    end = extent.begin + extent.bytes;
  }
  ETC_RETURN_IF_ERROR(store.Write(tokens.block_checksums()));
  ETC_RETURN_IF_ERROR(store.Write(flags.block_checksums()));
  ETC_RETURN_IF_ERROR(store.Overwrite(EncodeTokenStoreHeader(header_)));
  return store.MoveToTarget();
}

}  // namespace etc

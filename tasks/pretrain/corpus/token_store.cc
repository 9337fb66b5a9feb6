#include "tasks/pretrain/corpus/token_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/crc32c.h"
#include "base/status_macros.h"

namespace etc {
namespace {

template <typename T>
T NumberAt(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

// The first of `ids` that is not below `bound`, or `end`. In pieces without a
// branch in them, which the compiler vectorizes.
template <typename T>
int64_t FirstBeyond(const T* ids, int64_t begin, int64_t end, uint32_t bound) {
  constexpr int64_t kPiece = 1024;
  for (int64_t at = begin; at < end; at += kPiece) {
    const T* const last = ids + std::min(end, at + kPiece);
    T largest = 0;
    for (const T* id = ids + at; id < last; ++id) {
      largest = std::max(largest, *id);
    }
    if (largest >= bound) {
      return std::find_if(ids + at, last,
                          [bound](T id) { return id >= bound; }) -
             ids;
    }
  }
  return end;
}

constexpr std::array kSectionsOfBlocks = {TokenStoreSection::kTokens,
                                          TokenStoreSection::kFlags};

absl::Status CheckSize(const MappedFile& file, const TokenStoreHeader& header) {
  const uint64_t expected = TokenStoreFileBytes(header);
  const uint64_t found = file.bytes().size();
  if (found == expected) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      file.path(), ": the token store should have ", expected, " bytes, but ",
      found < expected ? "is cut off at byte " : "goes on to byte ", found));
}

}  // namespace

TokenStore::TokenStore(MappedFile file, TokenStoreHeader header)
    : file_(std::move(file)), header_(std::move(header)) {
  // The mapping begins at a page, and each section at a multiple of 8.
  const char* const tokens = Section(TokenStoreSection::kTokens).data();
  if (header_.token_bytes() == sizeof(uint16_t)) {
    narrow_tokens_ = reinterpret_cast<const uint16_t*>(tokens);
  } else {
    wide_tokens_ = reinterpret_cast<const uint32_t*>(tokens);
  }
  flags_ = reinterpret_cast<const uint8_t*>(
      Section(TokenStoreSection::kFlags).data());
  sentences_ = Section(TokenStoreSection::kSentences).data();
  documents_ = Section(TokenStoreSection::kDocuments).data();
  for (const TokenStoreSection section : kSectionsOfBlocks) {
    intact_blocks_[static_cast<size_t>(section)] =
        std::vector<std::atomic<bool>>(NumBlocks(ExtentOf(header_, section)));
  }
}

absl::StatusOr<std::unique_ptr<const TokenStore>> TokenStore::Open(
    const std::string& path, uint64_t checked_at_once) {
  ETC_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  ETC_ASSIGN_OR_RETURN(TokenStoreHeader header,
                       DecodeTokenStoreHeader(file.bytes(), path));
  ETC_RETURN_IF_ERROR(CheckSize(file, header));
  auto store =
      absl::WrapUnique(new TokenStore(std::move(file), std::move(header)));
  ETC_RETURN_IF_ERROR(store->CheckSection(TokenStoreSection::kSentences));
  ETC_RETURN_IF_ERROR(store->CheckSection(TokenStoreSection::kDocuments));
  ETC_RETURN_IF_ERROR(store->CheckIndex());
  ETC_RETURN_IF_ERROR(store->CheckPadding());
  uint64_t bytes = 0;
  for (const TokenStoreSection section : kSectionsOfBlocks) {
    ETC_RETURN_IF_ERROR(store->CheckBlockChecksums(section));
    bytes += store->Section(section).size();
  }
  if (bytes <= checked_at_once) {
    ETC_RETURN_IF_ERROR(store->CheckTokens(0, store->num_tokens()));
  }
  return store;
}

absl::string_view TokenStore::Section(TokenStoreSection section) const {
  const TokenStoreExtent extent = ExtentOf(header_, section);
  return file_.bytes().substr(extent.begin, extent.bytes);
}

absl::Status TokenStore::CheckSection(TokenStoreSection section) const {
  if (ExtendCrc32c(0, Section(section)) ==
      header_.checksums[static_cast<size_t>(section)]) {
    return absl::OkStatus();
  }
  const TokenStoreExtent extent = ExtentOf(header_, section);
  return absl::DataLossError(absl::StrCat(
      path(), ": ", NameOfSection(section), " of the token store (bytes ",
      extent.begin, " to ", extent.begin + extent.bytes,
      ") should have the checksum of the header, but do not"));
}

absl::Status TokenStore::CheckPadding() const {
  uint64_t end = kTokenStoreHeaderBytes;
  for (size_t i = 0; i < kTokenStoreSections; ++i) {
    const TokenStoreExtent extent =
        ExtentOf(header_, static_cast<TokenStoreSection>(i));
    const absl::string_view zeros =
        file_.bytes().substr(end, extent.begin - end);
    if (zeros.find_first_not_of('\0') != absl::string_view::npos) {
      return absl::DataLossError(
          absl::StrCat(path(), ": bytes ", end, " to ", extent.begin,
                       " of the token store should be 0, but are not"));
    }
    end = extent.begin + extent.bytes;
  }
  return absl::OkStatus();
}

absl::string_view TokenStore::BlockChecksums(TokenStoreSection section) const {
  const TokenStoreExtent extent = ExtentOfBlockChecksums(header_, section);
  return file_.bytes().substr(extent.begin, extent.bytes);
}

absl::Status TokenStore::CheckBlockChecksums(TokenStoreSection section) const {
  if (ExtendCrc32c(0, BlockChecksums(section)) ==
      header_.checksums[static_cast<size_t>(section)]) {
    return absl::OkStatus();
  }
  const TokenStoreExtent extent = ExtentOfBlockChecksums(header_, section);
  return absl::DataLossError(
      absl::StrCat(path(), ": the checksums of the blocks of ",
                   NameOfSection(section), " of the token store (bytes ",
                   extent.begin, " to ", extent.begin + extent.bytes,
                   ") should have the checksum of the header, but do not"));
}

absl::Status TokenStore::CheckBlocks(TokenStoreSection section, uint64_t begin,
                                     uint64_t end) const {
  auto& intact = intact_blocks_[static_cast<size_t>(section)];
  for (uint64_t block = begin / kTokenStoreBlockBytes;
       block < intact.size() && block * kTokenStoreBlockBytes < end; ++block) {
    // Two threads may check a block at once, with the same result.
    if (intact[block].load(std::memory_order_relaxed)) {
      continue;
    }
    const uint64_t at = block * kTokenStoreBlockBytes;
    const absl::string_view bytes =
        Section(section).substr(at, kTokenStoreBlockBytes);
    if (ExtendCrc32c(0, bytes) !=
        NumberAt<uint32_t>(BlockChecksums(section).data() +
                           block * sizeof(uint32_t))) {
      const uint64_t first = ExtentOf(header_, section).begin + at;
      return absl::DataLossError(absl::StrCat(
          path(), ": block ", block, " of ", NameOfSection(section),
          " of the token store (bytes ", first, " to ", first + bytes.size(),
          ") is damaged: it has not the checksum that it was written with; "
          "copy the store once more, or run realetc tokenize again"));
    }
    intact[block].store(true, std::memory_order_relaxed);
  }
  return absl::OkStatus();
}

uint64_t TokenStore::FirstToken(uint64_t sentence) const {
  const char* const group =
      sentences_ + sentence / kSentenceGroup * kSentenceGroupBytes;
  return NumberAt<uint64_t>(group) +
         NumberAt<uint32_t>(group + sizeof(uint64_t) +
                            sentence % kSentenceGroup * sizeof(uint32_t));
}

uint64_t TokenStore::FirstSentence(uint64_t document) const {
  return NumberAt<uint64_t>(documents_ + document * kDocumentBytes);
}

// Checks properties that a file made by another program may lack although its
// checksum fits.
absl::Status TokenStore::CheckIndex() const {
  const auto follow = [this](TokenStoreSection section, uint64_t count,
                             uint64_t end, auto first_of) {
    uint64_t least = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t first = first_of(i);
      // The first entry begins at 0, each other one behind the one before.
      if (first < least || first >= end || (i == 0 && first != 0)) {
        return absl::DataLossError(absl::StrCat(
            path(), ": ", NameOfSection(section),
            " of the token store is damaged: entry ", i, " begins at ", first,
            ", but should ", i == 0 ? "at 0" : "behind the one before it",
            ", below ", end));
      }
      least = first + 1;
    }
    return absl::OkStatus();
  };
  ETC_RETURN_IF_ERROR(follow(TokenStoreSection::kSentences,
                             header_.num_sentences, header_.num_tokens,
                             [this](uint64_t i) { return FirstToken(i); }));
  return follow(TokenStoreSection::kDocuments, header_.num_documents,
                header_.num_sentences,
                [this](uint64_t i) { return FirstSentence(i); });
}

int64_t TokenStore::first_sentence(int64_t document) const {
  return document == num_documents() ? num_sentences()
                                     : static_cast<int64_t>(FirstSentence(
                                           static_cast<uint64_t>(document)));
}

int64_t TokenStore::first_token(int64_t sentence) const {
  return sentence == num_sentences() ? num_tokens()
                                     : static_cast<int64_t>(FirstToken(
                                           static_cast<uint64_t>(sentence)));
}

uint64_t TokenStore::document_hash(int64_t document) const {
  return NumberAt<uint64_t>(documents_ +
                            static_cast<uint64_t>(document) * kDocumentBytes +
                            sizeof(uint64_t));
}

absl::Status TokenStore::CheckTokens(int64_t begin, int64_t end) const {
  const auto first = static_cast<uint64_t>(begin);
  const auto last = static_cast<uint64_t>(end);
  const uint64_t width = header_.token_bytes();
  ETC_RETURN_IF_ERROR(
      CheckBlocks(TokenStoreSection::kTokens, first * width, last * width));
  ETC_RETURN_IF_ERROR(
      CheckBlocks(TokenStoreSection::kFlags, first / 8, (last + 7) / 8));
  const auto bound = static_cast<uint32_t>(settings().vocab_size);
  const int64_t beyond = narrow_tokens_ != nullptr
                             ? FirstBeyond(narrow_tokens_, begin, end, bound)
                             : FirstBeyond(wide_tokens_, begin, end, bound);
  if (beyond == end) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      path(), ": the token store is damaged at byte ",
      kTokenStoreHeaderBytes +
          static_cast<uint64_t>(beyond) * header_.token_bytes(),
      ": token ", beyond, " is ", static_cast<uint32_t>(token(beyond)),
      ", but the vocabulary has ", bound, " pieces"));
}

}  // namespace etc

#include "tasks/text/huggingface/precompiled_map.h"

#include <unicode/brkiter.h>
#include <unicode/locid.h>
#include <unicode/utext.h>

#include <cstddef>
#include <stdexcept>
#include <utility>

#include "absl/base/internal/endian.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "tasks/text/unicode.h"

namespace etc::huggingface {
namespace {

// A unit of Darts' double array.
bool HasLeaf(uint32_t unit) { return ((unit >> 8) & 1) == 1; }
uint32_t Value(uint32_t unit) { return unit & 0x7FFFFFFF; }
uint32_t Label(uint32_t unit) { return unit & 0x800000FF; }
uint32_t Offset(uint32_t unit) {
  return (unit >> 10) << ((unit & (uint32_t{1} << 9)) >> 6);
}

class PrecompiledNormalizer : public Normalizer {
 public:
  explicit PrecompiledNormalizer(PrecompiledMap map) : map_(std::move(map)) {}

  void Apply(MappedText* mapped) const override {
    const absl::string_view text = mapped->text();
    const auto size = static_cast<int64_t>(text.size());
    MappedTextBuilder builder(*mapped);
    std::unique_ptr<icu::BreakIterator> breaks;
    for (int64_t at = 0; at < size;) {
      // Characters of ASCII are graphemes, but for CR LF and marks behind them.
      int64_t end = at + 1;
      if (!IsAscii(text, at) || (end < size && !IsAscii(text, end)) ||
          text[static_cast<size_t>(at)] == '\r') {
        if (breaks == nullptr) {
          breaks = Graphemes(text);
        }
        end = breaks->following(static_cast<int32_t>(at));
      }
      Write(text, {.begin = at, .end = end}, &builder);
      at = end;
    }
    *mapped = builder.Build();
  }

 private:
  static bool IsAscii(absl::string_view text, int64_t at) {
    return static_cast<uint8_t>(text[static_cast<size_t>(at)]) < 0x80;
  }

  static std::unique_ptr<icu::BreakIterator> Graphemes(absl::string_view text) {
    UErrorCode status = U_ZERO_ERROR;
    std::unique_ptr<icu::BreakIterator> breaks(
        icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(),
                                                    status));
    UText bytes = UTEXT_INITIALIZER;
    utext_openUTF8(&bytes, text.data(), static_cast<int64_t>(text.size()),
                   &status);
    if (U_SUCCESS(status)) {
      breaks->setText(&bytes, status);
    }
    utext_close(&bytes);
    if (U_FAILURE(status)) {
      throw std::runtime_error("ICU cannot split a text into graphemes");
    }
    return breaks;
  }

  void Write(absl::string_view text, ByteRange grapheme,
             MappedTextBuilder* builder) const {
    constexpr int64_t kLongest = 5;
    const auto part = [text](ByteRange range) {
      return text.substr(static_cast<size_t>(range.begin),
                         static_cast<size_t>(range.end - range.begin));
    };
    if (grapheme.end - grapheme.begin <= kLongest) {
      if (const auto found = map_.Find(part(grapheme))) {
        return builder->Append(*found, grapheme);
      }
    }
    for (int64_t at = grapheme.begin; at < grapheme.end;) {
      const int64_t begin = at;
      NextCodePoint(text, &at);
      const ByteRange character = {.begin = begin, .end = at};
      if (const auto found = map_.Find(part(character))) {
        builder->Append(*found, character);
      } else {
        builder->Copy(character);
      }
    }
  }

  const PrecompiledMap map_;
};

}  // namespace

absl::StatusOr<PrecompiledMap> PrecompiledMap::Parse(absl::string_view bytes,
                                                     const std::string& where) {
  constexpr size_t kUnit = sizeof(uint32_t);
  const auto unit = [bytes](size_t index) {
    return absl::little_endian::Load32(bytes.data() + index * kUnit);
  };
  const size_t size = bytes.size() < kUnit ? 0 : unit(0);
  if (size == 0 || size % kUnit != 0 || size > bytes.size() - kUnit) {
    return InvalidArgument(where,
                           " should begin with the size of its trie, but has ",
                           bytes.size(), " bytes, the trie ", size);
  }
  PrecompiledMap map;
  map.units_.reserve(size / kUnit);
  for (size_t i = 0; i < size / kUnit; ++i) {
    map.units_.push_back(unit(i + 1));
  }
  map.replacements_ = std::string(bytes.substr(kUnit + size));
  if (CountIllFormedUtf8(map.replacements_) > 0) {
    return InvalidArgument(where, " should have replacements in UTF-8");
  }
  if (!map.IsSound()) {
    return InvalidArgument(where,
                           " should have a trie that leads to replacements, "
                           "but it leads elsewhere");
  }
  return map;
}

// Follows each edge again only where a walk has more matches than those before,
// so that it ends, whatever the trie.
bool PrecompiledMap::IsSound() const {
  // SentencePiece keeps the matches of a text in an array of this size.
  constexpr int kMostMatches = 32;
  constexpr size_t kLabels = 256;
  std::vector<int8_t> most_matches(units_.size(), -1);
  std::vector<size_t> reached;
  const auto reach = [&](size_t node, int matches) {
    if ((node | (kLabels - 1)) >= units_.size() || matches > kMostMatches) {
      return false;
    }
    if (matches > most_matches[node]) {
      most_matches[node] = static_cast<int8_t>(matches);
      reached.push_back(node);
    }
    return true;
  };
  const auto is_replacement = [this](size_t place) {
    return place < replacements_.size() && replacements_.back() == '\0' &&
           (place == 0 || replacements_[place - 1] == '\0');
  };
  if (!reach(Offset(units_[0]), 0)) {
    return false;
  }
  while (!reached.empty()) {
    const size_t node = reached.back();
    reached.pop_back();
    for (size_t label = 0; label < kLabels; ++label) {
      const uint32_t unit = units_[node ^ label];
      if (Label(unit) != label) {
        continue;
      }
      const size_t next = node ^ label ^ Offset(unit);
      if (!reach(next, most_matches[node] + (HasLeaf(unit) ? 1 : 0)) ||
          (HasLeaf(unit) && !is_replacement(Value(units_[next])))) {
        return false;
      }
    }
  }
  return true;
}

std::optional<absl::string_view> PrecompiledMap::Find(
    absl::string_view text) const {
  size_t node = Offset(units_[0]);
  for (const char byte : text) {
    const auto label = static_cast<uint8_t>(byte);
    node ^= label;
    const uint32_t unit = units_[node];
    if (label == 0 || Label(unit) != label) {
      return std::nullopt;
    }
    node ^= Offset(unit);
    if (HasLeaf(unit)) {
      const absl::string_view rest =
          absl::string_view(replacements_).substr(Value(units_[node]));
      return rest.substr(0, rest.find('\0'));
    }
  }
  return std::nullopt;
}

std::unique_ptr<const Normalizer> MakePrecompiledNormalizer(
    PrecompiledMap map) {
  return std::make_unique<PrecompiledNormalizer>(std::move(map));
}

}  // namespace etc::huggingface

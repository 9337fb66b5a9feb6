#include "tasks/text/huggingface/normalizers.h"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/tokenizer_statements.h"
#include "nlohmann/json.hpp"
#include "tasks/text/huggingface/characters.h"
#include "tasks/text/huggingface/part_of_type.h"
#include "tasks/text/huggingface/pattern.h"
#include "tasks/text/huggingface/precompiled_map.h"
#include "tasks/text/unicode.h"

namespace etc::huggingface {
namespace {

using nlohmann::json;

bool IsAscii(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char byte) {
    return static_cast<uint8_t>(byte) < 0x80;
  });
}

// --- Character by character --------------------------------------------------

// Replaces single characters.
class CharacterMap : public Normalizer {
 public:
  // Returns true if the character changes, and appends the replacement, which
  // may be empty.
  using Map = bool (*)(CodePoint c, std::string* becomes);
  explicit CharacterMap(Map map) : map_(map) {}

  void Apply(MappedText* mapped) const override {
    const absl::string_view text = mapped->text();
    MappedTextBuilder builder(*mapped);
    std::string becomes;
    bool changes = false;
    int64_t kept = 0;  // up to here all is written
    for (int64_t at = 0; at < static_cast<int64_t>(text.size());) {
      const int64_t begin = at;
      const CodePoint c = NextCodePoint(text, &at);
      becomes.clear();
      if (!map_(c, &becomes)) {
        continue;
      }
      builder.Copy({.begin = kept, .end = begin});
      builder.Append(becomes, {.begin = begin, .end = at});
      kept = at;
      changes = true;
    }
    if (changes) {
      builder.Copy({.begin = kept, .end = mapped->size()});
      *mapped = builder.Build();
    }
  }

 private:
  const Map map_;
};

bool Lower(CodePoint c, std::string* becomes) {
  if (c == 0x130) {  // the only one that becomes two
    becomes->append("i\u0307");
    return true;
  }
  const CodePoint lower = u_tolower(c);
  if (lower == c) {
    return false;
  }
  AppendUtf8(lower, becomes);
  return true;
}

bool DropMarks(CodePoint c, std::string* /*becomes*/) {
  return (U_GET_GC_MASK(c) & U_GC_M_MASK) != 0;
}

bool DropNonspacingMarks(CodePoint c, std::string* /*becomes*/) {
  return u_charType(c) == U_NON_SPACING_MARK;
}

// HuggingFace's range of extension E begins 256 code points behind Google's.
bool SpaceIdeographs(CodePoint c, std::string* becomes) {
  if (!IsBertIdeograph(c) || (c >= 0x2B820 && c < 0x2B920)) {
    return false;
  }
  becomes->push_back(' ');
  AppendUtf8(c, becomes);
  becomes->push_back(' ');
  return true;
}

bool CleanForBert(CodePoint c, std::string* becomes) {
  constexpr uint32_t kDropped = U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK;
  if (c == '\t' || c == '\n' || c == '\r') {
    becomes->push_back(' ');
    return true;
  }
  if (c == 0xFFFD || (U_GET_GC_MASK(c) & kDropped) != 0) {
    return true;
  }
  if (c != ' ' && IsWhiteSpace(c)) {
    becomes->push_back(' ');
    return true;
  }
  return false;
}

// The rules "nmt" of SentencePiece.
bool CleanForNmt(CodePoint c, std::string* becomes) {
  if ((c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) ||
      c == 0x7F || c == 0x8F || c == 0x9F) {
    return true;
  }
  if (c == '\t' || c == '\n' || c == 0x0C || c == '\r' || c == 0x1680 ||
      (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
      c == 0x2581 || c == 0xFEFF || c == 0xFFFD) {
    becomes->push_back(' ');
    return true;
  }
  return false;
}

// --- Unicode's forms ---------------------------------------------------------

// `text` decomposed canonically, its marks in canonical order: no form of it
// changes.
icu::UnicodeString Decomposed(const icu::UnicodeString& text) {
  UErrorCode status = U_ZERO_ERROR;  // NFD is compiled into ICU
  const icu::Normalizer2* const nfd = icu::Normalizer2::getNFDInstance(status);
  std::vector<UChar32> characters;
  icu::UnicodeString parts;
  for (int32_t at = 0; at < text.length(); at = text.moveIndex32(at, 1)) {
    const UChar32 c = text.char32At(at);
    if (nfd->getDecomposition(c, parts) == 0) {
      characters.push_back(c);
      continue;
    }
    for (int32_t i = 0; i < parts.length(); i = parts.moveIndex32(i, 1)) {
      characters.push_back(parts.char32At(i));
    }
  }
  OrderMarks([](UChar32 c) { return u_getCombiningClass(c); }, &characters);
  return icu::UnicodeString::fromUTF32(characters.data(),
                                       static_cast<int32_t>(characters.size()));
}

// NFC, NFD, NFKC or NFKD.
class UnicodeForm : public Normalizer {
 public:
  explicit UnicodeForm(const icu::Normalizer2* form) : form_(form) {}

  void Apply(MappedText* mapped) const override {
    const absl::string_view text = mapped->text();
    if (IsAscii(text)) {
      return;
    }
    MappedTextBuilder builder(*mapped);
    // Characters between boundaries do not depend on the others.
    int64_t begin = 0;
    for (int64_t at = 0; at < static_cast<int64_t>(text.size());) {
      const int64_t character = at;
      const CodePoint c = NextCodePoint(text, &at);
      if (character > begin && form_->hasBoundaryBefore(c) != 0) {
        Write(text, {.begin = begin, .end = character}, &builder);
        begin = character;
      }
    }
    Write(text, {.begin = begin, .end = mapped->size()}, &builder);
    *mapped = builder.Build();
  }

 private:
  void Write(absl::string_view text, ByteRange range,
             MappedTextBuilder* builder) const {
    const absl::string_view part =
        text.substr(static_cast<size_t>(range.begin),
                    static_cast<size_t>(range.end - range.begin));
    if (part.size() == 1) {
      return builder->Append(part, range);
    }
    // ICU sorts marks by insertion, which takes forever for a million of them.
    constexpr int32_t kManyMarks = 100;
    UErrorCode status = U_ZERO_ERROR;
    icu::UnicodeString source = icu::UnicodeString::fromUTF8(
        icu::StringPiece(part.data(), static_cast<int32_t>(part.size())));
    if (source.length() > kManyMarks) {
      source = Decomposed(source);
    }
    std::string result;
    form_->normalize(source, status).toUTF8String(result);
    result == part ? builder->Copy(range) : builder->Append(result, range);
  }

  const icu::Normalizer2* const form_;
};

// --- Others ------------------------------------------------------------------

class Replace : public Normalizer {
 public:
  Replace(std::shared_ptr<const Pattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void Apply(MappedText* mapped) const override {
    MappedTextBuilder builder(*mapped);
    int64_t done = 0;
    bool is_changed = false;
    pattern_->FindAll(mapped->text(), [&](ByteRange match) {
      is_changed = true;
      builder.Copy({.begin = done, .end = match.begin});
      builder.Append(content_, match);
      done = match.end;
    });
    if (is_changed) {
      builder.Copy({.begin = done, .end = mapped->size()});
      *mapped = builder.Build();
    }
  }

 private:
  const std::shared_ptr<const Pattern> pattern_;
  const std::string content_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}

  void Apply(MappedText* text) const override {
    if (text->size() > 0) {
      text->Prepend(prefix_);
    }
  }

 private:
  const std::string prefix_;
};

class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}

  void Apply(MappedText* mapped) const override {
    const absl::string_view text = mapped->text();
    ByteRange kept = {.begin = 0, .end = mapped->size()};
    while (left_ && kept.begin < kept.end) {
      int64_t next = kept.begin;
      if (!IsWhiteSpace(NextCodePoint(text, &next))) {
        break;
      }
      kept.begin = next;
    }
    while (right_ && kept.begin < kept.end) {
      int64_t before = kept.end;
      if (!IsWhiteSpace(PreviousCodePoint(text, &before))) {
        break;
      }
      kept.end = before;
    }
    *mapped = mapped->Slice(kept);
  }

 private:
  const bool left_;
  const bool right_;
};

// --- Reading -----------------------------------------------------------------

void Add(CharacterMap::Map map, Normalizers* all) {
  all->steps.push_back(std::make_unique<CharacterMap>(map));
}

absl::Status AddForm(const icu::Normalizer2* (*form)(UErrorCode&),
                     Normalizers* all) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* const found = form(status);
  if (U_FAILURE(status)) {
    return absl::InternalError(
        absl::StrCat("ICU has no normalizer: ", u_errorName(status)));
  }
  all->steps.push_back(std::make_unique<UnicodeForm>(found));
  return absl::OkStatus();
}

template <const icu::Normalizer2* (*form)(UErrorCode&)>
absl::Status ReadForm(JsonObjectReader* /*reader*/, Normalizers* all) {
  return AddForm(form, all);
}

template <CharacterMap::Map map>
absl::Status ReadMap(JsonObjectReader* /*reader*/, Normalizers* all) {
  all->lower_cases = all->lower_cases || map == &Lower;
  Add(map, all);
  return absl::OkStatus();
}

absl::Status ReadBertNormalizer(JsonObjectReader* reader, Normalizers* all) {
  bool clean_text = true;
  bool handle_chinese_chars = true;
  bool lowercase = true;
  bool strip_accents = false;
  reader->Optional("clean_text", &clean_text);
  reader->Optional("handle_chinese_chars", &handle_chinese_chars);
  reader->Optional("lowercase", &lowercase);
  if (reader->Given("strip_accents") != nullptr) {
    reader->Optional("strip_accents", &strip_accents);
  } else {
    strip_accents = lowercase;
  }
  if (clean_text) {
    Add(CleanForBert, all);
  }
  if (handle_chinese_chars) {
    Add(SpaceIdeographs, all);
  }
  if (strip_accents) {
    ETC_RETURN_IF_ERROR(AddForm(icu::Normalizer2::getNFDInstance, all));
    Add(DropNonspacingMarks, all);
  }
  if (lowercase) {
    Add(Lower, all);
    all->lower_cases = true;
  }
  return absl::OkStatus();
}

absl::Status ReadReplace(JsonObjectReader* reader, Normalizers* all) {
  std::string content;
  const json* pattern = reader->Raw("pattern", /*required=*/true);
  reader->Required("content", &content);
  if (pattern == nullptr) {
    return absl::OkStatus();  // the reader has the mistake
  }
  ETC_ASSIGN_OR_RETURN(auto read,
                       ReadPattern(*pattern, reader->Where("pattern")));
  all->marks_words = all->marks_words || content == "\u2581";
  all->steps.push_back(std::make_unique<Replace>(std::move(read), content));
  return absl::OkStatus();
}

absl::Status ReadPrepend(JsonObjectReader* reader, Normalizers* all) {
  std::string prefix;
  reader->Required("prepend", &prefix);
  all->steps.push_back(std::make_unique<Prepend>(std::move(prefix)));
  return absl::OkStatus();
}

absl::Status ReadStrip(JsonObjectReader* reader, Normalizers* all) {
  bool left = true;
  bool right = true;
  reader->Optional("strip_left", &left);
  reader->Optional("strip_right", &right);
  all->steps.push_back(std::make_unique<Strip>(left, right));
  return absl::OkStatus();
}

absl::Status ReadPrecompiled(JsonObjectReader* reader, Normalizers* all) {
  constexpr char kField[] = "precompiled_charsmap";
  if (reader->Given(kField) == nullptr) {
    return absl::OkStatus();  // a model without rules
  }
  std::string encoded;
  std::string bytes;
  reader->Required(kField, &encoded);
  if (encoded.empty()) {
    return absl::OkStatus();
  }
  if (!absl::Base64Unescape(encoded, &bytes)) {
    reader->Fail(kField, "should be base 64");
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(PrecompiledMap map,
                       PrecompiledMap::Parse(bytes, reader->Where(kField)));
  all->steps.push_back(MakePrecompiledNormalizer(std::move(map)));
  return absl::OkStatus();
}

absl::Status ReadNormalizer(const json& object, const std::string& where,
                            Normalizers* all);

absl::Status ReadNormalizerSequence(JsonObjectReader* reader,
                                    Normalizers* all) {
  const json* list = reader->Raw("normalizers", /*required=*/true);
  if (list == nullptr || !list->is_array()) {
    reader->Fail("normalizers", "should be a list");
    return absl::OkStatus();
  }
  for (size_t i = 0; i < list->size(); ++i) {
    ETC_RETURN_IF_ERROR(ReadNormalizer(
        (*list)[i], absl::StrCat(reader->Where("normalizers"), "[", i, "]"),
        all));
  }
  return absl::OkStatus();
}

absl::Status ReadNormalizer(const json& object, const std::string& where,
                            Normalizers* all) {
  using Reader = absl::Status (*)(JsonObjectReader*, Normalizers*);
  static constexpr std::pair<const char*, Reader> kTypes[] = {
      {"BertNormalizer", ReadBertNormalizer},
      {"Lowercase", ReadMap<Lower>},
      {"NFC", ReadForm<icu::Normalizer2::getNFCInstance>},
      {"NFD", ReadForm<icu::Normalizer2::getNFDInstance>},
      {"NFKC", ReadForm<icu::Normalizer2::getNFKCInstance>},
      {"NFKD", ReadForm<icu::Normalizer2::getNFKDInstance>},
      {"Nmt", ReadMap<CleanForNmt>},
      {"Precompiled", ReadPrecompiled},
      {"Prepend", ReadPrepend},
      {"Replace", ReadReplace},
      {"Sequence", ReadNormalizerSequence},
      {"Strip", ReadStrip},
      {"StripAccents", ReadMap<DropMarks>}};
  JsonObjectReader reader(object, where);
  std::string type;
  reader.Required("type", &type);
  ETC_RETURN_IF_ERROR(reader.status());
  return ReadPartOfType(kTypes, type, "normalizer", &reader, all);
}

}  // namespace

absl::StatusOr<Normalizers> ReadNormalizers(const json& object,
                                            const std::string& where) {
  Normalizers all;
  ETC_RETURN_IF_ERROR(ReadNormalizer(object, where, &all));
  return all;
}

}  // namespace etc::huggingface

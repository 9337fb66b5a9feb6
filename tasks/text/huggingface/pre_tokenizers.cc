#include "tasks/text/huggingface/pre_tokenizers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/tokenizer_statements.h"
#include "nlohmann/json.hpp"
#include "tasks/text/huggingface/characters.h"
#include "tasks/text/huggingface/part_of_type.h"
#include "tasks/text/huggingface/pattern.h"

namespace etc::huggingface {
namespace {

using nlohmann::json;

// --- Splitting ---------------------------------------------------------------

// The treatment of matches.
enum class Behavior {
  kRemoved,
  kIsolated,
  kMergedWithPrevious,
  kMergedWithNext,
  kContiguous
};

struct Part {
  ByteRange range;
  bool is_match = false;
};

absl::string_view TextOf(const SplitText& split, ByteRange range) {
  return split.text.text().substr(static_cast<size_t>(range.begin),
                                  static_cast<size_t>(range.end - range.begin));
}

// Joins matches, where `parts` go from left to right, with the part before
// them unless that is a match too.
void MergeWithPrevious(const std::vector<Part>& parts,
                       std::vector<ByteRange>* words) {
  bool was_match = false;
  bool is_first = true;
  for (const Part& part : parts) {
    if (part.is_match && !was_match && !is_first) {
      words->back().end = part.range.end;
    } else {
      words->push_back(part.range);
    }
    was_match = part.is_match;
    is_first = false;
  }
}

void MergeWithNext(const std::vector<Part>& parts,
                   std::vector<ByteRange>* words) {
  bool was_match = false;
  const auto first = static_cast<std::ptrdiff_t>(words->size());
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (part->is_match && !was_match && part != parts.rbegin()) {
      words->back().begin = part->range.begin;
    } else {
      words->push_back(part->range);
    }
    was_match = part->is_match;
  }
  std::reverse(words->begin() + first, words->end());
}

void MergeAlike(const std::vector<Part>& parts, std::vector<ByteRange>* words) {
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && parts[i].is_match == parts[i - 1].is_match) {
      words->back().end = parts[i].range.end;
    } else {
      words->push_back(parts[i].range);
    }
  }
}

// Appends the words of the parts of one word.
void AppendWords(const std::vector<Part>& parts, Behavior behavior,
                 std::vector<ByteRange>* words) {
  switch (behavior) {
    case Behavior::kMergedWithPrevious:
      return MergeWithPrevious(parts, words);
    case Behavior::kMergedWithNext:
      return MergeWithNext(parts, words);
    case Behavior::kContiguous:
      return MergeAlike(parts, words);
    case Behavior::kRemoved:
    case Behavior::kIsolated:
      for (const Part& part : parts) {
        if (!part.is_match || behavior == Behavior::kIsolated) {
          words->push_back(part.range);
        }
      }
  }
}

// Splits each word by the matches in its text; an empty match is a part until
// all words are made, so that others are not merged over it.
void SplitWords(
    Behavior behavior,
    absl::FunctionRef<void(absl::string_view text,
                           absl::FunctionRef<void(ByteRange match)> visit)>
        find_matches,
    bool invert, SplitText* split) {
  std::vector<ByteRange> words;
  words.reserve(split->words.size());
  std::vector<Part> parts;
  for (const ByteRange word : split->words) {
    parts.clear();
    int64_t done = word.begin;
    const auto add = [&](ByteRange range, bool is_match) {
      parts.push_back({range, is_match != invert});
      done = range.end;
    };
    const auto add_other = [&](int64_t end) {
      if (done < end) {
        add({.begin = done, .end = end}, false);
      }
    };
    find_matches(TextOf(*split, word), [&](ByteRange match) {
      add_other(word.begin + match.begin);
      add({.begin = done, .end = word.begin + match.end}, true);
    });
    add_other(word.end);
    AppendWords(parts, behavior, &words);
  }
  std::erase_if(words, [](ByteRange word) { return word.begin == word.end; });
  split->words = std::move(words);
}

// Each character of a class is a match.
class CharacterSplit : public PreTokenizer {
 public:
  CharacterSplit(bool (*is_match)(CodePoint), Behavior behavior)
      : is_match_(is_match), behavior_(behavior) {}

  void Apply(SplitText* split) const override {
    SplitWords(
        behavior_,
        [this](absl::string_view text,
               absl::FunctionRef<void(ByteRange match)> visit) {
          for (int64_t at = 0; at < static_cast<int64_t>(text.size());) {
            const int64_t begin = at;
            if (is_match_(NextCodePoint(text, &at))) {
              visit({.begin = begin, .end = at});
            }
          }
        },
        /*invert=*/false, split);
  }

 private:
  bool (*const is_match_)(CodePoint);
  const Behavior behavior_;
};

class PatternSplit : public PreTokenizer {
 public:
  PatternSplit(std::shared_ptr<const Pattern> pattern, Behavior behavior,
               bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void Apply(SplitText* split) const override {
    SplitWords(
        behavior_,
        [this](absl::string_view text,
               absl::FunctionRef<void(ByteRange match)> visit) {
          pattern_->FindAll(text, visit);
        },
        invert_, split);
  }

 private:
  const std::shared_ptr<const Pattern> pattern_;
  const Behavior behavior_;
  const bool invert_;
};

// "\w+|[^\w\s]+"
class WhitespaceWords : public PreTokenizer {
 public:
  void Apply(SplitText* split) const override {
    std::vector<ByteRange> words;
    for (const ByteRange word : split->words) {
      const absl::string_view text = TextOf(*split, word);
      int previous = 0;
      for (int64_t at = 0; at < static_cast<int64_t>(text.size());) {
        const int64_t begin = at;
        const CodePoint c = NextCodePoint(text, &at);
        const int kind = IsWhiteSpace(c) ? 0 : IsWordCharacter(c) ? 1 : 2;
        if (kind != 0 && kind == previous) {
          words.back().end = word.begin + at;
        } else if (kind != 0) {
          words.push_back(
              {.begin = word.begin + begin, .end = word.begin + at});
        }
        previous = kind;
      }
    }
    split->words = std::move(words);
  }
};

// --- Changing ----------------------------------------------------------------

// Makes the text anew, word by word.
void RewriteWords(
    absl::FunctionRef<void(ByteRange word, MappedTextBuilder* builder)> write,
    SplitText* split) {
  MappedTextBuilder builder(split->text);
  std::vector<ByteRange> words;
  for (const ByteRange word : split->words) {
    const int64_t begin = builder.size();
    write(word, &builder);
    words.push_back({.begin = begin, .end = builder.size()});
  }
  split->text = builder.Build();
  split->words = std::move(words);
}

// Returns true if the whole text is one word.
bool IsOneWord(const SplitText& split) {
  return split.words.size() == 1 && split.words[0].begin == 0 &&
         split.words[0].end == split.text.size();
}

class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, bool use_regex)
      : add_prefix_space_(add_prefix_space), use_regex_(use_regex) {}

  void Apply(SplitText* split) const override {
    if (add_prefix_space_) {
      AddSpaces(split);
    }
    if (!use_regex_) {
      return;
    }
    std::vector<ByteRange> words;
    words.reserve(static_cast<size_t>(split->text.size() / 4 + 1));
    for (const ByteRange word : split->words) {
      VisitGpt2Words(TextOf(*split, word), [&words, word](ByteRange part) {
        words.push_back(
            {.begin = word.begin + part.begin, .end = word.begin + part.end});
      });
    }
    split->words = std::move(words);
  }

 private:
  static void AddSpaces(SplitText* split) {
    const auto has_space = [split](ByteRange word) {
      return absl::StartsWith(TextOf(*split, word), " ");
    };
    if (std::all_of(split->words.begin(), split->words.end(), has_space)) {
      return;
    }
    if (IsOneWord(*split)) {
      split->text.Prepend(" ");
      ++split->words[0].end;
      return;
    }
    RewriteWords(
        [&](ByteRange word, MappedTextBuilder* builder) {
          if (!has_space(word)) {
            builder->Append(" ", {.begin = word.begin, .end = word.begin});
          }
          builder->Copy(word);
        },
        split);
  }

  const bool add_prefix_space_;
  const bool use_regex_;
};

enum class PrependScheme { kAlways, kFirst, kNever };

class Metaspace : public PreTokenizer {
 public:
  Metaspace(std::string mark, PrependScheme scheme, bool splits)
      : mark_(std::move(mark)), scheme_(scheme), splits_(splits) {}

  void Apply(SplitText* split) const override {
    const std::vector<bool> prepends = Prepends(*split);
    size_t index = 0;
    RewriteWords(
        [&](ByteRange word, MappedTextBuilder* builder) {
          if (prepends[index++]) {
            builder->Append(mark_, {.begin = word.begin, .end = word.begin});
          }
          WriteMarks(word, *split, builder);
        },
        split);
    if (splits_) {
      SplitWords(
          Behavior::kMergedWithNext,
          [this](absl::string_view text,
                 absl::FunctionRef<void(ByteRange match)> visit) {
            for (size_t at = text.find(mark_); at != absl::string_view::npos;
                 at = text.find(mark_, at + mark_.size())) {
              visit({.begin = static_cast<int64_t>(at),
                     .end = static_cast<int64_t>(at + mark_.size())});
            }
          },
          /*invert=*/false, split);
    }
  }

 private:
  // The words that get a mark in front.
  std::vector<bool> Prepends(const SplitText& split) const {
    std::vector<bool> prepends;
    for (const ByteRange word : split.words) {
      const absl::string_view text = TextOf(split, word);
      const bool has_mark =
          absl::StartsWith(text, " ") || absl::StartsWith(text, mark_);
      prepends.push_back(
          !has_mark && (scheme_ == PrependScheme::kAlways ||
                        (scheme_ == PrependScheme::kFirst &&
                         split.text.Source(word.begin, word.end).begin == 0)));
    }
    return prepends;
  }

  // The word with marks for its spaces.
  void WriteMarks(ByteRange word, const SplitText& split,
                  MappedTextBuilder* builder) const {
    // Ends with the word: each word would search the rest of the text again.
    const absl::string_view text =
        split.text.text().substr(0, static_cast<size_t>(word.end));
    int64_t at = word.begin;
    while (at < word.end) {
      const size_t found = text.find(' ', static_cast<size_t>(at));
      const int64_t space = found == absl::string_view::npos
                                ? word.end
                                : static_cast<int64_t>(found);
      builder->Copy({.begin = at, .end = space});
      at = space;
      if (space < word.end) {
        builder->Append(mark_, {.begin = space, .end = space + 1});
        ++at;
      }
    }
  }

  const std::string mark_;
  const PrependScheme scheme_;
  const bool splits_;
};

// --- Reading -----------------------------------------------------------------

absl::Status ReadBehavior(JsonObjectReader* reader, Behavior* behavior) {
  static constexpr std::pair<const char*, Behavior> kNames[] = {
      {"Removed", Behavior::kRemoved},
      {"Isolated", Behavior::kIsolated},
      {"MergedWithPrevious", Behavior::kMergedWithPrevious},
      {"MergedWithNext", Behavior::kMergedWithNext},
      {"Contiguous", Behavior::kContiguous}};
  std::string name = "Isolated";
  reader->Optional("behavior", &name);
  for (const auto& [known, value] : kNames) {
    if (name == known) {
      *behavior = value;
      return absl::OkStatus();
    }
  }
  return UnsupportedTokenizer(
      reader->Where("behavior"), QuotedName(name),
      "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

absl::Status ReadByteLevel(JsonObjectReader* reader, PreTokenizers* all) {
  bool add_prefix_space = true;
  bool ignored = true;
  bool use_regex = true;
  reader->Optional("add_prefix_space", &add_prefix_space);
  reader->Optional("trim_offsets", &ignored);
  reader->Optional("use_regex", &use_regex);
  all->steps.push_back(
      std::make_unique<ByteLevel>(add_prefix_space, use_regex));
  all->is_byte_level = true;
  return absl::OkStatus();
}

absl::Status ReadMetaspace(JsonObjectReader* reader, PreTokenizers* all) {
  std::string mark = "\u2581";
  std::string ignored;
  bool add_prefix_space = true;
  bool splits = true;
  reader->Optional("replacement", &mark);
  reader->Optional("str_rep", &ignored);
  reader->Optional("add_prefix_space", &add_prefix_space);
  std::string scheme = add_prefix_space ? "always" : "never";
  reader->Optional("prepend_scheme", &scheme);
  reader->Optional("split", &splits);
  if (mark.empty()) {
    reader->Fail("replacement", "should be a character, but is empty");
  }
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    return UnsupportedTokenizer(reader->Where("prepend_scheme"),
                                QuotedName(scheme), "always, first or never");
  }
  all->steps.push_back(
      std::make_unique<Metaspace>(mark,
                                  scheme == "always"  ? PrependScheme::kAlways
                                  : scheme == "first" ? PrependScheme::kFirst
                                                      : PrependScheme::kNever,
                                  splits));
  all->word_mark = mark;
  return absl::OkStatus();
}

absl::Status ReadSplit(JsonObjectReader* reader, PreTokenizers* all) {
  Behavior behavior = Behavior::kIsolated;
  bool invert = false;
  const json* pattern = reader->Raw("pattern", /*required=*/true);
  reader->Optional("invert", &invert);
  ETC_RETURN_IF_ERROR(ReadBehavior(reader, &behavior));
  if (pattern == nullptr) {
    return absl::OkStatus();  // the reader has the mistake
  }
  ETC_ASSIGN_OR_RETURN(auto read,
                       ReadPattern(*pattern, reader->Where("pattern")));
  all->steps.push_back(
      std::make_unique<PatternSplit>(std::move(read), behavior, invert));
  return absl::OkStatus();
}

absl::Status ReadCharDelimiterSplit(JsonObjectReader* reader,
                                    PreTokenizers* all) {
  std::string delimiter;
  reader->Required("delimiter", &delimiter);
  ETC_ASSIGN_OR_RETURN(auto pattern, ReadPattern({{"String", delimiter}},
                                                 reader->Where("delimiter")));
  all->steps.push_back(std::make_unique<PatternSplit>(
      std::move(pattern), Behavior::kRemoved, /*invert=*/false));
  return absl::OkStatus();
}

absl::Status ReadDigits(JsonObjectReader* reader, PreTokenizers* all) {
  bool individual = false;
  reader->Optional("individual_digits", &individual);
  all->steps.push_back(std::make_unique<CharacterSplit>(
      IsNumber, individual ? Behavior::kIsolated : Behavior::kContiguous));
  return absl::OkStatus();
}

absl::Status ReadPunctuation(JsonObjectReader* reader, PreTokenizers* all) {
  Behavior behavior = Behavior::kIsolated;
  ETC_RETURN_IF_ERROR(ReadBehavior(reader, &behavior));
  all->steps.push_back(
      std::make_unique<CharacterSplit>(IsPunctuation, behavior));
  return absl::OkStatus();
}

absl::Status ReadBertSplits(JsonObjectReader* /*reader*/, PreTokenizers* all) {
  all->steps.push_back(
      std::make_unique<CharacterSplit>(IsWhiteSpace, Behavior::kRemoved));
  all->steps.push_back(
      std::make_unique<CharacterSplit>(IsPunctuation, Behavior::kIsolated));
  return absl::OkStatus();
}

absl::Status ReadWhitespace(JsonObjectReader* /*reader*/, PreTokenizers* all) {
  all->steps.push_back(std::make_unique<WhitespaceWords>());
  return absl::OkStatus();
}

absl::Status ReadWhitespaceSplit(JsonObjectReader* /*reader*/,
                                 PreTokenizers* all) {
  all->steps.push_back(
      std::make_unique<CharacterSplit>(IsWhiteSpace, Behavior::kRemoved));
  return absl::OkStatus();
}

absl::Status ReadStep(const json& object, const std::string& where,
                      PreTokenizers* all);

absl::Status ReadSequence(JsonObjectReader* reader, PreTokenizers* all) {
  const json* list = reader->Raw("pretokenizers", /*required=*/true);
  if (list == nullptr || !list->is_array()) {
    reader->Fail("pretokenizers", "should be a list");
    return absl::OkStatus();
  }
  for (size_t i = 0; i < list->size(); ++i) {
    ETC_RETURN_IF_ERROR(ReadStep(
        (*list)[i], absl::StrCat(reader->Where("pretokenizers"), "[", i, "]"),
        all));
  }
  return absl::OkStatus();
}

absl::Status ReadStep(const json& object, const std::string& where,
                      PreTokenizers* all) {
  using Reader = absl::Status (*)(JsonObjectReader*, PreTokenizers*);
  static constexpr std::pair<const char*, Reader> kTypes[] = {
      {"BertPreTokenizer", ReadBertSplits},
      {"ByteLevel", ReadByteLevel},
      {"CharDelimiterSplit", ReadCharDelimiterSplit},
      {"Digits", ReadDigits},
      {"Metaspace", ReadMetaspace},
      {"Punctuation", ReadPunctuation},
      {"Sequence", ReadSequence},
      {"Split", ReadSplit},
      {"Whitespace", ReadWhitespace},
      {"WhitespaceSplit", ReadWhitespaceSplit}};
  JsonObjectReader reader(object, where);
  std::string type;
  reader.Required("type", &type);
  ETC_RETURN_IF_ERROR(reader.status());
  if (all->is_byte_level) {
    return absl::UnimplementedError(
        absl::StrCat(where, " is ", QuotedName(type),
                     ", but nothing is supported behind ByteLevel"));
  }
  return ReadPartOfType(kTypes, type, "pre-tokenizer", &reader, all);
}

}  // namespace

absl::StatusOr<PreTokenizers> ReadPreTokenizers(const json& object,
                                                const std::string& where) {
  PreTokenizers all;
  ETC_RETURN_IF_ERROR(ReadStep(object, where, &all));
  return all;
}

}  // namespace etc::huggingface

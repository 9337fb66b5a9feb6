#include "etc/weights/byte_level_files.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/roberta_vocabulary.h"
#include "etc/weights/source_config.h"
#include "etc/weights/tokenizer_statements.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using nlohmann::json;

constexpr char kVocabJson[] = "vocab.json";
constexpr char kMergesTxt[] = "merges.txt";

// Classes of transformers with this tokenizer, without the suffix "Fast".
constexpr std::array<const char*, 5> kTokenizerClasses = {
    "GPT2Tokenizer", "RobertaTokenizer", "BartTokenizer", "LongformerTokenizer",
    "LEDTokenizer"};

absl::Status CheckVocabulary(const json& vocabulary, const std::string& path) {
  if (!vocabulary.is_object()) {
    return InvalidArgument(path, " should be an object of pieces, but is ",
                           vocabulary.type_name());
  }
  for (const auto& [piece, id] : vocabulary.items()) {
    ETC_RETURN_IF_ERROR(CheckTokenId(id, piece, path));
  }
  for (int byte = 0; byte < 256; ++byte) {
    const std::string& piece = ByteCharacter(static_cast<uint8_t>(byte));
    if (!vocabulary.contains(piece)) {
      return absl::UnimplementedError(absl::StrCat(
          path, " should have a piece for each byte, but has none for byte ",
          byte, " (", QuotedName(piece),
          "), and other vocabularies with merges.txt are not supported"));
    }
  }
  return vocabulary.contains("a</w>")
             ? UnsupportedTokenizer(path, "marked at ends of words (\"a</w>\")",
                                    "a vocabulary as GPT-2 and RoBERTa have it")
             : absl::OkStatus();
}

// Lines of a file of merges as the field "merges" of a tokenizer.json.
absl::StatusOr<json> ReadMerges(const std::string& path, const json& vocabulary,
                                const std::string& vocabulary_path) {
  ETC_ASSIGN_OR_RETURN(const std::string contents,
                       ReadFile(path, kMostVocabularyBytes));
  std::vector<absl::string_view> lines = absl::StrSplit(contents, '\n');
  while (!lines.empty() && (lines.back().empty() || lines.back() == "\r")) {
    lines.pop_back();
  }
  json merges = json::array();
  for (size_t i = 0; i < lines.size(); ++i) {
    const absl::string_view line = absl::StripSuffix(lines[i], "\r");
    if (absl::StartsWith(line, "#version")) {
      continue;
    }
    const std::string where = absl::StrCat(path, ":", i + 1);
    const std::vector<std::string> halves = absl::StrSplit(line, ' ');
    if (halves.size() != 2 || halves[0].empty() || halves[1].empty()) {
      return InvalidArgument(
          where, ": a merge should be two pieces with a space between, but is ",
          QuotedName(line));
    }
    for (const std::string& piece :
         {halves[0], halves[1], halves[0] + halves[1]}) {
      if (!vocabulary.contains(piece)) {
        return InvalidArgument(where, " merges ", QuotedName(halves[0]),
                               " and ", QuotedName(halves[1]), ", but ",
                               QuotedName(piece), " is no piece of ",
                               vocabulary_path);
      }
    }
    merges.push_back(halves);
  }
  return merges;
}

// Statements of the files beside a vocabulary.
struct Statements {
  bool add_prefix_space = false;
  std::vector<StatedToken> added_tokens;
};

absl::Status ReadTokenizerConfig(const std::string& path,
                                 Statements* statements) {
  ETC_ASSIGN_OR_RETURN(const json contents, ReadJsonFile(path));
  JsonObjectReader reader(contents, path);
  std::string name;
  if (reader.Given("tokenizer_class") != nullptr) {
    reader.Optional("tokenizer_class", &name);
  }
  if (reader.Given("add_prefix_space") != nullptr) {
    reader.Optional("add_prefix_space", &statements->add_prefix_space);
  }
  ETC_RETURN_IF_ERROR(reader.status());
  const absl::string_view plain = absl::StripSuffix(name, "Fast");
  if (!name.empty() &&
      std::find(kTokenizerClasses.begin(), kTokenizerClasses.end(), plain) ==
          kTokenizerClasses.end()) {
    return UnsupportedTokenizer(
        reader.Where("tokenizer_class"), QuotedName(name),
        "GPT2Tokenizer, RobertaTokenizer, BartTokenizer, LongformerTokenizer "
        "or LEDTokenizer with vocab.json and merges.txt");
  }
  return ReadAddedTokensDecoder(&reader, &statements->added_tokens);
}

absl::StatusOr<Statements> ReadStatements(const std::string& vocabulary) {
  Statements statements;
  if (const std::string path =
          FileBesideWeights(vocabulary, kTokenizerConfigFile);
      !path.empty()) {
    ETC_RETURN_IF_ERROR(ReadTokenizerConfig(path, &statements));
  }
  if (const std::string path =
          FileBesideWeights(vocabulary, "added_tokens.json");
      !path.empty()) {
    ETC_RETURN_IF_ERROR(ReadAddedTokensFile(path, &statements.added_tokens));
  }
  return statements;
}

bool IsRoberta(const json& vocabulary) {
  return vocabulary.contains("<s>") && vocabulary.contains("</s>");
}

// Adds the special pieces that the vocabulary has and no file states.
void AddSpecialTokens(const json& vocabulary,
                      std::vector<StatedToken>* added_tokens) {
  const std::vector<std::string> names =
      IsRoberta(vocabulary)
          ? std::vector<std::string>{"<s>", "<pad>", "</s>", "<unk>", "<mask>"}
          : std::vector<std::string>{"<|endoftext|>"};
  for (const std::string& name : names) {
    const auto id = vocabulary.find(name);
    if (id != vocabulary.end() &&
        std::none_of(added_tokens->begin(), added_tokens->end(),
                     [&name](const StatedToken& stated) {
                       return stated.token.content == name;
                     })) {
      StatedToken added;
      added.token = {.id = id->get<int64_t>(),
                     .content = name,
                     .lstrip = name == "<mask>",
                     .special = true};
      added_tokens->push_back(std::move(added));
    }
  }
}

// The field "added_tokens" of a tokenizer.json: tokens in the order of ids.
json AddedTokensField(std::vector<StatedToken> tokens) {
  std::sort(tokens.begin(), tokens.end(),
            [](const StatedToken& a, const StatedToken& b) {
              return a.token.id < b.token.id;
            });
  json field = json::array();
  for (const StatedToken& stated : tokens) {
    const AddedToken& token = stated.token;
    field.push_back({{"id", token.id},
                     {"content", token.content},
                     {"single_word", token.single_word},
                     {"lstrip", token.lstrip},
                     {"rstrip", token.rstrip},
                     {"normalized", token.normalized},
                     {"special", token.special}});
  }
  return field;
}

// The tokenizer.json that is equivalent to a vocab.json with its merges.
absl::StatusOr<json> EquivalentTokenizerJson(json vocabulary,
                                             const std::string& path) {
  const std::string merges_path = MergesOf(path);
  ETC_ASSIGN_OR_RETURN(const bool has_merges, EntryExists(merges_path));
  if (!has_merges) {
    return InvalidArgument(path, " should have its merges beside it, in ",
                           merges_path, ", but there is no such file");
  }
  ETC_ASSIGN_OR_RETURN(Statements statements, ReadStatements(path));
  ETC_RETURN_IF_ERROR(CheckVocabulary(vocabulary, path));
  ETC_ASSIGN_OR_RETURN(json merges, ReadMerges(merges_path, vocabulary, path));
  AddSpecialTokens(vocabulary, &statements.added_tokens);
  json contents = {{"version", "1.0"},
                   {"truncation", nullptr},
                   {"padding", nullptr},
                   {"added_tokens", AddedTokensField(statements.added_tokens)},
                   {"normalizer", nullptr},
                   {"pre_tokenizer",
                    {{"type", "ByteLevel"},
                     {"add_prefix_space", statements.add_prefix_space},
                     {"trim_offsets", true},
                     {"use_regex", true}}},
                   {"post_processor", nullptr},
                   {"decoder",
                    {{"type", "ByteLevel"},
                     {"add_prefix_space", true},
                     {"trim_offsets", true},
                     {"use_regex", true}}}};
  if (IsRoberta(vocabulary)) {
    contents["post_processor"] = {
        {"type", "RobertaProcessing"},
        {"sep", {"</s>", vocabulary["</s>"]}},
        {"cls", {"<s>", vocabulary["<s>"]}},
        {"trim_offsets", true},
        {"add_prefix_space", statements.add_prefix_space}};
  }
  contents["model"] = {{"type", "BPE"},
                       {"dropout", nullptr},
                       {"unk_token", nullptr},
                       {"continuing_subword_prefix", ""},
                       {"end_of_word_suffix", ""},
                       {"fuse_unk", false},
                       {"byte_fallback", false},
                       {"ignore_merges", false},
                       {"vocab", std::move(vocabulary)},
                       {"merges", std::move(merges)}};
  return contents;
}

}  // namespace

std::string MergesOf(const std::string& vocabulary) {
  return absl::EndsWith(vocabulary, kVocabJson)
             ? absl::StrCat(absl::StripSuffix(vocabulary, kVocabJson),
                            kMergesTxt)
             : "";
}

absl::StatusOr<std::string> FindByteLevelFiles(const std::string& path) {
  std::string vocabulary = FileBesideWeights(path, kVocabJson);
  const std::string merges = FileBesideWeights(path, kMergesTxt);
  if (vocabulary.empty() != merges.empty()) {
    return InvalidArgument(
        vocabulary.empty() ? merges : vocabulary, " should have ",
        vocabulary.empty() ? kVocabJson : kMergesTxt,
        " beside it, as both are needed, but there is no such file");
  }
  return vocabulary;
}

absl::StatusOr<json> ReadTokenizerJsonOrByteLevel(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(json contents, ReadJsonFile(path));
  // "model" is a word in a vocab.json, too, but one with a number.
  const bool is_tokenizer_json = contents.is_object() &&
                                 contents.contains("model") &&
                                 contents["model"].is_object();
  if (MergesOf(path).empty() || is_tokenizer_json) {
    return contents;
  }
  return EquivalentTokenizerJson(std::move(contents), path);
}

}  // namespace etc

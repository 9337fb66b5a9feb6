#include "etc/weights/source_files.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "etc/weights/bert_config.h"
#include "etc/weights/tokenizer_json.h"
#include "etc/weights/weight_plan.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

namespace fs = std::filesystem;

struct VocabularyName {
  const char* type;
  const char* file;
};

// Ours and BERT's, official ETC's (formats spec 2.8), HuggingFace's.
constexpr VocabularyName kVocabularies[] = {
    {"wordpiece", "vocab.txt"},
    {"sentencepiece", "tokenizer.model"},
    {"wordpiece", "vocab_bert_uncased_english.txt"},
    {"sentencepiece", "vocab_gpt_for_etc.model"},
    {"sentencepiece", "spiece.model"},
    {"sentencepiece", "sentencepiece.bpe.model"},
};

constexpr char kTokenizerJson[] = "tokenizer.json";
constexpr char kTokenizerConfig[] = "tokenizer_config.json";
constexpr char kSplitPunctuation[] = "split_punctuation";

fs::path DirectoryOf(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) ? fs::path(path)
                                         : fs::path(path).parent_path();
}

absl::Status ReadTokenizerOptions(const std::string& file,
                                  TokenizerFiles* tokenizer) {
  ETC_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonFile(file));
  JsonObjectReader reader(json, file);
  reader.Optional("do_lower_case", &tokenizer->lower_case);
  reader.Optional(kSplitPunctuation, &tokenizer->split_punctuation);
  return reader.Finish(JsonObjectReader::UnknownFields::kIgnore);
}

// Takes the vocabulary of `file`, or says why it cannot be used.
absl::Status TakeTokenizerJson(const std::string& file,
                               TokenizerFiles* tokenizer) {
  const absl::StatusOr<WordPieceFile> read = ReadTokenizerJson(file);
  if (absl::IsUnimplemented(read.status())) {
    tokenizer->unsupported = std::string(read.status().message());
    return absl::OkStatus();
  }
  ETC_RETURN_IF_ERROR(read.status());
  tokenizer->type = "wordpiece";
  tokenizer->vocabulary = file;
  tokenizer->lower_case = read->lower_case;
  return absl::OkStatus();
}

}  // namespace

std::string VocabularyFileName(const std::string& tokenizer_type) {
  return tokenizer_type == "sentencepiece" ? "tokenizer.model" : "vocab.txt";
}

absl::StatusOr<std::string> ReadVocabulary(const std::string& path) {
  if (!absl::EndsWith(path, ".json")) {
    return ReadFile(path);
  }
  ETC_ASSIGN_OR_RETURN(WordPieceFile file, ReadTokenizerJson(path));
  return std::move(file.vocabulary);
}

std::string FileBesideWeights(const std::string& path,
                              const std::string& name) {
  const fs::path file = DirectoryOf(path) / name;
  std::error_code ignored;
  return fs::exists(file, ignored) ? file.string() : "";
}

absl::StatusOr<TokenizerFiles> FindTokenizer(const std::string& path) {
  TokenizerFiles tokenizer;
  for (const VocabularyName& name : kVocabularies) {
    tokenizer.vocabulary = FileBesideWeights(path, name.file);
    if (!tokenizer.vocabulary.empty()) {
      tokenizer.type = name.type;
      break;
    }
  }
  const std::string tokenizer_json = FileBesideWeights(path, kTokenizerJson);
  if (tokenizer.type.empty() && !tokenizer_json.empty()) {
    ETC_RETURN_IF_ERROR(TakeTokenizerJson(tokenizer_json, &tokenizer));
  }
  const std::string options = FileBesideWeights(path, kTokenizerConfig);
  if (!options.empty()) {
    ETC_RETURN_IF_ERROR(ReadTokenizerOptions(options, &tokenizer));
  } else if (tokenizer.type == "sentencepiece") {
    tokenizer.split_punctuation = absl::StrContains(
        fs::absolute(DirectoryOf(path)).string(), kSplitPunctuation);
  }
  return tokenizer;
}

absl::Status WriteTokenizer(const TokenizerFiles& tokenizer,
                            const std::string& vocabulary,
                            const std::string& directory) {
  if (tokenizer.type.empty()) {
    return absl::OkStatus();
  }
  ETC_RETURN_IF_ERROR(WriteFileAtomically(
      absl::StrCat(directory, "/", VocabularyFileName(tokenizer.type)),
      vocabulary));
  const nlohmann::json options = {
      {"do_lower_case", tokenizer.lower_case},
      {kSplitPunctuation, tokenizer.split_punctuation}};
  return WriteFileAtomically(absl::StrCat(directory, "/", kTokenizerConfig),
                             options.dump(/*indent=*/2) + "\n");
}

absl::StatusOr<SourceConfig> ReadSourceConfig(const std::string& path) {
  SourceConfig source;
  source.path = FileBesideWeights(path, "etc_config.json");
  if (!source.path.empty()) {
    std::vector<std::string> unknown_fields;
    ETC_ASSIGN_OR_RETURN(source.config,
                         ReadEtcConfig(source.path, &unknown_fields));
    for (const std::string& field : unknown_fields) {
      source.warnings.push_back(absl::StrCat(source.path, ": unknown field \"",
                                             field, "\" is ignored"));
    }
    return source;
  }
  return ReadBertSourceConfig(path);
}

absl::StatusOr<SourceConfig> ReadBertSourceConfig(const std::string& path) {
  SourceConfig source;
  for (const char* name : {"bert_config.json", "config.json"}) {
    source.path = FileBesideWeights(path, name);
    if (source.path.empty()) {
      continue;
    }
    ETC_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonFile(source.path));
    ETC_ASSIGN_OR_RETURN(BertConfig bert,
                         BertConfigFromJson(json, source.path));
    source.config = std::move(bert.config);
    source.first_position = bert.first_position;
    source.is_bert = true;
    return source;
  }
  // What is not there itself may be the prefix of a TensorFlow checkpoint.
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored) &&
      !std::filesystem::exists(path + ".index", ignored)) {
    return absl::NotFoundError(
        absl::StrCat(path, ": there is no such file or directory"));
  }
  return absl::NotFoundError(absl::StrCat(
      path,
      ": there is no etc_config.json, bert_config.json or config.json "
      "with the weights"));
}

EtcConfig InitialConfig(const SourceConfig& source) {
  return HasOnlyAbsolutePositions(source.config) ? LiftedConfig(source.config)
                                                 : source.config;
}

}  // namespace etc

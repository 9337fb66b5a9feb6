#include "etc/weights/tokenizer_files.h"

#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/weights/source_config.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using nlohmann::json;

constexpr auto kIgnoreOthers = JsonObjectReader::UnknownFields::kIgnore;

// A field, or nullptr if it is not there or null.
const json* GivenField(JsonObjectReader* reader, const std::string& field) {
  const json* value = reader->Raw(field, /*required=*/false);
  return value == nullptr || value->is_null() ? nullptr : value;
}

// --- What is not supported --------------------------------------------------

// What to do about a model of the type `type`.
std::string Advice(const std::string& type) {
  if (type == "Unigram") {
    return "; its SentencePiece model (spiece.model or "
           "sentencepiece.bpe.model) is understood";
  }
  return type == "BPE" ? "; for RoBERTa give the SentencePiece vocabulary that "
                         "its embeddings are to be matched to, with --lift and "
                         "--vocabulary"
                       : "";
}

absl::Status Unsupported(const std::string& where, absl::string_view found,
                         absl::string_view expected,
                         const std::string& advice = "") {
  return absl::UnimplementedError(absl::StrCat(
      where, " is ", found, ", but only ", expected, " is supported", advice));
}

// Whether the object has the type that BERT's tokenizer has there.
absl::Status CheckType(const json& object, const std::string& where,
                       const std::string& expected) {
  JsonObjectReader reader(object, where);
  std::string type;
  reader.Required("type", &type);
  ETC_RETURN_IF_ERROR(reader.Finish(kIgnoreOthers));
  return type == expected
             ? absl::OkStatus()
             : Unsupported(reader.Where("type"), QuotedName(type), expected);
}

// --- The parts of tokenizer.json ---------------------------------------------

// Where text is folded. Without a normalizer it is not.
absl::StatusOr<bool> ReadLowerCase(JsonObjectReader* file) {
  const json* normalizer = GivenField(file, "normalizer");
  if (normalizer == nullptr) {
    return false;
  }
  const std::string where = file->Where("normalizer");
  ETC_RETURN_IF_ERROR(CheckType(*normalizer, where, "BertNormalizer"));
  JsonObjectReader reader(*normalizer, where);
  bool clean_text = true;
  bool handle_chinese_chars = true;
  bool lowercase = true;
  reader.Optional("clean_text", &clean_text);
  reader.Optional("handle_chinese_chars", &handle_chinese_chars);
  reader.Optional("lowercase", &lowercase);
  // Null means the value of lowercase.
  bool strip_accents = lowercase;
  if (GivenField(&reader, "strip_accents") != nullptr) {
    reader.Optional("strip_accents", &strip_accents);
  }
  ETC_RETURN_IF_ERROR(reader.Finish(kIgnoreOthers));
  if (!clean_text || !handle_chinese_chars) {
    return Unsupported(
        reader.Where(clean_text ? "handle_chinese_chars" : "clean_text"),
        "false", "true");
  }
  if (strip_accents != lowercase) {
    return Unsupported(reader.Where("strip_accents"),
                       strip_accents ? "true" : "false",
                       "what \"lowercase\" is, or null,");
  }
  return lowercase;
}

// The pieces by their ids.
class Pieces {
 public:
  // There are at most `most` of them, which bounds the memory that an id can
  // ask for.
  explicit Pieces(size_t most) : most_(most) {}

  absl::Status Add(const std::string& where, const std::string& piece,
                   const json& id) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= most_) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": the id of ", QuotedName(piece),
                       " should be a whole number from 0 to ", most_ - 1,
                       ", for there are ", most_, " pieces, but is ",
                       id.is_number() ? JsonText(id) : id.type_name()));
    }
    const auto index = id.get<size_t>();
    if (piece.empty() || piece.find_first_of("\r\n") != std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": ", QuotedName(piece), " (id ", index,
                       ") cannot be a line of a vocabulary"));
    }
    if (index >= pieces_.size()) {
      pieces_.resize(index + 1);
    }
    if (pieces_[index].has_value() && *pieces_[index] != piece) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": id ", index, " is that of ", QuotedName(*pieces_[index]),
          " and of ", QuotedName(piece)));
    }
    pieces_[index] = piece;
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> ToLines(const std::string& where) const {
    std::string lines;
    for (size_t id = 0; id < pieces_.size(); ++id) {
      if (!pieces_[id].has_value()) {
        return absl::InvalidArgumentError(
            absl::StrCat(where, ": ids should be those from 0 to ",
                         pieces_.size() - 1, ", but there is no ", id));
      }
      absl::StrAppend(&lines, *pieces_[id], "\n");
    }
    return lines;
  }

 private:
  const size_t most_;
  std::vector<std::optional<std::string>> pieces_;
};

// The field "vocab" of the model, an object.
absl::StatusOr<const json*> ModelVocabulary(const json& model,
                                            const std::string& where) {
  JsonObjectReader reader(model, where);
  std::string prefix = "##";
  std::string unknown = "[UNK]";
  reader.Optional("continuing_subword_prefix", &prefix);
  reader.Optional("unk_token", &unknown);
  const json* vocabulary = reader.Raw("vocab", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader.Finish(kIgnoreOthers));
  if (prefix != "##") {
    return Unsupported(reader.Where("continuing_subword_prefix"),
                       QuotedName(prefix), "\"##\"");
  }
  if (unknown != "[UNK]") {
    return Unsupported(reader.Where("unk_token"), QuotedName(unknown),
                       "\"[UNK]\"");
  }
  JsonObjectReader vocabulary_reader(*vocabulary, reader.Where("vocab"));
  ETC_RETURN_IF_ERROR(vocabulary_reader.Finish(kIgnoreOthers));
  return vocabulary;
}

// A piece that was added behind the model's, or is one of them.
absl::Status AddSpecialPiece(const json& added, const std::string& where,
                             const json& vocabulary, Pieces* pieces) {
  JsonObjectReader reader(added, where);
  std::string content;
  reader.Required("content", &content);
  const json* id = reader.Raw("id", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader.Finish(kIgnoreOthers));
  const auto same = vocabulary.find(content);
  if (same != vocabulary.end() && *same != *id) {
    return absl::InvalidArgumentError(absl::StrCat(
        reader.Where("id"), " of ", QuotedName(content), " should be ",
        JsonText(*same), ", as in model.vocab, but is ", JsonText(*id)));
  }
  return pieces->Add(where, content, *id);
}

absl::StatusOr<std::string> ReadLines(JsonObjectReader* file,
                                      const json& vocabulary) {
  const json* added = GivenField(file, "added_tokens");
  const std::string where = file->Where("added_tokens");
  if (added != nullptr && !added->is_array()) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, " should be an array, but is ", added->type_name()));
  }
  const size_t num_added = added == nullptr ? 0 : added->size();
  Pieces pieces(vocabulary.size() + num_added);
  const std::string model_where = file->Where("model.vocab");
  for (const auto& [piece, id] : vocabulary.items()) {
    ETC_RETURN_IF_ERROR(pieces.Add(model_where, piece, id));
  }
  for (size_t i = 0; i < num_added; ++i) {
    ETC_RETURN_IF_ERROR(AddSpecialPiece(
        (*added)[i], absl::StrCat(where, "[", i, "]"), vocabulary, &pieces));
  }
  return pieces.ToLines(model_where);
}

// Old files leave the type out.
absl::Status CheckModelType(const json& model, const std::string& where) {
  JsonObjectReader reader(model, where);
  std::string type;
  if (reader.Has("vocab") && reader.Has("continuing_subword_prefix") &&
      !reader.Has("merges")) {
    type = "WordPiece";
    reader.Optional("type", &type);
  } else {
    reader.Required("type", &type);
  }
  ETC_RETURN_IF_ERROR(reader.Finish(kIgnoreOthers));
  return type == "WordPiece"
             ? absl::OkStatus()
             : Unsupported(reader.Where("type"), QuotedName(type),
                           "\"WordPiece\"", Advice(type));
}

// --- The files -------------------------------------------------------------

struct VocabularyName {
  const char* type;
  const char* file;
};

// Ours and BERT's, official ETC's (doc/formats.md 2.8), HuggingFace's.
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

absl::Status ReadTokenizerOptions(const std::string& file,
                                  TokenizerFiles* tokenizer) {
  ETC_ASSIGN_OR_RETURN(const json contents, ReadJsonFile(file));
  JsonObjectReader reader(contents, file);
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

absl::StatusOr<WordPieceFile> ReadTokenizerJson(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const json contents, ReadJsonFile(path));
  JsonObjectReader reader(contents, path);
  const json* model = reader.Raw("model", /*required=*/true);
  ETC_RETURN_IF_ERROR(reader.Finish(kIgnoreOthers));
  const std::string where = reader.Where("model");
  ETC_RETURN_IF_ERROR(CheckModelType(*model, where));
  if (const json* splitter = GivenField(&reader, "pre_tokenizer")) {
    ETC_RETURN_IF_ERROR(CheckType(*splitter, reader.Where("pre_tokenizer"),
                                  "BertPreTokenizer"));
  }
  WordPieceFile file;
  ETC_ASSIGN_OR_RETURN(file.lower_case, ReadLowerCase(&reader));
  ETC_ASSIGN_OR_RETURN(const json* vocabulary, ModelVocabulary(*model, where));
  ETC_ASSIGN_OR_RETURN(file.vocabulary, ReadLines(&reader, *vocabulary));
  return file;
}

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
        std::filesystem::absolute(tokenizer.vocabulary).parent_path().string(),
        kSplitPunctuation);
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
                             JsonText(options, /*indent=*/2) + "\n");
}

}  // namespace etc

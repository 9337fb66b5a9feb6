#include "tasks/commands/translation_weights.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "etc/encoder_decoder/admin_omegas.h"
#include "etc/encoder_decoder/config.h"
#include "etc/encoder_decoder/fairseq_checkpoint.h"
#include "etc/encoder_decoder/model.h"
#include "etc/weights/checkpoint.h"
#include "nlohmann/json.hpp"
#include "tasks/commands/console.h"
#include "tasks/text/sentencepiece_loader.h"
#include "tasks/text/tokenizer.h"

namespace etc {
namespace {

namespace fs = std::filesystem;

constexpr char kModelJson[] = "encoder_decoder.json";
constexpr char kModelWeights[] = "model.safetensors";
constexpr char kFairseqFile[] = "model.pt";
constexpr char kDictionary[] = "dict.txt";
constexpr char kPieces[] = "tokenizer.model";
// <s>, <pad>, </s> and <unk>, which are in no dict.txt.
constexpr int64_t kSpecials = 4;

std::string In(const std::string& directory, const char* name) {
  return absl::StrCat(directory, "/", name);
}

bool IsFile(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

absl::Status CheckAbsent(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored)
             ? absl::AlreadyExistsError(absl::StrCat(
                   path, " is there already: choose another directory"))
             : absl::OkStatus();
}

// A vocabulary as it stands in a file.
struct VocabularyFile {
  std::string name;  // kDictionary or kPieces; empty: none
  std::string contents;
  int64_t entries = 0;  // ids, those of special pieces among them
};

absl::StatusOr<VocabularyFile> ReadTranslationVocabulary(
    const std::string& path) {
  VocabularyFile file;
  if (path.empty()) {
    return file;
  }
  ETC_ASSIGN_OR_RETURN(file.contents, ReadFile(path, kMaxVocabularyBytes));
  if (absl::EndsWith(path, ".model")) {
    ETC_ASSIGN_OR_RETURN(const SentencePieceModelPtr model,
                         LoadSentencePieceModel(file.contents, path));
    file.name = kPieces;
    file.entries = model->size();
    return file;
  }
  file.name = kDictionary;
  file.entries =
      kSpecials + std::count(file.contents.begin(), file.contents.end(), '\n');
  return file;
}

// The lines "<piece> 1" of a SentencePiece model, as fairseq's dict.txt.
absl::StatusOr<std::string> DictionaryOf(const VocabularyFile& vocabulary,
                                         const std::string& source,
                                         int64_t rows) {
  if (vocabulary.name == kDictionary) {
    return vocabulary.contents;
  }
  ETC_ASSIGN_OR_RETURN(const SentencePieceModelPtr model,
                       LoadSentencePieceModel(vocabulary.contents, source));
  std::string lines;
  for (int64_t id = kSpecials; id < model->size(); ++id) {
    size_t size = 0;
    const char* text = model->Piece(static_cast<int32_t>(id), &size);
    absl::StrAppend(&lines, absl::string_view(text, size), " 1\n");
  }
  // Rows beyond the pieces, as fairseq names them.
  for (int64_t i = 0; i < rows - model->size(); ++i) {
    const std::string number = absl::StrCat(i);
    absl::StrAppend(&lines, "madeupword",
                    std::string(number.size() < 4 ? 4 - number.size() : 0, '0'),
                    number, " 0\n");
  }
  return lines;
}

absl::StatusOr<EncoderDecoder> LoadEncoderDecoder(
    const std::string& directory) {
  const std::string path = In(directory, kModelJson);
  ETC_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJsonFile(path));
  ETC_ASSIGN_OR_RETURN(const EncoderDecoderConfig config,
                       EncoderDecoderConfigFromJson(json, path));
  if (config.vocab_size == 0) {
    return InvalidArgument(path, ": vocab_size should be given");
  }
  EncoderDecoder model(config);
  ETC_ASSIGN_OR_RETURN(const TensorReader reader,
                       TensorReader::Open(In(directory, kModelWeights)));
  ETC_RETURN_IF_ERROR(
      LoadTensors(reader, ModuleTensors(*model), NameMatch::kBoth).status());
  model->eval();
  return model;
}

void PrintModel(const EncoderDecoderConfig& config) {
  std::cout << "encoder-decoder: " << config.num_encoder_layers << " and "
            << config.num_decoder_layers << " layers ("
            << config.encoder_sublayer << ", " << config.decoder_sublayer
            << "), hidden size " << config.hidden_size << ", "
            << Counted(config.num_attention_heads, "head") << ", "
            << FormatCount(config.vocab_size) << " rows, "
            << FormatCount(CountParameters(config))
            << " parameters; residual attention: encoder "
            << config.encoder_residual_attention << ", decoder "
            << config.decoder_residual_attention << ", cross "
            << config.cross_residual_attention << "\n";
}

}  // namespace

bool IsFairseqFile(const std::string& path) {
  const auto reader = TensorReader::Open(path);
  return reader.ok() && IsFairseqTranslation(*reader);
}

bool IsEncoderDecoder(const std::string& directory) {
  return IsFile(In(directory, kModelJson));
}

absl::Status ImportTranslation(const TranslationImport& arguments) {
  ETC_ASSIGN_OR_RETURN(
      const EncoderDecoder model,
      LoadFairseqCheckpoint(arguments.source, arguments.heads));
  const NamedTensors tensors = ModuleTensors(*model);
  ETC_RETURN_IF_ERROR(CheckFinite(arguments.source, tensors));
  std::string vocabulary = arguments.vocabulary;
  if (vocabulary.empty()) {
    const std::string beside =
        (fs::path(arguments.source).parent_path() / kDictionary).string();
    vocabulary = IsFile(beside) ? beside : "";
  }
  ETC_ASSIGN_OR_RETURN(const VocabularyFile file,
                       ReadTranslationVocabulary(vocabulary));
  const EncoderDecoderConfig& config = model->config();
  if (file.entries > config.vocab_size) {
    return InvalidArgument(vocabulary, ": should have at most ",
                           config.vocab_size, " ids, the rows of the model, ",
                           "but has ", file.entries);
  }
  PrintModel(config);
  if (file.name.empty()) {
    PrintWarnings({absl::StrCat(
        arguments.source,
        " has no dict.txt beside it; give a vocabulary with --vocabulary")});
  } else {
    std::cout << "vocabulary: " << vocabulary << ", "
              << FormatCount(file.entries) << " ids\n";
  }
  if (!arguments.directory.empty()) {
    ETC_RETURN_IF_ERROR(CheckAbsent(In(arguments.directory, kModelWeights)));
  }
  if (arguments.dry_run) {
    return absl::OkStatus();
  }
  ETC_RETURN_IF_ERROR(CreateDirectories(arguments.directory));
  if (!file.name.empty()) {
    ETC_RETURN_IF_ERROR(WriteFileAtomically(
        absl::StrCat(arguments.directory, "/", file.name), file.contents));
  }
  ETC_RETURN_IF_ERROR(WriteFileAtomically(In(arguments.directory, kModelJson),
                                          EncoderDecoderConfigToJson(config)));
  ETC_RETURN_IF_ERROR(WriteTensors(In(arguments.directory, kModelWeights),
                                   tensors, {{"format", "pt"}}));
  std::cout << "written: " << arguments.directory << "\n";
  return absl::OkStatus();
}

absl::Status ExportTranslation(const TranslationExport& arguments) {
  const std::string path = In(arguments.directory, kFairseqFile);
  ETC_RETURN_IF_ERROR(CheckAbsent(path));
  ETC_ASSIGN_OR_RETURN(EncoderDecoder model,
                       LoadEncoderDecoder(arguments.source));
  if (arguments.fold_omegas) {
    ETC_ASSIGN_OR_RETURN(model, FoldAdminOmegas(model));
  }
  std::string vocabulary;
  for (const char* const name : {kDictionary, kPieces}) {
    if (vocabulary.empty() && IsFile(In(arguments.source, name))) {
      vocabulary = In(arguments.source, name);
    }
  }
  ETC_ASSIGN_OR_RETURN(const VocabularyFile file,
                       ReadTranslationVocabulary(vocabulary));
  PrintModel(model->config());
  ETC_RETURN_IF_ERROR(CreateDirectories(arguments.directory));
  if (!file.name.empty()) {
    ETC_ASSIGN_OR_RETURN(
        const std::string lines,
        DictionaryOf(file, vocabulary, model->config().vocab_size));
    const std::string dictionary = In(arguments.directory, kDictionary);
    ETC_RETURN_IF_ERROR(WriteFileAtomically(dictionary, lines));
    std::cout << "written: " << dictionary << "\n";
  }
  ETC_RETURN_IF_ERROR(WriteFairseqCheckpoint(path, model));
  std::cout << "written: " << path << "\n";
  const EncoderDecoderConfig& config = model->config();
  if (config.encoder_residual_attention != "off" ||
      config.decoder_residual_attention != "off" ||
      config.cross_residual_attention != "off") {
    PrintWarnings(
        {"this model has residual attention scores, which fairseq does not "
         "compute: there its outputs are others"});
  }
  return absl::OkStatus();
}

}  // namespace etc

#include "tasks/commands/translation_weights.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/encoder_decoder/admin_omegas.h"
#include "etc/encoder_decoder/config.h"
#include "etc/encoder_decoder/fairseq_checkpoint.h"
#include "etc/encoder_decoder/model.h"
#include "etc/weights/checkpoint.h"
#include "etc/weights/source_config.h"
#include "etc/weights/tokenizer_files.h"
#include "etc/weights/tokenizer_statements.h"
#include "nlohmann/json.hpp"
#include "tasks/commands/console.h"
#include "tasks/config/config.h"
#include "tasks/translation/model.h"
#include "tasks/translation/options.h"
#include "tasks/translation/vocabulary.h"

namespace etc {
namespace {

namespace fs = std::filesystem;

constexpr char kModelWeights[] = "model.safetensors";
constexpr char kFairseqFile[] = "model.pt";
// Values of tokenizer.type.
constexpr char kDictionary[] = "dictionary";
constexpr char kSentencePiece[] = "sentencepiece";
// <s>, <pad>, </s> and <unk>, which are in no dict.txt.
constexpr int64_t kSpecials = 4;

std::string In(const std::string& directory, const char* name) {
  return absl::StrCat(directory, "/", name);
}

bool IsFile(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// The place in a directory for a vocabulary of a type.
std::string PathIn(const std::string& directory, const char* type) {
  return absl::StrCat(directory, "/", VocabularyFileName(type));
}

// A vocabulary with the file that it comes from.
struct VocabularyFile {
  std::string type;  // tokenizer.type; empty: none
  std::string contents;
  std::shared_ptr<const TranslationVocabulary> ids;
};

absl::StatusOr<VocabularyFile> ReadTranslationVocabulary(
    const std::string& path) {
  VocabularyFile file;
  if (path.empty()) {
    return file;
  }
  file.type = absl::EndsWith(path, ".model") ? kSentencePiece : kDictionary;
  ETC_ASSIGN_OR_RETURN(file.contents, ReadFile(path, kMostVocabularyBytes));
  ETC_ASSIGN_OR_RETURN(file.ids, LoadTranslationVocabulary(
                                     {.type = file.type, .vocabulary = path}));
  return file;
}

// Checks that a SentencePiece model has the ids of a dictionary beside it,
// which may have made-up words more.
absl::Status CheckSamePieces(const std::string& pieces,
                             const std::string& dictionary) {
  ETC_ASSIGN_OR_RETURN(const VocabularyFile model,
                       ReadTranslationVocabulary(pieces));
  ETC_ASSIGN_OR_RETURN(const VocabularyFile lines,
                       ReadTranslationVocabulary(dictionary));
  for (int64_t id = 0; id < model.ids->size(); ++id) {
    const std::string piece = model.ids->Piece(id);
    const std::string token = lines.ids->Piece(id);
    if (piece != token) {
      return InvalidArgument(pieces, ": piece ", id, " should be ",
                             QuotedName(token), ", as in ", dictionary,
                             ", but is ", QuotedName(piece),
                             "; `import --vocabulary` names the right one");
    }
  }
  return absl::OkStatus();
}

// The vocabulary beside a checkpoint; empty if there is none.
absl::StatusOr<std::string> VocabularyBeside(const std::string& source) {
  const absl::StatusOr<std::string> dictionary = DictionaryBeside(source);
  if (absl::IsInvalidArgument(dictionary.status())) {
    return InvalidArgument(dictionary.status().message(),
                           "; `import --vocabulary` names the right one");
  }
  const std::string pieces =
      FileBesideWeights(source, VocabularyFileName(kSentencePiece));
  if (!dictionary.ok() || pieces.empty()) {
    return dictionary;
  }
  if (!dictionary->empty()) {
    ETC_RETURN_IF_ERROR(CheckSamePieces(pieces, *dictionary));
  }
  return pieces;
}

// fairseq's dict.txt for a table of `rows`: that of the vocabulary, or of a
// SentencePiece model lines "<piece> 1", and a line for each row beyond.
std::string DictionaryOf(const VocabularyFile& vocabulary, int64_t rows) {
  std::set<std::string> pieces;
  std::string lines;
  for (int64_t id = kSpecials; id < vocabulary.ids->size(); ++id) {
    const std::string piece = vocabulary.ids->Piece(id);
    absl::StrAppend(&lines, piece, " 1\n");
    pieces.insert(piece);
  }
  if (vocabulary.type == kDictionary) {
    lines = vocabulary.contents;
    if (!absl::EndsWith(lines, "\n")) {
      lines += '\n';
    }
  }
  // fairseq names such rows so.
  int64_t missing = rows - vocabulary.ids->size();
  for (int64_t i = 0; missing > 0; ++i) {
    const std::string word =
        absl::StrCat("madeupword", absl::Dec(i, absl::kZeroPad4));
    if (pieces.insert(word).second) {
      absl::StrAppend(&lines, word, " 0\n");
      --missing;
    }
  }
  return lines;
}

// The configuration of a checkpoint that no run of ours has written: that of
// the model, and the defaults of fairseq's search.
absl::StatusOr<RunConfig> ConfigOfImport(const EncoderDecoderConfig& model,
                                         const std::string& tokenizer_type,
                                         const std::string& vocabulary,
                                         const std::string& source) {
  const TranslationOptions options;
  return RunConfigFromJson(
      {{"task", kTranslationTask},
       {"model", nlohmann::json::parse(EncoderDecoderConfigToJson(model))},
       {"tokenizer", {{"type", tokenizer_type}, {"vocabulary", vocabulary}}},
       {"translation",
        {{"beam_size", options.beam_size},
         {"length_penalty", options.length_penalty},
         {"max_length", options.max_length}}}},
      source);
}

// A model of ours in a directory, or fairseq's at `directory`.
absl::StatusOr<EncoderDecoder> LoadEncoderDecoder(
    const std::string& directory) {
  if (!IsEncoderDecoder(directory)) {
    return LoadFairseqCheckpoint(directory);
  }
  ETC_ASSIGN_OR_RETURN(const EncoderDecoderConfig config,
                       ReadEncoderDecoderConfig(directory));
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

// Prints the vocabulary of an import, or warns that it has none.
absl::Status CheckVocabulary(const VocabularyFile& file,
                             const std::string& path, const std::string& source,
                             int64_t rows) {
  if (file.type.empty()) {
    PrintWarnings({absl::StrCat(
        source,
        " has no dict.txt beside it, without which nothing can be translated; "
        "give a vocabulary with --vocabulary")});
    return absl::OkStatus();
  }
  // fairseq writes a line for each row; a SentencePiece model has no made-up
  // words.
  const bool is_dictionary = file.type == kDictionary;
  if (is_dictionary ? file.ids->size() != rows : file.ids->size() > rows) {
    return InvalidArgument(
        path, ": should have ", is_dictionary ? "" : "at most ", rows,
        " ids, the rows of the model, but has ", file.ids->size());
  }
  std::cout << "vocabulary: " << path << ", " << FormatCount(file.ids->size())
            << " ids\n";
  return absl::OkStatus();
}

// Writes a checkpoint; without a vocabulary the model alone, for `init`.
absl::Status WriteImported(const EncoderDecoder& model,
                           const VocabularyFile& file,
                           const std::string& vocabulary,
                           const TranslationImport& arguments) {
  const std::string& directory = arguments.directory;
  if (file.type.empty()) {
    ETC_RETURN_IF_ERROR(
        WriteFileAtomically(In(directory, kEncoderDecoderFile),
                            EncoderDecoderConfigToJson(model->config())));
    return WriteTensors(In(directory, kModelWeights), ModuleTensors(*model),
                        {{"format", "pt"}});
  }
  ETC_ASSIGN_OR_RETURN(
      const RunConfig config,
      ConfigOfImport(model->config(), file.type, vocabulary, arguments.source));
  const double smoothing = TranslationOptions().label_smoothing;
  return WriteTranslationModel(config, TranslationModel(model, smoothing),
                               file.contents, directory);
}

// Writes dict.txt, and of SentencePiece the model, which cuts text into its
// tokens.
absl::Status WriteVocabularies(const VocabularyFile& file, int64_t rows,
                               const std::string& directory) {
  if (file.type.empty()) {
    return absl::OkStatus();
  }
  const std::string path = PathIn(directory, kDictionary);
  ETC_RETURN_IF_ERROR(WriteFileAtomically(path, DictionaryOf(file, rows)));
  std::cout << "written: " << path << "\n";
  if (file.type == kSentencePiece) {
    const std::string pieces = PathIn(directory, kSentencePiece);
    ETC_RETURN_IF_ERROR(WriteFileAtomically(pieces, file.contents));
    std::cout << "written: " << pieces << "\n";
  }
  return absl::OkStatus();
}

}  // namespace

bool IsFairseqFile(const std::string& path) {
  const auto reader = TensorReader::Open(path);
  return reader.ok() && IsFairseqTranslation(*reader);
}

bool IsEncoderDecoder(const std::string& directory) {
  return IsFile(In(directory, kEncoderDecoderFile));
}

absl::Status PrintEncoderDecoder(const std::string& directory) {
  ETC_ASSIGN_OR_RETURN(const EncoderDecoderConfig config,
                       ReadEncoderDecoderConfig(directory));
  std::cout << "\n";
  PrintModel(config);
  std::cout << "\n"
            << In(directory, kEncoderDecoderFile) << ": "
            << EncoderDecoderConfigToJson(config);
  return absl::OkStatus();
}

absl::Status ImportTranslation(const TranslationImport& arguments) {
  ETC_ASSIGN_OR_RETURN(
      const EncoderDecoder model,
      LoadFairseqCheckpoint(arguments.source, arguments.heads));
  ETC_RETURN_IF_ERROR(CheckFinite(arguments.source, ModuleTensors(*model)));
  const EncoderDecoderConfig& config = model->config();
  std::string vocabulary = arguments.vocabulary;
  if (vocabulary.empty()) {
    ETC_ASSIGN_OR_RETURN(vocabulary, VocabularyBeside(arguments.source));
  }
  ETC_ASSIGN_OR_RETURN(const VocabularyFile file,
                       ReadTranslationVocabulary(vocabulary));
  PrintModel(config);
  ETC_RETURN_IF_ERROR(
      CheckVocabulary(file, vocabulary, arguments.source, config.vocab_size));
  if (arguments.dry_run) {
    return absl::OkStatus();
  }
  ETC_RETURN_IF_ERROR(CreateDirectories(arguments.directory));
  ETC_RETURN_IF_ERROR(WriteImported(model, file, vocabulary, arguments));
  std::cout << "written: " << arguments.directory << "\n";
  return absl::OkStatus();
}

absl::Status ExportTranslation(const TranslationExport& arguments) {
  ETC_ASSIGN_OR_RETURN(EncoderDecoder model,
                       LoadEncoderDecoder(arguments.source));
  if (arguments.fold_omegas) {
    ETC_ASSIGN_OR_RETURN(model, FoldAdminOmegas(model));
  }
  ETC_RETURN_IF_ERROR(CheckFairseqExpressible(model));
  ETC_ASSIGN_OR_RETURN(const std::string vocabulary,
                       VocabularyBeside(arguments.source));
  ETC_ASSIGN_OR_RETURN(const VocabularyFile file,
                       ReadTranslationVocabulary(vocabulary));
  PrintModel(model->config());
  ETC_RETURN_IF_ERROR(CreateDirectories(arguments.directory));
  ETC_RETURN_IF_ERROR(
      WriteVocabularies(file, model->config().vocab_size, arguments.directory));
  const std::string path = In(arguments.directory, kFairseqFile);
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

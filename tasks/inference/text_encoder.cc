#include "tasks/inference/text_encoder.h"

#include <torch/utils.h>

#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/out_of_memory.h"
#include "base/path_lookup.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "etc/residual_choice.h"
#include "etc/weights/convert.h"
#include "etc/weights/pooling_file.h"
#include "etc/weights/source_config.h"
#include "etc/weights/tokenizer_files.h"
#include "etc/weights/vocabulary_size.h"
#include "etc/weights/weights.h"
#include "tasks/data/batch.h"
#include "tasks/inputs/text_input.h"
#include "tasks/output/checkpoint_files.h"
#include "tasks/output/find_checkpoint.h"
#include "tasks/task/task.h"
#include "tasks/text/unicode.h"
#include "tasks/train/model_files.h"

namespace etc {
namespace {

// --- Loading -----------------------------------------------------------------

// The configuration of the model, by the files of its weights.
absl::StatusOr<EtcConfig> ConfigOfEncoder(const std::string& path,
                                          const LoadEncoderOptions& options,
                                          std::vector<std::string>* warnings) {
  ETC_ASSIGN_OR_RETURN(const WeightFile file, OpenWeights(path));
  warnings->insert(warnings->end(), file.warnings.begin(), file.warnings.end());
  EtcConfig config = file.source.config;
  if (options.lift) {
    if (!IsBert(config)) {
      return InvalidArgument(
          path, " is ETC already: only BERT and RoBERTa can be lifted");
    }
    config = LiftedConfig(config);
  }
  if (!options.residual_attention.empty()) {
    ETC_RETURN_IF_ERROR(
        ApplyResidualChoice(options.residual_attention, path, &config));
  }
  ETC_RETURN_IF_ERROR(CheckEtcConfig(config, path));
  return config;
}

// The vocabulary beside the weights, or the one that the options name.
absl::StatusOr<TokenizerFiles> FilesOfTokenizer(
    const std::string& path, const LoadEncoderOptions& options) {
  if (!options.vocabulary.empty()) {
    ETC_ASSIGN_OR_RETURN(TokenizerFiles named,
                         DescribeTokenizerAt(options.vocabulary));
    TakeUnstatedBeside(path, &named);
    return named;
  }
  absl::StatusOr<TokenizerFiles> beside = FindTokenizer(path);
  if (beside.ok() && beside->type.empty()) {
    return InvalidArgument(
        path, " should have a vocabulary (vocab.txt, tokenizer.json or a ",
        "SentencePiece model), but ",
        beside->unsupported.empty() ? "has none" : beside->unsupported,
        "; LoadEncoderOptions::vocabulary can name one");
  }
  return beside;
}

absl::Status LoadTokenizerOf(const LoadEncoderOptions& options,
                             LoadedEncoder* loaded) {
  ETC_ASSIGN_OR_RETURN(const TokenizerFiles files,
                       FilesOfTokenizer(loaded->path, options));
  for (std::string& warning : TokenizerWarnings(files)) {
    loaded->warnings.push_back(std::move(warning));
  }
  ETC_ASSIGN_OR_RETURN(loaded->tokenizer, MakeTokenizer(files));
  loaded->special_ids = FindSpecialIds(*loaded->tokenizer);
  if (!options.vocabulary.empty()) {
    WarnOfOtherPieces(*loaded->tokenizer, files.vocabulary, loaded->path,
                      &loaded->warnings);
  }
  return CheckVocabularySize(files.vocabulary, loaded->tokenizer->vocab_size(),
                             loaded->config.vocab_size, &loaded->warnings);
}

// Sets the lengths and the sentence splitter. Only a checkpoint of fine-tuning
// has its tables of sentences with it.
absl::Status SetTextOptions(bool is_checkpoint, LoadedEncoder* loaded) {
  const EtcConfig& config = loaded->config;
  ETC_ASSIGN_OR_RETURN(const DataConfig data,
                       ReadTextData(loaded->path, config));
  loaded->max_long_length = config.has_long_tokens ? data.max_long_length : 0;
  loaded->max_global_length = data.max_global_length;
  absl::StatusOr<SentenceSplitter> split = LoadSentenceSplitter(data.sentences);
  if (!split.ok() && !is_checkpoint) {
    if (config.has_long_tokens) {
      loaded->warnings.push_back(absl::StrCat(
          loaded->path, " was trained with the sentences of Punkt's tables (",
          QuotedName(data.sentences), "), which cannot be read here: ",
          "sentences are ICU's unless LoadedEncoder::split_sentences is set"));
    }
    split = SentenceSplitter(SplitSentences);
  }
  ETC_RETURN_IF_ERROR(split.status());
  loaded->split_sentences = *std::move(split);
  return absl::OkStatus();
}

absl::StatusOr<Pooling> PoolingOf(const std::string& path) {
  ETC_ASSIGN_OR_RETURN(const bool is_mean, PoolsByMean(path));
  return is_mean ? Pooling::kMean : Pooling::kFirst;
}

// Does what LoadEncoder does without the weights: `encoder` and `report` stay
// empty.
absl::StatusOr<LoadedEncoder> LoadWithoutWeights(
    const std::string& path, const LoadEncoderOptions& options) {
  LoadedEncoder loaded{.path = path};
  const absl::StatusOr<FoundCheckpoint> found = FindCheckpoint(path);
  if (found.ok()) {
    loaded.path = found->directory;
  } else if (!absl::IsNotFound(found.status())) {
    return found.status();
  }
  ETC_RETURN_IF_ERROR(CheckCheckpointFiles(loaded.path));
  ETC_ASSIGN_OR_RETURN(loaded.config,
                       ConfigOfEncoder(loaded.path, options, &loaded.warnings));
  ETC_RETURN_IF_ERROR(LoadTokenizerOf(options, &loaded));
  ETC_RETURN_IF_ERROR(SetTextOptions(found.ok(), &loaded));
  loaded.pooling = PoolingOf(loaded.path);
  return loaded;
}

absl::StatusOr<LoadedEncoder> Load(const std::string& path,
                                   const LoadEncoderOptions& options) {
  ETC_ASSIGN_OR_RETURN(LoadedEncoder loaded, LoadWithoutWeights(path, options));
  loaded.encoder = EtcModel(loaded.config);
  ETC_ASSIGN_OR_RETURN(loaded.report,
                       LoadEncoderWeights(loaded.path, loaded.encoder));
  loaded.encoder->to(options.device);
  loaded.encoder->eval();
  return loaded;
}

// --- Texts -------------------------------------------------------------------

// Checks that tokens of texts have rows in the tables, and room.
absl::Status CheckRoom(const LoadedEncoder& loaded, const InputOptions& input) {
  ETC_RETURN_IF_ERROR(CheckTables(loaded.config, TablesOfTexts(input),
                                  loaded.tokenizer->vocab_size(), loaded.path));
  const NeededLengths needed = LengthsOfTexts(input);
  const int64_t rows = loaded.config.max_absolute_position_embeddings;
  const auto check = [&](const char* field, int64_t length, int64_t least) {
    if (length >= least && (rows == 0 || length <= rows)) {
      return absl::OkStatus();
    }
    return InvalidArgument(
        loaded.path, ": ", field, " should be at least ", least,
        rows > 0 ? absl::StrCat(" and at most ", rows, ", its positions") : "",
        ", but is ", length);
  };
  ETC_RETURN_IF_ERROR(
      check("max_long_length", loaded.max_long_length, needed.long_tokens));
  return check("max_global_length", loaded.max_global_length,
               needed.global_tokens);
}

// `offset` is the byte where the text begins in its document.
absl::Status CheckBytes(absl::string_view text, int64_t offset,
                        const std::string& name) {
  if (text.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return InvalidArgument(name, " should have less than 2 GiB");
  }
  const auto size = static_cast<int64_t>(text.size());
  for (int64_t at = 0; at < size;) {
    const int64_t begin = at;
    if (NextCodePoint(text, &at) < 0) {
      return InvalidArgument(name, " should be UTF-8, but is not at byte ",
                             offset + begin);
    }
  }
  return absl::OkStatus();
}

// The pieces of a document, of which there is one at least.
absl::StatusOr<SplitText> PiecesOfTexts(absl::Span<const std::string> texts,
                                        const std::string& name,
                                        const Tokenizer& tokenizer,
                                        const InputOptions& input) {
  SplitText split;
  std::vector<Token>& tokens = split.tokens;
  int64_t offset = 0;
  for (const std::string& text : texts) {
    ETC_RETURN_IF_ERROR(CheckBytes(text, offset, name));
    const size_t first = tokens.size();
    AppendText(text, tokenizer, input, &split);
    for (size_t i = first; i < tokens.size(); ++i) {
      tokens[i].begin += offset;
      tokens[i].end += offset;
    }
    offset += static_cast<int64_t>(text.size()) + 1;  // and a line feed
  }
  if (tokens.empty()) {
    const bool is_empty = absl::c_all_of(
        texts, [](const std::string& text) { return text.empty(); });
    return InvalidArgument(
        name, " should have at least one piece, but is ",
        is_empty ? "empty"
                 : "white space, or characters that the tokenizer drops");
  }
  return split;
}

// Writes the tokens of a text into `example`, and what they are into `encoded`.
void WriteText(SplitText split, const LoadedEncoder& loaded,
               const InputOptions& input, EncodedText* encoded,
               Example* example) {
  std::vector<Token> none;
  const TextMarks marks = {.cls = loaded.special_ids.cls,
                           .separator = loaded.special_ids.separator};
  encoded->cut_pieces = CutLongerText(
      RoomForPieces(input, marks, /*two_texts=*/false), &split.tokens, &none);
  int64_t room = RoomForSentences(input);
  TextPieces pieces = WithinRoom(split, &room, &encoded->dropped_sentences);
  WriteTexts(pieces, /*b=*/std::nullopt, marks, input, example);
  encoded->pieces = std::move(split.tokens);
  encoded->sentences = std::move(pieces.sentences);
}

// The input options of texts, checked against the model and the vocabulary.
absl::StatusOr<InputOptions> InputOf(const LoadedEncoder& loaded) {
  TextMarks marks;
  ETC_RETURN_IF_ERROR(FindTextMarks(*loaded.tokenizer, &marks));
  InputOptions input = InputOptionsOf(loaded.config);
  input.max_long_length = loaded.max_long_length;
  input.max_global_length = loaded.max_global_length;
  input.split_sentences = loaded.split_sentences;
  ETC_RETURN_IF_ERROR(CheckRoom(loaded, input));
  return input;
}

// The texts of a document, which messages call `name`.
struct NamedTexts {
  std::string name;
  absl::Span<const std::string> texts;
};

absl::StatusOr<EncodedTexts> EncodeDocuments(
    const LoadedEncoder& loaded, const std::vector<NamedTexts>& documents) {
  ETC_ASSIGN_OR_RETURN(const InputOptions input, InputOf(loaded));
  EncodedTexts encoded;
  std::vector<std::shared_ptr<const Example>> examples;
  for (const auto& [name, texts] : documents) {
    const auto example = std::make_shared<Example>();
    ETC_ASSIGN_OR_RETURN(SplitText split,
                         PiecesOfTexts(texts, name, *loaded.tokenizer, input));
    WriteText(std::move(split), loaded, input, &encoded.texts.emplace_back(),
              example.get());
    examples.push_back(example);
  }
  const torch::Device device = loaded.encoder->token_embedding_table().device();
  encoded.input = MakeBatch(std::move(examples), device).input;
  return encoded;
}

}  // namespace

absl::StatusOr<LoadedEncoder> LoadEncoder(const std::string& path,
                                          const LoadEncoderOptions& options) {
  return NamingOutOfMemory([&] { return absl::StrCat("loading ", path); },
                           [&] { return Load(path, options); });
}

absl::StatusOr<EtcConfig> CheckEncoder(const std::string& path,
                                       const LoadEncoderOptions& options) {
  ETC_ASSIGN_OR_RETURN(const LoadedEncoder loaded,
                       LoadWithoutWeights(path, options));
  return loaded.config;
}

absl::StatusOr<EncodedTexts> EncodeTexts(
    const LoadedEncoder& loaded, const std::vector<std::string>& texts) {
  if (texts.empty()) {
    return InvalidArgument("there should be at least one text to encode");
  }
  std::vector<NamedTexts> documents;
  for (const std::string& text : texts) {
    documents.push_back({.name = absl::StrCat("text ", documents.size()),
                         .texts = absl::MakeConstSpan(&text, 1)});
  }
  return EncodeDocuments(loaded, documents);
}

absl::StatusOr<EncodedTexts> EncodeDocument(
    const LoadedEncoder& loaded, const std::vector<std::string>& texts,
    const std::string& name) {
  return EncodeDocuments(loaded, {{.name = name, .texts = texts}});
}

absl::Status CheckLengths(const LoadedEncoder& loaded) {
  return InputOf(loaded).status();
}

absl::StatusOr<std::vector<Token>> CheckEncodable(
    const LoadedEncoder& loaded, const std::vector<std::string>& texts,
    const std::string& name) {
  ETC_ASSIGN_OR_RETURN(const InputOptions input, InputOf(loaded));
  ETC_ASSIGN_OR_RETURN(SplitText split,
                       PiecesOfTexts(texts, name, *loaded.tokenizer, input));
  return std::move(split.tokens);
}

}  // namespace etc

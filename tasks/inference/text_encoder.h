#ifndef ETC_TASKS_INFERENCE_TEXT_ENCODER_H_
#define ETC_TASKS_INFERENCE_TEXT_ENCODER_H_

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/config.h"
#include "etc/model.h"
#include "etc/weights/checkpoint.h"
#include "tasks/text/load_tokenizer.h"
#include "tasks/text/sentence_splitter.h"
#include "tasks/text/tokenizer.h"

namespace etc {

// Trained weights of any origin in a program: the encoder, its configuration
// and its tokenizer, and texts as its input.
//
//   const auto loaded = etc::LoadEncoder("bert-base-uncased");
//   const auto texts = etc::EncodeTexts(*loaded, {"Good morning."});
//   etc::EtcModel encoder = loaded->encoder;
//   const etc::EtcOutput output = encoder(texts->input);

// Choices for the weights that LoadEncoder reads.
struct LoadEncoderOptions {
  // True to lift BERT and RoBERTa to ETC, as `init` of a configuration does:
  // parameters that BERT lacks are then random, from LibTorch's generator.
  // False: the model stays what it is, and computes what it was trained to.
  bool lift = false;
  // As in EvaluateTaskOptions (tasks/run_task.h).
  std::string residual_attention = {};
  // Vocabulary for weights without one, or in the place of theirs: a file or a
  // directory (LoadTokenizer). What no file beside it states is as the files of
  // the weights say; a warning tells how many ids are of other pieces. Empty:
  // that of the weights.
  std::string vocabulary = {};
  torch::Device device = torch::kCPU;
};

// Origin of the vector of a text (EmbedText).
enum class Pooling {
  // ETC: the outputs of the global tokens of the text and of its sentences.
  // BERT: the output of [CLS] of each chunk, and their mean for the text.
  kFirst,
  // The mean of the outputs of all tokens of the text or chunk, also of [CLS]
  // and [SEP], as sentence-transformers has it; of the pieces of a sentence.
  kMean,
};

// Copies share the encoder and the tokenizer. Several threads may use one.
struct LoadedEncoder {
  // The weights: as given, or of a run, a seed or a grid the best checkpoint.
  std::string path = {};
  // In evaluation mode.
  EtcModel encoder = nullptr;
  // The configuration of `encoder`.
  EtcConfig config = {};
  // Not null.
  std::shared_ptr<const Tokenizer> tokenizer = {};
  SpecialIds special_ids = {};
  // Splits texts into sentences, for ETC.
  SentenceSplitter split_sentences = {};
  // Tokens of each stream that EncodeTexts makes at most; may be changed. Of a
  // fine-tuned model as in its training; as config.json of an export for
  // transformers says, or text_options.json, which the Python package saves;
  // else all that the table of positions has, or without one 4,096 and 512.
  // BERT has no long tokens: 0.
  int64_t max_long_length = 0;
  int64_t max_global_length = 0;
  // The pooling that EmbedText takes unless its options name one: that of
  // sentence-transformers' 1_Pooling/config.json beside the weights, or kFirst
  // without it. kInvalidArgument where the file asks for neither.
  absl::StatusOr<Pooling> pooling = Pooling::kFirst;
  // `missing` are the parameters that are random; `notices` say where gates
  // come from, if only the model or only the weights have them.
  LoadReport report = {};
  // Messages about what is allowed, but likely not meant.
  std::vector<std::string> warnings = {};
};

// Loads weights of any origin (doc/weights.md): official ETC's, Google's BERT's
// and RealFormer's, HuggingFace's BERT and RoBERTa, and ours, of an import, a
// checkpoint, or the directory of a run or a grid.
//   kNotFound            there are no weights at `path`, or no such file
//   kInvalidArgument     a mistake in a file; no vocabulary, one that cannot be
//                        used, or one that does not fit the embedding table;
//                        `lift` for ETC
//   kDataLoss            a checkpoint is not as it was written
//   kFailedPrecondition  several seeds without a best one
//   kResourceExhausted   out of memory
// and errors of LoadTokenizer. Throws c10::Error if there is no such device.
absl::StatusOr<LoadedEncoder> LoadEncoder(
    const std::string& path, const LoadEncoderOptions& options = {});

// Checks what LoadEncoder reads beside the weights, in a moment, and returns
// the configuration of the encoder.
//   as LoadEncoder
absl::StatusOr<EtcConfig> CheckEncoder(const std::string& path,
                                       const LoadEncoderOptions& options = {});

// A text as the encoder reads it: [CLS] pieces [SEP], as long tokens of ETC and
// as global ones of BERT.
struct EncodedText {
  // Token 1 + i is pieces[i]; bytes are those in the text.
  std::vector<Token> pieces = {};
  // ETC: the sentence of each of the first pieces. Global token 0 sees all of
  // the text, 1 + s is that of sentence s; pieces from there on have global
  // token 0 alone.
  std::vector<int32_t> sentences = {};
  // The pieces cut off at the end of a text that is longer than the model, and
  // the sentences before them for which there was no global token.
  int64_t cut_pieces = 0;
  int64_t dropped_sentences = 0;
};

// Texts as the encoder reads them, in one batch.
struct EncodedTexts {
  // Row b is text b, padded to the longest (AttentionPattern for each row: no
  // token sees padding, and a row costs its own length). On the encoder's
  // device.
  //
  //   ETC   token_ids [B, L], segments 1; global_token_ids [B, 1 + S]
  //   BERT  token_ids [B, 0]; global_token_ids [B, T], segments 0
  //
  // In both, row 0 of a global output is that of the whole text: [CLS] of BERT.
  EtcInput input = {};
  std::vector<EncodedText> texts = {};
};

// Makes the input of the encoder from a batch of texts, as tasks on whole texts
// read them (doc/glue.md 4 and 11).
//   kInvalidArgument  no texts; a text of which the tokenizer leaves nothing,
//                     that is not UTF-8, or that has 2 GiB; the message has its
//                     index ("text 0") and byte. A vocabulary without [CLS] and
//                     [SEP], a model without rows for the types of tokens,
//                     lengths that it has not
absl::StatusOr<EncodedTexts> EncodeTexts(const LoadedEncoder& loaded,
                                         const std::vector<std::string>& texts);

// The same of one document that has several texts, as a record of the task
// classify has: they are read one after the other, and each begins a sentence.
// Bytes are those of the texts joined by line feeds; messages call the document
// `name`.
absl::StatusOr<EncodedTexts> EncodeDocument(
    const LoadedEncoder& loaded, const std::vector<std::string>& texts,
    const std::string& name = "text 0");

// Checks what EncodeTexts asks of the vocabulary, the model and the lengths,
// whatever the texts are.
//   kInvalidArgument  as there
absl::Status CheckLengths(const LoadedEncoder& loaded);

// Checks that EncodeDocument can encode a document, which messages call `name`,
// and returns its pieces before any is cut off.
//   kInvalidArgument  it cannot, as there
absl::StatusOr<std::vector<Token>> CheckEncodable(
    const LoadedEncoder& loaded, const std::vector<std::string>& texts,
    const std::string& name);

}  // namespace etc

#endif  // ETC_TASKS_INFERENCE_TEXT_ENCODER_H_

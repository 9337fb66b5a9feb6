#ifndef ETC_ETC_WEIGHTS_PRETRAINING_PARAMETERS_H_
#define ETC_ETC_WEIGHTS_PRETRAINING_PARAMETERS_H_

#include <map>
#include <string>
#include <vector>

#include "etc/config.h"
#include "etc/weights/encoder_parameters.h"

namespace etc {

// The heads that pre-training has beside the encoder, in the order of names in
// files (doc/pretraining.md 5, 9.1), and the heads of fine-tuned models that
// other codes have too. A file has each of them as a whole or not at all.
enum class PretrainingHead {
  kMlm,     // masked tokens; its decoder is the encoder's token table
  kPooler,  // tanh layer of the first token
  kNsp,     // next sentence, of what the pooler gives
  kCpc,     // the kernel of the contrastive loss
  // BertForSequenceClassification: classes, or a score, from the pooler's
  // output. BertForTokenClassification: classes of each token.
  kClassifier,
  // BertForQuestionAnswering: begin and end of the answer, of each token.
  kAnswerSpan,
};

inline constexpr PretrainingHead kAllPretrainingHeads[] = {
    PretrainingHead::kMlm, PretrainingHead::kPooler, PretrainingHead::kNsp,
    PretrainingHead::kCpc};

// The heads of fine-tuned models.
inline constexpr PretrainingHead kTaskHeads[] = {PretrainingHead::kClassifier,
                                                 PretrainingHead::kAnswerSpan};

// "MLM head", "pooler", "NSP head", "CPC kernel", "classifier", "answer span".
const char* PretrainingHeadDescription(PretrainingHead head);
// "MLM head, pooler"; "none" for none.
std::string JoinPretrainingHeads(const std::vector<PretrainingHead>& heads);

// Value of `task` in the metadata of a file of ours with heads of pre-training;
// otherwise it is the name of a task.
inline constexpr char kPretrainingTask[] = "pretrain";

// One parameter of a head and its names, which are whole here, with
// "head.mlm.", "cls/" or "bert/" at their beginning. ETC's code has BERT's.
struct PretrainingParameter {
  PretrainingHead head;
  EncoderParameter parameter;
  // Other names in HuggingFace's files: RoBERTa's, and those of copies of tied
  // tensors.
  std::vector<std::string> other_hugging_face;
};

// All parameters of the heads of pre-training for an encoder of this
// configuration, in the order of PretrainingHead.
std::vector<PretrainingParameter> PretrainingParameters(
    const EtcConfig& config);
// The same of kTaskHeads: a classifier with `outputs` outputs, and the answer
// span. ETC's code has no names for them.
std::vector<PretrainingParameter> TaskHeadParameters(const EtcConfig& config,
                                                     int64_t outputs);
// Both, one after the other. Names do not depend on the number of outputs.
std::vector<PretrainingParameter> AllHeadParameters(const EtcConfig& config,
                                                    int64_t outputs = 1);

// Names of `parameter` in a file whose names RecognizeNames describes by
// `names`, the usual one first; empty if that style has none. A prefix before
// that of the encoder
// ("module.bert.") is before the heads too ("module.cls."), the pooler shares
// that of the encoder, and older files of HuggingFace end LayerNorms as
// TensorFlow does.
std::vector<std::string> NamesInFile(const PretrainingParameter& parameter,
                                     const RecognizedNames& names);

// The names that HuggingFace's files may have for the decoder's weight, which
// is the token table once more.
std::vector<std::string> DecoderNamesInFile(const RecognizedNames& names);

// Maps the name in the file of each tensor that NamesInFile and
// DecoderNamesInFile know to its head.
std::map<std::string, PretrainingHead> PretrainingTensors(
    const EtcConfig& config, const RecognizedNames& names);

}  // namespace etc

#endif  // ETC_ETC_WEIGHTS_PRETRAINING_PARAMETERS_H_

#ifndef ETC_TESTS_ETC_WEIGHTS_RANDOM_MODEL_H_
#define ETC_TESTS_ETC_WEIGHTS_RANDOM_MODEL_H_

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "etc/config.h"
#include "etc/model.h"
#include "etc/weights/checkpoint.h"
#include "etc/weights/formats/tensorflow/protobuf_wire.h"
#include "etc/weights/source_config.h"

namespace etc {

// A small BERT.
inline EtcConfig BertOf(const char* residual = "off") {
  EtcConfig config = AsBert({});
  config.vocab_size = 29;
  config.segment_vocab_size = 2;
  config.hidden_size = 12;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 3;
  config.max_absolute_position_embeddings = 16;
  config.intermediate_size = 20;
  config.residual_attention = residual;
  return config;
}

// Makes every parameter random, so that no two can be confused. In a BERT with
// a long stream a parameter that is one tensor there is the same twice here.
inline EtcModel RandomModel(const EtcConfig& config) {
  torch::manual_seed(7);
  EtcModel model(config);
  model->eval();
  const torch::NoGradGuard no_grad;
  auto parameters = model->named_parameters();
  for (auto& parameter : parameters) {
    parameter.value().normal_(0, 0.5);
  }
  if (IsBert(config) && config.has_long_tokens) {
    for (auto& parameter : parameters) {
      std::string twin = parameter.key();
      if (const size_t at = twin.find("global_"); at != std::string::npos) {
        twin.replace(at, 7, "long_");
        parameter.value().copy_(parameters[twin]);
      }
    }
  }
  return model;
}

inline bool SameTensors(const NamedTensors& left, const NamedTensors& right) {
  for (const auto& [name, tensor] : left) {
    if (!right.contains(name) || !torch::equal(tensor, right.at(name))) {
      ADD_FAILURE() << name;
      return false;
    }
  }
  return left.size() == right.size();
}

// The bytes of a SentencePiece model of these pieces, as far as they are read
// without SentencePiece.
inline std::string SentencePieceModelOf(
    const std::vector<std::string>& pieces) {
  std::string model;
  for (const std::string& piece : pieces) {
    std::string message;
    AppendBytesField(1, piece, &message);
    AppendBytesField(1, message, &model);
  }
  return model;
}

// Writes our checkpoint directory of an encoder and `heads` ("head.mlm.*").
inline void WriteCheckpoint(const std::string& directory, const EtcModel& model,
                            const NamedTensors& heads = {}) {
  NamedTensors tensors = ModuleTensors(*model, "encoder.");
  tensors.insert(heads.begin(), heads.end());
  EXPECT_TRUE(CreateDirectories(directory).ok());
  EXPECT_TRUE(WriteFileAtomically(directory + "/etc_config.json",
                                  EtcConfigToJson(model->config()))
                  .ok());
  EXPECT_TRUE(WriteTensors(directory + "/model.safetensors", tensors, {}).ok());
}

}  // namespace etc

#endif  // ETC_TESTS_ETC_WEIGHTS_RANDOM_MODEL_H_

#ifndef ETC_REALETC_H_
#define ETC_REALETC_H_

// RealETC: sparse attention with residual scores, the ETC encoder, and tasks on
// long documents, on LibTorch.
//
// This header includes every installed one, lowest layer first. A program that
// includes only those that it needs compiles faster. Where to begin:
//
//   attention/global_local_attention.h  a layer's attention
//   attention/pattern.h                 who attends to whom in a document
//   attention/residual_attention.h      modes of residual scores
//   attention/residual_scores.h         scores that layers carry
//   etc/model.h, etc/config.h           the encoder, its configuration
//   etc/weights/convert.h               weights of other projects
//   tasks/inference/text_encoder.h      trained weights, texts to vectors
//   tasks/inference/predictor.h         a checkpoint that answers for records
//   tasks/run_task.h                    fine-tune, evaluate, predict
//
// Library code neither prints nor exits. What a caller does wrong is an
// exception, c10::Error; what a file or a configuration can cause is an
// absl::Status.

#include "attention/attention_inputs.h"
#include "attention/attention_operands.h"
#include "attention/dot_product_attention.h"
#include "attention/global_local_attention.h"
#include "attention/inspection.h"
#include "attention/key_runs.h"
#include "attention/multi_head_attention.h"
#include "attention/output_rows.h"
#include "attention/pattern.h"
#include "attention/pattern_builders.h"
#include "attention/residual_attention.h"
#include "attention/residual_scores.h"
#include "attention/score_statistics.h"
#include "attention/score_storage.h"
#include "attention/softmax_pattern.h"
#include "attention/sparse_attention.h"
#include "base/linear.h"
#include "base/process_memory.h"
#include "etc/bert_input.h"
#include "etc/config.h"
#include "etc/encoder_decoder/admin_omegas.h"
#include "etc/encoder_decoder/beam_search.h"
#include "etc/encoder_decoder/config.h"
#include "etc/encoder_decoder/decoder.h"
#include "etc/encoder_decoder/decoder_cache.h"
#include "etc/encoder_decoder/encoder.h"
#include "etc/encoder_decoder/fairseq_checkpoint.h"
#include "etc/encoder_decoder/fairseq_names.h"
#include "etc/encoder_decoder/model.h"
#include "etc/encoder_decoder/token_embedding.h"
#include "etc/encoder_decoder/translate.h"
#include "etc/layer_slices.h"
#include "etc/model.h"
#include "etc/nn/smoothed_loss.h"
#include "etc/weights/checkpoint.h"
#include "etc/weights/convert.h"
#include "tasks/classify/record.h"
#include "tasks/glue/record.h"
#include "tasks/hotpotqa/record.h"
#include "tasks/inference/predictor.h"
#include "tasks/inference/text_embedding.h"
#include "tasks/inference/text_encoder.h"
#include "tasks/metrics.h"
#include "tasks/nq/record.h"
#include "tasks/openkp/record.h"
#include "tasks/output/earlier_run.h"
#include "tasks/run_task.h"
#include "tasks/squad/record.h"
#include "tasks/task/prediction.h"
#include "tasks/text/byte_range.h"
#include "tasks/text/load_tokenizer.h"
#include "tasks/text/sentence_splitter.h"
#include "tasks/text/tokenizer.h"
#include "tasks/tokens/record.h"
#include "tasks/wikihop/record.h"

#endif  // ETC_REALETC_H_

#ifndef ETC_TASKS_TEXT_SENTENCEPIECE_MODULE_H_
#define ETC_TASKS_TEXT_SENTENCEPIECE_MODULE_H_

#include <cstddef>
#include <cstdint>

// The interface between the module realetc_sentencepiece.so and its users.
//
// libsentencepiece carries its own copy of protobuf, of another version than
// LibTorch's, under the same symbol names: a program that links both crashes.
// So the library is linked by that module alone (base/module_loader.h). Only
// plain types cross the border, memory is freed on the side that allocated it,
// and no exception passes.

namespace etc {

// One piece of a text, valid during the call that hands it out.
struct SentencePiece {
  const char* text;
  size_t text_size;
  int32_t id;
  // Bytes of the text that was encoded; equal for a mark of which the text has
  // nothing.
  uint32_t begin;
  uint32_t end;
};

// A loaded SentencePiece model. Methods may be called from several threads.
class SentencePieceModel {
 public:
  // Called only through Destroy().
  virtual void Destroy() = 0;

  virtual int32_t size() const = 0;
  // The text of a piece, 0 <= id < size(); lives as long as the model.
  virtual const char* Piece(int32_t id, size_t* text_size) const = 0;
  // The score that a piece adds to a segmentation, 0 <= id < size().
  virtual float Score(int32_t id) const = 0;
  // The id of a piece, or that of the unknown piece.
  virtual int32_t Id(const char* piece, size_t piece_size) const = 0;

  // Calls `visit(context, piece)` for each piece of the best segmentation of
  // `text` (at most 2^31 - 1 bytes of UTF-8). False if memory ran out.
  using Visit = void (*)(void* context, const SentencePiece& piece);
  virtual bool Encode(const char* text, size_t text_size, void* context,
                      Visit visit) const = 0;

  // Calls `receive(context, text, size)` with the text that pieces stand for:
  // marks become blanks but for the first, control pieces nothing, the unknown
  // piece " \u2047 ". False if memory ran out. 0 <= each id < size().
  using Receive = void (*)(void* context, const char* bytes, size_t size);
  virtual bool Decode(const int32_t* ids, size_t count, void* context,
                      Receive receive) const = 0;

 protected:
  ~SentencePieceModel() = default;
};

// Grows with every change of this file.
constexpr int32_t kSentencePieceModuleVersion = 6;
constexpr char kSentencePieceModuleFunction[] = "RealEtcSentencePieceModule";

// The training of a model: what it reads and where its result goes.
struct SentencePieceTrainingCalls {
  void* context;
  // Sets the text of the next sentence, which stays until the next call; false
  // at the end.
  bool (*next)(void* context, const char** text, size_t* text_size);
  // Called once with the bytes of a .model file; or else `report` with what
  // went wrong.
  void (*receive)(void* context, const char* bytes, size_t size);
  void (*report)(void* context, const char* message);
};

struct SentencePieceModule {
  int32_t version;  // kSentencePieceModuleVersion of the module
  // A model from the bytes of a .model file; or null, having called
  // `report(context, message)`.
  SentencePieceModel* (*load)(const char* bytes, size_t size, void* context,
                              void (*report)(void* context,
                                             const char* message));
  // Trains a model with `options`, those of spm_train as "name=value" with
  // blanks between them. False after an error.
  bool (*train)(const char* options, const SentencePieceTrainingCalls& calls);
};

}  // namespace etc

#endif  // ETC_TASKS_TEXT_SENTENCEPIECE_MODULE_H_

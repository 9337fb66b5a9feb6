#ifndef ETC_TESTS_SUPPORT_SENTENCEPIECE_BESIDE_TORCH_H_
#define ETC_TESTS_SUPPORT_SENTENCEPIECE_BESIDE_TORCH_H_

namespace etc {

// Whether a program that links LibTorch can use SentencePiece: not under
// AddressSanitizer (tasks/text/sentencepiece_module.h). Tests of tokenizers,
// which link no LibTorch, run there.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSentencePieceBesideTorch = false;
#else
inline constexpr bool kSentencePieceBesideTorch = true;
#endif

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_SENTENCEPIECE_BESIDE_TORCH_H_

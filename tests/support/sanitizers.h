#ifndef ETC_TESTS_SUPPORT_SANITIZERS_H_
#define ETC_TESTS_SUPPORT_SANITIZERS_H_

namespace etc {

// Builds with a sanitizer (ETC_SANITIZE), which take several times as long,
// have a malloc of their own and reserve more addresses than any limit allows.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitized = true;
#else
inline constexpr bool kAddressSanitized = false;
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Returns the number of damaged inputs to try: all with a sanitizer, which sees
// what a reader does to memory.
inline constexpr int RoundsOfDamage(int all) {
  return kSanitized ? all : all / 5;
}

}  // namespace etc

#endif  // ETC_TESTS_SUPPORT_SANITIZERS_H_

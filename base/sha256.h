#ifndef ETC_BASE_SHA256_H_
#define ETC_BASE_SHA256_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

struct evp_md_ctx_st;

namespace etc {

// SHA-256 (FIPS 180-4), by OpenSSL, of bytes that come piece by piece. Chosen
// to tell files apart because no two that differ are known to share one, unlike
// a CRC's 2^32 values, and because `sha256sum` says the same.
class Sha256 {
 public:
  Sha256();

  void Update(absl::string_view bytes);

  // 64 hexadecimal digits, of all bytes so far. Nothing may be added
  // afterwards.
  std::string HexDigest();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };

  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace etc

#endif  // ETC_BASE_SHA256_H_

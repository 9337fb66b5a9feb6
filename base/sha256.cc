#include "base/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <new>
#include <stdexcept>

#include "absl/strings/escaping.h"

namespace etc {
namespace {

// Fails only if memory is short or OpenSSL is configured without SHA-256.
void Check(int result) {
  if (result != 1) {
    throw std::runtime_error("OpenSSL cannot compute SHA-256");
  }
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (context_ == nullptr) {
    throw std::bad_alloc();
  }
  Check(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
}

void Sha256::Update(absl::string_view bytes) {
  Check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

std::string Sha256::HexDigest() {
  std::array<unsigned char, 32> digest{};
  Check(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr));
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(digest.data()), digest.size()));
}

}  // namespace etc

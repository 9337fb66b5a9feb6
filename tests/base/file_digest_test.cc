// SHA-256 against values of FIPS 180-4 and of NIST's examples, in pieces of
// every size that straddles a block; digests of files, whole and by samples:
// which changes they see, and that they can be stopped.
#include "base/file_digest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/sha256.h"
#include "tests/support/temporary_directory.h"

namespace etc {
namespace {

using testing::StartsWith;

std::string Digest(const std::string& text, size_t piece) {
  Sha256 sha256;
  for (size_t i = 0; i < text.size(); i += piece) {
    sha256.Update(absl::string_view(text).substr(i, piece));
  }
  return sha256.HexDigest();
}

TEST(Sha256Test, GivesThePublishedValues) {
  EXPECT_EQ(Digest("", 1),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Digest("abc", 3),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(
      Digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56),
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Digest(std::string(1000000, 'a'), 4096),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, DoesNotDependOnThePieces) {
  for (size_t length = 0; length < 200; ++length) {
    std::string text;
    for (size_t i = 0; i < length; ++i) {
      text.push_back(static_cast<char>(37 * i + length));
    }
    const std::string whole = Digest(text, 1000);
    for (const size_t piece : {1, 7, 63, 64, 65}) {
      EXPECT_EQ(Digest(text, piece), whole) << length << " by " << piece;
    }
  }
}

TEST(FileDigestTest, IsThatOfAllOfASmallFile) {
  TemporaryDirectory directory;
  const auto digest = DigestFile(directory.Write("a", "abc"));
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_EQ(digest->bytes, 3);
  EXPECT_EQ(digest->digest,
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20"
            "015ad");
  EXPECT_EQ(*DigestFile(directory.Write("b", "abc")), *digest);
  EXPECT_NE(DigestFile(directory.Write("c", "abd"))->digest, digest->digest);
  EXPECT_EQ(DigestFile(directory.File("d")).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(FileDigestTest, SeesChangesWhereALargeFileIsSampled) {
  // Samples of 10 bytes at 0, 495 and 990.
  const FileDigestOptions options = {
      .largest_whole = 999, .sample_bytes = 10, .num_samples = 3};
  TemporaryDirectory directory;
  const std::string text(1000, 'x');
  const auto digest_of = [&](const std::string& contents) {
    return *DigestFile(directory.Write("file", contents), nullptr, options);
  };
  const FileDigest digest = digest_of(text);
  EXPECT_THAT(digest.digest, StartsWith("sha256-of-samples:"));
  EXPECT_EQ(BytesToDigest(1000, options), 30);
  EXPECT_EQ(BytesToDigest(999, options), 999);
  for (const size_t i : {0, 9, 10, 494, 495, 504, 505, 989, 990, 999}) {
    std::string changed = text;
    changed[i] = 'y';
    const bool sampled = i < 10 || (495 <= i && i < 505) || i >= 990;
    EXPECT_EQ(digest_of(changed) != digest, sampled) << i;
  }
  EXPECT_NE(digest_of(text + "x"), digest);
  EXPECT_THAT(digest_of(text.substr(1)).digest, StartsWith("sha256:"));
}

TEST(FileDigestTest, TellsHowFarItIsAndCanBeStopped) {
  TemporaryDirectory directory;
  const std::string path =
      directory.Write("file", std::string((2 << 20) + 5, 'x'));
  uint64_t bytes = 0;
  const auto count = [&bytes](uint64_t piece) {
    bytes += piece;
    return absl::OkStatus();
  };
  ASSERT_TRUE(DigestFile(path, count).ok());
  EXPECT_EQ(bytes, (2 << 20) + 5);
  int64_t calls = 0;
  const auto stop = [&calls](uint64_t) {
    ++calls;
    return absl::CancelledError("enough");
  };
  EXPECT_EQ(DigestFile(path, stop).status(), absl::CancelledError("enough"));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace etc

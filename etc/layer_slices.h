#ifndef ETC_ETC_LAYER_SLICES_H_
#define ETC_ETC_LAYER_SLICES_H_

#include <cstdint>
#include <string>

namespace etc {

// The part of a layer that is computed at a time (EtcModel::set_layer_slices).
struct LayerSlices {
  // Heads in attention.
  int64_t heads = 2;
  // Tokens of a stream behind attention: output projection, residual
  // connections and feed-forward block.
  int64_t tokens = 4096;
  // Directory for what is kept of the long stream between forward and backward
  // pass, in files without a name, which are gone with the process; empty: in
  // memory. Both passes throw c10::Error, which names the directory, if a file
  // there cannot be created, written or read.
  std::string directory = {};
};

}  // namespace etc

#endif  // ETC_ETC_LAYER_SLICES_H_

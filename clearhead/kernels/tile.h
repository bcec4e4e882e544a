// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace clearhead::kernels {

// Columns of a packed matrix that stand side by side.
constexpr size_t kPanelWidth = 16;

// Number of panels for a matrix of columns columns; the last one is filled up with zeros.
constexpr size_t panel_count(size_t columns) { return (columns + kPanelWidth - 1) / kPanelWidth; }

// One product of a plain matrix with a packed one.
struct TileProduct {
  const float* left;     // [rows, depth]
  size_t left_stride;    // floats from row to row
  const float* panels;   // [panels, depth, 16]
  size_t panel_stride;   // floats from panel to panel: 16 * depth, or more when depth is a part of the whole
  float* output;         // [rows, 16 * panels]
  size_t output_stride;  // floats from row to row
  size_t rows;
  size_t depth;
  size_t num_panels;
  bool accumulate = false;  // go on from what stands in output instead of +0
  bool add_zero = false;    // add +0 at the end, so that no output is -0
  float* maxima = nullptr;  // [rows, 16]: the largest output of each row and virtual lane goes on; nullptr: none wanted
  const float* row_factors =
      nullptr;  // [rows]: what outputs are multiplied by at last, and NaN made 0x7fc00000; or nullptr
};

// output = left times panels, or output + left times panels:
//
//   output_ij = fma(left_i,depth-1, panel_depth-1,j, ... fma(left_i1, panel_1j, fma(left_i0, panel_0j, +0)))
//
// One accumulator per output, the inner dimension in order. So an output's bits depend neither on the other rows and
// columns nor on the SIMD target, as long as it has fused multiply-add (else each step rounds twice); and a product
// over [0, a) followed by an accumulating one over [a, b) has the bits of one over [0, b). A NaN may have any bits.
// Error: at most (depth + 1) 2^-24 sum |left_ik panel_kj| (twice that without fused multiply-add).
void tile_product(const TileProduct& product);

// Packs the columns of a matrix for tile_product. Shapes: matrix [depth, columns], stride floats from row to row;
// panels [panel_count(columns), depth, 16].
void pack_columns(const float* matrix, size_t stride, size_t depth, size_t columns, std::span<float> panels);

// Packs the rows of a matrix as columns: the product is with its transpose. Shapes: matrix [columns, depth], stride
// floats from row to row; panels as above.
void pack_rows(const float* matrix, size_t stride, size_t depth, size_t columns, std::span<float> panels);

// Packs columns as pack_columns does, in panels panel_stride floats apart; returns whether no element is NaN or
// infinite.
bool pack_values(const float* matrix, size_t stride, size_t depth, size_t columns, float* panels, size_t panel_stride);

}  // namespace clearhead::kernels

// Dense linear algebra in double precision. A matrix is one array of numbers, row after row.

// Returns the dot product of `length` numbers from a[i] and b[j] on, summed in eight lanes: the
// order of the package's compiled rounds, so that PRank has the same bits here and there.
function dot(a, i, b, j, length) {
  const last = length - (length % 8);
  let l0 = 0, l1 = 0, l2 = 0, l3 = 0, l4 = 0, l5 = 0, l6 = 0, l7 = 0, rest = 0;
  let k = 0;
  for (; k < last; k += 8) {
    l0 += a[i + k] * b[j + k];
    l1 += a[i + k + 1] * b[j + k + 1];
    l2 += a[i + k + 2] * b[j + k + 2];
    l3 += a[i + k + 3] * b[j + k + 3];
    l4 += a[i + k + 4] * b[j + k + 4];
    l5 += a[i + k + 5] * b[j + k + 5];
    l6 += a[i + k + 6] * b[j + k + 6];
    l7 += a[i + k + 7] * b[j + k + 7];
  }
  for (; k < length; k++) rest += a[i + k] * b[j + k];
  return (l0 + l4 + (l2 + l6)) + (l1 + l5 + (l3 + l7)) + rest;
}

// Replaces the lower triangle of a symmetric matrix by its Cholesky factor L, with L Lᵀ the matrix;
// throws if the matrix is not positive definite.
function cholesky(matrix, size) {
  for (let i = 0; i < size; i++) {
    const row = i * size;
    for (let j = 0; j < i; j++) {
      matrix[row + j] = (matrix[row + j] - dot(matrix, row, matrix, j * size, j)) /
        matrix[j * size + j];
    }
    const pivot = matrix[row + i] - dot(matrix, row, matrix, row, i);
    if (!(pivot > 0)) throw new RangeError("the system is not positive definite");
    matrix[row + i] = Math.sqrt(pivot);
  }
  return matrix;
}

// Replaces `right` by the solution of L z = right.
function solveLower(factor, size, right) {
  for (let i = 0; i < size; i++) {
    right[i] = (right[i] - dot(factor, i * size, right, 0, i)) / factor[i * size + i];
  }
  return right;
}

// Replaces `right` by the solution of L Lᵀ x = right.
function solveCholesky(factor, size, right) {
  solveLower(factor, size, right);
  for (let i = size - 1; i >= 0; i--) {
    right[i] /= factor[i * size + i];
    for (let j = 0; j < i; j++) right[j] -= factor[i * size + j] * right[i];
  }
  return right;
}

// Returns the matrix times a vector.
function product(matrix, size, vector) {
  const result = new Float64Array(size);
  for (let i = 0; i < size; i++) result[i] = dot(matrix, i * size, vector, 0, size);
  return result;
}

// Returns the mean of some rows of a matrix of this width.
function meanRow(rows, count, width) {
  const mean = new Float64Array(width);
  for (let i = 0; i < count; i++) {
    for (let k = 0; k < width; k++) mean[k] += rows[i * width + k];
  }
  for (let k = 0; k < width; k++) mean[k] /= Math.max(count, 1);
  return mean;
}

#ifndef FW_MATRICES_F32
#define FW_MATRICES_F32
#define FW_OF(name) name##_f32
#define FW_REAL float
#define FW_REAL_NAN FW_NAN_F32
#define FW_REAL_INFINITY FW_INFINITY_F32
#define FW_REAL_GREAT 0x1p60f
#define FW_REAL_SCALE 0x1p100f
#define FW_REAL_EPSILON 0x1p-23f
#define FW_MEET(w) ((void)0)
/* Algorithms for one matrix of at most FW_MOST_SIDE rows and columns. `lanes` lanes run the same text.
 *
 * In C there is one lane; in CUDA the lanes are the threads of a block. FW_MEET makes the lanes wait for one another, and
 * shows to each what the others have written. Which lane computes an element never decides how: an element is one chain
 * of operations in a fixed order, and all lanes take the same decisions. So any number of lanes gives the same bits.
 *
 * The algorithms are those of Golub and Van Loan, Matrix Computations, 4th edition; each function names its section.
 * FW_REAL is the type of elements, and FW_OF(name) the name of what belongs to this type.
 */

#ifndef FW_MATRICES
#define FW_MATRICES

#define FW_MOST_SIDE 64
#define FW_MOST_STEPS 40 /* for an eigenvalue, which takes two or three */

/* `others` are the columns of the right sides of equations, or those of Q. */
typedef struct {
    int rows, columns, others, is_upper;
} fw_shape;

/* The work on an array is divided by lanes: of a line, or of rows and columns. */
#define FW_EACH(i, begin, end) for (int i = (begin) + w.lane; i < (end); i += w.lanes)
#define FW_EACH_ROW(i, begin, end) for (int i = (begin) + w.lane / w.across; i < (end); i += w.lanes / w.across)
#define FW_EACH_COLUMN(j, begin, end) for (int j = (begin) + w.lane % w.across; j < (end); j += w.across)
#define FW_AT(i, j) w.matrix[(i) * w.pitch + (j)]

#endif

/* What the lanes share: a matrix whose rows lie `pitch` elements apart, two numbers and a place for each row, a note, and
 * room for `near_elements` more, perhaps none. Neighbouring lanes are neighbours along a row, `across` of them. */
typedef struct {
    FW_REAL *matrix, *first, *second, *near;
    int *place, *note;
    int near_elements, pitch, lane, lanes, across;
} FW_OF(fw_work);

/* Where the lanes work on what becomes a result: in the room that they share, if it is large enough. */
FW_FN FW_REAL *FW_OF(fw_near)(const FW_OF(fw_work) w, FW_REAL *to, int elements) {
    return elements <= w.near_elements ? w.near : to;
}

/* Loads a matrix, or the transposed one. The note says whether some element is not finite. */
FW_FN void FW_OF(fw_load)(const FW_OF(fw_work) w, const FW_REAL *from, int rows, int columns, int is_turned) {
    if (w.lane == 0) *w.note = 0;
    FW_MEET(w);
    FW_EACH_ROW(i, 0, rows) {
        FW_EACH_COLUMN(j, 0, columns) {
            const FW_REAL x = from[i * columns + j];
            FW_AT(is_turned ? j : i, is_turned ? i : j) = x;
            if (x - x != 0) *w.note = 1;
        }
    }
    FW_MEET(w);
}

FW_FN void FW_OF(fw_fill_with_nan)(const FW_OF(fw_work) w, FW_REAL *to, int elements) {
    FW_EACH(i, 0, elements) to[i] = FW_REAL_NAN;
}

/* A power of two that brings a magnitude near to 1, so that its square neither overflows nor underflows. */
FW_FN FW_REAL FW_OF(fw_scale_of)(FW_REAL magnitude) {
    if (magnitude > FW_REAL_GREAT) return 1 / FW_REAL_SCALE;
    return magnitude < 1 / FW_REAL_GREAT ? FW_REAL_SCALE : 1;
}

/* ---- PA = LU (section 3.4), and what it gives ---- */

/* Replaces the matrix by L and U, whose row i is row place[i] of A. The first of the greatest pivots is taken. The matrix
 * is singular if this returns 0. */
FW_FN int FW_OF(fw_factor)(const FW_OF(fw_work) w, int side, int *sign) {
    int is_regular = 1;
    *sign = 1;
    FW_EACH(i, 0, side) w.place[i] = i;
    FW_MEET(w);
    for (int k = 0; k < side; k++) {
        int best = k;
        FW_REAL greatest = FW_OF(fw_abs)(FW_AT(k, k));
        for (int i = k + 1; i < side; i++) {
            const FW_REAL x = FW_OF(fw_abs)(FW_AT(i, k));
            best = x > greatest ? i : best;
            greatest = x > greatest ? x : greatest;
        }
        if (!(greatest > 0)) {
            is_regular = 0;
            continue;
        }
        FW_MEET(w);
        if (best != k) {
            *sign = -*sign;
            FW_EACH(j, 0, side) {
                const FW_REAL x = FW_AT(k, j);
                FW_AT(k, j) = FW_AT(best, j);
                FW_AT(best, j) = x;
            }
            if (w.lane == 0) {
                const int place = w.place[k];
                w.place[k] = w.place[best];
                w.place[best] = place;
            }
            FW_MEET(w);
        }
        FW_EACH(i, k + 1, side) FW_AT(i, k) /= FW_AT(k, k);
        FW_MEET(w);
        FW_EACH_ROW(i, k + 1, side) {
            const FW_REAL factor = -FW_AT(i, k);
            FW_EACH_COLUMN(j, k + 1, side) FW_AT(i, j) = FW_OF(fw_fma)(factor, FW_AT(k, j), FW_AT(i, j));
        }
        FW_MEET(w);
    }
    return is_regular;
}

/* Solves LUX = x, where x has its rows in the order of L, column by column of L and U (section 3.1). x may be `to`. */
FW_FN void FW_OF(fw_substitute)(const FW_OF(fw_work) w, FW_REAL *x, FW_REAL *to, int side, int columns) {
    FW_MEET(w);
    for (int k = 0; k < side; k++) {
        FW_EACH_ROW(i, k + 1, side) {
            const FW_REAL factor = -FW_AT(i, k);
            FW_EACH_COLUMN(j, 0, columns)
                x[i * columns + j] = FW_OF(fw_fma)(factor, x[k * columns + j], x[i * columns + j]);
        }
        FW_MEET(w);
    }
    for (int k = side - 1; k >= 0; k--) {
        FW_EACH(j, 0, columns) x[k * columns + j] /= FW_AT(k, k);
        FW_MEET(w);
        FW_EACH_ROW(i, 0, k) {
            const FW_REAL factor = -FW_AT(i, k);
            FW_EACH_COLUMN(j, 0, columns)
                x[i * columns + j] = FW_OF(fw_fma)(factor, x[k * columns + j], x[i * columns + j]);
        }
        FW_MEET(w);
    }
    FW_EACH(i, 0, side * columns) to[i] = FW_OF(fw_canonical)(x[i]);
}

FW_FN void FW_OF(fw_solve)(
    const FW_OF(fw_work) w, fw_shape shape, const FW_REAL *from, const FW_REAL *right, FW_REAL *to
) {
    const int side = shape.rows, columns = shape.others;
    int sign;
    FW_OF(fw_load)(w, from, side, side, 0);
    FW_EACH(i, 0, side * columns) {
        if (right[i] - right[i] != 0) *w.note = 1;
    }
    FW_MEET(w);
    if (*w.note || !FW_OF(fw_factor)(w, side, &sign)) {
        FW_OF(fw_fill_with_nan)(w, to, side * columns);
        return;
    }
    FW_REAL *x = FW_OF(fw_near)(w, to, side * columns);
    FW_EACH_ROW(i, 0, side) {
        FW_EACH_COLUMN(j, 0, columns) x[i * columns + j] = right[w.place[i] * columns + j];
    }
    FW_OF(fw_substitute)(w, x, to, side, columns);
}

FW_FN void FW_OF(fw_inv)(
    const FW_OF(fw_work) w, fw_shape shape, const FW_REAL *from, const FW_REAL *right, FW_REAL *to
) {
    const int side = shape.rows;
    int sign;
    FW_OF(fw_load)(w, from, side, side, 0);
    if (*w.note || !FW_OF(fw_factor)(w, side, &sign)) {
        FW_OF(fw_fill_with_nan)(w, to, side * side);
        return;
    }
    FW_REAL *x = FW_OF(fw_near)(w, to, side * side);
    FW_EACH_ROW(i, 0, side) {
        FW_EACH_COLUMN(j, 0, side) x[i * side + j] = w.place[i] == j;
    }
    FW_OF(fw_substitute)(w, x, to, side, side);
}

/* Multiplies a number by 2 to the power of whole multiples, so that it is moderate; `*power` counts them. */
FW_FN FW_REAL FW_OF(fw_moderate)(FW_REAL x, int *power) {
    for (int step = 0; step < 3 && FW_OF(fw_abs)(x) > FW_REAL_GREAT; step++, (*power)++) x *= 1 / FW_REAL_GREAT;
    for (int step = 0; step < 3 && x != 0 && FW_OF(fw_abs)(x) < 1 / FW_REAL_GREAT; step++, (*power)--) x *= FW_REAL_GREAT;
    return x;
}

/* The product of the pivots overflows or underflows only if the determinant does. */
FW_FN void FW_OF(fw_det)(
    const FW_OF(fw_work) w, fw_shape shape, const FW_REAL *from, const FW_REAL *right, FW_REAL *to
) {
    int sign, power = 0;
    FW_OF(fw_load)(w, from, shape.rows, shape.rows, 0);
    if (*w.note) {
        FW_OF(fw_fill_with_nan)(w, to, 1);
        return;
    }
    FW_OF(fw_factor)(w, shape.rows, &sign);
    if (w.lane != 0) return;
    FW_REAL product = (FW_REAL)sign;
    for (int k = 0; k < shape.rows; k++)
        product = FW_OF(fw_moderate)(product * FW_OF(fw_moderate)(FW_AT(k, k), &power), &power);
    for (; power > 0; power--) product *= FW_REAL_GREAT;
    for (; power < 0; power++) product *= 1 / FW_REAL_GREAT;
    *to = FW_OF(fw_canonical)(product);
}

FW_FN void FW_OF(fw_slogdet)(
    const FW_OF(fw_work) w, fw_shape shape, const FW_REAL *from, const FW_REAL *right, FW_REAL *to
) {
    int sign;
    FW_OF(fw_load)(w, from, shape.rows, shape.rows, 0);
    if (*w.note) {
        FW_OF(fw_fill_with_nan)(w, to, 2);
        return;
    }
    const int is_regular = FW_OF(fw_factor)(w, shape.rows, &sign);
    if (w.lane != 0) return;
    FW_REAL logarithm = 0;
    for (int k = 0; k < shape.rows; k++) {
        logarithm += FW_OF(fw_log)(FW_OF(fw_abs)(FW_AT(k, k)));
        sign = FW_AT(k, k) < 0 ? -sign : sign;
    }
    to[0] = is_regular ? (FW_REAL)sign : 0;
    to[1] = is_regular ? FW_OF(fw_canonical)(logarithm) : -FW_REAL_INFINITY;
}

/* ---- A = LL' (section 4.2) ---- */

FW_FN void FW_OF(fw_cholesky)(
    const FW_OF(fw_work) w, fw_shape shape, const FW_REAL *from, const FW_REAL *right, FW_REAL *to
) {
    const int side = shape.rows;
    FW_OF(fw_load)(w, from, side, side, shape.is_upper);
    int is_positive = !*w.note;
    for (int k = 0; k < side && is_positive; k++) {
        const FW_REAL square = FW_AT(k, k), root = FW_OF(fw_sqrt)(square);
        is_positive = square > 0;
        FW_MEET(w);
        FW_EACH(i, k, side) FW_AT(i, k) = i == k ? root : FW_AT(i, k) / root;
        FW_MEET(w);
        FW_EACH_ROW(i, k + 1, side) {
            const FW_REAL factor = -FW_AT(i, k);
            FW_EACH_COLUMN(j, k + 1, i + 1) FW_AT(i, j) = FW_OF(fw_fma)(factor, FW_AT(j, k), FW_AT(i, j));
        }
        FW_MEET(w);
    }
    if (!is_positive) {
        FW_OF(fw_fill_with_nan)(w, to, side * side);
        return;
    }
    FW_EACH_ROW(i, 0, side) {
        FW_EACH_COLUMN(j, 0, side) {
            const FW_REAL x = shape.is_upper ? (i <= j ? FW_AT(j, i) : 0) : (j <= i ? FW_AT(i, j) : 0);
            to[i * side + j] = FW_OF(fw_canonical)(x);
        }
    }
}

/* ---- Householder's reflections I - tau v v' (section 5.1), and A = QR (section 5.2) ---- */

/* The first element of v is 1, and the others are those of the reflected column, times `scale` and divided by `divisor`.
 * The column becomes `diagonal` and zeros. */
typedef struct {
    FW_REAL tau, diagonal, scale, divisor;
} FW_OF(fw_reflection);

/* Finds the reflection of a part of a column. The signs are those of LAPACK: a column that is zero below its first element
 * stays as it is. All lanes find the same. */
FW_FN FW_OF(fw_reflection) FW_OF(fw_reflection_of)(const FW_OF(fw_work) w, int begin, int end, int column) {
    FW_REAL own = FW_AT(begin, column), below = 0, sum = 0;
    FW_OF(fw_reflection) found = {0, own, 1, 1};
    for (int i = begin + 1; i < end; i++) {
        const FW_REAL x = FW_OF(fw_abs)(FW_AT(i, column));
        below = x > below ? x : below;
    }
    if (!(below > 0)) return found;
    found.scale = FW_OF(fw_scale_of)(FW_OF(fw_abs)(own) > below ? FW_OF(fw_abs)(own) : below);
    for (int i = begin; i < end; i++) {
        const FW_REAL x = FW_AT(i, column) * found.scale;
        sum = FW_OF(fw_fma)(x, x, sum);
    }
    own *= found.scale;
    const FW_REAL diagonal = -FW_OF(fw_copysign)(FW_OF(fw_sqrt)(sum), own);
    found.tau = (diagonal - own) / diagonal;
    found.divisor = own - diagonal;
    found.diagonal = diagonal / found.scale;
    return found;
}

/* Replaces the matrix by R and, below it, each v without its first element. `first` has tau. */
FW_FN void FW_OF(fw_reflect)(const FW_OF(fw_work) w, int rows, int columns) {
    for (int k = 0; k < rows && k < columns; k++) {
        const FW_OF(fw_reflection) found = FW_OF(fw_reflection_of)(w, k, rows, k);
        FW_MEET(w);
        FW_EACH(i, k + 1, rows) FW_AT(i, k) = FW_AT(i, k) * found.scale / found.divisor;
        if (w.lane == 0) {
            FW_AT(k, k) = found.diagonal;
            w.first[k] = found.tau;
        }
        FW_MEET(w);
        FW_EACH(j, k + 1, columns) {
            FW_REAL sum = FW_AT(k, j);
            for (int i = k + 1; i < rows; i++) sum = FW_OF(fw_fma)(FW_AT(i, k), FW_AT(i, j), sum);
            sum *= -found.tau;
            FW_AT(k, j) += sum;
            for (int i = k + 1; i < rows; i++) FW_AT(i, j) = FW_OF(fw_fma)(sum, FW_AT(i, k), FW_AT(i, j));
        }
        FW_MEET(w);
    }
}

/* Writes the first `shape.others` columns of Q. A lane has whole columns, so that no lane waits. */
FW_FN void FW_OF(fw_accumulate)(const FW_OF(fw_work) w, fw_shape shape, FW_REAL *q) {
    const int rows = shape.rows, columns = shape.others;
    const int reflections = rows < shape.columns ? rows : shape.columns;
    FW_EACH(j, 0, columns) {
        for (int i = 0; i < rows; i++) q[i * columns + j] = i == j;
        for (int k = j < reflections ? j : reflections - 1; k >= 0; k--) {
            FW_REAL sum = q[k * columns + j];
            for (int i = k + 1; i < rows; i++) sum = FW_OF(fw_fma)(FW_AT(i, k), q[i * columns + j], sum);
            sum *= -w.first[k];
            q[k * columns + j] += sum;
            for (int i = k + 1; i < rows; i++)
                q[i * columns + j] = FW_OF(fw_fma)(sum, FW_AT(i, k), q[i * columns + j]);
        }
        for (int i = 0; i < rows; i++) q[i * columns + j] = FW_OF(fw_canonical)(q[i * columns + j]);
    }
}

FW_FN void FW_OF(fw_qr)(
    const FW_OF(fw_work) w, fw_shape shape, const FW_REAL *from, const FW_REAL *right, FW_REAL *to
) {
    FW_REAL *r = to + shape.rows * shape.others;
    FW_OF(fw_load)(w, from, shape.rows, shape.columns, 0);
    if (*w.note) {
        FW_OF(fw_fill_with_nan)(w, to, (shape.rows + shape.columns) * shape.others);
        return;
    }
    FW_OF(fw_reflect)(w, shape.rows, shape.columns);
    FW_OF(fw_accumulate)(w, shape, to);
    FW_EACH_ROW(i, 0, shape.others) {
        FW_EACH_COLUMN(j, 0, shape.columns) r[i * shape.columns + j] = i <= j ? FW_OF(fw_canonical)(FW_AT(i, j)) : 0;
    }
}

/* ---- A = V D V', by a tridiagonal matrix (section 8.3) ---- */

/* Loads a symmetric matrix, of which one triangle is read, with numbers near to 1. Returns by what it is multiplied. */
FW_FN FW_REAL FW_OF(fw_load_symmetric)(const FW_OF(fw_work) w, fw_shape shape, const FW_REAL *from) {
    const int side = shape.rows;
    FW_REAL greatest = 0;
    FW_OF(fw_load)(w, from, side, side, shape.is_upper);
    FW_EACH(i, 0, side) {
        FW_REAL most = 0;
        for (int j = 0; j <= i; j++) {
            const FW_REAL x = FW_OF(fw_abs)(FW_AT(i, j));
            most = x > most ? x : most;
        }
        w.first[i] = most;
    }
    FW_MEET(w);
    for (int i = 0; i < side; i++) greatest = w.first[i] > greatest ? w.first[i] : greatest;
    const FW_REAL scale = FW_OF(fw_scale_of)(greatest);
    FW_EACH_ROW(i, 0, side) {
        FW_EACH_COLUMN(j, 0, i + 1) {
            const FW_REAL x = FW_AT(i, j) * scale;
            FW_AT(i, j) = x;
            FW_AT(j, i) = x;
        }
    }
    FW_MEET(w);
    return scale;
}

/* Makes the matrix tridiagonal by reflections from both sides: `first` gets its diagonal, and `second` what is below. Row k
 * of the matrix gets tau, on the diagonal, and v. Until then `first` and `second` have v and A's change, from k + 1 on. */
FW_FN void FW_OF(fw_tridiagonalise)(const FW_OF(fw_work) w, int side) {
    for (int k = 0; k < side - 1; k++) {
        const FW_OF(fw_reflection) found = FW_OF(fw_reflection_of)(w, k + 1, side, k);
        FW_EACH(i, k + 1, side) {
            const FW_REAL x = i == k + 1 ? 1 : FW_AT(i, k) * found.scale / found.divisor;
            w.first[i] = x;
            FW_AT(k, i) = x;
        }
        if (w.lane == 0) {
            w.first[k] = FW_AT(k, k);
            w.second[k] = found.diagonal;
            FW_AT(k, k) = found.tau;
        }
        FW_MEET(w);
        if (found.tau == 0) continue;
        FW_EACH(i, k + 1, side) {
            FW_REAL sum = 0;
            for (int j = k + 1; j < side; j++) sum = FW_OF(fw_fma)(FW_AT(i, j), w.first[j], sum);
            w.second[i] = found.tau * sum;
        }
        FW_MEET(w);
        FW_REAL sum = 0;
        for (int j = k + 1; j < side; j++) sum = FW_OF(fw_fma)(w.second[j], w.first[j], sum);
        sum *= found.tau / -2;
        FW_MEET(w);
        FW_EACH(j, k + 1, side) w.second[j] = FW_OF(fw_fma)(sum, w.first[j], w.second[j]);
        FW_MEET(w);
        FW_EACH_ROW(i, k + 1, side) { /* of both triangles: the change of an element is that of its image */
            const FW_REAL x = w.first[i], y = w.second[i];
            FW_EACH_COLUMN(j, k + 1, side) FW_AT(i, j) -= x * w.second[j] + y * w.first[j];
        }
        FW_MEET(w);
    }
    if (w.lane == 0) w.first[side - 1] = FW_AT(side - 1, side - 1);
    FW_MEET(w);
}

/* Writes the product of the reflections, its columns as rows of v, which lie `pitch` elements apart. */
FW_FN void FW_OF(fw_multiply_reflections)(const FW_OF(fw_work) w, int side, FW_REAL *v, int pitch) {
    FW_EACH(j, 0, side) {
        FW_REAL *row = v + j * pitch;
        for (int i = 0; i < side; i++) row[i] = i == j;
        for (int k = j - 1; k >= 0; k--) {
            FW_REAL sum = 0;
            for (int i = k + 1; i < side; i++) sum = FW_OF(fw_fma)(FW_AT(k, i), row[i], sum);
            sum *= -FW_AT(k, k);
            for (int i = k + 1; i < side; i++) row[i] = FW_OF(fw_fma)(sum, FW_AT(k, i), row[i]);
        }
    }
    FW_MEET(w);
}

/* The root of x x + y y. */
FW_FN FW_REAL FW_OF(fw_length)(FW_REAL x, FW_REAL y) {
    const FW_REAL a = FW_OF(fw_abs)(x), b = FW_OF(fw_abs)(y);
    const FW_REAL greater = a > b ? a : b, less = a > b ? b : a;
    if (greater == 0) return 0;
    const FW_REAL quotient = less / greater;
    return greater * FW_OF(fw_sqrt)(FW_OF(fw_fma)(quotient, quotient, 1));
}

/* A step of the implicit QL algorithm, on rows `begin` to `end` of the tridiagonal matrix, with Wilkinson's shift. It is
 * that of LAPACK's steqr. The cosine and the sine of the rotation of rows k and k + 1 go to rows 0 and 1 of the matrix.
 * Returns the first k of a rotation. */
FW_FN int FW_OF(fw_rotate_tridiagonal)(const FW_OF(fw_work) w, int begin, int end) {
    FW_REAL *d = w.first, *e = w.second, sine = 1, cosine = 1, change = 0;
    const FW_REAL half = (d[begin + 1] - d[begin]) / (2 * e[begin]), root = FW_OF(fw_length)(half, 1);
    FW_REAL bulge = d[end] - d[begin] + e[begin] / (half + FW_OF(fw_copysign)(root, half));
    for (int k = end - 1; k >= begin; k--) {
        const FW_REAL beyond = sine * e[k], beside = cosine * e[k], length = FW_OF(fw_length)(beyond, bulge);
        e[k + 1] = length;
        if (length == 0) {
            d[k + 1] -= change;
            e[end] = 0;
            return k + 1;
        }
        sine = beyond / length;
        cosine = bulge / length;
        const FW_REAL own = d[k + 1] - change, more = (d[k] - own) * sine + 2 * cosine * beside;
        change = sine * more;
        d[k + 1] = own + change;
        bulge = cosine * more - beside;
        FW_AT(0, k) = cosine;
        FW_AT(1, k) = sine;
    }
    d[begin] -= change;
    e[begin] = bulge;
    e[end] = 0;
    return begin;
}

/* Makes the tridiagonal matrix diagonal. One lane finds the rotations, and all apply them to v: each has whole columns. The
 * note is then 0 if all eigenvalues are found, and 2 if one takes too many steps. */
FW_FN int FW_OF(fw_diagonalise)(const FW_OF(fw_work) w, int side, FW_REAL *v, int pitch) {
    int found = 0, steps = 0;
    for (;;) {
        if (w.lane == 0) {
            int end = 0;
            for (; found < side; found++, steps = 0) {
                for (end = found; end < side - 1; end++) {
                    const FW_REAL beside = FW_OF(fw_abs)(w.first[end]) + FW_OF(fw_abs)(w.first[end + 1]);
                    if (FW_OF(fw_abs)(w.second[end]) <= FW_REAL_EPSILON / 2 * beside) break;
                }
                if (end > found) break;
            }
            *w.note = found == side ? 0 : steps++ < FW_MOST_STEPS ? 1 : 2;
            w.place[0] = *w.note == 1 ? FW_OF(fw_rotate_tridiagonal)(w, found, end) : 0;
            w.place[1] = end;
        }
        FW_MEET(w);
        const int note = *w.note, begin = w.place[0], end = w.place[1];
        if (note != 1) return note == 0;
        for (int k = end - 1; v && k >= begin; k--) {
            const FW_REAL cosine = FW_AT(0, k), sine = FW_AT(1, k);
            FW_REAL *x = v + k * pitch, *y = x + pitch;
            FW_EACH(i, 0, side) {
                const FW_REAL own = x[i], next = y[i];
                y[i] = FW_OF(fw_fma)(sine, own, cosine * next);
                x[i] = FW_OF(fw_fma)(cosine, own, -sine * next);
            }
        }
        FW_MEET(w);
    }
}

/* Writes the eigenvalues in ascending order, equal ones in the order in which they were found, and the vectors, rows of v,
 * as columns in this order. Their lengths are made 1, because many rotations have changed them a little. */
FW_FN void FW_OF(fw_write_ascending)(
    const FW_OF(fw_work) w, int side, FW_REAL scale, const FW_REAL *v, int pitch, FW_REAL *values, FW_REAL *vectors
) {
    FW_MEET(w);
    FW_EACH(j, 0, side) {
        FW_REAL sum = 0;
        int place = 0;
        for (int i = 0; i < side; i++) place += w.first[i] < w.first[j] || (w.first[i] == w.first[j] && i < j);
        for (int i = 0; v && i < side; i++) sum = FW_OF(fw_fma)(v[j * pitch + i], v[j * pitch + i], sum);
        w.place[j] = place;
        w.second[j] = FW_OF(fw_sqrt)(sum);
        values[place] = w.first[j] / scale;
    }
    if (!v) return;
    FW_MEET(w);
    FW_EACH_ROW(j, 0, side) {
        FW_EACH_COLUMN(i, 0, side) FW_AT(i, w.place[j]) = v[j * pitch + i] / w.second[j];
    }
    FW_MEET(w);
    FW_EACH_ROW(i, 0, side) {
        FW_EACH_COLUMN(j, 0, side) vectors[i * side + j] = FW_OF(fw_canonical)(FW_AT(i, j));
    }
}

/* `vectors` is null if only the eigenvalues are wanted. */
FW_FN void FW_OF(fw_decompose)(
    const FW_OF(fw_work) w, fw_shape shape, const FW_REAL *from, FW_REAL *values, FW_REAL *vectors
) {
    const int side = shape.rows, is_near = side * w.pitch <= w.near_elements, pitch = is_near ? w.pitch : side;
    FW_REAL *v = vectors && is_near ? w.near : vectors;
    const FW_REAL scale = FW_OF(fw_load_symmetric)(w, shape, from);
    int is_found = !*w.note;
    FW_MEET(w);
    if (is_found) {
        FW_OF(fw_tridiagonalise)(w, side);
        if (v) FW_OF(fw_multiply_reflections)(w, side, v, pitch);
        is_found = FW_OF(fw_diagonalise)(w, side, v, pitch);
    }
    if (is_found) {
        FW_OF(fw_write_ascending)(w, side, scale, v, pitch, values, vectors);
        return;
    }
    FW_MEET(w);
    FW_OF(fw_fill_with_nan)(w, values, side);
    if (v) FW_OF(fw_fill_with_nan)(w, vectors, side * side);
}

FW_FN void FW_OF(fw_eigh)(
    const FW_OF(fw_work) w, fw_shape shape, const FW_REAL *from, const FW_REAL *right, FW_REAL *to
) {
    FW_OF(fw_decompose)(w, shape, from, to, to + shape.rows);
}

FW_FN void FW_OF(fw_eigvalsh)(
    const FW_OF(fw_work) w, fw_shape shape, const FW_REAL *from, const FW_REAL *right, FW_REAL *to
) {
    FW_OF(fw_decompose)(w, shape, from, to, (FW_REAL *)0);
}
#undef FW_OF
#undef FW_REAL
#undef FW_REAL_NAN
#undef FW_REAL_INFINITY
#undef FW_REAL_GREAT
#undef FW_REAL_SCALE
#undef FW_REAL_EPSILON
#undef FW_MEET
#endif
void fw_8441ce3e7f9bcff2e747(const int64_t *sizes, const fw_operand *operands, const int64_t *slots) {
    const int64_t count = sizes[0];
    const int64_t height = sizes[1];
    const int64_t width = sizes[2];
    const int64_t others = sizes[3];
    const int64_t is_upper = sizes[4];
    const fw_shape shape = {(int)height, (int)width, (int)others, (int)is_upper};
    const float *from = (const float *)(slots[operands[0].column] + operands[0].byte_offset);
    const float *right = (const float *)(slots[operands[1].column] + operands[1].byte_offset);
    float *result = (float *)(slots[operands[2].column] + operands[2].byte_offset);
    float matrix[4160], first[64], second[64];
    int place[64], note;
    const fw_work_f32 work = {matrix, first, second, 0, place, &note, 0, (int)(height > width ? height : width) | 1, 0, 1, 1};
    for (int64_t at = 0; at < count; at++) fw_solve_f32(work, shape, &from[at * height * width], &right[at * height * others], &result[at * (height * others)]);
}

// The activations, one entry each. Everything else follows from this table: the enum, the reference and the fast
// kernels, the words of descriptions with their documentation, and the tests. An activation with a parameter or keys is
// a separate part instead (parts/activation/swish_beta_activation.c).
//
//   X(name, word, value, slope, vector, vector_slope, part)
//
// value, slope   act(v) and act'(v) of a double v, for the reference (device/reference/activation_ref.c)
// vector...      the same of a register x of floats, for fast kernels of every device, with one exponential at most,
// and
//                what ops/activation_forms.h has
// part           what tarn__part says of the word: text, equation, source, other names
//
// Phi is the distribution function of the normal distribution, sigma(x) = 1 / (1 + e^-x).
#ifndef TARN_OPS_ACTIVATION_TABLE_H
#define TARN_OPS_ACTIVATION_TABLE_H

// SELU: the fixed point of mean 0 and variance 1.
#define TARN__SELU_LAMBDA 1.0507009873554804934
#define TARN__SELU_ALPHA 1.6732632423543772848

// clang-format off
#define TARN__ACTIVATION_IDENTITY(X) \
  X(TARN__IDENTITY, identity, v, 1, x, one, \
    (.text = "x: the two products are one linear map", .equation = "x", .source = "none", .also = "linear none"))

// Its gradient needs only the sign of y.
#define TARN__ACTIVATION_RELU(X) \
  X(TARN__RELU, relu, v > 0 ? v : 0, v > 0 ? 1 : 0, \
    tarn__vec_select(x < 0.0f, zero, x), tarn__vec_select(x > 0.0f, one, zero), \
    (.text = "max(x, 0)", .equation = "max(x, 0)", .source = "Nair and Hinton 2010"))

// Those that keep their input z.
#define TARN__ACTIVATION_KEEPING(X) \
  X(TARN__GELU, gelu, \
    0.5 * v * erfc(-HALF_ROOT * v), 0.5 * erfc(-HALF_ROOT * v) + v * DENSITY * exp(-0.5 * v * v), \
    tarn__gelu_vec(x), tarn__gelu_slope_vec(x, false), \
    (.text = "x Phi(x) with the normal distribution's Phi, Hendrycks and Gimpel 2016", \
     .equation = "x Phi(x), Phi the distribution function of the normal distribution", \
     .source = "Hendrycks and Gimpel 2016 (arXiv 1606.08415)")) \
  X(TARN__GELU_TANH, gelu_tanh, \
    0.5 * v * (1.0 + gelu_tanh(v)), \
    0.5 * (1.0 + gelu_tanh(v)) + 0.5 * v * (1.0 - gelu_tanh(v) * gelu_tanh(v)) * ROOT * (1.0 + 3.0 * CUBE * v * v), \
    x * tarn__vec_sigmoid(tarn__gelu_angle(x)), tarn__gelu_slope_vec(x, true), \
    (.text = "x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))): that of GPT-2, gelu_new at Hugging Face", \
     .equation = "x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))", \
     .source = "Hendrycks and Gimpel 2016 (arXiv 1606.08415)", \
     .also = "gelu_new gelu_pytorch_tanh gelu_fast")) \
  X(TARN__RELU_SQUARED, relu_squared, v > 0 ? v * v : 0, v > 0 ? 2 * v : 0, \
    tarn__vec_select(x < 0.0f, zero, x * x), tarn__vec_select(x > 0.0f, x + x, zero), \
    (.text = "max(x, 0)^2, So et al. 2021", .equation = "max(x, 0)^2", .source = "So et al. 2021 (arXiv 2109.08668)", \
     .also = "relu2 squared_relu")) \
  X(TARN__ELU, elu, v > 0 ? v : expm1(v), v > 0 ? 1 : exp(v), \
    tarn__vec_select(x > 0.0f, x, tarn__activation_exp(x) - 1.0f), \
    tarn__vec_select(x > 0.0f, one, tarn__activation_exp(x)), \
    (.text = "x where x > 0, else e^x - 1, Clevert et al. 2016", .equation = "x where x > 0, else e^x - 1", \
     .source = "Clevert et al. 2016 (arXiv 1511.07289)")) \
  X(TARN__SELU, selu, \
    TARN__SELU_LAMBDA * (v > 0 ? v : TARN__SELU_ALPHA * expm1(v)), \
    TARN__SELU_LAMBDA * (v > 0 ? 1 : TARN__SELU_ALPHA * exp(v)), \
    (float)TARN__SELU_LAMBDA * \
      tarn__vec_select(x > 0.0f, x, (float)TARN__SELU_ALPHA * (tarn__activation_exp(x) - 1.0f)), \
    (float)TARN__SELU_LAMBDA * tarn__vec_select(x > 0.0f, one, (float)TARN__SELU_ALPHA * tarn__activation_exp(x)), \
    (.text = "1.0507 x where x > 0, else 1.7581 (e^x - 1), Klambauer et al. 2017", \
     .equation = "1.0507 x where x > 0, else 1.7581 (e^x - 1)", \
     .source = "Klambauer et al. 2017 (arXiv 1706.02515)")) \
  X(TARN__SWISH, swish, v * sigmoid(v), sigmoid(v) * (1 + v * (1 - sigmoid(v))), \
    x * tarn__vec_sigmoid(x), tarn__swish_slope_vec(x), \
    (.text = "x / (1 + e^-x), Ramachandran et al. 2017 with beta 1; also called SiLU", \
     .equation = "x / (1 + e^-x)", \
     .source = "Ramachandran et al. 2017 (arXiv 1710.05941)", \
     .also = "silu"))

// Only for gates: no word of a description.
#define TARN__ACTIVATION_OF_GATES(X) \
  X(TARN__SIGMOID, sigmoid, sigmoid(v), sigmoid(v) * (1 - sigmoid(v)), \
    tarn__vec_sigmoid(x), tarn__sigmoid_slope_vec(x), ())
// clang-format on

// In the order of the enum, on which no model file depends.
#define TARN__EACH_ACTIVATION(X) \
  TARN__ACTIVATION_IDENTITY(X) TARN__ACTIVATION_RELU(X) TARN__ACTIVATION_KEEPING(X) TARN__ACTIVATION_OF_GATES(X)
// Those that keep z, for kernels compiled once for each.
#define TARN__KEPT_ACTIVATIONS(X) TARN__ACTIVATION_KEEPING(X) TARN__ACTIVATION_OF_GATES(X)
// Words of descriptions, the default first.
#define TARN__ACTIVATION_WORDS(X) TARN__ACTIVATION_RELU(X) TARN__ACTIVATION_KEEPING(X) TARN__ACTIVATION_IDENTITY(X)

#endif

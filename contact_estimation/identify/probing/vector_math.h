/* Vector versions of the functions that generated code calls, where the C library has them (glibc's libmvec; errors of at
 * most four units in the last place). Other names keep the compiler from joining sine and cosine to a complex exponential,
 * which has no vector version. Elsewhere the ordinary functions are called. */
#include <math.h>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
extern double ce_sin(double) __asm__("sin") __attribute__((const, __simd__("notinbranch")));
extern double ce_cos(double) __asm__("cos") __attribute__((const, __simd__("notinbranch")));
extern double ce_exp(double) __asm__("exp") __attribute__((const, __simd__("notinbranch")));
#define sin ce_sin
#define cos ce_cos
#define exp ce_exp
#endif

/* Generated functions are called from this text only, so that they can be inlined into loops. */
#define CASADI_SYMBOL_EXPORT static __attribute__((unused))

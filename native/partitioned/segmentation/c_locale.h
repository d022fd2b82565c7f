/* Numbers are read and printed with a decimal point: the program may have set a locale with a comma. */
#ifndef EB_C_LOCALE_H
#define EB_C_LOCALE_H

#include <locale.h>

typedef struct {
  locale_t own, before;
} eb_c_locale;

/* The calling thread uses the C locale until eb_c_locale_end; without memory for it, that of the program stays. */
static inline eb_c_locale eb_c_locale_begin(void) {
  const locale_t own = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  return (eb_c_locale){own, own ? uselocale(own) : (locale_t)0};
}

static inline void eb_c_locale_end(eb_c_locale locale) {
  if (!locale.own) return;
  uselocale(locale.before);
  freelocale(locale.own);
}

#endif

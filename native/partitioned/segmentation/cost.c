/* Evaluates the cost of a message and reads costs from text. */
#include "partitioned/segmentation/cost.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "partitioned/segmentation/c_locale.h"

/* Where nothing is known, nothing costs anything. */
static const eb_protocol unknown = {0, 0, 0, INFINITY};

static const eb_protocol *protocol_of(const eb_cost *cost, int64_t bytes) {
  int p = cost->num - 1;
  if (p < 0) return &unknown;
  while (p > 0 && cost->protocols[p].min_bytes > bytes) p--;
  return &cost->protocols[p];
}

double eb_cost_time_s(const eb_cost *cost, int64_t bytes) {
  const eb_protocol *protocol = protocol_of(cost, bytes);
  return protocol->latency_s + (double)bytes / protocol->bandwidth_bytes_per_s;
}

double eb_cost_overhead_s(const eb_cost *cost, int64_t bytes) { return protocol_of(cost, bytes)->overhead_s; }

double eb_cost_core_s(const eb_cost *cost, int64_t bytes) {
  double most_s = 0;
  for (int p = 0; p < cost->num && cost->protocols[p].min_bytes <= bytes; p++)
    if (cost->protocols[p].overhead_s > most_s) most_s = cost->protocols[p].overhead_s;
  return most_s;
}

/* By at most these fractions of themselves and of one message's time. */
#define ALIKE 0.25
#define ALIKE_MESSAGE 0.1

bool eb_cost_is_alike(double a_s, double b_s, double message_s) {
  const double less_s = a_s < b_s ? a_s : b_s, more_s = a_s < b_s ? b_s : a_s;
  return more_s - less_s <= ALIKE * more_s + ALIKE_MESSAGE * message_s;
}

double eb_cost_bandwidth_bytes_per_s(const eb_cost *cost) { return protocol_of(cost, INT64_MAX)->bandwidth_bytes_per_s; }

/* One number and the character behind it; NULL when there is no finite number. */
static const char *read_number(const char *at, double *value) {
  char *end;
  *value = strtod(at, &end);
  return end == at || !isfinite(*value) ? NULL : end;
}

static bool parse(const char *text, int length, eb_cost *cost) {
  char copy[1024];
  if (length < 1 || length >= (int)sizeof copy) return false;
  memcpy(copy, text, (size_t)length);
  copy[length] = '\0';
  eb_cost read = {0};
  for (const char *at = copy;;) {
    double values[4];
    for (int v = 0; v < 4; v++) {
      at = read_number(at, &values[v]);
      if (!at || (v < 3 && *at++ != ':')) return false;
    }
    const double previous = read.num ? (double)read.protocols[read.num - 1].min_bytes : -1;
    const bool sound = values[0] > previous && (read.num > 0 || values[0] == 0) && values[0] < 9e18 &&
                       (double)(int64_t)values[0] == values[0] && values[2] >= 0 && values[3] > 0 &&
                       read.num < EB_COST_MAX_PROTOCOLS;
    if (!sound) return false;
    read.protocols[read.num++] = (eb_protocol){(int64_t)values[0], values[1], values[2], values[3]};
    if (*at == '\0') break;
    if (*at++ != ',') return false;
  }
  *cost = read;
  return true;
}

bool eb_cost_parse(const char *text, int length, eb_cost *cost) {
  const eb_c_locale locale = eb_c_locale_begin();
  const bool parsed = parse(text, length, cost);
  eb_c_locale_end(locale);
  return parsed;
}

int eb_cost_print(const eb_cost *cost, int digits, char *text, int size) {
  int length = 0;
  if (size > 0) text[0] = '\0';
  for (int p = 0; p < cost->num && length < size; p++) {
    const eb_protocol *const protocol = &cost->protocols[p];
    length += snprintf(text + length, (size_t)(size - length), "%s%lld:%.*g:%.*g:%.*g", p ? "," : "",
                       (long long)protocol->min_bytes, digits, protocol->latency_s, digits, protocol->overhead_s, digits,
                       protocol->bandwidth_bytes_per_s);
  }
  return length < size ? length : -1;
}

/* Reads and writes the text of the cache, and decides what to keep. */
#include "partitioned/cache/cache_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "partitioned/cache/store.h"
#include "partitioned/segmentation/c_locale.h"

#define FIRST_LINE EB_STORE_MARK "3\n"

/* Costs are measured again after a week: drivers, firmware and neighbours change. Costs that may be wrong are measured again
 * soon, but not by every one of many short runs. */
#define RENEWED_AFTER_S (INT64_C(7) * 86400)
#define RETRIED_AFTER_S (INT64_C(10) * 60)
/* From this age on whatever is measured replaces them. */
#define TRUSTED_FOR_S (INT64_C(30) * 86400)
#define RESULTS_KEPT_FOR_S (INT64_C(30) * 86400)
/* Costs that rise by this factor are believed when they are measured a second time. */
#define MUCH_SLOWER 1.25

/* No name is the beginning of a later one. */
static const char *const cost_names[EB_NUM_COSTS] = {"intra_node", "inter_node", "node_ring", "node_direct"};
static const char *const path_names[EB_NUM_PATHS] = {"message", "ring", "direct"};

uint64_t eb_cache_hash(const char *text, size_t length) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t b = 0; b < length; b++) hash = (hash ^ (unsigned char)text[b]) * UINT64_C(0x100000001b3);
  return hash;
}

/* ---- What is kept ---- */

static bool is_older(int64_t time, int64_t now, int64_t age_s) { return now - time >= age_s || time > now; }

bool eb_kept_cost_is_due(const eb_kept_cost *kept, int64_t now) {
  if (kept->cost.num == 0) return true;
  return is_older(kept->tried, now, kept->is_steady && !kept->is_doubted ? RENEWED_AFTER_S : RETRIED_AFTER_S);
}

/* The median of the ratios of times of single messages, at the sizes of the first cost. */
static double ratio(const eb_cost *cost, const eb_cost *to) {
  double ratios[EB_COST_MAX_PROTOCOLS];
  int num = 0;
  for (int p = 0; p < cost->num; p++) {
    const int64_t bytes = cost->protocols[p].min_bytes;
    const double time_s = eb_cost_time_s(cost, bytes), to_s = eb_cost_time_s(to, bytes);
    if (time_s > 0 && to_s > 0) ratios[num++] = time_s / to_s;
  }
  return num ? eb_planner_typical_s(ratios, num) : 1;
}

void eb_kept_cost_renew(eb_kept_cost *kept, const eb_kept_cost *measured) {
  const bool is_trusted = kept->cost.num > 0 && !is_older(kept->measured, measured->measured, TRUSTED_FOR_S);
  const double slower = is_trusted ? ratio(&measured->cost, &kept->cost) : 1;
  bool is_taken = true;
  bool is_doubted = false;
  if (is_trusted && !measured->is_steady) is_taken = !kept->is_steady && slower <= 1; /* noise only adds */
  else if (is_trusted && kept->is_steady && slower > MUCH_SLOWER) {
    is_taken = kept->is_doubted;
    is_doubted = !is_taken;
  }
  if (is_taken) *kept = *measured;
  kept->is_doubted = is_doubted || (kept->is_doubted && !is_taken);
  kept->tried = measured->measured;
}

bool eb_kept_result_is_alike(const eb_cache *cache, const eb_kept_result *a, const eb_kept_result *b) {
  const double message_s = eb_cost_time_s(&cache->costs[b->level].cost, b->total_bytes);
  return a->level == b->level && a->paths == b->paths && a->total_bytes == b->total_bytes &&
         a->num_partitions == b->num_partitions && eb_cost_is_alike(a->first_s, b->first_s, message_s) &&
         eb_cost_is_alike(a->half_s, b->half_s, message_s);
}

void eb_cache_add(eb_cache *cache, const eb_kept_result *result) {
  int oldest = 0, num = 0;
  for (int r = 0; r < cache->num_results; r++)
    if (eb_kept_result_is_alike(cache, &cache->results[r], result) && cache->results[r].found > result->found) return;
  for (int r = 0; r < cache->num_results; r++)
    if (!eb_kept_result_is_alike(cache, &cache->results[r], result)) cache->results[num++] = cache->results[r];
  cache->num_results = num;
  if (num < EB_CACHE_MAX_RESULTS) {
    cache->results[cache->num_results++] = *result;
    return;
  }
  for (int r = 1; r < num; r++)
    if (cache->results[r].found < cache->results[oldest].found) oldest = r;
  if (cache->results[oldest].found <= result->found) cache->results[oldest] = *result;
}

void eb_cache_expire(eb_cache *cache, int64_t now) {
  int num = 0;
  for (int r = 0; r < cache->num_results; r++)
    if (!is_older(cache->results[r].found, now, RESULTS_KEPT_FOR_S)) cache->results[num++] = cache->results[r];
  cache->num_results = num;
}

/* ---- Reading ---- */

/* Each of these moves the text on, or makes it NULL. */
static void skip(const char **at, const char *expected) {
  const size_t length = strlen(expected);
  if (*at) *at = strncmp(*at, expected, length) == 0 ? *at + length : NULL;
}

static int64_t read_whole(const char **at, int64_t least, int64_t most) {
  char *end;
  if (!*at || **at < '0' || **at > '9') return *at = NULL, 0;
  errno = 0;
  const long long value = strtoll(*at, &end, 10);
  *at = errno || value < least || value > most ? NULL : end;
  return value;
}

static double read_number(const char **at) {
  char *end;
  if (!*at || (**at != '-' && (**at < '0' || **at > '9'))) return *at = NULL, 0;
  const double value = strtod(*at, &end);
  *at = isfinite(value) ? end : NULL;
  return value;
}

static int read_name(const char **at, int num, const char *const *names) {
  for (int n = 0; *at && n < num; n++)
    if (strncmp(*at, names[n], strlen(names[n])) == 0) return skip(at, names[n]), n;
  *at = NULL;
  return 0;
}

static void read_cost(const char **at, eb_cache *cache) {
  eb_kept_cost *const kept = &cache->costs[read_name(at, EB_NUM_COSTS, cost_names)];
  if (kept->cost.num > 0) *at = NULL; /* each is written once */
  skip(at, " measured=");
  kept->measured = read_whole(at, 0, INT64_MAX);
  skip(at, " tried=");
  kept->tried = read_whole(at, 0, INT64_MAX);
  skip(at, " steady=");
  kept->is_steady = read_whole(at, 0, 1) == 1;
  skip(at, " doubted=");
  kept->is_doubted = read_whole(at, 0, 1) == 1;
  skip(at, " protocols=");
  if (!*at) return;
  const size_t length = strcspn(*at, "\n");
  *at = length < EB_CACHE_MAX_BYTES && eb_cost_parse(*at, (int)length, &kept->cost) ? *at + length : NULL;
}

static void read_result(const char **at, eb_cache *cache) {
  eb_kept_result result = {.level = read_name(at, EB_NUM_LEVELS, cost_names)};
  skip(at, " bytes=");
  result.total_bytes = read_whole(at, 1, INT64_MAX);
  skip(at, " partitions=");
  result.num_partitions = (int)read_whole(at, 1, INT32_MAX);
  skip(at, " first_s=");
  result.first_s = read_number(at);
  skip(at, " half_s=");
  result.half_s = read_number(at);
  skip(at, " won_s=");
  result.won_s = read_number(at);
  skip(at, " found=");
  result.found = read_whole(at, 0, INT64_MAX);
  skip(at, " paths=");
  result.paths = (unsigned)read_whole(at, 1, (1 << EB_NUM_PATHS) - 1);
  skip(at, " path=");
  result.cut.path = (eb_path)read_name(at, EB_NUM_PATHS, path_names);
  skip(at, " ends=");
  for (int64_t end = 0; *at && end < result.total_bytes && result.cut.num < EB_CUT_MAX_SEGMENTS;) {
    if (end > 0) skip(at, ",");
    end = read_whole(at, end + 1, result.total_bytes);
    result.cut.end_byte[result.cut.num++] = end;
  }
  if (!*at || result.first_s < 0 || result.half_s < 0 || result.won_s < 0 ||
      result.cut.end_byte[result.cut.num - 1] != result.total_bytes || cache->num_results == EB_CACHE_MAX_RESULTS)
    *at = NULL;
  else cache->results[cache->num_results++] = result;
}

static bool is_whole(const char *text, size_t length) {
  enum { END_LENGTH = 4 + 16 + 1 };
  char end[END_LENGTH + 1];
  if (length < END_LENGTH || length > EB_CACHE_MAX_BYTES || memchr(text, '\0', length)) return false;
  const size_t before = length - END_LENGTH;
  snprintf(end, sizeof end, "end %016llx\n", (unsigned long long)eb_cache_hash(text, before));
  return memcmp(text + before, end, END_LENGTH) == 0;
}

static bool parse(const char *at, eb_cache *cache) {
  while (at && strncmp(at, "end ", 4) != 0) {
    const bool is_cost = strncmp(at, "costs ", 6) == 0;
    skip(&at, is_cost ? "costs " : "result ");
    if (is_cost) read_cost(&at, cache);
    else read_result(&at, cache);
    skip(&at, "\n");
  }
  return at != NULL;
}

bool eb_cache_parse(const char *text, size_t length, const char *identity, eb_cache *cache) {
  memset(cache, 0, sizeof *cache);
  if (!is_whole(text, length)) return false;
  char *const copy = malloc(length + 1);
  if (!copy) return false;
  memcpy(copy, text, length);
  copy[length] = '\0';
  const char *at = copy;
  skip(&at, FIRST_LINE);
  skip(&at, identity);
  const eb_c_locale locale = eb_c_locale_begin();
  const bool parsed = parse(at, cache);
  eb_c_locale_end(locale);
  free(copy);
  return parsed;
}

/* ---- Writing ---- */

static int print_result(const eb_kept_result *result, char *text, size_t size) {
  int length = snprintf(text, size,
                        "result %s bytes=%lld partitions=%d first_s=%.6g half_s=%.6g won_s=%.6g found=%lld paths=%u path=%s ends=",
                        cost_names[result->level], (long long)result->total_bytes, result->num_partitions, result->first_s,
                        result->half_s, result->won_s, (long long)result->found, result->paths, path_names[result->cut.path]);
  for (int s = 0; s < result->cut.num && (size_t)length < size; s++)
    length += snprintf(text + length, size - (size_t)length, "%lld%c", (long long)result->cut.end_byte[s],
                       s + 1 < result->cut.num ? ',' : '\n');
  return length;
}

size_t eb_cache_print(const eb_cache *cache, const char *identity, char *text) {
  enum { RESERVED = 32, MAX_RESULT = 1024, DIGITS = 6 }; /* for the last line; six digits of 16 protocols are 800 characters */
  const eb_c_locale locale = eb_c_locale_begin();
  size_t length = (size_t)snprintf(text, EB_CACHE_MAX_BYTES, FIRST_LINE "%.*s", EB_CACHE_MAX_IDENTITY, identity);
  for (int c = 0; c < EB_NUM_COSTS; c++) {
    const eb_kept_cost *const kept = &cache->costs[c];
    char protocols[1024];
    if (kept->cost.num == 0 || eb_cost_print(&kept->cost, DIGITS, protocols, sizeof protocols) < 0) continue;
    length += (size_t)snprintf(text + length, EB_CACHE_MAX_BYTES - length,
                               "costs %s measured=%lld tried=%lld steady=%d doubted=%d protocols=%s\n", cost_names[c],
                               (long long)kept->measured, (long long)kept->tried, kept->is_steady, kept->is_doubted, protocols);
  }
  for (int r = 0; r < cache->num_results && length + MAX_RESULT + RESERVED < EB_CACHE_MAX_BYTES; r++)
    length += (size_t)print_result(&cache->results[r], text + length, MAX_RESULT);
  eb_c_locale_end(locale);
  return length + (size_t)snprintf(text + length, RESERVED, "end %016llx\n", (unsigned long long)eb_cache_hash(text, length));
}

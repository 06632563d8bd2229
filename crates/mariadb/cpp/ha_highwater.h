/*
  The handler: one open table of one connection.

  Copyright (c) 2026 The Highwater developers

  This program is free software; you can redistribute it and/or modify it under the terms of the GNU General Public
  License as published by the Free Software Foundation; version 2 of the License.

  This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without even the implied
  warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the GNU General Public License for more details.

  You should have received a copy of the GNU General Public License along with this program; if not, write to the Free
  Software Foundation, Inc., 51 Franklin St, Fifth Floor, Boston, MA 02110-1335  USA
*/

/*
  Rules
  1. A call of the server is at most one call of the engine.
  2. The row that was read last is the current one: its key is kept by the engine's table, for `position` and for
     changes of tables without a primary key. Tables with one find the row by the record that the server hands in.
  3. BLOBs in a record point into the engine's row, until the next read of this handler.
  4. A SELECT that locks nothing gets the columns that it names and those of the primary key (a position is made of
     them), by an index from its entries where these have them. All other statements get all columns.
*/
#ifndef HA_HIGHWATER_H
#define HA_HIGHWATER_H

#include "columns.h"

namespace highwater {

extern handlerton *engine;
extern hw_database *database;

struct Connection {
  hw_session *session;
  hw_interrupt *interrupt;
  /* By which the server is told of waits for its transaction; 0: it is not. */
  uint64_t owner;
};

/* Of the connection; null if there is no memory. */
Connection *connection_of(THD *thd);
/* Registers the connection's transaction with the server and begins a statement. */
int begin_statement(THD *thd, bool skip_locked);
int32_t drop_for(THD *thd, const std::string &name);
int handler_error(THD *thd, int32_t code, std::string *text);
std::string table_name(const char *path);
/* After a wait for a lock that was too long: whether the call is to be made again. See replication.cc. */
bool waits_on(THD *thd, uint *waits);
void enter_owner(THD *thd, Connection *connection);
void leave_owner(THD *thd, Connection *connection);
void report_waits(THD *thd, const uint64_t *waited_for, size_t count);
/* How long a call of a connection that applies a log waits before it begins again. */
constexpr ulonglong applying_wait_ms = 100;
ulonglong lock_wait_seconds(THD *thd);

/* Makes a call that may wait for locks. */
template <typename Call>
int32_t with_waits(THD *thd, Call call) {
  uint waits = 0;
  for (;;) {
    int32_t code = call();
    if (code != HW_LOCK_TIMEOUT || !waits_on(thd, &waits)) return code;
  }
}
bool ignores_foreign_keys(THD *thd);
/* Whether a statement that takes a number of an auto-increment column keeps others from taking one until it ends. */
bool locks_numbers(THD *thd);

}  // namespace highwater

class ha_highwater final : public handler {
 public:
  ha_highwater(handlerton *hton, TABLE_SHARE *share);
  ~ha_highwater() override;

  ulonglong table_flags() const override;
  ulong index_flags(uint number, uint part, bool all_parts) const override;
  uint max_supported_keys() const override { return MAX_KEY; }
  uint max_supported_key_parts() const override { return MAX_REF_PARTS; }
  uint max_supported_key_length() const override { return 3072; }
  uint max_supported_key_part_length() const override { return 3072; }
  uint max_supported_record_length() const override { return HA_MAX_REC_LENGTH; }
  uint8 table_cache_type() override { return HA_CACHE_TBL_NOCACHE; }
  const char *index_type(uint) override { return "BTREE"; }
  const key_map *keys_to_use_for_scanning() override { return &key_map_full; }
  uint lock_count() const override { return 0; }
  bool need_info_for_auto_inc() override { return true; }

  int open(const char *path, int mode, uint test_if_locked) override;
  int close() override;
  int create(const char *path, TABLE *form, HA_CREATE_INFO *info) override;
  int delete_table(const char *path) override;
  int rename_table(const char *from, const char *to) override;
  int truncate() override;
  int delete_all_rows() override { return HA_ERR_WRONG_COMMAND; }

  int external_lock(THD *thd, int lock_type) override;
  int start_stmt(THD *thd, thr_lock_type lock_type) override;
  THR_LOCK_DATA **store_lock(THD *thd, THR_LOCK_DATA **to, enum thr_lock_type lock_type) override;
  int extra(enum ha_extra_function operation) override;
  int reset() override;
  void unlock_row() override;

  int write_row(const uchar *record) override;
  int update_row(const uchar *before, const uchar *after) override;
  int delete_row(const uchar *record) override;

  int index_init(uint number, bool sorted) override;
  int index_end() override;
  int index_read_map(uchar *record, const uchar *key, key_part_map map, enum ha_rkey_function find) override;
  int index_read_last_map(uchar *record, const uchar *key, key_part_map map) override;
  int index_next(uchar *record) override;
  int index_prev(uchar *record) override;
  int index_first(uchar *record) override;
  int index_last(uchar *record) override;
  int index_next_same(uchar *record, const uchar *key, uint length) override;

  Item *idx_cond_push(uint number, Item *condition) override;

  int rnd_init(bool scan) override;
  int rnd_end() override;
  int rnd_next(uchar *record) override;
  int rnd_pos(uchar *record, uchar *position) override;
  void position(const uchar *record) override;
  int cmp_ref(const uchar *one, const uchar *other) override;

  int info(uint flag) override;
  ha_rows records_in_range(uint number, const key_range *low, const key_range *high, page_range *pages) override;
  ha_rows estimate_rows_upper_bound() override { return stats.records + 1000; }
  double scan_time() override;
  double read_time(uint number, uint ranges, ha_rows rows) override;

  void get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong *first,
                          ulonglong *reserved) override;
  int reset_auto_increment(ulonglong value) override;
  void update_create_info(HA_CREATE_INFO *info) override;

  int analyze(THD *thd, HA_CHECK_OPT *options) override;
  int check(THD *thd, HA_CHECK_OPT *options) override;
  int optimize(THD *thd, HA_CHECK_OPT *options) override;
  bool get_error_message(int error, String *text) override;

  bool check_if_incompatible_data(HA_CREATE_INFO *info, uint changes) override;
  enum_alter_inplace_result check_if_supported_inplace_alter(TABLE *altered, Alter_inplace_info *info) override;
  bool inplace_alter_table(TABLE *altered, Alter_inplace_info *info) override;
  bool commit_inplace_alter_table(TABLE *altered, Alter_inplace_info *info, bool commit) override;

 private:
  highwater::Plan plan;
  hw_table *table_of_engine;
  uint32 lock;         /* hw_lock */
  bool skips_locked;
  bool stands_behind;  /* the cursor has not been sought since rnd_init */
  bool reads_all;
  std::vector<uint32> wanted;
  std::vector<const highwater::Column *> wanted_columns;
  /* Of a condition that was pushed down, and of the index it is for. */
  std::vector<uint32> judged;
  std::vector<const highwater::Column *> judged_columns;
  std::vector<hw_bytes> row;
  std::vector<hw_bytes> values;
  std::vector<uint32> positions;
  std::vector<std::string> images;
  std::string error_text;
  bool knows_statistics;
  uint duplicate; /* number of the key that has one; -1: none of the server's */
  ulonglong rows_to_number; /* rows that the statement will still insert, if it said so with its first number */
  int number_error;         /* why the last row got no number, if the column has one for it */

  hw_session *session() const;
  template <typename Call>
  int32_t with_waits(Call call) {
    return highwater::with_waits(ha_thd(), call);
  }
  int failed(int32_t code);
  int not_found(int32_t code, int error);
  void choose_columns();
  void set_read(hw_read *read);
  static uint32_t judge(void *handler, hw_columns columns);
  int open_cursor(uint number);
  int seek(uchar *record, uint32 to, const uchar *key, key_part_map map, int error);
  int fetched(int32_t code, uchar *record, int error);
  void values_of(const uchar *record);
  int key_of(const uchar *record, hw_bytes *key);
  hw_columns_out out() { return {row.data(), wanted.size()}; }
  int note_duplicate();
  bool define(const TABLE *form, const HA_CREATE_INFO *info, const std::string &name, int *error);
  friend class Definition;
};

#endif

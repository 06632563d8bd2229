/*
  The handler: tables as a whole. See ha_highwater.h.

  Copyright (c) 2026 The Highwater developers

  This program is free software; you can redistribute it and/or modify it under the terms of the GNU General Public
  License as published by the Free Software Foundation; version 2 of the License.

  This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without even the implied
  warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the GNU General Public License for more details.

  You should have received a copy of the GNU General Public License along with this program; if not, write to the Free
  Software Foundation, Inc., 51 Franklin St, Fifth Floor, Boston, MA 02110-1335  USA
*/
#include "ha_highwater.h"

using namespace highwater;

ha_highwater::ha_highwater(handlerton *hton, TABLE_SHARE *share)
    : handler(hton, share), table_of_engine(nullptr), lock(HW_LOCK_NONE), skips_locked(false), stands_behind(false),
      reads_all(false), knows_statistics(false), duplicate(0), rows_to_number(0), number_error(0) {}

ha_highwater::~ha_highwater() {
  if (table_of_engine) hw_table_close(table_of_engine);
}

ulonglong ha_highwater::table_flags() const {
  ulonglong flags = HA_REC_NOT_IN_SEQ | HA_NULL_IN_KEY | HA_CAN_VIRTUAL_COLUMNS | HA_CAN_INDEX_BLOBS |
                    HA_CAN_SQL_HANDLER | HA_REQUIRES_KEY_COLUMNS_FOR_DELETE | HA_PRIMARY_KEY_REQUIRED_FOR_POSITION |
                    HA_PRIMARY_KEY_IN_READ_INDEX | HA_BINLOG_ROW_CAPABLE | HA_CAN_GEOMETRY | HA_PARTIAL_COLUMN_READ |
                    HA_TABLE_SCAN_ON_INDEX | HA_CAN_SKIP_LOCKED | HA_ONLINE_ANALYZE | HA_SLOW_CMP_REF |
                    HA_CAN_TABLES_WITHOUT_ROLLBACK | HA_CAN_ONLINE_BACKUPS | HA_CONCURRENT_OPTIMIZE;
  THD *thd = current_thd;
  /* Below REPEATABLE READ ranges are not locked, so that the statements alone would not have the same effect. */
  if (!thd || thd_tx_isolation(thd) > ISO_READ_COMMITTED) flags |= HA_BINLOG_STMT_CAPABLE;
  return flags;
}

ulong ha_highwater::index_flags(uint number, uint, bool) const {
  ulong flags = HA_READ_NEXT | HA_READ_PREV | HA_READ_ORDER | HA_READ_RANGE | HA_KEYREAD_ONLY;
  return flags | (number == table_share->primary_key ? HA_CLUSTERED_INDEX : HA_DO_INDEX_COND_PUSHDOWN);
}

hw_session *ha_highwater::session() const {
  Connection *connection = connection_of(ha_thd());
  return connection ? connection->session : nullptr;
}

int ha_highwater::failed(int32_t code) { return handler_error(ha_thd(), code, &error_text); }

int ha_highwater::not_found(int32_t code, int error) { return code == HW_NOT_FOUND ? error : failed(code); }

bool ha_highwater::get_error_message(int error, String *text) {
  /* The server has words for these, and would add ours to them. */
  if (error == HA_ERR_LOCK_DEADLOCK || error == HA_ERR_LOCK_WAIT_TIMEOUT) return false;
  text->append(error_text.data(), error_text.size());
  return false;
}

int ha_highwater::open(const char *path, int, uint) {
  int32_t code = hw_table_open(database, bytes_of(table_name(path)), &table_of_engine);
  if (code != HW_OK) return failed(code);
  plan.make(table);
  if (!plan.bind(table, table_of_engine)) {
    hw_table_close(table_of_engine);
    table_of_engine = nullptr;
    return HA_ERR_TABLE_DEF_CHANGED;
  }
  ref_length = 2 + plan.primary_key_bytes();
  /* An UPDATE of the key that it scans by first collects its rows. */
  key_used_on_scan = table->s->primary_key;
  row.resize(plan.engine_columns + 1);
  values.resize(plan.engine_columns + MAX_REF_PARTS);
  stats.block_size = 16384;
  info(HA_STATUS_NO_LOCK | HA_STATUS_VARIABLE | HA_STATUS_CONST);
  return 0;
}

int ha_highwater::close() {
  if (table_of_engine) hw_table_close(table_of_engine);
  table_of_engine = nullptr;
  return 0;
}

/* Keeps the memory that a definition points to. */
class Definition {
 public:
  Definition(const Plan &plan, const TABLE *form) : plan(plan), form(form) {}

  hw_table_definition of_table() {
    for (const Column &column : plan.columns) {
      const Field *field = form->field[column.field];
      add(std::string(field->field_name.str, field->field_name.length), column.type, column.size, field->maybe_null());
    }
    for (const Part &image : plan.images)
      add(image.image_name(form), HW_BINARY, image.image_bytes(), form->field[image.field]->maybe_null());
    if (plan.primary < 0) add(row_number_name, HW_U64, 0, false);
    for (size_t i = 0; i < columns.size(); i++) columns[i].name = bytes_of(names[i]);
    hw_table_definition definition = {};
    definition.columns = {columns.data(), columns.size()};
    definition.auto_increment = -1;
    std::vector<std::vector<hw_key_part>> &lists = parts;
    lists.resize(plan.keys.size() + 1);
    for (size_t k = 0; k < plan.keys.size(); k++) {
      for (const Part &part : plan.keys[k].parts)
        lists[k].push_back({part.position, part.descending, part.order == Order::prefix ? part.length : 0});
      if (static_cast<int>(k) == plan.primary) continue;
      bool is_unique = form->key_info[k].flags & HA_NOSAME;
      indexes.push_back({bytes_of(plan.keys[k].name), is_unique, {lists[k].data(), lists[k].size()}});
    }
    if (plan.primary < 0) lists.back().push_back({plan.row_number_position, 0, 0});
    const std::vector<hw_key_part> &key = plan.primary < 0 ? lists.back() : lists[plan.primary];
    definition.primary_key = {key.data(), key.size()};
    definition.indexes = {indexes.data(), indexes.size()};
    return definition;
  }

 private:
  const Plan &plan;
  const TABLE *form;
  std::vector<std::string> names;
  std::vector<hw_column_definition> columns;
  std::vector<std::vector<hw_key_part>> parts;
  std::vector<hw_index_definition> indexes;

  void add(const std::string &name, uint32 type, uint32 size, bool nullable) {
    names.push_back(name);
    columns.push_back({{nullptr, 0}, type, size, nullable});
  }
};

/* Whether the engine can count in this column. */
static bool counts(const Column &column) { return column.form == Form::fixed && column.type <= HW_U64; }

static bool has_foreign_key(THD *thd) {
  List_iterator_fast<::Key> keys(thd->lex->alter_info.key_list);
  while (const ::Key *key = keys++)
    if (key->type == ::Key::FOREIGN_KEY) return true;
  return false;
}

int ha_highwater::create(const char *path, TABLE *form, HA_CREATE_INFO *info) {
  THD *thd = ha_thd();
  if (has_foreign_key(thd)) {
    const char *const reason = "Highwater has no foreign keys (highwater_ignore_foreign_keys=ON creates the table without)";
    if (!ignores_foreign_keys(thd)) {
      my_printf_error(ER_CANNOT_ADD_FOREIGN, "%s", MYF(0), reason);
      return HA_WRONG_CREATE_OPTION;
    }
    push_warning(thd, Sql_condition::WARN_LEVEL_WARN, ER_CANNOT_ADD_FOREIGN, reason);
  }
  Plan made;
  made.make(form);
  Definition definition(made, form);
  hw_table_definition wanted = definition.of_table();
  if (const Field *number = form->found_next_number_field)
    for (const Column &column : made.columns)
      if (column.field == number->field_index && counts(column)) wanted.auto_increment = column.position;
  wanted.next_number = info->auto_increment_value;
  wanted.version = {form->s->tabledef_version.str, form->s->tabledef_version.length};
  std::string name = table_name(path);
  int32_t code = hw_table_create(database, bytes_of(name), &wanted);
  if (code != HW_SCHEMA && code != HW_BAD_VALUE) return code == HW_OK ? 0 : failed(code);
  my_printf_error(ER_ILLEGAL_HA_CREATE_OPTION, "Highwater: %s", MYF(0), text_of(hw_error_text()).c_str());
  return HA_WRONG_CREATE_OPTION;
}

int ha_highwater::delete_table(const char *path) {
  int32_t code = drop_for(ha_thd(), table_name(path));
  return code == HW_OK ? 0 : failed(code);
}

int ha_highwater::rename_table(const char *from, const char *to) {
  /* EXCHANGE PARTITION has read the rows: the renaming waits for transactions that use the table. */
  hw_statement_end(session(), true);
  hw_commit(session());
  int32_t code = hw_table_rename(database, bytes_of(table_name(from)), bytes_of(table_name(to)));
  return code == HW_OK ? 0 : failed(code);
}

int ha_highwater::truncate() {
  int32_t code = hw_table_truncate(table_of_engine, database);
  return code == HW_OK ? 0 : failed(code);
}

int ha_highwater::external_lock(THD *thd, int lock_type) {
  if (lock_type == F_UNLCK) return 0;
  if (lock_type == F_WRLCK) lock = HW_LOCK_EXCLUSIVE;
  return begin_statement(thd, skips_locked);
}

int ha_highwater::start_stmt(THD *thd, thr_lock_type lock_type) {
  if (lock_type >= TL_FIRST_WRITE) lock = HW_LOCK_EXCLUSIVE;
  return begin_statement(thd, skips_locked);
}

/* Whether a read of a statement locks what it reads: all but plain SELECTs do, so that what follows from it is right
   when the statement is run again. */
static bool is_locking_read(THD *thd, thr_lock_type type) {
  int command = thd_sql_command(thd);
  if (type == TL_READ_WITH_SHARED_LOCKS || type == TL_READ_SKIP_LOCKED) return true;
  if (command == SQLCOM_CHECKSUM || command == SQLCOM_CREATE_SEQUENCE || command == SQLCOM_ANALYZE ||
      command == SQLCOM_FLUSH)
    return false;
  if (thd_in_lock_tables(thd) && (type == TL_READ || type == TL_READ_HIGH_PRIORITY)) return true;
  bool is_source = type == TL_READ || type == TL_READ_NO_INSERT;
  bool is_copy = command == SQLCOM_INSERT_SELECT || command == SQLCOM_REPLACE_SELECT || command == SQLCOM_UPDATE ||
                 command == SQLCOM_CREATE_TABLE;
  if (is_source && is_copy && thd_tx_isolation(thd) <= ISO_READ_COMMITTED) return false;
  return type == TL_READ_NO_INSERT || command != SQLCOM_SELECT;
}

THR_LOCK_DATA **ha_highwater::store_lock(THD *thd, THR_LOCK_DATA **to, thr_lock_type type) {
  if (type == TL_IGNORE || thd_sql_command(thd) == SQLCOM_DROP_TABLE) return to;
  bool is_read = type < TL_FIRST_WRITE;
  lock = is_read ? is_locking_read(thd, type) ? HW_LOCK_SHARED : HW_LOCK_NONE : HW_LOCK_EXCLUSIVE;
  skips_locked = type == TL_READ_SKIP_LOCKED || type == TL_WRITE_SKIP_LOCKED;
  return to;
}

int ha_highwater::extra(ha_extra_function) { return 0; }

int ha_highwater::reset() {
  rows_to_number = 0;
  /* A cursor of HANDLER continues in the next statement. */
  if (table_of_engine && inited == NONE) hw_cursor_close(table_of_engine);
  return 0;
}

int ha_highwater::info(uint flag) {
  if (flag & (HA_STATUS_VARIABLE | HA_STATUS_AUTO)) {
    hw_table_info info = {};
    int32_t code = hw_table_get_info(table_of_engine, database, &info);
    if (code != HW_OK) return failed(code);
    /* The optimizer takes 0 for a fact. */
    stats.records = info.rows ? info.rows : 1;
    if (flag & (HA_STATUS_TIME | HA_STATUS_OPEN)) stats.records = info.rows;
    stats.data_file_length = std::max<ulonglong>(info.row_bytes, stats.block_size);
    stats.index_file_length = info.index_bytes;
    stats.mean_rec_length = static_cast<ulong>(stats.data_file_length / std::max<ha_rows>(stats.records, 1));
    stats.auto_increment_value = info.next_number;
    stats.deleted = 0;
  }
  if (flag & HA_STATUS_CONST) {
    if (!knows_statistics) hw_table_analyze(table_of_engine, database);
    knows_statistics = true;
    for (uint k = 0; k < table->s->keys; k++) {
      KEY &key = table->key_info[k];
      for (uint part = 0; part < key.user_defined_key_parts; part++) {
        double rows = 0;
        hw_table_rows_per_key(table_of_engine, bytes_of(plan.keys[k].name), part + 1, &rows);
        bool is_whole = part + 1 == key.user_defined_key_parts && (key.flags & HA_NOSAME);
        key.rec_per_key[part] = is_whole ? 1 : rows >= 1 ? static_cast<ulong>(rows) : 1;
      }
    }
  }
  if (flag & HA_STATUS_ERRKEY) errkey = duplicate;
  return 0;
}

ha_rows ha_highwater::records_in_range(uint number, const key_range *low, const key_range *high, page_range *) {
  const ::KEY *key = &table->key_info[number];
  std::vector<std::string> low_images, high_images;
  std::vector<hw_bytes> bounds(2 * MAX_REF_PARTS);
  hw_columns from = {nullptr, 0}, to = {nullptr, 0};
  if (low) {
    uint parts = key_values(table, plan.keys[number], key, low->key, low->keypart_map, &low_images, bounds.data());
    from = {bounds.data(), parts};
  }
  if (high) {
    hw_bytes *at = bounds.data() + MAX_REF_PARTS;
    uint parts = key_values(table, plan.keys[number], key, high->key, high->keypart_map, &high_images, at);
    to = {at, parts};
  }
  uint64_t entries = 0;
  int32_t code = hw_table_estimate(table_of_engine, database, bytes_of(plan.keys[number].name), from,
                                   low && low->flag == HA_READ_AFTER_KEY, to,
                                   high && high->flag == HA_READ_AFTER_KEY, &entries);
  if (code != HW_OK) return HA_POS_ERROR;
  return entries ? entries : 1;
}

double ha_highwater::scan_time() { return std::max(1.0, ulonglong2double(stats.data_file_length) / stats.block_size); }

double ha_highwater::read_time(uint number, uint ranges, ha_rows rows) {
  if (number != table->s->primary_key) return handler::read_time(number, ranges, rows);
  if (rows <= 2) return static_cast<double>(rows);
  double all = scan_time();
  double total = static_cast<double>(estimate_rows_upper_bound());
  return total < rows ? all : ranges + static_cast<double>(rows) / total * all;
}

void ha_highwater::update_create_info(HA_CREATE_INFO *info) {
  if (info->used_fields & HA_CREATE_USED_AUTO) return;
  this->info(HA_STATUS_AUTO);
  info->auto_increment_value = stats.auto_increment_value;
}

int ha_highwater::analyze(THD *, HA_CHECK_OPT *) {
  if (hw_table_analyze(table_of_engine, database) != HW_OK) return HA_ADMIN_FAILED;
  info(HA_STATUS_VARIABLE | HA_STATUS_CONST);
  return HA_ADMIN_OK;
}

struct Findings {
  THD *thd;
  uint count;
};

static void tell_finding(void *context, hw_bytes line) {
  Findings *findings = static_cast<Findings *>(context);
  findings->count++;
  push_warning_printf(findings->thd, Sql_condition::WARN_LEVEL_WARN, ER_NOT_KEYFILE, "%.*s",
                      static_cast<int>(line.length), line.data);
}

int ha_highwater::check(THD *thd, HA_CHECK_OPT *) {
  /* The check waits for transactions that write; this one has read only. */
  hw_statement_end(session(), true);
  Findings findings = {thd, 0};
  int32_t code = hw_table_check(table_of_engine, database, tell_finding, &findings);
  if (code != HW_OK && code != HW_NOT_FOUND) {
    failed(code);
    return HA_ADMIN_FAILED;
  }
  return findings.count ? HA_ADMIN_CORRUPT : HA_ADMIN_OK;
}

int ha_highwater::optimize(THD *, HA_CHECK_OPT *) { return HA_ADMIN_TRY_ALTER; }

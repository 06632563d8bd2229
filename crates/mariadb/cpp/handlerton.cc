/*
  The engine as the server sees it: options, connections, transactions.

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
  1. A connection has one session. Its transaction begins with the first table of a statement, and ends as the server
     says.
  2. An error at COMMIT, or a database that has stopped, would leave the server and the engine of different minds: the
     server is aborted, and its next start recovers.
*/
#include "ha_highwater.h"
#include "information.h"
#include <cstdlib>

/* Of the server, which declares it in no header. */
void ignore_db_dirs_append(const char *folder);

namespace highwater {

handlerton *engine;
hw_database *database;

/* ---- Options ---- */

#define HIGHWATER_NUMBER(name, value, dynamic, doc) static unsigned long long option_##name;
#define HIGHWATER_SWITCH(name, value, dynamic, doc) static my_bool option_##name;
#define HIGHWATER_TEXT(name, value, dynamic, doc) static char *option_##name;
#include "highwater_options.inc"
#undef HIGHWATER_NUMBER
#undef HIGHWATER_SWITCH
#undef HIGHWATER_TEXT

static int set_option(const char *name, const std::string &value) {
  if (!database) return 0;
  int32_t code = hw_option_set(database, bytes_of(std::string(name)), bytes_of(value));
  if (code == HW_OK) return 0;
  my_printf_error(ER_WRONG_VALUE_FOR_VAR, "Highwater: %s", MYF(0), text_of(hw_error_text()).c_str());
  return 1;
}

/* Options that can be changed are changed in the engine when the value is checked: it may refuse. */
static int check_number(THD *, st_mysql_sys_var *, void *save, st_mysql_value *value, const char *name) {
  long long number = 0;
  if (value->val_int(value, &number)) return 1;
  *static_cast<unsigned long long *>(save) = static_cast<unsigned long long>(number);
  return set_option(name, std::to_string(static_cast<unsigned long long>(number)));
}

static int check_text(THD *thd, st_mysql_sys_var *, void *save, st_mysql_value *value, const char *name) {
  char buffer[512];
  int length = sizeof buffer;
  const char *text = value->val_str(value, buffer, &length);
  if (!text) return 1;
  std::string copy(text, length);
  *static_cast<const char **>(save) = thd_strmake(thd, copy.data(), copy.size());
  return set_option(name, copy);
}

#define HIGHWATER_NUMBER(name, value, dynamic, doc)                                                                  \
  static int check_##name(THD *thd, st_mysql_sys_var *var, void *save, st_mysql_value *of) {                         \
    return check_number(thd, var, save, of, #name);                                                                  \
  }                                                                                                                  \
  static MYSQL_SYSVAR_ULONGLONG(name, option_##name, PLUGIN_VAR_RQCMDARG | (dynamic ? 0 : PLUGIN_VAR_READONLY), doc, \
                                check_##name, nullptr, value, 0, ULONGLONG_MAX, 0);
#define HIGHWATER_SWITCH(name, value, dynamic, doc) \
  static MYSQL_SYSVAR_BOOL(name, option_##name, PLUGIN_VAR_OPCMDARG | PLUGIN_VAR_READONLY, doc, nullptr, nullptr, value);
#define HIGHWATER_TEXT(name, value, dynamic, doc)                                                                 \
  static int check_##name(THD *thd, st_mysql_sys_var *var, void *save, st_mysql_value *of) {                      \
    return check_text(thd, var, save, of, #name);                                                                 \
  }                                                                                                               \
  static MYSQL_SYSVAR_STR(name, option_##name,                                                                    \
                          PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_MEMALLOC | (dynamic ? 0 : PLUGIN_VAR_READONLY), doc, \
                          check_##name, nullptr, value);
#include "highwater_options.inc"
#undef HIGHWATER_NUMBER
#undef HIGHWATER_SWITCH
#undef HIGHWATER_TEXT

static char *last_backup;

/* The backup is made when the value is checked: if it fails, the variable is not set. */
static int take_backup(THD *thd, st_mysql_sys_var *, void *save, st_mysql_value *value) {
  char buffer[FN_REFLEN];
  int length = sizeof buffer;
  const char *folder = value->val_str(value, buffer, &length);
  if (!folder || !length) return 1;
  std::string copy(folder, length);
  *static_cast<const char **>(save) = thd_strmake(thd, copy.data(), copy.size());
  if (hw_backup(database, bytes_of(copy)) == HW_OK) return 0;
  my_printf_error(ER_UNKNOWN_ERROR, "Highwater: %s", MYF(0), text_of(hw_error_text()).c_str());
  return 1;
}

static MYSQL_SYSVAR_STR(backup, last_backup, PLUGIN_VAR_NOCMDOPT | PLUGIN_VAR_MEMALLOC,
                        "Setting it to a folder, new or empty, makes a backup there.", take_backup, nullptr, nullptr);

static MYSQL_THDVAR_ULONG(lock_wait_timeout, PLUGIN_VAR_RQCMDARG,
                          "Longest time a statement waits for a lock of a row, in seconds; 0 = not at all.", nullptr,
                          nullptr, 50, 0, 100000000, 0);
static MYSQL_THDVAR_BOOL(ignore_foreign_keys, PLUGIN_VAR_OPCMDARG,
                         "Create tables without the foreign keys of their definitions, with a warning.", nullptr,
                         nullptr, FALSE);
static MYSQL_THDVAR_BOOL(snapshot_isolation, PLUGIN_VAR_OPCMDARG,
                         "Refuse changes of rows that changed since the transaction's snapshot.", nullptr, nullptr,
                         FALSE);

static ulong autoinc_lock_mode;
static MYSQL_SYSVAR_ULONG(autoinc_lock_mode, autoinc_lock_mode, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                          "Which statements keep others from taking auto-increment numbers until they end: 0 = all that "
                          "take some, 1 = those that do not know how many, as INSERT ... SELECT, 2 = none.",
                          nullptr, nullptr, 1, 0, 2, 0);

bool locks_numbers(THD *thd) {
  if (autoinc_lock_mode != 1) return autoinc_lock_mode == 0;
  int command = thd_sql_command(thd);
  /* SQLCOM_END: rows that a replica applies. */
  return command != SQLCOM_INSERT && command != SQLCOM_REPLACE && command != SQLCOM_END;
}

#define HIGHWATER_NUMBER(name, value, dynamic, doc) MYSQL_SYSVAR(name),
#define HIGHWATER_SWITCH(name, value, dynamic, doc) MYSQL_SYSVAR(name),
#define HIGHWATER_TEXT(name, value, dynamic, doc) MYSQL_SYSVAR(name),
static st_mysql_sys_var *variables[] = {
#include "highwater_options.inc"
    MYSQL_SYSVAR(backup), MYSQL_SYSVAR(lock_wait_timeout), MYSQL_SYSVAR(ignore_foreign_keys),
    MYSQL_SYSVAR(snapshot_isolation), MYSQL_SYSVAR(autoinc_lock_mode), nullptr};
#undef HIGHWATER_NUMBER
#undef HIGHWATER_SWITCH
#undef HIGHWATER_TEXT

bool ignores_foreign_keys(THD *thd) { return THDVAR(thd, ignore_foreign_keys); }

/* ---- Errors ---- */

[[noreturn]] static void abort_server(const char *what) {
  sql_print_error("Highwater: %s: %s; the server is aborted, its next start recovers", what,
                  text_of(hw_error_text()).c_str());
  abort();
}

int handler_error(THD *thd, int32_t code, std::string *text) {
  if (text) *text = text_of(hw_error_text());
  switch (code) {
    case HW_OK: return 0;
    case HW_NOT_FOUND: return HA_ERR_KEY_NOT_FOUND;
    case HW_DUPLICATE: return HA_ERR_FOUND_DUPP_KEY;
    case HW_LOCK_TIMEOUT:
    case HW_LOCK_REFUSED: return HA_ERR_LOCK_WAIT_TIMEOUT;
    case HW_DEADLOCK:
      if (thd) thd->mark_transaction_to_rollback(true);
      return HA_ERR_LOCK_DEADLOCK;
    case HW_INTERRUPTED: return HA_ERR_ABORTED_BY_USER;
    case HW_CONFLICT: return HA_ERR_RECORD_CHANGED;
    case HW_NO_TABLE: return HA_ERR_NO_SUCH_TABLE;
    case HW_TABLE_EXISTS: return HA_ERR_TABLE_EXIST;
    case HW_TABLE_CHANGED: return HA_ERR_TABLE_DEF_CHANGED;
    case HW_DISK_FULL: return HA_ERR_DISK_FULL;
    case HW_ROW_TOO_LARGE:
    case HW_BAD_VALUE: return HA_ERR_TO_BIG_ROW;
    case HW_KEY_TOO_LONG: return HA_ERR_INDEX_COL_TOO_LONG;
    case HW_CORRUPT: return HA_ERR_CRASHED;
    case HW_STOPPED: abort_server("the database has stopped");
    default:
      sql_print_error("Highwater: %s", text_of(hw_error_text()).c_str());
      return HA_ERR_INTERNAL_ERROR;
  }
}

/* ---- Connections and transactions ---- */

Connection *connection_of(THD *thd) {
  Connection *connection = static_cast<Connection *>(thd_get_ha_data(thd, engine));
  if (connection) return connection;
  hw_session *session = nullptr;
  if (hw_session_new(database, thd_get_thread_id(thd), &session) != HW_OK) return nullptr;
  connection = new Connection{session, hw_session_interrupt(session), 0};
  thd_set_ha_data(thd, engine, connection);
  return connection;
}

static bool is_in_transaction(THD *thd) { return thd_test_options(thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN); }

/* NOWAIT and WAIT set the server's own variable for their statement. */
ulonglong lock_wait_seconds(THD *thd) {
  return std::min<ulonglong>(THDVAR(thd, lock_wait_timeout), thd->variables.lock_wait_timeout);
}

static hw_session_options options_of(THD *thd, bool skip_locked) {
  hw_session_options options = {};
  options.isolation = static_cast<uint32>(thd_tx_isolation(thd));
  /* A SELECT that is a transaction is serializable by its snapshot alone. */
  if (options.isolation == ISO_SERIALIZABLE && !is_in_transaction(thd) && thd_sql_command(thd) == SQLCOM_SELECT)
    options.isolation = ISO_REPEATABLE_READ;
  options.first_committer_wins = THDVAR(thd, snapshot_isolation);
  options.flush_log = 3;
  options.lock_timeout_ms = lock_wait_seconds(thd) * 1000;
  if (thd->rgi_slave) options.lock_timeout_ms = std::min<ulonglong>(options.lock_timeout_ms, applying_wait_ms);
  options.skip_locked = skip_locked;
  return options;
}

int begin_statement(THD *thd, bool skip_locked) {
  Connection *connection = connection_of(thd);
  if (!connection) return HA_ERR_OUT_OF_MEM;
  hw_session_options options = options_of(thd, false);
  (void) skip_locked;
  int32_t code = hw_statement_begin(connection->session, &options);
  if (code != HW_OK) return handler_error(thd, code, nullptr);
  enter_owner(thd, connection);
  trans_register_ha(thd, false, engine, 0);
  if (is_in_transaction(thd)) trans_register_ha(thd, true, engine, 0);
  return 0;
}

static Connection *present(THD *thd) { return static_cast<Connection *>(thd_get_ha_data(thd, engine)); }

static int close_connection(handlerton *, THD *thd) {
  Connection *connection = present(thd);
  if (!connection) return 0;
  thd_set_ha_data(thd, engine, nullptr);
  leave_owner(thd, connection);
  hw_interrupt_free(connection->interrupt);
  hw_session_free(connection->session);
  delete connection;
  return 0;
}

static void kill_query(handlerton *, THD *thd, enum thd_kill_levels) {
  if (Connection *connection = present(thd)) hw_interrupt_raise(connection->interrupt);
}

/* Whether the call is about the transaction, and not about its statement. */
static bool is_whole(THD *thd, bool all) { return all || !is_in_transaction(thd); }

static int end_statement(THD *thd, Connection *connection, bool keep) {
  int32_t code = hw_statement_end(connection->session, keep);
  return code == HW_OK ? 0 : handler_error(thd, code, nullptr);
}

static int commit(handlerton *, THD *thd, bool all) {
  Connection *connection = present(thd);
  if (!connection) return 0;
  if (!is_whole(thd, all)) return end_statement(thd, connection, true);
  int32_t code = hw_commit(connection->session);
  leave_owner(thd, connection);
  if (code == HW_OK) return 0;
  if (code == HW_DEADLOCK || code == HW_DISK_FULL) return handler_error(thd, code, nullptr);
  abort_server("a commit failed");
}

static void commit_ordered(handlerton *, THD *thd, bool all) {
  Connection *connection = present(thd);
  if (connection && is_whole(thd, all)) hw_commit_ordered(connection->session);
}

static int rollback(handlerton *, THD *thd, bool all) {
  Connection *connection = present(thd);
  if (!connection) return 0;
  if (!is_whole(thd, all)) return end_statement(thd, connection, false);
  int32_t code = hw_rollback(connection->session);
  leave_owner(thd, connection);
  return code == HW_OK ? 0 : handler_error(thd, code, nullptr);
}

static hw_xid xid_of(const char *data, long format, long global, long branch) {
  const uint8_t *bytes = reinterpret_cast<const uint8_t *>(data);
  return {static_cast<int32_t>(format), {bytes, static_cast<size_t>(global)},
          {bytes + global, static_cast<size_t>(branch)}};
}

static int prepare(handlerton *, THD *thd, bool all) {
  Connection *connection = present(thd);
  if (!connection) return 0;
  if (!is_whole(thd, all)) return end_statement(thd, connection, true);
  MYSQL_XID xid;
  thd_get_xid(thd, &xid);
  hw_xid name = xid_of(xid.data, xid.formatID, xid.gtrid_length, xid.bqual_length);
  int32_t code = hw_prepare(connection->session, &name);
  return code == HW_OK ? 0 : handler_error(thd, code, nullptr);
}

static int savepoint_set(handlerton *, THD *thd, void *place) {
  Connection *connection = connection_of(thd);
  if (!connection) return HA_ERR_OUT_OF_MEM;
  int32_t code = hw_savepoint(connection->session, static_cast<uint64_t *>(place));
  return code == HW_OK ? 0 : handler_error(thd, code, nullptr);
}

static int savepoint_rollback(handlerton *, THD *thd, void *place) {
  Connection *connection = present(thd);
  if (!connection) return HA_ERR_NO_SAVEPOINT;
  int32_t code = hw_rollback_to(connection->session, *static_cast<uint64_t *>(place));
  return code == HW_OK ? 0 : handler_error(thd, code, nullptr);
}

static int savepoint_release(handlerton *, THD *, void *) { return 0; }

static int start_consistent_snapshot(handlerton *, THD *thd) {
  Connection *connection = connection_of(thd);
  if (!connection) return HA_ERR_OUT_OF_MEM;
  hw_session_options options = options_of(thd, false);
  options.snapshot_at_begin = options.isolation == ISO_REPEATABLE_READ;
  int32_t code = hw_begin(connection->session, &options);
  if (code != HW_OK) return handler_error(thd, code, nullptr);
  trans_register_ha(thd, true, engine, 0);
  return 0;
}

/* ---- Recovery ---- */

struct Recovered {
  XID *list;
  uint room, count, skip;
};

/* Those that the calls before have listed. */
static uint recovered_before;

static void list_prepared(void *context, const hw_xid *xid) {
  Recovered *recovered = static_cast<Recovered *>(context);
  if (recovered->skip) {
    recovered->skip--;
    return;
  }
  if (recovered->count == recovered->room) return;
  XID *place = &recovered->list[recovered->count++];
  place->set(xid->format_id, reinterpret_cast<const char *>(xid->global.data), static_cast<long>(xid->global.length),
             reinterpret_cast<const char *>(xid->branch.data), static_cast<long>(xid->branch.length));
}

static int recover(handlerton *, XID *list, uint room) {
  Recovered recovered = {list, room, 0, recovered_before};
  if (hw_recover(database, list_prepared, &recovered) != HW_OK) return 0;
  recovered_before = recovered.count == room ? recovered_before + room : 0;
  return static_cast<int>(recovered.count);
}

/* As the XA interface numbers them. */
enum { XA_NO_SUCH_NAME = -4, XA_FAILED = -3 };

static int finish(XID *xid, bool commits) {
  hw_xid name = xid_of(xid->data, xid->formatID, xid->gtrid_length, xid->bqual_length);
  int32_t code = hw_finish(database, &name, commits);
  if (code == HW_OK) return 0;
  return code == HW_NO_XID ? XA_NO_SUCH_NAME : XA_FAILED;
}

static int commit_by_xid(handlerton *, XID *xid) { return finish(xid, true); }

static int rollback_by_xid(handlerton *, XID *xid) { return finish(xid, false); }

static void commit_checkpoint_request(void *cookie) {
  if (hw_flush_log(database) != HW_OK) abort_server("the redo log cannot be made durable");
  commit_checkpoint_notify_ha(cookie);
}

static bool flush_logs(handlerton *) { return hw_flush_log(database) != HW_OK; }

/* ---- Tables as a whole ---- */

std::string table_name(const char *path) {
  if (path[0] == '.' && path[1] == '/') path += 2;
  return path;
}

/* Whether a CREATE TABLE ... SELECT has failed and drops its table, while its transaction still uses that. The command
   has ended the transaction before it, so that nothing else is in this one. */
static bool undoes_create(THD *thd, const std::string &name) {
  bool has_failed = thd->is_error() || thd_kill_level(thd) != THD_IS_NOT_KILLED;
  return thd_sql_command(thd) == SQLCOM_CREATE_TABLE && has_failed && name.find(tmp_file_prefix) == std::string::npos;
}

int32_t drop_for(THD *thd, const std::string &name) {
  Connection *connection = thd ? present(thd) : nullptr;
  if (connection && undoes_create(thd, name)) hw_rollback(connection->session);
  return hw_table_drop(database, bytes_of(name));
}

static int drop_table(handlerton *, const char *path) {
  int32_t code = drop_for(current_thd, table_name(path));
  return code == HW_OK ? 0 : code == HW_NO_TABLE ? HA_ERR_NO_SUCH_TABLE : handler_error(current_thd, code, nullptr);
}

/* Whether a change of a table came to its end: the table has the version of the definition after it. */
static int check_version(handlerton *, const char *path, const LEX_CUSTRING *version, ulonglong) {
  return hw_table_has_version(database, bytes_of(table_name(path)), {version->str, version->length}) != HW_OK;
}

static void drop_database(handlerton *, char *path) { hw_tables_drop(database, bytes_of(table_name(path))); }

static handler *create_handler(handlerton *hton, TABLE_SHARE *share, MEM_ROOT *memory) {
  return new (memory) ha_highwater(hton, share);
}

static uint partition_flags() { return 0; }

/* ---- Status tables ---- */

static void add_line(void *context, hw_bytes line) {
  std::string *text = static_cast<std::string *>(context);
  text->append(reinterpret_cast<const char *>(line.data), line.length);
  text->push_back('\n');
}

static bool show_status(handlerton *, THD *thd, stat_print_fn *print, enum ha_stat_type type) {
  if (type != HA_ENGINE_STATUS) return false;
  std::string text;
  if (hw_status(database, add_line, &text) != HW_OK) return true;
  const char name[] = "HIGHWATER";
  return print(thd, name, sizeof name - 1, "", 0, text.data(), text.size());
}

struct Counters {
  THD *thd;
  std::vector<st_mysql_show_var> *rows;
};

static void add_counter(void *context, hw_bytes name, uint64_t value) {
  Counters *counters = static_cast<Counters *>(context);
  unsigned long long *place = static_cast<unsigned long long *>(thd_alloc(counters->thd, sizeof *place));
  char *copy = thd_strmake(counters->thd, reinterpret_cast<const char *>(name.data), name.length);
  if (!place || !copy) return;
  *place = value;
  counters->rows->push_back({copy, place, SHOW_ULONGLONG});
}

static int show_counters(THD *thd, st_mysql_show_var *var, void *, system_status_var *, enum_var_type) {
  std::vector<st_mysql_show_var> rows;
  Counters counters = {thd, &rows};
  hw_counters(database, add_counter, &counters);
  rows.push_back({nullptr, nullptr, SHOW_UNDEF});
  var->type = SHOW_ARRAY;
  var->value = thd_memdup(thd, rows.data(), rows.size() * sizeof rows[0]);
  return 0;
}

static st_mysql_show_var status_variables[] = {{"Highwater", reinterpret_cast<void *>(&show_counters), SHOW_FUNC},
                                               {nullptr, nullptr, SHOW_UNDEF}};

/* ---- The plugin ---- */

static const char folder_name[] = "#highwater";

static int open_database() {
  std::vector<std::string> texts;
#define HIGHWATER_NUMBER(name, value, dynamic, doc) texts.push_back(#name), texts.push_back(std::to_string(option_##name));
#define HIGHWATER_SWITCH(name, value, dynamic, doc) texts.push_back(#name), texts.push_back(option_##name ? "on" : "off");
#define HIGHWATER_TEXT(name, value, dynamic, doc) texts.push_back(#name), texts.push_back(option_##name ? option_##name : "");
#include "highwater_options.inc"
#undef HIGHWATER_NUMBER
#undef HIGHWATER_SWITCH
#undef HIGHWATER_TEXT
  std::vector<hw_bytes> pairs;
  for (const std::string &text : texts) pairs.push_back(bytes_of(text));
  std::string folder = std::string(mysql_real_data_home) + "/" + folder_name;
  if (hw_database_open(bytes_of(folder), {pairs.data(), pairs.size()}, &database) == HW_OK) return 0;
  sql_print_error("Highwater: %s: %s", folder.c_str(), text_of(hw_error_text()).c_str());
  return 1;
}

/* A pool of threads has another one work meanwhile; else the transaction with the lock may find none for its commit. */
static void lock_wait(uint32_t begins, const uint64_t *waited_for, size_t count) {
  if (!begins) return thd_wait_end(nullptr);
  report_waits(current_thd, waited_for, count);
  thd_wait_begin(nullptr, THD_WAIT_ROW_LOCK);
}

static const char *no_extensions[] = {nullptr};

static int init(void *place) {
  ignore_db_dirs_append(folder_name);
  if (open_database()) return 1;
  hw_on_lock_wait(database, lock_wait);
  engine = static_cast<handlerton *>(place);
  engine->savepoint_offset = sizeof(uint64_t);
  engine->tablefile_extensions = no_extensions;
  engine->close_connection = close_connection;
  engine->kill_query = kill_query;
  engine->savepoint_set = savepoint_set;
  engine->savepoint_rollback = savepoint_rollback;
  engine->savepoint_release = savepoint_release;
  engine->commit = commit;
  engine->commit_ordered = commit_ordered;
  engine->rollback = rollback;
  engine->prepare = prepare;
  engine->recover = recover;
  engine->commit_by_xid = commit_by_xid;
  engine->rollback_by_xid = rollback_by_xid;
  engine->commit_checkpoint_request = commit_checkpoint_request;
  engine->start_consistent_snapshot = start_consistent_snapshot;
  engine->flush_logs = flush_logs;
  engine->create = create_handler;
  engine->drop_table = drop_table;
  engine->drop_database = drop_database;
  engine->check_version = check_version;
  engine->partition_flags = partition_flags;
  engine->show_status = show_status;
  return 0;
}

static int deinit(void *) {
  if (database && hw_database_close(database) != HW_OK)
    sql_print_error("Highwater: %s", text_of(hw_error_text()).c_str());
  database = nullptr;
  return 0;
}

static st_mysql_storage_engine descriptor = {MYSQL_HANDLERTON_INTERFACE_VERSION};
static st_mysql_information_schema table_descriptor = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

}  // namespace highwater

#define HIGHWATER_TABLE(name, text, init)                                                                   \
  {                                                                                                         \
    MYSQL_INFORMATION_SCHEMA_PLUGIN, &highwater::table_descriptor, name, "The Highwater developers", text,  \
        PLUGIN_LICENSE_GPL, init, nullptr, 0x0001, nullptr, nullptr, "0.1", MariaDB_PLUGIN_MATURITY_EXPERIMENTAL \
  }

maria_declare_plugin(highwater){
    MYSQL_STORAGE_ENGINE_PLUGIN,
    &highwater::descriptor,
    "HIGHWATER",
    "The Highwater developers",
    "Transactions with row locks and snapshots, for flash",
    PLUGIN_LICENSE_GPL,
    highwater::init,
    highwater::deinit,
    0x0001,
    highwater::status_variables,
    highwater::variables,
    "0.1",
    MariaDB_PLUGIN_MATURITY_EXPERIMENTAL,
},
    HIGHWATER_TABLE("HIGHWATER_TRX", "Transactions of Highwater", highwater::init_transactions),
    HIGHWATER_TABLE("HIGHWATER_LOCKS", "Locks of rows, and requests that wait for them", highwater::init_locks),
    HIGHWATER_TABLE("HIGHWATER_METRICS", "Counters of Highwater", highwater::init_metrics) maria_declare_plugin_end;

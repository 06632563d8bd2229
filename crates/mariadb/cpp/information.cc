/*
  Tables of INFORMATION_SCHEMA: HIGHWATER_TRX, HIGHWATER_LOCKS, HIGHWATER_METRICS.

  Copyright (c) 2026 The Highwater developers

  This program is free software; you can redistribute it and/or modify it under the terms of the GNU General Public
  License as published by the Free Software Foundation; version 2 of the License.

  This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without even the implied
  warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the GNU General Public License for more details.

  You should have received a copy of the GNU General Public License along with this program; if not, write to the Free
  Software Foundation, Inc., 51 Franklin St, Fifth Floor, Boston, MA 02110-1335  USA
*/

/*
  Rule: the engine hands over one row at a time, in the order of the table's columns; a user without the privilege
  PROCESS sees no rows.
*/
#include "information.h"
#include "ha_highwater.h"
#include "sql_acl.h"
#include "sql_i_s.h"

/* The columns of a table are those of the row in highwater_server.h, in its order. */
namespace Show {

static ST_FIELD_INFO highwater_transactions[] = {
    Column("CONNECTION_ID", ULonglong(), NULLABLE), Column("OWNER", ULonglong(), NULLABLE),
    Column("TRX_ID", ULonglong(), NULLABLE),        Column("STATE", Varchar(16), NOT_NULL),
    Column("ISOLATION", Varchar(20), NULLABLE),     Column("SECONDS", ULonglong(), NULLABLE),
    Column("UNDO_RECORDS", ULonglong(), NOT_NULL),  Column("XID", Varchar(300), NULLABLE),
    CEnd()};

static ST_FIELD_INFO highwater_locks[] = {
    Column("TABLE_NAME", Varchar(NAME_LEN * 4), NOT_NULL), Column("ROW_KEY", Varchar(1024), NOT_NULL),
    Column("OWNER", ULonglong(), NOT_NULL),                Column("CONNECTION_ID", ULonglong(), NULLABLE),
    Column("MODE", Varchar(9), NOT_NULL),                  Column("WAITS", Varchar(3), NOT_NULL),
    CEnd()};

static ST_FIELD_INFO highwater_metrics[] = {
    Column("NAME", Varchar(64), NOT_NULL), Column("VALUE", ULonglong(), NOT_NULL),
    Column("DESCRIPTION", Varchar(512), NOT_NULL), Column("INNODB_NAME", Varchar(64), NULLABLE), CEnd()};

}  // namespace Show

namespace highwater {

struct Filling {
  THD *thd;
  TABLE *table;
  int error;
};

/* A value of a row: a text, or else a number; NULL if neither. */
static void store(Field *field, const hw_cell &cell) {
  field->set_notnull();
  if (cell.text.data)
    field->store(reinterpret_cast<const char *>(cell.text.data), cell.text.length, system_charset_info);
  else if (cell.has_number)
    field->store(static_cast<longlong>(cell.number), true);
  else
    field->set_null();
}

static void add_row(void *context, const hw_cell *cells, size_t count) {
  Filling *filling = static_cast<Filling *>(context);
  if (filling->error) return;
  restore_record(filling->table, s->default_values);
  for (size_t i = 0; i < count && filling->table->field[i]; i++) store(filling->table->field[i], cells[i]);
  filling->error = schema_table_store_record(filling->thd, filling->table);
}

template <int32_t (*list)(const hw_database *, hw_visit_row, void *)>
static int fill(THD *thd, TABLE_LIST *tables, Item *) {
  if (!database || check_global_access(thd, PROCESS_ACL, true)) return 0;
  Filling filling = {thd, tables->table, 0};
  int32_t code = list(database, add_row, &filling);
  return filling.error ? filling.error : code == HW_OK ? 0 : handler_error(thd, code, nullptr);
}

template <ST_FIELD_INFO *fields, int32_t (*list)(const hw_database *, hw_visit_row, void *)>
static int init(void *place) {
  ST_SCHEMA_TABLE *schema = static_cast<ST_SCHEMA_TABLE *>(place);
  schema->fields_info = fields;
  schema->fill_table = fill<list>;
  return 0;
}

int init_transactions(void *place) { return init<Show::highwater_transactions, hw_list_transactions>(place); }
int init_locks(void *place) { return init<Show::highwater_locks, hw_list_locks>(place); }
int init_metrics(void *place) { return init<Show::highwater_metrics, hw_list_metrics>(place); }

}  // namespace highwater

/*
  The handler: tables that change in place.

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
  1. The engine finds columns by their names, so their order in the server's table is no matter of its.
  2. Indexes are built while the server lets writers continue. All else is done in the last step, by one change of the
     engine's, which also sets the table's version: after a crash the server asks for that (check_version) and takes
     the definition that it belongs to.
  3. What needs a column that rows do not have yet (the image of a key part) is a copy.
*/
#include "ha_highwater.h"

using namespace highwater;

static const alter_table_operations only_the_servers =
    ALTER_COLUMN_DEFAULT | ALTER_CHANGE_COLUMN_DEFAULT | ALTER_CHANGE_INDEX_COMMENT | ALTER_INDEX_IGNORABILITY |
    ALTER_ADD_CHECK_CONSTRAINT | ALTER_DROP_CHECK_CONSTRAINT | ALTER_RENAME | ALTER_COLUMN_OPTION | ALTER_INDEX_ORDER |
    ALTER_COLUMN_ORDER | ALTER_STORED_COLUMN_ORDER | ALTER_PARSER_ADD_COLUMN | ALTER_PARSER_DROP_COLUMN |
    ALTER_CHANGE_COLUMN | ALTER_ADD_INDEX | ALTER_DROP_INDEX | ALTER_RENAME_COLUMN;
static const alter_table_operations adds_index = ALTER_ADD_NON_UNIQUE_NON_PRIM_INDEX | ALTER_ADD_UNIQUE_INDEX;
static const alter_table_operations drops_index = ALTER_DROP_NON_UNIQUE_NON_PRIM_INDEX | ALTER_DROP_UNIQUE_INDEX;
static const alter_table_operations changes_columns =
    ALTER_COLUMN_NAME | ALTER_ADD_STORED_BASE_COLUMN | ALTER_DROP_STORED_COLUMN;

static std::string name_of(const LEX_CSTRING &name) { return std::string(name.str, name.length); }

/* Whether a new column's value in the rows that are there is one constant. */
static bool has_constant_default(const Field *field) {
  if (field->default_value) return false;
  if (field->flags & (NO_DEFAULT_VALUE_FLAG | AUTO_INCREMENT_FLAG)) return false;
  return field->real_type() != MYSQL_TYPE_BIT && !field->has_update_default_function();
}

/* Whether all key parts of the new plan have what they need in the old one. */
static bool has_images(const Plan &old, const TABLE *table, const Plan &made, const TABLE *altered) {
  for (const Part &image : made.images) {
    bool is_there = false;
    for (const Part &other : old.images) is_there |= other.image_name(table) == image.image_name(altered);
    if (!is_there) return false;
  }
  return true;
}

/* Whether an index is dropped and one of its name added: the engine has both for a while. */
static bool replaces_index(const Alter_inplace_info *info) {
  for (uint i = 0; i < info->index_drop_count; i++)
    for (uint k = 0; k < info->index_add_count; k++)
      if (!my_strcasecmp(system_charset_info, info->index_drop_buffer[i]->name.str,
                         info->key_info_buffer[info->index_add_buffer[k]].name.str))
        return true;
  return false;
}

/* Names of the indexes that the change adds. */
static std::vector<std::string> added_indexes(const Alter_inplace_info *info) {
  std::vector<std::string> names;
  for (uint i = 0; i < info->index_add_count; i++)
    names.push_back(name_of(info->key_info_buffer[info->index_add_buffer[i]].name));
  return names;
}

/* Whether an index is added over a column that rows do not have yet, or have by another name. */
static bool indexes_changed_column(const Alter_inplace_info *info, const TABLE *altered) {
  std::vector<bool> changed(altered->s->fields);
  List_iterator_fast<Create_field> columns(info->alter_info->create_list);
  for (uint at = 0; const Create_field *column = columns++; at++)
    changed[at] = !column->field || name_of(column->field->field_name) != name_of(column->field_name);
  for (const std::string &added : added_indexes(info))
    for (uint k = 0; k < altered->s->keys; k++) {
      const KEY &key = altered->key_info[k];
      if (name_of(key.name) != added) continue;
      for (uint part = 0; part < key.user_defined_key_parts; part++)
        if (changed[key.key_part[part].fieldnr - 1]) return true;
    }
  return false;
}

/* ALTER TABLE ... EXCHANGE PARTITION asks this about tables of the same definition. */
bool ha_highwater::check_if_incompatible_data(HA_CREATE_INFO *, uint changes) {
  return changes == IS_EQUAL_YES ? COMPATIBLE_DATA_YES : COMPATIBLE_DATA_NO;
}

enum_alter_inplace_result ha_highwater::check_if_supported_inplace_alter(TABLE *altered, Alter_inplace_info *info) {
  alter_table_operations all = info->handler_flags;
  bool is_supported = !(all & ~(only_the_servers | adds_index | drops_index | changes_columns)) &&
                      !table->part_info && !altered->part_info && !(info->create_info->used_fields & HA_CREATE_USED_AUTO);
  Plan made;
  made.make(altered);
  /* The primary key, or its lack, is another table. */
  is_supported = is_supported && table->s->primary_key == altered->s->primary_key && made.primary == plan.primary;
  /* A renamed column of an image would have to rename that too, a virtual one is written where an index needs it. */
  bool renames = all & ALTER_COLUMN_NAME;
  is_supported = is_supported && !(renames && !plan.images.empty()) && !table->vfield && !altered->vfield;
  is_supported = is_supported && has_images(plan, table, made, altered) && !replaces_index(info) &&
                 !indexes_changed_column(info, altered);
  for (uint i = 0; is_supported && i < info->alter_info->create_list.elements; i++) {
    const Field *field = altered->field[i];
    List_iterator_fast<Create_field> columns(info->alter_info->create_list);
    const Create_field *column = nullptr;
    for (uint at = 0; at <= i; at++) column = columns++;
    if (!column->field) is_supported = has_constant_default(field);
  }
  if (!is_supported) {
    info->unsupported_reason = "Highwater copies the table for this change";
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  }
  return all & adds_index ? HA_ALTER_INPLACE_NOCOPY_NO_LOCK : HA_ALTER_INPLACE_INSTANT;
}

/* The error of InnoDB, with the key's value in one of the rows that are equal; `values` are of the engine's `columns`. */
static void print_duplicate(TABLE *altered, uint key, const std::vector<const Column *> &columns,
                            const std::vector<hw_bytes> &values) {
  for (size_t i = 0; i < columns.size(); i++) set_column(altered, *columns[i], altered->record[0], values[i]);
  print_keydup_error(altered, &altered->key_info[key], MYF(0));
}

bool ha_highwater::inplace_alter_table(TABLE *altered, Alter_inplace_info *info) {
  if (!(info->handler_flags & adds_index)) return false;
  Plan made;
  made.make(altered);
  /* Of the columns that there are: a duplicate's are shown. */
  std::vector<uint32_t> places;
  std::vector<const Column *> shown;
  for (const Column &column : made.columns) {
    uint32_t position = 0;
    if (hw_table_column(table_of_engine, bytes_of(altered->field[column.field]->field_name), &position) != HW_OK) continue;
    places.push_back(position);
    shown.push_back(&column);
  }
  std::vector<hw_bytes> found(places.size());
  /* The build waits for transactions that use the table; this one reads no row. */
  hw_statement_end(session(), true);
  hw_commit(session());
  for (const std::string &wanted : added_indexes(info)) {
    for (size_t k = 0; k < made.keys.size(); k++) {
      if (made.keys[k].name != wanted) continue;
      std::vector<hw_key_part> parts;
      for (const Part &part : made.keys[k].parts) {
        std::string column = part.has_image() ? part.image_name(altered) : name_of(altered->field[part.field]->field_name);
        uint32_t position = 0;
        if (hw_table_column(table_of_engine, bytes_of(column), &position) != HW_OK) {
          print_error(HA_ERR_TABLE_DEF_CHANGED, MYF(0));
          return true;
        }
        parts.push_back({position, part.descending, part.order == Order::prefix ? part.length : 0});
      }
      bool is_unique = altered->key_info[k].flags & HA_NOSAME;
      hw_index_definition index = {bytes_of(wanted), is_unique, {parts.data(), parts.size()}};
      int32_t code = hw_index_create(table_of_engine, database, &index, {places.data(), places.size()},
                                     {found.data(), found.size()});
      if (code == HW_OK) continue;
      if (code == HW_DUPLICATE) {
        duplicate = static_cast<uint>(k);
        print_duplicate(altered, duplicate, shown, found);
      } else {
        print_error(failed(code), MYF(0));
      }
      return true;
    }
  }
  return false;
}

/* Names, new and dropped columns, as the engine takes them. */
class Changes {
 public:
  Changes(const Plan &plan, const TABLE *table, TABLE *altered, const Alter_inplace_info *info) {
    std::vector<bool> stays(table->s->fields);
    Plan made;
    made.make(altered);
    List_iterator_fast<Create_field> columns(info->alter_info->create_list);
    for (uint at = 0; const Create_field *column = columns++; at++) {
      if (column->field) {
        stays[column->field->field_index] = true;
        if (name_of(column->field->field_name) != name_of(column->field_name))
          rename(plan, column->field->field_index, name_of(column->field_name));
      } else {
        add(made, altered, at);
      }
    }
    for (const Column &column : plan.columns)
      if (!stays[column.field]) dropped.push_back(column.position);
    /* Images that no index has any more. */
    for (const Part &image : plan.images) {
      bool is_used = false;
      for (const Part &other : made.images) is_used |= other.image_name(altered) == image.image_name(table);
      if (!is_used) dropped.push_back(image.position);
    }
    for (size_t i = 0; i < names.size(); i++) names[i].name = bytes_of(texts[i]);
    for (size_t i = 0; i < added.size(); i++) added[i].name = bytes_of(added_texts[i]);
  }

  hw_table_changes get(const LEX_CUSTRING &version) const {
    return {{names.data(), names.size()}, {dropped.data(), dropped.size()}, {added.data(), added.size()},
            {defaults.data(), defaults.size()}, {version.str, version.length}};
  }

 private:
  std::vector<std::string> texts, added_texts;
  std::vector<hw_column_name> names;
  std::vector<uint32_t> dropped;
  std::vector<hw_column_definition> added;
  std::vector<hw_bytes> defaults;

  void rename(const Plan &plan, uint field, const std::string &name) {
    for (const Column &column : plan.columns)
      if (column.field == field) names.push_back({column.position, {nullptr, 0}}), texts.push_back(name);
  }

  void add(const Plan &made, const TABLE *altered, uint field) {
    for (const Column &column : made.columns) {
      if (column.field != field) continue;
      const Field *of = altered->field[field];
      added_texts.push_back(name_of(of->field_name));
      added.push_back({{nullptr, 0}, static_cast<uint32_t>(column.type), column.size, of->maybe_null()});
      defaults.push_back(column_bytes(altered, column, altered->s->default_values));
    }
  }
};

bool ha_highwater::commit_inplace_alter_table(TABLE *altered, Alter_inplace_info *info, bool commit) {
  info->group_commit_ctx = nullptr;
  std::string name = table_name(table->s->normalized_path.str);
  if (!commit) {
    for (const std::string &index : added_indexes(info)) hw_index_drop(database, bytes_of(name), bytes_of(index));
    return false;
  }
  hw_statement_end(session(), true);
  hw_commit(session());
  Changes changes(plan, table, altered, info);
  hw_table_changes all = changes.get(altered->s->tabledef_version);
  for (uint i = 0; i < info->index_drop_count; i++) {
    int32_t code = hw_index_drop(database, bytes_of(name), bytes_of(name_of(info->index_drop_buffer[i]->name)));
    if (code != HW_OK) return print_error(failed(code), MYF(0)), true;
  }
  int32_t code = hw_table_alter(database, bytes_of(name), &all);
  if (code == HW_OK) return false;
  my_printf_error(ER_ILLEGAL_HA_CREATE_OPTION, "Highwater: %s", MYF(0), text_of(hw_error_text()).c_str());
  return true;
}

/*
  The handler: rows. See ha_highwater.h.

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

/* ---- Reading ---- */

/* Rule 4. */
void ha_highwater::choose_columns() {
  bool is_plain = lock == HW_LOCK_NONE && thd_sql_command(ha_thd()) == SQLCOM_SELECT;
  wanted.clear(), wanted_columns.clear();
  reads_all = !is_plain;
  for (const Column &column : plan.columns) {
    if (is_plain && !column.is_in_primary && !bitmap_is_set(table->read_set, column.field)) continue;
    wanted.push_back(column.position);
    wanted_columns.push_back(&column);
  }
}

void ha_highwater::set_read(hw_read *read) {
  choose_columns();
  *read = {lock, skips_locked, reads_all, {wanted.data(), wanted.size()}, !reads_all, {nullptr, nullptr, {nullptr, 0}}};
}

int ha_highwater::open_cursor(uint number) {
  hw_read read;
  set_read(&read);
  if (pushed_idx_cond && number == pushed_idx_cond_keyno)
    read.filter = {judge, this, {judged.data(), judged.size()}};
  static const std::string rows = "PRIMARY";
  const std::string &name = number == MAX_KEY ? rows : plan.keys[number].name;
  int32_t code = hw_cursor_open(table_of_engine, bytes_of(name), &read);
  return code == HW_OK ? 0 : failed(code);
}

int ha_highwater::fetched(int32_t code, uchar *record, int error) {
  if (code != HW_OK) return not_found(code, error);
  for (size_t i = 0; i < wanted_columns.size(); i++) set_column(table, *wanted_columns[i], record, row[i]);
  return 0;
}

int ha_highwater::index_init(uint number, bool) {
  active_index = number;
  return open_cursor(number);
}

int ha_highwater::index_end() {
  active_index = MAX_KEY;
  return 0;
}

int ha_highwater::seek(uchar *record, uint32 to, const uchar *key, key_part_map map, int error) {
  uint parts = 0;
  if (key)
    parts = key_values(table, plan.keys[active_index], &table->key_info[active_index], key, map, &images,
                       values.data());
  bool is_filtered = pushed_idx_cond && pushed_idx_cond_keyno == active_index;
  if (to == HW_EXACT && !is_filtered && static_cast<int>(active_index) == plan.primary &&
      parts == plan.keys[plan.primary].parts.size())
    to = HW_POINT;
  return fetched(with_waits([&] { return hw_cursor_seek(session(), table_of_engine, to, {values.data(), parts}, out()); }), record, error);
}

int ha_highwater::index_read_map(uchar *record, const uchar *key, key_part_map map, ha_rkey_function find) {
  uint32 to;
  switch (find) {
    case HA_READ_KEY_EXACT:
    case HA_READ_PREFIX: to = HW_EXACT; break;
    case HA_READ_KEY_OR_NEXT: to = HW_AT_LEAST; break;
    case HA_READ_AFTER_KEY: to = HW_ABOVE; break;
    case HA_READ_BEFORE_KEY: to = HW_BELOW; break;
    case HA_READ_KEY_OR_PREV:
    case HA_READ_PREFIX_LAST_OR_PREV: to = HW_AT_MOST; break;
    case HA_READ_PREFIX_LAST: to = HW_EXACT_LAST; break;
    default: return HA_ERR_UNSUPPORTED;
  }
  if (!key) return seek(record, to == HW_BELOW || to == HW_AT_MOST ? HW_LAST : HW_FIRST, nullptr, 0, HA_ERR_END_OF_FILE);
  return seek(record, to, key, map, HA_ERR_KEY_NOT_FOUND);
}

int ha_highwater::index_read_last_map(uchar *record, const uchar *key, key_part_map map) {
  return seek(record, HW_EXACT_LAST, key, map, HA_ERR_KEY_NOT_FOUND);
}

int ha_highwater::index_next(uchar *record) {
  return fetched(with_waits([&] { return hw_cursor_next_beyond(session(), table_of_engine, out()); }), record, HA_ERR_END_OF_FILE);
}

int ha_highwater::index_prev(uchar *record) {
  return fetched(with_waits([&] { return hw_cursor_prev_beyond(session(), table_of_engine, out()); }), record, HA_ERR_END_OF_FILE);
}

int ha_highwater::index_first(uchar *record) { return seek(record, HW_FIRST, nullptr, 0, HA_ERR_END_OF_FILE); }

int ha_highwater::index_last(uchar *record) { return seek(record, HW_LAST, nullptr, 0, HA_ERR_END_OF_FILE); }

int ha_highwater::index_next_same(uchar *record, const uchar *key, uint length) {
  int error = fetched(with_waits([&] { return hw_cursor_next(session(), table_of_engine, out()); }), record, HA_ERR_END_OF_FILE);
  if (error || !key) return error;
  /* The seek may not have been an exact one. */
  uchar *before = table->record[0];
  if (record != before) return 0;
  return key_cmp_if_same(table, key, active_index, length) ? HA_ERR_END_OF_FILE : 0;
}

/* The row that was read last is not wanted. What goes wrong here the next call says too. */
void ha_highwater::unlock_row() {
  if (lock != HW_LOCK_NONE) hw_row_unlock(session(), table_of_engine);
}

/* ---- Conditions over entries ---- */

/* The condition is taken if the keys of the index have all of its columns, and all of the index: the end of a range is
   compared too. */
Item *ha_highwater::idx_cond_push(uint number, Item *condition) {
  judged.clear(), judged_columns.clear();
  MY_BITMAP fields;
  if (my_bitmap_init(&fields, nullptr, table->s->fields)) return condition;
  condition->walk(&Item::register_field_in_bitmap, true, &fields);
  for (const Part &part : plan.keys[number].parts) bitmap_set_bit(&fields, part.field);
  for (const Column &column : plan.columns) {
    if (!bitmap_is_set(&fields, column.field)) continue;
    judged.push_back(column.position);
    judged_columns.push_back(&column);
  }
  bool has_all = bitmap_bits_set(&fields) == judged.size() &&
                 hw_index_has(table_of_engine, bytes_of(plan.keys[number].name), {judged.data(), judged.size()}) == HW_OK;
  my_bitmap_free(&fields);
  if (!has_all) return condition;
  pushed_idx_cond = condition;
  pushed_idx_cond_keyno = number;
  return nullptr;
}

uint32_t ha_highwater::judge(void *handler, hw_columns columns) {
  ha_highwater *self = static_cast<ha_highwater *>(handler);
  for (size_t i = 0; i < columns.length; i++)
    set_column(self->table, *self->judged_columns[i], self->table->record[0], columns.data[i]);
  switch (handler_index_cond_check(self)) {
    case CHECK_POS: return HW_TAKE;
    case CHECK_NEG: return HW_SKIP;
    case CHECK_OUT_OF_RANGE: return HW_END;
    default: return HW_INTERRUPT;
  }
}

int ha_highwater::rnd_init(bool scan) {
  stands_behind = true;
  if (!scan) {
    hw_read read;
    set_read(&read);
    return 0;
  }
  return open_cursor(MAX_KEY);
}

int ha_highwater::rnd_end() { return 0; }

int ha_highwater::rnd_next(uchar *record) {
  if (stands_behind) {
    stands_behind = false;
    return seek(record, HW_FIRST, nullptr, 0, HA_ERR_END_OF_FILE);
  }
  return fetched(with_waits([&] { return hw_cursor_next(session(), table_of_engine, out()); }), record, HA_ERR_END_OF_FILE);
}

int ha_highwater::rnd_pos(uchar *record, uchar *position) {
  hw_read read;
  set_read(&read);
  hw_bytes key = {position + 2, uint2korr(position)};
  return fetched(with_waits([&] { return hw_get(session(), table_of_engine, key, &read, out()); }), record, HA_ERR_KEY_NOT_FOUND);
}

void ha_highwater::position(const uchar *record) {
  hw_bytes key = {nullptr, 0};
  if (key_of(record, &key)) key.length = 0;
  size_t length = std::min<size_t>(key.length, ref_length - 2);
  int2store(ref, length);
  if (length) memcpy(ref + 2, key.data, length);
  /* The server compares and sorts whole references. */
  memset(ref + 2 + length, 0, ref_length - 2 - length);
}

int ha_highwater::cmp_ref(const uchar *one, const uchar *other) {
  size_t lengths[2] = {uint2korr(one), uint2korr(other)};
  int order = memcmp(one + 2, other + 2, std::min(lengths[0], lengths[1]));
  return order ? order : lengths[0] < lengths[1] ? -1 : lengths[0] > lengths[1];
}

/* ---- Changing ---- */

/* The primary key of a record: of the current row, if the table has none. */
int ha_highwater::key_of(const uchar *record, hw_bytes *key) {
  if (plan.primary < 0) {
    int32_t code = hw_row_key(table_of_engine, key);
    return code == HW_OK ? 0 : not_found(code, HA_ERR_NO_ACTIVE_RECORD);
  }
  const highwater::Key &primary = plan.keys[plan.primary];
  images.resize(std::max(images.size(), primary.parts.size()));
  for (size_t i = 0; i < primary.parts.size(); i++) {
    const Part &part = primary.parts[i];
    if (part.has_image()) {
      image_of_record(table, part, record, &images[i]);
      values[i] = bytes_of(images[i]);
      continue;
    }
    for (const Column &column : plan.columns)
      if (column.field == part.field) values[i] = column_bytes(table, column, record);
  }
  int32_t code = hw_key(table_of_engine, {values.data(), primary.parts.size()}, key);
  return code == HW_OK ? 0 : failed(code);
}

/* All columns of a new row. */
void ha_highwater::values_of(const uchar *record) {
  for (const Column &column : plan.columns) values[column.position] = column_bytes(table, column, record);
  images.resize(std::max(images.size(), plan.images.size()));
  for (size_t i = 0; i < plan.images.size(); i++) {
    const Part &image = plan.images[i];
    values[image.position] = {nullptr, 0};
    if (is_null_in(table, table->field[image.field], record)) continue;
    image_of_record(table, image, record, &images[i]);
    values[image.position] = bytes_of(images[i]);
  }
}

int ha_highwater::note_duplicate() {
  std::string index = text_of(hw_error_index());
  duplicate = static_cast<uint>(-1);
  for (size_t k = 0; k < plan.keys.size(); k++)
    if (plan.keys[k].name == index) duplicate = static_cast<uint>(k);
  return HA_ERR_FOUND_DUPP_KEY;
}

int ha_highwater::write_row(const uchar *record) {
  if (table->next_number_field && record == table->record[0]) {
    number_error = 0;
    if (int error = update_auto_increment()) return number_error ? number_error : error;
    if (rows_to_number) rows_to_number--;
  }
  values_of(record);
  uint64_t number = 0;
  for (;;) {
    if (plan.primary < 0) {
      int32_t code = hw_row_number(table_of_engine, database, &number);
      if (code != HW_OK) return failed(code);
      values[plan.row_number_position] = {reinterpret_cast<const uint8_t *>(&number), sizeof number};
    }
    int32_t code = with_waits([&] { return hw_insert(session(), table_of_engine, {values.data(), plan.engine_columns}); });
    if (code == HW_OK) return 0;
    if (code != HW_DUPLICATE) return failed(code);
    note_duplicate();
    /* A row of a transaction that was rolled back after this number was given. */
    bool is_hidden = plan.primary < 0 && text_of(hw_error_index()) == "PRIMARY";
    if (!is_hidden) return HA_ERR_FOUND_DUPP_KEY;
  }
}

static bool differ(hw_bytes one, hw_bytes other) {
  if (!one.data || !other.data) return one.data != other.data;
  return one.length != other.length || memcmp(one.data, other.data, one.length) != 0;
}

int ha_highwater::update_row(const uchar *before, const uchar *after) {
  hw_bytes key;
  if (int error = key_of(before, &key)) return error;
  std::string kept = text_of(key);
  positions.clear();
  std::vector<bool> changed(table->s->fields);
  size_t count = 0;
  for (const Column &column : plan.columns) {
    if (!bitmap_is_set(table->write_set, column.field) && table->field[column.field]->stored_in_db()) continue;
    hw_bytes value = column_bytes(table, column, after);
    if (!differ(column_bytes(table, column, before), value)) continue;
    changed[column.field] = true;
    positions.push_back(column.position);
    values[count++] = value;
  }
  if (!count) return HA_ERR_RECORD_IS_THE_SAME;
  images.resize(std::max(images.size(), plan.images.size()));
  for (size_t i = 0; i < plan.images.size(); i++) {
    const Part &image = plan.images[i];
    if (!changed[image.field]) continue;
    positions.push_back(image.position);
    values[count] = {nullptr, 0};
    if (!is_null_in(table, table->field[image.field], after)) {
      image_of_record(table, image, after, &images[i]);
      values[count] = bytes_of(images[i]);
    }
    count++;
  }
  int32_t code = with_waits([&] {
    return hw_update(session(), table_of_engine, bytes_of(kept), {positions.data(), count}, {values.data(), count});
  });
  if (code == HW_OK) return 0;
  if (code == HW_DUPLICATE) return note_duplicate();
  return not_found(code, HA_ERR_KEY_NOT_FOUND);
}

int ha_highwater::delete_row(const uchar *record) {
  hw_bytes key;
  if (int error = key_of(record, &key)) return error;
  int32_t code = with_waits([&] { return hw_delete(session(), table_of_engine, key); });
  return code == HW_OK ? 0 : not_found(code, HA_ERR_KEY_NOT_FOUND);
}

void ha_highwater::get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted_numbers, ulonglong *first,
                                      ulonglong *reserved) {
  uint64_t number = 0;
  /* Later the server asks for more numbers than rows are left. */
  if (!rows_to_number) rows_to_number = std::max<ulonglong>(wanted_numbers, 1);
  ulonglong count = rows_to_number;
  auto reserve = [&] {
    return with_waits([&] { return hw_numbers_reserve(session(), table_of_engine, count, increment, offset, &number); });
  };
  int32_t code = HW_OK;
  if (locks_numbers(ha_thd())) code = with_waits([&] { return hw_numbers_lock(session(), table_of_engine); });
  if (code == HW_OK) code = reserve();
  if (code == HW_BAD_VALUE && count > 1) {
    /* The column has not so many. */
    count = 1;
    code = reserve();
  }
  if (code == HW_OK) {
    *first = number;
    *reserved = count;
  } else if (code == HW_OTHER) {
    /* A column in which the engine does not count. */
    handler::get_auto_increment(offset, increment, wanted_numbers, first, reserved);
  } else {
    int error = failed(code);
    /* A number that the column does not have: the server says so. */
    if (code != HW_BAD_VALUE) number_error = error;
    ulonglong last = table->next_number_field->get_max_int_value();
    *first = code == HW_BAD_VALUE && last != ULONGLONG_MAX ? last + 1 : ULONGLONG_MAX;
    *reserved = 1;
  }
}

int ha_highwater::reset_auto_increment(ulonglong value) {
  if (begin_statement(ha_thd(), false)) return HA_ERR_GENERIC;
  int32_t code = hw_numbers_set(session(), table_of_engine, value ? value : 1);
  return code == HW_OK ? 0 : failed(code);
}

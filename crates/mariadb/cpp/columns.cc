/*
  See columns.h.

  Copyright (c) 2026 The Highwater developers

  This program is free software; you can redistribute it and/or modify it under the terms of the GNU General Public
  License as published by the Free Software Foundation; version 2 of the License.

  This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without even the implied
  warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the GNU General Public License for more details.

  You should have received a copy of the GNU General Public License along with this program; if not, write to the Free
  Software Foundation, Inc., 51 Franklin St, Fifth Floor, Boston, MA 02110-1335  USA
*/
#include "columns.h"
#include <algorithm>
#include <cstring>

namespace highwater {

const char *const row_number_name = "#row";

hw_bytes bytes_of(const std::string &text) { return {reinterpret_cast<const uint8_t *>(text.data()), text.size()}; }

hw_bytes bytes_of(const LEX_CSTRING &text) { return {reinterpret_cast<const uint8_t *>(text.str), text.length}; }

std::string text_of(hw_bytes bytes) { return std::string(reinterpret_cast<const char *>(bytes.data), bytes.length); }

static const hw_bytes null_bytes = {nullptr, 0};

static const uchar *in_record(const TABLE *table, const Field *field, const uchar *record) {
  return record + (field->ptr - table->record[0]);
}

bool is_null_in(const TABLE *table, const Field *field, const uchar *record) {
  return field->null_ptr && (record[field->null_ptr - table->record[0]] & field->null_bit);
}

/* A type of bytes that compare as they are, if they are not too many. */
static void set_fixed(Column *column, uint32 bytes) {
  column->form = Form::fixed;
  column->type = bytes >= 1 && bytes <= 255 ? HW_FIXED : HW_BINARY;
  column->size = std::max<uint32>(bytes, 1);
}

static void set_integer(Column *column, const Field *field, bool is_unsigned) {
  column->form = Form::fixed;
  column->size = 0;
  switch (field->pack_length()) {
    case 1: column->type = is_unsigned ? HW_U8 : HW_I8; return;
    case 2: column->type = is_unsigned ? HW_U16 : HW_I16; return;
    case 3: column->type = is_unsigned ? HW_U24 : HW_I24; return;
    case 4: column->type = is_unsigned ? HW_U32 : HW_I32; return;
    case 8: column->type = is_unsigned ? HW_U64 : HW_I64; return;
    default: set_fixed(column, field->pack_length());
  }
}

static const uint32 longest_value = 16 << 20;

static Column column_of(const Field *field) {
  Column column = {};
  column.field = field->field_index;
  switch (field->real_type()) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
      set_integer(&column, field, field->is_unsigned());
      break;
    case MYSQL_TYPE_YEAR:
    case MYSQL_TYPE_ENUM:
    case MYSQL_TYPE_SET:
    case MYSQL_TYPE_NEWDATE:
      set_integer(&column, field, true);
      break;
    case MYSQL_TYPE_TIMESTAMP:
    case MYSQL_TYPE_DATETIME:
    case MYSQL_TYPE_TIME:
      if (field->decimals())
        set_fixed(&column, field->pack_length());
      else
        set_integer(&column, field, field->real_type() != MYSQL_TYPE_TIME);
      break;
    case MYSQL_TYPE_FLOAT:
      column = {column.field, Form::fixed, HW_F32, 0, 0};
      break;
    case MYSQL_TYPE_DOUBLE:
      column = {column.field, Form::fixed, HW_F64, 0, 0};
      break;
    case MYSQL_TYPE_VARCHAR:
    case MYSQL_TYPE_VARCHAR_COMPRESSED:
      column = {column.field, Form::varying, HW_BINARY, std::max<uint32>(field->field_length, 1), 0};
      break;
    case MYSQL_TYPE_TINY_BLOB:
    case MYSQL_TYPE_MEDIUM_BLOB:
    case MYSQL_TYPE_BLOB:
    case MYSQL_TYPE_BLOB_COMPRESSED:
    case MYSQL_TYPE_LONG_BLOB:
    case MYSQL_TYPE_GEOMETRY:
      column = {column.field, Form::blob, HW_BINARY,
                std::min<uint32>(static_cast<const Field_blob *>(field)->max_data_length(), longest_value), 0};
      break;
    case MYSQL_TYPE_STRING:
      if (field->type_handler() == &type_handler_string && (!field->binary() || field->pack_length() == 0))
        column = {column.field, Form::padded, HW_BINARY, std::max<uint32>(field->pack_length(), 1), 0};
      else
        set_fixed(&column, field->pack_length());
      break;
    default:
      set_fixed(&column, field->pack_length());
  }
  return column;
}

static bool is_plain_text(const Field *field) {
  switch (field->real_type()) {
    case MYSQL_TYPE_STRING:
      return field->type_handler() == &type_handler_string;
    case MYSQL_TYPE_VARCHAR:
    case MYSQL_TYPE_TINY_BLOB:
    case MYSQL_TYPE_MEDIUM_BLOB:
    case MYSQL_TYPE_BLOB:
    case MYSQL_TYPE_LONG_BLOB:
    case MYSQL_TYPE_GEOMETRY:
      return true;
    default:
      return false;
  }
}

/* Types whose bytes in the record compare as the server compares, given the column's type. */
static bool is_comparable(const Field *field) {
  switch (field->real_type()) {
    case MYSQL_TYPE_STRING:
      return field->type_handler() == &type_handler_string;
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
    case MYSQL_TYPE_YEAR:
    case MYSQL_TYPE_ENUM:
    case MYSQL_TYPE_SET:
    case MYSQL_TYPE_NEWDATE:
    case MYSQL_TYPE_TIMESTAMP:
    case MYSQL_TYPE_DATETIME:
    case MYSQL_TYPE_TIME:
    case MYSQL_TYPE_TIMESTAMP2:
    case MYSQL_TYPE_DATETIME2:
    case MYSQL_TYPE_TIME2:
    case MYSQL_TYPE_FLOAT:
    case MYSQL_TYPE_DOUBLE:
    case MYSQL_TYPE_NEWDECIMAL:
    case MYSQL_TYPE_BIT:
      return true;
    default:
      return false;
  }
}

/* What padding looks like among a collation's weights. */
static void find_padding(Part *part) {
  std::vector<uchar> weights(part->weights);
  part->charset->strnxfrm(weights.data(), weights.size(), part->characters, reinterpret_cast<const uchar *>(""), 0,
                          MY_STRXFRM_PAD_WITH_SPACE | MY_STRXFRM_PAD_TO_MAXLEN);
  for (uint unit = 1; unit <= 4; unit++) {
    if (part->weights % unit) continue;
    bool repeats = true;
    for (size_t at = unit; at < weights.size() && repeats; at++) repeats = weights[at] == weights[at - unit];
    if (repeats) {
      part->unit = unit;
      memcpy(part->pad, weights.data(), unit);
      return;
    }
  }
  /* Nothing repeats: the weights are kept whole. */
  part->unit = 0;
}

static const uint longest_weights = 3072;

static Part part_of(const TABLE *table, const KEY_PART_INFO &info) {
  Part part = {};
  const Field *field = table->field[info.fieldnr - 1];
  part.field = field->field_index;
  part.length = info.length;
  part.descending = info.key_part_flag & HA_REVERSE_SORT;
  if (is_plain_text(field) && !field->binary()) {
    part.order = Order::text;
    part.charset = const_cast<CHARSET_INFO *>(field->charset());
    part.characters = std::max<uint>(info.length / part.charset->mbmaxlen, 1);
    /* Of six kinds of units each length is a multiple. */
    uint weights = std::min<uint>(part.charset->strnxfrmlen(std::max<uint>(info.length, 1)), longest_weights);
    part.weights = (weights + 11) / 12 * 12;
    find_padding(&part);
  } else if (is_plain_text(field)) {
    bool is_whole = field->real_type() == MYSQL_TYPE_VARCHAR ? info.length >= field->field_length
                                                            : field->real_type() == MYSQL_TYPE_STRING &&
                                                                  info.length >= field->pack_length();
    /* The engine has prefixes of bytes of any number, not of a fixed one. */
    part.order = is_whole ? Order::native : field->real_type() == MYSQL_TYPE_STRING ? Order::sorted : Order::prefix;
  } else {
    part.order = is_comparable(field) ? Order::native : Order::sorted;
  }
  return part;
}

uint Part::image_bytes() const {
  switch (order) {
    case Order::text: return 2 * weights + 8;
    default: return std::max<uint>(length, 1);
  }
}

std::string Part::image_name(const TABLE *table) const {
  const LEX_CSTRING &name = table->field[field]->field_name;
  return "#key(" + std::string(name.str, name.length) + "," + std::to_string(length) + ")";
}

void Plan::add_key(const TABLE *table, uint number) {
  const KEY &info = table->key_info[number];
  Key key;
  key.name = static_cast<int>(number) == primary ? "PRIMARY" : std::string(info.name.str, info.name.length);
  for (uint i = 0; i < info.user_defined_key_parts; i++) {
    Part part = part_of(table, info.key_part[i]);
    /* A primary key has no prefixes: it gets an image. */
    if (part.order == Order::prefix && static_cast<int>(number) == primary) part.order = Order::sorted;
    key.parts.push_back(part);
    auto same = [&](const Part &image) { return image.field == part.field && image.length == part.length; };
    if (part.has_image() && std::none_of(images.begin(), images.end(), same)) images.push_back(part);
  }
  keys.push_back(key);
}

/* Whether a column is a part of a key; there may be no such key. */
static bool is_part_of(const TABLE *table, uint key, const Field *field) {
  if (key >= table->s->keys) return false;
  for (uint i = 0; i < table->key_info[key].user_defined_key_parts; i++)
    if (table->key_info[key].key_part[i].fieldnr - 1 == field->field_index) return true;
  return false;
}

/* Whether the engine keeps a column. */
static bool is_kept(const TABLE *table, const Field *field) {
  if (field->stored_in_db()) return true;
  for (uint k = 0; k < table->s->keys; k++)
    if (is_part_of(table, k, field)) return true;
  return false;
}

void Plan::make(const TABLE *table) {
  columns.clear(), images.clear(), keys.clear();
  primary = table->s->primary_key < MAX_KEY ? static_cast<int>(table->s->primary_key) : -1;
  uint32 position = 0;
  for (Field **field = table->field; *field; field++) {
    if (!is_kept(table, *field)) continue;
    Column column = column_of(*field);
    column.position = position++;
    column.is_in_primary = is_part_of(table, table->s->primary_key, *field);
    columns.push_back(column);
  }
  for (uint k = 0; k < table->s->keys; k++) add_key(table, k);
  for (Part &image : images) image.position = position++;
  row_number_position = position;
  engine_columns = position + (primary < 0 ? 1 : 0);
  for (Key &key : keys)
    for (Part &part : key.parts) {
      if (part.has_image()) {
        for (const Part &image : images)
          if (image.field == part.field && image.length == part.length) part.position = image.position;
      } else {
        for (const Column &column : columns)
          if (column.field == part.field) part.position = column.position;
      }
    }
}

bool Plan::bind(const TABLE *table, const hw_table *engine) {
  auto find = [&](const std::string &name, uint32 *position) {
    return hw_table_column(engine, bytes_of(name), position) == HW_OK;
  };
  bool is_found = true;
  for (Column &column : columns) {
    const LEX_CSTRING &name = table->field[column.field]->field_name;
    is_found &= find(std::string(name.str, name.length), &column.position);
  }
  for (Part &image : images) is_found &= find(image.image_name(table), &image.position);
  if (primary < 0) is_found &= find(row_number_name, &row_number_position);
  for (Key &key : keys)
    for (Part &part : key.parts) {
      const LEX_CSTRING &name = table->field[part.field]->field_name;
      std::string column = part.has_image() ? part.image_name(table) : std::string(name.str, name.length);
      is_found &= find(column, &part.position);
    }
  return is_found;
}

uint Plan::primary_key_bytes() const {
  if (primary < 0) return 8;
  uint bytes = 0;
  for (const Part &part : keys[primary].parts)
    bytes += 2 + std::max<uint>(part.has_image() ? 2 * part.image_bytes() : 2 * part.length, 8);
  return std::min<uint>(bytes, 3600);
}

hw_bytes column_bytes(const TABLE *table, const Column &column, const uchar *record) {
  const Field *field = table->field[column.field];
  if (is_null_in(table, field, record)) return null_bytes;
  const uchar *at = in_record(table, field, record);
  switch (column.form) {
    case Form::fixed:
      return {at, field->pack_length()};
    case Form::padded:
      return {at, field->charset()->lengthsp(reinterpret_cast<const char *>(at), field->pack_length())};
    case Form::varying: {
      uint length_bytes = static_cast<const Field_varstring *>(field)->length_bytes;
      return {at + length_bytes, static_cast<size_t>(length_bytes == 1 ? *at : uint2korr(at))};
    }
    case Form::blob: {
      const Field_blob *blob = static_cast<const Field_blob *>(field);
      uint length_bytes = blob->pack_length_no_ptr();
      const uchar *data;
      memcpy(&data, at + length_bytes, sizeof data);
      size_t length = blob->get_length(at, length_bytes);
      return {data && length ? data : reinterpret_cast<const uchar *>(""), length};
    }
  }
  return null_bytes;
}

void set_column(const TABLE *table, const Column &column, uchar *record, hw_bytes bytes) {
  const Field *field = table->field[column.field];
  uchar *at = record + (field->ptr - table->record[0]);
  if (field->null_ptr) {
    uchar *null = record + (field->null_ptr - table->record[0]);
    if (!bytes.data) {
      *null |= field->null_bit;
      memcpy(at, table->s->default_values + (field->ptr - table->record[0]), field->pack_length());
      return;
    }
    *null &= ~field->null_bit;
  }
  switch (column.form) {
    case Form::fixed:
      if (bytes.length) memcpy(at, bytes.data, std::min<size_t>(bytes.length, field->pack_length()));
      return;
    case Form::padded: {
      size_t length = std::min<size_t>(bytes.length, field->pack_length());
      if (length) memcpy(at, bytes.data, length);
      CHARSET_INFO *charset = const_cast<CHARSET_INFO *>(field->charset());
      charset->fill(reinterpret_cast<char *>(at) + length, field->pack_length() - length, charset->pad_char);
      return;
    }
    case Form::varying: {
      uint length_bytes = static_cast<const Field_varstring *>(field)->length_bytes;
      size_t length = std::min<size_t>(bytes.length, field->field_length);
      if (length_bytes == 1)
        *at = static_cast<uchar>(length);
      else
        int2store(at, length);
      if (length) memcpy(at + length_bytes, bytes.data, length);
      return;
    }
    case Form::blob: {
      const Field_blob *blob = static_cast<const Field_blob *>(field);
      uint length_bytes = blob->pack_length_no_ptr();
      uint32 length = static_cast<uint32>(bytes.length);
      for (uint i = 0; i < length_bytes; i++) at[i] = static_cast<uchar>(length >> (8 * i));
      memcpy(at + length_bytes, &bytes.data, sizeof bytes.data);
      return;
    }
  }
}

/*
  Weights padded to the full length compare byte by byte; without the padding at the end they would not, as characters
  below the space come before it. So a run of padding that something follows is marked by whether that is less (2) or
  greater (4), and the end is a unit of padding with the mark 3.
*/
static void compress_weights(const Part &part, const uchar *weights, std::string *out) {
  const uint unit = part.unit;
  auto is_pad = [&](size_t at) { return memcmp(weights + at, part.pad, unit) == 0; };
  size_t end = part.weights;
  while (end >= unit && is_pad(end - unit)) end -= unit;
  size_t at = 0;
  while (at < end) {
    out->append(reinterpret_cast<const char *>(weights + at), unit);
    at += unit;
    if (!is_pad(at - unit)) continue;
    size_t next = at;
    while (is_pad(next)) next += unit;
    out->push_back(memcmp(weights + next, part.pad, unit) < 0 ? 2 : 4);
    out->append(reinterpret_cast<const char *>(weights + at), next - at);
    at = next;
  }
  out->append(reinterpret_cast<const char *>(part.pad), unit);
  out->push_back(3);
}

static void image_of_text(const Part &part, const uchar *text, size_t length, std::string *out) {
  CHARSET_INFO *charset = part.charset;
  const char *from = reinterpret_cast<const char *>(text);
  length = std::min<size_t>(length, charset->charpos(from, from + length, part.characters));
  uchar weights[longest_weights + 12];
  charset->strnxfrm(weights, part.weights, part.characters, text, length,
                    MY_STRXFRM_PAD_WITH_SPACE | MY_STRXFRM_PAD_TO_MAXLEN);
  out->clear();
  if (part.unit)
    compress_weights(part, weights, out);
  else
    out->assign(reinterpret_cast<const char *>(weights), part.weights);
}

/* By the field's own function, on bytes as a record has them. */
static void image_by_field(const Part &part, Field *field, const uchar *at, std::string *out) {
  out->assign(std::max<uint>(field->sort_length(), 1), '\0');
  uchar *before = field->ptr;
  field->ptr = const_cast<uchar *>(at);
  field->sort_string(reinterpret_cast<uchar *>(&(*out)[0]), field->sort_length());
  field->ptr = before;
  if (out->size() > part.image_bytes()) out->resize(part.image_bytes());
}

static void image_of(const Part &part, Field *field, const uchar *at, const uchar *data, size_t length,
                     std::string *out) {
  if (part.order == Order::text)
    image_of_text(part, data, length, out);
  else if (is_plain_text(field))
    out->assign(reinterpret_cast<const char *>(data), std::min<size_t>(length, part.length));
  else
    image_by_field(part, field, at, out);
}

void image_of_record(const TABLE *table, const Part &part, const uchar *record, std::string *out) {
  Field *field = table->field[part.field];
  Column column = column_of(field);
  hw_bytes value = column_bytes(table, column, record);
  image_of(part, field, in_record(table, field, record), value.data, value.length, out);
}

uint key_values(const TABLE *table, const Key &key, const KEY *info, const uchar *tuple, key_part_map map,
                std::vector<std::string> *images, hw_bytes *out) {
  uint parts = 0;
  images->resize(std::max(images->size(), key.parts.size()));
  for (; parts < key.parts.size() && (map & (key_part_map(1) << parts)); parts++) {
    const Part &part = key.parts[parts];
    const KEY_PART_INFO &of = info->key_part[parts];
    Field *field = table->field[part.field];
    const uchar *at = tuple;
    tuple += of.store_length;
    if (of.null_bit) {
      if (*at++) {
        out[parts] = null_bytes;
        continue;
      }
    }
    hw_bytes value = {at, of.length};
    if (of.key_part_flag & (HA_BLOB_PART | HA_VAR_LENGTH_PART)) value = {at + HA_KEY_BLOB_LENGTH, uint2korr(at)};
    if (part.has_image()) {
      std::string &image = (*images)[parts];
      image_of(part, field, value.data, value.data, value.length, &image);
      value = bytes_of(image);
    }
    out[parts] = value;
  }
  return parts;
}

}  // namespace highwater

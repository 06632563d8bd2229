/*
  Columns and keys of a server's table, as the engine keeps them.

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
  1. A stored column of the server's table is a column of the engine's, of the same name. A column that is a key part
     and does not compare as its bytes do has an *image* next to it: a column of bytes that compare as the server
     compares, made when the row is written. So the engine needs no function of the server, and its purge, recovery
     and checks work without one.
  2. Columns of the engine are found by their names when a table is opened.
  3. A table without a primary key has a hidden one, a number.
*/
#ifndef HIGHWATER_COLUMNS_H
#define HIGHWATER_COLUMNS_H

#include "server.h"
#include "highwater_server.h"
#include <string>
#include <vector>

namespace highwater {

hw_bytes bytes_of(const std::string &text);
hw_bytes bytes_of(const LEX_CSTRING &text);
std::string text_of(hw_bytes bytes);

/* How a column's bytes come out of a record, and go back. */
enum class Form { fixed, padded, varying, blob };

struct Column {
  uint field;
  Form form;
  hw_type type;
  uint32 size; /* of a type that has one */
  uint32 position;
  bool is_in_primary = false;
};

/* How a key part compares. */
enum class Order { native, prefix, text, sorted };

/* A key part; also an image, which is the key part's column of its own. */
struct Part {
  uint field;
  Order order;
  uint length; /* bytes of the server's key part, without length and NULL byte */
  bool descending;
  uint32 position;
  /* Of text. */
  CHARSET_INFO *charset;
  uint characters;
  uint weights;
  uint unit;
  uchar pad[4];

  bool has_image() const { return order == Order::text || order == Order::sorted; }
  uint image_bytes() const;
  std::string image_name(const TABLE *table) const;
};

struct Key {
  std::string name;
  std::vector<Part> parts;
};

/* All of it, for one table. */
class Plan {
 public:
  void make(const TABLE *table);
  /* Finds the positions in the engine's table. */
  bool bind(const TABLE *table, const hw_table *engine);

  std::vector<Column> columns;
  std::vector<Part> images;
  std::vector<Key> keys;
  int primary; /* number of the key, or -1 */
  uint32 row_number_position;
  uint32 engine_columns;

  uint primary_key_bytes() const;

 private:
  void add_key(const TABLE *table, uint number);
};

extern const char *const row_number_name;

/* The bytes of a column in a record. */
hw_bytes column_bytes(const TABLE *table, const Column &column, const uchar *record);
/* Puts them there. */
void set_column(const TABLE *table, const Column &column, uchar *record, hw_bytes bytes);
/* The image of a key part's value. */
void image_of_record(const TABLE *table, const Part &part, const uchar *record, std::string *out);
bool is_null_in(const TABLE *table, const Field *field, const uchar *record);
/* The values of a key tuple of the server's; `images` keeps those that are made. Returns how many. */
uint key_values(const TABLE *table, const Key &key, const KEY *info, const uchar *tuple, key_part_map map,
                std::vector<std::string> *images, hw_bytes *out);

}  // namespace highwater
#endif

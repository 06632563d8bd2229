/* WiredTiger's methods, which are pointers in structures, as functions. */

#include <wiredtiger.h>

int hw_wt_open(const char *home, const char *config, WT_CONNECTION **connection) {
    return wiredtiger_open(home, NULL, config, connection);
}

int hw_wt_close(WT_CONNECTION *connection) { return connection->close(connection, NULL); }

int hw_wt_session(WT_CONNECTION *connection, WT_SESSION **session) {
    return connection->open_session(connection, NULL, "isolation=snapshot", session);
}

int hw_wt_session_close(WT_SESSION *session) { return session->close(session, NULL); }

int hw_wt_create(WT_SESSION *session, const char *uri, const char *config) {
    return session->create(session, uri, config);
}

int hw_wt_cursor(WT_SESSION *session, const char *uri, const char *config, WT_CURSOR **cursor) {
    return session->open_cursor(session, uri, NULL, config, cursor);
}

int hw_wt_begin(WT_SESSION *session) { return session->begin_transaction(session, NULL); }

int hw_wt_commit(WT_SESSION *session) { return session->commit_transaction(session, NULL); }

int hw_wt_rollback(WT_SESSION *session) { return session->rollback_transaction(session, NULL); }

int hw_wt_sync_log(WT_SESSION *session) { return session->log_flush(session, "sync=on"); }

static void set_key(WT_CURSOR *cursor, const void *key, size_t bytes) {
    WT_ITEM item = {0};
    item.data = key;
    item.size = bytes;
    cursor->set_key(cursor, &item);
}

/* Positions the cursor on a key; its value stays where it is until the cursor is reset. */
int hw_wt_get(WT_CURSOR *cursor, const void *key, size_t bytes, const void **value, size_t *value_bytes) {
    WT_ITEM item;
    int failure;
    set_key(cursor, key, bytes);
    if ((failure = cursor->search(cursor)) != 0)
        return failure;
    if ((failure = cursor->get_value(cursor, &item)) != 0)
        return failure;
    *value = item.data;
    *value_bytes = item.size;
    return 0;
}

int hw_wt_insert(WT_CURSOR *cursor, const void *key, size_t bytes, const void *value, size_t value_bytes) {
    WT_ITEM item = {0};
    set_key(cursor, key, bytes);
    item.data = value;
    item.size = value_bytes;
    cursor->set_value(cursor, &item);
    return cursor->insert(cursor);
}

int hw_wt_remove(WT_CURSOR *cursor, const void *key, size_t bytes) {
    set_key(cursor, key, bytes);
    return cursor->remove(cursor);
}

/* Positions the cursor on a key or next to it; `exact` says on which side. */
int hw_wt_near(WT_CURSOR *cursor, const void *key, size_t bytes, int *exact) {
    set_key(cursor, key, bytes);
    return cursor->search_near(cursor, exact);
}

int hw_wt_next(WT_CURSOR *cursor) { return cursor->next(cursor); }

int hw_wt_prev(WT_CURSOR *cursor) { return cursor->prev(cursor); }

int hw_wt_reset(WT_CURSOR *cursor) { return cursor->reset(cursor); }

/* The entry that the cursor is on. */
int hw_wt_entry(WT_CURSOR *cursor, const void **key, size_t *bytes, const void **value, size_t *value_bytes) {
    WT_ITEM item;
    int failure;
    if ((failure = cursor->get_key(cursor, &item)) != 0)
        return failure;
    *key = item.data;
    *bytes = item.size;
    if ((failure = cursor->get_value(cursor, &item)) != 0)
        return failure;
    *value = item.data;
    *value_bytes = item.size;
    return 0;
}

/** Limits of reading a request before routing. */

/** Unspecified: text fields of a form beside files; a prompt of any length that a model reads fits. */
export const FORM_FIELDS_MAX = 64;
export const FORM_FIELD_BYTES_MAX = 1024 * 1024;
export const FORM_FIELD_NAME_BYTES_MAX = 200;
/** Unspecified: `a[b][c]` is 2 deep. */
export const FORM_FIELD_DEPTH_MAX = 2;
export const FORM_LIST_ITEMS_MAX = 64;
/** The form parser's own bound on a part's head, with its name and type. */
export const FORM_PART_HEAD_BYTES_MAX = 16 * 1024;

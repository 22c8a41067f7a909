/** Limits of what is read of a request before anybody knows what it is for. */

/** Forms, unspecified: texts beside files; a prompt of any length that a model reads fits. */
export const FORM_FIELDS_MAX = 64;
export const FORM_FIELD_BYTES_MAX = 1024 * 1024;
export const FORM_FIELD_NAME_BYTES_MAX = 200;
/** Forms, unspecified: `a[b][c]` is 2 deep. */
export const FORM_FIELD_DEPTH_MAX = 2;
export const FORM_LIST_ITEMS_MAX = 64;
/** Forms: the parser's own bound of a part's head, with its name and its type. */
export const FORM_PART_HEAD_BYTES_MAX = 16 * 1024;

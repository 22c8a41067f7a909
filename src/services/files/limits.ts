/** Media: 10 MB, binary (docs/spec/media.md#content-addressed-files). */
export const MEDIA_UPLOAD_BYTES_MAX = 10 * 1024 * 1024;
/** Media: from the last upload (docs/spec/media.md#content-addressed-files). */
export const MEDIA_FILE_DAYS = 14;
/** Media, unspecified: a file's display name. */
export const MEDIA_NAME_CHARS_MAX = 255;

/** Disk: intervals of deleting expired files, and of looking for orphaned blobs. */
export const EXPIRY_SWEEP_MS = 5 * 60 * 1000;
export const ORPHAN_SWEEP_MS = 60 * 60 * 1000;
/** Disk: a blob is written before its row; an older one without a row is an orphan. */
export const ORPHAN_AGE_MS = 60 * 60 * 1000;

/** 100 MB, binary (docs/spec/media.md#direct-uploads). */
export const MEDIA_OBJECT_BYTES_MAX = 100 * 1024 * 1024;
/** Tags of one file (docs/spec/media.md#tags). */
export const MEDIA_TAGS_MAX = 8;
/** An upload must have begun within 10 minutes (docs/spec/media.md#direct-uploads). */
export const MEDIA_UPLOAD_URL_SECONDS = 10 * 60;
/** Unspecified: an incomplete upload is deleted after this; one that began at the last moment has the rest of the hour. */
export const MEDIA_UPLOAD_SECONDS = 60 * 60;
/** Lifetime of a download address (docs/spec/media.md#direct-uploads). */
export const MEDIA_DOWNLOAD_URL_SECONDS = 5 * 60;
/** Unspecified: an untagged file can be neither listed nor deleted (docs/spec/media.md#tags), so it expires, as those of variant A do. */
export const MEDIA_UNTAGGED_DAYS = 14;
/** Unspecified: bytes read to detect a file's type. */
export const MEDIA_HEAD_BYTES = 64 * 1024;
/** Unspecified: length of a media type with parameters (RFC 4288 has 127 characters on each side of the slash). */
export const MEDIA_TYPE_CHARS_MAX = 255;
/** Items of a page (docs/spec/media.md#tags). */
export const MEDIA_PAGE_SIZE_DEFAULT = 20;
export const MEDIA_PAGE_SIZE_MAX = 100;

/** Media, unspecified: bytes of an upload between two checks of free disk space. */
export const DISK_LOOK_BYTES = 4 * 1024 * 1024;

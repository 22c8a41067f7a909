/** Limits of media files and uploads, and of how blobs that nobody knows of are looked for. */

/** Media: 10 MB, binary (docs/spec/media.md#content-addressed-files). */
export const MEDIA_UPLOAD_BYTES_MAX = 10 * 1024 * 1024;
/** Media: from the last upload (docs/spec/media.md#content-addressed-files). */
export const MEDIA_FILE_DAYS = 14;
/** Media, unspecified: a file's display name. */
export const MEDIA_NAME_CHARS_MAX = 255;

/** Disk: how often what has expired is removed, and how often blobs that nobody knows of are looked for. */
export const EXPIRY_SWEEP_MS = 5 * 60 * 1000;
export const ORPHAN_SWEEP_MS = 60 * 60 * 1000;
/** Disk: a blob is written before the row that names it; one that is older than that and unnamed is an orphan. */
export const ORPHAN_AGE_MS = 60 * 60 * 1000;

/** 100 MB, binary (docs/spec/media.md#direct-uploads). */
export const MEDIA_OBJECT_BYTES_MAX = 100 * 1024 * 1024;
/** Tags of one file (docs/spec/media.md#tags). */
export const MEDIA_TAGS_MAX = 8;
/** An upload must have begun within 10 minutes (docs/spec/media.md#direct-uploads). */
export const MEDIA_UPLOAD_URL_SECONDS = 10 * 60;
/** Unspecified: until then it must be complete, or it is swept; a slow upload that began at the last moment has the rest of the hour. */
export const MEDIA_UPLOAD_SECONDS = 60 * 60;
/** How long the address works that a GET is sent on to (docs/spec/media.md#direct-uploads). */
export const MEDIA_DOWNLOAD_URL_SECONDS = 5 * 60;
/** Unspecified: an untagged file can be neither listed nor deleted (docs/spec/media.md#tags), so it goes by itself, as those of variant A do. */
export const MEDIA_UNTAGGED_DAYS = 14;
/** Unspecified: how much of a file's beginning is looked at to know what it is. */
export const MEDIA_HEAD_BYTES = 64 * 1024;
/** Unspecified: what a media type may be long (RFC 4288 has 127 characters on each side of the slash), parameters included. */
export const MEDIA_TYPE_CHARS_MAX = 255;
/** Items of a page (docs/spec/media.md#tags). */
export const MEDIA_PAGE_SIZE_DEFAULT = 20;
export const MEDIA_PAGE_SIZE_MAX = 100;

/** Media, unspecified: bytes of one upload between two looks at what the disk has left. */
export const DISK_LOOK_BYTES = 4 * 1024 * 1024;

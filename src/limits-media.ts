/** Numbers of the media host's second variant, uploads straight to the blob store, and of what an account may keep there. */

/** Spec 8, variant B: 100 MB, binary (decisions "Media"). */
export const MEDIA_OBJECT_BYTES_MAX = 100 * 1024 * 1024;
/** Decisions "Media": tags of one file. */
export const MEDIA_TAGS_MAX = 8;
/** Reliability 9: an upload must have begun within 10 minutes. */
export const MEDIA_UPLOAD_URL_SECONDS = 10 * 60;
/** Unspecified: until then it must be complete, or it is swept; a slow upload that began at the last moment has the rest of the hour. */
export const MEDIA_UPLOAD_SECONDS = 60 * 60;
/** Decisions "Media": how long the address works that a GET is sent on to. */
export const MEDIA_DOWNLOAD_URL_SECONDS = 5 * 60;
/** Unspecified: an untagged file can be neither listed nor deleted (Spec 4.8), so it goes by itself, as those of variant A do. */
export const MEDIA_UNTAGGED_DAYS = 14;
/** Unspecified: how much of a file's beginning is looked at to know what it is. */
export const MEDIA_HEAD_BYTES = 64 * 1024;
/** Unspecified: what a media type may be long (RFC 4288 has 127 characters on each side of the slash), parameters included. */
export const MEDIA_TYPE_CHARS_MAX = 255;
/** Decisions "Media": items of a page. */
export const MEDIA_PAGE_SIZE_DEFAULT = 20;
export const MEDIA_PAGE_SIZE_MAX = 100;

/** Unspecified: what an account may keep on the media host, unless configured. */
export const MEDIA_QUOTA_BYTES_DEFAULT = 5 * 1024 * 1024 * 1024;
export const MEDIA_QUOTA_FILES_DEFAULT = 10_000;
/** Unspecified: with less free space than this on the disk no file is taken in, unless configured. The database needs the rest. */
export const DISK_FREE_BYTES_MIN_DEFAULT = 512 * 1024 * 1024;
/** Media, unspecified: bytes of one upload between two looks at what the disk has left. */
export const DISK_LOOK_BYTES = 4 * 1024 * 1024;

/** Limits of the sandbox models, which run in the process. */

/** Unspecified: threads for images, video, speech and music; one core is left to the gateway. */
export const SANDBOX_THREADS_MAX = 2;
/** Unspecified: concurrent jobs of a thread; more wait. */
export const SANDBOX_JOBS_PER_THREAD = 4;
/**
 * Unspecified: speech in formats that are sent whole, kept in memory until read: how many at once, and how many characters at ordinary
 * speed (some 20 minutes, 60 MB).
 */
export const SANDBOX_WHOLE_SPEECH_JOBS_MAX = 8;
export const SANDBOX_WHOLE_SPEECH_CHARS_MAX = 20_000;
/** Unspecified: jobs running, waiting or paused for their reader; beyond it the sandbox is overloaded. */
export const SANDBOX_JOBS_MAX = 128;
/** Unspecified: an idle thread ends after this long, with the memory of its libraries. */
export const SANDBOX_IDLE_MS = 30_000;
/** Unspecified: a thread is ended when it has not answered for this long after a client left within a step. No step takes a tenth of it. */
export const SANDBOX_STEP_MAX_MS = 60_000;
/** Unspecified: how long a stopping gateway waits for sandbox jobs, after draining. */
export const SANDBOX_CLOSE_MS = 15_000;
/** Unspecified: side of a sandbox picture whose size is not stated, in pixels, and the largest (docs/spec/images.md#size). */
export const SANDBOX_IMAGE_SIDE = 1_024;
export const SANDBOX_IMAGE_SIDE_MAX = 4_096;
export const SANDBOX_IMAGE_SIDE_MIN = 64;
/** Unspecified: pictures of one request. */
export const SANDBOX_IMAGES_MAX = 10;
/** Unspecified: what a source picture may unfold to, in pixels. */
export const SANDBOX_SOURCE_PIXELS_MAX = 64 * 1024 * 1024;
/** Length of a video (docs/spec/limits.md). The sandbox's usual one keeps waiting short. */
export const SANDBOX_VIDEO_SECONDS_MIN = 1;
export const SANDBOX_VIDEO_SECONDS_MAX = 10;
export const SANDBOX_VIDEO_SECONDS = 4;
/** Unspecified: side of a sandbox video, in pixels. */
export const SANDBOX_VIDEO_SIDE_MAX = 1_920;
/** Unspecified: length of a sandbox tune. */
export const SANDBOX_MUSIC_SECONDS = 10;
export const SANDBOX_MUSIC_SECONDS_MAX = 300;

/**
 * Limits of the specification, and limits shared by several domains; a domain has its own in its `limits.ts`. Each has a unit, and cites
 * the specification (docs/spec/limits.md) or states its reason.
 */
import type { JsonBounds } from "./lib/json-bounds.js";

/** Temperature of chat completions (docs/spec/limits.md). */
export const TEMPERATURE_MIN = 0;
export const TEMPERATURE_MAX = 2;

/** Unspecified: more than any client sends; a body has room for four keys in each. */
export const CHAT_MESSAGES_MAX = 5_000;
/** Unspecified: room for several images as data URLs. */
export const JSON_BODY_BYTES_MAX = 32 * 1024 * 1024;
/** Unspecified: deeper than any schema, shallow enough for every recursive reader. */
export const JSON_DEPTH_MAX = 100;
/** Unspecified: keys of all objects of a body; 800 tools of 25 properties each. */
export const JSON_KEYS_MAX = 20_000;
/** Unspecified: values of a body; embeddings of 300,000 tokens as numbers fit. */
export const JSON_VALUES_MAX = 400_000;
/** Unspecified: texts and field names of a body; V8 takes 50 ms and more to parse 200,000 distinct short ones. */
export const JSON_TEXTS_MAX = 100_000;
/** Unspecified: objects and lists of a body; V8 takes 60 ms to parse and write 400,000. */
export const JSON_BRACKETS_MAX = 150_000;
/** Bounds of JSON from clients, beside its bytes. */
export const JSON_BOUNDS: JsonBounds = {
  depthMax: JSON_DEPTH_MAX,
  keysMax: JSON_KEYS_MAX,
  valuesMax: JSON_VALUES_MAX,
  textsMax: JSON_TEXTS_MAX,
  bracketsMax: JSON_BRACKETS_MAX,
};
/** The same for GraphQL, whose scalar JSON is nested in `{ variables: { input: { extra: ... } } }` and a few more. */
export const GRAPHQL_JSON_BOUNDS: JsonBounds = { ...JSON_BOUNDS, depthMax: JSON_DEPTH_MAX + 10 };
/** Unspecified: an answer held in memory until it is charged. */
export const UPSTREAM_BODY_BYTES_MAX = 64 * 1024 * 1024;
/** Unspecified: structure of that answer; 16,000 tokens with 20 log probabilities each have 1.1 million keys and 2.7 million values. */
export const UPSTREAM_JSON_BOUNDS: JsonBounds = {
  ...JSON_BOUNDS,
  keysMax: 2_000_000,
  valuesMax: 4_000_000,
  textsMax: 4_000_000,
  bracketsMax: 4_000_000,
};
/** Unspecified: a whole stream, which is never held in memory; above the longest answers with log probabilities. */
export const UPSTREAM_STREAM_BYTES_MAX = 1024 * 1024 * 1024;
/** Unspecified: one server-sent event; an image as a data URL fits. */
export const SSE_EVENT_BYTES_MAX = 32 * 1024 * 1024;
/** Unspecified: bytes of an upstream's stream between two pieces of content; a comment of 30 bytes each 100 ms for an hour. */
export const SSE_SILENT_BYTES_MAX = 1024 * 1024;
/** Unspecified: a GraphQL document with its variables; a chat may be as large as a REST body. */
export const GRAPHQL_BODY_BYTES_MAX = JSON_BODY_BYTES_MAX;

/** Timeouts (docs/spec/http.md#time-outs). */
export const GENERATION_TIMEOUT_MS = 300_000;
export const UPSTREAM_IDLE_TIMEOUT_MS = 60_000;
export const UPSTREAM_CONNECT_TIMEOUT_MS = 3_000;
/** Unspecified: interval of log lines about an upstream that refuses the gateway's credential. */
export const REFUSED_CREDENTIAL_LOG_MS = 300_000;
/** Unspecified: interval of log lines about implausible usage of a model. */
export const BOUNDED_USAGE_LOG_MS = 300_000;
/** Interval of comment lines in a silent stream (docs/spec/http.md#streams). */
export const SSE_KEEP_ALIVE_MS = 15_000;
/** How long an answer's status waits for the upstream's first byte, so that early errors have their own status. */
export const STREAM_HEAD_WAIT_MS = 5_000;
/** How long an abandoned stream is read for its usage report (docs/spec/credits.md#callers-who-leave). */
export const STREAM_REST_MS = 30_000;
/** A reader that takes nothing for this long is disconnected. */
export const SLOW_READER_TIMEOUT_MS = 60_000;
/** Unspecified: characters of CREDITS_TEXT, a sentence in 402 errors and notices, and of CREDITS_URL. */
export const TOP_UP_TEXT_CHARS_MAX = 300;
export const TOP_UP_URL_CHARS_MAX = 1_000;
/** Unspecified: connections to one upstream; further requests wait. */
export const UPSTREAM_CONNECTIONS_MAX = 2_048;

/** The number of gateways that a request has passed, which prevents loops through models whose upstream is a gateway. */
export const HOPS_HEADER = "x-sluice-hops";
/** The client's own request id (docs/spec/http.md#request-ids). */
export const REQUEST_ID_PATTERN = /^[A-Za-z0-9._-]{1,128}$/;

/** Key lifetime (docs/spec/limits.md). */
export const API_KEY_EXPIRES_IN_SECONDS_MAX = 365 * 24 * 60 * 60;
/** Unspecified: a display name. */
export const API_KEY_NAME_CHARS_MAX = 120;
/** Unspecified: more models than a catalog page shows. */
export const API_KEY_ALLOWED_MODELS_MAX = 500;
/** Unspecified: a key's budget in credits, far below what BIGINT nanocredits hold. */
export const CREDITS_MAX = 1_000_000_000;
/** Unspecified: live keys of one account. */
export const API_KEYS_PER_ACCOUNT_MAX = 1_000;
/** Unspecified: levels of the key tree; prisma/migrations states it too. */
export const API_KEY_LEVELS_MAX = 8;

/** How long a cached key is good without a query (docs/architecture.md#read). */
export const API_KEY_CACHE_MS = 5_000;
export const API_KEY_UNKNOWN_CACHE_MS = 1_000;
export const API_KEY_CACHE_ENTRIES_MAX = 50_000;

/** Usage (docs/spec/limits.md). */
export const USAGE_DAYS_MAX = 90;
export const USAGE_DAYS_DEFAULT = 30;
export const USAGE_DAILY_DAYS_DEFAULT = 90;
export const USAGE_LIMIT_MAX = 50_000;
export const USAGE_LIMIT_DEFAULT = 100;

/** GraphQL: page size of a connection. */
export const PAGE_SIZE_MAX = 100;
export const PAGE_SIZE_DEFAULT = 20;

/** Credits: operations committed together. A larger flush would delay the first ones needlessly. */
export const FLUSH_OPERATIONS_MAX = 500;
/** Credits: operations waiting for a flush; beyond it new work is refused. */
export const FLUSH_QUEUE_MAX = 20_000;
/** Credits: a database without an answer for this long is unavailable. */
export const FLUSH_TIMEOUT_MS = 5_000;
/** Credits: the gateway becomes unready when flushes fail for this long. */
export const FLUSH_STALLED_MS = 5_000;
/** Credits: retry interval while the database is unavailable. */
export const FLUSH_RETRY_MS = 250;
/** Credits: how long a hold waits for credits that other holds have, before it is refused. */
export const CONTENDED_HOLD_WAIT_MS = 2_000;
/** Credits: retry interval of waiting holds, beside events about settlements. */
export const CONTENDED_HOLD_RETRY_MS = 200;
/** Credits: how long a known balance is used without events of other processes. */
export const KNOWN_BALANCE_MS = 1_000;
/** Credits: a hold that is not extended for this long expires; longer than any generation. */
export const HOLD_SECONDS = 900;
/** Credits: the size of a new lease in holds like the first one, and the smallest lease that is made. */
export const LEASE_ESTIMATES = 64n;
export const LEASE_ESTIMATES_LEAST = 4n;
/** Credits: when an idle lease is released, and the interval of looking for one. */
export const LEASE_IDLE_MS = 5_000;
export const LEASE_SWEEP_MS = 1_000;
/** Credits: a lease is neither used nor extended for this long after it was recalled or refused. */
export const LEASE_PAUSE_MS = 1_000;
/** Credits: how long a refill, a grant or a new budget waits for leases of other processes. */
export const LEASE_RECALL_MS = 500;
/** Credits: percentage of a hold at which it is extended (docs/architecture.md#settle). */
export const EXTEND_AT_PERCENT = 80n;
/** Credits: interval of writing a running stream's meter to its hold: a killed process loses at most this much. */
export const METER_NOTE_MS = 1_000;
/** Credits: output tokens assumed of an unknown model. */
export const OUTPUT_TOKENS_ASSUMED = 1_000;
/** Credits: heartbeat interval of a process, and the silence after which it is dead. */
export const HEARTBEAT_MS = 2_000;
export const HEARTBEAT_DEAD_MS = 30_000;
/** Unspecified: difference between the clocks of a process and its database that is reported. */
export const CLOCK_DIFFERENCE_MS_MAX = 5_000;
/** Credits: interval of looking for abandoned holds. */
export const RECOVERY_SWEEP_MS = 10_000;
/** Credits: first and longest retry delay of a settlement that the database refused; each doubles the last. */
export const REFUSED_RETRY_MS = 1_000;
export const REFUSED_RETRY_MS_MAX = 600_000;
/** Credits: settlements kept on disk while the database is unavailable; beyond it streams fail rather than go unrecorded. */
export const SPOOL_BYTES_MAX = 256 * 1024 * 1024;

/** Unspecified: a body of an anonymous caller, who can read only the public catalog. */
export const GRAPHQL_ANONYMOUS_BODY_BYTES_MAX = 100 * 1024;

/** Unspecified: a search of the catalog, as long as the longest model id. */
export const CATALOG_SEARCH_CHARS_MAX = 253;

/** GraphQL over WebSocket (docs/spec/graphql.md#websocket). */
export const WEBSOCKET_INIT_TIMEOUT_MS = 3_000;
export const WEBSOCKET_PING_MS = 12_000;
export const WEBSOCKET_OPERATIONS_MAX = 10;
/** Unspecified: time for the last errors of generations before the socket of a suspended account is closed. */
export const WEBSOCKET_LAST_ERRORS_MS = 2_000;
/** Unspecified: a client with more unread data is not read from. */
export const WEBSOCKET_UNREAD_BYTES_MAX = 1024 * 1024;
/** Unspecified: interval of rechecking a subscription's key; an announced revocation applies at once. */
export const LIVE_KEY_CHECK_MS = 10_000;

/** HTTP: timeouts for a client's headers and for its whole request. */
export const HTTP_HEADERS_TIMEOUT_MS = 15_000;
export const HTTP_REQUEST_TIMEOUT_MS = 120_000;
/** HTTP: longer than load balancers keep idle connections, so that they never write to one that is closing. */
export const HTTP_KEEP_ALIVE_MS = 75_000;
/** Unspecified: how long generations of disconnected clients may continue after all others are done. */
export const UNATTENDED_DRAIN_MS = 5_000;
/** Unspecified: processes of one gateway on one machine. */
export const WORKERS_MAX = 64;
/** How long streams may continue after the stop signal. */
export const DRAIN_TIMEOUT_MS = 30_000;
/** Longer than any balancer takes to notice that a server is not ready (SHUTDOWN_DELAY_MS). */
export const SHUTDOWN_DELAY_MS_MAX = 300_000;

/** Video (docs/spec/limits.md). */
export const VIDEO_SECONDS_MIN = 1;
export const VIDEO_SECONDS_MAX = 10;
/** Unspecified: far more than ten seconds of 4K; an answer is held in memory until it is charged. */
export const VIDEO_BYTES_MAX = 256 * 1024 * 1024;
/**
 * Unspecified: timeout for measuring a video or recording, with its thread's start (valid files take milliseconds), and how many are
 * measured at once.
 */
export const MEDIA_INSPECTION_MS_MAX = 10_000;
export const MEDIA_INSPECTIONS_MAX = 2;
/** Unspecified: files waiting to be measured, of one account and in all; one file per account at a time. */
export const MEDIA_INSPECTIONS_WAITING_PER_ACCOUNT_MAX = 16;
export const MEDIA_INSPECTIONS_WAITING_MAX = 256;
/** Unspecified: first and longest poll interval of an upstream's video job, unless the upstream sets one. */
export const VIDEO_POLL_MS_FIRST = 500;
export const VIDEO_POLL_MS_MIN = 20;
export const VIDEO_POLL_MS_MAX = 5_000;
/** Unspecified: consecutive failed polls before the job fails. */
export const VIDEO_POLL_FAILURES_MAX = 5;
/**
 * Unspecified: retries of free steps after the paid one (download, fetch, poll): attempts in all, the wait before the second one, doubled
 * up to the longest, and the longest `Retry-After` that is followed.
 */
export const FREE_STEP_ATTEMPTS_MAX = 7;
export const FREE_STEP_WAIT_MS_FIRST = 250;
export const FREE_STEP_WAIT_MS_MAX = 4_000;
export const FREE_STEP_RETRY_AFTER_MS_MAX = 30_000;
/** Unspecified: timeout of telling an upstream to discard a video. */
export const VIDEO_DISCARD_TIMEOUT_MS = 5_000;

/** Unspecified: files of one GraphQL form, and their places in its variables. */
export const GRAPHQL_FILES_MAX = 17;
export const GRAPHQL_FILE_PATHS_MAX = 64;

/** Generation jobs, unspecified: running jobs of one account, and of one process; a finished video waits in memory to be stored. */
export const JOBS_PER_ACCOUNT_MAX = 10;
export const JOBS_PER_PROCESS_MAX = 100;
/** Generation jobs, unspecified: lifetime of a result. */
export const JOB_RESULT_HOURS = 24;
/** Generation jobs, unspecified: how long a stopping gateway waits for them, after everything else. */
export const JOBS_DRAIN_MS = 5_000;
/** Generation jobs, unspecified: retry interval of storing a job's end while the database is unavailable. */
export const JOB_RETRY_MS = 1_000;
/** Generation jobs, unspecified: how long a finished answer is kept in memory while storage is unavailable. */
export const JOB_STORE_MS_MAX = 60_000;

/** Images: `WIDTHxHEIGHT` 64..4096, in pixels (docs/spec/images.md#size). */
export const IMAGE_SIDE_MIN = 64;
export const IMAGE_SIDE_MAX = 4_096;
export const IMAGE_SIDE_DEFAULT = 1_024;
/** Images, unspecified: the bound of OpenAI's newest models. */
export const IMAGE_PROMPT_CHARS_MAX = 32_000;
/** Images, unspecified: images of one generation, as in OpenAI's API. */
export const IMAGES_PER_REQUEST_MAX = 10;
/** Images, unspecified: reference or edited images: number, size of each, and total size. */
export const IMAGE_INPUTS_MAX = 10;
export const IMAGE_INPUT_BYTES_MAX = 20 * 1024 * 1024;
export const IMAGE_INPUTS_BYTES_MAX = 64 * 1024 * 1024;
/** Images, unspecified: pixels of a decoded image; more than any camera makes. */
export const IMAGE_INPUT_PIXELS_MAX = 100_000_000;
/** Images, unspecified: timeout for fetching an image by URL. */
export const IMAGE_FETCH_TIMEOUT_MS = 20_000;

/** OpenAI's format: inputs of one embeddings request. */
export const EMBEDDING_INPUTS_MAX = 2_048;
/** Unspecified: far above the longest vectors of any model. */
export const EMBEDDING_DIMENSIONS_MAX = 65_536;
/** Unspecified: 2,048 vectors of 3,072 numbers are 80 MB of JSON. */
export const EMBEDDING_ANSWER_BYTES_MAX = 128 * 1024 * 1024;
/** Unspecified: 2,048 vectors of 3,072 numbers are 6.3 million values. */
export const EMBEDDING_ANSWER_BOUNDS: JsonBounds = { ...JSON_BOUNDS, valuesMax: 8_000_000 };
/** Unspecified: texts, or parts of one input, in one moderation request. */
export const MODERATION_INPUTS_MAX = 2_048;
/** Safety, unspecified: text checked in one turn of the event loop, and the overlap with the next window. */
export const SAFETY_WINDOW_CHARS = 32 * 1024;
export const SAFETY_OVERLAP_CHARS = 16 * 1024;
/** Safety, unspecified: a longer text is moderated in overlapping pieces. */
export const SAFETY_MODERATED_CHARS_MAX = 20_000;
export const SAFETY_MODERATED_OVERLAP_CHARS = 500;
/** Safety, unspecified: pieces in one moderation call, and concurrent calls. */
export const SAFETY_MODERATED_PIECES_MAX = 32;
export const SAFETY_MODERATION_CALLS_MAX = 4;
/** Safety, unspecified: timeout of all of that. */
export const SAFETY_MODERATION_TIMEOUT_MS = 20_000;

/** Unspecified: counters of each kind in a process's memory; beyond it the oldest are evicted. */
export const COUNTERS_MAX = 100_000;

/** Unspecified: files of a chat fetched for an upstream that does not fetch: size of all together, because they are held together, and number. */
export const CHAT_FILES_BYTES_MAX = 20 * 1024 * 1024;
export const CHAT_FILES_FETCHED_MAX = 16;

/** Chat, unspecified: distinct hosts of addresses for an upstream to fetch; each is resolved. */
export const NAMED_HOSTS_MAX = 16;

/**
 * Audio: characters (Unicode code points) of a speech's input (docs/spec/audio.md#speech); unspecified: the same for music and
 * instructions.
 */
export const SPEECH_INPUT_CHARS_MAX = 10_000;
export const SPEECH_SPEED_MIN = 0.25;
export const SPEECH_SPEED_MAX = 4;
/** Audio, unspecified: music that models make within the timeout; a hold without a requested length assumes the default. */
export const MUSIC_SECONDS_MIN = 1;
export const MUSIC_SECONDS_MAX = 300;
export const MUSIC_SECONDS_DEFAULT = 60;
/** Audio, unspecified: a recording to transcribe (OpenAI's own bound of 25 MB), and the form around it. */
export const TRANSCRIPTION_FILE_BYTES_MAX = 25 * 1024 * 1024;
export const TRANSCRIPTION_FORM_BYTES_MAX = TRANSCRIPTION_FILE_BYTES_MAX + 2 * 1024 * 1024;

/** Realtime, unspecified: length of a session, as at OpenAI, and silence of both sides. */
export const REALTIME_SESSION_MS_MAX = 60 * 60_000;
export const REALTIME_IDLE_MS_MAX = 10 * 60_000;
/** Realtime: OpenAI allows 15 MiB of audio in an event, a third more in base64 and JSON. */
export const REALTIME_EVENT_BYTES_MAX = 21 * 1024 * 1024;
/** Realtime, unspecified: bytes waiting for a slow reader on either side; beyond it the writer is paused. */
export const REALTIME_WAITING_BYTES_MAX = 1024 * 1024;
/** Realtime, unspecified: input and output tokens that the first hold covers, some turns of a conversation. */
export const REALTIME_TOKENS_HELD = 1_000;
/** Realtime, unspecified: audio to transcribe that the first hold covers. */
export const REALTIME_TRANSCRIPTION_MS_HELD = 60_000;
/** Realtime: how long the usage report is awaited after the client disconnected (docs/spec/credits.md#callers-who-leave). */
export const REALTIME_REPORT_MS = 30_000;
/** Realtime, unspecified: concurrent sessions of one key, and of one address. */
export const REALTIME_SESSIONS_PER_KEY_MAX = 50;
export const REALTIME_SESSIONS_PER_ADDRESS_MAX = 50;
/** Lifetime of a client secret, in seconds. Source: OpenAI's `expires_after`. */
export const REALTIME_SECRET_SECONDS_MIN = 10;
export const REALTIME_SECRET_SECONDS_MAX = 7_200;
export const REALTIME_SECRET_SECONDS_DEFAULT = 600;
/** Unspecified: settings in a client secret, as JSON. Node takes 16 KiB of headers, in which the secret is sent. */
export const REALTIME_SECRET_SESSION_BYTES_MAX = 6 * 1024;
/** Realtime, unspecified: interval of checking idle time and storing the meter. */
export const REALTIME_TICK_MS = 1_000;
/** Realtime: interval of metering a response under way. */
export const REALTIME_METER_MS = 250;
/** Realtime, unspecified: an upstream that is silent for two of these is gone. */
export const REALTIME_PING_MS = 15_000;
/** Realtime, unspecified: timeout of the other side's answer to a close. */
export const REALTIME_CLOSE_MS = 1_000;

/** Local model server, unspecified: interval of reading its models, and how long a start waits for the first answer. */
export const LOCAL_REFRESH_MS = 15_000;
export const LOCAL_START_WAIT_MS = 500;
/** Local model server, unspecified: timeout of one request; size of a list that is read, and models listed of it. */
export const LOCAL_TIMEOUT_MS = 5_000;
export const LOCAL_LIST_BYTES_MAX = 8 * 1024 * 1024;
export const LOCAL_MODELS_MAX = 500;

/** Tiers, unspecified: lifetime and number of cached refill times of accounts. As long as for keys. */
export const TIER_STANDING_CACHE_MS = 5_000;
export const TIER_STANDINGS_MAX = 100_000;

/** Unspecified: runs of one process whose costs are reported with their answers. */
export const AGENT_RUNS_NOTED_MAX = 10_000;
/** Lifetime of a run token (docs/spec/agents.md#run-tokens). */
export const RUN_TOKEN_MS = 30 * 60_000;

/** Runs whose spending one process counts: more than can have a good run token at once. */
export const RUN_BUDGETS_MAX = 200_000;

/** Unspecified: bytes of bodies that a process holds at once; `REQUEST_BODIES_BYTES`. Parsed, they take about three times that. */
export const REQUEST_BODIES_BYTES_DEFAULT = 512 * 1024 * 1024;
/** Unspecified: less would refuse ordinary requests. */
export const REQUEST_BODIES_BYTES_MIN = 64 * 1024 * 1024;

/** Names and titles of agents and models, in characters (docs/spec/limits.md). */
export const MODEL_NAME_CHARS_MAX = 120;
export const MODEL_TITLE_CHARS_MAX = 42;
export const MODEL_DESCRIPTION_CHARS_MAX = 1_000;
/** baseModel, upstreamModel (docs/spec/limits.md). */
export const MODEL_REFERENCE_CHARS_MAX = 253;
export const REQUIRED_SAFETY_FEATURES_MAX = 5;
export const FALLBACKS_MAX = 3;
/** advertised.contextLength, in tokens (docs/spec/limits.md). */
export const ADVERTISED_CONTEXT_LENGTH_MAX = 10_000_000;
/** Unspecified: no token, second or image costs this much; a price per million tokens entered by mistake soon exceeds it. */
export const PRICE_CREDITS_MAX = 1_000;

/** Unspecified: default storage quota of an account. */
export const MEDIA_QUOTA_BYTES_DEFAULT = 5 * 1024 * 1024 * 1024;
export const MEDIA_QUOTA_FILES_DEFAULT = 10_000;
/** Unspecified: default free disk space below which no file is accepted. The database needs the rest. */
export const DISK_FREE_BYTES_MIN_DEFAULT = 512 * 1024 * 1024;

/** Unspecified: above the consent form with a thousand models ticked. */
export const URLENCODED_BODY_BYTES_MAX = 256 * 1024;
/** Unspecified. */
export const URLENCODED_FIELDS_MAX = 2_000;
/** Unspecified: a form that was left open overnight has expired. */
export const FORM_TOKEN_SECONDS = 12 * 60 * 60;

/** scrypt's N, OWASP Password Storage Cheat Sheet. */
export const PASSWORD_COST = 2 ** 14;
/** Unspecified: the line on the sign-in page for people who forgot their password. */
export const PASSWORD_HELP = "Forgot your password? Ask the operator of this gateway for a link to set a new one.";
export const PASSWORD_HELP_CHARS_MAX = 500;

/** Unspecified: per address, per e-mail address, and sign-ups per address. */
export const SIGN_IN_ATTEMPTS_PER_MINUTE = 10;
/** Unspecified: for attempts beyond these; no wait is much longer than half a minute. */
export const SIGN_IN_PACE = { addressTurnMs: 5_000, emailTurnMs: 15_000, waitingPerAddressMax: 2 } as const;

/** Unspecified: days that failed requests are kept for their accounts, by REQUEST_LOG_DAYS. 0: they are not kept. */
export const REQUEST_LOG_DAYS_DEFAULT = 30;
export const REQUEST_LOG_DAYS_MAX = 365;

/** Days that responses and conversations are stored, by RESPONSES_STORED_DAYS. 0: they are not (docs/spec/chat.md#stored-responses). */
export const RESPONSES_STORED_DAYS_DEFAULT = 0;
export const RESPONSES_STORED_DAYS_MAX = 30;

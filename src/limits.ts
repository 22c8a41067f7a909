/**
 * The limits of the specification and those that several domains share, each named with its unit; a domain has its own in its
 * `limits.ts`. Each cites the specification (docs/spec/limits.md) or states its reason.
 */
import type { JsonBounds } from "./lib/json-bounds.js";

/** Temperature of chat completions (docs/spec/limits.md). */
export const TEMPERATURE_MIN = 0;
export const TEMPERATURE_MAX = 2;

/** Unspecified: more messages than any client sends; a body has room for four keys in each. */
export const CHAT_MESSAGES_MAX = 5_000;
/** Unspecified: room for several images as data URLs. */
export const JSON_BODY_BYTES_MAX = 32 * 1024 * 1024;
/** Unspecified: deeper than any schema, shallow enough for every recursive reader. */
export const JSON_DEPTH_MAX = 100;
/** Unspecified: keys of all objects of a body together; 800 tools of 25 properties each. */
export const JSON_KEYS_MAX = 20_000;
/** Unspecified: values of a body; embeddings of 300,000 tokens as numbers fit. */
export const JSON_VALUES_MAX = 400_000;
/** Unspecified: texts and names of fields of a body; V8 takes 50 ms and more to parse 200,000 short ones that differ. */
export const JSON_TEXTS_MAX = 100_000;
/** What JSON of callers may hold, beside its bytes. */
export const JSON_BOUNDS: JsonBounds = {
  depthMax: JSON_DEPTH_MAX,
  keysMax: JSON_KEYS_MAX,
  valuesMax: JSON_VALUES_MAX,
  textsMax: JSON_TEXTS_MAX,
};
/** The same of GraphQL: around what the scalar JSON allows stands `{ variables: { input: { extra: ... } } }` and a few more. */
export const GRAPHQL_JSON_BOUNDS: JsonBounds = { ...JSON_BOUNDS, depthMax: JSON_DEPTH_MAX + 10 };
/** Unspecified: an answer that is held in memory until it is charged. */
export const UPSTREAM_BODY_BYTES_MAX = 64 * 1024 * 1024;
/** Unspecified: the same answer's structure; 16,000 tokens with 20 log probabilities each have 1.1 million keys and 2.7 million values. */
export const UPSTREAM_JSON_BOUNDS: JsonBounds = { ...JSON_BOUNDS, keysMax: 2_000_000, valuesMax: 4_000_000, textsMax: 4_000_000 };
/** Unspecified: a whole stream, which is never held in memory; the longest answers with log probabilities stay below. */
export const UPSTREAM_STREAM_BYTES_MAX = 1024 * 1024 * 1024;
/** Unspecified: one server-sent event; a picture as a data URL fits. */
export const SSE_EVENT_BYTES_MAX = 32 * 1024 * 1024;
/** Unspecified: what an upstream's stream may carry between two pieces of content; a comment of 30 bytes each 100 ms for an hour. */
export const SSE_SILENT_BYTES_MAX = 1024 * 1024;
/** Unspecified: a GraphQL document with its variables; one that carries a chat may be as large as a REST body. */
export const GRAPHQL_BODY_BYTES_MAX = JSON_BODY_BYTES_MAX;

/** Time-outs (docs/spec/http.md#time-outs). */
export const GENERATION_TIMEOUT_MS = 300_000;
export const UPSTREAM_IDLE_TIMEOUT_MS = 60_000;
export const UPSTREAM_CONNECT_TIMEOUT_MS = 3_000;
/** Unspecified: how often the log says of an upstream that it refuses the gateway's credential. */
export const REFUSED_CREDENTIAL_LOG_MS = 300_000;
/** Unspecified: how often the log says of a model that its upstream reports more usage than is plausible. */
export const BOUNDED_USAGE_LOG_MS = 300_000;
/** A comment line while nothing is sent (docs/spec/http.md#streams). */
export const SSE_KEEP_ALIVE_MS = 15_000;
/** How long an answer's status waits for the upstream's first byte, so that early errors keep their own status. */
export const STREAM_HEAD_WAIT_MS = 5_000;
/** How long a stream that was left is read on for the report of its usage (docs/spec/credits.md#callers-who-leave). */
export const STREAM_REST_MS = 30_000;
/** A reader that takes nothing for this long has gone. */
export const SLOW_READER_TIMEOUT_MS = 60_000;
/** Unspecified: upstream connections of one upstream; more than this wait. */
export const UPSTREAM_CONNECTIONS_MAX = 2_048;

/** How many gateways a request has come through: each tells the next, so that a model whose upstream is a gateway cannot go in circles. */
export const HOPS_HEADER = "x-sluice-hops";
/** The caller's own request id (docs/spec/http.md#request-ids). */
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
/** Unspecified: how many keys in a row may have made one another; prisma/migrations states it too. */
export const API_KEY_LEVELS_MAX = 8;

/** How long a key's record is believed without asking the database (docs/architecture.md#read). */
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

/** Credits: operations committed together. Above it a flush takes so long that the first of it wait needlessly. */
export const FLUSH_OPERATIONS_MAX = 500;
/** Credits: operations waiting for a flush; above it new work is refused. */
export const FLUSH_QUEUE_MAX = 20_000;
/** Credits: a database that has not answered for this long is away. */
export const FLUSH_TIMEOUT_MS = 5_000;
/** Credits: flushes that have been tried for this long, and none with success, make the gateway unready. */
export const FLUSH_STALLED_MS = 5_000;
/** Credits: how often a database that is away is tried. */
export const FLUSH_RETRY_MS = 250;
/** Credits: how long a hold waits for the settlement of others that stand in its way, before it is refused. */
export const CONTENDED_HOLD_WAIT_MS = 2_000;
/** Credits: how often waiting holds are tried again, whatever is heard of settlements of other processes. */
export const CONTENDED_HOLD_RETRY_MS = 200;
/** Credits: how long what is known of a balance is believed when nothing is heard of other processes. */
export const KNOWN_BALANCE_MS = 1_000;
/** Credits: a hold that nobody extends for this long has expired; longer than any generation. */
export const HOLD_SECONDS = 900;
/** Credits: a lease begins with room for so many holds like the one that asks for it, and is not made where it has room for fewer than these. */
export const LEASE_ESTIMATES = 64n;
export const LEASE_ESTIMATES_LEAST = 4n;
/** Credits: when a lease that nobody uses is given back, and how often that is looked for. */
export const LEASE_IDLE_MS = 5_000;
export const LEASE_SWEEP_MS = 1_000;
/** Credits: for so long after it was asked back, or could not be had, a lease is neither used nor made larger. */
export const LEASE_PAUSE_MS = 1_000;
/** Credits: how long a refill, a grant or a new budget waits for leases of other processes. */
export const LEASE_RECALL_MS = 500;
/** Credits: a hold is extended when this part of it is used up, in hundredths (docs/architecture.md#settle). */
export const EXTEND_AT_PERCENT = 80n;
/** Credits: how often a running stream's meter is written to its hold: the most that a killed process forgets. */
export const METER_NOTE_MS = 1_000;
/** Credits: output tokens assumed of a model that nothing is known of. */
export const OUTPUT_TOKENS_ASSUMED = 1_000;
/** Credits: how often a process says that it lives, and after how long without it is dead. */
export const HEARTBEAT_MS = 2_000;
export const HEARTBEAT_DEAD_MS = 30_000;
/** Credits: how often abandoned holds are looked for. */
export const RECOVERY_SWEEP_MS = 10_000;
/** Credits: how soon a settlement that the database refused is tried again, each time twice as late, and how late at most. */
export const REFUSED_RETRY_MS = 1_000;
export const REFUSED_RETRY_MS_MAX = 600_000;
/** Credits: settlements kept on disk while the database is away; above it streams fail rather than go unrecorded. */
export const SPOOL_BYTES_MAX = 256 * 1024 * 1024;

/** Unspecified: what a caller without a key may send; only the public catalog answers them. */
export const GRAPHQL_ANONYMOUS_BODY_BYTES_MAX = 100 * 1024;

/** Unspecified: a search of the catalog, as long as the longest model id. */
export const CATALOG_SEARCH_CHARS_MAX = 253;

/** GraphQL over WebSocket (docs/spec/graphql.md#websocket). */
export const WEBSOCKET_INIT_TIMEOUT_MS = 3_000;
export const WEBSOCKET_PING_MS = 12_000;
export const WEBSOCKET_OPERATIONS_MAX = 10;
/** Unspecified: with more than this unread by the client, nothing more is read from it. */
export const WEBSOCKET_UNREAD_BYTES_MAX = 1024 * 1024;
/** Unspecified: how often a live subscription's key is looked up again; a revocation that was announced is felt at once. */
export const LIVE_KEY_CHECK_MS = 10_000;

/** HTTP: how long a client may take to send its headers, and its whole request. */
export const HTTP_HEADERS_TIMEOUT_MS = 15_000;
export const HTTP_REQUEST_TIMEOUT_MS = 120_000;
/** HTTP: longer than load balancers keep an idle connection, so that they never write to one that is being closed. */
export const HTTP_KEEP_ALIVE_MS = 75_000;
/** Unspecified: how long generations whose callers have left may go on after that, once everybody else is done. */
export const UNATTENDED_DRAIN_MS = 5_000;
/** Unspecified: processes of one gateway on one machine. */
export const WORKERS_MAX = 64;
/** How long streams may go on after the gateway was told to stop. */
export const DRAIN_TIMEOUT_MS = 30_000;
/** Longer than any balancer takes to see that a server is not ready (SHUTDOWN_DELAY_MS). */
export const SHUTDOWN_DELAY_MS_MAX = 300_000;

/** Video (docs/spec/limits.md). */
export const VIDEO_SECONDS_MIN = 1;
export const VIDEO_SECONDS_MAX = 10;
/** Unspecified: far more than ten seconds of 4K; an answer is held in memory until it is charged. */
export const VIDEO_BYTES_MAX = 256 * 1024 * 1024;
/** Unspecified: how long it may take to find the length of a video or recording, its thread's start included (an honest one takes milliseconds), and how many are read at once. */
export const MEDIA_INSPECTION_MS_MAX = 10_000;
export const MEDIA_INSPECTIONS_MAX = 2;
/** Unspecified: files of one account, and of all, that wait to be read: one of an account is read at a time. */
export const MEDIA_INSPECTIONS_WAITING_PER_ACCOUNT_MAX = 16;
export const MEDIA_INSPECTIONS_WAITING_MAX = 256;
/** Unspecified: how soon a video job at an upstream is looked at, then ever less often, unless the upstream says when. */
export const VIDEO_POLL_MS_FIRST = 500;
export const VIDEO_POLL_MS_MIN = 20;
export const VIDEO_POLL_MS_MAX = 5_000;
/** Unspecified: looks in a row that may fail before the job is given up. */
export const VIDEO_POLL_FAILURES_MAX = 5;
/**
 * Unspecified: steps that cost nothing and come after the paid one (a download, a fetch, a look): how often each is tried in all, the
 * wait before the second attempt, doubled for each further one up to the most, and the longest `Retry-After` that is waited for.
 */
export const FREE_STEP_ATTEMPTS_MAX = 7;
export const FREE_STEP_WAIT_MS_FIRST = 250;
export const FREE_STEP_WAIT_MS_MAX = 4_000;
export const FREE_STEP_RETRY_AFTER_MS_MAX = 30_000;
/** Unspecified: how long an upstream may take to hear that a video is not wanted any more. */
export const VIDEO_DISCARD_TIMEOUT_MS = 5_000;

/** GraphQL forms, unspecified: files of one operation, and places in its variables that they go to. */
export const GRAPHQL_FILES_MAX = 17;
export const GRAPHQL_FILE_PATHS_MAX = 64;

/** Generation jobs, unspecified: running at once of one account, and in one process; a finished video waits in memory to be stored. */
export const JOBS_PER_ACCOUNT_MAX = 10;
export const JOBS_PER_PROCESS_MAX = 100;
/** Generation jobs, unspecified: how long a result can be fetched. */
export const JOB_RESULT_HOURS = 24;
/** Generation jobs, unspecified: how long a stopping gateway waits for them, after everything else has been drained. */
export const JOBS_DRAIN_MS = 5_000;
/** Generation jobs, unspecified: how often a database that is away is told how a job ended. */
export const JOB_RETRY_MS = 1_000;
/** Generation jobs, unspecified: how long a finished answer is kept in memory for a store or a database that is away. */
export const JOB_STORE_MS_MAX = 60_000;

/** Images: `WIDTHxHEIGHT` 64..4096, in pixels (docs/spec/images.md#size). */
export const IMAGE_SIDE_MIN = 64;
export const IMAGE_SIDE_MAX = 4_096;
export const IMAGE_SIDE_DEFAULT = 1_024;
/** Images, unspecified: as OpenAI's newest models take. */
export const IMAGE_PROMPT_CHARS_MAX = 32_000;
/** Images, unspecified: pictures of one generation, as OpenAI has it. */
export const IMAGES_PER_REQUEST_MAX = 10;
/** Images, unspecified: references, or pictures to edit: how many, how large each, and all of them together. */
export const IMAGE_INPUTS_MAX = 10;
export const IMAGE_INPUT_BYTES_MAX = 20 * 1024 * 1024;
export const IMAGE_INPUTS_BYTES_MAX = 64 * 1024 * 1024;
/** Images, unspecified: more than any camera takes, and what a picture may be unpacked to. */
export const IMAGE_INPUT_PIXELS_MAX = 100_000_000;
/** Images, unspecified: until the last byte of a picture that a URL names. */
export const IMAGE_FETCH_TIMEOUT_MS = 20_000;

/** OpenAI's format: inputs of one embeddings request. */
export const EMBEDDING_INPUTS_MAX = 2_048;
/** Unspecified: far above the widest vectors that any model makes. */
export const EMBEDDING_DIMENSIONS_MAX = 65_536;
/** Unspecified: 2,048 vectors of 3,072 numbers, written out, are 80 MB. */
export const EMBEDDING_ANSWER_BYTES_MAX = 128 * 1024 * 1024;
/** Unspecified: 2,048 vectors of 3,072 numbers are 6.3 million values. */
export const EMBEDDING_ANSWER_BOUNDS: JsonBounds = { ...JSON_BOUNDS, valuesMax: 8_000_000 };
/** Unspecified: texts, or parts of one input, of one moderation request. */
export const MODERATION_INPUTS_MAX = 2_048;
/** Safety, unspecified: text that is looked at in one go, before other requests have their turn, and how far it reaches into the next. */
export const SAFETY_WINDOW_CHARS = 32 * 1024;
export const SAFETY_OVERLAP_CHARS = 16 * 1024;
/** Safety, unspecified: a longer text goes to the moderation model in pieces, which share some of their text. */
export const SAFETY_MODERATED_CHARS_MAX = 20_000;
export const SAFETY_MODERATED_OVERLAP_CHARS = 500;
/** Safety, unspecified: pieces in one moderation call, and calls at the same time. */
export const SAFETY_MODERATED_PIECES_MAX = 32;
export const SAFETY_MODERATION_CALLS_MAX = 4;
/** Safety, unspecified: how long all of that may take. */
export const SAFETY_MODERATION_TIMEOUT_MS = 20_000;

/** Unspecified: counters of each kind that a process keeps in memory; of more the oldest are forgotten. */
export const COUNTERS_MAX = 100_000;

/** Vendors' packages, unspecified: files of a chat that are fetched for an upstream that does not fetch, each and how many. */
export const CHAT_FILE_BYTES_MAX = 20 * 1024 * 1024;
export const CHAT_FILES_FETCHED_MAX = 16;

/** Chat, unspecified: hosts of addresses that a request names for an upstream to fetch; each is looked up. */
export const NAMED_HOSTS_MAX = 16;

/** Audio: characters (Unicode code points) of a speech's input (docs/spec/audio.md#speech); unspecified: the same for music and instructions. */
export const SPEECH_INPUT_CHARS_MAX = 10_000;
export const SPEECH_SPEED_MIN = 0.25;
export const SPEECH_SPEED_MAX = 4;
/** Audio, unspecified: what models make within the time-out; a piece whose length was not asked for is held for as the default. */
export const MUSIC_SECONDS_MIN = 1;
export const MUSIC_SECONDS_MAX = 300;
export const MUSIC_SECONDS_DEFAULT = 60;
/** Audio, unspecified: a recording to be transcribed (OpenAI's own bound of 25 MB), and the form around it. */
export const TRANSCRIPTION_FILE_BYTES_MAX = 25 * 1024 * 1024;
export const TRANSCRIPTION_FORM_BYTES_MAX = TRANSCRIPTION_FILE_BYTES_MAX + 2 * 1024 * 1024;

/** Realtime, unspecified: as long as OpenAI's own sessions last, and how long one may be silent on both sides. */
export const REALTIME_SESSION_MS_MAX = 60 * 60_000;
export const REALTIME_IDLE_MS_MAX = 10 * 60_000;
/** Realtime: OpenAI takes 15 MiB of audio in an event, which base64 and JSON make a third larger. */
export const REALTIME_EVENT_BYTES_MAX = 21 * 1024 * 1024;
/** Realtime, unspecified: events that wait for a slow reader on either side; with more, the writer is not read from. */
export const REALTIME_WAITING_BYTES_MAX = 1024 * 1024;
/** Realtime, unspecified: tokens in and tokens out that the first hold covers, some turns of a conversation. */
export const REALTIME_TOKENS_HELD = 1_000;
/** Realtime, unspecified: of audio to be transcribed, what the first hold covers. */
export const REALTIME_TRANSCRIPTION_MS_HELD = 60_000;
/** Realtime: how long the report of an answer is waited for whose caller has left (docs/spec/credits.md#callers-who-leave). */
export const REALTIME_REPORT_MS = 30_000;
/** Realtime, unspecified: sessions at the same time with one key, and from one address. */
export const REALTIME_SESSIONS_PER_KEY_MAX = 50;
export const REALTIME_SESSIONS_PER_ADDRESS_MAX = 50;
/** Realtime, unspecified: how often a session's idle time is looked at and its meter is written down. */
export const REALTIME_TICK_MS = 1_000;
/** Realtime: how soon after the last look a response under way is metered again. */
export const REALTIME_METER_MS = 250;
/** Realtime, unspecified: an upstream from which nothing came for two of these has gone. */
export const REALTIME_PING_MS = 15_000;
/** Realtime, unspecified: how long the other side may take to answer a close. */
export const REALTIME_CLOSE_MS = 1_000;

/** Local model server, unspecified: how often it is asked what it has, and how long a start waits for its first answer. */
export const LOCAL_REFRESH_MS = 15_000;
export const LOCAL_START_WAIT_MS = 500;
/** Local model server, unspecified: one request about its models; how large a list is read, and how many of it are listed. */
export const LOCAL_TIMEOUT_MS = 5_000;
export const LOCAL_LIST_BYTES_MAX = 8 * 1024 * 1024;
export const LOCAL_MODELS_MAX = 500;

/** Tiers, unspecified: how long a process relies on what it knows of an account's next refill, and of how many accounts. As long as a key is cached. */
export const TIER_STANDING_CACHE_MS = 5_000;
export const TIER_STANDINGS_MAX = 100_000;

/** Unspecified: runs of one process whose costs are told with their answers. */
export const AGENT_RUNS_NOTED_MAX = 10_000;
/** A run token's life (docs/spec/agents.md#run-tokens). */
export const RUN_TOKEN_MS = 30 * 60_000;

/** Runs whose spending one process counts: more than can have a good run token at once. */
export const RUN_BUDGETS_MAX = 200_000;

/** Unspecified: bytes of bodies that a process holds at once; `REQUEST_BODIES_BYTES`. Parsed, they take some three times that. */
export const REQUEST_BODIES_BYTES_DEFAULT = 512 * 1024 * 1024;
/** Unspecified: less would refuse what ordinary requests bring. */
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
/** Unspecified: no token, second or picture costs this much; a price per million tokens, put in by mistake, soon does. */
export const PRICE_CREDITS_MAX = 1_000;

/** Unspecified: what an account may keep on the media host, unless configured. */
export const MEDIA_QUOTA_BYTES_DEFAULT = 5 * 1024 * 1024 * 1024;
export const MEDIA_QUOTA_FILES_DEFAULT = 10_000;
/** Unspecified: with less free space than this on the disk no file is taken in, unless configured. The database needs the rest. */
export const DISK_FREE_BYTES_MIN_DEFAULT = 512 * 1024 * 1024;

/** Unspecified: the consent form with a thousand models ticked stays below. */
export const URLENCODED_BODY_BYTES_MAX = 256 * 1024;
/** Unspecified. */
export const URLENCODED_FIELDS_MAX = 2_000;
/** Unspecified: a form that was left open overnight is asked for anew. */
export const FORM_TOKEN_SECONDS = 12 * 60 * 60;
/** Unspecified: between the form that makes a key and the page that shows it. */
export const KEY_REVEAL_SECONDS = 2 * 60;
/** Unspecified: so soon after it the same form is a second click. */
export const KEY_FORM_REPEAT_SECONDS = 10;

/** scrypt's N, OWASP Password Storage Cheat Sheet. */
export const PASSWORD_COST = 2 ** 14;

/** Unspecified: of one address, of one e-mail address, and of sign-ups of one address. */
export const SIGN_IN_ATTEMPTS_PER_MINUTE = 10;
/** Unspecified: of attempts to sign in beyond these; nobody waits much longer than half a minute. */
export const SIGN_IN_PACE = { addressTurnMs: 5_000, emailTurnMs: 15_000, waitingPerAddressMax: 2 } as const;

/** Numbers that bound what is taken from code agents' repositories: anybody may name one, and its host may be hostile. All unspecified. */

/** From the first byte that is asked for to the finished bundle. */
export const REPOSITORY_TIMEOUT_MS = 20_000;
/** The latest commit as its host packs it. */
export const REPOSITORY_PACK_BYTES_MAX = 20 * 1024 * 1024;
/** Everything in it, unpacked. */
export const REPOSITORY_UNPACKED_BYTES_MAX = 64 * 1024 * 1024;
/** One file of it, unless its host can leave large ones out: unpacking one is a single step, in which nobody else is served. */
export const REPOSITORY_FILE_BYTES_MAX = 16 * 1024 * 1024;
/** Files and folders of the latest commit. */
export const REPOSITORY_OBJECTS_MAX = 20_000;
/** What a host lists before the branch that it names as its default. */
export const REPOSITORY_ADVERTISEMENT_BYTES_MAX = 256 * 1024;
/** Hosts redirect `owner/name` to `owner/name.git`, and repositories that were renamed or moved. */
export const REPOSITORY_REDIRECTS_MAX = 3;
/** Repositories that one process fetches at the same time. */
export const REPOSITORIES_AT_ONCE_MAX = 4;
/** How long a host is asked for the description of a repository: without an answer an agent has none. */
export const REPOSITORY_DESCRIPTION_TIMEOUT_MS = 3_000;
export const REPOSITORY_DESCRIPTION_BYTES_MAX = 512 * 1024;

/** Of agent.ts and everything that it imports. */
export const AGENT_SOURCES_BYTES_MAX = 512 * 1024;
export const AGENT_FILES_MAX = 100;
export const AGENT_BUNDLE_BYTES_MAX = 1024 * 1024;
/** Of each of the two processes that make a bundle, without its program. One of sources that nest no deeper than people write takes 100 MB. */
export const BUNDLER_MEMORY_BYTES_MAX = 320 * 1024 * 1024;
/** How deep JSON nests that an agent imports. */
export const AGENT_JSON_DEPTH_MAX = 100;
